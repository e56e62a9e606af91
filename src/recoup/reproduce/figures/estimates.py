"""Figure 1: how far estimated gradients lie from the true one. (Figure 4: `directions`.)"""

from collections.abc import Iterable

import numpy as np
from matplotlib.figure import Figure as Picture

from recoup.reproduce.claims import Contrast, Said, contrast, slope
from recoup.reproduce.drawing import curve, legend, picture, stderr
from recoup.reproduce.figure import Figure
from recoup.reproduce.figures import direction_figures, gradients
from recoup.reproduce.figures.gradients import ESTIMATORS, ITERATIONS, SHAPED
from recoup.reproduce.jobs import Arrays
from recoup.reproduce.sizes import Size

SIX = ("pgpe", "pgpe-ob", "niw-pgpe", "niw-pgpe-ob", "iw-pgpe", "iw-pgpe-ob")
*OTHERS, OURS = SIX
UNBIASED = {"pgpe": True, "niw-pgpe": False, "iw-pgpe": True}  # eq. 3, S3.1
SMALL = 0.01  # of the squared length of the true gradient: a bias that is small
TOLERANCE = f"Small: below {SMALL:.0%} of the squared gradient, both averaged over iterations."
CAPPED = ("truncated", "flattened")  # of the shaped weights, those whose largest is bounded so
RELATIVE = "squared bias over squared gradient of"


def collect_variances(size: Size, results: dict[str, Arrays]) -> Arrays:
    """Variance and squared bias of the eta-gradient, `[start, L]` by method."""
    parts = [results[f"toy/variance/{start}"] for start in range(size.starts)]
    found = {key: np.stack([part[key] for part in parts]) for key in parts[0]}
    surface = results["toy/surface"]["mean"]
    truth = gradients.true_gradient(surface, found["eta"], found["tau"])
    data = {
        "eta": found["eta"],
        "tau": found["tau"],
        "truth": truth,
        "on_policy": found["on_policy"],
        "trials": np.array(size.trials),
    }
    for i, method in enumerate(ESTIMATORS):
        mean, variance = found["mean"][:, :, i, 0], found["variance"][:, :, i, 0]
        data[f"{method} variance"] = variance
        data[f"{method} largest weight"] = found["max_weight"][:, :, i]
        data[f"{method} bias2"] = (mean - truth[..., 0]) ** 2
        data[f"{method} bias2 as in the paper"] = (mean - found["on_policy"][..., 0]) ** 2
    return data


# -- the variance --


def _log_variance(data: Arrays, method: str) -> np.ndarray:
    return np.log(data[f"{method} variance"])


def _varies_less(data: Arrays, below: str, *others: str) -> tuple[Contrast, ...]:
    variance = {m: _log_variance(data, m).mean(-1) for m in (below, *others)}
    return tuple(
        contrast(f"log variance of {other} over {below}", variance[other] - variance[below])
        for other in others
    )


# -- the bias --


def _bias(data: Arrays, method: str) -> np.ndarray:
    """Squared bias less what chance adds to it, over the squared true gradient; a start each."""
    chance = data[f"{method} variance"] / data["trials"]
    scale = (data["truth"][..., 0] ** 2).mean(-1)
    return (data[f"{method} bias2"] - chance).mean(-1) / scale


def _first_bias(data: Arrays, method: str) -> float:
    """Squared bias over squared gradient in the first iteration, where nothing is reused yet."""
    chance = data[f"{method} variance"][:, 0] / data["trials"]
    squares = (data["truth"][:, 0, 0] ** 2).mean()
    return float((data[f"{method} bias2"][:, 0] - chance).mean() / squares)


def _biased_less(data: Arrays, *methods: str) -> tuple[Contrast, ...]:
    return tuple(
        contrast(f"{SMALL} minus {RELATIVE} {method}", SMALL - _bias(data, method), most=SMALL)
        for method in methods
    )


def _biased_more(data: Arrays, limit: float, methods: Iterable[str]) -> tuple[Contrast, ...]:
    return tuple(
        contrast(f"{RELATIVE} {method}, minus {limit}", _bias(data, method) - limit)
        for method in methods
    )


# -- both together --


def _log_error(data: Arrays, method: str) -> np.ndarray:
    """Of the mean squared error, variance and squared bias together; a start each."""
    return np.log(data[f"{method} variance"] + data[f"{method} bias2"]).mean(-1)


def _errs_less(data: Arrays, below: str, *others: str) -> tuple[Contrast, ...]:
    error = {m: _log_error(data, m) for m in (below, *others)}
    return tuple(
        contrast(f"log mean squared error of {other} over {below}", error[other] - error[below])
        for other in others
    )


# -- the picture --


def draw_variances(data: Arrays) -> Picture:
    """Variance, squared bias and mean squared error over iterations."""
    figure, axes = picture(3, width=12.5, height=4)
    x = np.arange(1, ITERATIONS + 1)
    for method in (*SIX, "mis-pgpe-ob", "iw-pgpe-split"):
        variance, bias = data[f"{method} variance"], data[f"{method} bias2"]
        for ax, values in zip(axes[0], (variance, bias, variance + bias), strict=True):
            curve(ax, x, values, method, geometric=True)
    for ax, title in zip(axes[0], ("variance", "squared bias", "mean squared error"), strict=True):
        ax.set(xlabel="iteration", xticks=(1, 5, 10, 15, 20))
        ax.set_title(title, loc="left", fontsize=10)
    legend(figure, axes[0, 0])
    return figure


SAID = (
    Said(
        "toy-variance.lowest",
        "IW-PGPE_OB provides gradient estimates with the lowest variance among the compared "
        "methods.",
        lambda data: _varies_less(data, OURS, *OTHERS),
    ),
    Said(
        "toy-variance.iw-above-niw",
        "IW-PGPE has a larger variance than NIW-PGPE.",
        lambda data: _varies_less(data, "niw-pgpe", "iw-pgpe"),
    ),
    Said(
        "toy-variance.gap-grows",
        "The gap in the variance between IW-PGPE and IW-PGPE_OB tends to be larger over "
        "iterations.",
        lambda gap: {
            "gap in the last 5 iterations minus iterations 2 to 6": (
                gap[:, -5:].mean(-1) - gap[:, 1:6].mean(-1)
            )
        },
        "The gap as a difference; iteration 1, where nothing is reused yet, left out.",
        lambda data: data["iw-pgpe variance"] - data["iw-pgpe-ob variance"],
    ),
    Said(
        "toy-variance.reduction-grows",
        "Variance reduction from IW-PGPE to IW-PGPE_OB by the optimal constant baseline tends "
        "to be more significant in later iterations.",
        lambda log_ratio: {"slope of the log of their ratio, an iteration": slope(log_ratio)},
        "The reduction as a ratio.",
        lambda data: _log_variance(data, "iw-pgpe") - _log_variance(data, "iw-pgpe-ob"),
    ),
    Said(
        "toy-variance.reuse-helps",
        "Gradient estimates in both NIW-PGPE_OB and IW-PGPE_OB are with smaller variance than "
        "the plain PGPE_OB method.",
        lambda data: (
            *_varies_less(data, "niw-pgpe-ob", "pgpe-ob"),
            *_varies_less(data, OURS, "pgpe-ob"),
        ),
    ),
    Said(
        "toy-variance.iw-ob-below-niw-ob",
        "IW-PGPE_OB provides smaller variance than NIW-PGPE_OB.",
        lambda data: _varies_less(data, OURS, "niw-pgpe-ob"),
    ),
    Said(
        "toy-variance.baseline-helps-pgpe",
        "The plain PGPE_OB has smaller variance than the plain PGPE.",
        lambda data: _varies_less(data, "pgpe-ob", "pgpe"),
    ),
    Said(
        "toy-variance.baseline-adds-no-bias",
        "Introduction of the optimal baseline does not increase the bias.",
        lambda data: tuple(
            contrast(
                f"{SMALL} minus the increase of squared bias from {method} to {method}-ob",
                SMALL - (_bias(data, f"{method}-ob") - (0.0 if unbiased else _bias(data, method))),
                most=SMALL if unbiased else None,  # a bias of 0 cannot fall
            )
            for method, unbiased in UNBIASED.items()
        ),
        f"{TOLERANCE} pgpe and iw-pgpe are unbiased, so theirs counts as 0. A guess: the baseline "
        "comes from the samples it is subtracted from, which matters most where they are few.",
        where="Abstract, S4.1.2",
    ),
    Said(
        "toy-variance.niw-biased",
        "NIW-PGPE and NIW-PGPE_OB have very large bias.",
        lambda data: _biased_more(data, 10 * SMALL, ("niw-pgpe", "niw-pgpe-ob")),
        "Very large: above a tenth of the squared gradient.",
    ),
    Said(
        "toy-variance.iw-small-bias",
        "The bias of gradient estimates in IW-PGPE is fairly small.",
        lambda data: _biased_less(data, "iw-pgpe"),
        lambda data: (
            f"{TOLERANCE} The estimate is unbiased (S3.1); with {int(data['trials']):,} trials the "
            f"standard error of this number is {stderr(_bias(data, 'iw-pgpe')) / SMALL:.2g} times "
            "that limit."
        ),
    ),
    Said(
        "toy-variance.iw-ob-small-bias",
        "Our proposed IW-PGPE_OB has small bias.",
        lambda data: _biased_less(data, OURS),
        TOLERANCE,
    ),
    Said(
        "toy-variance.plain-small-bias",
        "The plain PGPE and plain PGPE_OB are also with small bias.",
        lambda data: _biased_less(data, "pgpe", "pgpe-ob"),
        lambda data: (
            f"{TOLERANCE} That of pgpe-ob is {_bias(data, 'pgpe-ob').mean():.3f}. In the first "
            f"iteration it is {_first_bias(data, 'pgpe-ob'):.4f}, and with the split baseline, "
            "which shares no sample with the gradient, "
            f"{_first_bias(data, 'iw-pgpe-split'):.4f}."
        ),
    ),
    Said(
        "toy-variance.smallest-error",
        "Our proposed IW-PGPE_OB also gives the smallest mean squared error.",
        lambda data: _errs_less(data, OURS, *OTHERS),
    ),
    Said(
        "toy-variance.shaping-lowers-bound",
        "Decreasing w_max by flattening or truncating the importance weight reduces the upper "
        "bounds of the variance of gradient estimates.",
        lambda weight: {
            f"log of the bound of iw-pgpe over {shaped}, by their largest weights": (
                weight["iw-pgpe"] - weight[shaped]
            )
            for shaped in CAPPED
        },
        "Theorem 1's bound is proportional to w_max; here the largest weight of an estimate, "
        "averaged over trials. w^0.5 and min(w, 2).",
        lambda data: {
            m: np.log(data[f"{m} largest weight"]).mean(-1) for m in ("iw-pgpe", *CAPPED)
        },
        where="S3.2",
    ),
    Said(
        "toy-variance.shaping-lowers-variance",
        "[With truncation, normalization, and flattening of importance weights] the variance is "
        "reduced at the expense of increasing the bias.",
        lambda data: tuple(
            found for shaped in SHAPED for found in _varies_less(data, shaped, "iw-pgpe")
        ),
        "The variance itself, with w^0.5, min(w, 2), and weights divided by their mean; the bias "
        "is the next claim.",
        where="S1",
    ),
    Said(
        "toy-variance.shaping-biases",
        "However, all of those techniques [flattening, truncating, normalising] are based on "
        "the bias-variance trade-off, and thus they lead to biased estimators.",
        lambda data: _biased_more(data, SMALL, SHAPED),
        "Biased: by more than 1 % of the squared gradient.",
        where="S1, S3.2",
    ),
    Said(
        "toy-variance.split-worse",
        "This splitting approach [one part of the data for the baseline, the other for the "
        "gradient] does not work well in our preliminary experiments.",
        lambda data: _errs_less(data, OURS, "iw-pgpe-split"),
        "Our split, not the paper's, which is not described: two halves, each with the baseline of "
        "the other, so that all samples serve the gradient.",
        where="S4",
    ),
    Said(
        "toy-variance.baseline-over-weights",
        "[The] baseline is possibly the primary factor in improving performance compared with "
        "the importance weighting techniques.",
        lambda data: {
            "log error saved by the baseline, minus that saved by the weights": (
                (_log_error(data, "iw-pgpe") - _log_error(data, OURS))
                - (_log_error(data, "niw-pgpe-ob") - _log_error(data, OURS))
            )
        },
        "What each saves when the other is there, in log mean squared error.",
        where="S5",
    ),
)

FIGURES = (
    Figure(
        "toy-variance",
        "Figure 1",
        "Variance and bias of estimated gradients",
        "Variance, squared bias and mean squared error of the gradient with respect to the mean, "
        "over 20 iterations of one path of rho along the true gradient, shared by all methods; "
        "fresh samples for every estimate. Geometric mean and its standard error over starts. "
        "Bias is measured against quadrature; the paper's reference of 10,000 samples is kept in "
        "the data.",
        jobs=lambda size: [
            gradients.surface_job(),
            *gradients.variance_jobs(size.trials, size.starts),
        ],
        collect=collect_variances,
        draw=draw_variances,
        said=SAID,
        section="S4.1.2",
    ),
    *direction_figures.FIGURES,
)

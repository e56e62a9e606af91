"""Figures 1 and 4: how far and in which direction estimated gradients lie from the true one."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure as Picture

from recoup.core.families.gaussian import draw
from recoup.engine.estimate import estimate
from recoup.reproduce.claims import Claim, Contrast, contrast
from recoup.reproduce.drawing import LOOKS, curve, legend, picture
from recoup.reproduce.figure import Figure
from recoup.reproduce.figures import gradients
from recoup.reproduce.figures.gradients import ESTIMATORS, ITERATIONS, SHAPED
from recoup.reproduce.jobs import Arrays, Job, Tick
from recoup.reproduce.sizes import Size

SIX = ("pgpe", "pgpe-ob", "niw-pgpe", "niw-pgpe-ob", "iw-pgpe", "iw-pgpe-ob")
SURFACE_DRAWS = 4_000
SMALL = 0.01  # of the squared length of the true gradient: a bias that is small
POINT, SOURCE = (-0.8, 0.5), (-1.6, 1.0)  # of Figure 4: where, and what drew the samples
COMPARED = ("niw-pgpe", "iw-pgpe", "iw-pgpe-ob")


# -- Figure 1 --


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
        data[f"{method} bias2"] = (mean - truth[..., 0]) ** 2
        data[f"{method} bias2 as in the paper"] = (mean - found["on_policy"][..., 0]) ** 2
    return data


def _bias(data: Arrays, method: str) -> np.ndarray:
    """Squared bias less what chance adds to it, over the squared true gradient; a start each."""
    chance = data[f"{method} variance"] / data["trials"]
    scale = (data["truth"][..., 0] ** 2).mean(-1)
    return (data[f"{method} bias2"] - chance).mean(-1) / scale


def _typical_bias(data: Arrays, method: str) -> np.ndarray:
    """The median over iterations of squared bias over squared gradient: tails do not decide it."""
    return np.median(data[f"{method} bias2"] / data["truth"][..., 0] ** 2, axis=-1)


def _first_bias(data: Arrays, method: str) -> float:
    """Squared bias over squared gradient in the first iteration, where nothing is reused yet."""
    chance = data[f"{method} variance"][:, 0] / data["trials"]
    squares = (data["truth"][:, 0, 0] ** 2).mean()
    return float((data[f"{method} bias2"][:, 0] - chance).mean() / squares)


def variance_claims(data: Arrays) -> list[Claim]:
    """What the paper says of Figure 1; one number a start, averaged over its iterations."""
    log_variance = {m: np.log(data[f"{m} variance"]) for m in ESTIMATORS}
    log_error = {m: np.log(data[f"{m} variance"] + data[f"{m} bias2"]).mean(-1) for m in ESTIMATORS}
    variance = {m: v.mean(-1) for m, v in log_variance.items()}
    bias = {m: _bias(data, m) for m in ESTIMATORS}
    without = {
        "pgpe": 0.0,
        "niw-pgpe": bias["niw-pgpe"],
        "iw-pgpe": 0.0,
    }  # 0: unbiased, eq. 3, S3.1
    steps = np.arange(ITERATIONS) - (ITERATIONS - 1) / 2
    relative = "squared bias over squared gradient of"

    def lower(below: str, others: Any, values: Any = variance, what: str = "variance") -> Any:
        return tuple(
            contrast(f"log {what} of {other} over {below}", values[other] - values[below])
            for other in others
        )

    def small(*methods: str) -> tuple[Contrast, ...]:
        return tuple(contrast(f"{SMALL} minus {relative} {m}", SMALL - bias[m]) for m in methods)

    gap = data["iw-pgpe variance"] - data["iw-pgpe-ob variance"]
    ratio = log_variance["iw-pgpe"] - log_variance["iw-pgpe-ob"]
    others = [m for m in SIX if m != "iw-pgpe-ob"]
    tolerance = f"Small: below {SMALL:.0%} of the squared gradient, both averaged over iterations."
    baseline = log_error["iw-pgpe"] - log_error["iw-pgpe-ob"]
    weights = log_error["niw-pgpe-ob"] - log_error["iw-pgpe-ob"]
    return [
        Claim(
            "toy-variance.lowest",
            "S4.1.2",
            "IW-PGPE_OB provides gradient estimates with the lowest variance among the compared "
            "methods.",
            lower("iw-pgpe-ob", others),
        ),
        Claim(
            "toy-variance.iw-above-niw",
            "S4.1.2",
            "IW-PGPE has a larger variance than NIW-PGPE.",
            lower("niw-pgpe", ["iw-pgpe"]),
        ),
        Claim(
            "toy-variance.gap-grows",
            "S4.1.2",
            "The gap in the variance between IW-PGPE and IW-PGPE_OB tends to be larger over "
            "iterations.",
            (
                contrast(
                    "gap in the last 5 iterations minus iterations 2 to 6",
                    gap[:, -5:].mean(-1) - gap[:, 1:6].mean(-1),
                ),
            ),
            "The gap as a difference; iteration 1, where nothing is reused yet, left out.",
        ),
        Claim(
            "toy-variance.reduction-grows",
            "S4.1.2",
            "Variance reduction from IW-PGPE to IW-PGPE_OB by the optimal constant baseline tends "
            "to be more significant in later iterations.",
            (
                contrast(
                    "slope of the log of their ratio, an iteration", ratio @ steps / (steps @ steps)
                ),
            ),
            "The reduction as a ratio.",
        ),
        Claim(
            "toy-variance.reuse-helps",
            "S4.1.2",
            "Gradient estimates in both NIW-PGPE_OB and IW-PGPE_OB are with smaller variance than "
            "the plain PGPE_OB method.",
            (*lower("niw-pgpe-ob", ["pgpe-ob"]), *lower("iw-pgpe-ob", ["pgpe-ob"])),
        ),
        Claim(
            "toy-variance.iw-ob-below-niw-ob",
            "S4.1.2",
            "IW-PGPE_OB provides smaller variance than NIW-PGPE_OB.",
            lower("iw-pgpe-ob", ["niw-pgpe-ob"]),
        ),
        Claim(
            "toy-variance.baseline-helps-pgpe",
            "S4.1.2",
            "The plain PGPE_OB has smaller variance than the plain PGPE.",
            lower("pgpe-ob", ["pgpe"]),
        ),
        Claim(
            "toy-variance.baseline-adds-no-bias",
            "Abstract, S4.1.2",
            "Introduction of the optimal baseline does not increase the bias.",
            tuple(
                contrast(
                    f"{SMALL} minus the increase of squared bias from {m} to {m}-ob",
                    SMALL - (bias[f"{m}-ob"] - bias_without),
                )
                for m, bias_without in without.items()
            ),
            f"{tolerance} The baseline is estimated from the samples it is subtracted from, which "
            "biases the estimate most where they are few.",
        ),
        Claim(
            "toy-variance.niw-biased",
            "S4.1.2",
            "NIW-PGPE and NIW-PGPE_OB have very large bias.",
            tuple(
                contrast(f"{relative} {m}, minus {10 * SMALL}", bias[m] - 10 * SMALL)
                for m in ("niw-pgpe", "niw-pgpe-ob")
            ),
            "Very large: above a tenth of the squared gradient.",
        ),
        Claim(
            "toy-variance.iw-small-bias",
            "S4.1.2",
            "The bias of gradient estimates in IW-PGPE is fairly small.",
            small("iw-pgpe"),
            f"{tolerance} The estimate is unbiased, but its variance has such heavy tails that "
            f"{int(data['trials']):,} trials cannot show it.",
        ),
        Claim(
            "toy-variance.iw-ob-small-bias",
            "S4.1.2",
            "Our proposed IW-PGPE_OB has small bias.",
            small("iw-pgpe-ob"),
            tolerance,
        ),
        Claim(
            "toy-variance.plain-small-bias",
            "S4.1.2",
            "The plain PGPE and plain PGPE_OB are also with small bias.",
            small("pgpe", "pgpe-ob"),
            f"{tolerance} That of pgpe-ob is {bias['pgpe-ob'].mean():.3f}: its baseline comes "
            "from the ten samples it is subtracted from. With the split baseline, which shares "
            f"no sample with the gradient, it is {_first_bias(data, 'iw-pgpe-split'):.4f} in the "
            f"first iteration, against {_first_bias(data, 'pgpe-ob'):.4f}.",
        ),
        Claim(
            "toy-variance.smallest-error",
            "S4.1.2",
            "Our proposed IW-PGPE_OB also gives the smallest mean squared error.",
            lower("iw-pgpe-ob", others, log_error, "mean squared error"),
        ),
        Claim(
            "toy-variance.shaping-lowers-variance",
            "S3.2",
            "Decreasing w_max by flattening or truncating the importance weight reduces the upper "
            "bounds of the variance of gradient estimates.",
            tuple(c for m in SHAPED for c in lower(m, ["iw-pgpe"])),
            "The variance itself, with w^0.5, min(w, 2), and weights divided by their mean.",
        ),
        Claim(
            "toy-variance.shaping-biases",
            "S1, S3.2",
            "However, all of those techniques [flattening, truncating, normalising] are based on "
            "the bias-variance trade-off, and thus they lead to biased estimators.",
            tuple(
                contrast(
                    f"squared bias over squared gradient of {m}, minus {SMALL}", bias[m] - SMALL
                )
                for m in SHAPED
            ),
            "Biased: by more than 1 % of the squared gradient.",
        ),
        Claim(
            "toy-variance.split-worse",
            "S4",
            "This splitting approach [one part of the data for the baseline, the other for the "
            "gradient] does not work well in our preliminary experiments.",
            lower("iw-pgpe-ob", ["iw-pgpe-split"], log_error, "mean squared error"),
            "Two halves, each with the baseline of the other, against the paper's baseline.",
        ),
        Claim(
            "toy-variance.baseline-over-weights",
            "S5",
            "[The] baseline is possibly the primary factor in improving performance compared with "
            "the importance weighting techniques.",
            (
                contrast(
                    "log error saved by the baseline, minus that saved by the weights",
                    baseline - weights,
                ),
            ),
            "What each saves when the other is there, in log mean squared error.",
        ),
    ]


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


# -- Figure 4 --


def direction_jobs(size: Size) -> list[Job]:
    """Estimates from ten off-policy samples, and the true gradient."""
    settings = {"estimates": size.angles, "point": POINT, "source": SOURCE}
    job = Job("toy/directions", settings, 8, partial(_directions, size.angles))
    return [gradients.surface_job(SURFACE_DRAWS), job]


def _directions(estimates: int, tick: Tick) -> Arrays:
    task, rho, source = gradients.toy(), gradients.rho_of(*POINT), gradients.rho_of(*SOURCE)

    def one(key: jax.Array) -> jax.Array:
        key_draw, key_roll = jax.random.split(key)
        theta = draw(key_draw, source, gradients.N)
        returns = task.rollouts(jax.random.split(key_roll, gradients.N), theta)
        found = [
            estimate(
                theta,
                returns,
                proposals=(source.eta[None], source.tau[None]),
                proposal=jnp.zeros(gradients.N, int),
                target=rho,
                weighting=ESTIMATORS[method]["weighting"],
                baseline=ESTIMATORS[method]["baseline"],
            )
            for method in COMPARED
        ]
        return jnp.stack([jnp.concatenate([e.mean_gradient, e.std_gradient]) for e in found])

    with jax.enable_x64(True):
        keys = jax.random.split(jax.random.key(0), estimates)
        found = np.asarray(jax.jit(jax.vmap(one))(keys))
        on_policy = gradients.on_policy_gradient(jax.random.key(1), rho, gradients.ON_POLICY)
    tick(1.0)
    return {"gradients": found, "on_policy": np.concatenate(on_policy)}


def collect_directions(size: Size, results: dict[str, Arrays]) -> Arrays:
    """Estimates `[M, 2]` by method, and their angles to the true gradient in degrees `[M]`."""
    found = results["toy/directions"]
    truth = gradients.true_gradient(results["toy/surface"]["mean"], *POINT)
    data = {"truth": truth, "on_policy": found["on_policy"]}
    for i, method in enumerate(COMPARED):
        each = found["gradients"][:, i]
        turn = np.arctan2(each[:, 1], each[:, 0]) - np.arctan2(truth[1], truth[0])
        data[method] = each
        data[f"{method} angle"] = (np.degrees(turn) + 180) % 360 - 180
    return data


def direction_claims(data: Arrays) -> list[Claim]:
    """What the paper says of Figure 4."""
    angle = {method: data[f"{method} angle"] for method in COMPARED}

    def within(method: str, low: float, high: float) -> np.ndarray:
        return ((angle[method] >= low) & (angle[method] <= high)).astype(float)

    median = np.median(angle["niw-pgpe"])
    signs = (
        f"The median is {median:.0f} degrees: farther astray than the paper says. Angles are "
        "counted from the true gradient, anticlockwise in the plane of eta and tau."
    )
    return [
        Claim(
            "toy-directions.niw-astray",
            "S4.1.3",
            "The angles [of NIW-PGPE] are concentrated in [-150, -90].",
            (
                contrast(
                    "share of niw-pgpe in there, minus 1/2", within("niw-pgpe", -150, -90) - 0.5
                ),
            ),
            signs,
        ),
        Claim(
            "toy-directions.niw-wrong-side",
            "S4.1.3",
            "... which further explains the inconsistent property of the NIW-PGPE method.",
            (
                contrast(
                    "share of niw-pgpe beyond 90 degrees, minus 1/2",
                    (np.abs(angle["niw-pgpe"]) > 90) - 0.5,
                ),
            ),
            "Whatever the sign: more than half of the estimates point down instead of up.",
        ),
        Claim(
            "toy-directions.iw-wide",
            "S4.1.3",
            "The angles [of IW-PGPE] are widely distributed in [-180, 180].",
            (
                contrast(
                    "1/2 minus share of iw-pgpe within 60 degrees", 0.5 - within("iw-pgpe", -60, 60)
                ),
            ),
        ),
        Claim(
            "toy-directions.iw-ob-concentrated",
            "S4.1.3",
            "The angles for the IW-PGPE_OB method are concentrated in [-60, 60].",
            (
                contrast(
                    "share of iw-pgpe-ob in there, minus 1/2", within("iw-pgpe-ob", -60, 60) - 0.5
                ),
                contrast(
                    "and minus that of iw-pgpe",
                    within("iw-pgpe-ob", -60, 60) - within("iw-pgpe", -60, 60),
                ),
            ),
        ),
    ]


def draw_directions(data: Arrays) -> Picture:
    """Unit directions of twenty estimates above, the histogram of all angles below."""
    figure, axes = picture(3, 2, width=9.5, height=6)
    true = data["truth"] / np.linalg.norm(data["truth"])
    for column, method in enumerate(COMPARED):
        above, below = axes[:, column]
        units = data[method][:20] / np.linalg.norm(data[method][:20], axis=1, keepdims=True)
        for unit in units:
            above.plot([0, unit[0]], [0, unit[1]], color=LOOKS[method].colour, linewidth=1)
        above.quiver(
            0,
            0,
            *true,
            angles="xy",
            scale_units="xy",
            scale=1,
            width=0.018,
            zorder=3,
            color="black",
        )
        above.set(xlim=(-1.3, 1.3), ylim=(-1.3, 1.3), aspect="equal", xlabel="η")
        above.set_title(f"{method} (arrow: true gradient)", loc="left", fontsize=9)
        angles = data[f"{method} angle"]
        below.hist(
            angles,
            np.arange(-180, 181, 15),
            weights=np.full(angles.size, 1 / angles.size),
            color=LOOKS[method].colour,
            edgecolor="white",
            linewidth=0.5,
        )
        below.set(xticks=range(-180, 181, 60), xlabel="angle to the true gradient, degrees")
    axes[0, 0].set_ylabel("τ")
    axes[1, 0].set_ylabel("share of estimates")
    return figure


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
            gradients.surface_job(SURFACE_DRAWS),
            *gradients.variance_jobs(size.trials, size.starts),
        ],
        collect=collect_variances,
        claims=variance_claims,
        draw=draw_variances,
    ),
    Figure(
        "toy-directions",
        "Figure 4",
        "Directions of estimated gradients",
        "Estimates at mean -0.8 and standard deviation 0.5 from ten samples of N(-1.6, 1): twenty "
        "of them as directions in the plane of mean and standard deviation (the arrow is the true "
        "gradient), and the angles of all.",
        jobs=direction_jobs,
        collect=collect_directions,
        claims=direction_claims,
        draw=draw_directions,
    ),
)

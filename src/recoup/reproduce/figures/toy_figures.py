"""Figures 2 and 5: what the methods reach on the toy, and with which weights. (3: `paths`.)"""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure as Picture

from recoup.reproduce.claims import Contrast, Said, above, contrast, slope
from recoup.reproduce.drawing import curve, legend, picture
from recoup.reproduce.figure import Figure
from recoup.reproduce.figures import paths
from recoup.reproduce.jobs import Arrays, FigureJob
from recoup.reproduce.learning_curves import joined, learning_jobs
from recoup.reproduce.sizes import Size
from recoup.reproduce.speed import CONVERGED, converges_early, gain, gains_half

SIX = ("pgpe", "pgpe-ob", "niw-pgpe", "niw-pgpe-ob", "iw-pgpe", "iw-pgpe-ob")
*OTHERS, OURS = SIX
BESIDE = ("tiw-pgpe-ob", "mis-pgpe-ob")
WEIGHED = ("iw-pgpe", "iw-pgpe-ob")
ITERATIONS, TESTS, CHUNK = 20, 100, 1_000


# -- Figure 5: expected returns --


def return_jobs(size: Size, methods: tuple[str, ...] = SIX + BESIDE) -> list[FigureJob]:
    """Learning curves of the toy, tested after every iteration."""
    every = range(ITERATIONS + 1)
    return learning_jobs("toy", methods, size.toy_runs, ITERATIONS, every, TESTS, chunk=CHUNK)


def collect_returns(size: Size, results: dict[str, Arrays]) -> Arrays:
    """Expected returns `[R, L + 1]` by method."""
    return {method: joined(results, "toy", method).returns for method in SIX + BESIDE}


def _share(data: Arrays, method: str, iteration: int) -> float:
    """Share of the mean gain that has been made by an iteration."""
    mean = data[method].mean(0)
    return float((mean[iteration] - mean[0]) / (mean[-1] - mean[0]))


def _above(data: Arrays, best: str, others: Sequence[str]) -> list[Contrast]:
    end = {method: curves[:, -1] for method, curves in data.items()}
    return above(end, best, others, "expected return after 20 iterations")


def draw_returns(data: Arrays) -> Picture:
    """Expected return over iterations."""
    figure, axes = picture(width=7.6)
    for method, curves in data.items():
        curve(axes[0, 0], range(ITERATIONS + 1), curves, method)
    axes[0, 0].set(xlabel="iteration", ylabel="expected return", xticks=range(0, 21, 5))
    legend(figure, axes[0, 0], sorted(data, key=lambda m: -data[m][:, -1].mean()))
    return figure


# -- Figure 2: the largest weight --


def collect_weights(size: Size, results: dict[str, Arrays]) -> Arrays:
    """Largest importance weights `[R, L]`, and effective sample sizes."""
    runs = {method: joined(results, "toy", method) for method in WEIGHED}
    return {
        **{method: run.max_weight for method, run in runs.items()},
        **{f"{method} ess": run.ess for method, run in runs.items()},
    }


def draw_weights(data: Arrays) -> Picture:
    """Largest weight over iterations, a panel a method as in the paper; below, what it costs."""
    figure, axes = picture(2, 2, width=8, height=5.2)
    for column, method in enumerate(WEIGHED):
        above_, below = axes[:, column]
        x = np.arange(1, ITERATIONS + 1)
        curve(above_, x, data[method], method)
        curve(below, x, data[f"{method} ess"], method)
        below.plot(x, 10 * x, color="0.7", linewidth=1, label="samples")
        above_.set_title(method, loc="left", fontsize=10)
        above_.set_xticks(range(0, 21, 5))
        below.set(xlabel="iteration", xticks=range(0, 21, 5))
    axes[0, 0].set_ylabel("largest weight")
    axes[1, 0].set_ylabel("effective sample size")
    axes[1, 0].legend(frameon=False, fontsize=8)
    return figure


RETURNS_SAID = (
    Said(
        "toy-returns.converges-early",
        "IW-PGPE_OB improves the performance over iterations and converges very fast.",
        lambda data: (
            contrast("gain of iw-pgpe-ob over 20 iterations", gain(data, OURS)),
            converges_early(data[OURS], range(ITERATIONS + 1), OURS),
        ),
        lambda data: (
            f"{CONVERGED} Here {_share(data, OURS, ITERATIONS // 2):.0%} of the mean gain."
        ),
    ),
    Said(
        "toy-returns.niw-stays",
        "The performance of NIW-PGPE is not largely improved over iterations.",
        lambda data: {
            "half the gain of iw-pgpe-ob, minus the gain of niw-pgpe": (
                0.5 * gain(data, OURS) - gain(data, "niw-pgpe")
            )
        },
        "Not largely: less than half of what iw-pgpe-ob gains.",
    ),
    Said(
        "toy-returns.iw-above-niw",
        "IW-PGPE works better than NIW-PGPE.",
        lambda data: _above(data, "iw-pgpe", ["niw-pgpe"]),
    ),
    Said(
        "toy-returns.iw-saturates",
        "... but the performance [of IW-PGPE] is saturated after 9 iterations.",
        lambda data: {
            "a fifth of the gain of iw-pgpe, minus its gain after iteration 9": (
                0.2 * gain(data, "iw-pgpe") - gain(data, "iw-pgpe", start=9)
            )
        },
        lambda data: (
            "Saturated: less than a fifth of the gain comes after iteration 9; "
            f"{1 - _share(data, 'iw-pgpe', 9):.0%} do."
        ),
    ),
    Said(
        "toy-returns.late-advantage",
        "IW-PGPE_OB does not outperform NIW-PGPE_OB that much at the first several iterations, "
        "[but is] more reliable in the latter iterations.",
        lambda gap: {
            "iw-pgpe-ob minus niw-pgpe-ob after 20 iterations": gap[:, -1],
            "that gap after 20 iterations minus after 5": gap[:, -1] - gap[:, 5],
        },
        of=lambda data: data[OURS] - data["niw-pgpe-ob"],
    ),
    Said(
        "toy-returns.above-pgpe-ob",
        "The plain PGPE_OB method works fairly well, but it is still not as good as IW-PGPE_OB.",
        lambda data: (gains_half(data, "pgpe-ob", OURS), *_above(data, OURS, ["pgpe-ob"])),
        "Fairly well: more than half of what iw-pgpe-ob gains.",
    ),
    Said(
        "toy-returns.best",
        "The proposed method can achieve significant performance improvement over alternative "
        "approaches in experiments with an artificial domain.",
        lambda data: _above(data, OURS, OTHERS),
        where="S1, S4.1.4",
    ),
    Said(
        "toy-returns.baseline-over-weights",
        "[The] baseline is possibly the primary factor in improving performance compared with "
        "the importance weighting techniques.",
        lambda data: _above(data, "niw-pgpe-ob", ["iw-pgpe"]),
        "A baseline without weights against weights without a baseline.",
        where="S5",
    ),
)
WEIGHTS_SAID = (
    Said(
        "toy-weights.grow",
        "The maximum value of importance weights tends to be larger over iterations.",
        lambda data: {
            f"slope of log max w of {m}, an iteration": slope(np.log(data[m])) for m in WEIGHED
        },
    ),
)

FIGURES = (
    Figure(
        "toy-weights",
        "Figure 2",
        "The largest importance weight",
        "Average largest importance weight over iterations on the toy, and below it the effective "
        "sample size of the reused samples; mean and standard error over runs.",
        jobs=lambda size: return_jobs(size, WEIGHED),
        collect=collect_weights,
        draw=draw_weights,
        said=WEIGHTS_SAID,
        section="S4.1.2",
    ),
    *paths.FIGURES,
    Figure(
        "toy-returns",
        "Figure 5",
        "Expected returns on the toy",
        "Expected return over iterations, 100 fresh episodes a test; mean and standard error over "
        "runs with common starts.",
        jobs=return_jobs,
        collect=collect_returns,
        draw=draw_returns,
        said=RETURNS_SAID,
        section="S4.1.4",
    ),
)

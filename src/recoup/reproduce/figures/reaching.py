"""Figures 9 and 12: the upper body learns to reach. (Figure 14: `nine`.)"""

from collections.abc import Sequence
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Picture

from recoup.reproduce.claims import Contrast, Said, above, contrast
from recoup.reproduce.drawing import curve, legend, picture
from recoup.reproduce.figure import Figure
from recoup.reproduce.jobs import Arrays, FigureJob
from recoup.reproduce.learning_curves import joined, learning_jobs
from recoup.reproduce.sizes import Size, checkpoints
from recoup.reproduce.speed import AHEAD, BEHIND, after, ahead_early, gain

METHODS = ("iw-reinforce-ob", "niw-pgpe-ob", "pgpe-ob", "iw-pgpe-ob")  # the paper's four
BESIDE = ("tiw-pgpe-ob", "mis-pgpe-ob")
OURS, TRUNCATED = "iw-pgpe-ob", "tiw-pgpe-ob"
OTHERS = [method for method in METHODS if method != OURS]
SHOWN = (20, 50)  # the iterations whose policies the paper shows
CHUNK = 10


def reach_jobs(
    joints: int, size: Size, methods: tuple[str, ...] = METHODS + BESIDE
) -> list[FigureJob]:
    """The runs of every method on the reaching task with so many joints."""
    iterations = size.iterations(joints)
    return learning_jobs(
        f"reach-{joints}",
        methods,
        size.reach_runs,
        iterations,
        checkpoints(iterations, SHOWN),
        size.reach_tests,
        chunk=CHUNK,
    )


def collect_curves(joints: int, size: Size, results: dict[str, Arrays]) -> Arrays:
    """Expected returns `[R, C]`, effective sample sizes and largest weights by method."""
    data: Arrays = {}
    for method in METHODS + BESIDE:
        runs = joined(results, f"reach-{joints}", method)
        data["iterations"] = runs.checkpoints
        data[method] = runs.returns
        data[f"{method} ess"] = runs.ess
        data[f"{method} max weight"] = runs.max_weight
    return data


def at_end(data: Arrays) -> dict[str, np.ndarray]:
    """Expected returns `[R]` at the last test, by method."""
    return {method: data[method][:, -1] for method in METHODS + BESIDE}


def above_at_end(data: Arrays, best: str, others: Sequence[str]) -> list[Contrast]:
    """Contrasts of expected returns at the last test."""
    what = f"expected return after {data['iterations'][-1]} iterations"
    return above(at_end(data), best, others, what)


def reuse(data: Arrays, test: int = -1) -> str:
    """How many samples the weights leave at a test, which may explain a finding."""
    iteration = int(data["iterations"][test])
    parts = [
        f"{m} {data[f'{m} ess'][:, iteration - 1].mean():.1f} and "
        f"{data[f'{m} max weight'][:, iteration - 1].mean():.1f}"
        for m in (OURS, TRUNCATED, "mis-pgpe-ob")
    ]
    return (
        f"Effective sample size (of up to {3 * iteration} samples) and largest weight at iteration "
        f"{iteration}, averaged over runs: {', '.join(parts)}."
    )


def _from_to(data: Arrays, method: str) -> str:
    start, *_, end = data[method].mean(0)
    return f"{method} from {start:.2f} to {end:.2f}"


def _at(data: Arrays, share: float) -> int:
    return after(share, data["iterations"])


def _widens(data: Arrays, other: str) -> Contrast:
    """The contrast of a gap that grows after a third of the iterations."""
    gap, third = data[OURS] - data[other], _at(data, 1 / 3)
    what = f"that gap at the end minus after {data['iterations'][third]} iterations"
    return contrast(what, gap[:, -1] - gap[:, third])


def _from_middle(values: np.ndarray) -> np.ndarray:
    return np.abs(values - np.median(values))


def _standard(values: np.ndarray) -> np.ndarray:
    """Values `[R]` with mean 0 and standard deviation 1; all 0 without any spread."""
    spread = values.std()
    return (values - values.mean()) / (spread if spread > 0 else 1.0)


# -- Figure 12 --


# -- the pictures --


def draw_curves(data: Arrays) -> Picture:
    """Expected return over episodes, and the effective sample size behind it."""
    figure, axes = picture(2, width=11, height=4.2)
    returns, reuse = axes[0]
    for method in METHODS + BESIDE:
        curve(returns, 3 * data["iterations"], data[method], method)
        ess = data[f"{method} ess"]
        curve(reuse, _binned(3 * np.arange(1.0, ess.shape[1] + 1)[None])[0], _binned(ess), method)
    samples = 3 * np.arange(1, data["iterations"][-1] + 1)
    reuse.plot(samples, samples, color="0.7", linewidth=1)
    returns.set(xlabel="episodes", ylabel="expected return")
    reuse.set(xlabel="episodes", ylabel="effective sample size", yscale="log")
    _keep_in_view(returns, data)
    end = at_end(data)
    legend(figure, returns, sorted(end, key=lambda m: -end[m].mean()))
    return figure


def _binned(by_run: np.ndarray, bins: int = 40) -> np.ndarray:
    """Means over about `bins` stretches of iterations `[R, I]`."""
    parts = np.array_split(by_run, min(bins, by_run.shape[1]), axis=1)
    return np.stack([part.mean(1) for part in parts], axis=1)


def _keep_in_view(axes: Axes, data: Arrays) -> None:
    """Leaves a method that lies far below the others out of the picture, and says so."""
    means = {method: data[method].mean(0) for method in METHODS + BESIDE}
    below = means.pop("iw-reinforce-ob")
    low, high = min(m.min() for m in means.values()), max(m.max() for m in means.values())
    if below.min() > low - (high - low):
        return
    axes.set_ylim(low - 0.35 * (high - low), high + 0.1 * (high - low))
    part = "" if below.max() < low - 0.35 * (high - low) else "in part "
    words = f"iw-reinforce-ob, {part}below the picture: from {below[0]:.1f} to {below[-1]:.1f}"
    axes.annotate(words, (0.02, 0.02), xycoords="axes fraction", fontsize=8, color="#8a6508")


TWO_SAID = (
    Said(
        "reach-2.improves",
        "IW-PGPE_OB nicely improves the performance over iterations only with a small number "
        "of on-policy samples.",
        lambda data: {"gain of iw-pgpe-ob": gain(data, OURS)},
    ),
    Said(
        "reach-2.pgpe-ob-slower",
        "The plain PGPE_OB can also improve the performance over iterations, but slowly.",
        lambda data: (
            contrast("gain of pgpe-ob", gain(data, "pgpe-ob")),
            *ahead_early(data, data["iterations"], OURS, ["pgpe-ob"]),
        ),
        BEHIND,
    ),
    Said(
        "reach-2.niw-ob-falls-behind",
        "NIW-PGPE_OB is not as good as IW-PGPE_OB especially at the later iterations.",
        lambda data: (*above_at_end(data, OURS, ["niw-pgpe-ob"]), _widens(data, "niw-pgpe-ob")),
    ),
    Said(
        "reach-2.reinforce-stays",
        "[The random initial mean] makes IW-REINFORCE_OB not able to improve the performance "
        "significantly over iterations.",
        lambda data: {
            "a fifth of the gain of iw-pgpe-ob, minus the gain of iw-reinforce-ob": (
                0.2 * gain(data, OURS) - gain(data, "iw-reinforce-ob")
            )
        },
        lambda data: (
            "Not significantly: less than a fifth of what iw-pgpe-ob gains. "
            f"{_from_to(data, 'iw-reinforce-ob')}, {_from_to(data, OURS)}. A guess: it starts "
            "lower because noise on the actions costs."
        ),
    ),
    Said(
        "reach-2.reinforce-depends-on-start",
        "The REINFORCE method is sensitive to the initial parameter values.",
        lambda data: (
            contrast(
                f"distance of a run's end from the median end, iw-reinforce-ob minus {OURS}",
                _from_middle(data["iw-reinforce-ob"][:, -1]) - _from_middle(data[OURS][:, -1]),
            ),
            contrast(
                "correlation of the end of iw-reinforce-ob with its start",
                _standard(data["iw-reinforce-ob"][:, 0])
                * _standard(data["iw-reinforce-ob"][:, -1]),
                most=1.0,
            ),
        ),
        "Sensitive: from the same starts its runs end farther apart than those of iw-pgpe-ob, and "
        "a better start has a better end. (A run's own luck is part of the first, for both.)",
    ),
)
FOUR_SAID = (
    Said(
        "reach-4.improves-throughout",
        "IW-PGPE_OB achieves fast policy improvement throughout iterations.",
        lambda data: {
            "gain of iw-pgpe-ob in the first half": gain(data, OURS, end=_at(data, 1 / 2)),
            "gain of iw-pgpe-ob in the second half": gain(data, OURS, start=_at(data, 1 / 2)),
        },
        "Throughout: in both halves of the iterations. Fast is the next claim.",
    ),
    Said(
        "reach-4.ahead-early",
        "IW-PGPE_OB achieves fast policy improvement throughout iterations.",
        lambda data: ahead_early(data, data["iterations"], OURS, OTHERS),
        lambda data: f"{AHEAD} {reuse(data, _at(data, 1 / 3))}",
    ),
    Said(
        "reach-4.best",
        "... and the performance is the best among the compared methods.",
        lambda data: above_at_end(data, OURS, OTHERS),
        reuse,
    ),
)

FIGURES = (
    Figure(
        "reach-2",
        "Figure 9",
        "Reaching with two joints",
        "Expected return over episodes, and the effective sample size of what is reused (all "
        "samples count for niw-pgpe-ob, which does not weigh them); mean and standard error over "
        "runs with common starts.",
        jobs=partial(reach_jobs, 2),
        collect=partial(collect_curves, 2),
        draw=draw_curves,
        said=TWO_SAID,
        section="S4.3.2",
    ),
    Figure(
        "reach-4",
        "Figure 12",
        "Reaching with four joints",
        "As with two joints; the target is out of the arm's own reach.",
        jobs=partial(reach_jobs, 4),
        collect=partial(collect_curves, 4),
        draw=draw_curves,
        said=FOUR_SAID,
        section="S4.3.3",
    ),
)

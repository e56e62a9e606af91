"""Figures 9, 12 and 14: the upper body learns to reach."""

from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Picture

from recoup.reproduce.claims import Claim, above, contrast
from recoup.reproduce.drawing import curve, legend, picture
from recoup.reproduce.figure import Figure
from recoup.reproduce.jobs import Arrays, Job
from recoup.reproduce.learning import joined, learning_jobs
from recoup.reproduce.sizes import Size, checkpoints

METHODS = ("iw-reinforce-ob", "niw-pgpe-ob", "pgpe-ob", "iw-pgpe-ob")  # the paper's four
BESIDE = ("tiw-pgpe-ob", "mis-pgpe-ob")
OURS, TRUNCATED = "iw-pgpe-ob", "tiw-pgpe-ob"
SHOWN = (20, 50)  # the iterations whose policies the paper shows
CHUNK = 10


def reach_jobs(joints: int, size: Size, methods: tuple[str, ...] = METHODS + BESIDE) -> list[Job]:
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


def _at_end(data: Arrays) -> dict[str, np.ndarray]:
    return {method: data[method][:, -1] for method in METHODS + BESIDE if method in data}


def _budget(data: Arrays) -> str:
    return f"expected return after {data['iterations'][-1]} iterations"


def _reuse(data: Arrays) -> str:
    """What explains most of the findings: how many samples the weights leave."""
    samples = 3 * data[f"{OURS} ess"].shape[1]
    parts = [
        f"{method} {data[f'{method} ess'].mean():.1f} and {data[f'{method} max weight'].mean():.1f}"
        for method in (OURS, TRUNCATED, "mis-pgpe-ob")
    ]
    return (
        f"Effective sample size (of up to {samples} samples) and largest weight, averaged over all "
        f"iterations and runs: {', '.join(parts)}."
    )


def _from_to(data: Arrays, method: str) -> str:
    start, *_, end = data[method].mean(0)
    return f"{method} from {start:.2f} to {end:.2f}"


def _gain(data: Arrays, method: str) -> np.ndarray:
    return data[method][:, -1] - data[method][:, 0]


# -- Figure 9 --


def two_claims(data: Arrays) -> list[Claim]:
    """What the paper says of Figure 9."""
    said = (_ours_improves, _pgpe_ob_is_slower, _niw_ob_falls_behind, _reinforce_stays)
    return [claim(data) for claim in said]


def _ours_improves(data: Arrays) -> Claim:
    return Claim(
        "reach-2.improves",
        "S4.3.2",
        "IW-PGPE_OB nicely improves the performance over iterations only with a small number "
        "of on-policy samples.",
        (contrast("gain of iw-pgpe-ob", _gain(data, OURS)),),
    )


def _pgpe_ob_is_slower(data: Arrays) -> Claim:
    return Claim(
        "reach-2.pgpe-ob-slower",
        "S4.3.2",
        "The plain PGPE_OB can also improve the performance over iterations, but slowly.",
        (
            contrast("gain of pgpe-ob", _gain(data, "pgpe-ob")),
            *above(_at_end(data), OURS, ["pgpe-ob"], _budget(data)),
        ),
    )


def _niw_ob_falls_behind(data: Arrays) -> Claim:
    gap, third = data[OURS] - data["niw-pgpe-ob"], len(data["iterations"]) // 3
    return Claim(
        "reach-2.niw-ob-falls-behind",
        "S4.3.2",
        "NIW-PGPE_OB is not as good as IW-PGPE_OB especially at the later iterations.",
        (
            *above(_at_end(data), OURS, ["niw-pgpe-ob"], _budget(data)),
            contrast("that gap at the end minus after a third", gap[:, -1] - gap[:, third]),
        ),
    )


def _reinforce_stays(data: Arrays) -> Claim:
    return Claim(
        "reach-2.reinforce-stays",
        "S4.3.2",
        "... makes IW-REINFORCE_OB not able to improve the performance significantly over "
        "iterations.",
        (
            contrast(
                "a fifth of the gain of iw-pgpe-ob, minus the gain of iw-reinforce-ob",
                0.2 * _gain(data, OURS) - _gain(data, "iw-reinforce-ob"),
            ),
        ),
        "Not significantly: less than a fifth of what iw-pgpe-ob gains. It starts lower, since "
        f"noise on its actions costs: {_from_to(data, 'iw-reinforce-ob')}, "
        f"{_from_to(data, OURS)}.",
    )


# -- Figure 12 --


def four_claims(data: Arrays) -> list[Claim]:
    """What the paper says of Figure 12."""
    others = [m for m in METHODS if m != OURS]
    half = data[OURS][:, len(data["iterations"]) // 2]
    early = {m: data[m][:, len(data["iterations"]) // 3] for m in METHODS}
    return [
        Claim(
            "reach-4.improves",
            "S4.3.3",
            "IW-PGPE_OB achieves fast policy improvement throughout iterations.",
            (
                contrast("gain of iw-pgpe-ob in the first half", half - data[OURS][:, 0]),
                contrast("gain of iw-pgpe-ob in the second half", data[OURS][:, -1] - half),
                *above(early, OURS, others, "expected return after a third of the budget"),
            ),
            "Fast: ahead of the others after a third of the budget. " + _reuse(data),
        ),
        Claim(
            "reach-4.best",
            "S4.3.3",
            "... and the performance is the best among the compared methods.",
            tuple(above(_at_end(data), OURS, others, _budget(data))),
            _reuse(data),
        ),
    ]


# -- Figure 14 --


def collect_nine(size: Size, results: dict[str, Arrays]) -> Arrays:
    """Figure 14, and of the smaller tasks what it is compared with."""
    data = collect_curves(9, size, results)
    for joints in (2, 4, 9):
        runs = joined(results, f"reach-{joints}", OURS)
        data[f"{joints} joints"] = runs.returns[:, -1]
        data[f"{joints} joints max weight"] = runs.max_weight
    return data


def nine_claims(data: Arrays) -> list[Claim]:
    """What the paper says of Figure 14, and of all three tasks together."""
    said = (_truncated_is_best, _ours_degrades, _weights_grow, _returns_fall)
    return [claim(data) for claim in said]


def _truncated_is_best(data: Arrays) -> Claim:
    return Claim(
        "reach-9.truncated-best",
        "S1, S4.3.4, S5",
        "The performance of Truncated IW-PGPE_OB is the best, which implies that the "
        "truncation of importance weights is helpful when applying our proposed method to "
        "high-dimensional problems.",
        tuple(above(_at_end(data), TRUNCATED, METHODS, _budget(data))),
        _reuse(data),
    )


def _ours_degrades(data: Arrays) -> Claim:
    return Claim(
        "reach-9.degrades",
        "S4.3.4",
        "Just like other importance weight-based methods, the performance [of IW-PGPE_OB] "
        "degrades in high-dimensional problems without the use of additional correction "
        "techniques such as weight truncation.",
        tuple(above(_at_end(data), "pgpe-ob", [OURS], _budget(data))),
        "Degrades: falls below the same method without reuse.",
    )


def _weights_grow(data: Arrays) -> Claim:
    shared = data["2 joints max weight"].shape[1]  # iterations that all three have
    weight = {j: np.log(data[f"{j} joints max weight"][:, :shared]).mean(-1) for j in (2, 4, 9)}
    return Claim(
        "reach-9.weights-grow",
        "S4.3.4",
        "[More degrees of freedom] may grow the values of importance weights exponentially.",
        (
            contrast("mean log of the largest weight, 4 joints minus 2", weight[4] - weight[2]),
            contrast("9 joints minus 4", weight[9] - weight[4]),
        ),
        f"Of iw-pgpe-ob, over the first {shared} iterations of each task. A step has one "
        "length in all dimensions, so the more there are, the less each moves.",
    )


def _returns_fall(data: Arrays) -> Claim:
    two, four, nine = (data[f"{joints} joints"] for joints in (2, 4, 9))
    return Claim(
        "reach-9.returns-fall",
        "S4.3.4",
        "The returns tend to be lower as the dimension is increased, even though we run the "
        "higher-dimensional experiment for a larger number of iterations.",
        (
            contrast("iw-pgpe-ob, 2 joints minus 4", two - four),
            contrast("iw-pgpe-ob, 4 joints minus 9", four - nine),
        ),
    )


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
    end = _at_end(data)
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
        claims=two_claims,
        draw=draw_curves,
    ),
    Figure(
        "reach-4",
        "Figure 12",
        "Reaching with four joints",
        "As with two joints; the target is out of the arm's own reach.",
        jobs=partial(reach_jobs, 4),
        collect=partial(collect_curves, 4),
        claims=four_claims,
        draw=draw_curves,
    ),
    Figure(
        "reach-9",
        "Figure 14",
        "Reaching with all nine joints",
        "As with four joints, and the same target.",
        jobs=lambda size: [
            *reach_jobs(9, size),
            *reach_jobs(2, size, (OURS,)),
            *reach_jobs(4, size, (OURS,)),
        ],
        collect=collect_nine,
        claims=nine_claims,
        draw=draw_curves,
    ),
)

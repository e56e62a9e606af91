"""Figure 14: reaching with all nine joints, and what the three reaching tasks say together."""

import jax
import numpy as np

from recoup.reproduce.claims import Said
from recoup.reproduce.figure import Figure
from recoup.reproduce.figures.reaching import (
    CHUNK,
    METHODS,
    OURS,
    TRUNCATED,
    above_at_end,
    collect_curves,
    draw_curves,
    reach_jobs,
    reuse,
)
from recoup.reproduce.jobs import Arrays, FigureJob
from recoup.reproduce.learning_curves import joined, learning_jobs
from recoup.reproduce.sizes import Size
from recoup.reproduce.speed import gain

LONGER = 1.5  # as many iterations as the paper's, to see what more of them would do
EPISODES, HORIZON, DISCOUNT = 20, 100, 0.9  # of each final policy, where energy is measured
TARGETS = "With two joints the target is another, so that this is not compared: "


def longer(size: Size) -> int:
    """Iterations of the runs that go on."""
    return int(LONGER * size.iterations(9))


def nine_jobs(size: Size) -> list[FigureJob]:
    """All methods with nine joints, ours with fewer, and ours with more iterations."""
    last = longer(size)
    on = learning_jobs(
        "reach-9",
        (OURS,),
        size.reach_runs,
        last,
        [0, size.iterations(9), last],
        size.reach_tests,
        chunk=CHUNK,
        longer=last,
    )
    few = (job for joints in (2, 4) for job in reach_jobs(joints, size, (OURS,)))
    return [*reach_jobs(9, size), *few, *on]


def collect_nine(size: Size, results: dict[str, Arrays]) -> Arrays:
    """Figure 14, and of the smaller tasks what it is compared with."""
    data = collect_curves(9, size, results)
    for joints in (2, 4, 9):
        runs = joined(results, f"reach-{joints}", OURS)
        data[f"{joints} joints"] = runs.returns[:, -1]
        data[f"{joints} joints max weight"] = runs.max_weight
        for name, values in _spent(joints, runs.mean[:, -1]).items():
            data[f"{joints} joints {name}"] = values
    on = joined(results, "reach-9", OURS, longer=longer(size))
    data["longer iterations"], data["longer"] = on.checkpoints, on.returns
    return data


def _spent(joints: int, policies: np.ndarray) -> Arrays:
    """What mean policies `[R, D]` spend: cost a step, and the parts of their returns `[R]`."""
    from recoup.tasks.reach import rules
    from recoup.tasks.reach.reach_task import trace

    task, keys = rules.reach(joints), jax.random.split(jax.random.key(0), EPISODES)
    discounts = DISCOUNT ** np.arange(HORIZON)
    found: dict[str, list[float]] = {"energy": [], "gained": [], "paid": []}
    for theta in policies:
        went = trace(task, HORIZON, keys, theta)
        free = rules.reward(np, task, went.distance, np.zeros_like(went.cost))
        paid = free - rules.reward(np, task, went.distance, went.cost)
        found["energy"].append(went.cost.mean())
        found["gained"].append((free @ discounts).mean())
        found["paid"].append((paid @ discounts).mean())
    return {name: np.array(values) for name, values in found.items()}


def _shared(data: Arrays) -> int:
    """Iterations that all three tasks have."""
    return data["2 joints max weight"].shape[1]


def _weight(data: Arrays, joints: int) -> np.ndarray:
    """The mean log of the largest weight over those iterations `[R]`."""
    return np.log(data[f"{joints} joints max weight"][:, : _shared(data)]).mean(-1)


SAID = (
    Said(
        "reach-9.truncated-best",
        "The performance of Truncated IW-PGPE_OB is the best, which implies that the "
        "truncation of importance weights is helpful when applying our proposed method to "
        "high-dimensional problems.",
        lambda data: above_at_end(data, TRUNCATED, METHODS),
        reuse,
        where="S1, S4.3.4, S5",
    ),
    Said(
        "reach-9.degrades",
        "Just like other importance weight-based methods, the performance [of IW-PGPE_OB] "
        "degrades in high-dimensional problems without the use of additional correction "
        "techniques such as weight truncation.",
        lambda data: above_at_end(data, "pgpe-ob", [OURS]),
        "Degrades: falls below the same method without reuse.",
    ),
    Said(
        "reach-9.weights-grow",
        "[More degrees of freedom] may grow the values of importance weights exponentially.",
        lambda data: {
            "mean log of the largest weight, 4 joints minus 2": _weight(data, 4) - _weight(data, 2),
            "9 joints minus 4": _weight(data, 9) - _weight(data, 4),
        },
        lambda data: (
            f"Of iw-pgpe-ob, over the first {_shared(data)} iterations of each task. A guess: a "
            "step has one length in all dimensions, so the more there are, the less each moves."
        ),
    ),
    Said(
        "reach-9.returns-fall",
        "The returns tend to be lower as the dimension is increased, even though we run the "
        "higher-dimensional experiment for a larger number of iterations.",
        lambda data: {
            "iw-pgpe-ob at the end, 4 joints minus 9": data["4 joints"] - data["9 joints"]
        },
        lambda data: f"At equal targets: 4 joints and 9. {TARGETS}{data['2 joints'].mean():.2f}.",
    ),
    Said(
        "reach-9.more-iterations-still-less",
        "If we continue the experiment for more iterations, the returns may slightly increase, "
        "but are still less than the returns in the low-dimensional experiments.",
        lambda data: {
            f"iw-pgpe-ob, 4 joints at their end minus 9 after {data['longer iterations'][2]} "
            "iterations": data["4 joints"] - data["longer"][:, 2]
        },
        lambda data: (
            "From iteration {1} to {2} ".format(*data["longer iterations"])
            + f"they change by {gain(data, 'longer', 1).mean():.2f}; that they may increase is not "
            "judged. At equal targets."
        ),
    ),
    Said(
        "reach-9.more-joints-more-energy",
        "The more joints the robot uses, the larger energy will be consumed.",
        lambda energy: {"control cost a step, (N m)^2, 9 joints minus 4": energy[9] - energy[4]},
        lambda energy: (
            f"Of the final mean policies of iw-pgpe-ob, at equal targets: {energy[4].mean():.1f} "
            f"with 4 joints, {energy[9].mean():.1f} with 9. {TARGETS}{energy[2].mean():.1f}."
        ),
        lambda data: {joints: data[f"{joints} joints energy"] for joints in (2, 4, 9)},
    ),
    Said(
        "reach-9.energy-lowers-returns",
        "[The returns are lower] because the more joints the robot uses, the larger energy will "
        "be consumed.",
        lambda more: {
            "what 9 joints pay more for control than 4, in return": more["paid"],
            "that, minus what 4 joints gain more by being nearer": more["paid"] - more["nearer"],
        },
        lambda more: (
            "Because: of the difference in return, the larger part is the control cost, not the "
            f"distance. Of the final mean policies: {more['paid'].mean():.2f} and "
            f"{more['nearer'].mean():.2f}."
        ),
        lambda data: {
            "paid": data["9 joints paid"] - data["4 joints paid"],
            "nearer": data["4 joints gained"] - data["9 joints gained"],
        },
    ),
)

FIGURES = (
    Figure(
        "reach-9",
        "Figure 14",
        "Reaching with all nine joints",
        "As with four joints, and the same target.",
        jobs=nine_jobs,
        collect=collect_nine,
        draw=draw_curves,
        said=SAID,
        section="S4.3.4",
    ),
)

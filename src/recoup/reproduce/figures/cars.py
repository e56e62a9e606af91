"""Figures 6 and 7: the mountain car, with both bounds on its force."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure as Picture

from recoup.reproduce.claims import Contrast, Said, above, contrast
from recoup.reproduce.drawing import curve, legend, picture
from recoup.reproduce.figure import Figure
from recoup.reproduce.figures.causes import SAID, cause_jobs, collect_causes
from recoup.reproduce.jobs import Arrays, FigureJob
from recoup.reproduce.learning_curves import joined, learning_jobs
from recoup.reproduce.sizes import Size
from recoup.reproduce.speed import AHEAD, BEHIND, after, ahead_early, gain, gains_half
from recoup.tasks.registry import make_env

TASKS = ("mountain-car", "mountain-car-weak")
PGPE = ("pgpe-ob", "niw-pgpe-ob", "iw-pgpe", "iw-pgpe-ob")
POLICY_GRADIENTS = ("iw-reinforce-ob", "tiw-enac")
ACTIONS = (*POLICY_GRADIENTS, "r3")
BESIDE = ("tiw-pgpe-ob", "mis-pgpe-ob")
METHODS = PGPE + ACTIONS + BESIDE
OURS = "iw-pgpe-ob"
OTHERS = [method for method in PGPE + ACTIONS if method != OURS]
BATCH, ITERATIONS, TESTS, CHUNK = 10, 30, 100, 100
EVERY = range(ITERATIONS + 1)  # the iterations that are tested
RANGE = 24.3  # from never reaching the goal, -17.4, to the best policies, 6.8
LITTLE = 0.01 * RANGE
NEVER = -17.2  # an expected return below it: never reaching the goal


def jobs(size: Size) -> list[FigureJob]:
    """Learning curves on both cars, tested after every iteration; and two supposed causes."""
    return [
        *(
            job
            for task in TASKS
            for job in learning_jobs(
                task, METHODS, size.car_runs, ITERATIONS, EVERY, TESTS, chunk=CHUNK
            )
        ),
        *cause_jobs(size.trials, size.starts),
    ]


def collect(size: Size, results: dict[str, Arrays]) -> Arrays:
    """Expected returns `[R, L + 1]` and effective sample sizes by task and method."""
    data: Arrays = collect_causes(results)
    for task in TASKS:
        for method in METHODS:
            runs = joined(results, task, method)
            data[f"{task} {method}"] = runs.returns
            data[f"{task} {method} ess"] = runs.ess
    return data


class Car(NamedTuple):
    """What was measured on one of the cars, by method."""

    task: str
    curves: dict[str, np.ndarray]  # expected returns [R, L + 1]
    ess: dict[str, np.ndarray]  # effective sample sizes [R, L]

    def stuck(self, method: str, iteration: int = ITERATIONS) -> np.ndarray:
        """Which runs do not reach the goal at an iteration `[R]`."""
        return self.curves[method][:, iteration] < NEVER

    def above(self, method: str, others: Sequence[str]) -> list[Contrast]:
        """Contrasts of expected returns at the end."""
        returns = {name: curves[:, -1] for name, curves in self.curves.items()}
        return above(
            returns, method, others, f"expected return after {BATCH * ITERATIONS} episodes"
        )

    def falling(self, method: str) -> np.ndarray:
        """Of all that a run's return moves from test to test, the share downwards `[R]`.

        A run that never moves counts as 1/2, as one that gets nowhere by ups and downs.
        """
        steps = np.diff(self.curves[method], axis=1)
        falls, moves = (-np.minimum(steps, 0)).sum(1), np.abs(steps).sum(1)
        return np.divide(falls, moves, out=np.full(len(steps), 0.5), where=moves > 0)


def _car(task: str, data: Arrays) -> Car:
    curves = {method: data[f"{task} {method}"] for method in METHODS}
    return Car(task, curves, {method: data[f"{task} {method} ess"] for method in METHODS})


def _reuse(car: Car, iteration: int = ITERATIONS) -> str:
    """How many samples the weights leave at an iteration, and how many runs go nowhere."""
    ess = {m: car.ess[m][:, iteration - 1].mean() for m in (OURS, "mis-pgpe-ob")}
    return (
        f"Measured at iteration {iteration}: of its {BATCH * iteration} samples {ess[OURS]:.0f} "
        f"count (the effective sample size), against {ess['mis-pgpe-ob']:.0f} for mis-pgpe-ob; "
        f"{car.stuck(OURS, iteration).mean():.0%} of its runs do not reach the goal, "
        f"{car.stuck('niw-pgpe-ob', iteration).mean():.0%} of those of niw-pgpe-ob."
    )


def draw(data: Arrays) -> Picture:
    """The car, and expected return over episodes for both force settings."""
    figure, axes = picture(3, width=13.5, height=4.4)
    env = make_env("mountain-car", "rgb_array")
    env.reset(seed=0)
    axes[0, 0].imshow(env.render())
    env.close()
    axes[0, 0].set_axis_off()
    axes[0, 0].set_title("the task", loc="left", fontsize=10)
    labels = ("force unbounded, as printed", "force held to ±0.3")
    for ax, task, label in zip(axes[0, 1:], TASKS, labels, strict=True):
        for method in METHODS:
            curve(ax, BATCH * np.arange(ITERATIONS + 1), data[f"{task} {method}"], method)
        ax.set(xlabel="episodes", ylabel="expected return")
        ax.set_title(label, loc="left", fontsize=10)
    ends = {m: -data[f"mountain-car {m}"][:, -1].mean() for m in METHODS}
    legend(figure, axes[0, 1], sorted(METHODS, key=lambda m: ends[m]))
    return figure


def _ends_stuck(car: Car) -> str:
    """Which shares of runs end without reaching the goal, and began so."""
    stuck = {m: (car.stuck(m), car.stuck(m, 0)) for m in (*POLICY_GRADIENTS, "iw-pgpe")}
    return ", ".join(
        f"{100 * ends.mean():.0f} % of {m} ({100 * (ends & began).mean():.0f} % did not at the "
        "start either)"
        for m, (ends, began) in stuck.items()
    )


CAR = (
    Said(
        "best",
        "IW-PGPE_OB achieves superior performance improvement than all other methods.",
        lambda car: car.above(OURS, OTHERS),
        _reuse,
    ),
    Said(
        "ahead-early",
        "IW-PGPE_OB improves the performance very fast over policy-update iterations.",
        lambda car: ahead_early(car.curves, EVERY, OURS, OTHERS),
        lambda car: f"{AHEAD} {_reuse(car, after(1 / 3, EVERY))}",
    ),
    Said(
        "smooth",
        "Thanks to the low variance, IW-PGPE_OB achieves smooth and fast policy improvement "
        "throughout iterations.",
        lambda falling: {
            f"share of all moves that go down, {other} minus {OURS}": falling[other] - falling[OURS]
            for other in PGPE
            if other != OURS
        },
        lambda falling: (
            "Smooth: of all that a run's return moves from test to test, less goes down than under "
            "the other PGPE methods (a run that never moves counts as a half). Here: "
            + ", ".join(f"{method} {share.mean():.0%}" for method, share in falling.items())
            + ". Fast is the claim before."
        ),
        lambda car: {method: car.falling(method) for method in PGPE},
    ),
    Said(
        "iw-improves",
        "IW-PGPE can also improve the performance over iterations well.",
        lambda car: [gains_half(car.curves, "iw-pgpe", OURS)],
        lambda car: (
            "Well: more than half of what iw-pgpe-ob gains. "
            f"{car.stuck('iw-pgpe').mean():.0%} of the runs of iw-pgpe end without reaching the "
            f"goal, {car.stuck(OURS).mean():.0%} of those of {OURS}."
        ),
    ),
    Said(
        "iw-below-iw-ob",
        "However, it is outperformed by the proposed IW-PGPE_OB.",
        lambda car: car.above(OURS, ["iw-pgpe"]),
    ),
    Said(
        "niw-ob-fair",
        "NIW-PGPE_OB performs fairly well.",
        lambda car: [gains_half(car.curves, "niw-pgpe-ob", OURS)],
        "Fairly well: more than half of what iw-pgpe-ob gains.",
    ),
    Said(
        "pgpe-ob-improves",
        "The plain PGPE_OB can improve the performance throughout the iterations.",
        lambda car: {
            "gain of pgpe-ob in iterations 1 to 15": gain(car.curves, "pgpe-ob", 0, 15),
            "gain of pgpe-ob in iterations 16 to 30": gain(car.curves, "pgpe-ob", 15, 30),
        },
    ),
    Said(
        "others-improve",
        "Other data-reuse methods can improve the performance over iterations, but slowly.",
        lambda car: (
            *(contrast(f"gain of {m}", gain(car.curves, m)) for m in POLICY_GRADIENTS),
            *ahead_early(car.curves, EVERY, OURS, POLICY_GRADIENTS),
        ),
        BEHIND,
    ),
    Said(
        "others-below-pgpe",
        "... and they are outperformed by the compared PGPE methods.",
        lambda car: tuple(
            found for method in PGPE for found in car.above(method, POLICY_GRADIENTS)
        ),
        lambda car: (
            f"Runs that end without reaching the goal: {_ends_stuck(car)}. A guess: where no "
            "episode reaches it, all returns are equal, and noise on the actions finds no way out."
        ),
    ),
    Said(
        "reinforce-above-enac",
        "IW-REINFORCE_OB outperforms TIW-eNAC.",
        lambda car: car.above("iw-reinforce-ob", ["tiw-enac"]),
    ),
    Said(
        "r3-stays",
        "R^3 can not improve the performance over iterations.",
        lambda car: {f"{LITTLE:.2f} minus the gain of r3": LITTLE - gain(car.curves, "r3")},
        lambda car: (
            "Not: by less than 1 % of the range of returns. It goes from "
            f"{car.curves['r3'][:, 0].mean():.2f} to {car.curves['r3'][:, -1].mean():.2f}; "
            f"{car.stuck('r3').mean():.0%} of its runs do not reach the goal."
        ),
    ),
    Said(
        "baseline-over-weights",
        "[The] baseline is possibly the primary factor in improving performance compared with "
        "the importance weighting techniques.",
        lambda car: car.above("niw-pgpe-ob", ["iw-pgpe"]),
        "A baseline without weights against weights without a baseline.",
        where="S5",
    ),
)


def _on(task: str, row: Said) -> Said:
    """A row of `CAR`, measured on one of the cars."""
    return row._replace(id=f"{task}.{row.id}", of=lambda data: row.of(_car(task, data)))


FIGURES = (
    Figure(
        "mountain-car",
        "Figures 6 and 7",
        "The mountain car",
        "The car, and expected return over episodes, 100 fresh episodes a test; mean and standard "
        "error over runs with common starts. The paper gives no bound on the force, yet says that "
        "it is too weak to climb directly: both readings.",
        jobs=jobs,
        collect=collect,
        draw=draw,
        said=(*(_on(task, row) for task in TASKS for row in CAR), *SAID),
        section="S4.2",
    ),
)

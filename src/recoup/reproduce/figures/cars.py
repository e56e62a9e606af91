"""Figures 6 and 7: the mountain car, with both bounds on its force."""

import numpy as np
from matplotlib.figure import Figure as Picture

from recoup.reproduce.claims import Claim, above, contrast
from recoup.reproduce.drawing import curve, legend, picture
from recoup.reproduce.figure import Figure
from recoup.reproduce.jobs import Arrays, Job
from recoup.reproduce.learning import joined, learning_jobs
from recoup.reproduce.sizes import Size
from recoup.tasks.registry import make_env

TASKS = ("mountain-car", "mountain-car-weak")
PGPE = ("pgpe-ob", "niw-pgpe-ob", "iw-pgpe", "iw-pgpe-ob")
ACTIONS = ("iw-reinforce-ob", "tiw-enac", "r3")
BESIDE = ("tiw-pgpe-ob", "mis-pgpe-ob")
METHODS = PGPE + ACTIONS + BESIDE
ITERATIONS, TESTS, CHUNK = 30, 100, 100
RANGE = 24.3  # from never reaching the goal, -17.4, to the best policies, 6.8


def jobs(size: Size) -> list[Job]:
    """Learning curves on both cars, tested after every iteration."""
    every = range(ITERATIONS + 1)
    return [
        job
        for task in TASKS
        for job in learning_jobs(
            task, METHODS, size.car_runs, ITERATIONS, every, TESTS, chunk=CHUNK
        )
    ]


def collect(size: Size, results: dict[str, Arrays]) -> Arrays:
    """Expected returns `[R, L + 1]` and effective sample sizes by task and method."""
    data: Arrays = {}
    for task in TASKS:
        for method in METHODS:
            runs = joined(results, task, method)
            data[f"{task} {method}"] = runs.returns
            data[f"{task} {method} ess"] = runs.ess
    return data


def claims(data: Arrays) -> list[Claim]:
    """What the paper says of Figure 7, for each bound on the force."""
    return [claim for task in TASKS for claim in _claims(task, data)]


def _claims(task: str, data: Arrays) -> list[Claim]:
    curves = {method: data[f"{task} {method}"] for method in METHODS}
    end = {method: values[:, -1] for method, values in curves.items()}
    early = {method: values[:, 10] for method, values in curves.items()}
    gain = {method: values[:, -1] - values[:, 0] for method, values in curves.items()}
    best, at_end = "iw-pgpe-ob", "expected return after 300 episodes"
    others = [m for m in PGPE + ACTIONS if m != best]
    ess = data[f"{task} {best} ess"][:, -1]
    reuse = (
        f"Of its 300 samples, {ess.mean():.0f} count at the end (the effective sample size), "
        f"against {data[f'{task} mis-pgpe-ob ess'][:, -1].mean():.0f} for mis-pgpe-ob; "
        f"{np.mean(end[best] < -17.2):.0%} of its runs end without reaching the goal, "
        f"{np.mean(end['niw-pgpe-ob'] < -17.2):.0%} of those of niw-pgpe-ob."
    )
    stuck = {m: float(np.mean(end[m] < -17.2)) for m in METHODS}
    return [
        Claim(
            f"{task}.best",
            "S4.2",
            "IW-PGPE_OB achieves superior performance improvement than all other methods.",
            tuple(above(end, best, others, at_end)),
            reuse,
        ),
        Claim(
            f"{task}.fast",
            "S4.2",
            "IW-PGPE_OB improves the performance very fast over policy-update iterations.",
            tuple(above(early, best, others, "expected return after 100 episodes")),
            f"Fast: ahead of the others after a third of the budget. {reuse}",
        ),
        Claim(
            f"{task}.iw-improves",
            "S4.2",
            "IW-PGPE can also improve the performance over iterations well.",
            (
                contrast(
                    "gain of iw-pgpe minus half the gain of iw-pgpe-ob",
                    gain["iw-pgpe"] - 0.5 * gain[best],
                ),
            ),
            f"Well: more than half of what iw-pgpe-ob gains. {stuck['iw-pgpe']:.0%} of the runs of "
            f"iw-pgpe end without reaching the goal, {stuck[best]:.0%} of those of {best}.",
        ),
        Claim(
            f"{task}.iw-below-iw-ob",
            "S4.2",
            "However, it is outperformed by the proposed IW-PGPE_OB.",
            tuple(above(end, best, ["iw-pgpe"], at_end)),
        ),
        Claim(
            f"{task}.niw-ob-fair",
            "S4.2",
            "NIW-PGPE_OB performs fairly well.",
            (
                contrast(
                    "gain of niw-pgpe-ob minus half the gain of iw-pgpe-ob",
                    gain["niw-pgpe-ob"] - 0.5 * gain[best],
                ),
            ),
            "Fairly well: more than half of what iw-pgpe-ob gains.",
        ),
        Claim(
            f"{task}.pgpe-ob-improves",
            "S4.2",
            "The plain PGPE_OB can improve the performance throughout the iterations.",
            (
                contrast(
                    "gain of pgpe-ob in iterations 1 to 15",
                    curves["pgpe-ob"][:, 15] - curves["pgpe-ob"][:, 0],
                ),
                contrast(
                    "gain of pgpe-ob in iterations 16 to 30",
                    curves["pgpe-ob"][:, -1] - curves["pgpe-ob"][:, 15],
                ),
            ),
        ),
        Claim(
            f"{task}.others-improve",
            "S4.2",
            "Other data-reuse methods can improve the performance over iterations, but slowly.",
            (
                *(contrast(f"gain of {m}", gain[m]) for m in ("iw-reinforce-ob", "tiw-enac")),
                *(
                    contrast(f"gain of {best} minus gain of {m}", gain[best] - gain[m])
                    for m in ("iw-reinforce-ob", "tiw-enac")
                ),
            ),
        ),
        Claim(
            f"{task}.others-below-pgpe",
            "S4.2",
            "... and they are outperformed by the compared PGPE methods.",
            tuple(c for m in PGPE for c in above(end, m, ["iw-reinforce-ob", "tiw-enac"], at_end)),
            "Runs that explore in action space are solved or stuck: where the first episodes never "
            "reach the goal, all returns are equal and nothing can be learned. Stuck at the end: "
            f"{stuck['iw-reinforce-ob']:.0%} of iw-reinforce-ob, {stuck['tiw-enac']:.0%} of "
            f"tiw-enac, {stuck['iw-pgpe']:.0%} of iw-pgpe.",
        ),
        Claim(
            f"{task}.reinforce-above-enac",
            "S4.2",
            "IW-REINFORCE_OB outperforms TIW-eNAC.",
            tuple(above(end, "iw-reinforce-ob", ["tiw-enac"], at_end)),
        ),
        Claim(
            f"{task}.r3-stays",
            "S4.2",
            "R^3 can not improve the performance over iterations.",
            (contrast(f"{0.01 * RANGE:.2f} minus the gain of r3", 0.01 * RANGE - gain["r3"]),),
            "Not: by less than 1 % of the range of returns. It goes from "
            f"{curves['r3'][:, 0].mean():.2f} to {end['r3'].mean():.2f}; "
            f"{stuck['r3']:.0%} of its runs do not reach the goal.",
        ),
        Claim(
            f"{task}.baseline-over-weights",
            "S5",
            "[The] baseline is possibly the primary factor in improving performance compared with "
            "the importance weighting techniques.",
            tuple(above(end, "niw-pgpe-ob", ["iw-pgpe"], at_end)),
            "A baseline without weights against weights without a baseline.",
        ),
    ]


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
            curve(ax, 10 * np.arange(ITERATIONS + 1), data[f"{task} {method}"], method)
        ax.set(xlabel="episodes", ylabel="expected return")
        ax.set_title(label, loc="left", fontsize=10)
    ends = {m: -data[f"mountain-car {m}"][:, -1].mean() for m in METHODS}
    legend(figure, axes[0, 1], sorted(METHODS, key=lambda m: ends[m]))
    return figure


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
        claims=claims,
        draw=draw,
    ),
)

"""Figure 10: what the hand does, and what it costs, along an episode. (Films: `strips`.)"""

from functools import partial

import jax
import numpy as np
from matplotlib.figure import Figure as Picture

from recoup.reproduce.claims import Said
from recoup.reproduce.drawing import legend, picture
from recoup.reproduce.figure import Figure
from recoup.reproduce.figures.reaching import OURS, SHOWN, reach_jobs
from recoup.reproduce.jobs import Arrays
from recoup.reproduce.learning_curves import joined
from recoup.reproduce.sizes import Size

EPISODES = 20  # of each policy, where distances are measured
ARRIVED = 0.05  # m: the hand, a ball of that radius, touches the target
SHORT = 10  # steps within which the hand should arrive
REACH = 5  # steps over which the cost should fall
NEARING = 20  # steps over which distances are averaged
SHOULDER, ELBOW = "r_sh_pitch", "r_el_pitch"


def traced(joints: int, size: Size, results: dict[str, Arrays]) -> Arrays:
    """Distances and costs `[policy, R, T]` of the mean policies after 0, 20, 50 iterations."""
    from recoup.tasks.reach import rules
    from recoup.tasks.reach.batch_engine import engine_of
    from recoup.tasks.reach.body import JOINTS
    from recoup.tasks.reach.reach_task import trace

    task, runs = rules.reach(joints), joined(results, f"reach-{joints}", OURS)
    keys = jax.random.split(jax.random.key(0), EPISODES)
    shown = [0, *SHOWN] if joints == 2 else [0, *SHOWN, int(runs.checkpoints[-1])]
    servos = engine_of(task).servos
    distance, cost, torque, angle = [], [], [], []
    for iteration in shown:
        column = int(np.flatnonzero(runs.checkpoints == iteration)[0])
        went = [trace(task, 100, keys, theta) for theta in runs.mean[:, column]]
        distance.append([w.distance.mean(0) for w in went])
        cost.append([w.cost.mean(0) for w in went])
        q = np.stack([w.features.mean(0)[:, :joints] / 0.4 for w in went])
        qdot = np.stack([w.features.mean(0)[:, joints : 2 * joints] / 0.1 for w in went])
        sent = rules.command(np, servos, np.stack([w.actions.mean(0) for w in went]), 0.0)
        push = servos.kp * (sent - q - servos.zero) - servos.kd * qdot
        torque.append(np.clip(push, -servos.limit, servos.limit) ** 2)
        angle.append(q)
    return {
        "shown": np.array(shown),
        "joints": np.array(JOINTS[joints]),
        "distance": np.array(distance),
        "cost": np.array(cost),
        "torque2": np.array(torque),  # [policy, R, T, joint]
        "angle": np.array(angle),
        "theta": runs.mean[:, column],  # of the last one shown
        "returns": runs.returns[:, column],
    }


def policy_at(data: Arrays, iteration: int, key: str) -> np.ndarray:
    """What the policies after an iteration did `[R, T, ...]`."""
    return data[key][data["shown"].tolist().index(iteration)]


def joint(data: Arrays, values: np.ndarray, name: str) -> np.ndarray:
    """Of values `[..., joint]` those of one joint."""
    return values[..., data["joints"].tolist().index(name)]


def half_way(data: Arrays, iteration: int, name: str) -> np.ndarray:
    """The step at which a joint has made half of its motion, of each run `[R]`."""
    angle = joint(data, policy_at(data, iteration, "angle"), name)
    moved = np.abs(angle - angle[:, :1])
    return (moved >= 0.5 * moved.max(1, keepdims=True)).argmax(1).astype(float)


def draw_cost(data: Arrays) -> Picture:
    """Distance and control cost along the episode of the initial, 20th and 50th policy."""
    figure, axes = picture(2, width=10, height=4)
    lines = {0: ("0.55", (0, (1, 1.3))), 20: ("#3d9bd1", (0, (4, 2))), 50: ("#0072b2", "-")}
    x = np.arange(1, 101)
    for k, iteration in enumerate(data["shown"].tolist()):
        if iteration not in lines:
            continue
        colour, line = lines[iteration]
        for ax, values in zip(axes[0], (100 * data["distance"][k], data["cost"][k]), strict=True):
            mean, error = values.mean(0), values.std(0, ddof=1) / np.sqrt(len(values))
            label = "initial policy" if iteration == 0 else f"iteration {iteration}"
            ax.fill_between(x, mean - error, mean + error, color=colour, alpha=0.2, linewidth=0)
            ax.plot(x, mean, color=colour, linestyle=line, linewidth=1.8, label=label)
    axes[0, 0].set(xlabel="step", ylabel="hand to target, cm")
    axes[0, 1].set(xlabel="step", ylabel="control cost, (N m)²")
    axes[0, 0].set_ylim(bottom=0)
    axes[0, 1].set(yscale="log")
    legend(figure, axes[0, 0])
    return figure


def closest(data: Arrays, iteration: int, steps: int | None = None) -> np.ndarray:
    """How near the hand comes to the target, in the first steps or in all, of each run `[R]`."""
    return policy_at(data, iteration, "distance")[:, :steps].min(-1)


def _arrival(data: Arrays) -> np.ndarray:
    """The steps after which the hand of policy 50 has arrived, all where it has not `[R]`."""
    near = policy_at(data, 50, "distance") < ARRIVED
    return np.where(near.any(1), near.argmax(1) + 1, near.shape[1])


SAID = (
    Said(
        "reach-2-cost.nears-soonest",
        "The policy obtained at the 50th iteration decreases the distance fastest compared "
        "with the initial policy and the policy obtained at the 20th iteration.",
        lambda far: {
            f"mean distance over {NEARING} steps, policy {i} minus policy 50, m": far[i] - far[50]
            for i in (0, 20)
        },
        "Of the motion, not of learning: the hand is nearer on average, from the first step on.",
        lambda data: {i: policy_at(data, i, "distance")[:, :NEARING].mean(-1) for i in (0, 20, 50)},
    ),
    Said(
        "reach-2-cost.falls",
        "The control cost for the policy obtained at the 50th iteration decreases steadily "
        "until the reaching task is completed.",
        lambda data: {
            f"cost of step {t + 1} minus step {t + 2}": -np.diff(policy_at(data, 50, "cost"))[:, t]
            for t in range(REACH)
        },
        lambda data: (
            f"Steadily: from every step to the next, for {REACH} steps. The hand comes within "
            f"{100 * ARRIVED:.0f} cm after {np.median(_arrival(data)):.0f} steps (the median run)."
        ),
    ),
    Said(
        "reach-2-cost.shoulder",
        "The robot mainly adjusts the shoulder pitch in the beginning, which consumes a larger "
        "amount of energy than the energy required for controlling the elbow pitch.",
        lambda torque: {
            f"squared torque of shoulder minus elbow, steps 1 to {SHORT}": (
                torque[SHOULDER] - torque[ELBOW]
            )
        },
        lambda torque: (
            "The shoulder takes "
            f"{torque[SHOULDER].mean() / (torque[SHOULDER] + torque[ELBOW]).mean():.0%} of it."
        ),
        lambda data: {
            name: joint(data, policy_at(data, 50, "torque2")[:, :SHORT].mean(1), name)
            for name in (SHOULDER, ELBOW)
        },
    ),
    Said(
        "reach-2-cost.elbow-later",
        "Then, once the right hand gets closer to the target object, the robot starts to adjust "
        "the elbow pitch [to] reach the target object.",
        lambda steps: {
            "steps to half of the motion, elbow minus shoulder": steps[ELBOW] - steps[SHOULDER]
        },
        lambda steps: (
            f"Of policy 50; the shoulder needs {steps[SHOULDER].mean():.1f} steps, the elbow "
            f"{steps[ELBOW].mean():.1f}."
        ),
        lambda data: {name: half_way(data, 50, name) for name in (SHOULDER, ELBOW)},
    ),
    Said(
        "reach-2-cost.cheaper-20",
        "The policy obtained at the 20th iteration actually consumes less control costs, but "
        "it cannot move the arm to the target object.",
        lambda data: {
            "cost of policy 50 minus policy 20": (
                policy_at(data, 50, "cost").mean(-1) - policy_at(data, 20, "cost").mean(-1)
            ),
            f"closest distance of policy 20 minus {ARRIVED} m": closest(data, 20) - ARRIVED,
        },
        lambda data: (
            f"Policy 20 comes within {100 * closest(data, 20).mean():.1f} cm of the target on "
            f"average, and {np.mean(closest(data, 0) < ARRIVED):.0%} of the initial mean policies "
            f"within {100 * ARRIVED:.0f} cm."
        ),
    ),
)

FIGURES = (
    Figure(
        "reach-2-cost",
        "Figure 10",
        "Distance and control cost along the episode",
        "The mean policies of iw-pgpe-ob at the start and after 20 and 50 iterations; mean and "
        "standard error over runs, 20 episodes each.",
        jobs=lambda size: reach_jobs(2, size, (OURS,)),
        collect=partial(traced, 2),
        draw=draw_cost,
        said=SAID,
        section="S4.3.2",
    ),
)

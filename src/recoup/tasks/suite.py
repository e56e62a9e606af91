"""The suite that methods are compared on: noisy and not, smooth and rugged, small and large.

Tasks of our own are rows of the registry, which `recoup train` knows too. Tasks of Gymnasium have a
name here for the settings they are compared with.
"""

from dataclasses import dataclass, field
from math import log

from recoup.core.types import Plain
from recoup.tasks.bounded.bounded_suite import BOUNDED, HALVES
from recoup.tasks.row import TaskRow

# Methods and their settings are chosen on starts of the tuning seed; what is reported was measured
# on starts of the test seed, which nothing was chosen on.
TEST_SEED, TUNING_SEED = 0, 20_000


def _function(name: str, dim: int, summary: str) -> TaskRow:
    return TaskRow(
        f"{name}-{dim}",
        f"{summary}; {dim} parameters",
        "recoup.tasks.functions:function",
        horizon=1,
        batch=_batch(dim),
        env_id=f"recoup/{name.capitalize()}{dim}-v0",
        options={"name": name, "dim": dim},
        mean=1.0,
        std=0.5,
    )


def _lqr(states: int, actions: int) -> TaskRow:
    dim = states * actions
    return TaskRow(
        f"lqr-{dim}",
        f"linear-quadratic control, {states} states, {actions} actions, random first states; "
        f"{dim} parameters",
        "recoup.tasks.lqr:lqr",
        horizon=25,
        batch=_batch(dim),
        env_id=f"recoup/LQR{dim}-v0",
        options={"states": states, "actions": actions},
        drawn=False,
        std=0.4,
    )


def _batch(dim: int) -> int:
    return round(4 + 3 * log(dim))


ROWS = (
    TaskRow(
        "pendulum",
        "Gymnasium's pendulum, linear on cos, sin, velocity and 1; 4 parameters",
        "recoup.tasks.pendulum:pendulum",
        horizon=200,
        batch=_batch(4),
        env_id="recoup/Pendulum-v0",
    ),
    _lqr(4, 2),
    _lqr(8, 4),
    _function("sphere", 10, "-|theta|^2 + N(0, 1)"),
    _function("sphere", 100, "-|theta|^2 + N(0, 1)"),
    _function("ellipsoid", 10, "the same, weights from 1 to 1000"),
    _function("rosenbrock", 10, "a bent valley, plus N(0, 1)"),
    _function("rastrigin", 10, "a minimum near every whole number, plus N(0, 1)"),
    _function("ackley", 10, "a funnel full of holes, plus N(0, 1)"),
)
NOISY = tuple(row.name for row in ROWS if "functions" in row.problem)  # have an option `noise`
SYSTEMS = tuple(row.name for row in ROWS if "lqr" in row.problem)  # have an option `system`


@dataclass(frozen=True)
class GymTask:
    """An environment of Gymnasium with the settings it is compared with: a linear policy from 0."""

    name: str
    env_id: str
    horizon: int
    std: float
    options: Plain = field(default_factory=lambda: {"bias": False})  # of the policy
    test_episodes: int = 20  # of the mean policy


GYM_TASKS = {
    task.name: task
    for task in (
        GymTask("half-cheetah", "HalfCheetah-v5", 100, 0.1),
        GymTask("hopper", "Hopper-v5", 200, 0.1),
        GymTask("walker2d", "Walker2d-v5", 200, 0.1),
        GymTask("reacher", "Reacher-v5", 50, 0.3),
        GymTask("pusher", "Pusher-v5", 60, 0.1),
    )
}
SCALED = ("toy", "mountain-car-weak", "lqr-8", "sphere-10")  # also from other spreads
SCALES = ("0.1", "0.25", "4")
SUITE = (
    "toy",
    "mountain-car",
    "mountain-car-weak",
    "reach-2",
    "reach-4",
    "reach-9",
    *(row.name for row in ROWS),
    *GYM_TASKS,
    *(f"{task}@{scale}" for task in SCALED for scale in SCALES),
)
LISTS = {  # names that stand for several tasks
    "suite": SUITE,
    "quick": ("toy", "mountain-car", "pendulum", "lqr-8", "sphere-10"),
    "bounded": tuple(BOUNDED),
    **HALVES,
}

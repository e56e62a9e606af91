"""The tasks that come with Recoup, as rows; their code is imported when one is made."""

import warnings
from collections.abc import Callable
from functools import cache, lru_cache
from importlib import import_module
from inspect import signature
from typing import Any

from recoup.checks import STEPS, InputError, check_between, check_choice, check_count, nearest
from recoup.core.types import Given, Plain
from recoup.tasks.row import TaskRow
from recoup.tasks.suite import ROWS
from recoup.tasks.task import Task

REACH = "recoup/Reach-v0"  # one environment, with `joints` for 2, 4 and 9


_CAR: Plain = {
    "problem": "recoup.tasks.mountain_car:mountain_car",
    "horizon": 40,
    "discount": 0.95,
    "batch": 10,
    "epsilon": 1.0,
    "env": "recoup.tasks.gym_envs:PictureEnv",
    "random": False,
}
TASKS = {
    row.name: row
    for row in (
        TaskRow(
            "toy",
            "1-D linear system with noise; one parameter",
            "recoup.tasks.toy:toy",
            horizon=10,
            discount=0.9,
            batch=10,
            env_id="recoup/Toy-v0",
        ),
        TaskRow(
            "mountain-car",
            "car in a valley, force as the paper prints it: unbounded; 12 parameters",
            env_id="recoup/MountainCar-v0",
            **_CAR,
        ),
        TaskRow(
            "mountain-car-weak",
            "the same with |force| <= 0.3: too weak to climb directly; 12 parameters",
            env_id="recoup/MountainCarWeak-v0",
            options={"force_limit": 0.3},
            **_CAR,
        ),
        *(
            TaskRow(
                f"reach-{joints}",
                f"humanoid upper body reaches a target with {joints} joints; "
                f"{2 * joints**2} parameters [mujoco]",
                "recoup.tasks.reach.rules:reach",
                task="recoup.tasks.reach.reach_task:task_of",
                horizon=100,
                discount=0.9,
                batch=3,
                test_episodes=50,
                env_id=REACH,
                env="recoup.tasks.reach.env:ReachEnv",
                options={"joints": joints},
                packages=("mujoco",),
                trace="recoup.tasks.reach.reach_task:trace",
            )
            for joints in (2, 4, 9)
        ),
        *ROWS,
    )
}


def task_row(name: str) -> TaskRow:
    """The row of the task `name`."""
    return TASKS[check_choice("task", name, TASKS)]


def make_problem(name: str, **options: Given) -> Any:
    """What the task `name` is about, its options resolved: a `Model`, or a `Reach`."""
    make, row = _factory(name, options), task_row(name)
    return _problem(make, **row.options, **options)


def _problem(make: Callable[..., Any], **options: Given) -> Any:
    """What `make` makes of the options, the same object for the same ones where they allow it."""
    try:
        return _made(make, **options)
    except TypeError:  # options that cannot be looked up, such as lists
        return make(**options)


@lru_cache(maxsize=32, typed=True)  # True is not 1: the options are checked by what makes it
def _made(make: Callable[..., Any], **options: Given) -> Any:
    return make(**options)


def _factory(name: str, options: Given) -> Callable[..., Any]:
    """What makes the problem of the task `name`, once `options` are known to be its own."""
    row = task_row(name)
    make = named(row.problem)
    known = [option for option in signature(make).parameters if option not in row.options]
    for option in options:
        if option not in known:
            has = f"its options are {', '.join(known)}" if known else "it has none"
            raise InputError(
                f"{option!r} is not an option of {name}; {has}.{nearest(option, known)}"
            )
    return make


def named(where: str) -> Callable[..., Any]:
    """The function that `module:function` names."""
    module, name = where.split(":")
    return getattr(import_module(module), name)


def make_task(
    name: str, horizon: int | None = None, discount: float | None = None, **options: Given
) -> Task:
    """The task `name`, with the paper's horizon and discount unless others are given."""
    row = task_row(name)
    horizon = check_count("horizon", row.horizon if horizon is None else horizon, most=STEPS)
    discount = row.discount if discount is None else check_between("discount", discount, 0.0, 1.0)
    return _task(name, make_problem(name, **options), horizon, discount)


@lru_cache(maxsize=32)
def _task(name: str, problem: Any, horizon: int, discount: float) -> Task:
    """One task object for one problem, so that what was compiled for it is found again."""
    return named(task_row(name).task)(name, problem, horizon, discount)


def make_env(
    name: str, render_mode: str | None = None, horizon: int | None = None, **options: Given
) -> Any:
    """The task `name` as a Gymnasium environment, with the paper's horizon unless one is given."""
    import gymnasium

    register_envs()
    row = task_row(name)
    horizon = check_count("horizon", row.horizon if horizon is None else horizon, most=STEPS)
    _factory(name, options)
    if row.env_id == REACH:
        options = {**row.options, **options}
    options |= {"max_episode_steps": horizon, "render_mode": render_mode}
    with warnings.catch_warnings():  # of a mode that it has not: the environment says it itself
        warnings.filterwarnings("ignore", r"(?s).*not in the possible render_modes")
        return gymnasium.make(row.env_id, **options)


def environments() -> Plain:
    """Gymnasium's registry, with the tasks that come with Recoup."""
    import gymnasium

    register_envs()
    return gymnasium.registry


@cache
def register_envs() -> None:
    """Registers the tasks as Gymnasium environments, once."""
    import gymnasium

    for env_id, row in {row.env_id: row for row in TASKS.values()}.items():
        gymnasium.register(
            id=env_id,
            entry_point=row.env,
            kwargs={} if env_id == REACH else {"task": row.name},
            max_episode_steps=row.horizon,
        )

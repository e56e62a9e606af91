"""The tasks that come with Recoup, as rows; their code is imported when one is made."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from recoup.checks import check_between, check_choice, check_count

if TYPE_CHECKING:
    from recoup.tasks.models import Model


@dataclass(frozen=True)
class TaskRow:
    """A task's name and the paper's settings for it."""

    name: str
    summary: str
    home: str  # module:factory of its model
    horizon: int
    discount: float
    batch: int
    epsilon: float
    test_episodes: int
    env_id: str


class Task(NamedTuple):
    """A task ready to be rolled out, one episode a call.

    `rollout(key, theta) -> return` of the linear policy; `episode(key, policy) -> trajectory` of
    the Gaussian one.
    """

    name: str
    dim: int
    actions: int
    horizon: int
    discount: float
    rollout: Callable[[Any, Any], Any]
    episode: Callable[[Any, Any], Any]
    act: Callable[[Any, Any], Any]  # theta, observation -> action
    model: "Model"


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
            epsilon=0.1,
            test_episodes=100,
            env_id="recoup/Toy-v0",
        ),
        TaskRow(
            "mountain-car",
            "car in a valley, force as the paper prints it: unbounded; 12 parameters",
            "recoup.tasks.mountain_car:mountain_car",
            horizon=40,
            discount=0.95,
            batch=10,
            epsilon=1.0,
            test_episodes=100,
            env_id="recoup/MountainCar-v0",
        ),
        TaskRow(
            "mountain-car-weak",
            "the same with |force| <= 0.3: too weak to climb directly; 12 parameters",
            "recoup.tasks.mountain_car:mountain_car_weak",
            horizon=40,
            discount=0.95,
            batch=10,
            epsilon=1.0,
            test_episodes=100,
            env_id="recoup/MountainCarWeak-v0",
        ),
    )
}


def task_row(name: str) -> TaskRow:
    """The row of the task `name`."""
    return TASKS[check_choice("task", name, TASKS)]


def make_task(name: str, horizon: int | None = None, discount: float | None = None) -> Task:
    """The task `name`, with the paper's horizon and discount unless others are given."""
    row = task_row(name)
    horizon = row.horizon if horizon is None else check_count("horizon", horizon)
    discount = row.discount if discount is None else check_between("discount", discount, 0.0, 1.0)
    from recoup.tasks.models import episode, policy, rollout

    module, factory = row.home.split(":")
    model = getattr(import_module(module), factory)()
    return Task(
        name=row.name,
        dim=model.features * model.actions,
        actions=model.actions,
        horizon=horizon,
        discount=discount,
        rollout=rollout(model, horizon, discount),
        episode=episode(model, horizon),
        act=policy(model),
        model=model,
    )


def register_envs() -> None:
    """Registers the tasks as Gymnasium environments."""
    import gymnasium

    for row in TASKS.values():
        gymnasium.register(
            id=row.env_id,
            entry_point="recoup.tasks.envs:make_env",
            kwargs={"task": row.name},
            max_episode_steps=row.horizon,
        )

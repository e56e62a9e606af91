"""What a run is determined by: the task, the method, the seed, the budget; checked and resolved."""

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from recoup.checks import InputError, check_count, check_finite, check_stds, check_vector
from recoup.engine.methods import Method, method_row, settings_of
from recoup.study.opened import Opened
from recoup.study.settings import RUN, resolved
from recoup.tasks.registry import TaskRow, make_task, task_row
from recoup.tasks.task import Task

DEFAULT_ITERATIONS = 30
EXTENDED = "extended"  # the event that holds another budget


@dataclass(frozen=True)
class Plan:
    """Everything a run is determined by, resolved."""

    task: str
    method: str
    seed: int
    iterations: int
    batch: int
    horizon: int
    discount: float
    options: dict[str, Any]  # of the task
    mean: Any  # None: drawn from N(0, I)
    std: Any
    test_episodes: int
    settings: Method

    @property
    def episodes(self) -> int:
        """Rollouts to spend."""
        return self.iterations * self.batch

    def plain(self) -> dict[str, Any]:
        """The plan as JSON can hold it, but for the settings, which are the study's own."""
        return {key: value for key, value in asdict(self).items() if key != "settings"}


@dataclass(frozen=True)
class Wanted:
    """A run as it was asked for."""

    task: str
    method: str | Method
    episodes: int | None
    iterations: int | None
    batch: int | None
    seed: int
    mean: Any
    std: Any
    horizon: int | None
    discount: float | None
    options: dict[str, Any]
    settings: dict[str, Any]


def plan_of(wanted: Wanted) -> tuple[Plan, Task]:
    """The plan of a run and its task, once everything is such as it may be."""
    row = task_row(wanted.task)
    method = method_row(wanted.method, task_settings(row, wanted.method), **wanted.settings)
    batch = row.batch if wanted.batch is None else check_count("batch", wanted.batch)
    iterations = _iterations(wanted.episodes, wanted.iterations, batch)
    seed, options = _seed(wanted.seed), wanted.options
    problem = make_task(wanted.task, wanted.horizon, wanted.discount, **options)
    mean, std = wanted.mean, wanted.std
    check_vector("mean", 0.0 if mean is None else mean, problem.dim)
    check_finite("mean", 0.0 if mean is None else mean)
    in_actions = method.space == "actions"
    check_vector("std", std, problem.actions if in_actions else problem.dim, "DA"[in_actions])
    check_stds("std", std)
    plan = Plan(
        task=row.name,
        method=method.name,
        seed=seed,
        iterations=iterations,
        batch=batch,
        horizon=problem.horizon,
        discount=problem.discount,
        options={k: v.tolist() if hasattr(v, "tolist") else v for k, v in options.items()},
        mean=None if mean is None else np.asarray(mean, np.float64).tolist(),
        std=np.asarray(std, np.float64).tolist(),
        test_episodes=row.test_episodes,
        settings=method,
    )
    return plan, problem


def study_settings(plan: Plan, problem: Task, mean: Any) -> dict[str, Any]:
    """The settings of the study that a run is, starting from the means `[D]`."""
    given = {
        "dim": problem.dim,
        "method": plan.settings,
        "batch": plan.batch,
        "seed": plan.seed,
        "mean": mean,
        "std": plan.std,
    }
    if plan.settings.space == "actions":
        given |= {
            "horizon": problem.horizon,
            "actions": problem.actions,
            "discount": problem.discount,
        }
    return {**resolved(given), RUN: plan.plain()}


def stored_plan(study: Opened) -> Plan:
    """The plan of a run, as its study holds it; its budget as it was last set."""
    if RUN not in study.settings:
        raise InputError(f"{study.path} is a study of its own, not that of a run.")
    plan = Plan(**{**study.settings[RUN], "settings": study.method})
    extended = study.store.events(EXTENDED)
    if not extended:
        return plan
    return replace(plan, iterations=check_count(EXTENDED, extended[-1].content["iterations"]))


def check_extension(plan: Plan, iterations: int, told: int) -> int:
    """`iterations`, once a run of which so many rollouts were told can come to them."""
    iterations, done = check_count("iterations", iterations), -(-told // plan.batch)
    if iterations < done:
        raise InputError(
            f"the run has spent {told} episodes, which are {done} iterations of {plan.batch}: it "
            f"can be extended to more, not cut to {iterations}."
        )
    return iterations


def task_settings(row: TaskRow, method: str | Method) -> dict[str, Any]:
    """The settings that a task asks of a method, where it has them."""
    return {"epsilon": row.epsilon} if "epsilon" in settings_of(method) else {}


def _seed(seed: Any) -> int:
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or not 0 <= seed < 2**32:
        raise InputError(f"seed must be a whole number in 0..{2**32 - 1}, got {seed!r}.")
    return int(seed)


def _iterations(episodes: int | None, iterations: int | None, batch: int) -> int:
    if episodes is not None and iterations is not None:
        raise InputError("give episodes or iterations, not both.")
    if episodes is None:
        return check_count("iterations", DEFAULT_ITERATIONS if iterations is None else iterations)
    whole, rest = divmod(check_count("episodes", episodes), batch)
    if rest:
        near = f"{whole * batch} or {(whole + 1) * batch}" if whole else f"{batch}"
        raise InputError(
            f"episodes must be a multiple of the batch of {batch}, got {episodes}: use {near}."
        )
    return whole

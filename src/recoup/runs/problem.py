"""The task of a run, made: one of ours by its name, or one of the user's."""

from dataclasses import dataclass, field
from math import log
from typing import Any

from recoup.checks import InputError, check_count
from recoup.tasks.own.found import TRACED, Found, find
from recoup.tasks.own.host import HostTask, How, host_task, policy_described
from recoup.tasks.policies.described import described, restored
from recoup.tasks.policies.policy import SpacePolicy
from recoup.tasks.registry import TASKS, make_task, task_row
from recoup.tasks.task import Task

Problem = Task | HostTask
TEST_EPISODES = 20  # of a task of the user's


@dataclass(frozen=True)
class Asked:
    """A task as it was asked for; None is whatever the task has."""

    task: Any
    horizon: int | None = None
    discount: float | None = None
    options: dict[str, Any] = field(default_factory=dict)
    policy: Any = None
    policy_options: dict[str, Any] = field(default_factory=dict)
    episodes_per_trial: int = 1
    warm_up: int = 0
    normalize: bool = False
    dim: int | None = None
    names: tuple[str, ...] = ()
    seed: int = 0


@dataclass(frozen=True)
class Settled:
    """A task that was made, and what a run on it is like unless said."""

    name: str
    problem: Problem
    batch: int | None  # None: from the number of parameters
    epsilon: float | None  # None: the method's
    test_episodes: int
    std: Any
    drawn: bool  # whether the start is drawn, as in the paper, or at zero
    centre: float = 0.0  # of the start
    again: bool = True  # whether the name alone finds it again
    policy: dict[str, Any] | None = None  # as a file holds it


def is_ours(task: Any) -> bool:
    """Whether a task is one that comes with Recoup."""
    return isinstance(task, str) and task in TASKS


def settled(asked: Asked) -> Settled:
    """The task that was asked for."""
    if is_ours(asked.task):
        return _ours(asked)
    found = find(asked.task, asked.dim is not None or bool(asked.names))
    if found.kind == TRACED:
        return _traced(found, asked)
    how = How(
        asked.horizon,
        asked.discount,
        asked.options,
        asked.policy,
        asked.policy_options,
        asked.episodes_per_trial,
        asked.warm_up,
        asked.normalize,
        asked.dim,
        asked.names,
        asked.seed,
    )
    task = host_task(found, how)
    return Settled(
        found.name,
        task,
        batch=None,
        epsilon=None,
        test_episodes=TEST_EPISODES,
        std=task.std,
        drawn=False,
        again=found.safe,
        policy=policy_described(task),
    )


def _ours(asked: Asked) -> Settled:
    _check_vectorised(asked.task, asked, asked.policy, asked.policy_options)
    if asked.dim is not None or asked.names:
        raise InputError(f"{asked.task} has parameters of its own: leave dim and params out.")
    row = task_row(asked.task)
    task = make_task(asked.task, asked.horizon, asked.discount, **asked.options)
    return Settled(
        row.name,
        task,
        row.batch,
        row.epsilon,
        row.test_episodes,
        row.std,
        drawn=row.drawn,
        centre=row.mean,
    )


def _check_vectorised(name: str, asked: Asked, *others: Any) -> None:
    """Raises where settings are given that are for tasks on the host."""
    if any((*others, asked.warm_up, asked.normalize)) or asked.episodes_per_trial != 1:
        words = "policy, policy_options, " if others else ""
        raise InputError(
            f"{name} is rolled out one episode a trial, many at a time: leave {words}warm_up, "
            "normalize and episodes_per_trial out."
        )


def _traced(found: Found, asked: Asked) -> Settled:
    from recoup.tasks.own.jax_envs import jax_env, jax_policy, jax_task

    _check_vectorised(found.name, asked)
    env, params = found.make if isinstance(found.make, tuple) else (found.make, None)
    how = (asked.policy or "linear", asked.policy_options)
    policy = described(jax_policy(jax_env(found.name, env, params), *how))
    task, std = jax_task(found.name, env, asked.horizon, asked.discount, *how, params)
    return Settled(
        found.name, task, None, None, TEST_EPISODES, std, drawn=False, again=False, policy=policy
    )


def again(
    plan: Any, dim: int, names: tuple[str, ...], task: Any = None, policy: Any = None
) -> Problem:
    """The task of a run that was planned, made again.

    A run of someone else's may name code: it is imported only if the user names it with `task`.
    """
    if not plan.own:
        return make_task(plan.task, plan.horizon, plan.discount, **plan.options)
    function = plan.policy is None
    found = find(plan.task, function, trusted=False) if task is None else find(task, function)
    if found.kind == TRACED:
        wanted = _described_again(restored(plan.policy, policy))
        return _traced(found, Asked(found.make, plan.horizon, plan.discount, **wanted)).problem
    how = How(
        discount=None if function else plan.discount,
        horizon=None if function else plan.horizon,
        options=plan.options,
        policy=policy,
        episodes=plan.episodes_per_trial,
        dim=None if names or not function else dim,
        names=names,
        described=plan.policy,
    )
    made = host_task(found, how)
    if made.dim != dim:
        raise InputError(
            f"the policy of {found.name} takes {made.dim} parameters, but this run searched {dim}: "
            "the task or the policy is another one."
        )
    return made


def _described_again(policy: Any) -> dict[str, Any]:
    """A policy as it would be asked for."""
    if not isinstance(policy, SpacePolicy):
        return {"policy": policy}
    return {"policy": policy.network, "policy_options": {"actions": policy.bounds}}


def policy_of(problem: Problem) -> Any:
    """The policy between the spaces of an environment; None where a task has one of its own."""
    if isinstance(problem, HostTask):
        return problem.policy
    return getattr(problem.act, "policy", None)


def batch_for(dim: int, trials: int | None) -> int:
    """The size of a batch for so many parameters: 4 + 3 ln D, as in evolution strategies.

    Where the number of trials is given, one near it that leaves as few over as can be.
    """
    wanted = round(4 + 3 * log(check_count("dim", dim)))
    if trials is None:
        return wanted
    near = range(max(wanted * 3 // 4, 1), wanted * 4 // 3 + 1)
    return min(near, key=lambda batch: (trials % batch, abs(batch - wanted)))

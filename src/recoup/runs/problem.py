"""The task of a run, made: one of ours by its name, or one of the user's."""

import warnings
from dataclasses import dataclass
from math import log
from typing import Any

from recoup.checks import InputError, check_count, printable, shortly
from recoup.core.types import Given, Plain
from recoup.tasks.engines.engine import Broken
from recoup.tasks.own.found import TRACED, Found, find
from recoup.tasks.own.host import HostTask, How, host_task, policy_described
from recoup.tasks.policies.compared import ROLES, check_spaces
from recoup.tasks.policies.described import described, readable, restored, space_restored
from recoup.tasks.policies.fingerprint import check_fingerprint, fingerprint, fixed_thetas
from recoup.tasks.policies.policy import SpacePolicy
from recoup.tasks.registry import TASKS, make_task, task_row
from recoup.tasks.task import Task

Problem = Task | HostTask
Acting = tuple[Any, tuple[Any, ...]]  # a policy, and the spaces of observations and actions
TEST_EPISODES = 20  # of a task of the user's


@dataclass(frozen=True)
class Settled:
    """A task that was made, and what a run on it is like unless said."""

    name: str
    problem: Problem
    std: Given
    batch: int | None = None  # None: from the number of parameters
    epsilon: float | None = None  # None: the method's
    test_episodes: int = TEST_EPISODES
    drawn: bool = False  # whether the start is drawn, as in the paper, or at zero
    centre: float = 0.0  # of the start
    again: bool = True  # whether the name alone finds it again
    policy: Plain | None = None  # as a file holds it
    acting: tuple[Any, Any] | None = None  # the policy itself, and what it observes


def is_ours(task: Given) -> bool:
    """Whether a task is one that comes with Recoup."""
    return isinstance(task, str) and task in TASKS


def settled(task: Given, how: How = How()) -> Settled:  # noqa: B008
    """The task that was asked for; what `how` leaves open is the task's own."""
    if is_ours(task):
        return _ours(task, how)
    found = find(task, how.dim is not None or bool(how.names))
    if found.kind == TRACED:
        return _traced(found, how)
    made = host_task(found, how)
    return Settled(
        found.name,
        made,
        std=made.std,
        again=found.safe,
        policy=policy_described(made),
        acting=None if made.policy is None else (made.policy, made.spaces[0]),
    )


def _ours(name: str, how: How) -> Settled:
    _check_vectorised(name, how, how.policy, how.policy_options)
    if how.dim is not None or how.names:
        raise InputError(f"{name} has parameters of its own: leave dim and params out.")
    row, task = task_row(name), make_task(name, how.horizon, how.discount, **how.options)
    own = (row.batch, row.epsilon, row.test_episodes)
    return Settled(name, task, row.std, *own, drawn=row.drawn, centre=row.mean)


def _check_vectorised(name: str, how: How, *others: Any) -> None:
    """Raises where settings are given that are for tasks on the host."""
    if any((*others, how.warm_up, how.normalize)) or how.episodes != 1:
        words = "policy, policy_options, " if others else ""
        raise InputError(
            f"{name} is rolled out one episode a trial, many at a time: leave {words}warm_up, "
            "normalize and episodes_per_trial out."
        )


def _traced(found: Found, how: How, before: Plain | None = None) -> Settled:
    """The task of an environment in JAX; `before` is the policy of a run that goes on with it."""
    from recoup.tasks.own.jax_envs import jax_env, jax_policy, jax_task

    _check_vectorised(found.name, how)
    env, params = found.make if isinstance(found.make, tuple) else (found.make, None)
    asked = (how.policy or "linear", how.policy_options)
    world = jax_env(found.name, env, params)
    if before is not None:
        check_spaces(found.name, before, (world.observations, world.actions))
    policy = jax_policy(world, *asked)
    task, std = jax_task(found.name, env, how.horizon, how.discount, *asked, params)
    return Settled(
        found.name,
        task,
        std,
        again=False,
        policy=described(policy, (world.observations, world.actions)),
        acting=(policy, world.observations),
    )


def again(
    plan: Any, dim: int, names: tuple[str, ...], task: Given = None, policy: Given = None
) -> Problem:
    """The task of a run that was planned, made again.

    A run of someone else's may name code: it is imported only if the user names it with `task`.
    """
    if not plan.own:
        _check_ours(plan, task, policy)
        return make_task(plan.task, plan.horizon, plan.discount, **plan.options)
    function = plan.policy is None
    found = find(plan.task, function, trusted=False) if task is None else find(task, function)
    learned = policy if function else policy_again(plan, dim, policy)
    if found.kind == TRACED:
        asked = How(plan.horizon, plan.discount, **_described_again(learned))
        made = _traced(found, asked, plan.policy).problem
        _warn_of_another(plan.task, found.name)
        return made
    how = How(
        discount=None if function else plan.discount,
        horizon=None if function else plan.horizon,
        options=plan.options,
        policy=learned,
        episodes=plan.episodes_per_trial,
        dim=None if names or not function else dim,
        names=names,
        described=plan.policy,
    )
    try:
        problem = host_task(found, how)
    except (InputError, Broken) as wrong:
        if not _is_another(plan.task, found.name):
            raise
        kind = "function" if function else "environment"
        raise InputError(
            f"{wrong} This run was of the {kind} {plan.task}: give that {kind} again (--task, in "
            "Python task=...)."
        ) from wrong
    _warn_of_another(plan.task, found.name)
    return problem


def _is_another(before: str, now: str) -> bool:
    """Whether a task has another name than before.

    A script that was run itself has no module in the names of its functions.
    """
    names = before.split(":"), now.split(":")
    known = 2 if all(len(name) == 2 for name in names) else 1
    return names[0][-known:] != names[1][-known:]


def _warn_of_another(before: str, now: str) -> None:
    """Warns where a run is rolled out on a task of another name: it was renamed, or is another."""
    if _is_another(before, now):
        warnings.warn(
            printable(
                f"this run's task was {before}, and {now} is rolled out now: unless that is the "
                "same by another name, what is rolled out from here on is of another task."
            ),
            stacklevel=2,
        )


def _check_ours(plan: Any, task: Given, policy: Given) -> None:
    """Raises where another task, or a policy, is given for a run on a task of ours."""
    if task is not None and not (isinstance(task, str) and task == plan.task):
        named = shortly(task)
        raise InputError(f"this run's task is {plan.task}, got {named}: leave the task out.")
    if policy is not None:
        raise InputError(f"{plan.task}, the task of this run, has a policy of its own: give none.")


def check_given(plan: Any, dim: int, policy: Given) -> None:
    """Raises where a policy is given that is not the one of a run that was planned."""
    if not plan.own:
        _check_ours(plan, None, policy)
    elif plan.policy is not None:
        policy_again(plan, dim, policy)


def policy_again(plan: Any, dim: int, given: Given = None) -> Any:
    """The policy of a run that was planned, once a theta is the same policy in it as it was then.

    No environment is made for it. `given` is the network or policy that only Python can give.
    """
    policy = restored(plan.policy, given)
    if policy.parameters != dim:
        raise InputError(
            f"the policy of {plan.task} takes {policy.parameters} parameters, but this run "
            f"searched {dim}: the task or the policy is another one."
        )
    if plan.fingerprint is not None:
        with readable():
            thetas = fixed_thetas(dim, 0.0 if plan.mean is None else plan.mean, plan.std)
            check_fingerprint(plan.task, plan.fingerprint, policy, thetas, _between(plan))
    return policy


def _between(plan: Any) -> tuple[Any, ...]:
    """The spaces of observations and actions of a run that was planned, where it holds them."""
    return tuple(space_restored(plan.policy[role]) for role in ROLES if role in plan.policy)


def fingerprint_of(found: Settled, mean: Given, std: Given) -> list[Any] | None:
    """What the policy of a task gives on fixed observations `[T * K, O]`; None: it says nothing.

    `mean` and `std` are the start of the search: the thetas follow from them.
    """
    if found.acting is None or "observations" not in (found.policy or {}):
        return None
    policy, observations = found.acting
    thetas = fixed_thetas(policy.parameters, 0.0 if mean is None else mean, std)
    gave = fingerprint(policy, thetas, observations)
    return None if gave is None else gave.tolist()


def _described_again(policy: Given) -> Plain:
    """A policy as it would be asked for."""
    if not isinstance(policy, SpacePolicy):
        return {"policy": policy}
    return {"policy": policy.network, "policy_options": {"actions": policy.bounds}}


def policy_in(problem: Problem) -> Acting | None:
    """The policy of an environment and the spaces around it; None where a task has its own."""
    if not isinstance(problem, HostTask):
        return getattr(problem.act, "acting", None)
    return None if problem.policy is None else (problem.policy, problem.spaces)


def policy_stored(plan: Any, dim: int, given: Given = None) -> Acting | None:
    """The same of a run that was planned, without its environment."""
    if plan.policy is None:
        return None
    policy = policy_again(plan, dim, given)
    with readable():
        return policy, _between(plan)


def batch_for(dim: int, trials: int | None) -> int:
    """The size of a batch for so many parameters: 4 + 3 ln D, as in evolution strategies.

    Where the number of trials is given, one near it that leaves as few over as can be.
    """
    wanted = round(4 + 3 * log(check_count("dim", dim)))
    if trials is None:
        return wanted
    near = range(max(wanted * 3 // 4, 1), wanted * 4 // 3 + 1)
    return min(near, key=lambda batch: (trials % batch, abs(batch - wanted)))

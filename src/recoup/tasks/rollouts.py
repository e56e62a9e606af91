"""Rolling out: what a search asked for becomes returns or trajectories.

Functions of keys and arrays, for one run or many side by side.
"""

from collections.abc import Callable
from functools import lru_cache, partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from recoup.core.families.action_policy import Policy
from recoup.core.families.family import Family
from recoup.core.families.trajectory import Episodes, Trajectory, discounted_rewards
from recoup.core.types import Pytree, Rho
from recoup.tasks.task import Task


def roll_out(problem: Task, key: Array, asked: Pytree) -> tuple[Pytree, ...]:
    """What `tell` takes, for what `ask` gave: theta and returns, or trajectories.

    Of one run, or of many side by side: then the keys are `[R]`, and so is the leading axis of all.
    """
    if isinstance(asked, Episodes):
        return (_with_axes(asked.seeds.shape, problem.episodes(*_policies(asked))),)
    keys = jax.vmap(lambda one: jax.random.split(one, asked.shape[-2]))(key.reshape(-1))
    returns = problem.rollouts(keys.ravel(), asked.reshape(-1, asked.shape[-1]))
    return asked, _with_axes(asked.shape[:-1], returns)


def returns_of(problem: Task, told: tuple[Pytree, ...]) -> Array:
    """Returns `[N]`, or `[R, N]`, of what was told."""
    if isinstance(told[0], Trajectory):
        discounted = partial(discounted_rewards, problem.discount)
        for _ in told[0].rewards.shape[:-1]:
            discounted = jax.vmap(discounted)
        return jnp.sum(discounted(told[0]), axis=-1)
    return told[1]


@lru_cache(maxsize=64)
def fresh_returns(problem: Task, family: Family, episodes: int) -> Callable[[Array, Pytree], Array]:
    """`test(key, rho) -> returns [episodes]` of fresh samples of rho, an episode each.

    With keys `[R]` and rho of many runs, `[R, episodes]`. Compiled where the task can be.
    """

    @jax.jit
    def draw(key: Array, rho: Rho) -> tuple[Array, Pytree]:
        if key.ndim:
            return jax.vmap(draw)(key, rho)
        key_draw, key_roll = jax.random.split(key)
        return key_roll, family.draw(key_draw, rho, episodes, False)

    roll = _returns(problem)
    return lambda key, rho: roll(*draw(key, rho))


def mean_policy_returns(problem: Task, episodes: int) -> Callable[[Array, Pytree], Array]:
    """`test(key, theta) -> returns [episodes]` of one linear policy without any noise of its own.

    Compiled where the task can be, and once for these and for fresh samples of parameters.
    """
    roll = _returns(problem)
    return lambda key, theta: roll(key, np.tile(np.asarray(theta), (episodes, 1)))


@lru_cache(maxsize=64)
def _returns(problem: Task) -> Callable[[Array, Pytree], Array]:
    """`returns(key, asked)` of what was asked, an episode each."""

    def returns(key: Array, asked: Pytree) -> Array:
        return returns_of(problem, roll_out(problem, key, asked))

    return jax.jit(returns) if problem.traced else returns


def _policies(asked: Episodes) -> tuple[Array, Policy]:
    """The key and the policy of every episode, in one row."""
    each = asked.seeds.shape[-1]
    policies = [jnp.repeat(x.reshape(-1, x.shape[-1]), each, axis=0) for x in asked.policy]
    return jax.vmap(jax.random.key)(asked.seeds.ravel()), Policy(*policies)


def _with_axes(lead: tuple[int, ...], rows: Pytree) -> Pytree:
    return jax.tree.map(lambda x: x.reshape(lead + x.shape[1:]), rows)

"""A task's equations, once, for JAX and for NumPy; and the rollout of a linear policy in them.

Every function of a model takes the array namespace `xp` (`jax.numpy` or `numpy`) first, so that the
vectorised rollouts and the Gymnasium environments run the same lines.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from recoup.core.families.action_policy import Policy, linear
from recoup.core.families.trajectory import Trajectory, discounted_rewards
from recoup.core.types import Array, Namespace, State
from recoup.tasks.task import Task


class Model(NamedTuple):
    """One control problem: where it starts, how it moves, what it pays, what the policy sees."""

    initial: Callable[[Namespace, Array], State]  # xp, noise [S] -> state [S]
    transition: Callable[[Namespace, State, Array, Array], State]  # action [A], noise [S] -> state
    reward: Callable[[Namespace, State, Array, State], Array]  # action [A], next state -> scalar
    basis: Callable[[Namespace, State], Array]  # xp, state -> features [F]
    features: int  # F
    low: tuple[float, ...]  # bounds of the state, which is the observation
    high: tuple[float, ...]
    actions: int = 1  # A
    action_limit: float = float("inf")  # the transition holds the action to +- this
    picture: Callable[[State], np.ndarray] | None = None  # state -> rgb [height, width, 3]


def task_of(name: str, model: Model, horizon: int, discount: float) -> Task:
    """The task of a model, traced by JAX."""
    return Task(
        name=name,
        dim=model.features * model.actions,
        actions=model.actions,
        horizon=horizon,
        discount=discount,
        rollouts=jax.vmap(rollout(model, horizon, discount)),
        episodes=jax.vmap(episode(model, horizon)),
        act=policy(model),
        traced=True,
    )


def policy(model: Model) -> Callable[[Array, Array], np.ndarray]:
    """`act(theta, observation) -> action [A]` of the linear policy, on the host."""

    def act(theta: Array, observation: Array) -> np.ndarray:
        return linear(np.asarray(theta), model.basis(np, np.asarray(observation)))

    return act


def rollout(model: Model, horizon: int, discount: float) -> Callable[[Array, Array], Array]:
    """`rollout(key, theta) -> return` of one episode under the policy a = theta^T phi(s).

    Implements: zhao2013 S2.1 R(h) = sum_t gamma^(t-1) r(s_t, a_t, s_{t+1}).
    """

    def run(key: Array, theta: Array) -> Array:
        silent = jnp.zeros((horizon, model.actions), theta.dtype)
        trajectory = _episode(model, key, theta, silent)
        return jnp.sum(discounted_rewards(discount, trajectory))

    return run


def episode(model: Model, horizon: int) -> Callable[[Array, Policy], Trajectory]:
    """`episode(key, policy) -> trajectory` under actions drawn from N(mu^T phi(s), sigma^2).

    The actions that it keeps are those drawn; the transition may hold them to its limit.
    """

    def run(key: Array, policy: Policy) -> Trajectory:
        key_noise, key_action = jax.random.split(key)
        draws = jax.random.normal(key_action, (horizon, model.actions), policy.mu.dtype)
        return _episode(model, key_noise, policy.mu, policy.sigma * draws)

    return run


def _episode(model: Model, key: Array, theta: Array, push: Array) -> Trajectory:
    """One episode under a = theta^T phi(s) + push, with a push `[A]` for each of its T steps."""
    horizon = push.shape[0]
    noise = jax.random.normal(key, (horizon + 1, len(model.low)), theta.dtype)

    def step(state: Array, drawn: tuple[Array, Array]) -> tuple[Array, tuple[Array, Array, Array]]:
        features = model.basis(jnp, state)
        action = linear(theta, features) + drawn[0]
        after = model.transition(jnp, state, action, drawn[1])
        return after, (features, action, model.reward(jnp, state, action, after))

    steps = jax.lax.scan(step, model.initial(jnp, noise[0]), (push, noise[1:]))[1]
    return Trajectory(*steps, jnp.int32(horizon))

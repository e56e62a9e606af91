"""A task's equations, once, for JAX and for NumPy; and the rollout of a linear policy in them.

Every function of a model takes the array namespace `xp` (`jax.numpy` or `numpy`) first, so that the
vectorised rollouts and the Gymnasium environments run the same lines.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from recoup.policies import linear


class Model(NamedTuple):
    """One control problem: where it starts, how it moves, what it pays, what the policy sees."""

    initial: Callable[[Any, Any], Any]  # xp, noise [S] -> state [S]
    transition: Callable[[Any, Any, Any, Any], Any]  # xp, state, action [A], noise [S] -> state
    reward: Callable[[Any, Any, Any, Any], Any]  # xp, state, action [A], next state -> scalar
    basis: Callable[[Any, Any], Any]  # xp, state -> features [F]
    features: int  # F
    low: tuple[float, ...]  # bounds of the state, which is the observation
    high: tuple[float, ...]
    actions: int = 1  # A
    action_limit: float = float("inf")  # the transition holds the action to +- this


def policy(model: Model) -> Callable[[Any, Any], np.ndarray]:
    """`act(theta, observation) -> action [A]` of the linear policy, on the host."""

    def act(theta: Any, observation: Any) -> np.ndarray:
        return linear(np.asarray(theta), model.basis(np, np.asarray(observation)))

    return act


def rollout(model: Model, horizon: int, discount: float) -> Callable[[Array, Array], Array]:
    """`rollout(key, theta) -> return` of one episode under the policy a = theta^T phi(s).

    Implements: zhao2013 S2.1 R(h) = sum_t gamma^(t-1) r(s_t, a_t, s_{t+1}), h drawn from
    p(h | theta) = p(s_1) prod_t p(s_{t+1} | s_t, a_t) p(a_t | s_t, theta).
    """

    def run(key: Array, theta: Array) -> Array:
        noise = jax.random.normal(key, (horizon + 1, len(model.low)), theta.dtype)

        def step(carry: tuple[Array, Array], eps: Array) -> tuple[tuple[Array, Array], Array]:
            state, scale = carry
            a = linear(theta, model.basis(jnp, state))
            after = model.transition(jnp, state, a, eps)
            return (after, scale * discount), scale * model.reward(jnp, state, a, after)

        start = (model.initial(jnp, noise[0]), jnp.ones((), theta.dtype))
        return jnp.sum(jax.lax.scan(step, start, noise[1:])[1])

    return run

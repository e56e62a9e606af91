"""What a search is over: policy parameters, or the actions of one stochastic policy."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from recoup.checks import (
    InputError,
    check_shape,
    is_traced,
)
from recoup.core.arrays import Dtype
from recoup.core.families.trajectory import Trajectory, discounted_rewards, ended
from recoup.core.types import Given, Samples


class Space(NamedTuple):
    """What a search is told, and how that becomes samples and returns."""

    means: int
    stds: int
    empty: Callable[[Dtype], Samples]  # dtype -> a sample of zeros
    check: Callable[[int, Given, Given], None]  # N, what was told, returns: raises if it cannot be
    receive: Callable[[Samples, Given, Dtype], tuple[Samples, Array, Array]]
    # what was told, returns, dtype -> samples [N], returns [N], which of them have failed [N]
    as_arrays: Callable[[Given], Samples]  # what was told, of whatever lists it is made


def parameter_space(dim: int) -> Space:
    """The sample is theta `[D]`; the return is told with it."""

    def check(batch: int, theta: Given, returns: Given) -> None:
        check_shape("`tell(theta=...)`", theta, "[N, D]", (batch, dim))
        check_shape("`tell(returns=...)`", returns, "[N]", (batch,))

    def receive(theta: Array, returns: Array, dtype: Dtype) -> tuple[Array, Array, Array]:
        return theta.astype(dtype), returns, ~jnp.isfinite(returns)

    return Space(
        means=dim,
        stds=dim,
        empty=lambda dtype: jnp.zeros(dim, dtype),
        check=check,
        receive=receive,
        as_arrays=as_array,
    )


def action_space(dim: int, count: int, horizon: int, discount: float) -> Space:
    """The sample is the trajectory of a Gaussian policy of `count` actions; it holds its return."""
    features = dim // count

    def check(batch: int, told: Given, returns: Given) -> None:
        if not isinstance(told, Trajectory):
            raise InputError(
                "`tell(theta=...)` must be a `recoup.Trajectory` for a method that explores in "
                f"action space, got {type(told).__name__}."
            )
        if returns is not None:
            raise InputError(
                "`tell(returns=...)` must be left out for a method that explores in action space: "
                "the return of a trajectory is in its rewards."
            )
        shapes = {
            "features": ("[N, T, F]", (batch, horizon, features)),
            "actions": ("[N, T, A]", (batch, horizon, count)),
            "rewards": ("[N, T]", (batch, horizon)),
            "steps": ("[N]", (batch,)),
        }
        for name, (letters, shape) in shapes.items():
            check_shape(f"`tell` of a trajectory's {name}", getattr(told, name), letters, shape)
        if not is_traced(told.steps):
            check_steps(told.steps, horizon)

    def receive(told: Trajectory, _: None, dtype: Dtype) -> tuple[Trajectory, Array, Array]:
        features, acts, rewards = (x.astype(dtype) for x in told[:3])
        kept = jax.vmap(ended)(Trajectory(features, acts, rewards, told.steps.astype(jnp.int32)))
        returns = jnp.sum(jax.vmap(partial(discounted_rewards, discount))(kept), axis=1)
        samples, failed = without_failed(kept, ~jnp.isfinite(returns))
        return samples, returns, failed

    def empty(dtype: Dtype) -> Trajectory:
        return Trajectory(
            features=jnp.zeros((horizon, features), dtype),
            actions=jnp.zeros((horizon, count), dtype),
            rewards=jnp.zeros(horizon, dtype),
            steps=jnp.zeros((), jnp.int32),
        )

    return Space(
        means=dim,
        stds=count,
        empty=empty,
        check=check,
        receive=receive,
        as_arrays=lambda told: Trajectory(*map(as_array, told)),
    )


def as_array(x: Given) -> Array:
    """What was told as an array of JAX; to ask that of one takes longer than to see it."""
    return x if isinstance(x, Array) else jnp.asarray(x)


def check_steps(steps: Given, horizon: int) -> None:
    """Raises unless all `steps [N]` are whole numbers in 1..T."""
    for i, count in enumerate(np.asarray(steps).tolist()):
        if count != count // 1 or not 1 <= count <= horizon:
            raise InputError(
                f"`tell` of a trajectory's steps must be whole numbers in 1..{horizon}, got "
                f"{count} at [{i}]."
            )


def without_failed(samples: Samples, failed: Array) -> tuple[Samples, Array]:
    """Zeros in place of samples that are `failed [N]` or not finite, and which they are."""
    for leaf in jax.tree.leaves(samples):
        failed |= ~jnp.all(jnp.isfinite(leaf).reshape(leaf.shape[0], -1), axis=1)
    return jax.tree.map(
        lambda x: jnp.where(failed.reshape(-1, *(1,) * (x.ndim - 1)), 0, x), samples
    ), failed

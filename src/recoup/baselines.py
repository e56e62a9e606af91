"""Baselines: what is subtracted from the returns before they meet the scores.

Each takes returns, weights (zero where a sample is not valid) and the mask of valid samples, all
`[B, N]`, and the scores; it gives a scalar, one number a sample `[B, N]`, or a pytree of rho (one
number a coordinate). Where nothing carries weight the baseline is 0; the gradient is 0 there
whatever is subtracted.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from recoup.directions import Scores

Baseline = Callable[[Array, Array, Array, Scores], Any]


def none(returns: Array, weights: Array, valid: Array, scores: Scores) -> Array:
    """No baseline, b = 0."""
    return jnp.zeros((), returns.dtype)


def mean(returns: Array, weights: Array, valid: Array, scores: Scores) -> Array:
    """The weighted mean return, sum w R / sum w, a scalar."""
    return scores.centre


def optimal(returns: Array, weights: Array, valid: Array, scores: Scores) -> Array:
    """The scalar baseline of least variance, joint over all of rho.

    Implements: zhao2013 Thm. 2 b* = sum R w^2 ||s||^2 / sum w^2 ||s||^2.
    """
    curvature = _relative(weights) ** 2 * scores.norms
    return _ratio(jnp.sum(curvature * returns), jnp.sum(curvature))


def coordinate(returns: Array, weights: Array, valid: Array, scores: Scores) -> Any:
    """The baseline of least variance of each coordinate of rho by itself, a pytree of rho.

    Implements: peters2006 per-coordinate b_i = sum R w^2 s_i^2 / sum w^2 s_i^2.
    """
    squared = _relative(weights) ** 2
    return jax.tree.map(_ratio, scores.squares(squared * returns), scores.squares(squared))


def leave_one_out(returns: Array, weights: Array, valid: Array, scores: Scores) -> Array:
    """The optimal scalar computed without the sample it is subtracted from, `[B, N]`.

    Implements: zhao2013 Thm. 2, leave-one-out. Sums leave a sample out by adding what lies before
    and behind it, so that a sample that outweighs all others costs no digits.
    """
    curvature = (_relative(weights) ** 2 * scores.norms).ravel()
    return _ratio(_others(curvature * returns.ravel()), _others(curvature)).reshape(returns.shape)


def split(returns: Array, weights: Array, valid: Array, scores: Scores) -> Array:
    """The optimal scalar of every second valid sample for the others and vice versa, `[B, N]`.

    Implements: zhao2013 S4 split-sample baseline, which the paper tried and dropped.
    """
    curvature = (_relative(weights) ** 2 * scores.norms).ravel()
    even = jnp.cumsum(valid.ravel()) % 2 == 1
    halves = jnp.stack([even, ~even])
    weighted = jnp.where(halves, curvature, 0.0)
    b_even, b_odd = _ratio(weighted @ returns.ravel(), jnp.sum(weighted, 1))
    return jnp.where(even, b_odd, b_even).reshape(returns.shape)


def _ratio(top: Array, bottom: Array) -> Array:
    return jnp.where(bottom > 0, top / jnp.where(bottom > 0, bottom, 1.0), 0.0)


def _relative(weights: Array) -> Array:
    largest = jnp.max(weights)
    return weights / jnp.where(largest > 0, largest, 1.0)


def _others(x: Array) -> Array:
    zero = jnp.zeros(1, x.dtype)
    before = jnp.concatenate([zero, jnp.cumsum(x[:-1])])
    behind = jnp.concatenate([jnp.cumsum(x[:0:-1])[::-1], zero])
    return before + behind

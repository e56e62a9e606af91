"""Baselines: what is subtracted from the returns before they meet the scores.

Each takes what the samples earned (returns, weights, the mask of valid samples, all `[B, N]`) and
the scores; it gives b, in the units of the returns: a scalar, one number a sample `[B, N]`, or a
pytree of rho (one number a coordinate). Those declared `relative` take returns relative to one that
occurred, `origin`, and so is their b: where all returns are equal, all are exactly zero, and so is
the gradient.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from recoup.core.arrays import behind
from recoup.core.directions import Earned, Scores, relative
from recoup.core.weights import by_draw

Baseline = Callable[[Earned, Scores], Any]


@relative
def none(earned: Earned, scores: Scores) -> Array:
    """No baseline, b = 0."""
    return -earned.origin


@relative
def mean(earned: Earned, scores: Scores) -> Array:
    """The weighted mean return, sum w R / sum w, a scalar."""
    return scores.centre


@relative
def optimal(earned: Earned, scores: Scores) -> Array:
    """The scalar baseline of least variance, joint over all of rho.

    Implements: zhao2013 Thm. 2 b* = sum R w^2 ||s||^2 / sum w^2 ||s||^2.
    """
    curvature = _relative(earned.weights) ** 2 * scores.norms
    return _ratio(jnp.sum(curvature * earned.returns), jnp.sum(curvature))


@relative
def coordinate(earned: Earned, scores: Scores) -> Any:
    """The baseline of least variance of each coordinate of rho by itself, a pytree of rho.

    Implements: peters2006 per-coordinate b_i = sum R w^2 s_i^2 / sum w^2 s_i^2.
    """
    squared = _relative(earned.weights) ** 2
    top = scores.squares(squared * earned.returns)
    return jax.tree.map(_ratio, top, scores.squares(behind(jnp, squared, *jax.tree.leaves(top))))


def leave_one_out(size: int) -> Baseline:
    """The optimal scalar computed without the draw it is subtracted from, `[B, N]`.

    Implements: zhao2013 Thm. 2, leave-one-out. A draw is `size` adjacent samples: a mirrored pair
    leaves together. Sums leave a draw out by adding what lies before and behind it, so that one
    that outweighs all others costs no digits. With no other draw there is no baseline, b = 0.
    """

    @relative
    def baseline(earned: Earned, scores: Scores) -> Array:
        curvature = _relative(earned.weights) ** 2 * scores.norms
        tops, bottoms = (by_draw(x, size) for x in (curvature * earned.returns, curvature))
        others = _ratio(_others(tops), _others(bottoms), otherwise=-earned.origin)
        return jnp.repeat(others, size).reshape(earned.returns.shape)

    return baseline


def earlier(size: int) -> Baseline:
    """The optimal scalar of earlier batches, and of the own one without the draw, `[B, N]`.

    Implements: zhao2013 Thm. 2, from earlier batches. What is subtracted from a draw depends
    neither on it nor on any that came later, so that no bias comes in; with batches to look back on
    it varies hardly more than the best constant would. A draw is `size` adjacent samples. With no
    other draw there is no baseline, b = 0.
    """

    @relative
    def baseline(earned: Earned, scores: Scores) -> Array:
        curvature = _relative(earned.weights) ** 2 * scores.norms
        tops, bottoms = (by_draw(x, size) for x in (curvature * earned.returns, curvature))
        order = jnp.broadcast_to(earned.order, earned.returns.shape).reshape(-1, size)[:, 0]
        by_time = jnp.argsort(order, stable=True)
        top, bottom = (_others_before(x[by_time], order[by_time]) for x in (tops, bottoms))
        found = _ratio(top, bottom, otherwise=-earned.origin)
        found = jnp.zeros_like(found).at[by_time].set(found)
        return jnp.repeat(found, size).reshape(earned.returns.shape)

    return baseline


def split(size: int) -> Baseline:
    """The optimal scalar of every second draw for the other draws and vice versa, `[B, N]`.

    Implements: zhao2013 S4 split-sample baseline, which the paper tried and dropped. A draw is
    `size` adjacent samples; those without a valid one are passed over.
    """

    @relative
    def baseline(earned: Earned, scores: Scores) -> Array:
        curvature = _relative(earned.weights) ** 2 * scores.norms
        tops, bottoms = (by_draw(x, size) for x in (curvature * earned.returns, curvature))
        even = jnp.cumsum(by_draw(earned.valid, size) > 0) % 2 == 1
        halves = jnp.stack([even, ~even])
        b_even, b_odd = _ratio(
            jnp.sum(jnp.where(halves, tops, 0.0), 1),
            jnp.sum(jnp.where(halves, bottoms, 0.0), 1),
            otherwise=-earned.origin,
        )
        return jnp.repeat(jnp.where(even, b_odd, b_even), size).reshape(earned.returns.shape)

    return baseline


def _ratio(top: Array, bottom: Array, otherwise: Any = 0.0) -> Array:
    return jnp.where(bottom > 0, top / jnp.where(bottom > 0, bottom, 1.0), otherwise)


def _relative(weights: Array) -> Array:
    largest = jnp.max(weights)
    return weights / jnp.where(largest > 0, largest, 1.0)


def _others_before(x: Array, order: Array) -> Array:
    """Sums of all entries up to the end of each one's batch, without itself; sorted by `order`."""

    def add(late: tuple[Array, Array], early: tuple[Array, Array]) -> tuple[Array, Array]:
        (a, first), (b, second) = late, early
        return jnp.where(second, b, a + b), first | second

    zero = jnp.zeros(1, x.dtype)
    before = jnp.concatenate([zero, jnp.cumsum(x[:-1])])
    ends = jnp.concatenate([order[:-1] != order[1:], jnp.ones(1, bool)])[::-1]
    next_one = jnp.where(ends, 0.0, jnp.concatenate([zero, x[:0:-1]]))
    behind, _ = jax.lax.associative_scan(add, (next_one, ends))
    return before + behind[::-1]


def _others(x: Array) -> Array:
    zero = jnp.zeros(1, x.dtype)
    before = jnp.concatenate([zero, jnp.cumsum(x[:-1])])
    behind = jnp.concatenate([jnp.cumsum(x[:0:-1])[::-1], zero])
    return before + behind

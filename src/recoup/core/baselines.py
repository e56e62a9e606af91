"""Baselines: what is subtracted from the returns before they meet the scores.

Each takes what the samples earned (returns, weights, the mask of valid samples, all `[B, N]`) and
the scores; it gives b, in the units of the returns: a scalar, one number a sample `[B, N]`, or a
pytree of rho (one number a coordinate). Those declared `relative` take returns relative to one that
occurred, `origin`, and so is their b: where all returns are equal, all are exactly zero, and so is
the gradient. Arrays of NumPy stay so; those of JAX may be traced.
"""

from collections.abc import Callable

import numpy as np

from recoup.core.arrays import Array, namespace, tree_map
from recoup.core.gradient import Earned, Scores, relative
from recoup.core.types import Namespace, Pytree, Rho
from recoup.core.weights import by_draw, relative_weights

Baseline = Callable[[Earned, Scores], Pytree]


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
    xp, curvature = namespace(earned.weights), relative_weights(earned.weights) ** 2 * scores.norms
    return _ratio(xp.sum(curvature * earned.returns), xp.sum(curvature))


@relative
def coordinate(earned: Earned, scores: Scores) -> Rho:
    """The baseline of least variance of each coordinate of rho by itself, a pytree of rho.

    Implements: peters2006 per-coordinate b_i = sum R w^2 s_i^2 / sum w^2 s_i^2.
    """
    xp, squared = namespace(earned.weights), relative_weights(earned.weights) ** 2
    top = scores.squares(squared * earned.returns)
    return tree_map(xp, _ratio, top, scores.squares(squared))


def leave_one_out(size: int) -> Baseline:
    """The optimal scalar computed without the draw it is subtracted from, `[B, N]`.

    Implements: zhao2013 Thm. 2, leave-one-out. A draw is `size` adjacent samples: a mirrored pair
    leaves together. Sums leave a draw out by adding what lies before and after it, so that one
    that outweighs all others costs no digits. With no other draw there is no baseline, b = 0.
    """

    @relative
    def baseline(earned: Earned, scores: Scores) -> Array:
        xp, (tops, bottoms) = namespace(earned.weights), _by_draw(earned, scores, size)
        found = _ratio(_others(xp, tops), _others(xp, bottoms), otherwise=-earned.origin)
        return xp.repeat(found, size).reshape(earned.returns.shape)

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
        xp, (tops, bottoms) = namespace(earned.weights), _by_draw(earned, scores, size)
        order = xp.broadcast_to(earned.order, earned.returns.shape).reshape(-1, size)[:, 0]
        by_time = xp.argsort(order, stable=True)
        top, bottom = (_others_before(xp, x[by_time], order[by_time]) for x in (tops, bottoms))
        found = _ratio(top, bottom, otherwise=-earned.origin)[xp.argsort(by_time)]
        return xp.repeat(found, size).reshape(earned.returns.shape)

    return baseline


def split(size: int) -> Baseline:
    """The optimal scalar of every second draw for the other draws and vice versa, `[B, N]`.

    Implements: zhao2013 S4 split-sample baseline, which the paper tried and dropped. A draw is
    `size` adjacent samples; those without a valid one are passed over.
    """

    @relative
    def baseline(earned: Earned, scores: Scores) -> Array:
        xp, (tops, bottoms) = namespace(earned.weights), _by_draw(earned, scores, size)
        even = xp.cumsum(by_draw(earned.valid, size) > 0) % 2 == 1
        halves = xp.stack([even, ~even])
        b_even, b_odd = _ratio(
            xp.sum(xp.where(halves, tops, 0.0), 1),
            xp.sum(xp.where(halves, bottoms, 0.0), 1),
            otherwise=-earned.origin,
        )
        return xp.repeat(xp.where(even, b_odd, b_even), size).reshape(earned.returns.shape)

    return baseline


def _by_draw(earned: Earned, scores: Scores, size: int) -> tuple[Array, Array]:
    """w^2 ||s||^2 R and w^2 ||s||^2 of each draw `[G]`; but for a common factor."""
    curvature = relative_weights(earned.weights) ** 2 * scores.norms
    return by_draw(curvature * earned.returns, size), by_draw(curvature, size)


def _ratio(top: Array, bottom: Array, otherwise: Array = 0.0) -> Array:
    xp = namespace(bottom)
    return xp.where(bottom > 0, top / xp.where(bottom > 0, bottom, 1.0), otherwise)


def _others(xp: Namespace, x: Array) -> Array:
    """Sums of all entries but one, for each `[G]`."""
    zero = xp.zeros(1, x.dtype)
    before = xp.concatenate([zero, xp.cumsum(x[:-1])])
    after = xp.concatenate([xp.cumsum(x[:0:-1])[::-1], zero])
    return before + after


def _others_before(xp: Namespace, x: Array, order: Array) -> Array:
    """Sums of all entries up to the end of each one's batch, without itself; sorted by `order`."""
    zero = xp.zeros(1, x.dtype)
    before = xp.concatenate([zero, xp.cumsum(x[:-1])])
    ends = xp.concatenate([order[:-1] != order[1:], xp.ones(1, bool)])
    return before + _after(xp, x, ends)


def _after(xp: Namespace, x: Array, ends: Array) -> Array:
    """Sums of the entries after each one, up to the next end: two forms, one loop in NumPy."""
    if xp is np:
        parts = np.split(x, np.flatnonzero(ends)[:-1] + 1)
        zero = np.zeros(1, x.dtype)
        return np.concatenate([np.concatenate([np.cumsum(p[:0:-1])[::-1], zero]) for p in parts])
    from jax import lax

    def add(late: tuple[Array, Array], early: tuple[Array, Array]) -> tuple[Array, Array]:
        (a, first), (b, second) = late, early
        return xp.where(second, b, a + b), first | second

    last = ends[::-1]
    next_one = xp.where(last, 0.0, xp.concatenate([xp.zeros(1, x.dtype), x[:0:-1]]))
    found, _ = lax.associative_scan(add, (next_one, last))
    return found[::-1]

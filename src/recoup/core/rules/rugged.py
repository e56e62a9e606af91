"""Noise told from ruggedness by trying a candidate twice, and a bold step where noise is little.

What the regression cannot explain it calls noise: that of rollouts, and a landscape too rugged for
it. Two rollouts of one candidate differ by the first alone. Where the second is most of it, returns
say what they seem to say, and the distribution is fitted to the best samples, as REPS does.
"""

from typing import NamedTuple

import numpy as np

from recoup.core.arrays import Array, Dtype
from recoup.core.families.shapes import DIAGONAL, Shape
from recoup.core.rules.classics import bounded, coefficients, fitted
from recoup.core.rules.newton import Stretch
from recoup.core.rules.tuning import TUNED
from recoup.core.types import Namespace

UNLIKELY = (0.103, 0.352, 0.711, 1.145, 1.635)  # chi^2 of 2 to 6 pairs, below which 5 % lie
SMALLEST = 3  # results of a batch from which it may repeat a candidate: two are left
PRECISIONS = 100  # machine precisions, over the squares, within which two samples are one candidate


class Pairs(NamedTuple):
    """What candidates that were tried twice have said."""

    count: Array  # of them so far
    noise: Array  # standard deviation of a candidate's return, as their differences have it
    wanted: Array  # whether the next batch is to try its first candidate twice


def no_pairs(xp: Namespace, dtype: Dtype) -> Pairs:
    """Before any."""
    return Pairs(xp.zeros((), dtype=dtype), xp.zeros((), dtype=dtype), xp.asarray(False))


def twins(xp: Namespace, apart: Array, squares: Array, valid: Array) -> Array:
    """Which samples `[n, n]` are one candidate, by |z_a - z_b|^2 and |z|^2; not with itself."""
    digits = PRECISIONS * float(np.finfo(apart.dtype).eps)
    same = apart <= digits * (1 + squares[:, None] + squares)
    return same & valid[:, None] & valid & ~xp.eye(valid.shape[0], dtype=bool)


def firsts(xp: Namespace, same: Array) -> Array:
    """Which samples `[n]` are the first of their candidate."""
    number = xp.arange(same.shape[0])
    return ~xp.any(same & (number[:, None] > number), axis=1)


def merged(xp: Namespace, same: Array, returns: Array, valid: Array) -> tuple[Array, Array]:
    """Returns `[n]`, means over twins; and those samples that stand for their candidate `[n]`.

    A model that saw twins as two points would take their nearness for a lack of noise.
    """
    number = xp.arange(valid.shape[0])
    same = same & valid[:, None] & valid
    best = xp.max(xp.where(valid, returns, -xp.inf))
    below = xp.where(valid, returns - best, 0.0)  # so that equal ones stay equal
    group = (same | ((number[:, None] == number) & valid)).astype(below.dtype)
    mean = group @ below / xp.maximum(xp.sum(group, axis=1), 1)
    return xp.where(valid, best + mean, 0.0), valid & firsts(xp, same)


def heard(xp: Namespace, pairs: Pairs, same: Array, returns: Array, fresh: Array) -> Pairs:
    """With the pairs that `fresh [n]` samples have closed.

    The variance of the return of one candidate is half the mean square of such differences.
    """
    number = xp.arange(fresh.shape[0])
    new = same & (fresh[:, None] | fresh) & (number[:, None] < number)
    new = new & firsts(xp, same)[:, None]  # of several twins, each beside the first
    apart = xp.where(new, xp.abs(returns[:, None] - returns), 0.0)
    largest = xp.maximum(xp.max(apart), pairs.noise)
    unit = xp.where(largest > 0, largest, 1.0)  # squares of any returns are then numbers
    count, old = xp.sum(new), xp.minimum(pairs.count, TUNED.remembered)
    square = old * (pairs.noise / unit) ** 2 + xp.sum((apart / unit) ** 2) / 2
    noise = unit * xp.sqrt(square / xp.maximum(old + count, 1))
    return pairs._replace(count=pairs.count + count, noise=noise)


def boldness(xp: Namespace, pairs: Pairs, unexplained: Array, deviation: Array) -> Array:
    """Share of the bold step: what is rugged of the returns' variance, from two thirds of it on.

    `unexplained` is the share of it that the model calls noise, `deviation` its root. Of the noise
    of rollouts, as much as the pairs make likely: the upper end of its interval, one-sided, 95 %.
    """
    many = xp.clip(pairs.count, 2, min(TUNED.remembered, 1 + len(UNLIKELY)))
    unlikely = xp.asarray(UNLIKELY, dtype=pairs.noise.dtype)[xp.asarray(many - 2, dtype=int)]
    relative = pairs.noise / xp.where(deviation > 0, deviation, 1.0)
    noise = xp.where(pairs.count > 1, relative**2 * many / unlikely, 1.0)
    least = TUNED.unexplained
    return xp.clip((unexplained - noise - least) / (1 - least), 0.0, 1.0)


def curious(
    xp: Namespace, pairs: Pairs, unexplained: Array, bold: Array, updates: Array, batch: Array
) -> Pairs:
    """The pairs, and whether the next batch, as large as this one, is to repeat a candidate."""
    again = (pairs.count < TUNED.pairs) | ((bold > 0) & (updates % TUNED.again == 0))
    return pairs._replace(wanted=again & (unexplained > TUNED.unexplained) & (batch >= SMALLEST))


def bold_step(xp: Namespace, z: Array, omega: Array, returns: Array, shape: Shape) -> Stretch:
    """The distribution fitted to what REPS makes of samples with weights `omega [n]`.

    Of the spread only the size along each coordinate: samples that count are too few for more.
    """
    c = coefficients(xp, bounded(TUNED.bold_kl), omega, returns)
    found = fitted(xp, z, c, DIAGONAL)
    log = xp.log(xp.maximum(found.covariance, 1e-30)) / 2
    log = xp.where(xp.sum(c) > 0, xp.clip(log, -TUNED.bold_turn, TUNED.bold_turn), 0.0)
    return Stretch(found.mean, shape.along(xp, log))

"""The chance that a rollout breaks a limit on a number told beside its return. No JAX.

The number is modelled as returns are, by the Gaussian process of `core.surrogate`, on a scale
that far values do not stretch. What breaks a limit too likely stands for a bad return to the rule,
the worse the farther out it lies, so that there is a slope that leads back.
"""

from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from recoup.core.arrays import quantiles
from recoup.core.plain.belief import (
    Belief,
    FittedCell,
    Hyper,
    believed,
    looks_at,
    seen,
    stretch_of,
)
from recoup.core.prior import NOISES
from recoup.core.surrogate import cells, points_of, shares, standardised
from recoup.core.worth import ROUNDING, proportion

MODELLED = 256  # results, the nearest, that the model looks at
TAKEN_AS_TOLD = 5  # results below which a number is taken as it was told
UNIT = 4.0  # median distances from the median, within which the scale of a number is straight
SOFT = 0.25  # standard deviations of a number beyond its limit, over which a return gives way
WIDER = 1.6  # times a mean's own error: the noise is not known for certain either
PLACES = 32  # equally likely values of a mean that is in doubt
ENDS, TINY = (0.025, 0.975), 1e-9
BAD = 0.3  # of the returns within lie below what one beyond is worth, at most
STEEP = 0.3  # spreads of the returns that a standard deviation beyond costs, besides


class Bound(NamedTuple):
    """A limit on one of the numbers."""

    column: int
    sign: float  # of the number, where larger is nearer to breaking it
    at: float
    touching: bool  # whether the bound itself is within


class LimitsToKeep(NamedTuple):
    """Limits, and the probability with which each is to be kept."""

    bounds: tuple[Bound, ...]
    within: float


class ArsinhScale(NamedTuple):
    """A scale that is straight near the middle of some numbers, and logarithmic far from it."""

    middle: float
    unit: float

    def of(self, x: np.ndarray | float) -> np.ndarray:
        """Numbers on the scale."""
        return np.arcsinh((np.asarray(x) - self.middle) / self.unit)

    def back(self, y: np.ndarray | float) -> np.ndarray:
        """What lies at places of the scale."""
        return self.middle + self.unit * np.sinh(y)


def scale_of(values: np.ndarray) -> ArsinhScale:
    """The scale of `values [n]`, all of them finite."""
    middle = float(np.median(values))
    away = np.abs(values - middle)
    unit = UNIT * float(np.median(away)) or float(np.sqrt(np.mean(away**2)))
    return ArsinhScale(middle, unit or 1.0)


def edge_of(values: np.ndarray, bound: Bound) -> float:
    """Where a number that varies smoothly breaks a limit.

    The bound; where values lie on it exactly, as counts do, halfway to the next beyond or before.
    """
    x, at = bound.sign * values, bound.sign * bound.at
    if not (x == at).any():
        return bound.at
    before, beyond = at - x[x < at], x[x > at] - at
    gap = np.min(beyond if bound.touching else before, initial=np.inf)
    if not np.isfinite(gap):
        gap = np.min(before if bound.touching else beyond, initial=np.inf)
    half = gap / 2 if np.isfinite(gap) else 0.0
    return bound.at + bound.sign * (half if bound.touching else -half)


def are_equal(values: np.ndarray) -> bool:
    """Whether numbers do not vary, so that there is nothing to model."""
    return bool(np.ptp(values) <= ROUNDING * np.max(np.abs(values)))


def excess(z: np.ndarray, values: np.ndarray, bounds: Sequence[Bound], within: float) -> np.ndarray:
    """How far `bounds` on a number are broken too likely at each `z [n, D]`, 0 where they are not.

    `values [n]` are what was told of it, not a number where that is not known. In units of its
    standard deviation on its scale: by so much less, a rollout would be within.
    """
    known = np.isfinite(values)
    total = np.zeros(len(z))
    if known.sum() < TAKEN_AS_TOLD or are_equal(values[known]):
        return total
    scale = scale_of(values[known])
    y, level, unit = standardised(scale.of(values[known]))
    mean, deviation = _at_all(z, known, y)
    for bound in bounds:
        edge = (float(scale.of(edge_of(values[known], bound))) - level) / unit
        past = bound.sign * (mean - edge) + NormalDist().inv_cdf(within) * deviation
        total += np.maximum(past, 0.0)
    return total


def _at_all(z: np.ndarray, known: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation `[n]` of another rollout at each of `z`, from `y` at the known.

    Over the grid of the model, by evidence; where nothing was told, by its likeliest cell.
    """
    which = np.flatnonzero(known)
    order = np.argsort(np.sum(z[which] ** 2, axis=1), kind="stable")[:MODELLED]
    near = which[order]
    fitted = _fitted(z.shape[1], z[near].tobytes(), y[order].tobytes())
    mean, variance = np.zeros(len(z)), np.zeros(len(z))
    mean[near], variance[near] = fitted.mean, fitted.variance
    others = np.setdiff1d(np.arange(len(z)), near)
    if len(others):
        looks = looks_at(z[others] * fitted.stretch, np.zeros((len(others), z.shape[1])))
        mean[others], spread = fitted.likeliest.expects(looks)
        hyper = fitted.likeliest.hyper
        variance[others] = np.diagonal(spread) + hyper.signal * hyper.noise
    return mean, np.sqrt(np.maximum(variance, 0.0))


class LimitModel(NamedTuple):
    """What the model says of another rollout at the results that it has seen."""

    mean: np.ndarray  # [n]
    variance: np.ndarray  # [n]
    stretch: np.ndarray  # [D] by which coordinates are multiplied
    likeliest: FittedCell  # cell of its grid


@lru_cache(maxsize=8)  # a move that is rehearsed looks at the same results many times
def _fitted(dim: int, where: bytes, told: bytes) -> LimitModel:
    """The model of the numbers `y [n]` at `z [n, D]`, both as bytes of float64."""
    z, y = np.frombuffer(where).reshape(-1, dim), np.frombuffer(told)
    stretch = stretch_of(z, y)
    points = points_of(z * stretch)
    found = list(cells(points, y))
    share = shares(np.concatenate([cell.evidence for cell in found]))
    noise = np.array(NOISES)[:, None]
    means = np.concatenate([y - noise * cell.k_y for cell in found])
    own = [cell.signal[:, None] * noise * (2 - noise * cell.diagonal) for cell in found]
    mean = share @ means
    variance = share @ (np.concatenate(own) + (means - mean) ** 2)
    best, which = divmod(int(np.argmax(share)), len(NOISES))
    cell = found[best]
    signal = float(cell.signal[which])
    hyper = Hyper(cell.length, cell.bowl, 0.0, NOISES[which], signal, 1.0)
    at = looks_at(points.z, np.zeros_like(points.z))
    return LimitModel(mean, variance, stretch, seen([hyper], at, points.middle, y)[0])


def worth_within(
    returns: np.ndarray, valid: np.ndarray, over: np.ndarray, modelled: np.ndarray
) -> np.ndarray:
    """Returns `[n]` as the rule is to see them, where limits are broken too likely by `over [n]`.

    A return gives way to a bad one of those within, over a short stretch, and falls with the
    distance beyond it, in units of what returns vary by. One that is still worse stays so as far as
    most are within: while few are, what leads back is to be seen, and not where returns fall.
    """
    part = valid & modelled
    inside = part & (over == 0)
    some = inside if inside.any() else part
    if not some.any() or not over.any():
        return returns
    bad = float(quantiles(np, returns, some, (BAD,))[0])
    spread = float(np.std(returns[part])) or 1e-3 * (1 + abs(bad))
    share, settled = np.clip(over / SOFT, 0.0, 1.0), float(inside.sum() / part.sum())
    beyond = settled * np.minimum(returns, bad) + (1 - settled) * bad
    given = (1 - share) * returns + share * beyond
    return np.where(valid, given - STEEP * spread * over, returns)


def beyond(z: np.ndarray, also: np.ndarray, kept: LimitsToKeep) -> np.ndarray:
    """How far `[n]` limits on the numbers `also [n, A]` are broken too likely at `z [n, D]`."""
    found = np.zeros(len(z))
    for column in range(also.shape[1]):
        bounds = [bound for bound in kept.bounds if bound.column == column]
        found += excess(z, also[:, column], bounds, kept.within)
    return found


# -- what is said of one theta --


class Modelled(NamedTuple):
    """The model of a number near z = 0."""

    belief: Belief
    scale: ArsinhScale
    values: np.ndarray  # [n] that it was made of


class ChanceWithin(NamedTuple):
    """A chance of being within a limit, with its 95 % interval."""

    rate: float
    low: float
    high: float


def modelled(z: np.ndarray, values: np.ndarray) -> Modelled:
    """The model of `values [n]` at `z [n, D]`, all of them known."""
    scale = scale_of(values)
    return Modelled(believed(z, scale.of(values)), scale, values)


def chance_within(found: Modelled, bound: Bound) -> ChanceWithin:
    """The chance that a rollout at z = 0 is within a limit.

    Given the true mean g, it is Phi((edge - g) / noise); what is believed of g is a mixture of
    Gaussians, one for each cell of the model, and each of them stands for `PLACES` values of g.
    """
    share, mean, error, noise = _cells_at(found)
    belief = found.belief
    edge = (float(found.scale.of(edge_of(found.values, bound))) - belief.level) / belief.scale
    places = np.array([NormalDist().inv_cdf((i + 0.5) / PLACES) for i in range(PLACES)])
    g = mean[:, None] + WIDER * error[:, None] * places
    chances = _below(bound.sign * (edge - g) / np.maximum(noise, TINY)[:, None])
    mass = np.repeat(share / PLACES, PLACES)
    order = np.argsort(chances, axis=None, kind="stable")
    at = np.searchsorted(np.cumsum(mass[order]), ENDS)
    low, high = (float(x) for x in chances.ravel()[order][np.minimum(at, len(order) - 1)])
    least = 1 / (2 * len(found.values))  # so many results cannot tell a smaller chance from none
    rate = float(mass @ chances.ravel())
    low, high = min(low, rate), max(high, rate)
    return ChanceWithin(rate, 0.0 if low < least else low, 1.0 if high > 1 - least else high)


def chance_of_equal(values: np.ndarray, bound: Bound) -> ChanceWithin:
    """The chance that a number is within its bound, where all its values are equal."""
    past = bound.sign * (float(values[0]) - bound.at)
    inside = past <= 0 if bound.touching else past < 0
    n = len(values)
    low, high = proportion(n if inside else 0, n)
    return ChanceWithin((n + 1) / (n + 2) if inside else 1 / (n + 2), low, high)


def range_of(found: Modelled) -> tuple[float, float, float]:
    """The number that a rollout at z = 0 has in the middle, and between what 95 of 100 lie."""
    share, mean, error, noise = _cells_at(found)
    middle = float(share @ mean)
    spread = float(share @ ((WIDER * error) ** 2 + noise**2 + (mean - middle) ** 2)) ** 0.5
    half = NormalDist().inv_cdf(ENDS[1]) * spread
    belief = found.belief
    ends = (belief.level + belief.scale * x for x in (middle, middle - half, middle + half))
    value, low, high = (float(found.scale.back(x)) for x in ends)
    return value, low, high


def _cells_at(found: Modelled) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Of each cell of the model its share, and mean, error and noise at z = 0 `[c]`."""
    belief = found.belief
    looks = belief.looks(np.zeros((1, len(belief.stretch))))
    rows = [(cell.hyper, *cell.expects(looks)) for cell in belief.cells]
    share = np.array([hyper.share for hyper, _, _ in rows])
    mean = np.array([float(mean[0]) for _, mean, _ in rows])
    error = np.sqrt([max(float(spread[0, 0]), 0.0) for _, _, spread in rows])
    noise = np.sqrt([hyper.signal * hyper.noise for hyper, _, _ in rows])
    return share, mean, error, noise


def _below(x: np.ndarray) -> np.ndarray:
    """Phi: the chance that a standard normal number lies below `x`."""
    return np.array([NormalDist().cdf(float(one)) for one in x.ravel()]).reshape(x.shape)

"""Weights and what they are worth, as `core.weights`; baselines, as `core.baselines`."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from recoup.core.families.rho import Diagonal

LARGEST = 0.25 * np.log(np.finfo(float).max)  # of a log-weight


class Densities(NamedTuple):
    """Log-densities `[n]` of samples, relative to one reference; empty where nobody looks."""

    target: np.ndarray
    own: np.ndarray
    mixture: np.ndarray  # with the counts divided by their sum


Ratio = Callable[[Densities], np.ndarray]
Shaper = Callable[[np.ndarray], np.ndarray]


def unit_ratio(d: Densities) -> np.ndarray:
    """w = 1."""
    return np.zeros_like(d.target)


def own_ratio(d: Densities) -> np.ndarray:
    """Against the proposal that drew each sample."""
    return d.target - d.own


def mixture_ratio(d: Densities) -> np.ndarray:
    """Against the mixture of all proposals."""
    return d.target - d.mixture


def power_mean_ratio(power: float) -> Ratio:
    """w / ((1 - power) + power w)."""

    def ratio(d: Densities) -> np.ndarray:
        log_w = own_ratio(d)
        with np.errstate(divide="ignore"):
            log_power, log_rest = np.log(power), np.log1p(-power)
        return log_w - np.logaddexp(log_rest, log_power + log_w)

    return ratio


def flatten(nu: float) -> Shaper:
    """w^nu."""
    return lambda log_w: nu * log_w


def truncate(w_max: float) -> Shaper:
    """min(w, w_max)."""
    return lambda log_w: np.minimum(log_w, np.log(w_max))


def weigh(
    ratio: Ratio, shapers: Sequence[Shaper], d: Densities, valid: np.ndarray, normalised: bool
) -> np.ndarray:
    """Weights `[n]` after shaping, zero where not valid; `normalised`, over their mean."""
    log_w = ratio(d)
    for shaper in shapers:
        log_w = shaper(log_w)
    if normalised and valid.any():
        total = np.logaddexp.reduce(log_w[valid])
        log_w = log_w - (total - np.log(np.sum(valid)) if np.isfinite(total) else 0.0)
    return np.where(valid, np.exp(np.minimum(log_w, LARGEST)), 0.0)


def by_draw(x: np.ndarray, size: int) -> np.ndarray:
    """Sums `[G]` over the `size` adjacent samples that are one draw."""
    return np.sum(x.reshape(-1, size), axis=1)


def effective_sample_size(weights: np.ndarray) -> float:
    """(sum w)^2 / sum w^2; 0 where all weights are zero."""
    scaled = relative_weights(weights)
    return float(np.sum(scaled) ** 2 / max(np.sum(scaled**2), np.finfo(float).tiny))


def relative_weights(weights: np.ndarray) -> np.ndarray:
    """Weights over the largest, so that no square overflows."""
    largest = np.max(weights, initial=0.0)
    return weights / (largest if largest > 0 else 1.0)


def standard_error(residuals: np.ndarray, drew: np.ndarray, stratum: np.ndarray) -> float:
    """Of a sum of independent `residuals [G]`, drawn in strata, as `intervals.standard_error`."""
    total = int(np.sum(drew))
    if total < 2:
        return float("nan")
    count = np.bincount(stratum, weights=drew)
    mean = np.bincount(stratum, weights=drew * residuals) / np.maximum(count, 1)
    several = count > 1
    factor = np.where(several, count / np.maximum(count - 1, 1), total / (total - 1))
    apart = residuals - np.where(several, mean, 0.0)[stratum]
    return float(np.sqrt(np.sum(drew * factor[stratum] * apart**2)))


# -- baselines --


class Earned(NamedTuple):
    """What samples earned and weigh, all `[n]`; returns are relative to `origin`."""

    returns: np.ndarray
    weights: np.ndarray
    valid: np.ndarray
    order: np.ndarray
    origin: float
    centre: float  # their weighted mean
    scores: Diagonal  # [n, D] each

    def curvature(self, size: int) -> tuple[np.ndarray, np.ndarray]:
        """w^2 ||s||^2 R and w^2 ||s||^2 of each draw `[G]`; but for a common factor."""
        norms = sum(np.sum(s**2, axis=1) for s in self.scores)
        squared = relative_weights(self.weights) ** 2 * norms
        return by_draw(squared * self.returns, size), by_draw(squared, size)


Baseline = Callable[[Earned], "float | np.ndarray | Diagonal"]  # scalar, [n], or a coordinate each


def none(earned: Earned) -> float:
    """b = 0."""
    return -earned.origin


def mean(earned: Earned) -> float:
    """The weighted mean return."""
    return earned.centre


def optimal(earned: Earned) -> float:
    """The scalar of least variance."""
    tops, bottoms = earned.curvature(1)
    return float(_ratio(np.sum(tops), np.sum(bottoms)))


def coordinate(earned: Earned) -> Diagonal:
    """The number of least variance for each coordinate of rho by itself."""
    squared = relative_weights(earned.weights) ** 2

    def one(s: np.ndarray) -> np.ndarray:
        return _ratio(total(squared * earned.returns, s**2), total(squared, s**2))

    return Diagonal(*map(one, earned.scores))


def leave_one_out(size: int) -> Baseline:
    """The optimal scalar without the draw that it is subtracted from `[n]`."""

    def baseline(earned: Earned) -> np.ndarray:
        tops, bottoms = earned.curvature(size)
        found = _ratio(_others(tops), _others(bottoms), -earned.origin)
        return np.repeat(found, size)

    return baseline


def earlier(size: int) -> Baseline:
    """The optimal scalar of earlier batches, and of the own one without the draw `[n]`."""

    def baseline(earned: Earned) -> np.ndarray:
        order = earned.order[::size]
        by_time = np.argsort(order, kind="stable")
        top, bottom = (_others_before(x[by_time], order[by_time]) for x in earned.curvature(size))
        found = np.empty(len(order))
        found[by_time] = _ratio(top, bottom, -earned.origin)
        return np.repeat(found, size)

    return baseline


def split(size: int) -> Baseline:
    """The optimal scalar of every second draw for the others, and vice versa `[n]`."""

    def baseline(earned: Earned) -> np.ndarray:
        tops, bottoms = earned.curvature(size)
        even = np.cumsum(by_draw(earned.valid, size) > 0) % 2 == 1
        of_even, of_odd = (
            _ratio(np.sum(tops[half]), np.sum(bottoms[half]), -earned.origin)
            for half in (even, ~even)
        )
        return np.repeat(np.where(even, of_odd, of_even), size)

    return baseline


def total(c: np.ndarray, values: np.ndarray) -> np.ndarray:
    """sum_n c_n v_n, always in the same order: a BLAS may split it by its threads."""
    return np.einsum("n,nd->d", c, values, optimize=False)


def _ratio(top: np.ndarray, bottom: np.ndarray, otherwise: float = 0.0) -> np.ndarray:
    return np.where(bottom > 0, top / np.where(bottom > 0, bottom, 1.0), otherwise)


def _others(x: np.ndarray) -> np.ndarray:
    """Sums of all entries but one, for each."""
    before = np.concatenate([[0.0], np.cumsum(x[:-1])])
    behind = np.concatenate([np.cumsum(x[:0:-1])[::-1], [0.0]])
    return before + behind


def _others_before(x: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Sums of all entries up to the end of each one's batch, without itself; sorted by `order`."""
    before = np.concatenate([[0.0], np.cumsum(x[:-1])])
    ends = np.flatnonzero(np.diff(order)) + 1
    behind = [np.concatenate([np.cumsum(part[:0:-1])[::-1], [0.0]]) for part in np.split(x, ends)]
    return before + np.concatenate(behind)

"""The estimate of a small archive, unpadded: `core.estimators.whole` in the form of NumPy."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from recoup.core.arrays import tree_map
from recoup.core.families.family import Family
from recoup.core.gradient import (
    Baseline,
    Direction,
    Earned,
    Scores,
    about_origin,
    baseline_of,
    centre_of,
    mean_gradient,
)
from recoup.core.objective import Estimate, Sources, mean_weight, summary
from recoup.core.returns import with_failures
from recoup.core.types import Pytree, Rho
from recoup.core.weights import LogDensities, Ratio, Shaper, weigh


class Samples(NamedTuple):
    """Results as they were told, and what drew them."""

    theta: np.ndarray  # [n, D]
    returns: np.ndarray  # [n], not finite where one failed
    drawn_by: np.ndarray  # [n]


class Parts(NamedTuple):
    """What an estimate is made of."""

    ratio: Ratio
    shapers: Sequence[Shaper]
    normalised: bool
    direction: Direction
    failure: str | float
    size: int  # adjacent samples that are one draw


def valued(returns: np.ndarray, failure: str | float) -> tuple[np.ndarray, np.ndarray]:
    """Returns with what failures are worth, zero where that is not known, and which are valid."""
    valid = np.isfinite(returns)
    return with_failures(np.where(valid, returns, 0.0), valid, ~valid, failure)[:2]


def estimate(parts: Parts, rho: Rho, samples: Samples, densities: LogDensities) -> Estimate:
    """The direction at `rho`, and what the weights make of the objective."""
    returns, valid = valued(samples.returns, parts.failure)
    censored = not valid.all()
    normalised = parts.normalised or censored
    drawn = Sources(valid, ~valid, samples.drawn_by, int(np.max(samples.drawn_by, initial=0)) + 1)
    weights = weigh(parts.ratio, parts.shapers, densities, valid, normalised)
    raw = weigh(parts.ratio, parts.shapers, densities, drawn.each, False)
    known = Earned(returns, weights, valid, np.float64(0), censored, order=samples.drawn_by)
    earned = about_origin(known)
    gradient, b = parts.direction(rho, samples.theta, earned)
    return summary(
        drawn,
        returns[None],
        weights[None],
        size=parts.size,
        normalised=normalised,
        mean_weight=mean_weight(parts.ratio, parts.shapers, raw, drawn),
        gradient=gradient,
        baseline=tree_map(np, lambda x: x + earned.origin, b),
    )


def likelihood_ratio(family: Family, baseline: Baseline) -> Direction:
    """The gradient of the expected return: that of `core.directions`, all scores at once."""

    def direction(rho: Rho, theta: np.ndarray, earned: Earned) -> tuple[Rho, Pytree]:
        scores = _scores(family.score(rho, theta), centre_of(earned))
        b = baseline_of(baseline, earned, scores)
        n = np.sum(earned.valid)
        return mean_gradient(earned.returns, earned.weights, scores, b, n), b

    return direction


def _scores(each: Rho, centre: np.ndarray) -> Scores:
    """The sums of scores, a record of arrays `[n, ...]`, as they are asked for."""
    return Scores(
        norms=sum(np.sum(s**2, axis=tuple(range(1, s.ndim))) for s in each),
        centre=centre,
        total=lambda c: tree_map(np, lambda s: _total(c, s), each),
        squares=lambda c: tree_map(np, lambda s: _total(c, s**2), each),
    )


def _total(c: np.ndarray, values: np.ndarray) -> np.ndarray:
    """sum_n c_n v_n, always in the same order: a BLAS may split it by its threads."""
    return np.einsum("n,n...->...", c, values, optimize=False)

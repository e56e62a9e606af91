"""Importance weights: ratios and shapers, all in logs; and what a set of weights is worth.

A *ratio* maps log-densities to log-weights `[..., N]`; a *shaper* maps log-weights to log-weights,
given the mask of valid samples. `exp` happens once, in `weigh`. Arrays of NumPy stay so; those of
JAX may be traced.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from recoup.checks import check_choice
from recoup.core.arrays import Array, namespace
from recoup.core.types import Namespace


class LogDensities(NamedTuple):
    """Log-densities of samples, each relative to a reference that the sample shares with all three.

    The weights see only differences of them, so the reference cancels. A weighting of yours is
    given it. Equations: `zhao2013 S3.1` own-proposal weights, `veach1995 balance heuristic`.

    >>> from recoup.core.weights import LogDensities
    >>> def own(d):
    ...     return d.target - d.own
    >>> own(LogDensities(target=np.array([0.5, -1.0]), own=np.zeros(2), mixture=None))
    array([ 0.5, -1. ])
    """

    target: Array  # of the distribution that is estimated
    own: Array  # of the proposal that drew the sample
    mixture: Array | None  # of the mixture of all proposals by their counts, where it is kept
    norms: Array | None = None  # ||score||^2 at the target, where one read has given both


Ratio = Callable[[LogDensities], Array]
Shaper = Callable[[Array, Array], Array]

OWN, MIXTURE = "own", "mixture"


def needs(*densities: str) -> Callable[[Ratio], Ratio]:
    """Declares which densities a ratio looks at beside the target's, so that no others are kept.

    `densities` are "own" (of the proposal that drew the sample), "mixture" (of all of them), both
    or none; a ratio that declares nothing is given both.

    Raises `InputError` for other words.

    >>> @recoup.needs("own", "mixture")
    ... def halfway(d):
    ...     return d.target - 0.5 * (d.own + d.mixture)
    >>> search = recoup.search("iw-pgpe-ob", dim=2, batch=10, weighting=halfway)
    >>> search.settings.weighting is halfway
    True
    """

    for word in densities:
        check_choice("what a ratio needs", word, (OWN, MIXTURE))

    def declared(ratio: Ratio) -> Ratio:
        ratio.needs = densities  # type: ignore[attr-defined]
        return ratio

    return declared


def needs_of(ratio: Ratio) -> tuple[str, ...]:
    """The densities that a ratio has declared; all, where it has declared nothing."""
    return getattr(ratio, "needs", (OWN, MIXTURE))


@needs()
def unit_ratio(d: LogDensities) -> Array:
    """Log-weights of zero: reuse without importance weights.

    Implements: zhao2013 S3.1 NIW-PGPE, w = 1.
    """
    return namespace(d.target).zeros_like(d.target)


@needs(OWN)
def own_ratio(d: LogDensities) -> Array:
    """Log-weights against the proposal that drew each sample.

    Implements: zhao2013 S3.1 IW-PGPE, w_n = p(theta_n | rho) / p(theta_n | rho_n).
    """
    return d.target - d.own


@needs(MIXTURE)
def mixture_ratio(d: LogDensities) -> Array:
    """Log-weights against the mixture of all proposals by their counts.

    Implements: veach1995 balance heuristic, w_n = p(theta_n | rho) / sum_l (n_l / n) q_l(theta_n).

    With rho among the proposals, w <= n / n_rho: no sample can take over.
    """
    assert d.mixture is not None, "the archive keeps no mixture"
    return d.target - d.mixture


def power_mean_ratio(power: float) -> Ratio:
    """Log-weights against the own proposal, bounded by 1 / power.

    Implements: metelli2021 power-mean correction, w / ((1 - power) + power w).
    """

    @needs(OWN)
    def ratio(d: LogDensities) -> Array:
        log_w = own_ratio(d)
        xp = namespace(log_w)
        with np.errstate(divide="ignore"):  # of a power of 0 or 1
            log_power = xp.log(xp.asarray(power, log_w.dtype))
            log_rest = xp.log1p(-xp.asarray(power, log_w.dtype))
        return log_w - xp.logaddexp(log_rest, log_power + log_w)

    return ratio


def flatten(nu: float) -> Shaper:
    """Shaper w^nu: nu = 0 forgets the weights, nu = 1 leaves them.

    Implements: hachiya2009 flattening.
    """
    return lambda log_w, valid: nu * log_w


def truncate(w_max: float) -> Shaper:
    """Shaper min(w, w_max).

    Implements: zhao2013 S4.3 truncation, w = min(w, 2).
    """

    def shape(log_w: Array, valid: Array) -> Array:
        xp = namespace(log_w)
        return xp.minimum(log_w, xp.log(xp.asarray(w_max, log_w.dtype)))

    return shape


def self_normalise() -> Shaper:
    """Shaper w / mean(w), the mean over valid samples.

    Implements: shelton2001 normalised importance weights.
    """

    def shape(log_w: Array, valid: Array) -> Array:
        xp = namespace(log_w)
        some, n = xp.any(valid), xp.sum(valid, dtype=log_w.dtype)
        log_mean = _log_sum(xp, log_w, valid) - xp.log(xp.where(some, n, 1.0))
        return log_w - xp.where(xp.isfinite(log_mean), log_mean, 0.0)

    return shape


def _log_sum(xp: Namespace, log_w: Array, valid: Array) -> Array:
    """log sum exp of the valid entries; -inf where there is none."""
    counted = xp.where(valid, log_w, -xp.inf)
    largest = xp.max(counted, initial=-xp.inf)
    origin = xp.where(xp.isfinite(largest), largest, 0.0)
    total = xp.sum(xp.exp(counted - origin))
    return xp.where(total > 0, origin + xp.log(xp.where(total > 0, total, 1.0)), -xp.inf)


def weigh(
    ratio: Ratio,
    shapers: Sequence[Shaper],
    d: LogDensities,
    valid: Array,
    normalised: bool | Array = False,
) -> Array:
    """Weights `[..., N]` after shaping, zero where not valid; `normalised`, over their mean."""
    log_w = ratio(d)
    for shaper in shapers:
        log_w = shaper(log_w, valid)
    return exp_weights(log_w, valid, normalised)


def exp_weights(log_w: Array, valid: Array, normalised: bool | Array) -> Array:
    """Weights of log-weights, zero where not valid; `normalised`, over their mean.

    Differs: a log-weight is held below a quarter of the largest exponent of its type (w about 4e9
    in float32, 1e77 in float64), so that no later sum or square overflows.
    """
    xp = namespace(log_w)
    if normalised is not False:
        log_w = xp.where(normalised, self_normalise()(log_w, valid), log_w)
    return xp.where(valid, bounded_exp(log_w), 0.0)


def bounded_exp(log_w: Array) -> Array:
    """exp(log_w), held so far below overflow that no later sum or square of weights can."""
    xp = namespace(log_w)
    return xp.exp(xp.minimum(log_w, 0.25 * xp.log(xp.finfo(log_w.dtype).max)))


def by_draw(x: Array, size: int) -> Array:
    """Sums `[G]` over the `size` adjacent samples that are one draw: a mirrored pair, or one."""
    return namespace(x).sum(x.reshape(-1, size), axis=1)


def effective_sample_size(weights: Array) -> Array:
    """(sum w)^2 / sum w^2, a scalar; 0 where all weights are zero.

    Implements: kong1992 effective sample size.
    """
    xp, scaled = namespace(weights), relative_weights(weights)
    return xp.sum(scaled) ** 2 / xp.maximum(xp.sum(scaled**2), xp.finfo(weights.dtype).tiny)


def relative_weights(weights: Array) -> Array:
    """Weights over the largest, so that no square overflows."""
    xp = namespace(weights)
    largest = xp.max(weights, initial=0.0)
    return weights / xp.where(largest > 0, largest, 1.0)

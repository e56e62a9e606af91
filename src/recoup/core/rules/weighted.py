"""The weights' half: a step along importance-weighted, standardised returns.

Old batches take part as long as the distribution that moves has not left them; weights are against
the mixture of those that do. The step is longer the more of it is signal, and the spread shrinks by
the variance of the mean's step.
"""

from typing import NamedTuple

import numpy as np

from recoup.core.arrays import Array
from recoup.core.families.shapes import Shape
from recoup.core.objective import standard_error
from recoup.core.rules.newton import Stretch
from recoup.core.rules.tuning import TUNED
from recoup.core.types import Namespace
from recoup.core.weights import effective_sample_size


class Weighed(NamedTuple):
    """Samples with what the weights say of them, all `[n]`."""

    omega: Array  # self-normalised weights, zero for those that take no part
    coefficients: Array  # what each sample's z is multiplied by
    ties: Array  # share of the weight that ties at a value below the best, a scalar


class Signal(NamedTuple):
    """What fresh batches have said about the gradient, averaged: its mean, and its variance."""

    mean: Array  # [D]
    variance: Array


def utilities(xp: Namespace, omega: Array, returns: Array, largest: Array) -> tuple[Array, Array]:
    """Rank utilities, self-normalised, less `omega [n]`; and the share of ties below `largest`.

    Implements: wierstra2014 utilities max(0, ln(1/2) - ln(rank share)), ranks by weight.
    """
    part = omega > 0
    keyed = xp.where(part, returns, xp.inf)
    order = xp.argsort(keyed)
    ordered = keyed[order]
    total = xp.concatenate([xp.zeros(1, dtype=omega.dtype), xp.cumsum(omega[order])])
    first = xp.searchsorted(ordered, keyed, side="left")
    last = xp.searchsorted(ordered, keyed, side="right")
    above = 1 - (total[first] + total[last]) / 2
    worth = xp.where(part, xp.maximum(0.0, -xp.log(xp.maximum(2 * above, 1e-30))), 0.0)
    scale = xp.sum(omega * worth)
    ranked = xp.where(scale > 0, omega * worth / xp.where(scale > 0, scale, 1.0) - omega, 0.0)
    tied = part & (last - first > 1) & (returns < largest)
    return ranked, xp.max(xp.where(tied, total[last] - total[first], 0.0))


def standardised(xp: Namespace, omega: Array, returns: Array) -> Array:
    """`omega [n]` times returns less their mean, over their spread; zero where all are equal."""
    best = xp.max(xp.where(omega > 0, returns, -xp.inf))
    below = xp.where(omega > 0, returns - best, 0.0)  # equal ones become exactly zero
    worst = -xp.min(below)
    below = below / xp.where(worst > 0, worst, 1.0)  # squares of any returns are then numbers
    away = below - xp.sum(omega * below)
    spread = xp.sqrt(xp.sum(omega * away**2))
    return xp.where(spread > 0, omega * away / xp.where(spread > 0, spread, 1.0), 0.0)


def weighed(xp: Namespace, log_weights: Array, returns: Array, recent: Array) -> Weighed:
    """The coefficients of samples with these log-weights `[n]`, minus infinity for those apart."""
    part = xp.isfinite(log_weights)
    largest = xp.max(xp.where(part, log_weights, -xp.inf))
    weights = xp.where(part, xp.exp(xp.where(part, log_weights - largest, 0.0)), 0.0)
    omega = weights / xp.maximum(xp.sum(weights), 1e-30)
    standard = standardised(xp, omega, returns)
    largest = xp.max(xp.where(recent, returns, -xp.inf))
    ranked, ties = utilities(xp, omega, returns, largest)
    share = xp.maximum(TUNED.ranked, ties)
    return Weighed(omega, share * ranked + (1 - share) * standard, ties)


class Objective(NamedTuple):
    """What the weights say of the expected return."""

    mean: Array
    stderr: Array
    ess: Array
    mean_weight: Array  # near 1 if the samples cover the distribution
    weights: Array  # [n] against the mixture, zero for those that take no part


def objective(
    xp: Namespace,
    found: Weighed,
    log_weights: Array,
    returns: Array,
    failed: Array | None,
    proposal: Array,
    proposals: int,
) -> Objective:
    """The expected return of what does not fail, from weighed samples; `proposal [n]` drew them."""
    omega, part = found.omega, xp.isfinite(log_weights)
    if failed is not None:
        some = xp.any(part & failed)
        part = part & ~failed
        kept = xp.where(part, omega, 0.0)
        omega = xp.where(some, kept / xp.maximum(xp.sum(kept), 1e-30), omega)
    mean, n = xp.sum(omega * returns), xp.sum(part, dtype=omega.dtype)
    residuals = xp.where(part, omega * (returns - mean), 0.0)
    weights = xp.where(part, xp.exp(xp.where(part, log_weights, 0.0)), 0.0)
    return Objective(
        mean=xp.where(n > 0, mean, xp.nan),
        stderr=standard_error(residuals, part, proposal, proposals),
        ess=effective_sample_size(omega),
        mean_weight=xp.sum(weights) / xp.maximum(n, 1),
        weights=weights,
    )


def listened(
    xp: Namespace, signal: Signal, z: Array, found: Weighed, fresh: Array
) -> tuple[Signal, Array]:
    """The signal with one more fresh batch, and the share of it that is no noise, in [0, 1]."""
    mass = xp.sum(xp.where(fresh, found.omega, 0.0))
    c = xp.where(fresh, found.coefficients, 0.0) / xp.where(mass > 0, mass, 1.0)
    new = TUNED.calm
    mean = (1 - new) * signal.mean + new * (c @ z)
    variance = (1 - new) ** 2 * signal.variance + new**2 * xp.sum(c**2 @ z**2)
    power = xp.sum(mean**2)
    share = xp.where(power > 0, 1 - variance / xp.where(power > 0, power, 1.0), 0.0)
    return Signal(mean, variance), xp.clip(share, 0.0, 1.0)


def weighted_step(
    xp: Namespace,
    z: Array,
    found: Weighed,
    signal: Array,
    fresh: Array,
    shrink: Array,
    shape: Shape,
) -> Stretch:
    """The step of mean and spread, which loses `shrink [D]` times the variance of the mean's."""
    dim, c = z.shape[1], found.coefficients
    rate = (3 + float(np.log(dim))) / (5 * dim**0.5)
    gradient, variance = c @ z, c**2 @ z**2
    old = xp.sum(found.omega**2) * xp.maximum(xp.sum(fresh), 1)  # a batch over the effective size
    stride = TUNED.stride * (1 + signal) / xp.maximum(old, 1e-12) ** TUNED.reused  # 0: none weighed
    eager = 1 + TUNED.eager * found.ties
    log = eager * (rate / 4 * (c @ z**2 - xp.sum(c)) - shrink * variance)
    turning = eager * shape.turn(dim) / 4
    return Stretch(stride * gradient, shape.bounded(xp, log, z, c, turning, TUNED.turn))

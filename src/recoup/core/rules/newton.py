"""The regression's half: a Newton step inside a trust region, and the spread along the Hessian."""

from collections.abc import Callable
from typing import NamedTuple

from recoup.core.arrays import Array, mean_of, quantiles, repeat
from recoup.core.families.shapes import Axes, Symmetric
from recoup.core.rules.model import Local
from recoup.core.rules.tuning import TUNED
from recoup.core.types import Namespace


class Stretch(NamedTuple):
    """How a distribution moves, in its own coordinates: mean + delta, spread times exp(log)."""

    delta: Array  # [D]
    log: Symmetric


class Newton(NamedTuple):
    """The step, along the axes of the Hessian, and why it is as long as it is."""

    delta: Array  # [m]
    log: Array  # [m]
    bounded: Array  # whether the trust region ended the step
    widened: Array  # whether the spread was widened
    noise: Array  # share of the return's variance that the model calls noise
    variance: Array  # of the return, as the model has it
    gain: Array  # of the expected return by the mean's step, as the model has it
    doubt: Array  # variance of that


class Outlook(NamedTuple):
    """What else widening looks at."""

    noise: Array  # variance of the model's noise
    evident: Array  # whether the returns are known to be more than noise
    late: Array  # whether two updates were made before
    grown: Array  # mean log spread over that of the start
    widest: Array | float = TUNED.widest  # up to which that may grow


def clipped(xp: Namespace, returns: Array, valid: Array) -> tuple[Array, Array]:
    """Returns `[n]` without far outliers below, over their own standard deviation; and that.

    Zero where not valid, and where all are equal. However large or small they are.
    """
    centred = _centred(xp, returns, valid)
    largest = xp.max(xp.abs(centred))
    unit = centred / xp.where(largest > 0, largest, 1.0)
    spread = xp.sqrt(mean_of(xp, unit**2, valid))
    return unit / xp.where(spread > 0, spread, 1.0), largest * spread


def _centred(xp: Namespace, returns: Array, valid: Array) -> Array:
    middle, high = quantiles(xp, returns, valid, (0.5, 0.9))
    ample = (xp.sum(valid) >= 8) & (high > middle)
    lowest = xp.where(ample, middle - TUNED.outlier * (high - middle), -xp.inf)
    best = xp.where(xp.any(valid), xp.max(xp.where(valid, returns, -xp.inf)), 0.0)
    y = xp.where(valid, xp.maximum(returns, lowest) - best, 0.0)  # equal ones are exactly zero
    return xp.where(valid, y - mean_of(xp, y, valid), 0.0)


def trusted(xp: Namespace, values: Array, slope: Array, radii: Array) -> tuple[Array, Array]:
    """The steps `[R, m]` that the quadratic model likes best within `radii [R]`.

    And whether these bound them `[R]`.

    Implements: more1983 trust-region step (mu I - H) delta = g, with the smallest mu for which it
    is a maximum and |delta| <= radius; `values` and `slope` are along the axes of H.
    """

    def step(mu: Array) -> Array:
        return slope / xp.maximum(mu[:, None] - values, 1e-12)

    def long(mu: Array) -> Array:
        return xp.sqrt(xp.sum(step(mu) ** 2, axis=1)) > radii

    def halve(bracket: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = bracket
        middle = (low + high) / 2
        longer = long(middle)
        return xp.where(longer, middle, low), xp.where(longer, high, middle)

    top = xp.zeros_like(radii) + xp.maximum(xp.max(values), 0.0) + 1e-9
    steep = xp.sqrt(xp.sum(slope**2)) / radii
    bounded = ~((xp.max(values) < 0) & ~long(xp.zeros_like(top)))
    mu = repeat(xp, 40, halve, (top, top + steep))[1]
    return step(xp.where(bounded, mu, 0.0)), bounded


def newton(
    xp: Namespace,
    dim: int,
    local: Local,
    outlook: Outlook,
    risen: Callable[[Array], tuple[Array, Array]],
    widens: bool = True,
) -> Newton:
    """The step of the mean, and of the spread by the natural gradient, over the return's spread.

    The mean's is the longest of those within `TUNED.paces` times the radius whose rise is surely
    one, by the mean and the variance `[R]` that `risen` gives of steps `[R, m]`, or the shortest of
    them; the spread is that of the step within the radius itself.
    """
    values, counts = local.axes.values, local.axes.counts
    paces = xp.asarray(TUNED.paces, dtype=values.dtype)
    steps, bounds = trusted(xp, values, local.slope, paces * TUNED.radius * (dim + 3.0) ** 0.5)
    usual = TUNED.paces.index(1.0)
    delta, bounded = steps[usual], bounds[usual]
    variance = outlook.noise + xp.sum(local.slope**2 + local.variance)
    variance = variance + xp.sum(counts * values**2) / 2
    log = xp.clip(values / (2 * xp.sqrt(variance)), -TUNED.bend, TUNED.bend)
    noise = outlook.noise / variance
    rise = xp.sum(local.slope * delta)
    steady = rise / xp.sqrt(xp.maximum(xp.sum(local.variance * delta**2), 1e-30))
    unbent = outlook.late & (xp.sum(counts * values) / dim > -TUNED.unbent * local.doubt)
    uphill = unbent & bounded & (steady > TUNED.uphill)
    lost = unbent & ~outlook.evident
    for reason in (uphill, lost) if widens else ():
        log = xp.where(reason, xp.maximum(log, 0.0) + TUNED.wider * noise, log)
    lost_to_curvature = -xp.sum(values * (delta**2 + counts)) / 2
    straight = lost_to_curvature < TUNED.straight * rise
    far = outlook.late & bounded & (steady > TUNED.sure) & straight & widens
    log = xp.where(far, TUNED.stride_far, log)
    log = xp.minimum(log, xp.maximum(outlook.widest - outlook.grown, 0.0))
    gain, doubt = risen(steps)
    rises = gain > TUNED.lower * xp.sqrt(doubt)
    taken = xp.max(xp.where(rises, xp.arange(len(TUNED.paces)), 0))
    return Newton(
        delta=steps[taken],
        log=log,
        bounded=bounded,
        widened=far | widens & (uphill | lost),
        noise=noise,
        variance=variance,
        gain=gain[taken],
        doubt=doubt[taken],
    )


def unturned(axes: Axes, step: Newton) -> Stretch:
    """The step in the coordinates of the distribution."""
    return Stretch(axes.unturned(step.delta), axes.log(step.log))

"""The scale of one parameter: its latent number and its value in the user's units.

With bounds low and high a latent z is low + (high - low) / (1 + exp(-z)), of the logarithms on a
log scale; without bounds it is z itself, or exp(z). Whole numbers are as others, before they are
rounded, between low - 1/2 and high + 1/2. So is what is searched a share of the range `beyond` its
bounds, before it is put at the bound: the logistic function covers that much more on both sides.
"""

from math import isfinite
from typing import Protocol

import numpy as np

from recoup.checks import InputError, check_number, shortly
from recoup.core.types import Array, Given

MOST_BEYOND = 0.5  # share of a range that is searched beyond each bound, at most
OF_RANGE = 1e-12  # that rounding may make of a value at a bound
LITTLE = 1e-10  # latent: more than what rounding makes of a bound, and less than anybody sees
EDGE = 40.0  # latent distance at which a bound is reached as nearly as numbers allow


class Range(Protocol):
    """What a parameter says of its scale."""

    @property
    def name(self) -> str:
        """The scale's name."""

    @property
    def low(self) -> float | None:
        """The lower bound, if there are bounds."""

    @property
    def high(self) -> float | None:
        """Its upper bound."""

    @property
    def scale(self) -> str:
        """Linear, log or int."""

    @property
    def beyond(self) -> float | None:
        """Share of the range that is searched beyond each bound: there it stands at the bound."""


def _ends(p: Range) -> tuple[float, float] | None:
    """The ends of the range that the logistic function covers, as numbers that it is linear in."""
    if p.low is None or p.high is None:
        return None
    if p.scale == "int":
        return p.low - 0.5, p.high + 0.5
    low, high = p.low, p.high
    if p.scale == "log":
        low, high = float(np.log(low)), float(np.log(high))
    more = (p.beyond or 0.0) * (high - low)
    return low - more, high + more


def _limits(p: Range) -> tuple[float, float]:
    """Where the values of a parameter with bounds end, before they are put at one or rounded."""
    assert p.low is not None
    assert p.high is not None
    ends = _ends(p)
    if ends is None or (p.scale != "int" and not p.beyond):
        return p.low, p.high
    with np.errstate(over="ignore"):
        return (float(np.exp(ends[0])), float(np.exp(ends[1]))) if p.scale == "log" else ends


def spread(p: Range, z: Given) -> Array:
    """The value of a latent z, before it is rounded or put at a bound."""
    ends = _ends(p)
    if ends is None:
        return np.exp(z) if p.scale == "log" else z
    share = 1 / (1 + np.exp(-np.clip(z, -EDGE, EDGE)))
    value = ends[0] + (ends[1] - ends[0]) * share
    if p.scale == "int":
        return value
    with np.errstate(over="ignore"):
        return np.clip(np.exp(value) if p.scale == "log" else value, *_limits(p))


def log_slope(p: Range, z: Given) -> Array:
    """log du/dz of `spread`."""
    ends = _ends(p)
    if ends is None:
        return z if p.scale == "log" else np.zeros_like(z)
    slope = np.log(ends[1] - ends[0]) - np.abs(z) - 2 * np.log1p(np.exp(-np.abs(z)))
    return slope + np.log(spread(p, z)) if p.scale == "log" else slope


def to_latent(p: Range, value: Given) -> Array:
    """The latent number of a value, which may be one before it is rounded or put at a bound."""
    value, ends = np.asarray(value, float), _ends(p)
    if ends is None:
        if p.scale == "log" and not (value > 0).all():
            raise InputError(f"{p.name} must be positive, got {value[~(value > 0)].flat[0]:g}.")
        return np.log(value) if p.scale == "log" else value
    _check(p, value, inside(p, value))
    share = ((np.log(value) if p.scale == "log" else value) - ends[0]) / (ends[1] - ends[0])
    share = np.clip(share, 0.0, 1.0)
    with np.errstate(divide="ignore"):
        return np.clip(np.log(share) - np.log1p(-share), -EDGE, EDGE)


def given_as_latent(p: Range, value: Given) -> Array:
    """The latent number of a value that a user gives, which lies within the bounds themselves.

    That of a bound lies a little beyond it, if there is room: what comes back is the bound, and not
    the number beside it that rounding makes of it.
    """
    if not p.beyond or p.low is None or p.high is None:
        return to_latent(p, value)
    value = np.asarray(value, float)
    _check(p, value, (value >= p.low) & (value <= p.high))
    z = to_latent(p, value)
    further = np.where(value == p.high, LITTLE, 0.0) - np.where(value == p.low, LITTLE, 0.0)
    return np.clip(z + further, -EDGE, EDGE)


def _check(p: Range, value: np.ndarray, fits: np.ndarray) -> None:
    """Raises where a value of a parameter with bounds does not fit."""
    outside = ~fits
    if outside.any():
        raise InputError(
            f"{p.name} must lie in {p.low:g}..{p.high:g}, got {value[outside].flat[0]:g}."
        )


def as_it_is(p: Range, value: Array) -> Array:
    """Which values, before they are put at a bound, stay what they are, but for rounding errors."""
    if p.low is None or p.high is None or not p.beyond:
        return np.ones(np.shape(value), bool)
    little = OF_RANGE * (p.high - p.low)
    return (value >= p.low - little) & (value <= p.high + little)


def inside(p: Range, value: Given) -> Array:
    """Which values, before they are rounded or put at a bound, a parameter can have."""
    if p.low is None or p.high is None:
        return np.isfinite(value) & (value > 0) if p.scale == "log" else np.isfinite(value)
    low, high = _limits(p)
    return (value >= low) & (value <= high)


def check_beyond(p: Range) -> None:
    """Raises unless a parameter may be searched so far beyond its bounds."""
    if not is_finite(p.beyond) or not 0 <= check_number("beyond", p.beyond) <= MOST_BEYOND:
        raise InputError(
            f"beyond of {p.name} must be a share of its range, 0 to {MOST_BEYOND:g}, got "
            f"{shortly(p.beyond)}."
        )
    if p.beyond and (p.low is None or p.scale == "int"):
        raise InputError(f"beyond of {p.name} needs bounds that are not of whole numbers.")
    low, high = _ends(p) or (0.0, 0.0)
    if not isfinite(high - low):
        raise InputError(f"the range of {p.name} is too wide for numbers: leave its bounds out.")


def typed_share(text: str | None = None) -> float | None:
    """How far beyond its bounds a parameter is searched, as it is typed."""
    try:
        return None if text is None else float(text)
    except ValueError:
        raise InputError(f"after the scale stands a share of the range, got {text!r}.") from None


def is_finite(value: Given) -> bool:
    """Whether a value is a number, and one that floating point can hold."""
    try:
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return number and isfinite(value)
    except OverflowError:  # a whole number of more than 308 digits
        return False

"""The scale of one parameter: its latent number and its value in the user's units.

With bounds low and high a latent z is low + (high - low) / (1 + exp(-z)), of the logarithms on a
log scale; without bounds it is z itself, or exp(z). Whole numbers are as others, before they are
rounded, between low - 1/2 and high + 1/2.
"""

from typing import Protocol

import numpy as np

from recoup.checks import InputError
from recoup.core.types import Array, Given

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


def _ends(p: Range) -> tuple[float, float] | None:
    """The ends of the range that the logistic function covers, as numbers that it is linear in."""
    if p.low is None or p.high is None:
        return None
    if p.scale == "int":
        return p.low - 0.5, p.high + 0.5
    return (float(np.log(p.low)), float(np.log(p.high))) if p.scale == "log" else (p.low, p.high)


def spread(p: Range, z: Given) -> Array:
    """The value of a latent z, before it is rounded."""
    ends = _ends(p)
    if ends is None:
        return np.exp(z) if p.scale == "log" else z
    share = 1 / (1 + np.exp(-np.clip(z, -EDGE, EDGE)))
    value = ends[0] + (ends[1] - ends[0]) * share
    if p.scale == "int":
        return value
    return np.clip(np.exp(value) if p.scale == "log" else value, p.low, p.high)


def log_slope(p: Range, z: Given) -> Array:
    """log du/dz of `spread`."""
    ends = _ends(p)
    if ends is None:
        return z if p.scale == "log" else np.zeros_like(z)
    slope = np.log(ends[1] - ends[0]) - np.abs(z) - 2 * np.log1p(np.exp(-np.abs(z)))
    return slope + np.log(spread(p, z)) if p.scale == "log" else slope


def to_latent(p: Range, value: Given) -> Array:
    """The latent number of a value, which may be one of a whole number before it is rounded."""
    value, ends = np.asarray(value, float), _ends(p)
    if ends is None:
        if p.scale == "log" and not (value > 0).all():
            raise InputError(f"{p.name} must be positive, got {value[~(value > 0)].flat[0]:g}.")
        return np.log(value) if p.scale == "log" else value
    outside = ~inside(p, value)
    if outside.any():
        raise InputError(
            f"{p.name} must lie in {p.low:g}..{p.high:g}, got {value[outside].flat[0]:g}."
        )
    share = ((np.log(value) if p.scale == "log" else value) - ends[0]) / (ends[1] - ends[0])
    with np.errstate(divide="ignore"):
        return np.clip(np.log(share) - np.log1p(-share), -EDGE, EDGE)


def inside(p: Range, value: Given) -> Array:
    """Which values, before they are rounded, a parameter can have."""
    if p.low is None or p.high is None:
        return np.isfinite(value) & (value > 0) if p.scale == "log" else np.isfinite(value)
    half = 0.5 if p.scale == "int" else 0.0
    return (value >= p.low - half) & (value <= p.high + half)

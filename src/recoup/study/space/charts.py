"""Densities across a change of bounds: what was drawn under other bounds keeps its exact density.

A chart is a choice of bounds and scales for the same parameters in the user's units. A proposal is
Gaussian in the latent space of its own chart; at a theta of the study's latent space its density is
that of the theta's image there, times the volume that the map between them stretches by. What was
put at a bound is at that bound under other bounds too, and those would not have drawn it there.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from recoup.checks import InputError
from recoup.core.plain.densities import Chart
from recoup.study.space.parameters import (
    Parameter,
    columns_of,
    gathered,
    log_slope,
    spread_out,
    to_user,
)
from recoup.study.space.scales import as_it_is, inside, to_latent

# thetas [n, D] under other bounds -> under the study's, and which of them lie within [n]
Home = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


class Elsewhere(NamedTuple):
    """Other bounds: the way there from the latent space of the study, and back."""

    chart: Chart
    home: Home


def elsewhere(here: Sequence[Parameter], there: Sequence[Parameter]) -> Elsewhere:
    """The ways between the study's own bounds, `here`, and others."""
    return Elsewhere(chart(here, there), partial(moved, tuple(there), tuple(here)))


def charted(family: str, chart: int) -> str:
    """The name that the file gives to a family in a chart; chart 0 is the study's own."""
    return f"{family}:{chart}" if chart else family


def chart_of(family: str) -> int:
    """The chart of a name that `charted` has made."""
    _, colon, number = family.partition(":")
    if colon and not (number.isascii() and number.isdigit()):
        raise InputError(f"there is no family {family[:40]!r}.")
    return int(number) if colon else 0


def chart(here: Sequence[Parameter], there: Sequence[Parameter]) -> Chart:
    """From latent values under the bounds `here` to those under the bounds `there`."""
    return partial(_mapped, tuple(here), tuple(there))


def moved(
    here: Sequence[Parameter], there: Sequence[Parameter], theta: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Latent thetas `[n, D]` under other bounds, and which of them lie within those `[n]`.

    One that has no place there is put at 0.
    """
    values = tried(here, there, spread_out(here, theta))
    columns = list(zip(columns_of(here), columns_of(there), strict=True))
    fits = np.stack([_fits(*both, values[..., i]) for i, both in enumerate(columns)], axis=-1)
    fallback = spread_out(there, np.zeros_like(theta))
    found = gathered(there, np.where(fits, values, fallback))
    found = _exact_where_same(here, there, theta, found)
    fits_all = np.asarray(fits.all(axis=-1))
    return np.where(fits_all[..., None], found, 0.0), fits_all


def at_bounds(parameters: Sequence[Parameter], theta: np.ndarray) -> np.ndarray:
    """Latent thetas `[..., D]`, what lies beyond a bound put at it, where it was tried."""
    found = np.array(theta, float)
    for i, p in enumerate(columns_of(parameters)):
        if p.beyond:
            found[..., i] = to_latent(p, to_user([p], found[..., i : i + 1])[..., 0])
    return found


def tried(here: Sequence[Parameter], there: Sequence[Parameter], values: np.ndarray) -> np.ndarray:
    """Values `[n, D]`, before they are rounded, at the bounds `here` where others are `there`."""
    found = values.copy()
    for i, (old, new) in enumerate(zip(columns_of(here), columns_of(there), strict=True)):
        if old.beyond and old.range != new.range:
            found[..., i] = np.clip(values[..., i], old.low, old.high)
    return found


def _fits(old: Parameter, new: Parameter, values: np.ndarray) -> np.ndarray:
    """Which values `[...]` that were tried under the `old` bounds can be under the new ones."""
    fits = inside(new, values)
    return np.asarray(fits if old.range == new.range else fits & as_it_is(new, values))


def _exact_where_same(
    here: Sequence[Parameter], there: Sequence[Parameter], old: np.ndarray, new: np.ndarray
) -> np.ndarray:
    """Coordinates whose bounds are the same as they were, to the last bit."""
    both = zip(columns_of(here), columns_of(there), strict=True)
    return np.where([a.range == b.range for a, b in both], old, new)


def _mapped(
    here: tuple[Parameter, ...], there: tuple[Parameter, ...], theta: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    image, fits = moved(here, there, theta)
    values = spread_out(here, theta)
    fits = fits & np.all(tried(here, there, values) == values, axis=-1)
    stretch = np.sum(log_slope(here, theta) - log_slope(there, image), axis=-1)
    return image, np.where(fits, stretch, -np.inf)

"""Functions over a box with noise: what they return on average is known exactly."""

from collections.abc import Callable
from functools import partial
from math import erf
from typing import NamedTuple

import numpy as np

from recoup.core.types import Array
from recoup.tasks.bounded.box import INT, LINEAR, LOG, Bounded, Box
from recoup.tasks.bounded.landscapes import (
    HIGHER,
    michalewicz,
    michalewicz_best,
    rosenbrock,
    styblinski_tang,
)
from recoup.tasks.bounded.placing import place, rotation

Rng = np.random.Generator
Of = Callable[[np.ndarray], np.ndarray]  # points [n, D] of the unit box -> [n]


class Placed(NamedTuple):
    """A task of one run: its box, where its best lies, and what points `[n, D]` of it return."""

    box: Box
    best: np.ndarray  # [D], in the unit box
    true: Of  # expected returns [n], a crash counted as `floor`
    play: Callable[[np.ndarray, list[Rng]], np.ndarray]  # returns [n]; NaN: it crashed
    floor: float = np.nan  # what a crash is worth


def box_of(dim: int, logs: int = 0, ints: int = 0) -> Box:
    """A box of rates (log scale), counts (whole numbers) and others."""
    rates = [Bounded(f"rate{i + 1}", 0.001, 10.0, LOG) for i in range(logs)]
    counts = [Bounded(f"count{i + 1}", 1, 20, INT) for i in range(ints)]
    rest = [Bounded(f"x{i + 1}", -2.0, 3.0, LINEAR) for i in range(dim - logs - ints)]
    return Box((*rates, *counts, *rest))


def gaussian(rng: Rng) -> float:
    """Noise of variance 1."""
    return float(rng.standard_normal())


def heavy(rng: Rng) -> float:
    """Noise with heavy tails: Student's t with 2.5 degrees of freedom."""
    return float(rng.standard_t(2.5))


def noisy(
    box: Box, best: Array, true: Of, scale: float | Of, draw: Callable[[Rng], float] = gaussian
) -> Placed:
    """Returns around `true` with noise of a scale that is one number, or one at each point."""

    def play(x: np.ndarray, rngs: list[Rng]) -> np.ndarray:
        size = scale(x) if callable(scale) else scale
        return true(x) + size * np.array([draw(rng) for rng in rngs])

    return Placed(box, np.asarray(best), true, play)


def bowl(
    rng: Rng, *, over: Box, where: str, condition: float = 1.0, rotated: bool = False
) -> tuple[np.ndarray, Of]:
    """The best `[D]` and -sum w_i y_i^2: y from the top, weights from 1 to `condition`.

    A rotated one lies within the box; others may have their top outside.
    """
    dim = over.dim
    top = place(where, dim, rng)
    best = over.snapped(top)
    top = np.where((top < 0) | (top > 1), top, best)
    turned = rotation(dim, rng) if rotated else np.eye(dim)
    weights = condition ** np.linspace(0.0, 1.0, dim)
    return best, lambda x: -np.sum(weights * ((x - top) @ turned.T) ** 2, axis=-1)


def quadratic(
    rng: Rng,
    *,
    over: Box,
    where: str,
    noise: float,
    draw: Callable[[Rng], float] = gaussian,
    condition: float = 1.0,
    rotated: bool = False,
    growing: float = 0.0,
) -> Placed:
    """A bowl; its noise grows by `growing` times the distance from the best."""
    best, true = bowl(rng, over=over, where=where, condition=condition, rotated=rotated)

    def scale(x: np.ndarray) -> np.ndarray:
        return noise + growing * np.linalg.norm(x - best, axis=-1)

    return noisy(over, best, true, scale, draw)


def peak(rng: Rng, *, over: Box, where: str, noise: float, width: float) -> Placed:
    """10 exp(-r / width): a peak with a point, flat far away."""
    best = over.snapped(place(where, over.dim, rng))
    return noisy(
        over, best, lambda x: 10 * np.exp(-np.linalg.norm(x - best, axis=-1) / width), noise
    )


def _window(
    rng: Rng, top: Array, at: np.ndarray, width: float
) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
    """The point `[D]` of the unit box where `top` lies, and the map from it to coordinates.

    The box is a window of this width with the top at `at`, each axis as it is or turned round.
    """
    turned = rng.random(len(at)) < 0.5

    def coordinates(x: np.ndarray) -> np.ndarray:
        return top + width * (np.where(turned, 1 - x, x) - at)

    return np.where(turned, 1 - at, at), coordinates


def valley(rng: Rng, *, over: Box, where: str, noise: float) -> Placed:
    """Rosenbrock's valley in a window of width 2 around its best."""
    dim = over.dim
    best, at = _window(rng, np.ones(dim), place(where, dim, rng), 2.0)
    return noisy(over, best, lambda x: -rosenbrock(np, at(x)), noise)


def two_tops(rng: Rng, *, over: Box, where: str, noise: float) -> Placed:
    """Styblinski and Tang's function in a window of width 7 that holds both tops."""
    dim = over.dim
    best, at = _window(rng, np.full(dim, HIGHER), 0.3 * place(where, dim, rng), 7.0)
    return noisy(over, best, lambda x: styblinski_tang(at(x)), noise)


def ridges(rng: Rng, *, over: Box, where: str, noise: float, steepness: int) -> Placed:
    """Michalewicz's function in a window of width pi around its best."""
    dim = over.dim
    top = np.array(michalewicz_best(dim, steepness))
    best, at = _window(rng, top, place(where, dim, rng), np.pi)
    return noisy(over, best, lambda x: michalewicz(at(x), steepness), noise)


def success(
    rng: Rng, *, over: Box, where: str, radius: float, soft: float, most: float = 0.97
) -> Placed:
    """1 or 0: a trial succeeds with a probability that falls off at the rim of a plateau."""
    best = over.snapped(place(where, over.dim, rng))

    def true(x: np.ndarray) -> np.ndarray:
        rim = (radius - np.linalg.norm(x - best, axis=-1)) / soft
        return most / (1 + np.exp(-rim))

    def play(x: np.ndarray, rngs: list[Rng]) -> np.ndarray:
        return (np.array([rng.random() for rng in rngs]) < true(x)).astype(float)

    return Placed(over, best, true, play)


def cliff(rng: Rng, *, over: Box, where: str, noise: float, floor: float) -> Placed:
    """A hill up to a cliff: beyond it trials crash. The best lies a little before it.

    The cliff is a plane in a random direction, whose position differs by N(0, 0.03^2) from trial to
    trial; the middle of the box is on its good side.
    """
    dim, jitter = over.dim, 0.03
    best = over.snapped(place(where, dim, rng))
    normal = rotation(dim, rng)[0]
    normal = normal * np.where((best - 0.5) @ normal < 0, -1.0, 1.0)

    def beyond(x: np.ndarray) -> np.ndarray:
        return (x - best) @ normal - 4 * jitter

    def value(x: np.ndarray) -> np.ndarray:
        return -10 * np.sum((x - best) ** 2, axis=-1)

    def true(x: np.ndarray) -> np.ndarray:
        crash = np.array([0.5 + erf(b / jitter / 2**0.5) / 2 for b in beyond(x)])
        return (1 - crash) * value(x) + crash * floor

    def play(x: np.ndarray, rngs: list[Rng]) -> np.ndarray:
        draws = np.array([rng.standard_normal(2) for rng in rngs])
        fell = beyond(x) > jitter * draws[:, 0]
        return np.where(fell, np.nan, value(x) + noise * draws[:, 1])

    return Placed(over, best, true, play, floor)


heavy_tailed = partial(quadratic, draw=heavy)

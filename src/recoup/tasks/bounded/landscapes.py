"""Landscapes over points `[..., D]`, highest where said; what is summed is the last axis."""

from functools import cache

import numpy as np

from recoup.core.types import Array, Namespace

HIGHER = -2.903534027771177  # where Styblinski-Tang is best, in every coordinate


def rosenbrock(xp: Namespace, x: Array) -> Array:
    """sum 100 (x_{i+1} - x_i^2)^2 + (1 - x_i)^2: a bent valley, lowest at (1, ..., 1)."""
    bend = 100 * (x[..., 1:] - x[..., :-1] ** 2) ** 2
    return xp.sum(bend + (1 - x[..., :-1]) ** 2, axis=-1)


def styblinski_tang(x: np.ndarray) -> np.ndarray:
    """-sum (x_i^4 - 16 x_i^2 + 5 x_i) / 2: two tops a coordinate, the higher one at `HIGHER`."""
    return -np.sum(x**4 - 16 * x**2 + 5 * x, axis=-1) / 2


def michalewicz(x: np.ndarray, steepness: int) -> np.ndarray:
    """sum sin(x_i) sin(i x_i^2 / pi)^(2 m) over 0..pi: ridges; 0 outside."""
    i = np.arange(1, x.shape[-1] + 1)
    inside = (x >= 0) & (x <= np.pi)
    return np.sum(inside * np.sin(x) * np.sin(i * x**2 / np.pi) ** (2 * steepness), axis=-1)


@cache
def michalewicz_best(dim: int, steepness: int) -> tuple[float, ...]:
    """Where it is highest, by a grid and two finer ones around the best of it."""
    best = []
    for i in range(1, dim + 1):
        low, high, found = 0.0, np.pi, 0.0
        for _ in range(4):
            grid = np.linspace(low, high, 4001)
            values = np.sin(grid) * np.sin(i * grid**2 / np.pi) ** (2 * steepness)
            found, width = float(grid[np.argmax(values)]), (high - low) / 4000
            low, high = found - 2 * width, found + 2 * width
        best.append(found)
    return tuple(best)

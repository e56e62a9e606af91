"""Random functions of theta whose mean under a Gaussian is known, for tables of coverage.

None of them was looked at when the limits of `recoup.core.intervals` were chosen.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr
from scipy.stats import ncx2

KINDS = ("smooth", "rough", "plateau", "noisy")
WAVES = 8


class Function(NamedTuple):
    """Returns over theta, and their mean under N(m, s^2 I)."""

    value: Callable  # theta [..., D] -> [...]
    mean: Callable  # m [D], s -> number
    noisy: bool = False


def function(kind, dim, rng):
    """A function of a kind; where it is high is not where the candidates lie, but near it."""
    towards = np.ones(dim) / np.sqrt(dim) + 0.3 * rng.standard_normal(dim) / np.sqrt(dim)
    towards /= np.linalg.norm(towards)
    if kind == "plateau":
        return _ball(towards, rng) if rng.random() < 0.5 else _stairs(towards, rng)
    if kind == "rough":
        return _waves(towards, rng)
    return _hill(towards, rng)._replace(noisy=kind == "noisy")


def noise(f, theta, rng):
    """What a rollout adds: nothing, or Student's t(5), three times as wide on one side of 0."""
    if not f.noisy:
        return np.zeros(theta.shape[:-1])
    width = np.where(theta[..., 0] > 0, 2.0, 0.7)
    return width * rng.standard_t(5, theta.shape[:-1])


def _hill(towards, rng):
    """One broad hill on a slope that bends: a + b x + c x^3 along a line."""
    dim, height = towards.size, rng.uniform(1, 4)
    top, width = rng.uniform(0, 2.5) * towards, rng.uniform(1, 4) * dim
    slope, bend = rng.uniform(-0.5, 0.5), rng.uniform(-0.1, 0.1)

    def value(x):
        along = x @ towards
        hill = height * np.exp(-((x - top) ** 2).sum(-1) / (2 * width))
        return hill + slope * along + bend * along**3

    def mean(m, s):
        along, wider = m @ towards, width + s**2
        hill = height * (width / wider) ** (dim / 2) * np.exp(-((m - top) ** 2).sum() / (2 * wider))
        return hill + slope * along + bend * (along**3 + 3 * along * s**2)

    return Function(value, mean)


def _waves(towards, rng):
    """Waves that run in all directions, on a slope."""
    ways = rng.standard_normal((WAVES, towards.size))
    ways *= (rng.uniform(2, 5, WAVES) / np.linalg.norm(ways, axis=1))[:, None]
    phases, slope = rng.uniform(0, 2 * np.pi, WAVES), rng.uniform(0, 0.6) * towards

    def value(x):
        return np.cos(x @ ways.T + phases).sum(-1) / np.sqrt(WAVES) + x @ slope

    def mean(m, s):
        fading = np.exp(-(s**2) * (ways**2).sum(1) / 2)
        return (fading * np.cos(ways @ m + phases)).sum() / np.sqrt(WAVES) + m @ slope

    return Function(value, mean)


def _ball(towards, rng):
    """One inside a ball, nothing outside."""
    dim = towards.size
    centre, square = rng.uniform(0, 1.5) * towards, dim * rng.uniform(0.7, 1.5)
    return Function(
        lambda x: (((x - centre) ** 2).sum(-1) < square) * 1.0,
        lambda m, s: ncx2.cdf(square / s**2, dim, ((m - centre) ** 2).sum() / s**2),
    )


def _stairs(towards, rng):
    """Two steps, along two lines."""
    other = rng.standard_normal(towards.size)
    other /= np.linalg.norm(other)
    first, second = rng.uniform(-1, 1.5), rng.uniform(-1, 1)
    return Function(
        lambda x: (x @ towards > first) * 1.0 + 0.5 * (x @ other > second),
        lambda m, s: ndtr((m @ towards - first) / s) + 0.5 * ndtr((m @ other - second) / s),
    )

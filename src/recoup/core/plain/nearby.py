"""What results say of one point: the return there, and where each coordinate is best. No JAX."""

from typing import NamedTuple

import numpy as np

from recoup.core.plain.model import Cell, Points, cells, points_of, shares, standardised
from recoup.core.prior import LEVEL, NOISES, SLOPE
from recoup.core.worth import MOST, Interval, quantile

STRETCHED = (0.3, 3.0)  # coordinates, at least and at most
TRIED = 2.5  # how far a coordinate is followed, in units of z
STEPS = np.linspace(-TRIED, TRIED, 51)
WIDER = 1.4  # times the model's own errors: it rounds off peaks, by 0.7 of an error where measured


class Nearby(NamedTuple):
    """The return at z = 0, and the best value of each coordinate while the others stay there."""

    value: float
    stderr: float
    interval: Interval  # of the value
    tops: list[Interval]  # [D] of z_i; infinite where the best may lie beyond what was followed
    noise: float  # standard deviation of one return at one point
    results: int  # that the model looked at


def nearby(z: np.ndarray, returns: np.ndarray) -> Nearby:
    """What `returns [n]` at `z [n, D]` say of z = 0, by the model of `core.surrogate`.

    The nearest results take part, at most `MOST`.
    """
    near = np.argsort(np.sum(z**2, axis=1), kind="stable")[:MOST]
    y, level, scale = standardised(returns[near])
    stretch = _stretch(z[near], y)
    points = points_of(z[near] * stretch)
    found = [_predicted(cell, points, y, stretch) for cell in cells(points, y)]
    evidence, signal, means, variances = (np.concatenate(x) for x in zip(*found, strict=True))
    share = shares(evidence)
    mean = share @ means  # [1 + D S] the value, then the derivatives of each coordinate
    std = np.sqrt(share @ (variances + (means - mean) ** 2))
    noises = np.tile(NOISES, len(signal) // len(NOISES))
    t = WIDER * quantile(len(near))
    value, stderr = level + scale * float(mean[0]), scale * float(std[0])
    slopes, errors = (x[1:].reshape(-1, len(STEPS)) for x in (mean, t * std))
    return Nearby(
        value=value,
        stderr=stderr,
        interval=Interval(value - t * stderr, value + t * stderr),
        tops=[top(slope, error) for slope, error in zip(slopes, errors, strict=True)],
        noise=scale * float(share @ (signal * noises)) ** 0.5,
        results=len(near),
    )


def top(slope: np.ndarray, error: np.ndarray) -> Interval:
    """Where a coordinate with such slopes at `STEPS`, up to an error, has its top.

    Implements: fieller1954 all places at which a derivative may be zero: behind where it is surely
    positive, before where it is surely negative. One that rises (or falls) all along has its top
    beyond what was followed.
    """
    rises, falls = slope > error, slope < -error
    if rises.all() or falls.all():
        return Interval(TRIED, np.inf) if rises[0] else Interval(-np.inf, -TRIED)
    low = STEPS[np.argmin(rises) - 1] if rises[0] else -np.inf  # the last that surely rises
    high = STEPS[::-1][np.argmin(falls[::-1]) - 1] if falls[-1] else np.inf
    return Interval(float(min(low, high)), float(max(low, high)))


def _stretch(z: np.ndarray, y: np.ndarray) -> np.ndarray:
    """By how much to stretch each coordinate `[D]`, so that all count alike: the kernel is round.

    By the square root of what a parabola through the results gives to each; 1 where they are too
    few for one.
    """
    n, dim = z.shape
    if n < 3 * (1 + 2 * dim):
        return np.ones(dim)
    x = np.hstack([np.ones((n, 1)), z, (z**2 - np.mean(z**2, axis=0)) / 2**0.5])
    coefficients = np.linalg.lstsq(x, y, rcond=None)[0][1:].reshape(2, dim)
    share = np.hypot(*coefficients)
    share = np.sqrt(share / np.mean(share)) if np.mean(share) > 0 else np.ones(dim)
    return np.clip(share, *STRETCHED)


def _predicted(
    cell: Cell, points: Points, y: np.ndarray, stretch: np.ndarray
) -> tuple[np.ndarray, ...]:
    """Evidence and signal `[V]`, means and variances `[V, 1 + D S]` of value and derivatives."""
    rows, prior = _covariances(cell, points, stretch)
    mean = cell.k_y @ rows.T
    variance = cell.signal[:, None] * np.maximum(prior - cell.squared(rows), 0.0)
    return cell.evidence, cell.signal, mean, variance


def _covariances(cell: Cell, points: Points, stretch: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of the value at 0 and of derivatives with the returns `[1 + D S, n]`, and their variances.

    The derivative along i is taken at the points x e_i, x of `STEPS`.
    """
    length, below = cell.length, -points.middle / 2
    bowl = cell.bowl * points.bowl / length
    value = LEVEL + np.exp(-points.squares / (2 * length)) + bowl * below
    along = points.z.T[:, None, :]  # [D, 1, n]
    x = (stretch[:, None] * STEPS)[:, :, None]  # [D, S, 1]
    bump = np.exp(-(points.squares - 2 * x * along + x**2) / (2 * length))
    slopes = ((along - x) * bump + SLOPE * along + cell.bowl * x * points.bowl) / length
    rows = np.vstack([value[None], slopes.reshape(-1, len(points.squares))])
    of_value = LEVEL + 1 + cell.bowl * below**2 / length
    of_slope = (1 + SLOPE + cell.bowl * x**2) / length
    return rows, np.concatenate([[of_value], of_slope.ravel()])

"""The model of `core.surrogate` in NumPy: a Gaussian process of few results, all of a grid at once.

A cell of the grid is a length and a bowl; every cell has all noises `[V]`. Cells of one length
share a decomposition: a bowl adds c u u^T to the kernel, and by Sherman and Morrison
(K + c u u^T)^-1 = M - c M u u^T M / (1 + c u^T M u), with M = K^-1.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from recoup.core.prior import BOWLS, LENGTHS, LEVEL, NOISES, SLOPE


class Cell(NamedTuple):
    """A length and a bowl, fitted to returns in units of their standard deviation."""

    length: float
    bowl: float
    evidence: np.ndarray  # [V] log posterior, but for a constant
    signal: np.ndarray  # [V] variance of the bumps
    k_y: np.ndarray  # [V, n] K^-1 y
    diagonal: np.ndarray  # [V, n] of K^-1
    share: np.ndarray  # [V] of the bowl's correction
    m_u: np.ndarray  # [V, n]
    inverse: np.ndarray  # [V, n] of the eigenvalues and noise
    vectors: np.ndarray  # [n, n]

    def solved(self, x: np.ndarray) -> np.ndarray:
        """K^-1 x `[V, n]`."""
        m_x = ((self.vectors.T @ x) * self.inverse) @ self.vectors.T
        return m_x - (self.share * (self.m_u @ x))[:, None] * self.m_u


class Points(NamedTuple):
    """Where returns were seen, as `surrogate.Points`."""

    z: np.ndarray  # [n, D]
    squares: np.ndarray  # [n] |z|^2
    middle: float  # their mean

    @property
    def bowl(self) -> np.ndarray:
        """Half of |z|^2, less its mean `[n]`."""
        return (self.squares - self.middle) / 2


def points_of(z: np.ndarray) -> Points:
    """The points of `z [n, D]`."""
    squares = np.sum(z**2, axis=1)
    return Points(z, squares, float(np.mean(squares)))


def cells(points: Points, y: np.ndarray, more: np.ndarray | float = 0.0) -> Iterator[Cell]:
    """All cells of the grid, fitted to `y [n]`, which are in units of their standard deviation.

    `more [n, n]` is added to their kernel.
    """
    dim, n, u, noises = points.z.shape[1], len(y), points.bowl, np.array(NOISES)
    products = points.z @ points.z.T
    apart = np.maximum(points.squares[:, None] + points.squares - 2 * products, 0.0)
    for scaled in LENGTHS:
        length = scaled * dim
        kernel = LEVEL + np.exp(-apart / (2 * length)) + SLOPE * products / length + more
        values, vectors = np.linalg.eigh(kernel)
        inverse = 1 / (np.maximum(values, 0.0) + noises[:, None])
        m_y, m_u = (((vectors.T @ x) * inverse) @ vectors.T for x in (y, u))
        diagonal, u_m_u = inverse @ (vectors**2).T, m_u @ u
        for bowl in BOWLS:
            c = bowl / length
            share = c / (1 + c * u_m_u)
            k_y = m_y - (share * (m_u @ y))[:, None] * m_u
            signal = (k_y @ y + 2) / (n + 2)
            log_det = np.log1p(c * u_m_u) - np.sum(np.log(inverse), axis=1)
            evidence = _log_prior(scaled, bowl) - (n + 2) / 2 * np.log(signal) - log_det / 2
            left = diagonal - share[:, None] * m_u**2
            yield Cell(length, bowl, evidence, signal, k_y, left, share, m_u, inverse, vectors)


def _log_prior(length: float, bowl: float) -> np.ndarray:
    """Normal in the logarithms of length, bowl and noise `[V]`; but for a constant."""
    of_noise = np.log(np.array(NOISES) / 0.1) / 3.0
    return -(np.log(length) ** 2 + (np.log(bowl / 0.25) / 1.5) ** 2 + of_noise**2) / 2


def shares(evidence: np.ndarray) -> np.ndarray:
    """Posterior probabilities of log evidences."""
    found = np.exp(evidence - np.max(evidence))
    return found / np.sum(found)


def standardised(returns: np.ndarray) -> tuple[np.ndarray, float, float]:
    """Returns in units of their standard deviation, about their mean; the mean, and the unit."""
    level = float(np.mean(returns))
    scale = float(np.sqrt(np.mean((returns - level) ** 2))) or 1.0
    return (returns - level) / scale, level, scale


class Fitted(NamedTuple):
    """What the model says of the mean return under N(0, I), as `surrogate.Fitted`."""

    mean: float
    std: float
    residuals: np.ndarray
    pulls: np.ndarray


def fitted(z: np.ndarray, returns: np.ndarray) -> Fitted:
    """The model of `returns [n]` at `z [n, D]`, averaged over the grid by evidence."""
    y, level, scale = standardised(returns)
    points, dim = points_of(z), z.shape[1]
    below = (dim - points.middle) / 2
    parts = []
    for cell in cells(points, y):
        length, tilt = cell.length, cell.bowl * below / cell.length
        near = (length / (1 + length)) ** (dim / 2) * np.exp(-points.squares / (2 * (1 + length)))
        each = LEVEL + near + tilt * points.bowl
        both = LEVEL + (length / (2 + length)) ** (dim / 2) + tilt * below
        pulls = cell.solved(each)
        variance = cell.signal * np.maximum(both - pulls @ each, 0.0)
        parts.append((cell.evidence, pulls @ y, variance, cell.k_y / cell.diagonal, pulls))
    evidence, means, variances, residuals, pulls = (
        np.concatenate(x) for x in zip(*parts, strict=True)
    )
    share = shares(evidence)
    mean = float(share @ means)
    variance = float(share @ (variances + (means - mean) ** 2))
    return Fitted(
        mean=level + scale * mean,
        std=scale * variance**0.5,
        residuals=scale * share @ residuals,
        pulls=share @ pulls,
    )

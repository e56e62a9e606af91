"""A Gaussian process on the unit box: what local peers model returns with, and what is deployed.

Matern 5/2 with a length for each coordinate and noise; lengths, signal and noise by the evidence.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_solve
from scipy.optimize import minimize

LENGTHS, SIGNAL, NOISE = (0.02, 5.0), (0.05, 20.0), (1e-4, 2.0)  # bounds, returns standardised
JITTER, ROOT = 1e-8, 5**0.5


class SmallGP(NamedTuple):
    """A process that was fitted to standardised returns."""

    x: np.ndarray  # [n, D]
    alpha: np.ndarray  # [n]
    factor: np.ndarray  # [n, n], of K + noise
    log: np.ndarray  # [D + 2]: log lengths, log signal variance, log noise variance
    centre: float  # of the returns
    scale: float

    def mean(self, x: np.ndarray) -> np.ndarray:
        """Posterior means `[m]`."""
        return self.centre + self.scale * (kernel(x, self.x, self.log)[0] @ self.alpha)

    def sample(self, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """One joint sample of the posterior at `[m, D]`."""
        across = kernel(x, self.x, self.log)[0]
        solved = np.linalg.solve(self.factor, across.T)
        covariance = kernel(x, x, self.log)[0] - solved.T @ solved
        root = np.linalg.cholesky(covariance + 1e-6 * np.exp(self.log[-2]) * np.eye(len(x)))
        drawn = across @ self.alpha + root @ rng.standard_normal(len(x))
        return self.centre + self.scale * drawn


def fitted(x: np.ndarray, returns: np.ndarray, start: np.ndarray | None = None) -> SmallGP:
    """The process of returns `[n]` at points `[n, D]`; `start` are logarithms from a fit before."""
    dim = x.shape[1]
    centre, scale = float(returns.mean()), float(returns.std()) or 1.0
    y = (returns - centre) / scale
    bounds = np.log([LENGTHS] * dim + [SIGNAL, NOISE])
    begin = np.log([0.5] * dim + [1.0, 0.1]) if start is None else start
    found = minimize(
        _cost, begin, (x, y), method="L-BFGS-B", jac=True, bounds=bounds, options={"maxiter": 30}
    ).x
    return conditioned(x, returns, found)


def conditioned(x: np.ndarray, returns: np.ndarray, log: np.ndarray) -> SmallGP:
    """The process of returns `[n]` at points `[n, D]` with these lengths, signal and noise."""
    centre, scale = float(returns.mean()), float(returns.std()) or 1.0
    factor, alpha = _solved(x, (returns - centre) / scale, log)[:2]
    return SmallGP(x, alpha, factor, log, centre, scale)


def kernel(a: np.ndarray, b: np.ndarray, log: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Matern 5/2 `[n, m]`, and scaled distances `[n, m]`."""
    a, b = a / np.exp(log[:-2]), b / np.exp(log[:-2])
    square = (a**2).sum(1)[:, None] + (b**2).sum(1) - 2 * a @ b.T
    r = ROOT * np.sqrt(np.maximum(square, 1e-12))
    return np.exp(log[-2]) * (1 + r + r**2 / 3) * np.exp(-r), r


def _solved(x: np.ndarray, y: np.ndarray, log: np.ndarray) -> tuple[np.ndarray, ...]:
    k, r = kernel(x, x, log)
    factor = np.linalg.cholesky(k + (np.exp(log[-1]) + JITTER) * np.eye(len(x)))
    return factor, cho_solve((factor, True), y), k, r


def _cost(log: np.ndarray, x: np.ndarray, y: np.ndarray) -> tuple[float, np.ndarray]:
    """Minus the log evidence with a weak prior on lengths, and its gradient."""
    factor, alpha, k, r = _solved(x, y, log)
    inner = np.outer(alpha, alpha) - cho_solve((factor, True), np.eye(len(x)))
    slope = inner * np.exp(log[-2]) * 5 / 3 * (1 + r) * np.exp(-r)  # times d_j^2 / l_j^2
    scaled = x / np.exp(log[:-2])
    lengths = slope.sum(1) @ scaled**2 - np.einsum("ij,ik,jk->k", slope, scaled, scaled)
    away = log[:-2] - np.log(0.5)
    gradient = [*(away - lengths), -0.5 * np.sum(inner * k), -0.5 * np.exp(log[-1]) * inner.trace()]
    cost = 0.5 * y @ alpha + np.log(np.diag(factor)).sum() + 0.5 * away @ away
    return float(cost), np.array(gradient)


def best_tried(x: np.ndarray, returns: np.ndarray) -> np.ndarray:
    """The tried point `[D]` with the highest posterior mean."""
    return x[np.argmax(fitted(x, returns).mean(x))]

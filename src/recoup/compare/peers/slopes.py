"""Gradients of the Gaussian process of `small_gp`, and local searches by them.

GIBO and MPD differ in what they look at next and in how they step; the loop is the same: a trial at
the iterate, D trials around it where most is learned of the gradient there, a step. Gradients are
those of standardised returns.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_solve

from recoup.compare.peers.small_gp import ROOT, SmallGP, conditioned, fitted, kernel

NEARBY = 0.2  # of the box, on both sides of the iterate: where trials are made
KEPT_PER_DIM, LEAST_KEPT = 5, 20  # the model is of the newest 5 D results, and of 20 at least
AT_RANDOM, FINER, LOOKS_CLOSER = 256, 64, 3  # candidates at random, then around the best of them


class Slope(NamedTuple):
    """The gradient at a point, as the process knows it."""

    mean: np.ndarray  # [D]
    covariance: np.ndarray  # [D, D]
    across: (
        np.ndarray
    )  # [D, n]: covariances, before any result, with returns at the points of the process


Worth = Callable[[Slope, np.ndarray, np.ndarray], np.ndarray]
Step = Callable[[SmallGP, np.ndarray], np.ndarray]


def slope(gp: SmallGP, x: np.ndarray) -> Slope:
    """The gradient at `x [D]`.

    Implements: rasmussen2006 S9.4 grad f | data is normal with mean dk(x, X) K^-1 y and covariance
    d d'k(x, x) - dk K^-1 dk'; of Matern 5/2 d d'k(x, x) = diag(5 s^2 / (3 l^2)).
    """
    across = _across(gp, x, gp.x)
    prior = np.diag(5 / 3 * np.exp(gp.log[-2] - 2 * gp.log[:-2]))
    covariance = prior - across @ cho_solve((gp.factor, True), across.T)
    return Slope(across @ gp.alpha, covariance, across)


def _across(gp: SmallGP, x: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Covariances `[D, m]` of the gradient at `x` with values at `z [m, D]`, before any result."""
    apart = (x - z) / np.exp(gp.log[:-2])
    r = ROOT * np.sqrt((apart**2).sum(1))
    slopes = 5 / 3 * np.exp(gp.log[-2]) * (1 + r) * np.exp(-r)
    return -(slopes[:, None] * apart / np.exp(gp.log[:-2])).T


def shared(gp: SmallGP, at: Slope, x: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Covariances `[m, D]` of the gradient at `x` with returns at `z`, and their variances."""
    values = kernel(z, gp.x, gp.log)[0]
    solved = cho_solve((gp.factor, True), values.T)
    covariance = _across(gp, x, z).T - (at.across @ solved).T
    variance = np.exp(gp.log[-2]) + np.exp(gp.log[-1]) - np.einsum("mn,nm->m", values, solved)
    return covariance, np.maximum(variance, 1e-9)


class LocalSearch:
    """A search around an iterate, which it deploys; `worth` of candidates, and the `step`."""

    batch = 1

    def __init__(self, dim: int, seed: int, worth: Worth, step: Step) -> None:
        self._rng, self._iterate = np.random.default_rng(seed), np.full(dim, 0.5)
        self._worth, self._step, self._dim = worth, step, dim
        self._x, self._y, self._around = np.empty((0, dim)), np.empty(0), 0
        self._log: np.ndarray | None = None

    def ask(self) -> np.ndarray:
        """The iterate, then what teaches most about the gradient there."""
        if not len(self._y) or not self._around or self._log is None:
            return self._iterate[None]
        gp = conditioned(*self._kept(), self._log)
        at = slope(gp, self._iterate)

        def value(z: np.ndarray) -> np.ndarray:
            return self._worth(at, *shared(gp, at, self._iterate, z))

        best, width = self._iterate, NEARBY
        for number in range(LOOKS_CLOSER):
            count = AT_RANDOM if number == 0 else FINER
            drawn = best + width * self._rng.uniform(-1, 1, (count, self._dim))
            z = self._near(np.concatenate([drawn, best[None]]))
            best, width = z[np.argmax(value(z))], width / 3
        return best[None]

    def _near(self, z: np.ndarray) -> np.ndarray:
        low, high = self._iterate - NEARBY, self._iterate + NEARBY
        return np.clip(np.clip(z, low, high), 0.0, 1.0)

    def _kept(self) -> tuple[np.ndarray, np.ndarray]:
        kept = max(KEPT_PER_DIM * self._dim, LEAST_KEPT)
        return self._x[-kept:], self._y[-kept:]

    def tell(self, x: np.ndarray, returns: np.ndarray) -> None:
        """After D trials around the iterate it steps."""
        self._x, self._y = np.concatenate([self._x, x]), np.concatenate([self._y, returns])
        self._around += 1
        if self._around > self._dim or self._log is None:
            gp = fitted(*self._kept(), self._log)
            self._log = gp.log
            if self._around > self._dim:
                self._iterate, self._around = np.clip(self._step(gp, self._iterate), 0.0, 1.0), 0

    def mean(self) -> np.ndarray:
        """The iterate."""
        return self._iterate

    def draw(self, noise: np.ndarray) -> np.ndarray:
        """What it tried last."""
        return self._x[-LEAST_KEPT:]

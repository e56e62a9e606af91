"""TuRBO-1 (Eriksson et al., 2019) with a Gaussian process of our own, in the unit box."""

from math import ceil

import numpy as np
from scipy.stats import qmc

from recoup.compare.peers.small_gp import SmallGP, best_tried, fitted
from recoup.core.types import Settings

BATCH, FIRST_BOX, LEAST_BOX, MOST_BOX = 4, 0.8, 0.5**7, 1.6  # of the trust region's length
SUCCESSES, CANDIDATES = 3, 500
RECENT = 20  # trials that stand for what it tries now


def turbo(dim: int, seed: int, settings: Settings) -> "TrustRegion":
    """A run of TuRBO-1 by Thompson samples, batches of four."""
    return TrustRegion(dim, seed)


class TrustRegion:
    """Thompson samples of a Gaussian process in a box around its best point.

    Implements: eriksson2019 S2 the region doubles after three batches that improve, halves after
    max(4, D) / batch that do not, and starts anew below 2^-7. The centre is the tried point with
    the highest posterior mean, as the paper says for noisy returns.
    """

    batch = BATCH

    def __init__(self, dim: int, seed: int) -> None:
        self._rng, self._dim = np.random.default_rng(seed), dim
        self._sobol = qmc.Sobol(dim, rng=self._rng)
        self._x, self._y = np.empty((0, dim)), np.empty(0)
        self._log: np.ndarray | None = None
        self._restart()

    def _restart(self) -> None:
        self._length, self._good, self._bad, self._first = FIRST_BOX, 0, 0, len(self._y)
        self._initial = self._first + BATCH * ceil(2 * self._dim / BATCH)

    def ask(self) -> np.ndarray:
        """The first points of a region at random, then Thompson samples."""
        if len(self._y) < self._initial:
            return self._sobol.random(BATCH)
        gp = self._model()
        centre = gp.x[np.argmax(gp.mean(gp.x))]
        lengths = np.exp(gp.log[: self._dim])
        widths = lengths / np.exp(np.log(lengths).mean())
        low, high = (np.clip(centre + s * self._length * widths / 2, 0, 1) for s in (-1, 1))
        drawn = low + (high - low) * self._rng.random((CANDIDATES, self._dim))
        kept = self._rng.random(drawn.shape) < min(20 / self._dim, 1.0)
        kept[np.arange(CANDIDATES), self._rng.integers(self._dim, size=CANDIDATES)] = True
        found = np.where(kept, drawn, centre)
        return np.array([found[np.argmax(gp.sample(found, self._rng))] for _ in range(BATCH)])

    def _model(self) -> SmallGP:
        gp = fitted(self._x[self._first :], self._y[self._first :], self._log)
        self._log = gp.log
        return gp

    def tell(self, x: np.ndarray, returns: np.ndarray) -> None:
        """The region grows or shrinks with what came."""
        before = self._y[self._first :]
        self._x, self._y = np.concatenate([self._x, x]), np.concatenate([self._y, returns])
        if len(self._y) <= self._initial:
            return
        best = before.max()
        improved = returns.max() > best + 1e-3 * abs(best)
        self._good, self._bad = (self._good + 1, 0) if improved else (0, self._bad + 1)
        if self._good == SUCCESSES:
            self._length, self._good = min(2 * self._length, MOST_BOX), 0
        elif self._bad == ceil(max(4, self._dim) / BATCH):
            self._length, self._bad = self._length / 2, 0
        if self._length < LEAST_BOX:
            self._restart()

    def mean(self) -> np.ndarray:
        """The tried point with the highest posterior mean; the middle before there is any."""
        return best_tried(self._x, self._y) if len(self._y) > 1 else np.full(self._dim, 0.5)

    def draw(self, noise: np.ndarray) -> np.ndarray:
        """What it tried last."""
        return self._x[-RECENT:]

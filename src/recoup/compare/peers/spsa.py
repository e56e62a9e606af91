"""SPSA, ours, with gains fixed beforehand as Spall (1998) advises, in the unit box."""

import numpy as np

from recoup.core.types import Settings

ALPHA, GAMMA, STABLE = 0.602, 0.101, 10.0  # exponents of both gains, and A
PROBE, FIRST_STEP = 0.1, 0.1  # c, and the first steps in the mean over coordinates, of the box
FIRST_GRADIENTS = 3  # gradients that say how large `a` must be for such steps


def spsa(dim: int, seed: int, settings: Settings) -> "Perturbed":
    """A run; `sigma` is c, `lr` the size of its first steps."""
    return Perturbed(dim, seed, settings)


class Perturbed:
    """Two trials a step, on both sides of the iterate.

    Implements: spall1998 S3 x <- x + a_k (R+ - R-) / (2 c_k) / delta, with a_k = a / (k + 1 + A)^
    0.602 and c_k = c / (k + 1)^0.101; a from the mean size of the first three gradients.
    """

    batch = 2

    def __init__(self, dim: int, seed: int, settings: Settings) -> None:
        self._rng, self._x, self._k = np.random.default_rng(seed), np.full(dim, 0.5), 0
        self._c = float(settings.get("sigma", PROBE))
        self._step = float(settings.get("lr", FIRST_STEP))
        self._delta, self._sizes = np.ones(dim), list[float]()

    @property
    def _width(self) -> float:
        return self._c / (self._k + 1) ** GAMMA

    def ask(self) -> np.ndarray:
        """Both sides of the iterate, within the box."""
        self._delta = self._rng.choice([-1.0, 1.0], len(self._x))
        return np.clip(self._x + self._width * np.outer([1, -1], self._delta), 0.0, 1.0)

    def tell(self, x: np.ndarray, returns: np.ndarray) -> None:
        """One step, once the size of gradients is known."""
        gradient = (returns[0] - returns[1]) / (2 * self._width) * self._delta
        if len(self._sizes) < FIRST_GRADIENTS:
            self._sizes.append(float(np.abs(gradient).mean()))
        size = float(np.mean(self._sizes))
        if size > 0:
            a = self._step * (1 + STABLE) ** ALPHA / size
            self._x = np.clip(self._x + a / (self._k + 1 + STABLE) ** ALPHA * gradient, 0.0, 1.0)
        self._k += 1

    def mean(self) -> np.ndarray:
        """The iterate."""
        return self._x

    def draw(self, noise: np.ndarray) -> np.ndarray:
        """Perturbed iterates."""
        return np.clip(self._x + self._width * np.where(noise > 0, 1.0, -1.0), 0.0, 1.0)

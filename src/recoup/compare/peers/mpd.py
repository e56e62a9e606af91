"""MPD (Nguyen et al., 2022): a local search where ascent is most probable, by the same process."""

import numpy as np
from scipy.stats import norm

from recoup.compare.peers.slopes import LocalSearch, Slope, slope
from recoup.compare.peers.small_gp import SmallGP
from recoup.core.types import Settings

STEP_SIZE, MOST_STEPS = 0.01, 100  # of the box
LEAST_ASCENT = 0.65  # probability of it, below which no step is made
OF_TRACE = 1e-9  # of the trace, so that a covariance can be inverted


def mpd(dim: int, seed: int, settings: Settings) -> LocalSearch:
    """A run, with the steps and the probability that its authors take."""
    return LocalSearch(dim, seed, promise, climbed)


def ascent(at: Slope) -> tuple[np.ndarray, float]:
    """The direction `[D]` in which ascent is most probable, and that probability.

    Implements: nguyen2022 Thm. 1 v = cov^-1 mean of the gradient, with probability
    Phi(sqrt(mean' cov^-1 mean)).
    """
    direction = np.linalg.solve(_steady(at.covariance), at.mean)
    size = float(np.linalg.norm(direction))
    probability = float(norm.cdf(max(float(at.mean @ direction), 0.0) ** 0.5))
    return direction / size if size > 0 else direction, probability


def promise(at: Slope, covariance: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """Expectations `[m]`, over the return at each candidate, of mean' cov^-1 mean once it is told.

    Implements: nguyen2022 S3.2 alpha(z) = E[mean_z' cov_z^-1 mean_z] = mean' P mean
    + ((c' P mean)^2 + c' P c) / (s^2 - c' P c), with P = cov^-1, by the matrix inversion lemma.
    """
    both = np.linalg.solve(_steady(at.covariance), np.column_stack([at.mean, covariance.T])).T
    along, own = covariance @ both[0], (covariance * both[1:]).sum(1)
    left = np.maximum(variance - own, 1e-9 * variance)
    return at.mean @ both[0] + (along**2 + own) / left


def climbed(gp: SmallGP, x: np.ndarray) -> np.ndarray:
    """The next iterate: small steps for as long as ascent is probable enough."""
    for _ in range(MOST_STEPS):
        direction, probability = ascent(slope(gp, x))
        after = np.clip(x + STEP_SIZE * direction, 0.0, 1.0)
        if probability < LEAST_ASCENT or np.array_equal(after, x):
            break
        x = after
    return x


def _steady(covariance: np.ndarray) -> np.ndarray:
    return covariance + OF_TRACE * covariance.trace() * np.eye(len(covariance))

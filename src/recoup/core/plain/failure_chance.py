"""The chance that a rollout fails, at a point or under a Gaussian, from results nearby. No JAX.

A Gaussian process over z, of the kernel of `core.surrogate` but its bowl, squashed into a chance.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from recoup.core.prior import LEVEL, SLOPE
from recoup.core.surrogate import shares
from recoup.core.worth import probes

NEAREST_TRIALS = 128  # results, the nearest, that the model looks at
LENGTHS = (0.3, 1.0, 3.0)  # squared length of bumps over the number of dimensions
HEIGHTS = (1.0, 9.0)  # variance of bumps in the log-odds
NEWTON_STEPS, STILL = 20, 1e-6  # of Newton's method, at most; a change of log-odds that is none
LOG_ODDS_DRAWS = 400  # of the log-odds, from each model
PROBE_PAIRS = 32  # points that, with their mirror images, stand for a Gaussian
ENDS = (0.025, 0.975)


class ChanceOfFailing(NamedTuple):
    """A chance of failing, with its 95 % interval."""

    rate: float
    low: float
    high: float
    results: int  # that it rests on


def chance_at(z: np.ndarray, failed: np.ndarray) -> ChanceOfFailing:
    """The chance at z = 0 of failing as some of the results at `z [n, D]` have."""
    return _chance(z, failed, np.zeros((1, z.shape[1])))


def chance_under(z: np.ndarray, failed: np.ndarray) -> ChanceOfFailing:
    """The chance of failing of a draw from N(0, I)."""
    some = probes(z.shape[1])[:PROBE_PAIRS]
    return _chance(z, failed, np.vstack([some, -some]))  # as many on either side


def _chance(z: np.ndarray, failed: np.ndarray, at: np.ndarray) -> ChanceOfFailing:
    """The mean chance over the points `at [m, D]`, averaged over models by their evidence."""
    near = np.argsort(np.sum(z**2, axis=1), kind="stable")[:NEAREST_TRIALS]
    z, failed = z[near], failed[near]
    noise = np.random.default_rng(0).standard_normal((LOG_ODDS_DRAWS, len(at)))
    found = list(_drawn(z, failed, at, noise))
    share = shares(np.array([evidence for evidence, _ in found]))
    means = np.concatenate([draws for _, draws in found])
    mass = np.repeat(share / LOG_ODDS_DRAWS, LOG_ODDS_DRAWS)
    order = np.argsort(means, kind="stable")
    low, high = (float(means[order][np.searchsorted(np.cumsum(mass[order]), end)]) for end in ENDS)
    least = 1 / (2 * len(z))  # so many results cannot tell a smaller chance from none
    rate = float(mass @ means)
    return ChanceOfFailing(
        rate, 0.0 if low < least else low, 1.0 if high > 1 - least else high, len(z)
    )


def _drawn(
    z: np.ndarray, failed: np.ndarray, at: np.ndarray, noise: np.ndarray
) -> Iterator[tuple[float, np.ndarray]]:
    """For each model its log-evidence, and draws of the mean chance over `at [m, D]`."""
    both = np.vstack([z, at])
    n, products = len(z), both @ both.T
    squares = np.diagonal(products)
    apart = np.maximum(squares[:, None] + squares - 2 * products, 0.0)
    for scaled in LENGTHS:
        length = scaled * z.shape[1]
        kernel = LEVEL + np.exp(-apart / (2 * length)) + SLOPE * products / length
        for height in HEIGHTS:
            k = height * kernel
            evidence, slope, inverse = _laplace(k[:n, :n], failed)
            across = k[n:, :n]
            mean = across @ slope
            spread = k[n:, n:] - across @ inverse @ across.T
            values, axes = np.linalg.eigh((spread + spread.T) / 2)
            factor = axes * np.sqrt(np.maximum(values, 0.0))
            yield evidence, np.mean(_logistic(mean + noise @ factor.T), axis=1)


def _laplace(k: np.ndarray, failed: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Log-evidence, K^-1 f at the mode f, and (K + W^-1)^-1, of labels under a logistic.

    As Rasmussen and Williams (2006), algorithms 3.1 and 3.2.
    """
    n, y = len(k), np.where(failed, 1.0, 0.0)
    f, a = np.zeros(n), np.zeros(n)
    for _ in range(NEWTON_STEPS):
        p = _logistic(f)
        root = np.sqrt(np.maximum(p * (1 - p), 1e-12))
        b = root**2 * f + y - p
        whole = np.eye(n) + root[:, None] * k * root
        a = b - root * np.linalg.solve(whole, root * (k @ b))
        before, f = f, k @ a
        if np.max(np.abs(f - before)) < STILL:
            break
    fits = -np.sum(np.logaddexp(0.0, np.where(failed, -f, f)))
    inverse = root[:, None] * np.linalg.inv(whole) * root
    return float(fits - a @ f / 2 - np.linalg.slogdet(whole)[1] / 2), a, inverse


def _logistic(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-np.clip(x, -500.0, 500.0)))

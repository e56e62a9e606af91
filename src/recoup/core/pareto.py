"""Diagnostics that run on the host, outside traced code."""

import numpy as np

from recoup.core.types import Array

MIN_WEIGHTS = 25  # fewer leave a tail of under five, to which no Pareto law can be fitted
PRIOR_K, PRIOR_POINTS = 0.5, 10  # what k-hat is drawn towards, and as how many weights that counts


def pareto_k(weights: Array) -> float:
    """Pareto k-hat of the positive `weights`: above 0.7 their mean cannot be trusted.

    Implements: vehtari2024 Pareto k-hat, of the min(n / 5, 3 sqrt n) largest weights.

    A small one says that the tail that was seen is light, and nothing about what was not seen.
    Not a number where there are fewer than 25 weights; minus infinity where the tail is flat (equal
    or truncated weights). (arviz-stats, which tests hold this to, takes a second to import.)

    Raises nothing.

    >>> found = recoup.estimate(theta, returns, **drawn, target=([0.2, 0.2], [0.9, 0.9]))
    >>> recoup.pareto_k(found.weights) < 0.7
    True
    """
    weights = np.asarray(weights, np.float64).ravel()
    weights = np.sort(weights[weights > 0])
    n = weights.size
    if n < MIN_WEIGHTS:
        return float("nan")
    weights = weights / weights[-1]
    tail = int(min(n / 5, 3 * n**0.5))
    largest, cutoff = weights[-tail:], weights[-tail - 1]
    if np.log(largest[-1]) - np.log(largest[0]) < np.finfo(float).tiny:
        return float("-inf")
    with np.errstate(all="ignore"):
        return _shape(largest - cutoff)


def _shape(x: np.ndarray) -> float:
    """The shape k of a generalised Pareto law that positive `x`, sorted, are drawn from.

    Implements: zhang2009 quasi-Bayesian fit of (k, sigma) through b = -k / sigma: the likelihood
    profiled over k at points b of a prior, their mean, and k at that mean; drawn to 0.5 as if by
    ten more weights.
    """
    n = x.size
    points = 30 + int(n**0.5)
    quartile = x[int(n / 4 + 0.5) - 1]
    steps = np.arange(1, points + 1) - 0.5
    b = 1 / x[-1] + (1 - np.sqrt(points / steps)) / (3 * quartile)
    k = np.mean(np.log1p(-b[:, None] * x), axis=1)
    likelihood = n * (np.log(-b / k) - k - 1)
    share = np.exp(likelihood - np.max(likelihood))
    share = np.where(share >= 10 * np.finfo(float).eps * np.sum(share), share, 0.0)
    middle = np.sum(b * share) / np.sum(share)
    found = np.mean(np.log1p(-middle * x))
    return float((n * found + PRIOR_POINTS * PRIOR_K) / (n + PRIOR_POINTS))

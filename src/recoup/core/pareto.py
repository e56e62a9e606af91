"""Diagnostics that run on the host, outside traced code."""

from typing import Any

import numpy as np

MIN_WEIGHTS = 25  # fewer leave a tail of under five, to which no Pareto law can be fitted


def pareto_k(weights: Any) -> float:
    """Pareto k-hat of the positive `weights`: above 0.7 their mean cannot be trusted.

    Implements: vehtari2024 Pareto k-hat, by arviz-stats.

    A small one says that the tail that was seen is light, and nothing about what was not seen.
    Not a number where there are fewer than 25 weights; minus infinity where the tail is flat (equal
    or truncated weights). arviz-stats takes *negated* log-weights.
    """
    from arviz_stats.base import array_stats

    weights = np.asarray(weights, np.float64).ravel()
    weights = weights[weights > 0]
    if weights.size < MIN_WEIGHTS:
        return float("nan")
    try:
        with np.errstate(all="ignore"):
            _, k = array_stats.psislw(-np.log(weights))
    except ValueError:  # arviz-stats refuses a tail whose values are all the same
        return float("-inf")
    return float(k)

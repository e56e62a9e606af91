"""The standard error of `core.intervals` in NumPy."""

import numpy as np


def standard_error(residuals: np.ndarray, drew: np.ndarray, stratum: np.ndarray) -> float:
    """Of a sum of independent `residuals [G]`, drawn in strata, as `intervals.standard_error`."""
    total = int(np.sum(drew))
    if total < 2:
        return float("nan")
    count = np.bincount(stratum, weights=drew)
    mean = np.bincount(stratum, weights=drew * residuals) / np.maximum(count, 1)
    several = count > 1
    factor = np.where(several, count / np.maximum(count - 1, 1), total / (total - 1))
    apart = residuals - np.where(several, mean, 0.0)[stratum]
    return float(np.sqrt(np.sum(drew * factor[stratum] * apart**2)))

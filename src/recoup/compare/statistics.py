"""What is said about runs: means, differences, intervals. Functions of arrays `[R]` over runs.

Intervals are percentiles of bootstrap resamples of the runs, always the same ones: a number is a
function of the data alone.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats

from recoup.core.types import Array

RESAMPLES = 2000
COVERAGE = 0.95
RESAMPLES_SEED = 1312  # of the resamples


class Mean(NamedTuple):
    """A mean over runs, with its standard error: not a number for one run."""

    mean: float
    stderr: float
    runs: int


class WithInterval(NamedTuple):
    """A number with its 95 % interval."""

    value: float
    low: float
    high: float


def mean_of(values: Array) -> Mean:
    """Mean and standard error of the mean of values `[R]`."""
    values = np.asarray(values, float)
    few = len(values) < 2
    error = np.nan if few else values.std(ddof=1) / np.sqrt(len(values))
    return Mean(float(values.mean()), float(error), len(values))


def paired(values: Array, reference: Array) -> Mean:
    """Mean of the differences of runs that share a start, with its standard error."""
    return mean_of(np.asarray(values, float) - np.asarray(reference, float))


def chance(difference: Mean) -> float:
    """Probability of so large a mean difference, either way, where there is none: p of a t-test.

    Where all runs differ alike it is that of a sign test. Not a number for one run.

    Implements: t-test p = 2 P(T > |mean| / stderr), with T Student's of runs - 1 degrees.
    """
    mean, error, runs = difference
    if error == 0:
        return 2 * 0.5**runs if mean else 1.0
    return float(2 * stats.t.sf(abs(mean) / error, runs - 1))


def discoveries(p: Array) -> np.ndarray:
    """P-values `[K]` corrected for their number.

    Where those up to q are called clear, at most a share q of these calls is false on average.

    Implements: benjamini1995 S3.1 p_(k) becomes min_{j >= k} min(1, K p_(j) / j), the K p-values
    sorted.
    """
    p = np.asarray(p, float)
    order = np.argsort(p)
    scaled = p[order] * len(p) / np.arange(1, len(p) + 1)
    found = np.empty(len(p))
    found[order] = np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1.0)
    return found


def trimmed_mean(values: np.ndarray) -> np.ndarray:
    """Inter-quartile means over the last axis: without a quarter, rounded down, at each end."""
    ordered = np.sort(values, axis=-1)
    cut = ordered.shape[-1] // 4
    return ordered[..., cut : ordered.shape[-1] - cut].mean(-1)


def iqm(values: Array) -> WithInterval:
    """Inter-quartile mean of runs `[R]`, or of all runs of tasks `[T, R]`.

    The interval resamples the runs of each task by themselves (stratified bootstrap).
    """
    by_task = np.atleast_2d(np.asarray(values, float))
    chosen = [runs[_choices(len(runs), i)] for i, runs in enumerate(by_task)]
    resampled = np.concatenate(chosen, axis=1)
    return _interval(float(trimmed_mean(by_task.ravel())), trimmed_mean(resampled))


def area(episodes: Sequence[float], curve: Array) -> np.ndarray:
    """Area under curves `[..., C]` over episodes `[C]` by the trapezoid rule, over their range.

    So it is a mean return, and of one point the return there.
    """
    at, values = np.asarray(episodes, float), np.asarray(curve, float)
    if len(at) == 1:
        return values[..., 0]
    return np.trapezoid(values, at, axis=-1) / (at[-1] - at[0])


def episodes_to(episodes: Sequence[float], curve: Array, target: float) -> float:
    """Episodes after which a curve `[C]` first reaches the target, straight between its points.

    Infinite where it never does.
    """
    at, values = np.asarray(episodes, float), np.asarray(curve, float)
    reached = np.flatnonzero(values >= target)
    if not len(reached):
        return float("inf")
    i = int(reached[0])
    if i == 0 or np.isnan(values[i - 1]):
        return float(at[i])
    share = (target - values[i - 1]) / (values[i] - values[i - 1])
    return float(at[i - 1] + share * (at[i] - at[i - 1]))


def episodes_to_of(episodes: Sequence[float], curves: Array, target: float) -> WithInterval:
    """The same of the mean of curves `[R, C]`, with an interval over runs."""
    curves = np.asarray(curves, float)
    means = curves[_choices(len(curves), 0)].mean(1)  # [B, C]
    found = np.array([episodes_to(episodes, mean, target) for mean in means])
    return _interval(episodes_to(episodes, curves.mean(0), target), found)


def improvement(values: Array, reference: Array) -> WithInterval:
    """Probability that a run is better than one of the reference: P(X > Y) + P(X = Y) / 2.

    Over all pairs of runs; the interval resamples runs, both methods' together, since they share
    starts. Not a number where a run has none.
    """
    x, y = np.asarray(values, float), np.asarray(reference, float)
    if np.isnan(x).any() or np.isnan(y).any():
        return WithInterval(np.nan, np.nan, np.nan)
    better = (x[:, None] > y) + 0.5 * (x[:, None] == y)  # [R, R]
    chosen = _choices(len(x), 0)
    found = np.array([better[np.ix_(one, one)].mean() for one in chosen])
    return _interval(float(better.mean()), found)


def _choices(runs: int, stratum: int) -> np.ndarray:
    """Which runs each resample is made of `[B, R]`."""
    return np.random.default_rng([RESAMPLES_SEED, stratum]).integers(runs, size=(RESAMPLES, runs))


def _interval(value: float, found: np.ndarray) -> WithInterval:
    tail = (1 - COVERAGE) / 2
    low, high = np.quantile(found, [tail, 1 - tail], method="inverted_cdf")
    return WithInterval(value, float(low), float(high))

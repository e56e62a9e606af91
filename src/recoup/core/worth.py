"""The interval of an expected return from its numbers, and when none can be given. No JAX."""

from functools import lru_cache
from math import atan, cos, exp, hypot, lgamma, pi, tan
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from recoup.core.types import Array, Samples

COVERAGE = 0.95
NODES, SHARES = np.polynomial.legendre.leggauss(64)  # of Gauss and Legendre, on [-1, 1]
ROUNDING = 1e-14  # of the mean, below which a spread is none
LEAST_ESS = 5.0  # effective sample size below which there is no interval
FAIR = (0.9, 1.1)  # the mean of weights, which should be 1, between which there is one
FEW, UNSEEN = 6.0, 0.15  # results expected for a draw of the candidate; how much may have fewer
RESULTS_EACH, EVEN = 4, 0.9  # results a dimension, without which weights must be nearly equal
BEYOND = 2.0  # standard deviations by which the returns of what is unseen may differ
EXPERIENCED = 10.0  # effective sample size up to which the model cannot narrow an interval
MODELLED = 256  # results that the model looks at
NEGLIGIBLE = 1e-3  # share of the weight that it may leave out
FAR_AWAY = 1e-8  # of the largest weight, below which it leaves out a result anyway
PROBE_DRAWS = 1024  # draws of the candidate that are looked at


class Interval(NamedTuple):
    """A 95 % interval; not a number where there is none.

    >>> advice.interval.low < advice.expected < advice.interval.high
    True
    """

    low: float  # its lower end
    high: float  # its upper end


NOTHING = Interval(float("nan"), float("nan"))


def student(mean: float, stderr: float, ess: float, mean_weight: float = 1.0) -> Interval:
    """The interval of a weighted mean, from its standard error and the worth of its weights.

    Implements: student1908 t interval, mean +- t(ess - 1) stderr. Differs: the effective sample
    size stands for the number of samples. None where that is below 5, where the weights' mean
    says that they miss a part of the distribution, or where there is no spread to go by.
    """
    known = ess >= LEAST_ESS and FAIR[0] <= mean_weight <= FAIR[1] and np.isfinite(stderr)
    if not (known and stderr > ROUNDING * abs(mean)):
        return NOTHING
    half = quantile(ess) * stderr
    return Interval(mean - half, mean + half)


def quantile(ess: float) -> float:
    """The quantile of Student's t for `ess` effective samples, two-sided."""
    return _student_quantile(max(ess - 1, 1.0))


def proportion(successes: int, n: int) -> Interval:
    """The interval of a chance of which `successes` of `n` are known.

    Implements: wilson1927 score interval: all p that n p successes are not too far from.
    """
    z = quantile(float("inf"))
    middle = (successes + z**2 / 2) / (n + z**2)
    half = z / (n + z**2) * (successes * (n - successes) / n + z**2 / 4) ** 0.5
    low = max(middle - half, 0.0) if successes else 0.0
    return Interval(low, min(middle + half, 1.0) if successes < n else 1.0)


def _student_quantile(degrees: float) -> float:
    """t with P(|T| < t) = LEVEL: 2 c int_0^atan(t / sqrt(v)) cos(u)^(v - 1) du, by Newton.

    c = Gamma((v + 1) / 2) / (sqrt(pi) Gamma(v / 2)). (scipy.special has it, and takes a quarter of
    a second to import.) Above ten thousand degrees it is Cornish and Fisher's expansion.
    """
    z = NormalDist().inv_cdf((1 + COVERAGE) / 2)
    if degrees > 1e4:
        return z + (z**3 + z) / (4 * degrees) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * degrees**2)
    c = exp(lgamma((degrees + 1) / 2) - lgamma(degrees / 2)) / pi**0.5
    angle = atan(z / degrees**0.5)
    for _ in range(8):
        u = angle * (1 + NODES) / 2
        inside = angle * float(np.sum(SHARES * np.cos(u) ** (degrees - 1)))
        angle += (COVERAGE / (2 * c) - inside / 2) / cos(angle) ** (degrees - 1)
    return degrees**0.5 * tan(angle)


@lru_cache(maxsize=4)
def probes(dim: int) -> np.ndarray:
    """Standard normal noise `[PROBES, D]`, always the same: what a candidate is looked at with.

    A Latin hypercube: every coordinate has one value in each of PROBES equally likely parts, so
    that shares of a candidate are found more exactly than by independent draws.
    """
    middles = [NormalDist().inv_cdf((i + 0.5) / PROBE_DRAWS) for i in range(PROBE_DRAWS)]
    columns = np.broadcast_to(np.array(middles)[:, None], (PROBE_DRAWS, dim))
    return np.random.Generator(np.random.Philox(0)).permuted(columns, axis=0)


class Seen(NamedTuple):
    """What weighed results say of the mean return of a candidate, by weights, and with a model."""

    weighted: Array  # sum w R / sum w
    weighted_stderr: Array
    modelled: Array  # the model's mean and the weighted mean of what it leaves over
    modelled_stderr: Array  # of the latter
    model_std: Array  # of the former, as the model has it; infinite where no model takes part
    ess: Array  # in draws
    even: Array  # the same over the number of draws
    mean_weight: Array
    spread: Array  # of the returns: the largest less the smallest
    std: Array  # of the returns, weighted
    samples: Samples


UNSEEN_PART, FEW_SAMPLES, MANY_DIMENSIONS = "unseen", "few", "dimensions"
UNFAIR, EQUAL, HUGE = "unfair", "equal", "huge"


class Worth(NamedTuple):
    """The mean return of a candidate in numbers; not a number where results say nothing."""

    mean: float
    stderr: float
    interval: Interval
    ess: float
    unseen: float
    explained: float  # share of the returns' variance that the model took over; 0: weights alone
    refused: str = ""  # why there is no interval: one of the words above


def refusal(seen: Seen, unseen: float, dim: int) -> str:
    """Why there is no interval, or nothing; it looks at what the model says in `HUGE` alone.

    Weighted means of returns that rise with their weights are biased, and only the model sees it:
    so where it has too few results to learn a slope from, the weights must be nearly equal.
    """
    if float(seen.samples) < FEW:
        return FEW_SAMPLES
    if unseen > UNSEEN:
        return UNSEEN_PART
    if not float(seen.ess) >= LEAST_ESS:
        return FEW_SAMPLES
    if float(seen.samples) < RESULTS_EACH * dim and float(seen.even) < EVEN:
        return MANY_DIMENSIONS
    if np.isnan(unseen) and not FAIR[0] <= float(seen.mean_weight) <= FAIR[1]:
        return UNFAIR
    if float(seen.weighted_stderr) <= ROUNDING * abs(float(seen.weighted)):
        return EQUAL
    numbers = (seen.weighted, seen.weighted_stderr, seen.modelled, seen.modelled_stderr, seen.std)
    return "" if np.isfinite(numbers).all() else HUGE


def worth(seen: Seen, unseen: float, dim: int) -> Worth:
    """The interval that is narrower, by weights or with the model, if any may be given.

    `dim` is that of theta, 0 where samples are trajectories.
    Weights know nothing of what is unseen: it may lie two standard deviations of the returns away,
    so far as it counts. The model may narrow an interval only as far as there are samples to show
    that it is right; and where the two disagree, the interval holds both means.
    """
    ess = float(seen.ess)
    refused = refusal(seen, unseen, dim)
    mean, other, explained = float(seen.weighted), float(seen.modelled), 0.0
    if refused:
        shown = mean if refused == EQUAL else float("nan")
        return Worth(shown, float("nan"), NOTHING, ess, unseen, 0.0, refused)
    t = quantile(ess)
    half = t * float(seen.weighted_stderr) + BEYOND * np.nan_to_num(unseen) * float(seen.std)
    doubt = min(1.0, (EXPERIENCED / ess) ** 0.5) * half
    z = quantile(float("inf"))
    both = hypot(t * float(seen.modelled_stderr), z * float(seen.model_std), doubt)
    if both < half:
        mean, other = other, mean
        explained = max(0.0, 1 - (float(seen.modelled_stderr) / float(seen.weighted_stderr)) ** 2)
        half = both
    if np.isfinite(float(seen.model_std)):
        half = max(half, abs(mean - other))
    return Worth(mean, half / t, Interval(mean - half, mean + half), ess, unseen, explained)

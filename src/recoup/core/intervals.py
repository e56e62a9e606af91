"""Intervals for an expected return, and when none can be given.

Weights say how far results of other distributions count for a candidate, not what lies where none
were drawn: an effective sample size of 3 can come with a small spread and a wrong mean. So how much
of the candidate was never looked at is computed from the densities, not from the results, and a
model of the returns takes part where it explains them.
"""

from collections.abc import Callable
from functools import partial
from math import hypot
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy.special import stdtrit

from recoup.core.archive import Archive, log_densities, mixture_density
from recoup.core.families.family import Family
from recoup.core.surrogate import fitted
from recoup.core.weights import by_draw, effective_sample_size, mixture_ratio, weigh

LEVEL = 0.95
ROUNDING = 1e-12  # of the mean, below which a spread is none
LEAST = 5.0  # effective sample size below which there is no interval
FAIR = (0.9, 1.1)  # the mean of weights, which should be 1, between which there is one
FEW, UNSEEN = 6.0, 0.15  # results expected for a draw of the candidate; how much may have fewer
MANY, EVEN = 4, 0.9  # results a dimension, without which weights must be nearly equal
BEYOND = 2.0  # standard deviations by which the returns of what is unseen may differ
EXPERIENCED = 10.0  # effective sample size up to which the model cannot narrow an interval
MOST = 256  # results that the model looks at
NEGLIGIBLE = 1e-3  # share of the weight that it may leave out
FAR_AWAY = 1e-8  # of the largest weight, below which it leaves out a result anyway
PROBES = 1024  # draws of the candidate that are looked at


class Interval(NamedTuple):
    """A 95 % interval; not a number where there is none."""

    low: float
    high: float


NOTHING = Interval(float("nan"), float("nan"))


def student(mean: float, stderr: float, ess: float, mean_weight: float = 1.0) -> Interval:
    """The interval of a weighted mean, from its standard error and the worth of its weights.

    Implements: student1908 t interval, mean +- t(ess - 1) stderr. Differs: the effective sample
    size stands for the number of samples. None where that is below 5, where the weights' mean
    says that they miss a part of the distribution, or where there is no spread to go by.
    """
    known = ess >= LEAST and FAIR[0] <= mean_weight <= FAIR[1] and np.isfinite(stderr)
    if not (known and stderr > ROUNDING * abs(mean)):
        return NOTHING
    half = quantile(ess) * stderr
    return Interval(mean - half, mean + half)


def quantile(ess: float) -> float:
    """The quantile of Student's t for `ess` effective samples, two-sided."""
    return float(stdtrit(max(ess - 1, 1), (1 + LEVEL) / 2))


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
    samples: Array


class Weighed(NamedTuple):
    """Results and their weights: draws of `size` adjacent samples each."""

    weights: Array  # [n] against the mixture of all proposals, zero where not drawn
    returns: Array  # [n]
    valid: Array  # [n]
    drawn: Array  # [n] valid, or failed: how many of a proposal's draws fail is chance too
    stratum: Array  # [n] the proposal that drew each, below `strata`
    strata: int
    size: int = 1


def standard_error(residuals: Array, drew: Array, stratum: Array, strata: int) -> Array:
    """Standard error of a sum of independent `residuals [G]`, drawn in strata.

    Implements: owen2013 S9.1, S9.2 and S9.11 standard error of an importance-sampled mean,
    sqrt(sum_l G_l / (G_l - 1) sum_g (u_g - mean_l)^2), u_g the residual of draw g of proposal l.

    How many draws each proposal makes is not random, so what differs between proposals is no noise.
    Differs: a proposal with one draw lends its residual about the common mean, with G / (G - 1)
    over all G. Not a number below two draws.
    """
    drew = drew.astype(residuals.dtype)
    total = jnp.sum(drew)
    zeros = jnp.zeros(strata, residuals.dtype)
    count = zeros.at[stratum].add(drew)
    mean = zeros.at[stratum].add(drew * residuals) / jnp.maximum(count, 1)
    several = count > 1
    overall = jnp.where(total > 1, total / (total - 1), jnp.nan)
    factor = jnp.where(several, count / jnp.maximum(count - 1, 1), overall)
    apart = residuals - jnp.where(several, mean, 0.0)[stratum]
    return jnp.where(total > 1, 1.0, jnp.nan) * jnp.sqrt(jnp.sum(drew * factor[stratum] * apart**2))


def looked_at(data: Weighed, points: Callable[[Array], Array] | None) -> Seen:
    """What `data` says.

    `points(rows)` gives samples of those rows in coordinates where the candidate is N(0, I);
    without it there is no model.
    """
    returns, valid = data.returns, data.valid
    kept = data._replace(weights=jnp.where(valid, data.weights, 0.0))
    n = jnp.sum(valid, dtype=returns.dtype)
    weighted, stderr = _mean_of(kept, returns)
    ess = effective_sample_size(by_draw(kept.weights, data.size))
    modelled = (weighted, stderr, jnp.asarray(jnp.inf, returns.dtype))
    if points is not None:
        modelled = _with_model(data, weighted, points)
    return Seen(
        weighted,
        stderr,
        *modelled,
        ess=ess,
        even=ess / jnp.maximum(n / data.size, 1),
        mean_weight=jnp.sum(kept.weights) / jnp.maximum(n, 1),
        spread=_largest(returns, valid) + _largest(-returns, valid),
        std=jnp.sqrt(_mean_of(kept, (returns - weighted) ** 2)[0]),
        samples=n,
    )


def _largest(x: Array, valid: Array) -> Array:
    return jnp.max(jnp.where(valid, x, -jnp.inf))


def _mean_of(data: Weighed, values: Array) -> tuple[Array, Array]:
    """The self-normalised mean of `values [n]`, and its standard error."""
    total = jnp.sum(data.weights)
    total = jnp.where(total > 0, total, 1.0)
    mean = jnp.sum(data.weights * values) / total
    residuals = by_draw(data.weights * (values - mean), data.size)
    drew = by_draw(data.drawn, data.size) > 0
    stratum = data.stratum[:: data.size]
    return mean, standard_error(residuals, drew, stratum, data.strata) / total


def _with_model(
    data: Weighed, centre: Array, points: Callable[[Array], Array]
) -> tuple[Array, Array, Array]:
    """The mean return with the model as control variate, the error of its correction, and its own.

    Implements: robins1994 augmented weighting, E_p[g] + sum w (y - g) / sum w, every residual by a
    model g that was fitted without it. Here y = R - `centre`, and 0 for what failed: the mean of
    those that did not fail is then `centre` + E_p[y] / P_p(no failure), for any centre near it.
    """
    heavy = _heaviest(data)
    part = data._replace(
        weights=data.weights[heavy],
        returns=jnp.where(data.valid, data.returns - centre, 0.0)[heavy],
        drawn=data.drawn[heavy] & (data.weights[heavy] > FAR_AWAY * jnp.max(data.weights)),
        stratum=data.stratum[heavy],
    )
    model = fitted(points(heavy), part.returns, part.drawn)
    left, stderr = _mean_of(part, model.residuals)
    n = jnp.maximum(jnp.sum(part.drawn, dtype=left.dtype), 1)
    without = jnp.sum(model.pulls * model.residuals) / n  # the mean follows each return a little
    kept = jnp.sum(part.weights) >= (1 - NEGLIGIBLE) * jnp.sum(data.weights)
    success = successes(data)
    mean = centre + (model.mean + left - without) / success
    return mean, stderr / success, jnp.where(kept, model.std / success, jnp.inf)


def successes(data: Weighed) -> Array:
    """The share of the candidate that does not fail, by weights; 1 where nothing has."""
    kept = jnp.sum(jnp.where(data.valid, data.weights, 0.0))
    return jnp.where(kept > 0, kept / jnp.sum(data.weights), 1.0)


def _heaviest(data: Weighed) -> Array:
    """Which samples belong to the draws of most weight, as many as the model looks at."""
    draws = by_draw(data.weights, data.size)
    _, chosen = jax.lax.top_k(draws, min(MOST // data.size, draws.size))
    return (chosen[:, None] * data.size + jnp.arange(data.size)).ravel()


def unseen_share(family: Family, rho: Any, archive: Archive) -> Array:
    """How much of a candidate lies where hardly any sample could have been drawn, a scalar.

    Implements: chatterjee2018 P(w > n / 6) under the candidate, w = p / sum_l (n_l / n) q_l.

    That importance sampling needs an n above most of the weights *under the candidate* is a
    statement about densities: no result has to be lucky enough to reveal it.
    """
    reference = jax.tree.map(lambda x: x[0], archive.proposals)
    probes = family.draw(jax.random.key(0), rho, PROBES, False)
    mixture = mixture_density(family, archive.proposals, archive.counts, reference, probes)
    target = jax.vmap(lambda sample: family.log_ratio(rho, reference, sample))(probes)
    return jnp.mean(target - mixture > -np.log(FEW), dtype=target.dtype)


def judged_archive(
    family: Family, rho: Any, archive: Archive, size: int = 1
) -> tuple[Seen, Array, Array, Array]:
    """What the samples of an archive of one block say of any rho; draws have `size` samples.

    The numbers, the weights against the mixture of all proposals `[n]`, the share of rho that is
    unseen (not a number where samples cannot be drawn: trajectories), and how many samples failed
    and are left out.
    """
    assert archive.batches is not None
    b = jax.tree.map(lambda x: x[0], archive.batches)
    densities = log_densities(family, rho, archive)
    in_theta = isinstance(b.samples, Array)  # a trajectory that failed has no density
    drawn = b.valid | b.failed
    weighed = drawn if in_theta else b.valid
    weights = weigh(mixture_ratio, (), densities, weighed[None])[0]
    data = Weighed(weights, b.returns, b.valid, drawn, b.proposal, archive.counts.size, size)
    whitened = family.whitened and jax.vmap(partial(family.whitened, rho))
    seen = looked_at(data, whitened and (lambda rows: whitened(b.samples[rows])))
    unseen = jnp.asarray(jnp.nan)
    if in_theta:  # of what does not fail, no more than this can be out of sight
        unseen = jnp.minimum(unseen_share(family, rho, archive) / successes(data), 1.0)
    return seen, jnp.where(b.valid, weights, 0.0), unseen, jnp.sum(b.failed)


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


def _refusal(seen: Seen, unseen: float, dim: int) -> str:
    """Why there is no interval, or nothing.

    Weighted means of returns that rise with their weights are biased, and only the model sees it:
    so where it has too few results to learn a slope from, the weights must be nearly equal.
    """
    if float(seen.samples) < FEW:
        return FEW_SAMPLES
    if unseen > UNSEEN:
        return UNSEEN_PART
    if not float(seen.ess) >= LEAST:
        return FEW_SAMPLES
    if float(seen.samples) < MANY * dim and float(seen.even) < EVEN:
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
    refused = _refusal(seen, unseen, dim)
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

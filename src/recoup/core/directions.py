"""Directions: where rho should go, given weighed samples. Here, the likelihood-ratio gradient.

Scores are `[B, N, D]` arrays that nobody wants in memory: they live only as long as they are being
added up (`core.sweeps`).
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from recoup.core.arrays import behind
from recoup.core.columns import sum_columns
from recoup.core.families.family import Coordinates
from recoup.core.sweeps import squared_norms, sum_samples


class Earned(NamedTuple):
    """What the samples earned and weigh, all `[B, N]` but for `origin`."""

    returns: Array  # less the origin; zero where not valid
    weights: Array  # zero where not valid
    valid: Array
    origin: Array  # 0, unless returns are wanted relative to one that occurred
    censored: Array | bool = False  # whether samples that failed are left out, a scalar
    order: Array | int = 0  # [B, N], larger for samples of later batches
    norms: Array | None = None  # [B, N] ||score||^2 of the family, where they are known already


Direction = Callable[[Any, Any, Earned], tuple[Any, Any]]  # rho, samples -> pytree of rho, baseline


def relative(part: Any) -> Any:
    """Declares that a baseline or direction takes returns, and gives b, relative to an origin.

    The origin is a return that occurred, so that a large one common to all costs no digits. Parts
    that declare nothing see returns as they were told.
    """
    part.relative = True
    return part


def is_relative(part: Any) -> bool:
    """Whether a baseline or direction has declared itself `relative`."""
    return getattr(part, "relative", False)


class Scores(NamedTuple):
    """What baselines and gradients need of the scores s_n; what is not asked for costs no pass."""

    norms: Array  # [B, N] ||s_n||^2 over all of rho
    centre: Array  # m = sum w R / sum w
    total: Callable[[Array], Any]  # c [B, N] -> pytree of rho: sum_n c_n s_n
    squares: Callable[[Array], Any]  # c [B, N] -> pytree of rho: sum_n c_n s_n^2


def likelihood_ratio(
    score: Callable[[Any, Any], Any],
    baseline: Callable[[Earned, Scores], Any],
    coordinates: Coordinates | None = None,
) -> Direction:
    """The gradient of the expected return, from a `score` and a baseline.

    If it is that of a family with `coordinates`, its norms may be known already.
    """

    @relative
    def direction(rho: Any, samples: Any, earned: Earned) -> tuple[Any, Any]:
        n = jnp.sum(earned.valid, dtype=earned.returns.dtype)
        scores = scores_of(score, rho, samples, earned.returns, earned.weights)
        if coordinates is not None:
            vectors = coordinates.score_vectors(rho)
            total = partial(sum_columns, coordinates.score_terms, vectors, samples)
            scores = scores._replace(total=total)
            if earned.norms is not None:
                scores = scores._replace(norms=earned.norms)
        b = _given_success(earned, scores, _relative_baseline(baseline, earned, scores))
        return mean_gradient(earned.returns, earned.weights, scores, b, n), b

    return direction


def _given_success(earned: Earned, scores: Scores, b: Any) -> Any:
    """The baseline b, or, where samples are censored, the weighted mean return.

    The scores of those that did not fail do not average to zero: a b above their mean return would
    pay for failing, one below it for not failing. With the mean itself the gradient is that of the
    return given success.
    """
    return jax.tree.map(lambda x: jnp.where(earned.censored, scores.centre, x), b)


def _relative_baseline(
    baseline: Callable[[Earned, Scores], Any], earned: Earned, scores: Scores
) -> Any:
    """b relative to the origin, of a baseline that need not know of it."""
    if is_relative(baseline):
        return baseline(earned, scores)
    origin = earned.origin
    told = jnp.where(earned.valid, earned.returns + origin, 0.0)
    b = baseline(
        earned._replace(returns=told, origin=jnp.zeros_like(origin)),
        scores._replace(centre=scores.centre + origin),
    )
    return jax.tree.map(lambda x: jnp.asarray(x, origin.dtype) - origin, b)


def scores_of(
    score: Callable[[Any, Any], Any], rho: Any, samples: Any, returns: Array, weights: Array
) -> Scores:
    """The sums over `samples [B, N]` of a family's `score` at `rho`.

    A sum begins once its coefficients are known: passes that may call LAPACK go one by one.
    """
    mass = jnp.sum(weights)

    def once(known: Array) -> Callable[[Any], Any]:
        return partial(score, behind(jnp, rho, known))

    def total(c: Array) -> Any:
        return sum_samples(once(c), samples, c)

    def squares(c: Array) -> Any:
        each = once(c)
        return sum_samples(lambda sample: jax.tree.map(jnp.square, each(sample)), samples, c)

    return Scores(
        norms=squared_norms(once(weights), samples),
        centre=jnp.sum(weights * returns) / jnp.where(mass > 0, mass, 1.0),
        total=total,
        squares=squares,
    )


def mean_gradient(returns: Array, weights: Array, scores: Scores, b: Any, n: Array) -> Any:
    """The gradient of the expected return, (1/n) sum_n w_n (R_n - b) s_n, a pytree of rho.

    Implements: zhao2013 S3.2 gradient estimator with baseline; eq. 3 with b = 0, w = 1; S3.1 with
    b = 0. `b` is a scalar, one number a sample `[B, N]`, or a pytree of rho: one a coordinate. Sums
    with one a coordinate are taken about the centre, so that no large ones cancel.
    """
    n = jnp.maximum(n, 1)
    if isinstance(b, Array):
        return jax.tree.map(lambda g: g / n, scores.total(weights * (returns - b)))
    centred = behind(jnp, weights * (returns - scores.centre), *jax.tree.leaves(b))
    sums = scores.total(centred)
    plain = scores.total(behind(jnp, weights, *jax.tree.leaves(sums)))
    return jax.tree.map(lambda g, c, b_i: (g - (b_i - scores.centre) * c) / n, sums, plain, b)

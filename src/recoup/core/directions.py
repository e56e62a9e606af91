"""Directions: where rho should go, given weighed samples. Here, the likelihood-ratio gradient.

Scores are `[B, N, D]` arrays that nobody wants in memory: they live only as long as they are being
added up (`core.sweeps`).
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from recoup.core.arrays import behind
from recoup.core.columns import sum_columns
from recoup.core.families.family import Coordinates
from recoup.core.gradient import Earned, Scores, is_relative, mean_gradient, relative
from recoup.core.sweeps import squared_norms, sum_samples

Direction = Callable[[Any, Any, Earned], tuple[Any, Any]]  # rho, samples -> pytree of rho, baseline


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

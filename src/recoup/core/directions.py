"""Directions: where rho should go, given weighed samples. Here, the likelihood-ratio gradient.

Scores are `[B, N, D]` arrays that nobody wants in memory: they live only as long as they are being
added up (`core.sweeps`).
"""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
from jax import Array

from recoup.core.columns import sum_columns
from recoup.core.families.family import Coordinates
from recoup.core.gradient import (
    Baseline,
    Direction,
    Earned,
    Scores,
    baseline_of,
    centre_of,
    mean_gradient,
    relative,
)
from recoup.core.sweeps import squared_norms, sum_samples
from recoup.core.types import Pytree, Rho, Samples


def likelihood_ratio(
    score: Callable[[Rho, Samples], Rho],
    baseline: Baseline,
    coordinates: Coordinates | None = None,
) -> Direction:
    """The gradient of the expected return, from a `score` and a baseline.

    If it is that of a family with `coordinates`, its norms may be known already.
    """

    @relative
    def direction(rho: Rho, samples: Samples, earned: Earned) -> tuple[Rho, Pytree]:
        n = jnp.sum(earned.valid, dtype=earned.returns.dtype)
        scores = scores_of(score, rho, samples, earned)
        if coordinates is not None:
            vectors = coordinates.score_vectors(rho)
            total = partial(sum_columns, coordinates.score_terms, vectors, samples)
            scores = scores._replace(total=total)
            if earned.norms is not None:
                scores = scores._replace(norms=earned.norms)
        b = baseline_of(baseline, earned, scores)
        return mean_gradient(earned.returns, earned.weights, scores, b, n), b

    return direction


def scores_of(
    score: Callable[[Rho, Samples], Rho], rho: Rho, samples: Samples, earned: Earned
) -> Scores:
    """The sums over `samples [B, N]` of a family's `score` at `rho`."""
    each = partial(score, rho)

    def total(c: Array) -> Rho:
        return sum_samples(each, samples, c)

    def squares(c: Array) -> Rho:
        return sum_samples(lambda sample: jax.tree.map(jnp.square, each(sample)), samples, c)

    return Scores(
        norms=squared_norms(each, samples),
        centre=centre_of(earned),
        total=total,
        squares=squares,
    )

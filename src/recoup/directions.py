"""Sums of scores over the samples, and the gradient that they make.

Scores are `[B, N, D]` arrays nobody wants in memory: every sum runs block by block, and a block's
scores live only as long as its share of the sum.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array


class Scores(NamedTuple):
    """What baselines and gradients need of the scores s_n; `total(c)` is sum_n c_n s_n."""

    norms: Array  # [B, N] ||s_n||^2 over all of rho
    total: Callable[[Array], Any]  # c [B, N] -> pytree of rho
    squares: Callable[[Array], Any]  # c [B, N] -> pytree of rho: sum_n c_n s_n^2 per coordinate


def scores_of(score: Callable[[Any], Any], samples: Any) -> Scores:
    """The sums over `samples [B, N]` of a family's `score` at one rho."""

    def summed(function: Callable[[Any], Any], c: Array) -> Any:
        def block(part: tuple[Array, Any]) -> Any:
            values = jax.vmap(lambda sample: function(score(sample)))(part[1])
            return jax.tree.map(lambda s: jnp.tensordot(part[0], s, 1), values)

        return jax.tree.map(lambda s: jnp.sum(s, 0), jax.lax.map(block, (c, samples)))

    return Scores(
        norms=jax.vmap(jax.vmap(lambda sample: _squared_norm(score(sample))))(samples),
        total=lambda c: summed(lambda s: s, c),
        squares=lambda c: summed(lambda s: jax.tree.map(jnp.square, s), c),
    )


def mean_gradient(returns: Array, weights: Array, scores: Scores, b: Any, n: Array) -> Any:
    """The gradient of the expected return, (1/n) sum_n w_n (R_n - b) s_n, a pytree of rho.

    Implements: zhao2013 S3.2 gradient estimator with baseline; eq. 3 with b = 0, w = 1; S3.1 with
    b = 0. `b` is a scalar, one number a sample `[B, N]`, or a pytree of rho: one a coordinate.
    """
    n = jnp.maximum(n, 1)
    if isinstance(b, Array):
        return jax.tree.map(lambda g: g / n, scores.total(weights * (returns - b)))
    raw, shift = scores.total(weights * returns), scores.total(weights)
    return jax.tree.map(lambda g, b_i, c: (g - b_i * c) / n, raw, b, shift)


def _squared_norm(tree: Any) -> Array:
    return jax.tree.reduce(jnp.add, jax.tree.map(lambda x: jnp.sum(x**2), tree))

"""The estimator: densities -> weights -> scores -> baseline -> gradient, as a function of rho.

The one place that knows every stage; of equations it holds only the objective and its error.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from recoup.core.archive import Archive, log_densities
from recoup.core.directions import Direction, Earned, is_relative
from recoup.core.families.family import Family
from recoup.core.weights import Ratio, Shaper, effective_sample_size, weigh


class Estimate(NamedTuple):
    """What an archive says about one rho."""

    gradient: Any  # pytree of rho: plain derivatives of the expected return, or another direction
    objective: Array  # (1/n) sum w R
    objective_stderr: Array
    weights: Array  # [B, N] after shaping, zero where not valid
    ess: Array  # in pairs where samples come in mirrored pairs
    max_weight: Array
    baseline: Any  # scalar, [B, N] or pytree of rho; by step, with leading axis [T]
    samples: Array  # n, the valid samples
    flatten: Array | None = None  # nu of w^nu, for methods that may choose it


Estimator = Callable[[Any, Archive], Estimate]


def estimator(
    family: Family,
    *,
    ratio: Ratio,
    shapers: Sequence[Shaper] = (),
    normalised: bool = False,
    paired: bool = False,
    direction: Direction,
) -> Estimator:
    """`estimate(rho, archive)`.

    `normalised` says that the last shaper made the weights' mean 1, `paired` that samples 2i and
    2i + 1 of a batch are a mirrored pair, one draw.
    """

    def estimate(rho: Any, archive: Archive) -> Estimate:
        assert archive.batches is not None
        samples, returns, valid, *_ = archive.batches
        weights = weigh(ratio, shapers, log_densities(family, rho, archive), valid)
        gradient, b = direction_of(direction, rho, samples, returns, weights, valid)
        return summary(
            returns[None],
            weights[None],
            valid,
            paired=paired,
            normalised=normalised,
            gradient=gradient,
            baseline=b,
        )

    return estimate


def direction_of(
    direction: Direction, rho: Any, samples: Any, returns: Array, weights: Array, valid: Array
) -> tuple[Any, Any]:
    """The direction and its baseline, of what samples earned and weigh."""
    if not is_relative(direction):
        nothing = jnp.zeros((), returns.dtype)
        return direction(rho, samples, Earned(returns, weights, valid, nothing))
    origin = _origin(returns, valid)
    relative = jnp.where(valid, returns - origin, 0.0)
    gradient, b = direction(rho, samples, Earned(relative, weights, valid, origin))
    return gradient, jax.tree.map(lambda x: x + origin, b)


def summary(
    rewards: Array,
    weights: Array,
    valid: Array,
    *,
    paired: bool = False,
    normalised: bool = False,
    **found: Any,
) -> Estimate:
    """An `Estimate` with what was `found`, and what the weights make of the objective.

    Rewards and weights are `[T, B, N]`, by step: T = 1 for samples that are weighed as a whole; the
    weights of the last step are those of the whole sample.
    """
    n = jnp.sum(valid, dtype=rewards.dtype)
    by_step = jax.vmap(expected_return, (0, 0, None))(rewards, weights, n)
    objective, whole = jnp.sum(by_step), weights[-1]
    if normalised:
        residuals = jnp.sum(weights * (rewards - by_step[:, None, None]), axis=0)
    else:
        residuals = jnp.sum(weights * rewards, axis=0) - objective
    residuals = _by_draw(paired, jnp.where(valid, residuals, 0.0))
    draws = jnp.sum(_by_draw(paired, valid) > 0, dtype=rewards.dtype)
    return Estimate(
        objective=objective,
        objective_stderr=standard_error(residuals, draws, n),
        weights=whole,
        ess=effective_sample_size(_by_draw(paired, whole)),
        max_weight=jnp.max(whole),
        samples=n,
        **found,
    )


def expected_return(returns: Array, weights: Array, n: Array) -> Array:
    """The estimated expected return of the search distribution, a scalar.

    Implements: zhao2013 S2.2 J(rho), by the importance-weighted average (1/N') sum w R.
    """
    return jnp.sum(weights * returns) / jnp.maximum(n, 1)


def standard_error(residuals: Array, draws: Array, n: Array) -> Array:
    """Standard error of a mean over n samples in G independent draws, a scalar.

    Implements: owen2013 S9.1 and S9.2 standard error of an importance-sampled mean,
    sqrt(G / (G - 1) sum_g u_g^2) / n, where u_g is the sum of the residuals of draw g.

    With single samples and u = w R - J this is the standard deviation (ddof 1) over sqrt(n); with
    self-normalised weights and u = w (R - J), the delta method's. Not a number below two draws.
    """
    spread = jnp.where(draws > 1, draws / (draws - 1), jnp.nan)
    return jnp.sqrt(spread * jnp.sum(residuals**2)) / n


def _origin(returns: Array, valid: Array) -> Array:
    """The largest return, to which all are taken relative: equal ones become exactly zero."""
    largest = jnp.max(jnp.where(valid, returns, -jnp.inf))
    return jnp.where(jnp.isfinite(largest), largest, 0.0)


def _by_draw(paired: bool, x: Array) -> Array:
    """Sums over the samples that share one draw: pairs where they are mirrored."""
    return x.reshape(-1, 2).sum(-1) if paired else x.ravel()

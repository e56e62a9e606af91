"""The estimator: densities -> weights -> scores -> baseline -> gradient, as a function of rho.

The one place that knows every stage; of equations it holds only the objective and its error.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from recoup.core.archive import Archive, log_densities
from recoup.core.directions import Direction
from recoup.core.families.family import Family
from recoup.core.gradient import Earned, is_relative
from recoup.core.intervals import standard_error
from recoup.core.weights import (
    Ratio,
    Shaper,
    by_draw,
    effective_sample_size,
    mixture_ratio,
    own_ratio,
    weigh,
)


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
    mean_weight: Array | float = 1.0  # before any division by it; near 1 if samples cover rho
    censored: Array | int = 0  # failed samples, left out: the objective is given success
    notes: Any = None  # of a rule that says why its step was as long as it was


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

    `normalised` divides weights by their mean, `paired` says that samples 2i and 2i + 1 of a batch
    are a mirrored pair, one draw.
    """

    def estimate(rho: Any, archive: Archive) -> Estimate:
        assert archive.batches is not None
        samples, returns, valid, *_ = archive.batches
        densities, own_mean = log_densities(family, rho, archive), normalised | censored(archive)
        weights = weigh(ratio, shapers, densities, valid, own_mean)
        raw = weigh(ratio, shapers, densities, drawn(archive))
        earned = earned_by(archive, returns, weights)._replace(norms=densities.norms)
        gradient, b = direction_of(direction, rho, samples, earned)
        return summary(
            archive,
            returns[None],
            weights[None],
            paired=paired,
            normalised=own_mean,
            mean_weight=mean_weight(ratio, shapers, raw, archive),
            gradient=gradient,
            baseline=b,
        )

    return estimate


def censored(archive: Archive) -> Array:
    """Whether some samples have failed, so that means are of the return given success, a scalar.

    What failed was drawn, and counts in N' and in the mixture; what it would have earned is not
    known. Weights are then over their own mean: over N' a failure would count as a return of 0.
    """
    assert archive.batches is not None
    return jnp.any(archive.batches.failed)


def earned_by(archive: Archive, returns: Array, weights: Array) -> Earned:
    """What the samples of an archive earned and weigh."""
    assert archive.batches is not None
    valid, order = archive.batches.valid, archive.batches.order
    return Earned(returns, weights, valid, jnp.zeros((), returns.dtype), censored(archive), order)


def drawn(archive: Archive) -> Array:
    """Which samples `[B, N]` were drawn and told, whether they failed or not."""
    assert archive.batches is not None
    return archive.batches.valid | archive.batches.failed


def mean_weight(ratio: Ratio, shapers: Sequence[Shaper], weights: Array, archive: Archive) -> Array:
    """The mean of the weights of all samples that were drawn, which should be 1, a scalar.

    Not a number where several proposals drew and the weights are no plain ratios of densities:
    whatever their mean is, it does not say that an estimate can be believed.
    """
    mean = jnp.sum(weights) / jnp.maximum(jnp.sum(drawn(archive), dtype=weights.dtype), 1)
    if ratio in (own_ratio, mixture_ratio) and not shapers:
        return mean
    return jnp.where(jnp.sum(archive.counts > 0) > 1, jnp.nan, mean)


def direction_of(direction: Direction, rho: Any, samples: Any, earned: Earned) -> tuple[Any, Any]:
    """The direction and its baseline, of what samples earned and weigh."""
    if not is_relative(direction):
        return direction(rho, samples, earned)
    origin = _origin(earned)
    relative = jnp.where(earned.valid, earned.returns - origin, 0.0)
    gradient, b = direction(rho, samples, earned._replace(returns=relative, origin=origin))
    return gradient, jax.tree.map(lambda x: x + origin, b)


def summary(
    archive: Archive,
    rewards: Array,
    weights: Array,
    *,
    paired: bool = False,
    normalised: bool | Array = False,
    **found: Any,
) -> Estimate:
    """An `Estimate` with what was `found`, and what the weights make of the objective.

    Rewards and weights are `[T, B, N]`, by step: T = 1 for samples that are weighed as a whole; the
    weights of the last step are those of the whole sample. `normalised` ones are over their mean.
    """
    assert archive.batches is not None
    valid, size = archive.batches.valid, 2 if paired else 1
    n = jnp.sum(valid, dtype=rewards.dtype)
    by_step = jax.vmap(expected_return, (0, 0, None))(rewards, weights, n)
    objective, whole = jnp.sum(by_step), weights[-1]
    residuals = jnp.where(
        normalised,
        jnp.sum(weights * (rewards - by_step[:, None, None]), axis=0),
        jnp.sum(weights * rewards, axis=0) - objective,
    )
    stderr = standard_error(
        by_draw(jnp.where(valid, residuals, 0.0), size),
        by_draw(drawn(archive), size) > 0,
        archive.batches.proposal.ravel()[::size],
        archive.counts.size,
    )
    return Estimate(
        objective=jnp.where(n > 0, objective, jnp.nan),
        objective_stderr=stderr / jnp.maximum(n, 1),
        weights=whole,
        ess=effective_sample_size(by_draw(whole, size)),
        max_weight=jnp.max(whole),
        samples=n,
        censored=jnp.sum(archive.batches.failed),
        **found,
    )


def expected_return(returns: Array, weights: Array, n: Array) -> Array:
    """The estimated expected return of the search distribution, a scalar.

    Implements: zhao2013 S2.2 J(rho), by the importance-weighted average (1/N') sum w R.
    """
    return jnp.sum(weights * returns) / jnp.maximum(n, 1)


def _origin(earned: Earned) -> Array:
    """The return of the sample that weighs most, the largest of several, to which all are relative.

    Equal returns become exactly zero. So does that of a sample that outweighs all others: the
    baseline is near it, and what is left of their difference is multiplied by its weight.
    """
    weights = jnp.where(earned.valid, earned.weights, -jnp.inf)
    most = earned.valid & (weights == jnp.max(weights))
    largest = jnp.max(jnp.where(most, earned.returns, -jnp.inf))
    return jnp.where(jnp.isfinite(largest), largest, 0.0)

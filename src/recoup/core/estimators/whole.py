"""The estimator: densities -> weights -> scores -> baseline -> gradient, as a function of rho.

The one place that knows every stage, and holds no equation.
"""

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
from jax import Array

from recoup.core.archive import Archive, log_densities
from recoup.core.families.family import Family
from recoup.core.gradient import Direction, Earned, about_origin, is_relative
from recoup.core.objective import Estimate, Sources, mean_weight, summary
from recoup.core.types import Pytree, Rho, Samples
from recoup.core.weights import Ratio, Shaper, weigh

Estimator = Callable[[Rho, Archive], Estimate]


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

    def estimate(rho: Rho, archive: Archive) -> Estimate:
        assert archive.batches is not None
        samples, returns, valid, *_ = archive.batches
        densities, own_mean = log_densities(family, rho, archive), normalised | censored(archive)
        weights = weigh(ratio, shapers, densities, valid, own_mean)
        told = drawn(archive)
        raw = weigh(ratio, shapers, densities, told.each)
        earned = earned_by(archive, returns, weights)._replace(norms=densities.norms)
        gradient, b = direction_of(direction, rho, samples, earned)
        return summary(
            told,
            returns[None],
            weights[None],
            size=2 if paired else 1,
            normalised=own_mean,
            mean_weight=mean_weight(ratio, shapers, raw, told),
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


def drawn(archive: Archive) -> Sources:
    """Which samples of an archive were drawn, and by which proposals."""
    b = archive.batches
    assert b is not None
    return Sources(b.valid, b.failed, b.proposal, archive.counts.size)


def direction_of(
    direction: Direction, rho: Rho, samples: Samples, earned: Earned
) -> tuple[Rho, Pytree]:
    """The direction and its baseline, of what samples earned and weigh."""
    if not is_relative(direction):
        return direction(rho, samples, earned)
    earned = about_origin(earned)
    gradient, b = direction(rho, samples, earned)
    return gradient, jax.tree.map(lambda x: x + earned.origin, b)

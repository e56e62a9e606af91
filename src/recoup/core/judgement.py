"""What the samples of an archive say of any rho, by JAX: the numbers of `core.intervals`."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from recoup.core.archive import Archive, log_densities
from recoup.core.families.family import Family
from recoup.core.intervals import WeighedDraws, looked_at, successes
from recoup.core.mixtures import mixture_density
from recoup.core.types import Rho
from recoup.core.weights import mixture_ratio, weigh
from recoup.core.worth import FEW, Seen, probes


def unseen_share(family: Family, rho: Rho, archive: Archive, noise: Array) -> Array:
    """How much of a candidate lies where hardly any sample could have been drawn, a scalar.

    Implements: chatterjee2018 P(w > n / 6) under the candidate, w = p / sum_l (n_l / n) q_l.

    That importance sampling needs an n above most of the weights *under the candidate* is a
    statement about densities: no result has to be lucky enough to reveal it.
    """
    reference = jax.tree.map(lambda x: x[0], archive.proposals)
    drawn = jax.vmap(rho.theta)(noise)
    mixture = mixture_density(family, archive.proposals, archive.counts, reference, drawn)
    target = jax.vmap(lambda sample: family.log_ratio(rho, reference, sample))(drawn)
    return jnp.mean(target - mixture > -np.log(FEW), dtype=target.dtype)


def judged_archive(
    family: Family, rho: Rho, archive: Archive, size: int = 1, noise: Array | None = None
) -> tuple[Seen, Array, Array, Array]:
    """What the samples of an archive of one block say of any rho; draws have `size` samples.

    The numbers, the weights against the mixture of all proposals `[n]`, the share of rho that is
    unseen (not a number where samples cannot be drawn: trajectories), and how many samples failed
    and are left out. `noise` is what rho is looked at with; unless given it is a constant of the
    compiled program, which is too large for very many dimensions.
    """
    assert archive.batches is not None
    b = jax.tree.map(lambda x: x[0], archive.batches)
    densities = log_densities(family, rho, archive)
    in_theta = isinstance(b.samples, Array)  # a trajectory that failed has no density
    drawn = b.valid | b.failed
    weighed = drawn if in_theta else b.valid
    weights = weigh(mixture_ratio, (), densities, weighed[None])[0]
    data = WeighedDraws(weights, b.returns, b.valid, drawn, b.proposal, archive.counts.size, size)
    whitened = family.whitened and jax.vmap(partial(family.whitened, rho))
    seen = looked_at(data, whitened and (lambda rows: whitened(b.samples[rows])))
    unseen = jnp.asarray(jnp.nan)
    if in_theta:  # of what does not fail, no more than this can be out of sight
        if noise is None:
            noise = jnp.asarray(probes(b.samples.shape[-1]), b.samples.dtype)
        unseen = jnp.minimum(unseen_share(family, rho, archive, noise) / successes(data), 1.0)
    return seen, jnp.where(b.valid, weights, 0.0), unseen, jnp.sum(b.failed)

"""Log-densities of samples under many proposals, relative to a reference."""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
from jax import Array
from jax.scipy.special import logsumexp

from recoup.core import sweeps
from recoup.core.arrays import Dtype
from recoup.core.families.family import Family
from recoup.core.sweeps import in_rounds, map_samples, scan_samples
from recoup.core.types import Pytree, Rho, Samples


def picked(tree: Pytree, index: Array | int) -> Pytree:
    """What stands at `index` of the leading axis of every array of a pytree."""
    return jax.tree.map(lambda x: x[index], tree)


def own_density(
    family: Family, proposals: Rho, drawn_by: Array, reference: Rho, samples: Samples
) -> Array:
    """log p(sample | own proposal) - log p(sample | reference) `[n]`."""

    def own(row: tuple[Samples, Array]) -> Array:
        sample, slot = row
        return family.log_ratio(picked(proposals, slot), reference, sample)

    work = sum(leaf[0].size for leaf in jax.tree.leaves(proposals)) // 2  # of a proposal a sample
    return map_samples(own, (samples, drawn_by), work)


def each_density(
    family: Family, proposals: Rho, wanted: Array, reference: Rho, samples: Samples
) -> Array:
    """log p(sample | proposal) - log p(sample | reference) `[P, n]`; 0 where not `wanted [P]`."""

    def at_once(proposals: Rho, wanted: Array, reference: Rho, samples: Samples) -> Array:
        found = _by_products(family, proposals, reference, samples)
        return jnp.where(wanted, found, 0.0).T

    by_rounds = partial(_each_by_rounds, family)
    return _by_family(family, by_rounds, at_once, proposals, wanted, reference, samples)


def _each_by_rounds(
    family: Family, proposals: Rho, wanted: Array, reference: Rho, samples: Samples
) -> Array:
    def columns(_: None, chunk: Samples, fresh: Array) -> tuple[None, Array]:
        def put(kept: Array, slots: Array, part: Array) -> Array:
            found = _densities(family, picked(proposals, slots), reference, chunk)
            return kept.at[jnp.where(part, slots, wanted.size)].set(found, mode="drop")

        zeros = jnp.zeros((wanted.size, fresh.size), _dtype(proposals))
        return None, in_rounds(put, zeros, wanted, _numbers(chunk)).T

    return scan_samples(columns, None, samples)[1].T


def mixture_density(
    family: Family, proposals: Rho, counts: Array, reference: Rho, samples: Samples
) -> Array:
    """log sum_p counts_p p(sample | proposal p) - log p(sample | reference) `[n]`."""

    def at_once(proposals: Rho, counts: Array, reference: Rho, samples: Samples) -> Array:
        return logsumexp(_by_products(family, proposals, reference, samples), axis=1, b=counts)

    by_rounds = partial(_mixture_by_rounds, family)
    return _by_family(family, by_rounds, at_once, proposals, counts, reference, samples)


def _mixture_by_rounds(
    family: Family, proposals: Rho, counts: Array, reference: Rho, samples: Samples
) -> Array:
    def mixture(_: None, chunk: Samples, fresh: Array) -> tuple[None, Array]:
        def add(total: Array, slots: Array, part: Array) -> Array:
            found = _densities(family, picked(proposals, slots), reference, chunk)
            share = jnp.where(part, counts.at[slots].get(mode="clip"), 0)
            return jnp.logaddexp(total, logsumexp(found, axis=0, b=share[:, None]))

        nothing = jnp.full(fresh.size, -jnp.inf, _dtype(proposals))
        return None, in_rounds(add, nothing, counts > 0, _numbers(chunk))

    return scan_samples(mixture, None, samples)[1]


def gained_mixture(
    family: Family,
    proposals: Rho,
    gained: Array,
    drew: Array,
    reference: Rho,
    samples: Samples,
    mixture: Array,
) -> Array:
    """`mixture_density [n]` once the proposals `drew` (-1: none) have `gained [P]` more samples."""

    def add(i: Array, total: Array) -> Array:
        rho = picked(proposals, drew[i])
        found = map_samples(lambda sample: family.log_ratio(rho, reference, sample), samples)
        return add_row(gained, total, drew[i], found)

    return jax.lax.fori_loop(0, jnp.sum(drew >= 0), add, mixture)


def add_row(gained: Array, mixture: Array, slot: Array, row: Array) -> Array:
    """A mixture once the proposal of `slot`, with densities `row`, has gained samples."""
    return jnp.logaddexp(mixture, log_count(gained[slot], row.dtype) + row)


def log_count(count: Array, dtype: Dtype) -> Array:
    """The logarithm of a whole number; that of an int32 would be float32 whatever is around it."""
    return jnp.log(count.astype(dtype))


def _by_family(
    family: Family, by_rounds: Callable[..., Array], at_once: Callable[..., Array], *args: Pytree
) -> Array:
    """All proposals at once on an accelerator, where the family has products for that."""
    if family.log_ratios is None:
        return by_rounds(*args)
    return sweeps.by_device(by_rounds, at_once, *args)


def _by_products(family: Family, proposals: Rho, reference: Rho, samples: Samples) -> Array:
    """log p(sample | proposal) - log p(sample | reference) `[n, P]` by products of matrices."""
    log_ratios = family.log_ratios
    assert log_ratios is not None

    def some(_: None, chunk: Samples, fresh: Array) -> tuple[None, Array]:
        return None, log_ratios(proposals, reference, chunk).T

    written = 3 * _numbers(picked(samples, 0))  # a sample, and the two that are multiplied
    return scan_samples(some, None, samples, written)[1]


def _densities(family: Family, proposals: Rho, reference: Rho, samples: Samples) -> Array:
    """log p(sample | proposal) - log p(sample | reference) `[k, n]` of all pairs, at once."""

    def density(rho: Rho) -> Array:
        return jax.vmap(lambda sample: family.log_ratio(rho, reference, sample))(samples)

    return jax.vmap(density)(proposals)


def _numbers(samples: Samples) -> int:
    return sum(leaf.size for leaf in jax.tree.leaves(samples))


def _dtype(proposals: Rho) -> Dtype:
    return jax.tree.leaves(proposals)[0].dtype

"""The archive: which samples were told, which proposals drew them, and their log-densities.

Shapes are fixed and padded, so that growth never recompiles. Samples lie in `B` blocks of `N`, one
block a batch, in a ring: a full archive overwrites its oldest block. Proposals lie in a ring of
`P` slots. Log-densities of a block are kept relative to that block's *reference*, the newest
proposal when it was told: a difference summed per coordinate stays exact in float32 where two large
log-densities would not.

"This iteration only" is B = 1, "the last W iterations" is B = W, "everything" is a B that the run
never fills.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.scipy.special import logsumexp

from recoup.core.families.family import Family
from recoup.core.mixtures import (
    add_row,
    each_density,
    log_count,
    mixture_density,
    own_density,
    picked,
)
from recoup.core.returns import with_failures as returns_of
from recoup.core.row_sums import ratios_and_norms
from recoup.core.types import Rho, Samples
from recoup.core.weights import LogDensities


class Batches(NamedTuple):
    """Batches as they were told: every array has leading axes `[B, N]`, but for `reference [B]`."""

    samples: Samples  # pytree of samples
    returns: Array  # zero where not valid
    valid: Array
    proposal: Array  # slot of the proposal that drew each sample
    own: Array  # log p(sample | own proposal), relative
    reference: Array  # slot of the block's reference proposal
    failed: Array  # told without a return: not valid, but drawn, and counted as that
    order: Array  # larger where a sample was told, or its proposal was made, later


class Archive(NamedTuple):
    """Batches, the proposals `[P]` that drew them, and log-densities relative to references."""

    proposals: Rho  # pytree of rho, leading axis [P]
    counts: Array  # [P] samples told that each proposal drew, failed ones among them
    batches: Batches | None  # None between the moves of a method that keeps nothing
    table: Array | None  # [P, B, N] log p(sample | proposal), relative
    mixture: Array | None  # [B, N] log sum_p counts_p p(sample | proposal p), relative
    target: tuple[Array, Array | None] | None = None  # [B, N] log p(sample | newest proposal),
    # relative, and ||score||^2 there, where a move has computed them on the way: its estimate at
    # that proposal need not do it again
    since: Array | None = None  # batches told before a move's distribution was made; None: all but
    # the newest


def empty(
    rho: Rho, sample: Samples, *, blocks: int, batch: int, proposals: int, keep: str
) -> Archive:
    """An archive without samples, whose proposal slot 0 holds `rho`.

    `keep` says which densities are kept up beside the own-proposal ones: `own` none; `table` each
    proposal's, which is what makes dropping a block exact; `running` only their mixture, O(N')
    memory, right as long as no block is ever dropped.
    """
    dtype = jax.tree.leaves(rho)[0].dtype
    shape = (blocks, batch)
    batches = Batches(
        samples=jax.tree.map(lambda x: jnp.zeros((*shape, *x.shape), x.dtype), sample),
        returns=jnp.zeros(shape, dtype),
        valid=jnp.zeros(shape, bool),
        proposal=jnp.zeros(shape, jnp.int32),
        own=jnp.zeros(shape, dtype),
        reference=jnp.zeros(blocks, jnp.int32),
        failed=jnp.zeros(shape, bool),
        order=jnp.zeros(shape, jnp.int32),
    )
    return Archive(
        proposals=jax.tree.map(lambda x: jnp.broadcast_to(x, (proposals, *x.shape)), rho),
        counts=jnp.zeros(proposals, jnp.int32),
        batches=batches if blocks > 1 else None,
        table=jnp.zeros((proposals, *shape), dtype) if keep == "table" else None,
        mixture=jnp.zeros(shape, dtype) if keep == "running" else None,
    )


def add_proposal(archive: Archive, slot: Array, rho: Rho) -> Archive:
    """The archive with `rho` in proposal slot `slot`, from which no result has come yet."""
    archive = archive._replace(target=None)
    if archive.counts.size == 1:
        return archive._replace(proposals=jax.tree.map(lambda x: x[None], rho))
    proposals = jax.tree.map(lambda kept, x: kept.at[slot].set(x), archive.proposals, rho)
    return archive._replace(proposals=proposals, counts=archive.counts.at[slot].set(0))


def add_batch(
    family: Family,
    archive: Archive,
    block: Array,
    newest: Array,
    samples: Samples,
    returns: Array,
    told: Array,
    drawn_by: Array | None = None,
) -> Archive:
    """The archive with one batch in block `block`, in place of what was there.

    `newest` is the slot of the newest proposal, the batch's reference; `drawn_by [N]` the slots of
    the proposals that drew the samples, all `newest` if None. Only the densities that are new are
    computed: O((N' + N L) D) for a batch of one proposal, O((K N' + N L) D) for one that holds late
    results of K; proposals are taken several at a time, which rounds L up. Samples that are not
    `told` are masked and take part in nothing; of those that are, one without a finite return has
    failed.
    """
    valid = told & jnp.isfinite(returns)
    own = _own_density(family, archive.proposals, newest, samples, returns, drawn_by)
    batch = Batches(
        samples=samples,
        returns=jnp.where(valid, returns, 0),
        valid=valid,
        proposal=jnp.full(returns.shape, newest) if drawn_by is None else drawn_by,
        own=own,
        reference=newest,
        failed=told & ~valid,
        order=jnp.full(returns.shape, _next_order(archive)),
    )
    before = _counts_without(archive, block)
    archive = archive._replace(
        counts=_counts_with(before, newest, told, drawn_by),
        batches=_put_batch(archive.batches, block, batch),
    )
    if archive.table is None and archive.mixture is None:
        return archive
    late = None
    if drawn_by is not None:
        late = _distinct(drawn_by, told & (drawn_by != newest), before.size)
    return _keep_up(family, archive, block, batch, before, late)


def with_failures(archive: Archive, failure: str | float) -> Archive:
    """The archive with its failed samples as `core.returns` values them."""
    b = archive.batches
    assert b is not None
    returns, valid, failed = returns_of(b.returns, b.valid, b.failed, failure)
    return archive._replace(batches=b._replace(returns=returns, valid=valid, failed=failed))


def relative_log_density(family: Family, rho: Rho, archive: Archive) -> tuple[Array, Array | None]:
    """log p(sample | rho) `[B, N]` of every sample, relative to its block's reference.

    And ||score||^2 at rho `[B, N]`, or None where that would take a read of its own.
    """
    assert archive.batches is not None
    references = picked(archive.proposals, archive.batches.reference)
    return ratios_and_norms(family, rho, references, archive.batches.samples)


def log_densities(family: Family, rho: Rho, archive: Archive) -> LogDensities:
    """The densities that the weights of `rho` need, on the samples of `archive`.

    An archive that holds a `target` has it for its newest proposal: `rho` must be that.
    """
    assert archive.batches is not None
    mixture = archive.mixture
    if archive.table is not None:
        mixture = logsumexp(archive.table, axis=0, b=archive.counts[:, None, None])
    if mixture is not None:
        mixture = mixture - log_count(jnp.maximum(archive.counts.sum(), 1), mixture.dtype)
    target = archive.target
    if target is None:
        target = relative_log_density(family, rho, archive)
    return LogDensities(target[0], archive.batches.own, mixture, norms=target[1])


class Drawn(NamedTuple):
    """Samples `[N']`, what they earned, and what drew them."""

    samples: Samples
    returns: Array  # one that was told and is not finite has failed
    told: Array
    proposals: Rho  # pytree of rho, leading axis [L]
    drawn_by: Array  # which of the proposals drew each sample
    reference: Rho  # rho relative to which densities are kept; it drew none of the samples


def from_samples(
    family: Family,
    drawn: Drawn,
    *,
    keep: str,
    own: Array | None = None,
    mixture: Array | None = None,
    order: Array | None = None,
) -> Archive:
    """An archive of one block, made at once.

    Densities of the own proposals, and of the mixture of all of them, are computed unless given.
    Samples have the `order` of their proposals unless given.
    """
    samples, returns, told, proposals, drawn_by, reference = drawn
    valid = told & jnp.isfinite(returns)
    slots = jax.tree.leaves(proposals)[0].shape[0]
    stacked = jax.tree.map(lambda p, r: jnp.concatenate([p, r[None]]), proposals, reference)
    if own is None:
        own = own_density(family, proposals, drawn_by, reference, samples)
    counts = _counts_with(jnp.zeros(slots + 1, jnp.int32), jnp.int32(slots), told, drawn_by)
    if keep == "running" and mixture is None:
        mixture = mixture_density(family, proposals, counts[:slots], reference, samples)
    batch = Batches(
        samples=samples,
        returns=jnp.where(valid, returns, 0),
        valid=valid,
        proposal=drawn_by,
        own=own,
        reference=jnp.int32(slots),
        failed=told & ~valid,
        order=drawn_by if order is None else order,
    )
    return Archive(
        proposals=stacked,
        counts=counts,
        batches=_put_batch(None, jnp.int32(0), batch),
        table=None,
        mixture=None if mixture is None else mixture[None],
    )


def _own_density(
    family: Family,
    proposals: Rho,
    newest: Array,
    samples: Samples,
    returns: Array,
    drawn_by: Array | None,
) -> Array:
    """log p(sample | own proposal) `[N]` relative to the newest: zero for what the newest drew."""
    if drawn_by is None:
        return jnp.zeros(returns.shape, jax.tree.leaves(proposals)[0].dtype)
    return own_density(family, proposals, drawn_by, picked(proposals, newest), samples)


def _next_order(archive: Archive) -> Array:
    """The order of a batch that comes after all others."""
    return jnp.int32(1) if archive.batches is None else 1 + jnp.max(archive.batches.order)


def _counts_without(archive: Archive, block: Array) -> Array:
    """The counts once the samples of `block` have left."""
    if archive.batches is None:
        return jnp.zeros_like(archive.counts)
    leaving = (archive.batches.valid | archive.batches.failed)[block].astype(jnp.int32)
    return archive.counts.at[archive.batches.proposal[block]].add(-leaving)


def _counts_with(counts: Array, newest: Array, told: Array, drawn_by: Array | None) -> Array:
    """The counts once the samples `told` of a batch have come."""
    if drawn_by is None:
        return counts.at[newest].add(jnp.sum(told, dtype=jnp.int32))
    return counts.at[drawn_by].add(told.astype(jnp.int32))


def _put_batch(batches: Batches | None, block: Array, batch: Batches) -> Batches:
    """`batches` with `batch` in one block; where none are kept, `batch` alone."""
    if batches is None:
        return jax.tree.map(lambda x: x[None], batch)
    return jax.tree.map(lambda kept, x: kept.at[block].set(x.astype(kept.dtype)), batches, batch)


def _keep_up(
    family: Family,
    archive: Archive,
    block: Array,
    batch: Batches,
    before: Array,
    late: Array | None,
) -> Archive:
    """The archive with the densities that a batch has made new.

    It came from the newest proposal and those of the slots `late` (-1: none).
    """
    of_batch = (family, archive.proposals, archive.counts, batch)
    if archive.table is not None:
        columns = _columns(*of_batch)
        table = archive.table.at[:, block].set(columns)
        table, target = _fold(family, archive, batch.reference, late, table, _set_row)
        return archive._replace(table=table, target=target)
    assert archive.mixture is not None
    put = partial(add_row, archive.counts - before)
    mixed = _mixture(*of_batch)
    mixture, target = _fold(family, archive, batch.reference, late, archive.mixture, put)
    return archive._replace(mixture=mixture.at[block].set(mixed), target=target)


def _columns(family: Family, proposals: Rho, counts: Array, batch: Batches) -> Array:
    """Log-densities `[P, N]` of one batch under every proposal that has drawn any sample."""
    reference = picked(proposals, batch.reference)
    return each_density(family, proposals, counts > 0, reference, batch.samples)


def _mixture(family: Family, proposals: Rho, counts: Array, batch: Batches) -> Array:
    """log sum_p counts_p p(sample | proposal p) `[N]` of one batch."""
    reference = picked(proposals, batch.reference)
    return mixture_density(family, proposals, counts, reference, batch.samples)


def _fold(
    family: Family,
    archive: Archive,
    newest: Array,
    late: Array | None,
    densities: Array,
    put: Callable[[Array, Array, Array], Array],
) -> tuple[Array, tuple[Array, Array | None] | None]:
    """`densities` once `put` has taken in the rows `[B, N]` of the newest proposal and of `late`.

    And the newest proposal's row, where there is more than the batch.
    """

    def row(slot: Array) -> tuple[Array, Array | None]:
        return relative_log_density(family, picked(archive.proposals, slot), archive)

    def fold(i: Array, densities: Array) -> Array:
        assert late is not None
        return put(densities, late[i], row(late[i])[0])

    if densities.shape[-2] == 1:  # the batch is all there is, and its densities are new already
        return densities, None
    target = row(newest)
    densities = put(densities, newest, target[0])
    if late is None:
        return densities, target
    return jax.lax.fori_loop(0, jnp.sum(late >= 0), fold, densities), target


def _set_row(table: Array, slot: Array, row: Array) -> Array:
    return table.at[slot].set(row)


def _distinct(slots: Array, part: Array, sentinel: int) -> Array:
    """The distinct slots among those that are `part`, first, then -1: `[N]`."""
    found = jnp.unique(jnp.where(part, slots, sentinel), size=slots.size, fill_value=sentinel)
    return jnp.where(found == sentinel, -1, found).astype(jnp.int32)

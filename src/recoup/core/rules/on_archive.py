"""The rule on an archive, by JAX: which samples it looks at, and what their weights are."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from recoup.core.archive import Archive
from recoup.core.estimators.whole import Estimator, direction_of, earned_by
from recoup.core.families.family import Family, moving
from recoup.core.gradient import Direction
from recoup.core.mixtures import mixture_density, picked
from recoup.core.objective import Estimate
from recoup.core.rules import recoup_rule
from recoup.core.rules.tuning import TUNED
from recoup.core.rules.weighted import Weighed, objective, weighed
from recoup.core.rules.window import (
    Memory,
    Rule,
    Window,
    WindowSizes,
    first_memory,
    narrowest,
    reach_of,
)
from recoup.core.sweeps import in_rounds, totals_by
from recoup.core.types import Rho


class TracedRule(NamedTuple):
    """The rule as two functions: `init(rho)`, and `step(archive, rho, memory)`."""

    init: Callable[[Rho], Memory]
    step: Callable[[Archive, Rho, Memory], tuple[Rho, Memory, Estimate]]


class Rows(NamedTuple):
    """The samples of a window, the newest first."""

    place: Array  # [n] in the archive's samples, flattened
    told: Array  # [n] samples that were told, failed ones too
    proposal: Array  # [n] slots
    window: Window


def traced(family: Family, rule: Rule, window: int | None) -> TracedRule:
    """The rule for rho of `family`; a `window` of so many batches, or as many as it is made for."""

    asked = moving(family)

    def init(rho: Rho) -> Memory:
        return first_memory(jnp, rule, asked.log_spread(rho))

    def step(archive: Archive, rho: Rho, memory: Memory) -> tuple[Rho, Memory, Estimate]:
        assert archive.batches is not None
        dim, batch = rho.mean.shape[0], archive.batches.returns.shape[1]
        rows = rows_of(family, archive, rho, reach_of(dim, batch, window), rule.avoids)
        made = recoup_rule.step(jnp, rule, rows.window, memory, asked.log_spread(rho))
        least = narrowest(jnp, rule, memory)
        after = asked.stretched(rho, *made.stretch, least)
        found = _summary(archive, rows, made.weighed, made.stretch)
        return after, made.memory, found._replace(notes=made.notes)

    return TracedRule(init, step)


def estimator_of_rule(
    family: Family, rule: Rule, window: int | None, direction: Direction
) -> Estimator:
    """`estimate(rho, archive)` by the weights of the rule: at a distribution that moves, its own.

    The gradient is the `direction` under these weights.
    """

    def estimate(rho: Rho, archive: Archive) -> Estimate:
        b = archive.batches
        assert b is not None
        reach = reach_of(rho.mean.shape[0], b.returns.shape[1], window)
        rows = rows_of(family, archive, rho, reach, rule.avoids)
        seen = rows.window
        found = weighed(jnp, seen.log_weights, seen.returns, seen.recent)
        said = _summary(archive, rows, found, None)
        omega = said.weights / jnp.maximum(jnp.sum(said.weights), 1e-30)
        earned = earned_by(archive, b.returns, omega * jnp.sum(b.valid))
        gradient, baseline = direction_of(direction, rho, b.samples, earned)
        return said._replace(gradient=gradient, baseline=baseline)

    return estimate


def rows_of(
    family: Family, archive: Archive, rho: Rho, reach: WindowSizes, avoids: bool = False
) -> Rows:
    """The newest samples, in the coordinates of `rho`, and their log-weights.

    Those that failed take part where the rule `avoids` them.
    """
    b = archive.batches
    assert b is not None
    size = min(max(reach), b.returns.size)
    order = b.order.ravel() * (b.valid | b.failed).ravel()
    told_at = order * b.returns.shape[1] + jnp.arange(b.returns.size) % b.returns.shape[1]
    index = jnp.argsort(-told_at)[:size]
    theta = b.samples[index // b.returns.shape[1], index % b.returns.shape[1]]
    counted = (b.valid | b.failed if avoids else b.valid).ravel()
    valid, told = counted[index], order[index] > 0
    proposal, place = b.proposal.ravel()[index], jnp.arange(size)
    recent = told & (place < reach.recent)
    z = moving(family).whitened(rho, theta)
    weigh = partial(_log_weights, family, archive.proposals, rho)
    if reach.recent >= b.returns.size:  # all are weighed: where they lie, without a copy in order
        flat = b.samples.reshape(b.returns.size, -1)
        log_weights = weigh(flat, b.proposal.ravel(), order > 0, counted)[index]
    else:
        weighed = (x[: reach.recent] for x in (theta, proposal, recent, valid))
        log_weights = _padded(weigh(*weighed), size)
    window = Window(
        z=z,
        returns=b.returns.ravel()[index],
        valid=valid,
        fresh=told & (b.order.ravel()[index] > _old(archive)),
        modelled=told & (place < reach.modelled),
        recent=recent & valid,
        log_weights=log_weights,
        failed=b.failed.ravel()[index] if avoids else None,
    )
    return Rows(index, told, proposal, window)


def _old(archive: Archive) -> Array:
    """The order of the last batch that a move's distribution was made of."""
    assert archive.batches is not None
    before = jnp.max(archive.batches.order) - 1
    return before if archive.since is None else jnp.minimum(before, archive.since)


def _log_weights(
    family: Family,
    proposals: Rho,
    rho: Rho,
    theta: Array,
    proposal: Array,
    recent: Array,
    valid: Array,
) -> Array:
    """log p(theta | rho) less that of the mixture of proposals that are near `[n]`."""
    slots = jax.tree.leaves(proposals)[0].shape[0]
    counts = totals_by(proposal, slots, recent.astype(theta.dtype))
    near = _near(family, proposals, rho, counts > 0)
    mixed = jnp.where(near, counts, 0.0)
    mixture = mixture_density(family, proposals, mixed, rho, theta)
    mixture = mixture - jnp.log(jnp.maximum(jnp.sum(mixed), 1))
    return jnp.where(recent & valid & near[proposal], -mixture, -jnp.inf)


def _padded(log_weights: Array, size: int) -> Array:
    """Log-weights `[n]` of a window of which only the first are weighed."""
    return jnp.pad(log_weights, (0, size - log_weights.size), constant_values=-jnp.inf)


def _near(family: Family, proposals: Rho, rho: Rho, drew: Array) -> Array:
    """Which of the proposals that `drew [P]` any sample are near enough to be weighed by `[P]`.

    All of them, of a family that has no such divergence.
    """
    renyi2 = family.renyi2
    if renyi2 is None:
        return drew

    def add(near: Array, slots: Array, part: Array) -> Array:
        found = part & (jax.vmap(partial(renyi2, rho))(picked(proposals, slots)) < TUNED.far)
        return near.at[jnp.where(part, slots, drew.size)].set(found, mode="drop")

    size = sum(leaf[0].size for leaf in jax.tree.leaves(proposals))
    work = size * rho.mean.size  # a divergence may need an eigendecomposition
    return in_rounds(add, jnp.zeros(drew.size, bool), drew, work)


def _summary(archive: Archive, rows: Rows, by: Weighed, gradient: Rho) -> Estimate:
    """What the weights say of the objective."""
    b, window = archive.batches, rows.window
    assert b is not None
    found = objective(
        jnp,
        by,
        window.log_weights,
        window.returns,
        window.failed,
        rows.proposal,
        archive.counts.size,
    )
    weights = jnp.zeros(b.returns.size, found.weights.dtype).at[rows.place].set(found.weights)
    return Estimate(
        gradient=gradient,
        objective=found.mean,
        objective_stderr=found.stderr,
        weights=weights.reshape(b.valid.shape),
        ess=found.ess,
        max_weight=jnp.max(found.weights),
        baseline=found.mean,
        samples=jnp.sum(b.valid, dtype=weights.dtype),
        mean_weight=found.mean_weight,
        censored=jnp.sum(b.failed),
    )

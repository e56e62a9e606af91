"""The one move: an estimate becomes a step, and what it was made of is noted.

`search.tell` makes it on its ring of batches, a study on the results in its file, and a training
run is such a study.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from recoup.core.archive import Archive
from recoup.core.types import Memory, Rho, Samples
from recoup.engine.composition import Composed
from recoup.engine.info import Info


class EngineMove(NamedTuple):
    """Where the distribution went, the update rule's memory, and what the move was made of."""

    rho: Rho
    memory: Memory
    info: Info
    sound: Array  # whether the direction is finite: it is not where a sample is not


def move(
    method: Composed, archive: Archive, rho: Rho, memory: Memory, samples: Samples, new: Array
) -> EngineMove:
    """One move of `rho`, from all samples of `archive`.

    `samples [N]` and which of them are `new [N]` say on what the divergence of the move is taken,
    where it depends on samples.
    """
    after, memory, found = method.step(archive, rho, memory)
    info = Info(
        objective=found.objective,
        objective_stderr=found.objective_stderr,
        ess=found.ess,
        max_weight=found.max_weight,
        weights=found.weights,
        baseline=found.baseline,
        samples=found.samples.astype(jnp.int32),
        kl=method.family.divergence(after, rho, samples, new),
        flatten=found.flatten,
        mean_weight=found.mean_weight,
        censored=jnp.asarray(found.censored, jnp.int32),
        notes=found.notes,
    )
    finite = [jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(found.gradient)]
    return EngineMove(after, memory, info, jnp.all(jnp.stack(finite)))

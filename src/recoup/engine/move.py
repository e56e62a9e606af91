"""The one move: an estimate becomes a step, and what it was made of is noted.

`search.tell` makes it on its ring of batches, a study on the results in its file, and a training
run is such a study.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from recoup.core.archive import Archive
from recoup.core.intervals import Interval, student
from recoup.core.pareto import pareto_k
from recoup.engine.composition import Composed


class Info(NamedTuple):
    """What one move was made of, at the distribution before it."""

    objective: Array  # estimated expected return of the distribution that moved
    objective_stderr: Array
    ess: Array  # effective sample size, in pairs under mirrored sampling
    max_weight: Array
    weights: Array  # [B, N] of every sample in the archive, zero where there is none
    baseline: Any
    samples: Array  # valid samples in the archive
    kl: Array  # KL(new || old) of the move; in action space, of an episode of the new batch
    flatten: Array | None  # nu of w^nu, for methods that may choose it
    mean_weight: Array | float = 1.0  # near 1 if the samples cover the distribution
    censored: Array | int = 0  # failed samples that are left out: the objective is given success
    failed: Array | int = 0  # results of the new batch that are not finite
    stale: Array | int = 0  # results of it whose proposal is too old to be remembered
    dropped: Array | int = 0  # batches that a full archive has dropped so far

    @property
    def interval(self) -> Interval:
        """The 95 % interval of the objective of a move that has been made; not a number if none."""
        numbers = (self.objective, self.objective_stderr, self.ess, self.mean_weight)
        return student(*(float(x) for x in numbers))

    def plain(self, draw: int = 1) -> dict[str, Any]:
        """The numbers of a move that has been made, as JSON can hold them.

        `draw` is how many samples one draw makes: the effective sample size is then in samples.
        """
        low, high = self.interval
        return {
            "objective": float(self.objective),
            "objective_stderr": float(self.objective_stderr),
            "low": low,
            "high": high,
            "samples": int(self.samples),
            "ess": float(self.ess) * draw,
            "max_weight": float(self.max_weight),
            "mean_weight": float(self.mean_weight),
            "censored": int(self.censored),
            "pareto_k": pareto_k(self.weights),
            "kl": float(self.kl),
            "flatten": None if self.flatten is None else float(self.flatten),
        }


class Moved(NamedTuple):
    """Where the distribution went, the update rule's memory, and what the move was made of."""

    rho: Any
    memory: Any
    info: Info
    sound: Array  # whether the direction is finite: it is not where a sample is not


def move(
    method: Composed, archive: Archive, rho: Any, memory: Any, samples: Any, new: Array
) -> Moved:
    """One move of `rho`, from all samples of `archive`.

    `samples [N]` and which of them are `new [N]` say on what the divergence of the move is taken,
    where it depends on samples.
    """
    after, memory, found = method.update.step(
        lambda candidate: method.estimate(candidate, archive), rho, memory
    )
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
    )
    finite = [jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(found.gradient)]
    return Moved(after, memory, info, jnp.all(jnp.stack(finite)))

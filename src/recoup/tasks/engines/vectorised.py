"""Trials on a task that is rolled out many at a time in this process: ours, and those in JAX."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from recoup.core.families.action_policy import Policy
from recoup.core.families.trajectory import Trajectory
from recoup.tasks.engines.attempt import Raised, theirs
from recoup.tasks.engines.engine import Broken, Job, Outcome
from recoup.tasks.task import Task


class Vectorised:
    """Rolls trials out on a task in this process, so many at a time.

    In JAX batches are always of one size, so that what is compiled serves for all, and no return
    depends on which trials were rolled out together.
    """

    def __init__(self, task: Task, batch: int) -> None:
        self.task, self.slots = task, batch
        self._roll = _rolled(task)
        self._jobs: list[Job] = []

    def submit(self, job: Job) -> None:
        """Takes a trial."""
        self._jobs.append(job)

    def wait(self, seconds: float | None = None) -> list[Outcome]:
        """Rolls out all that was submitted, together; where that raises, one by one."""
        jobs, self._jobs = self._jobs, []
        if not jobs:
            return []
        try:
            return self._outcomes(jobs)
        except Raised as wrong:
            if len(jobs) == 1:
                return [Outcome(jobs[0].id, failed=wrong.words, trace=wrong.trace)]
            return self._alone(jobs)

    def _alone(self, jobs: list[Job]) -> list[Outcome]:
        """Outcomes of trials that raised together: of those that raise alone, why."""
        found: list[Outcome] = []
        for job in jobs:
            try:
                found += self._outcomes([job])
            except Raised as wrong:
                found.append(Outcome(job.id, failed=wrong.words, trace=wrong.trace))
        if all(outcome.failed is not None for outcome in found):
            last = found[-1]
            sentence = f"all {len(found)} trials of a batch failed, the last because: {last.failed}"
            raise Broken(f"{sentence}. They wait for another attempt.", last.trace)
        return found

    def _outcomes(self, jobs: list[Job]) -> list[Outcome]:
        """Outcomes of trials that are rolled out together."""
        spare = self.slots - len(jobs) if self.task.traced else 0
        padded = [*jobs, *[jobs[-1]] * spare]
        seeds = jnp.asarray([job.seed for job in padded], jnp.uint32)
        theta = jnp.asarray(np.stack([job.theta for job in padded]))
        stds = [job.std for job in padded if job.std is not None]
        std = jnp.asarray(np.stack(stds)) if stds else None
        with theirs():
            found = jax.block_until_ready(self._roll(seeds, theta, std))
        return [_outcome(job.id, found, i) for i, job in enumerate(jobs)]

    def close(self) -> None:
        """Nothing to stop."""


@lru_cache(maxsize=32)
def _rolled(task: Task) -> Callable[[Array, Array, Array | None], Any]:
    """`roll(seeds [N], theta [N, D], std [N, A] or None)`: returns, or trajectories."""

    def roll(seeds: Array, theta: Array, std: Array | None) -> Any:
        keys = jax.vmap(jax.random.key)(seeds)
        if std is None:
            return task.rollouts(keys, theta)
        return task.episodes(keys, Policy(theta, std))

    return jax.jit(roll) if task.traced else roll


def _outcome(number: int, found: Any, i: int) -> Outcome:
    if isinstance(found, Trajectory):
        return Outcome(number, trajectory=Trajectory(*(np.asarray(x)[i] for x in found)))
    return Outcome(number, (float(found[i]),))

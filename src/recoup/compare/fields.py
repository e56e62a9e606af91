"""Where the runs of a method are rolled out, all of them by the numbers of their episodes."""

from collections.abc import Sequence
from math import isfinite
from typing import Protocol

import numpy as np

from recoup.compare.arenas import EPISODES, POLICY_TESTS, Arena, box_task
from recoup.core.types import Array
from recoup.tasks.bounded.bounded_suite import BoundedTask
from recoup.tasks.engines.attempt import attempt, closed
from recoup.tasks.engines.engine import Job
from recoup.tasks.engines.serial import built
from recoup.tasks.own.host import HostTask


class Field(Protocol):
    """Where R runs are rolled out; theta is `[R, n, D]`, returns are `[R, n]`.

    An episode that failed has a return that is not finite.
    """

    why: str  # the last one has failed

    def learn(self, first: int, theta: Array) -> Array:
        """Returns of the episodes `first`, `first + 1`, ... of each run."""

    def test(self, theta: Array, use: int) -> Array:
        """Returns of test episodes, the same ones at every call; TESTS or POLICY_TESTS."""

    def close(self) -> None:
        """Frees what it holds."""


def field_of(arena: Arena, seed: int, runs: Sequence[int]) -> Field:
    """What rolls out the episodes of `runs`."""
    if arena.bounded:
        return BoundedField([box_task(arena, seed, run) for run in runs], seed, runs)
    if isinstance(arena.problem, HostTask):
        return HostField(arena.problem, seed, runs)
    from recoup.compare.keyed_field import KeyedField  # by JAX

    return KeyedField(arena, seed, runs)


class HostField:
    """On a task that is rolled out a trial at a time in this process."""

    def __init__(self, task: HostTask, seed: int, runs: Sequence[int]) -> None:
        self._roller, self._seed, self._runs = built(task.build), seed, runs
        self.why = ""

    def learn(self, first: int, theta: Array) -> np.ndarray:
        """Returns of episodes by their numbers; one that fails has none."""
        return self._returns(theta, EPISODES, first)

    def test(self, theta: Array, use: int) -> np.ndarray:
        """Returns of test episodes."""
        return self._returns(theta, use, 0)

    def _returns(self, theta: Array, use: int, first: int) -> np.ndarray:
        theta = np.asarray(theta, float)
        return np.array(
            [
                [self._one(one, run, use, first + i) for i, one in enumerate(batch)]
                for run, batch in zip(self._runs, theta, strict=True)
            ]
        ).reshape(theta.shape[:2])

    def _one(self, theta: np.ndarray, run: int, use: int, number: int) -> float:
        words = np.random.SeedSequence([self._seed, run, use, number]).generate_state(1)
        came = attempt(self._roller, Job(number, theta, int(words[0]) % 2**31))
        value = float(np.mean(came.values)) if came.values else float("nan")
        if not isfinite(value):
            self.why = came.failed or f"it returned {value}"
        return value

    def close(self) -> None:
        """Closes the environment."""
        closed(self._roller.close)


class BoundedField:
    """On bounded tasks, another one for each run; candidates `[R, n, D]` are in units.

    What is deployed is tested without noise, what is drawn by an episode each; in both a failed
    trial counts as the worst return of the task.
    """

    why = ""  # failures are a part of these tasks

    def __init__(self, tasks: Sequence[BoundedTask], seed: int, runs: Sequence[int]) -> None:
        self._tasks, self._seed, self._runs = tasks, seed, runs

    def learn(self, first: int, theta: Array) -> np.ndarray:
        """Returns of trials by their numbers; one that fails has none."""
        return self._returns(theta, EPISODES, first)

    def test(self, theta: Array, use: int) -> np.ndarray:
        """Expected returns of what is deployed, returns of what is drawn."""
        if use == POLICY_TESTS:
            pairs = zip(self._tasks, theta, strict=True)
            return np.array([[task.true_return(one) for one in batch] for task, batch in pairs])
        returns = self._returns(theta, use, 0)
        floors = np.array([[task.placed.floor] for task in self._tasks])
        return np.where(np.isfinite(returns), returns, floors)

    def _returns(self, theta: Array, use: int, first: int) -> np.ndarray:
        found = [
            task.returns(batch, [[self._seed, run, use, first + i] for i in range(len(batch))])
            for task, run, batch in zip(self._tasks, self._runs, theta, strict=True)
        ]
        return np.array(found)

    def close(self) -> None:
        """Nothing to free."""

"""What runs on tasks in JAX need: the start, tests of many episodes at a time, 64 bits."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from recoup.core.types import Rho
from recoup.engine.compilation_cache import kept_compilations
from recoup.engine.plain import family_of
from recoup.runs.fresh import Evaluated
from recoup.runs.plan import Plan
from recoup.tasks.engines.attempt import Raised, theirs
from recoup.tasks.engines.engine import Broken
from recoup.tasks.measured import Measured, measured
from recoup.tasks.registry import task_row
from recoup.tasks.rollouts import fresh_returns, mean_policy_returns
from recoup.tasks.task import Task


@contextmanager
def in_double() -> Iterator[None]:
    """JAX computes in 64 bits, and what it compiles is kept for other processes."""
    with kept_compilations(), jax.enable_x64(True):
        yield


def drawn_start(plan: Plan, dim: int) -> np.ndarray:
    """The means `[D]` that a run on a task of ours starts from: drawn, as in the paper."""
    row, key = task_row(plan.task), jax.random.split(jax.random.key(plan.seed), 3)[0]
    drawn = np.asarray(jax.random.normal(key, (dim,), jnp.float64))
    return row.mean + row.drawn * drawn


class TaskTests:
    """On a task that is rolled out many episodes at a time."""

    def __init__(self, plan: Plan, problem: Task, episodes: int) -> None:
        self._search = fresh_returns(problem, family_of(plan.settings), episodes)
        self._policy = mean_policy_returns(problem, episodes)
        self._key = jax.random.split(jax.random.key(plan.seed), 3)[2]

    def search(self, number: int, rho: Rho) -> Measured:
        """What a distribution earns, after move `number`."""
        return self._earns(jax.random.fold_in(self._key, number), rho)

    def both(self, number: int, rho: Rho, seed: int | None = None) -> Evaluated:
        """What a distribution earns, and its mean policy; by the run's key, or that of a seed."""
        key = self._key if seed is None else jax.random.key(seed)
        keys = jax.random.split(jax.random.fold_in(key, number))
        policy = _tested(self._policy, keys[1], rho.mean)
        return Evaluated(self._earns(keys[0], rho), policy)

    def _earns(self, key: Any, rho: Rho) -> Measured:
        return _tested(self._search, key, jax.tree.map(jnp.asarray, rho))


def _tested(test: Callable[[Any, Any], Any], key: Any, at: Any) -> Measured:
    """What test episodes earn; where they raise, one sentence."""
    try:
        with theirs():
            return measured(test(key, at))
    except Raised as wrong:
        raise Broken(f"a test episode failed: {wrong.words}", wrong.trace) from wrong.__cause__

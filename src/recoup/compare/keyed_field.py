"""Episodes of tasks of ours or in JAX, which have keys: of all runs at a time."""

from collections.abc import Callable, Sequence
from functools import lru_cache, partial

import jax
import jax.numpy as jnp
import numpy as np

from recoup.compare.arenas import EPISODES, SYSTEM, Arena, generator
from recoup.core.types import Array
from recoup.tasks.lqr import System, controlled, system_of
from recoup.tasks.models import rollout
from recoup.tasks.registry import task_row
from recoup.tasks.suite import SYSTEMS
from recoup.tasks.task import Task


class KeyedField:
    """On a task of ours or in JAX, whose episodes have keys."""

    why = "the return is not finite"

    def __init__(self, arena: Arena, seed: int, runs: Sequence[int]) -> None:
        self._keys = jnp.stack([_key(seed, run) for run in runs])
        self._contexts: Array = ()
        if arena.task in SYSTEMS:
            self._contexts = _systems(arena.task, seed, runs)
            self._learn = self._test = _controlled(arena.task, arena.problem.horizon)
        else:
            assert isinstance(arena.problem, Task)
            assert isinstance(arena.test, Task)
            self._learn, self._test = _rolled(arena.problem), _rolled(arena.test)

    def learn(self, first: int, theta: Array) -> Array:
        """Returns of episodes by their numbers."""
        return self._learn(self._contexts, self._keys, EPISODES, first, theta)

    def test(self, theta: Array, use: int) -> Array:
        """Returns of test episodes."""
        return self._test(self._contexts, self._keys, use, 0, theta)

    def close(self) -> None:
        """Nothing to free."""


def _key(seed: int, run: int) -> jax.Array:
    return jax.random.fold_in(jax.random.key(seed), run)


@lru_cache(maxsize=64)
def _rolled(task: Task) -> Callable[..., Array]:
    """`roll(contexts, keys [R], use, first, theta [R, n, D])` of a task that has no contexts."""

    def roll(contexts: Array, keys: Array, use: Array, first: Array, theta: Array) -> Array:
        each = _episode_keys(keys, use, first, theta.shape[1])
        returns = task.rollouts(each.ravel(), theta.reshape(-1, theta.shape[-1]))
        return returns.reshape(theta.shape[:2])

    return jax.jit(roll) if task.traced else roll


@lru_cache(maxsize=64)
def _controlled(name: str, horizon: int) -> Callable[..., Array]:
    """The same of a linear system that differs from run to run: its context."""
    size = (task_row(name).options["states"], task_row(name).options["actions"])

    def run(system: System, keys: Array, theta: Array) -> Array:
        return jax.vmap(rollout(controlled(system, *size), horizon, 1.0))(keys, theta)

    def roll(contexts: Array, keys: Array, use: Array, first: Array, theta: Array) -> Array:
        return jax.vmap(run)(contexts, _episode_keys(keys, use, first, theta.shape[1]), theta)

    return jax.jit(roll)


def _systems(name: str, seed: int, runs: Sequence[int]) -> System:
    """The systems of runs, stacked: another one for each."""
    size = (task_row(name).options["states"], task_row(name).options["actions"])
    numbers = [int(generator(seed, run, SYSTEM).integers(2**31)) for run in runs]
    found = [system_of(*size, number) for number in numbers]
    return System(*(jnp.asarray(np.stack(part)) for part in zip(*found, strict=True)))


@partial(jax.jit, static_argnums=3)
def _episode_keys(keys: Array, use: Array, first: Array, count: int) -> Array:
    """Keys `[R, n]` of episodes by their numbers."""
    numbers = first + jnp.arange(count)

    def of_run(key: Array) -> Array:
        return jax.vmap(partial(jax.random.fold_in, jax.random.fold_in(key, use)))(numbers)

    return jax.vmap(of_run)(keys)

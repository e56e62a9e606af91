"""Many runs of one method side by side, for figures and comparisons.

Each starts where the run that `recoup.train` makes of its seed does, and is drawn, moved and tested
in the same way, but from keys of JAX: trials and numbers differ, what is learned does not.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array

from recoup.core.types import Plain
from recoup.engine.methods import METHODS
from recoup.engine.plain import family_of
from recoup.engine.search import Search, SearchState, search
from recoup.runs.loop import in_lock_step
from recoup.tasks.rollouts import fresh_returns, roll_out
from recoup.tasks.task import Task


class Runs(NamedTuple):
    """R runs: what was measured at C checkpoints, and at each of I moves."""

    checkpoints: np.ndarray  # [C] iterations
    returns: np.ndarray  # [R, C] expected return of the search distribution, on fresh episodes
    mean: np.ndarray  # [R, C, D] of the search distribution
    std: np.ndarray  # [R, C, D]
    ess: np.ndarray  # [R, I]
    max_weight: np.ndarray  # [R, I]
    failed: np.ndarray  # [R, I]


def search_of(problem: Task, method: str, batch: int, iterations: int, settings: Plain) -> Search:
    """The search of a run on `problem`, with room for all of it."""
    if METHODS[method].space == "actions":
        settings = settings | {
            "horizon": problem.horizon,
            "actions": problem.actions,
            "discount": problem.discount,
        }
    return search(
        method,
        dim=problem.dim,
        batch=batch,
        capacity=iterations * batch,
        late=0,
        table=False,
        **settings,
    )


def learn(
    problem: Task,
    method: Search,
    seeds: Sequence[int],
    iterations: int,
    *,
    checkpoints: Sequence[int],
    tests: int,
    start: tuple[Any, Any] = (None, 1.0),
    tick: Callable[[], None] = lambda: None,
) -> Runs:
    """The runs of `seeds`, with `tests` fresh episodes at each checkpoint; 0 is the start.

    `start` is the mean and standard deviation of the first distribution; a mean of None is drawn.
    Seeds are shared between methods: the same start, and the same keys for every draw. `tick` is
    called after every iteration.
    """
    noted: list[tuple[Any, ...]] = []
    with jax.enable_x64(True):
        keys = jax.vmap(lambda seed: jax.random.split(jax.random.key(seed), 3))(np.asarray(seeds))
        starts, moves, trials = keys.T  # as `recoup.train` splits them
        state = jax.vmap(lambda key: method.init(key, *start))(starts)
        iterate, test = _stages(problem, method, tests)

        def move(i: int) -> None:
            nonlocal state
            state, noted_now = iterate(_fold(moves, i), state)
            noted.append(jax.device_get(noted_now))
            tick()

        def tested(i: int) -> tuple[Any, ...]:
            returns = np.full(len(seeds), np.nan)  # where there is no test
            if test is not None:
                returns = np.asarray(test(_fold(trials, i), state.rho)).mean(-1)
            return (returns, *jax.device_get((state.mean, state.std)))

        found = in_lock_step(iterations, checkpoints, move, tested)
    columns = [np.stack(column, 1) for column in zip(*found.values(), strict=True)]
    columns += [np.stack(column, 1) for column in zip(*noted, strict=True)]
    columns += [np.zeros((len(seeds), 0))] * (len(Runs._fields) - 1 - len(columns))  # of no moves
    return Runs(np.array(sorted(checkpoints)), *columns)


def _fold(keys: Array, i: int) -> Array:
    return jax.vmap(lambda key: jax.random.fold_in(key, i))(keys)


@lru_cache(maxsize=64)
def _stages(
    problem: Task, method: Search, tests: int
) -> tuple[
    Callable[[Array, SearchState], tuple[SearchState, tuple[Any, ...]]],
    Callable[[Array, Any], Array] | None,
]:
    """One iteration and one test of all runs, compiled as far as the task allows."""

    def ask(key: Array, state: SearchState) -> tuple[Array, Array, Any]:
        key_ask, key_roll, key_tell = jax.random.split(key, 3)
        return key_roll, key_tell, method.ask(key_ask, state)[0]

    def tell(key: Array, state: SearchState, *told: Any) -> tuple[SearchState, tuple[Any, ...]]:
        state, info = method.tell(key, state, *told)
        return state, (info.ess, info.max_weight, info.failed)

    asks, tells = jax.jit(jax.vmap(ask)), jax.jit(jax.vmap(tell), donate_argnums=1)
    test = fresh_returns(problem, family_of(method.settings), tests)

    def roll(keys: Array, asked: Any) -> tuple[Any, ...]:
        return roll_out(problem, keys, asked)

    if problem.traced:
        roll = jax.jit(roll)

    def iterate(keys: Array, state: SearchState) -> tuple[SearchState, tuple[Any, ...]]:
        key_roll, key_tell, asked = asks(keys, state)
        return tells(key_tell, state, *roll(key_roll, asked))

    return iterate, test if tests else None

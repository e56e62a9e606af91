"""R runs of one method as one program that JAX compiles: methods of ours, and of evosax."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from recoup.compare.arenas import Arena
from recoup.compare.entrants import Entrant, PureMethod, batch_of, made_by, row_of
from recoup.compare.players import Worst
from recoup.core.types import Array, Pytree
from recoup.engine.methods import Method, default_batch
from recoup.engine.search import search
from recoup.runs.plan import task_settings


def traced_players(
    arena: Arena, entrant: Entrant, means: np.ndarray, keys: Sequence[int], episodes: int
) -> "TracedPlayers":
    """The runs of a method, from their starts `means [R, D]` and with their keys."""
    if entrant.peer is not None:
        settings = tuple(sorted(entrant.settings.items()))
        made = _evolving(entrant.peer.home, arena.dim, settings)
        return TracedPlayers(made, means, arena.std, keys)
    method = row_of(entrant, task_settings(arena.found, entrant.method))
    batch = batch_of(entrant, arena.dim, arena.found.batch)
    whole = max(episodes // batch, 1) * batch
    capacity = whole if default_batch(method, arena.dim) is None else None  # it knows its own
    made = _ours(method, arena.dim, batch, capacity)
    return TracedPlayers(made, means, arena.std, keys, failures=True)


@lru_cache(maxsize=64)
def _ours(method: Method, dim: int, batch: int, capacity: int | None) -> PureMethod:
    """A method of ours as pure functions."""
    made = search(method, dim=dim, batch=batch, capacity=capacity, late=0, table=False)
    return PureMethod(
        batch,
        made.init,
        made.ask,
        lambda key, state, theta, returns: made.tell(key, state, theta, returns)[0],
        lambda state: state.mean,
        lambda state, noise: jax.vmap(state.rho.theta)(noise),
    )


@lru_cache(maxsize=64)
def _evolving(home: str, dim: int, settings: tuple[tuple[str, Any], ...]) -> PureMethod:
    """A strategy of evosax, likewise."""
    return made_by(home)(dim, dict(settings))


@lru_cache(maxsize=64)
def _compiled(method: PureMethod) -> PureMethod:
    """The functions for R runs at a time, compiled."""
    return method._replace(
        init=jax.jit(jax.vmap(method.init)),
        ask=jax.jit(jax.vmap(method.ask)),
        tell=jax.jit(jax.vmap(method.tell)),
        mean=jax.jit(jax.vmap(method.mean)),
        draw=jax.jit(jax.vmap(method.draw)),
    )


class TracedPlayers:
    """R runs as one program; `failures` says whether the method takes returns that are missing."""

    def __init__(
        self,
        method: PureMethod,
        means: np.ndarray,
        std: np.ndarray,
        keys: Sequence[int],
        failures: bool = False,
    ) -> None:
        self._method, self.batch = _compiled(method), method.batch
        self._keys = jax.vmap(jax.random.key)(jnp.asarray(keys, jnp.uint32))
        self._worst = None if failures else Worst(len(keys))
        stds = jnp.broadcast_to(jnp.asarray(std), means.shape)
        self._state = self._method.init(_folded(self._keys, 0), jnp.asarray(means), stds)

    def ask(self, move: int) -> Array:
        """Parameters of the next batch."""
        theta, self._state = self._method.ask(_folded(self._keys, 2 * move), self._state)
        return theta

    def tell(self, move: int, theta: Array, returns: Array) -> None:
        """Moves."""
        key, known = _folded(self._keys, 2 * move + 1), True
        if self._worst is not None:
            returns = self._worst.filled(returns)
            known = np.isfinite(returns).all(1)
        state = self._method.tell(key, self._state, theta, jnp.asarray(returns))
        self._state = state if np.all(known) else _where(known, state, self._state)

    def mean(self) -> Array:
        """Means of the distributions."""
        return self._method.mean(self._state)

    def draw(self, noise: np.ndarray) -> Array:
        """What the noise becomes."""
        return self._method.draw(self._state, jnp.asarray(noise))

    def close(self) -> None:
        """Nothing to end."""


@jax.jit
def _folded(keys: Array, number: Array) -> Array:
    return jax.vmap(lambda key: jax.random.fold_in(key, number))(keys)


def _where(known: Array, state: Pytree, before: Pytree) -> Array:
    """States of runs: the new ones where `known` `[R]`, the others as they were."""

    def chosen(new: Array, old: Array) -> Array:
        return jnp.where(known.reshape(-1, *[1] * (new.ndim - 1)), new, old)

    return jax.tree.map(chosen, state, before)

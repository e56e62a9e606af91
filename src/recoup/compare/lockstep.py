"""The one loop that all methods go through: R runs side by side, tested at checkpoints."""

import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from recoup.compare.arenas import (
    METHOD,
    POLICY_TESTS,
    TESTS,
    Arena,
    Field,
    field_of,
    generator,
    noise_of,
    start_of,
)
from recoup.compare.entrants import Entrant, Traced, batch_of, made_by, row_of
from recoup.engine.methods import Method, default_batch
from recoup.engine.search import search
from recoup.runs.plan import task_settings

Tick = Callable[[int], None]  # episodes that were spent


class Curve(NamedTuple):
    """What one run was worth at the start and at each checkpoint; NaN where it has no number."""

    run: int
    batch: int
    spent: list[int]  # episodes behind each point: whole batches
    search: list[float]  # J, expected return of the search distribution
    policy: list[float]  # m, of its mean policy
    seconds: float  # a run's share of the time


class Players(Protocol):
    """R runs of one method."""

    batch: int

    def ask(self, move: int) -> Any:
        """Parameters `[R, N, D]`."""

    def tell(self, move: int, theta: Any, returns: Any) -> None:
        """Their returns `[R, N]`."""

    def mean(self) -> Any:
        """The policies to deploy `[R, D]`."""

    def draw(self, noise: np.ndarray) -> Any:
        """What would be tried now `[R, n, D]`."""

    def close(self) -> None:
        """Ends what is still running."""


def learn(
    arena: Arena,
    entrant: Entrant,
    seed: int,
    runs: Sequence[int],
    checkpoints: Sequence[int],
    tick: Tick = lambda episodes: None,
) -> list[Curve]:
    """The curves of `runs`; at a checkpoint a run is as its last whole batch before it left it."""
    began = time.perf_counter()
    with jax.enable_x64(True):
        field, tests = field_of(arena, seed, runs), _tests(arena, seed, runs)
        players = players_of(arena, entrant, seed, runs, max(checkpoints))
        moves = [0, *(at // players.batch for at in checkpoints)]
        try:
            found = _played(field, players, tests, moves, tick)
        finally:
            field.close()
            players.close()
    share = (time.perf_counter() - began) / len(runs)
    spent = [move * players.batch for move in moves]
    return [
        Curve(run, players.batch, spent, search.tolist(), policy.tolist(), share)
        for run, search, policy in zip(runs, *found, strict=True)
    ]


def _played(
    field: Field,
    players: Players,
    test: Callable[[Field, Players], tuple[np.ndarray, np.ndarray]],
    moves: Sequence[int],
    tick: Tick,
) -> tuple[np.ndarray, np.ndarray]:
    """J and m `[R, C]` after each of `moves`, which may be the same ones."""
    tested = {0: test(field, players)}
    for move in range(1, max(moves) + 1):
        theta = players.ask(move)
        returns = field.learn((move - 1) * players.batch, theta)
        players.tell(move, theta, returns)
        tick(int(np.prod(np.shape(returns))))
        if move in moves:
            tested[move] = test(field, players)
    search, policy = zip(*(tested[move] for move in moves), strict=True)
    return np.stack(search, 1), np.stack(policy, 1)


def _tests(
    arena: Arena, seed: int, runs: Sequence[int]
) -> Callable[[Field, Players], tuple[np.ndarray, np.ndarray]]:
    """`test(field, players)`: J and m `[R]`, on the same episodes and noise for all methods."""
    noise = np.stack([noise_of(arena, seed, run) for run in runs])

    def test(field: Field, players: Players) -> tuple[np.ndarray, np.ndarray]:
        theta, mean = players.draw(noise), np.asarray(players.mean())
        search = np.full(len(runs), np.nan)
        if theta.shape[1]:
            search = _mean(field.test(theta, TESTS))
        repeated = np.repeat(mean[:, None], arena.policy_episodes, axis=1)
        return search, _mean(field.test(repeated, POLICY_TESTS))

    return test


def _mean(returns: Any) -> np.ndarray:
    """Mean returns `[R]`, of the episodes that did not fail."""
    returns = np.asarray(returns, float)
    held = np.isfinite(returns)
    total = np.where(held, returns, 0.0).sum(1)
    return np.where(held.any(1), total / np.maximum(held.sum(1), 1), np.nan)


def players_of(
    arena: Arena, entrant: Entrant, seed: int, runs: Sequence[int], episodes: int
) -> Players:
    """The runs of a method on a task, at their starts."""
    means = np.stack([start_of(arena, seed, run) for run in runs])
    row = entrant.peer
    if row is not None and not row.traced:
        make = made_by(row.home)
        keys = [int(generator(seed, run, METHOD).integers(2**31)) for run in runs]
        pairs = zip(means, keys, strict=True)
        return HostPlayers([make(m, arena.std, key, entrant.settings) for m, key in pairs])
    if row is not None:
        settings = tuple(sorted(entrant.settings.items()))
        return TracedPlayers(_evolving(row.home, arena.dim, settings), means, arena.std, seed, runs)
    method = row_of(entrant, task_settings(arena.found, entrant.name))
    batch = batch_of(entrant, arena.dim, arena.found.batch)
    whole = max(episodes // batch, 1) * batch
    capacity = whole if default_batch(method, arena.dim) is None else None  # it knows its own
    return TracedPlayers(
        _ours(method, arena.dim, batch, capacity), means, arena.std, seed, runs, failures=True
    )


@lru_cache(maxsize=64)
def _ours(method: Method, dim: int, batch: int, capacity: int | None) -> Traced:
    """A method of ours as pure functions."""
    made = search(method, dim=dim, batch=batch, capacity=capacity, late=0, table=False)
    return Traced(
        batch,
        made.init,
        made.ask,
        lambda key, state, theta, returns: made.tell(key, state, theta, returns)[0],
        lambda state: state.mean,
        lambda state, noise: jax.vmap(state.rho.theta)(noise),
    )


@lru_cache(maxsize=64)
def _evolving(home: str, dim: int, settings: tuple[tuple[str, Any], ...]) -> Traced:
    """A strategy of evosax, likewise."""
    return made_by(home)(dim, dict(settings))


@lru_cache(maxsize=64)
def _compiled(method: Traced) -> Traced:
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
        method: Traced,
        means: np.ndarray,
        std: np.ndarray,
        seed: int,
        runs: Sequence[int],
        failures: bool = False,
    ) -> None:
        self._method, self.batch = _compiled(method), method.batch
        keys = [int(generator(seed, run, METHOD).integers(2**31)) for run in runs]
        self._keys = jax.vmap(jax.random.key)(jnp.asarray(keys, jnp.uint32))
        self._worst = None if failures else Worst(len(runs))
        stds = jnp.broadcast_to(jnp.asarray(std), means.shape)
        self._state = self._method.init(_folded(self._keys, 0), jnp.asarray(means), stds)

    def ask(self, move: int) -> Any:
        """Parameters of the next batch."""
        theta, self._state = self._method.ask(_folded(self._keys, 2 * move), self._state)
        return theta

    def tell(self, move: int, theta: Any, returns: Any) -> None:
        """Moves."""
        if self._worst is not None:
            returns = self._worst.filled(returns)
        key = _folded(self._keys, 2 * move + 1)
        self._state = self._method.tell(key, self._state, theta, jnp.asarray(returns))

    def mean(self) -> Any:
        """Means of the distributions."""
        return self._method.mean(self._state)

    def draw(self, noise: np.ndarray) -> Any:
        """What the noise becomes."""
        return self._method.draw(self._state, jnp.asarray(noise))

    def close(self) -> None:
        """Nothing to end."""


@jax.jit
def _folded(keys: Any, number: Any) -> Any:
    return jax.vmap(lambda key: jax.random.fold_in(key, number))(keys)


class HostPlayers:
    """R runs, each an object of its own."""

    def __init__(self, peers: Sequence[Any]) -> None:
        self._peers, self.batch = peers, peers[0].batch
        self._worst = Worst(len(peers))

    def ask(self, move: int) -> np.ndarray:
        """Parameters of the next batch."""
        return np.stack([peer.ask() for peer in self._peers])

    def tell(self, move: int, theta: Any, returns: Any) -> None:
        """Tells each its own."""
        theta, returns = np.asarray(theta), self._worst.filled(returns)
        for peer, asked, came in zip(self._peers, theta, returns, strict=True):
            peer.tell(asked, came)

    def mean(self) -> np.ndarray:
        """What each would deploy."""
        return np.stack([peer.mean() for peer in self._peers])

    def draw(self, noise: np.ndarray) -> np.ndarray:
        """What each would try."""
        pairs = zip(self._peers, noise, strict=True)
        return np.stack([peer.draw(one) for peer, one in pairs])

    def close(self) -> None:
        """Ends those that run in threads of their own."""
        for peer in self._peers:
            if hasattr(peer, "close"):
                peer.close()


class Worst:
    """The worst return of each run so far: what a failed episode counts as for other libraries."""

    def __init__(self, runs: int) -> None:
        self._worst = np.full(runs, np.inf)

    def filled(self, returns: Any) -> np.ndarray:
        """Returns `[R, N]`, every one of them a number."""
        returns = np.array(returns, float)
        held = np.isfinite(returns)
        lowest = np.where(held, returns, np.inf).min(1)
        self._worst = np.minimum(self._worst, lowest)
        worst = np.where(np.isfinite(self._worst), self._worst, 0.0)
        return np.where(held, returns, worst[:, None])

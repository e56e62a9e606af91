"""All methods in the one loop: R runs side by side, tested at checkpoints."""

import time
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
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
from recoup.compare.checked import Checked, check_same_batch
from recoup.compare.entrants import Entrant, PureMethod, batch_of, made_by, row_of
from recoup.engine.methods import Method, default_batch
from recoup.engine.search import search
from recoup.runs.lockstep import in_lock_step
from recoup.runs.plan import task_settings
from recoup.tasks.engines.engine import Broken

TRIED = 10  # learning episodes, in whole batches, after which a run without a return is given up

Tick = Callable[[int], None]  # episodes that were spent


class RunCurve(NamedTuple):
    """What one run was worth at the start and at each checkpoint; NaN where it has no number."""

    run: int
    batch: int
    spent: list[int]  # episodes of each point: whole batches
    search: list[float]  # J, expected return of the search distribution
    policy: list[float]  # m, of its mean policy
    seconds: float  # a run's share of the time
    failed: int  # learning episodes that failed
    failed_tests: int  # and of all tests; J and m leave them out


class Tested(NamedTuple):
    """J and m of R runs, and test episodes that failed: `[R]` each."""

    search: np.ndarray
    policy: np.ndarray
    failed: np.ndarray


Test = Callable[[Field, "Players"], Tested]


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
) -> list[RunCurve]:
    """The curves of `runs`; at a checkpoint a run is as its last whole batch before it left it."""
    began = time.perf_counter()
    with jax.enable_x64(True):
        field, tests = field_of(arena, seed, runs), _tests(arena, seed, runs)
        players = players_of(arena, entrant, seed, runs, max(checkpoints))
        moves = [0, *(at // players.batch for at in checkpoints)]
        try:
            tested, failed = _played(field, players, tests, moves, tick)
        except Hopeless as wrong:
            raise Broken(f"{arena.name} by {entrant.label}: {wrong}") from None
        finally:
            field.close()
            players.close()
    share = (time.perf_counter() - began) / len(runs)
    spent = [move * players.batch for move in moves]
    search = np.stack([tested[move].search for move in moves], 1)
    policy = np.stack([tested[move].policy for move in moves], 1)
    failed_tests = np.sum([one.failed for one in tested.values()], axis=0)
    columns = (search.tolist(), policy.tolist(), failed.tolist(), failed_tests.tolist())
    return [
        RunCurve(run, players.batch, spent, of_search, of_policy, share, lost, untested)
        for run, of_search, of_policy, lost, untested in zip(runs, *columns, strict=True)
    ]


class Hopeless(Exception):
    """No learning episode of a run has come to an end."""


def _played(
    field: Field, players: Players, test: Test, moves: Sequence[int], tick: Tick
) -> tuple[dict[int, Tested], np.ndarray]:
    """Tests at the start and after each of `moves`, and failed episodes `[R]`."""
    failed, last = np.zeros(len(players.mean()), int), max(moves)

    def move(number: int) -> None:
        theta = players.ask(number)
        returns = np.asarray(field.learn((number - 1) * players.batch, theta))
        failed[:] += _failed(returns)
        spent = number * players.batch
        if (failed == spent).any() and (spent >= TRIED or number == last):
            raise Hopeless(f"the first {spent} episodes of a run have all failed: {field.why}.")
        players.tell(number, theta, returns)
        tick(returns.size)

    return in_lock_step(last, moves, move, lambda _: test(field, players)), failed


def _tests(arena: Arena, seed: int, runs: Sequence[int]) -> Test:
    """`test(field, players)`, on the same episodes and noise for all methods."""
    noise = np.stack([noise_of(arena, seed, run) for run in runs])

    def test(field: Field, players: Players) -> Tested:
        theta, mean = players.draw(noise), np.asarray(players.mean())
        drawn = np.empty((len(runs), 0))
        if theta.shape[1]:
            drawn = np.asarray(field.test(theta, TESTS), float)
        repeated = np.repeat(mean[:, None], arena.policy_episodes, axis=1)
        deployed = np.asarray(field.test(repeated, POLICY_TESTS), float)
        return Tested(_mean(drawn), _mean(deployed), _failed(drawn) + _failed(deployed))

    return test


def _failed(returns: np.ndarray) -> np.ndarray:
    """How many episodes of each run `[R]` have no return."""
    return (~np.isfinite(returns)).sum(1)


def _mean(returns: np.ndarray) -> np.ndarray:
    """Mean returns `[R]`, of the episodes that did not fail."""
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
        make, name = made_by(row.home), f"{entrant.label} on {arena.name}"
        if not row.package:
            make = partial(Checked, name, make)
        keys = [int(generator(seed, run, METHOD).integers(2**31)) for run in runs]
        pairs = zip(means, keys, strict=True)
        return HostPlayers(name, [make(m, arena.std, key, entrant.settings) for m, key in pairs])
    if row is not None:
        settings = tuple(sorted(entrant.settings.items()))
        return TracedPlayers(_evolving(row.home, arena.dim, settings), means, arena.std, seed, runs)
    method = row_of(entrant, task_settings(arena.found, entrant.method))
    batch = batch_of(entrant, arena.dim, arena.found.batch)
    whole = max(episodes // batch, 1) * batch
    capacity = whole if default_batch(method, arena.dim) is None else None  # it knows its own
    return TracedPlayers(
        _ours(method, arena.dim, batch, capacity), means, arena.std, seed, runs, failures=True
    )


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
        key, known = _folded(self._keys, 2 * move + 1), True
        if self._worst is not None:
            returns = self._worst.filled(returns)
            known = np.isfinite(returns).all(1)
        state = self._method.tell(key, self._state, theta, jnp.asarray(returns))
        self._state = state if np.all(known) else _where(known, state, self._state)

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


def _where(known: Any, state: Any, before: Any) -> Any:
    """States of runs: the new ones where `known` `[R]`, the others as they were."""

    def chosen(new: Any, old: Any) -> Any:
        return jnp.where(known.reshape(-1, *[1] * (new.ndim - 1)), new, old)

    return jax.tree.map(chosen, state, before)


class HostPlayers:
    """R runs, each an object of its own."""

    def __init__(self, name: str, peers: Sequence[Any]) -> None:
        self._peers, self.batch = peers, peers[0].batch
        check_same_batch(name, [peer.batch for peer in peers])
        self._worst = Worst(len(peers))

    def ask(self, move: int) -> np.ndarray:
        """Parameters of the next batch."""
        return np.stack([peer.ask() for peer in self._peers])

    def tell(self, move: int, theta: Any, returns: Any) -> None:
        """Tells each its own; one without any return so far is asked again."""
        filled = self._worst.filled(returns)
        for peer, asked, came, told in zip(self._peers, theta, returns, filled, strict=True):
            if getattr(peer, "failures", False):
                peer.tell(asked, np.where(np.isfinite(came), came, np.nan))
            elif np.isfinite(told).all():
                peer.tell(asked, told)

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
    """The worst return of each run so far: what a failed episode counts as for other libraries.

    Before the first return of a run there is none.
    """

    def __init__(self, runs: int) -> None:
        self._worst = np.full(runs, np.inf)

    def filled(self, returns: Any) -> np.ndarray:
        """Returns `[R, N]`, every one of them a number, or NaN all through a run without any."""
        returns = np.array(returns, float)
        held = np.isfinite(returns)
        lowest = np.where(held, returns, np.inf).min(1)
        self._worst = np.minimum(self._worst, lowest)
        worst = np.where(np.isfinite(self._worst), self._worst, np.nan)
        return np.where(held, returns, worst[:, None])

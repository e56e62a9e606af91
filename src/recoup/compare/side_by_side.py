"""All methods in the one loop: R runs side by side, tested at checkpoints."""

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from recoup.compare.arenas import POLICY_TESTS, TESTS, Arena, box_task, keys_of, noise_of, start_of
from recoup.compare.checked import Checked
from recoup.compare.entrants import Entrant, batch_of, made_by, row_of
from recoup.compare.fields import Field, field_of
from recoup.compare.players import Boxed, HostPlayers, Players, StudyPlayer
from recoup.engine.methods import Method, own_parts, sized
from recoup.engine.plain import can_move
from recoup.runs.loop import in_lock_step
from recoup.runs.plan import task_settings
from recoup.tasks.bounded.bounded_suite import BoundedTask
from recoup.tasks.engines.engine import Broken
from recoup.tasks.own.host import HostTask

SPREAD = 0.3  # of the unit box, that a method of the user's starts with
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
    with nullcontext() if on_host(arena, entrant) else _in_double():
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


def _in_double() -> AbstractContextManager[Any]:
    import jax

    return jax.enable_x64(True)


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
        if field.why and (failed == spent).any() and (spent >= TRIED or number == last):
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


def on_host(arena: Arena, entrant: Entrant) -> bool:
    """Whether episodes and moves are both made in this process without a compiler."""
    if not isinstance(arena.problem, HostTask):
        return False
    if entrant.peer is not None:
        return not entrant.peer.traced
    return can_move(ours_on(arena, entrant)[0], 0, arena.dim)


def players_of(
    arena: Arena, entrant: Entrant, seed: int, runs: Sequence[int], episodes: int
) -> Players:
    """The runs of a method on a task, at their starts."""
    means = np.stack([start_of(arena, seed, run) for run in runs])
    name, keys = f"{entrant.label} on {arena.name}", keys_of(seed, runs)
    row, starts = entrant.peer, zip(means, keys, strict=True)
    if arena.bounded:
        tasks = [box_task(arena, seed, run) for run in runs]
        pairs = zip(tasks, keys, strict=True)
        return HostPlayers(name, [_in_box(arena, entrant, *pair) for pair in pairs])
    if row is not None and not row.traced:
        make = made_by(row.home)
        if not row.package:
            make = partial(Checked, name, make)
        return HostPlayers(name, [make(m, arena.std, key, entrant.settings) for m, key in starts])
    if on_host(arena, entrant):
        method, batch = ours_on(arena, entrant)
        how = {"method": method, "batch": batch, "dim": arena.dim, "std": arena.std}
        parts = own_parts(method)
        made = [StudyPlayer({**how, "mean": m, "seed": key}, parts) for m, key in starts]
        return HostPlayers(name, made)
    from recoup.compare.traced_players import traced_players  # by JAX

    return traced_players(arena, entrant, means, keys, episodes)


def _in_box(arena: Arena, entrant: Entrant, task: BoundedTask, key: int) -> Any:
    """One run of a method on a bounded task: ours by a study as users make it."""
    row = entrant.peer
    if row is None:
        how = {"method": entrant.method, "params": task.params, "seed": key, **entrant.settings}
        return StudyPlayer(how, own_parts(ours_on(arena, entrant)[0]))
    if row.boxed:
        return Boxed(task.box, made_by(row.boxed)(arena.dim, key, entrant.settings))
    make, middle, spread = made_by(row.home), np.full(arena.dim, 0.5), np.full(arena.dim, SPREAD)
    name = f"{entrant.label} on {arena.name}"
    return Boxed(task.box, Checked(name, make, middle, spread, key, entrant.settings))


def ours_on(arena: Arena, entrant: Entrant) -> tuple[Method, int]:
    """A method of ours with its settings on a task, and its batch."""
    row = sized(row_of(entrant, task_settings(arena.found, entrant.method)), arena.dim)
    return row, batch_of(entrant, arena.dim, arena.found.batch)

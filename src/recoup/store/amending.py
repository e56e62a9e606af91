"""A result that is put right: the only rows that are ever replaced, with what depends on them.

Everything else in a file is written once. What a row was before stays in an event, with the
trajectory that it had.
"""

import sqlite3
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from recoup.store.dropped import AMENDED, is_drop, together
from recoup.store.file import StudyFile
from recoup.store.place import MEMORY
from recoup.store.places import fills
from recoup.store.queries import Queries
from recoup.store.records import WRONG, as_kept, of_also, of_move, of_result, of_trajectory
from recoup.store.rows import (
    FAILED,
    MOVED,
    OK,
    SAMPLED,
    Event,
    Memory,
    Move,
    Result,
    Told,
)
from recoup.store.store import OVER, Store


class Amendment(NamedTuple):
    """What an event says that was put right."""

    trial: int
    was: Told
    now: Told
    dropped: bool
    moves: dict[int, int]  # that were made again, with the proposals that they had made before
    at: float


class Remade(NamedTuple):
    """A move that was made again."""

    number: int
    counted: int
    numbers: Any  # [K] one block
    memory: Memory
    info: dict[str, Any]


class KeptDensities(NamedTuple):
    """The densities that moves leave for the next."""

    own: dict[int, np.ndarray]  # by move, of its new results
    mixture: np.ndarray  # of all results, after the last


def copy_of(store: Store) -> Store:
    """A copy of a file in memory, as it is now."""
    copy = sqlite3.connect(MEMORY, isolation_level=None)
    with store._file.turn.taken():
        store._file.connection.backup(copy)
    return Store(StudyFile(Path(MEMORY), copy, counting=False))


def last_amended(store: Store) -> int:
    """The number of the last event that put a result right; 0 where there is none.

    Where it is another than before, results and moves may be others: what a process remembers of
    them is of before.
    """
    query = "SELECT COALESCE(MAX(id), 0) FROM events WHERE kind = ?"
    return int(store._file.rows(query, (AMENDED,))[0][0])


def told_first(store: Queries) -> dict[int, float]:
    """When results that were put right were told first, by trial: there they stand in order."""
    events = reversed(store.events(AMENDED))
    return {event.content["trial"]: event.content["told_at"] for event in events}


def place_of(store: Store, number: int) -> int | None:
    """The place of a result among those that moves are made of: of its pair, if it is of one."""
    rows = store.results(together(store, number)).values()
    return max((row.counted for row in rows if row.counted is not None), default=None)


def amendments(events: Iterable[Event]) -> list[Amendment]:
    """The amendments that events tell of, in order; those that make no sense are left out."""
    found = []
    for event in sorted(events, key=lambda event: event.id):
        if event.kind == AMENDED:
            with suppress(*WRONG):
                content = event.content
                was, now = (as_kept(told_in(content, key)) for key in ("was", "now"))
                was = was._replace(trajectory=_kept(content.get("trajectory")))
                moves = {int(number): int(old) for number, old in content["moves"].items()}
                drop = is_drop(content)
                found.append(Amendment(int(content["trial"]), was, now, drop, moves, event.at))
    return found


def told_in(content: dict[str, Any], which: str) -> Told:
    """What a result `was`, or is `now`, as the event of an amendment holds it."""
    return Told(*content[which][:5])._replace(also=content.get(f"{which}_also"))


def _kept(trajectory: Any) -> np.ndarray | None:
    """The trajectory that an amendment took away, as its event keeps it."""
    return None if trajectory is None else np.array(trajectory, float)


def replace_result(
    store: Store, number: int, told: Told, *, dropped: bool = False, valued: bool = False
) -> None:
    """Writes another result in place of one that is there; one that is `dropped` has no place.

    Of a mirrored pair both leave together: the other is kept, and counts for nothing.
    """
    counters, told = store._counters(), as_kept(told)
    pair = together(store, number)
    before = store.results(pair)
    fresh = _fresh(store, before, valued)
    for row in before.values():
        amended = row if row.id != number else row._replace(told=told, told_at=time.time())
        place = None if dropped else row.counted
        store._file.insert("told", [of_result(amended._replace(counted=place))], OVER)
    if told.trajectory is None:
        store._file.delete("trajectories", "WHERE id = ?", (number,))
    else:
        store._file.insert("trajectories", [of_trajectory(number, told.trajectory)], OVER)
    if told.also:
        store._file.insert("also", [of_also(number, told.also)], OVER)
    elif before[number].told.also:
        store._file.delete("also", "WHERE id = ?", (number,))
    old = before[number].told.status
    store._now = counters._replace(
        ok=counters.ok + (told.status == OK) - (old == OK),
        failed=counters.failed + (told.status == FAILED) - (old == FAILED),
        fresh=counters.fresh + _fresh(store, store.results(pair), valued) - fresh,
    )


def replace_moves(store: Store, family: str, moves: Sequence[Remade], kept: KeptDensities) -> None:
    """Writes moves that were made again, each with a proposal of its own, and their densities.

    The proposals of before stay: they drew trials. What was tested after a move was another
    distribution.
    """
    store._counters()
    for remade in moves:
        proposal = store.add_proposals(MOVED, family, [remade.numbers])
        row = Move(remade.number, proposal, remade.counted, remade.memory, remade.info, time.time())
        store._file.insert("moves", [of_move(row)], OVER)
        store._file.delete("tests", "WHERE id = ?", (remade.number,))
    if not moves:
        return
    for table in ("own", "mixture"):
        store._file.delete(table)
    for number, own in kept.own.items():
        store.add_densities(number, own, kept.mixture[:0])
    store.add_densities(moves[-1].number, kept.mixture[:0], kept.mixture)


def _fresh(store: Store, rows: dict[int, Result], valued: bool) -> int:
    """How many of the results of one draw wait for the next move."""
    mark, places = store.last_move().counted, [row.counted or 0 for row in rows.values()]
    own = all(trial.kind in SAMPLED for trial in store.asked(rows))
    if not own or max(places) <= mark:
        return 0
    return sum(fills(row.told.status, valued) for row in rows.values())

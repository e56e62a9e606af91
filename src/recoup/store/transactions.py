"""What is written to a study file, inside a transaction: trials, results, moves."""

import json
import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from recoup.checks import InputError
from recoup.store.file import count, counters_of, insert, packed
from recoup.store.rows import DRAWN, FAILED, FOREIGN, MIRROR, OK, Told


class Asked(NamedTuple):
    """A trial as it is written: latent theta, and the proposal that drew it if one did."""

    id: int
    kind: str
    proposal: int | None
    theta: bytes
    seed: int


def put_trials(connection: sqlite3.Connection, trials: Sequence[Asked]) -> None:
    """New trials, without results."""
    now = time.time()
    insert(connection, "asked", [(*trial, now) for trial in trials])
    counters = counters_of(connection)
    last = max(counters.last, *(trial.id for trial in trials))
    count(connection, counters._replace(trials=counters.trials + len(trials), last=last))


def put_result(connection: sqlite3.Connection, path: Path, number: int, told: Told) -> None:
    """What came of a trial; the same again changes nothing, something else is refused."""
    if not 0 < number < 2**63:
        raise InputError(f"there is no trial {number} in {path}.")
    query = 'SELECT status, "return", stderr, episodes, note FROM told WHERE id = ?'
    before = connection.execute(query, (number,)).fetchone()
    if before is not None:
        status, value, stderr, episodes, note = before
        trajectory = _trajectory(connection, number)
        _check_again(number, Told(status, value, stderr, episodes, note, trajectory), told)
        return
    trial = connection.execute("SELECT kind FROM asked WHERE id = ?", (number,)).fetchone()
    if trial is None:
        raise InputError(f"there is no trial {number} in {path}.")
    counters = counters_of(connection)
    place, fresh = _place(connection, counters.counted, number, trial[0], told.status)
    insert(
        connection,
        "told",
        [(number, told.status, place, *told[1:5], time.time())],
    )
    if told.trajectory is not None:
        insert(connection, "trajectories", [(number, *told.trajectory)])
    count(
        connection,
        counters._replace(
            ok=counters.ok + (told.status == OK),
            failed=counters.failed + (told.status == FAILED),
            counted=counters.counted if place is None else place,
            fresh=counters.fresh + fresh,
        ),
    )


def put_move(
    connection: sqlite3.Connection,
    number: int,
    counted: int,
    mean: Any,
    std: Any,
    memory: list[Any],
    info: dict[str, Any],
) -> None:
    """A move, and the proposal that it made."""
    (last,) = connection.execute("SELECT MAX(id) FROM proposals").fetchone()
    insert(connection, "proposals", [(last + 1, "move", packed(mean), packed(std))])
    insert(
        connection,
        "moves",
        [(number, last + 1, counted, json.dumps(memory), json.dumps(info), time.time())],
    )


def put_densities(
    connection: sqlite3.Connection, move: int, new_own: np.ndarray, mixture: np.ndarray
) -> None:
    """The densities that the next move starts from."""
    if new_own.size:
        insert(connection, "own", [(move, packed(new_own))])
    if mixture.size:
        connection.execute("DELETE FROM mixture")
        insert(connection, "mixture", [(move, packed(mixture))])


def _place(
    connection: sqlite3.Connection, last: int, number: int, kind: str, status: str
) -> tuple[int | None, int]:
    """A result's place among those that moves are made of, and how many it makes ready for one.

    A mirrored pair is ready when both were told: the place is written with the second, and the
    first has the place before it.
    """
    mirrored = kind == MIRROR or _has_mirror(connection, number, kind)
    if not mirrored:
        counts = status == OK and kind in (DRAWN, FOREIGN)
        return (last + 1 if counts else None), int(counts and kind == DRAWN)
    partner = connection.execute(
        "SELECT status FROM told WHERE id = ?", (number - 1 if kind == MIRROR else number + 1,)
    ).fetchone()
    if partner is None or FAILED == status == partner[0]:
        return None, 0
    return last + 2, (status == OK) + (partner[0] == OK)


def _has_mirror(connection: sqlite3.Connection, number: int, kind: str) -> bool:
    if kind != DRAWN:
        return False
    row = connection.execute("SELECT kind FROM asked WHERE id = ?", (number + 1,)).fetchone()
    return row is not None and row[0] == MIRROR


def _trajectory(connection: sqlite3.Connection, number: int) -> tuple[int, bytes] | None:
    query = "SELECT steps, content FROM trajectories WHERE id = ?"
    return connection.execute(query, (number,)).fetchone()


def _check_again(number: int, before: Told, told: Told) -> None:
    """Accepts what is told again, refuses what differs from it."""
    if before == told:
        return
    raise InputError(
        f"trial {number} was told {_spoken(before)} before, and now {_spoken(told, before)}: it "
        "stays as it was."
    )


def _spoken(told: Told, other: Told | None = None) -> str:
    if told.status == FAILED:
        return f"failed ({told.note})"
    if other is None or other.value != told.value:
        return f"{told.value}"
    return "another trajectory" if told.trajectory else f"{told.value} of other episodes"

"""The state of a study file: its version, its dates, what happened last."""

import hashlib
from typing import NamedTuple

from recoup.store.records import move_of, result_of
from recoup.store.rows import CREATED, FAILED, Move, Result
from recoup.store.schema import TABLES
from recoup.store.store import Store

DERIVED = ("own", "mixture")  # follow from the others
LARGE = ("asked", "trajectories", "proposals", "moves")  # grow by rows alone, which may be long;
# where one of theirs is replaced, an event says so


class Dates(NamedTuple):
    """When something happened to a study, in seconds since 1970; None where it never has."""

    created: float | None
    first_asked: float | None
    last_asked: float | None
    last_told: float | None
    last_moved: float | None


def version_of(store: Store) -> str:
    """A short text that is another as soon as anything in the file is; inside `reading()`.

    The same in every process that sees the same state. Counters hold how many trials there are, so
    that of tables that only grow the last row is enough.
    """
    known = []
    for table in filter(store._file.has, TABLES):
        if table in DERIVED:
            continue
        query = f"SELECT COUNT(*), MAX(id), SUM(crc) FROM {table}"
        if table in LARGE:
            query = f"SELECT id, crc FROM {table} ORDER BY id DESC LIMIT 1"
        rows = store._file.rows(query)
        if table in LARGE or rows[0][0]:
            known += [(table, *row) for row in rows]
    return hashlib.sha256(repr(known).encode()).hexdigest()[:16]


def dates_of(store: Store) -> Dates:
    """When a study was made, asked, told and moved."""
    query = (
        "SELECT (SELECT MIN(asked_at) FROM asked), (SELECT MAX(asked_at) FROM asked), "
        "(SELECT MAX(told_at) FROM told)"
    )
    first, again, told = (x if isinstance(x, float) else None for x in store._file.rows(query)[0])
    created = [event.at for event in store.events(CREATED)]
    last = store.last_move()
    made = last.made if last.id else None
    return Dates(min(created, default=None), first, again, told, made)


def last_moves(store: Store, n: int) -> list[Move]:
    """The last `n` moves, in order; the start is none."""
    where = "WHERE id > 0 ORDER BY id DESC LIMIT ?"
    return store._file.read("moves", move_of, where, (int(n),))[::-1]


def failures(store: Store) -> list[Result]:
    """Results that failed, in the order of telling."""
    where = "WHERE status = ? ORDER BY told_at, id"
    return store._file.read("told", result_of, where, (FAILED,))


def enqueued(store: Store) -> int:
    """How many thetas wait in line."""
    return int(store._file.rows("SELECT COUNT(*) FROM queue")[0][0])

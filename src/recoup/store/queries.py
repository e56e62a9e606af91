"""What can be read from a study file: the reading half of `Store`.

Whatever numbers are used later are read with their checksums; a row that is not as it was written
is a sentence, never a wrong number. Arrays are the caller's own.
"""

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from recoup.store import codec
from recoup.store.errors import Damaged, damage
from recoup.store.file import StudyFile
from recoup.store.place import MEMORY
from recoup.store.rows import (
    CANCELLED,
    CONTEXT,
    DRAWN,
    FAILED,
    FOREIGN,
    OK,
    Asked,
    Counters,
    Event,
    Fresh,
    Lease,
    Move,
    Proposal,
    Queued,
    Request,
    Result,
    Test,
)

ROWS_READ = 1000  # rows read at once
HIGHEST = 2**63 - 1  # number that a row can have
LARGEST = sys.float_info.max  # return that is finite
WAITING = "id NOT IN (SELECT id FROM told)"
Row = TypeVar("Row")


class EventsKept(NamedTuple):
    """Events that were read, by kind, and the id and checksum of the last of all then."""

    last: list[tuple[Any, ...]] | None
    of_kind: dict[str | None, list[Event]]


class Queries:
    """The reads of a `Store`. Inside `reading()` all of them see the same state of the file.

    Longer than others: a read is a method of a few lines, and there are many.
    """

    def __init__(self, file: StudyFile) -> None:
        self._file = file
        self._events_kept = EventsKept(None, {})

    @property
    def where(self) -> str:
        """Where the study is kept, as sentences name it: its path, or `:memory:`."""
        return str(self._file.path)

    @property
    def path(self) -> Path | None:
        """The file; None of a study that is kept in memory."""
        return None if self.where == MEMORY else self._file.path

    @property
    def read_only(self) -> bool:
        """Whether the file cannot be written to."""
        return self._file.read_only

    def reading(self) -> AbstractContextManager[None]:
        """All reads inside see the same state of the file, whatever others write meanwhile."""
        return self._file.reading()

    # -- the study, its proposals and its moves --

    def settings(self) -> dict[str, Any]:
        """The study's settings, as they were when it was made."""
        return dict(self._file.read("settings", codec.setting_of, "ORDER BY id"))

    def counters(self) -> Counters:
        """How many trials and results there are."""
        return self._file.one("counters", codec.counters_of)

    def newest(self) -> Proposal:
        """The proposal that the last move made."""
        last = "WHERE id = (SELECT proposal FROM moves ORDER BY id DESC LIMIT 1)"
        return self._file.one("proposals", codec.proposal_of, last)

    def proposal(self, number: int) -> Proposal:
        """The proposal of a number; a sentence about damage where it is missing."""
        return self._file.one("proposals", codec.proposal_of, "WHERE id = ?", (int(number),))

    def proposals(self, ids: Iterable[int] | None = None) -> dict[int, Proposal]:
        """Proposals by number, all unless said; a sentence about damage where one is missing."""
        wanted = None if ids is None else set(ids)
        found = {row.id: row for row in self._by_id("proposals", codec.proposal_of, wanted)}
        if wanted is not None and len(found) < len(wanted):
            raise Damaged(damage(self.where, "rows of proposals are not there"))
        return found

    def moves(self) -> list[Move]:
        """All moves in order; number 0 is the start."""
        return self._file.read("moves", codec.move_of, "ORDER BY id")

    def last_moves(self, n: int) -> list[Move]:
        """The last `n` moves, in order; the start is none."""
        where = "WHERE id > 0 ORDER BY id DESC LIMIT ?"
        return self._file.read("moves", codec.move_of, where, (int(n),))[::-1]

    def last_move(self, upto: int = HIGHEST) -> Move:
        """The last move of a number up to `upto`; others may be lost in a recovered study."""
        where = "WHERE id <= ? ORDER BY id DESC LIMIT 1"
        return self._file.one("moves", codec.move_of, where, (int(upto),))

    def last_notes(self) -> Move:
        """The last move without its memory."""
        make = partial(codec.move_of, memory_too=False)
        return self._file.one("moves", make, "ORDER BY id DESC LIMIT 1")

    # -- trials --

    def asked(
        self, ids: Iterable[int] | None = None, kinds: Sequence[str] | None = None
    ) -> list[Asked]:
        """Trials by number, of `ids` and of `kinds` if said; ids without a trial are left out."""
        return self._by_id("asked", codec.asked_of, ids, *_of_kinds(kinds))

    def last_asked(self, n: int, kinds: Sequence[str]) -> list[Asked]:
        """The last `n` trials of these kinds, the newest first."""
        condition, values = _of_kinds(kinds)
        where = f"WHERE {condition} ORDER BY id DESC LIMIT ?"
        return self._file.read("asked", codec.asked_of, where, (*values, int(n)))

    def first_drawn(self, proposal: int) -> Asked | None:
        """The first trial that a proposal drew; None where there is none."""
        where = "WHERE proposal = ? AND kind = ? ORDER BY id LIMIT 1"
        return next(iter(self._file.read("asked", codec.asked_of, where, (proposal, DRAWN))), None)

    def pending(self, kinds: Sequence[str] | None = None) -> list[Asked]:
        """Trials that wait for a result, by number; none that was cancelled."""
        condition, values = _of_kinds(kinds)
        where = f"WHERE {WAITING} AND {self._not_cancelled()} AND {condition} ORDER BY id"
        return self._file.read("asked", codec.asked_of, where, values)

    def cancelled(self) -> dict[int, Event]:
        """The trials that will not be rolled out, by number, and the event of each.

        One that was told all the same is none of them.
        """
        found = {int(event.content["trial"]): event for event in self.events(CANCELLED)}
        told = self.results(found) if found else {}
        return {number: event for number, event in found.items() if number not in told}

    def count(self, kinds: Sequence[str] | None = None, told: bool | None = None) -> int:
        """How many trials there are, of `kinds` if said.

        `told` says which: those with a result, failed or not, or those that wait for one.
        """
        condition, values = _of_kinds(kinds)
        which = {None: "1", True: f"NOT {WAITING}", False: f"{WAITING} AND {self._not_cancelled()}"}
        query = f"SELECT COUNT(*) FROM asked WHERE {condition} AND {which[told]}"
        return int(self._file.rows(query, values)[0][0])

    def trials(self, after: int = -1) -> Iterator[tuple[Asked, Result | None]]:
        """All trials by number, each with its result if it has one; read a thousand at a time."""
        last = after
        while some := self._file.read(
            "asked", codec.asked_of, f"WHERE id > ? ORDER BY id LIMIT {ROWS_READ}", (last,)
        ):
            last = some[-1].id
            results = self.results(trial.id for trial in some)
            yield from ((trial, results.get(trial.id)) for trial in some)

    # -- results --

    def results(self, ids: Iterable[int] | None = None) -> dict[int, Result]:
        """Results by trial, without trajectories; trials that wait have none."""
        if ids is not None:
            ids = list(ids)  # read twice
        found = {row.id: row for row in self._by_id("told", codec.result_of, ids)}
        for number, also in self._by_id("also", codec.also_of, ids):
            if number in found:
                found[number] = codec.with_also(found[number], also)
        return found

    def numbers(self) -> list[str]:
        """The names of all numbers that were told beside returns, in order."""
        rows = self._file.read("also", codec.also_of)
        return sorted({name for _, also in rows for name in also})

    def first_context(self, but: int | None = None) -> dict[str, float]:
        """The numbers beside the first return that has any of those known before; else none.

        `but` one trial.
        """
        known = f"""WHERE content LIKE '%"{CONTEXT}%' AND id IS NOT ? ORDER BY id LIMIT 1"""
        found = self._file.read("also", codec.also_of, known, (but,))
        return dict(*(also for _, also in found))

    def trajectories(self, ids: Iterable[int] | None = None) -> dict[int, np.ndarray]:
        """Trajectories `[t, F + A + 1]` by trial, of those that have one."""
        return dict(self._by_id("trajectories", codec.trajectory_of, ids))

    def statuses(self) -> dict[str, int]:
        """How many rows of results there are of each status, to compare with the counters."""
        return dict(self._file.rows("SELECT status, COUNT(*) FROM told GROUP BY status"))

    def failures(self) -> list[Result]:
        """Results that failed, in the order of telling, without what was told beside."""
        where = "WHERE status = ? ORDER BY told_at, id"
        return self._file.read("told", codec.result_of, where, (FAILED,))

    def returns(self, without: Collection[int] = ()) -> dict[int, float]:
        """All finite returns by trial, in the order of trials; none of those of `without`."""
        finite = f'"return" BETWEEN -{LARGEST} AND {LARGEST}'
        rows = self._file.rows(
            f'SELECT id, "return" FROM told WHERE status = ? AND {finite} ORDER BY id', (OK,)
        )
        return {number: value for number, value in rows if number not in without}

    def best(self, without: Collection[int], lowest: bool) -> tuple[Asked, float] | None:
        """The trial with the highest (or `lowest`) return, none of `without`, and that; or None."""
        order = "ASC" if lowest else "DESC"
        query = f'SELECT id FROM told WHERE status = ? ORDER BY "return" {order}, id LIMIT ?'
        rows = self._file.rows(query, (OK, len(without) + 1))
        for (number,) in (row for row in rows if row[0] not in without):
            trials, result = self.asked([number]), self.results([number]).get(number)
            if not trials or result is None or result.told.value is None:
                raise Damaged(damage(self.where, "rows of trials are not there"))
            return trials[0], result.told.value
        return None

    def samples(self) -> list[tuple[Asked, float | None]]:
        """The trials that a proposal drew and that were told, with their return, by number.

        Without one where they failed.
        """
        rows = self._file.rows(
            "SELECT told.id FROM told JOIN asked ON asked.id = told.id WHERE proposal IS NOT NULL"
        )
        ids = [number for (number,) in rows]
        results = self.results(ids)
        return [(trial, results[trial.id].told.value) for trial in self.asked(ids)]

    def counted(self, after: int, upto: int, foreign: bool = True) -> list[tuple[int, int]]:
        """Trial and place of the results in the places (after, upto], in the order of places.

        Without `foreign`, those from elsewhere are left out. Of a mirrored pair only the one that
        was told last has a place.
        """
        own = f"AND id IN (SELECT id FROM asked WHERE kind != '{FOREIGN}')"
        return self._file.rows(
            "SELECT id, counted FROM told WHERE counted BETWEEN ? AND ? "
            f"{'' if foreign else own} ORDER BY counted",
            (int(after) + 1, int(upto)),
        )

    def fresh(self, after: int) -> list[Fresh]:
        """The results after the place `after`, in the order of places."""
        rows = self._file.rows(
            "SELECT told.counted, told.id, status, kind, proposal FROM told "
            "JOIN asked ON asked.id = told.id WHERE counted > ? ORDER BY counted",
            (int(after),),
        )
        return [Fresh(*row) for row in rows]

    # -- what else is kept --

    def densities(self, move: int) -> tuple[np.ndarray, np.ndarray]:
        """Densities of results under what drew them, and under the mixture of all proposals.

        As the moves up to `move` have left them.
        """
        where, values = "WHERE id <= ? ORDER BY id", (int(move),)
        blocks = (self._file.read(x, codec.densities_of, where, values) for x in ("own", "mixture"))
        own, mixture = (np.concatenate([np.zeros(0), *rows]) for rows in blocks)
        return own, mixture

    def queue(self, n: int) -> list[Queued]:
        """The first thetas that wait in line, at most `n`."""
        return self._file.read("queue", codec.queued_of, "ORDER BY id LIMIT ?", (int(n),))

    def enqueued(self) -> int:
        """How many thetas wait in line."""
        return int(self._file.rows("SELECT COUNT(*) FROM queue")[0][0])

    def events(self, kind: str | None = None) -> list[Event]:
        """What happened to the study, in order; of one kind, if said.

        Events are only added: what was read is kept until there is another.
        """
        last = self._file.rows("SELECT id, crc FROM events ORDER BY id DESC LIMIT 1")
        if self._events_kept.last != last:
            self._events_kept = EventsKept(last, {})
        kept = self._events_kept.of_kind
        if kind not in kept:
            where, values = ("", ()) if kind is None else ("WHERE kind = ?", (kind,))
            kept[kind] = self._file.read("events", codec.event_of, f"{where} ORDER BY id", values)
        return list(kept[kind])

    def leases(self, ids: Iterable[int] | None = None) -> dict[int, Lease]:
        """Leases by trial, of `ids` if said; a trial that was asked for without one is left out."""
        return {row.id: row for row in self._by_id("leases", codec.lease_of, ids)}

    def request(self, key: str) -> Request | None:
        """The request that came with a key, if one did."""
        where, values = "WHERE id = ?", (codec.number_of(key),)
        return next(iter(self._file.read("requests", codec.request_of, where, values)), None)

    def workers(self, ids: Iterable[int] | None = None) -> dict[int, str]:
        """To whom trials were handed out last, of `ids` if said; those that nobody named, not."""
        return dict(self._by_id("workers", codec.worker_of, ids))

    def overdue(self, now: float, n: int = -1) -> list[Asked]:
        """Trials without a result whose lease has run out, by number; at most `n` if said."""
        where = f"WHERE until <= ? AND {WAITING} ORDER BY id LIMIT ?"
        rows = self._file.read("leases", codec.lease_of, where, (float(now), int(n)))
        return self.asked(row.id for row in rows)

    def test(self, move: int) -> Test | None:
        """What fresh episodes said after a move, if it was tested."""
        found = self._file.read("tests", codec.test_of, "WHERE id = ?", (int(move),))
        return found[0] if found else None

    def tests(self) -> list[Test]:
        """What fresh episodes said, by move."""
        return self._file.read("tests", codec.test_of, "ORDER BY id")

    # -- what a server needs --

    def ids(self, after: int, n: int, status: str | None = None) -> list[int]:
        """The numbers of the first `n` trials after one, of a status if said.

        Those that were cancelled are pending too.
        """
        which, values = ("", ()) if status is None else ("AND status = ?", (status,))
        query = f"SELECT id FROM trials WHERE id > ? {which} ORDER BY id LIMIT ?"
        return [number for (number,) in self._file.rows(query, (int(after), *values, int(n)))]

    def changes(self) -> tuple[int, int]:
        """Numbers that are others once another connection has written to the file."""
        ((version,),) = self._file.rows("PRAGMA data_version")  # of a connection, maybe a new one
        return self._file.connected, int(version)

    def returns_near(self, number: int, n: int) -> dict[int, float]:
        """The finite returns of at most `n` trials on either side of one, and its own, by trial."""
        before = (
            'SELECT id, "return" FROM told WHERE status = ? AND id <= ? ORDER BY id DESC LIMIT ?'
        )
        after = 'SELECT id, "return" FROM told WHERE status = ? AND id > ? ORDER BY id LIMIT ?'
        rows = self._file.rows(before, (OK, int(number), int(n) + 1))[::-1]
        return dict(rows + self._file.rows(after, (OK, int(number), int(n))))

    def last_event(self) -> int:
        """The number of the last event."""
        return self._file.last_id("events")

    # -- small parts --

    def _by_id(
        self,
        table: str,
        make: Callable[[tuple[Any, ...]], Row],
        ids: Iterable[int] | None,
        condition: str = "1",
        values: Sequence[Any] = (),
    ) -> list[Row]:
        """Rows of a table by id, all of them or those of `ids` that are there."""
        if ids is None:
            return self._file.read(table, make, f"WHERE {condition} ORDER BY id", values)
        wanted, found = sorted({int(number) for number in ids}), []
        for first in range(0, len(wanted), ROWS_READ):
            some = ",".join(map(str, wanted[first : first + ROWS_READ]))
            where = f"WHERE id IN ({some}) AND {condition} ORDER BY id"
            found += self._file.read(table, make, where, values)
        return found

    def _not_cancelled(self) -> str:
        """A condition on the number of a trial."""
        return f"id NOT IN ({','.join(map(str, self.cancelled()))})"


def _of_kinds(kinds: Sequence[str] | None) -> tuple[str, Sequence[str]]:
    """A condition on the kind of a trial, and its values."""
    return ("1", ()) if kinds is None else (f"kind IN ({','.join('?' * len(kinds))})", tuple(kinds))

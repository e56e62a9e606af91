"""`Store`: a study file as named rows. Nothing outside this package knows SQL.

    with store.writing():
        store.add_trials([Asked(1, DRAWN, 0, theta, seed)])

Whatever is written inside one `writing()` is there together, or not at all.
"""

import json
import sqlite3
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from recoup.store import codec
from recoup.store.file import StudyFile
from recoup.store.place import MEMORY
from recoup.store.places import fills
from recoup.store.rows import (
    CREATED,
    FAILED,
    OK,
    SAMPLED,
    START,
    Contents,
    Counters,
    KeptDensities,
    Lease,
    Made,
    Memory,
    Move,
    Proposal,
    Result,
    Told,
)
from recoup.store.writes import OVER, Writes


class Store(Writes):
    """A study file, open: what a study needs of it stands in `Storage`.

    Its reads are those of `Queries` and `States`. Rows are written once (`Writes`); here are those
    that are replaced: leases, results that are put right, and the moves that were made of them.
    """

    @classmethod
    def create(
        cls,
        path: Path,
        settings: dict[str, Any],
        start: Proposal,
        memory: Memory = None,
        then: Callable[["Store"], None] | None = None,
    ) -> "Store":
        """A new file with the settings and the first proposal in it; it is there whole, or not.

        `memory` is the update rule's at the start; `then` writes what else is to be there from the
        beginning, inside the same transaction.
        """
        return cls(StudyFile.create(path, lambda f: cls(f)._begin(settings, start, memory, then)))

    @classmethod
    def in_memory(cls, settings: dict[str, Any], start: Proposal) -> "Store":
        """The same without a file; it ends with the process."""
        store = cls(StudyFile.in_memory())
        store._begin(settings, start, None, None)
        return store

    @classmethod
    def open(cls, path: Path, read_only: bool = False) -> "Store":
        """The store of an existing file, once it is known to be one that this program can read."""
        return cls(StudyFile.open(path, read_only))

    def close(self) -> None:
        """Closes the file; the last process to do so leaves one file, without a log."""
        self._file.close()

    def copy_to(self, path: Path) -> None:
        """Writes all of it to a new file, whoever writes to it meanwhile."""
        self._file.copy_to(path)

    def copy(self) -> "Store":
        """A copy of the file in memory, as it is now."""
        copy = sqlite3.connect(MEMORY, isolation_level=None)
        with self._file.turn.taken():
            self._file.connection.backup(copy)
        return Store(StudyFile(Path(MEMORY), copy, counting=False))

    # -- leases --

    def lend(self, ids: Iterable[int], until: float | None) -> None:
        """Writes that trials are lent `until` then; those that were lent are handed out once more.

        Without `until`, for the last time; trials that had no lease get none.
        """
        self._counters()
        ids = list(ids)
        before = self.leases(ids)
        rows = [row._replace(until=until, times=row.times + 1) for row in before.values()]
        if until is not None:
            rows += [Lease(number, until) for number in ids if number not in before]
        if rows:
            self._file.insert("leases", map(codec.of_lease, rows), OVER)
        for number in self.workers(before):  # who had it has it no more
            self._file.delete("workers", "WHERE id = ?", (number,))

    def renew(self, number: int, until: float) -> None:
        """Writes that a trial is lent `until` then by whoever has it: it is not handed out anew."""
        self._counters()
        row = self.leases([number]).get(number, Lease(number, until))
        self._file.insert("leases", [codec.of_lease(row._replace(until=until))], OVER)

    def end_leases(self, ids: Iterable[int]) -> None:
        """Writes that trials are handed out no more; of those handed out again two may be told."""
        self._counters()
        for row in self.leases(ids).values():
            if row.times > 1:
                self._file.insert("leases", [codec.of_lease(row._replace(until=None))], OVER)
            else:
                self._file.delete("leases", "WHERE id = ?", (row.id,))

    # -- what is put right --

    def replace_result(
        self, number: int, told: Told, *, dropped: bool = False, valued: bool = False
    ) -> None:
        """Writes another result in place of one that is there; one that is `dropped` has no place.

        Of a mirrored pair both leave together: the other is kept, and counts for nothing. What it
        was before stays in an event, which is the caller's to write.
        """
        counters, told = self._counters(), codec.as_kept(told)
        pair = self.together(number)
        before = self.results(pair)
        fresh = self._fresh(before, valued)
        for row in before.values():
            amended = row if row.id != number else row._replace(told=told, told_at=time.time())
            place = None if dropped else row.counted
            self._file.insert("told", [codec.of_result(amended._replace(counted=place))], OVER)
        self._file.delete("trajectories", "WHERE id = ?", (number,))
        if before[number].told.also:
            self._file.delete("also", "WHERE id = ?", (number,))
        self._add_beside(number, told)
        old = before[number].told.status
        self._now = counters._replace(
            ok=counters.ok + (told.status == OK) - (old == OK),
            failed=counters.failed + (told.status == FAILED) - (old == FAILED),
            fresh=counters.fresh + self._fresh(self.results(pair), valued) - fresh,
        )

    def replace_moves(self, family: str, moves: Sequence[Made], kept: KeptDensities) -> None:
        """Writes moves that were made again, each with a proposal of its own, and their densities.

        The proposals of before stay: they drew trials. What was tested after a move was another
        distribution.
        """
        self._counters()
        for remade in moves:
            self.add_move(family, remade, verb=OVER)
            self._file.delete("tests", "WHERE id = ?", (remade.number,))
        if not moves:
            return
        for table in ("own", "mixture"):
            self._file.delete(table)
        for number, own in kept.own.items():
            self.add_densities(number, own, kept.mixture[:0])
        self.add_densities(moves[-1].number, kept.mixture[:0], kept.mixture)

    def restore(self, rows: Contents, counters: Counters) -> None:
        """Writes rows of another file as they were, in place of those of the same ids here.

        The settings stay those that the store was made with; `counters` are those that fit.
        """
        self._counters()
        for table, content in codec.records_of(rows).items():
            self._file.insert(table, content, OVER)
        self._now = counters

    # -- small parts --

    def _begin(
        self,
        settings: dict[str, Any],
        start: Proposal,
        memory: Memory,
        then: Callable[["Store"], None] | None,
    ) -> None:
        """Writes what every new file begins with."""
        with self.writing():
            rows = [(i, key, json.dumps(value)) for i, (key, value) in enumerate(settings.items())]
            self._file.insert("settings", rows)
            first = codec.of_proposal(start._replace(id=0, origin=START))
            self._file.insert("proposals", [first])
            self._file.insert("moves", [codec.of_move(Move(0, 0, 0, memory, {}, time.time()))])
            self.note(CREATED, settings)  # on another page, in case theirs is lost
            if then is not None:
                then(self)

    def _fresh(self, rows: dict[int, Result], valued: bool) -> int:
        """How many of the results of one draw wait for the next move."""
        mark, places = self.last_move().counted, [row.counted or 0 for row in rows.values()]
        own = all(trial.kind in SAMPLED for trial in self.asked(rows))
        if not own or max(places) <= mark:
            return 0
        return sum(fills(row.told.status, valued) for row in rows.values())

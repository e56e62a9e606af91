"""`Store`: a study file as named rows. Nothing outside this package knows SQL.

    with store.writing():
        store.add_trials([Asked(1, DRAWN, 0, theta, seed)])

Whatever is written inside one `writing()` is there together, or not at all.
"""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from recoup.checks import InputError
from recoup.store.dropped import dropped
from recoup.store.errors import check_again
from recoup.store.file import StudyFile
from recoup.store.places import fills, partner_of, place_alone, place_in_pair
from recoup.store.queries import Queries
from recoup.store.records import (
    as_kept,
    of_also,
    of_asked,
    of_densities,
    of_event,
    of_move,
    of_proposal,
    of_queued,
    of_result,
    of_test,
    of_trajectory,
    records_of,
)
from recoup.store.rows import (
    CREATED,
    DRAWN,
    FAILED,
    MIRROR,
    MOVED,
    OK,
    START,
    Asked,
    Contents,
    Counters,
    Event,
    Memory,
    Move,
    Proposal,
    Queued,
    Result,
    Test,
    Told,
)
from recoup.store.schema import BESIDE, CHOICES, COSTS, EXTENDED

OVER = "INSERT OR REPLACE"


class Store(Queries):
    """A study file, open. Its reads are those of `Queries`; writes belong inside `writing()`.

    Longer than others: a write is a method of a few lines, and there are many.
    """

    def __init__(self, file: StudyFile) -> None:
        super().__init__(file)
        self._now: Counters | None = None  # inside `writing()`: the counters, as they will be

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
        store = cls(StudyFile.in_memory(lambda file: None))
        store._begin(settings, start, None, None)
        return store

    @classmethod
    def open(cls, path: Path, read_only: bool = False) -> "Store":
        """The store of an existing file, once it is known to be one that this program can read."""
        return cls(StudyFile.open(path, read_only))

    def close(self) -> None:
        """Closes the file; the last process to do so leaves one file, without a log."""
        self._file.close()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """A transaction that is on disk when it ends, or has not happened.

        Counters are read once and written once, however much is told inside.
        """
        with self._file.turn.taken():  # a count is noted in the order of transactions
            with self._file.writing():
                self._now = before = super().counters()
                noted = self._last("events")
                try:
                    yield
                    after, events = self._now, self._last("events")
                    if after != before:
                        self._file.insert("counters", [(0, *after)], OVER)
                finally:
                    self._now = None
            if after != before or events != noted:
                self._file.note_count(after, events)

    def check_written(self) -> None:
        """Raises where the file is only read, with why."""
        self._file.check_written()

    @contextmanager
    def alone(self, wait: float = 0.0) -> Iterator[bool]:
        """Whether no other process makes a move meanwhile, after so many seconds at most."""
        with self._file.alone(wait) as alone:
            yield alone

    def counters(self) -> Counters:
        """How many trials and results there are; inside `writing()`, with what it has written."""
        with self._file.turn.taken():  # another thread's are not known before they are written
            if self._now is None or not self._file.connection.in_transaction:  # forked meanwhile
                return super().counters()
            return self._now

    # -- trials and results --

    def add_trials(self, trials: Sequence[Asked]) -> None:
        """Writes new trials, without results."""
        now, counters = time.time(), self._counters()
        self._file.insert("asked", [of_asked(trial, now) for trial in trials])
        last = max((int(trial.id) for trial in trials), default=0)
        trials_now = counters.trials + len(trials)
        self._now = counters._replace(trials=trials_now, last=max(counters.last, last))

    def add_result(self, number: int, told: Told, valued: bool = False) -> None:
        """Writes what came of a trial; the same again changes nothing, another is refused.

        `valued` says that the study gives failures a value, so that they fill a batch.
        """
        counters, number, told = self._counters(), int(number), as_kept(told)
        if not 0 < number < 2**63:
            raise InputError(f"there is no trial {number} in {self.path}.")
        before = self._told(number)
        if before is not None:
            check_again(number, before, told)
            return
        kinds = self._kinds(number)
        if number not in kinds:
            raise InputError(f"there is no trial {number} in {self.path}.")
        place, fresh = self._place(number, kinds, told.status, valued)
        self._file.insert("told", [of_result(Result(number, told, place, time.time()))])
        if told.trajectory is not None:
            self._file.insert("trajectories", [of_trajectory(number, told.trajectory)])
        if told.also:
            self._file.insert("also", [of_also(number, told.also)])
        self._now = counters._replace(
            ok=counters.ok + (told.status == OK),
            failed=counters.failed + (told.status == FAILED),
            counted=counters.counted if place is None else place,
            fresh=counters.fresh + fresh,
        )

    def take_fresh(self, n: int) -> None:
        """Counts `n` fewer results that no move was made of yet."""
        counters = self._counters()
        self._now = counters._replace(fresh=counters.fresh - int(n))

    def set_last(self, number: int) -> None:
        """Gives no new trial a number up to `number`."""
        counters = self._counters()
        self._now = counters._replace(last=max(counters.last, int(number)))

    def enqueue(self, theta: Any, note: str | None = None) -> None:
        """Puts a theta in line."""
        self._counters()
        row = Queued(self._last("queue") + 1, np.asarray(theta, float), note)
        self._file.insert("queue", [of_queued(row)])

    def dequeue(self, ids: Iterable[int]) -> None:
        """Takes thetas out of the line, by the ids that `queue` gives."""
        self._counters()
        for number in ids:
            self._file.delete("queue", "WHERE id = ?", (int(number),))

    # -- proposals and moves --

    def add_proposals(self, origin: str, family: str, blocks: Iterable[Any]) -> int:
        """Writes proposals, one for each block of numbers `[K]`; the number of the first."""
        self._counters()
        first = self._last("proposals") + 1
        rows = [Proposal(i, origin, family, block) for i, block in enumerate(blocks, first)]
        self._file.insert("proposals", map(of_proposal, rows))
        return first

    def add_move(
        self,
        number: int,
        counted: int,
        family: str,
        numbers: Any,
        memory: Memory,
        info: dict[str, Any],
    ) -> int:
        """Writes a move and the proposal that it made; the number of that proposal.

        `counted` is the place of the last result that it was made of.
        """
        proposal = self.add_proposals(MOVED, family, [numbers])
        row = Move(number, proposal, counted, memory, info, time.time())
        self._file.insert("moves", [of_move(row)])
        return proposal

    def add_densities(self, move: int, new_own: np.ndarray, mixture: np.ndarray) -> None:
        """Writes the densities that the next move starts from; nothing for those that are empty."""
        self._counters()
        if new_own.size:
            self._file.insert("own", [of_densities(move, new_own)])
        if mixture.size:
            self._file.delete("mixture")
            self._file.insert("mixture", [of_densities(move, mixture)])

    # -- what else is kept --

    def note(self, kind: str, content: dict[str, Any], at: float | None = None) -> None:
        """Writes that something happened to the study, now unless it was `at` another time."""
        self._counters()
        row = Event(self._last("events") + 1, kind, content, time.time() if at is None else at)
        self._file.insert("events", [of_event(row)])

    def add_test(self, test: Test) -> None:
        """Writes what fresh episodes said after a move."""
        self._counters()
        self._file.insert("tests", [of_test(test)])

    def restore(self, rows: Contents, counters: Counters) -> None:
        """Writes rows of another file as they were, in place of those of the same ids here.

        The settings stay those that the store was made with; `counters` are those that fit.
        """
        self._counters()
        for table, content in records_of(rows).items():
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
            if settings.get("charts"):  # densities that an older recoup would not know of
                self._file.mark(EXTENDED)
            if settings.get("goal"):  # nor of costs, which it would maximise
                self._file.mark(COSTS)
            if any(row.get("choices") for row in settings.get("params", ())):
                self._file.mark(CHOICES)  # whose latent numbers it would take for parameters
            if settings.get("limits"):  # nor of limits, which it would not keep
                self._file.mark(BESIDE)
            self._file.insert("proposals", [of_proposal(start._replace(id=0, origin=START))])
            self._file.insert("moves", [of_move(Move(0, 0, 0, memory, {}, time.time()))])
            self.note(CREATED, settings)  # on another page, in case theirs is lost
            if then is not None:
                then(self)

    def _counters(self) -> Counters:
        """The counters as they will be; writing anything begins with them."""
        with self._file.turn.taken():
            if self._now is None:
                raise RuntimeError("a store is written to inside `with store.writing():`")
            return self._now

    def _told(self, number: int) -> Told | None:
        """What was told of a trial before, with its trajectory."""
        found = self.results([number])
        if not found:
            return None
        return found[number].told._replace(trajectory=self.trajectories([number]).get(number))

    def _kinds(self, number: int) -> dict[int, str]:
        """The kinds of a trial and of the next, which may be the other of a pair."""
        query = "SELECT id, kind FROM asked WHERE id IN (?, ?)"
        return dict(self._file.rows(query, (number, number + 1)))

    def _place(
        self, number: int, kinds: dict[int, str], status: str, valued: bool
    ) -> tuple[int | None, int]:
        """A result's place, and how many it makes ready for a move.

        One whose partner was dropped before it was told has none: the pair left.
        """
        counted, kind = self._counters().counted, kinds[number]
        if kind != MIRROR and not (kind == DRAWN and kinds.get(number + 1) == MIRROR):
            return place_alone(counted, kind, fills(status, valued))
        query = "SELECT status FROM told WHERE id = ?"
        partner = self._file.rows(query, (partner_of(number, kind),))
        if partner and partner[0][0] == FAILED and number in dropped(self):
            return None, 0
        other = fills(partner[0][0], valued) if partner else None
        return place_in_pair(counted, fills(status, valued), other)

    def _last(self, table: str) -> int:
        """The highest id of a table, 0 where it is empty."""
        return self._file.last_id(table)

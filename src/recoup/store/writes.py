"""What is written to a study file once, and its transactions: half of what `Store` writes."""

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np

from recoup.checks import InputError
from recoup.store import codec
from recoup.store.errors import check_again
from recoup.store.events import later_of, of_later
from recoup.store.file import StudyFile
from recoup.store.places import fills, partner_of, place_alone, place_in_pair
from recoup.store.queries import HIGHEST
from recoup.store.rows import (
    DRAWN,
    FAILED,
    MIRROR,
    MOVED,
    OK,
    TOLD_LATER,
    Asked,
    Counters,
    Event,
    Made,
    Move,
    Proposal,
    Queued,
    Request,
    Result,
    Test,
    Told,
    same,
)
from recoup.store.states import States

OVER = "INSERT OR REPLACE"


class Writes(States):
    """Transactions, and the rows that are written once; all writes belong inside `writing()`."""

    def __init__(self, file: StudyFile) -> None:
        super().__init__(file)
        self._now: Counters | None = None  # inside `writing()`: the counters, as they will be
        self._shared = False  # inside `writing_together()`

    @contextmanager
    def writing(self) -> Iterator[None]:
        """A transaction that is on disk when it ends, or has not happened.

        Counters are read once and written once, however much is told inside.
        """
        with self._file.turn.taken():  # a count is noted in the order of transactions
            if self._shared and self._file.connection.in_transaction:
                yield
                return
            with self._file.writing():
                self._now = before = super().counters()
                noted = self._file.last_id("events")
                try:
                    yield
                    after, events = self._now, self._file.last_id("events")
                    if after != before:
                        self._file.insert("counters", [(0, *after)], OVER)
                finally:
                    self._now = None
            if after != before or events != noted:
                self._file.note_count(after, events)

    @contextmanager
    def writing_together(self) -> Iterator[None]:
        """One transaction of all those inside: each is on disk when it ends, or none happened."""
        with self._file.turn.taken(), self.writing():
            self._shared = True
            try:
                yield
            finally:
                self._shared = False

    def check_written(self) -> None:
        """Raises where the file is only read, with why."""
        self._file.check_written()

    def alone(self, wait: float = 0.0) -> AbstractContextManager[bool]:
        """Whether no other process makes a move meanwhile, after so many seconds at most."""
        return self._file.alone(wait)

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
        self._file.insert("asked", [codec.of_asked(trial, now) for trial in trials])
        last = max((int(trial.id) for trial in trials), default=0)
        trials_now = counters.trials + len(trials)
        self._now = counters._replace(trials=trials_now, last=max(counters.last, last))

    def add_result(self, number: int, told: Told, valued: bool = False) -> Event | None:
        """Writes what came of a trial; the same again changes nothing, another is refused.

        Of a trial that was handed out again the first result counts, and another is kept as an
        event, which is returned. `valued` says that the study gives failures a value, so that they
        fill a batch.
        """
        counters, number, told = self._counters(), int(number), codec.as_kept(told)
        if not 0 < number <= HIGHEST:
            raise InputError(f"there is no trial {number} in {self.where}.")
        before, times = self._told(number), self._handed_out(number)
        if before is not None:
            if times > 1 and not same(before, told):
                return self._add_later(number, told)
            check_again(number, before, told)
            return None
        kinds = self._kinds(number)
        if number not in kinds:
            raise InputError(f"there is no trial {number} in {self.where}.")
        place, fresh = self._place(number, kinds, told.status, valued)
        self._file.insert("told", [codec.of_result(Result(number, told, place, time.time()))])
        self._add_beside(number, told)
        if times == 1:
            self._file.delete("leases", "WHERE id = ?", (number,))
        self._now = counters._replace(
            ok=counters.ok + (told.status == OK),
            failed=counters.failed + (told.status == FAILED),
            counted=counters.counted if place is None else place,
            fresh=counters.fresh + fresh,
        )
        return None

    def set_last(self, number: int) -> None:
        """Gives no new trial a number up to `number`."""
        counters = self._counters()
        self._now = counters._replace(last=max(counters.last, int(number)))

    def enqueue(self, theta: Any, note: str | None = None) -> None:
        """Puts a theta in line."""
        self._counters()
        row = Queued(self._file.last_id("queue") + 1, np.asarray(theta, float), note)
        self._file.insert("queue", [codec.of_queued(row)])

    def dequeue(self, n: int) -> list[Queued]:
        """Takes the first thetas out of the line, at most `n`."""
        self._counters()
        first = self.queue(n)
        for row in first:
            self._file.delete("queue", "WHERE id = ?", (row.id,))
        return first

    # -- proposals and moves --

    def add_proposals(self, origin: str, family: str, blocks: Iterable[Any]) -> int:
        """Writes proposals, one for each block of numbers `[K]`; the number of the first."""
        self._counters()
        first = self._file.last_id("proposals") + 1
        rows = [Proposal(i, origin, family, block) for i, block in enumerate(blocks, first)]
        self._file.insert("proposals", map(codec.of_proposal, rows))
        return first

    def add_move(self, family: str, made: Made, used: int = 0, verb: str = "INSERT") -> int:
        """Writes a move and the proposal that it made; the number of that proposal.

        `used` is how many of the results that it was made of were fresh.
        """
        counters = self._counters()
        proposal = self.add_proposals(MOVED, family, [made.numbers])
        row = Move(made.number, proposal, made.counted, made.memory, made.info, time.time())
        self._file.insert("moves", [codec.of_move(row)], verb)
        self._now = counters._replace(fresh=counters.fresh - int(used))
        return proposal

    def add_densities(self, move: int, new_own: np.ndarray, mixture: np.ndarray) -> None:
        """Writes the densities that the next move starts from; nothing for those that are empty."""
        self._counters()
        if new_own.size:
            self._file.insert("own", [codec.of_densities(move, new_own)])
        if mixture.size:
            self._file.delete("mixture")
            self._file.insert("mixture", [codec.of_densities(move, mixture)])

    # -- what else is kept --

    def note(self, kind: str, content: dict[str, Any], at: float | None = None) -> None:
        """Writes that something happened to the study, now unless it was `at` another time."""
        self._counters()
        number, then = self._file.last_id("events") + 1, time.time() if at is None else at
        self._file.insert("events", [codec.of_event(Event(number, kind, content, then))])

    def add_request(self, row: Request) -> None:
        """Writes what was given to whoever may ask for it once more."""
        self._counters()
        self._file.insert("requests", [codec.of_request(row, time.time())])

    def hand_to(self, ids: Iterable[int], worker: str) -> None:
        """Writes to whom trials are handed out."""
        self._counters()
        self._file.insert("workers", [codec.of_worker(number, worker) for number in ids], OVER)

    def add_test(self, test: Test) -> None:
        """Writes what fresh episodes said after a move."""
        self._counters()
        self._file.insert("tests", [codec.of_test(test)])

    # -- small parts --

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

    def _add_beside(self, number: int, told: Told) -> None:
        """Writes what was told with a return: a trajectory, numbers beside it."""
        if told.trajectory is not None:
            self._file.insert("trajectories", [codec.of_trajectory(number, told.trajectory)])
        if told.also:
            self._file.insert("also", [codec.of_also(number, told.also)])

    def _handed_out(self, number: int) -> int:
        """How often a trial was handed out with a lease that has not ended; 0 without one."""
        return max((row.times for row in self.leases([number]).values()), default=0)

    def _add_later(self, number: int, told: Told) -> Event:
        """The event of a result that came after the first, written unless it is there."""
        for event in self.events(TOLD_LATER):
            if event.content["trial"] == number and same(told, later_of(event)):
                return event
        self.note(TOLD_LATER, of_later(number, told))
        return self.events(TOLD_LATER)[-1]

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
        if partner and partner[0][0] == FAILED and number in self.dropped():
            return None, 0
        other = fills(partner[0][0], valued) if partner else None
        return place_in_pair(counted, fills(status, valued), other)

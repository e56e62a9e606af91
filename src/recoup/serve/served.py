"""A study that is served: its file, its lanes, and what is known of its changes."""

import logging
import os
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from threading import Lock, RLock
from typing import NamedTuple, TypeVar

from recoup.checks import InputError
from recoup.core.types import Given, Plain
from recoup.serve.changes import Change, Changes, next_version
from recoup.serve.lane import Lane, check_same, opened
from recoup.serve.problems import Problem
from recoup.store.errors import Damaged
from recoup.store.place import is_at
from recoup.store.rows import FAILED, FOREIGN, OK, PENDING
from recoup.study.reader.settings import RUN
from recoup.study.study import Study
from recoup.study.trials.ask import OF_A_RUN
from recoup.study.trials.diary import title
from recoup.study.views.trial_columns import TrialColumns

Found = TypeVar("Found")
NOTHING_SEEN = (0, 0)  # of changes of a file
NOTHING_JUDGED: tuple[int, tuple[int, ...]] = (0, ())  # a version, and the trials overdue then
CLOSE_SECONDS = 0.3  # that reading and judging may take still, once a server is stopped
Publish = Callable[[Changes, Change], None]
log = logging.getLogger(__name__)


class Place(NamedTuple):
    """What is served under a name."""

    name: str
    path: Path  # of the study's file
    run: Path | None = None  # the directory of the run that it is of


class Served:
    """A study's file with the lanes that work on it; nothing of it is opened before it is needed.

    Its version is another as soon as anything in the file is, whoever has written it: it goes by
    what SQLite says to a connection that does nothing else.
    """

    def __init__(self, place: Place, writable: bool, publish: Publish) -> None:
        """`publish` tells the event loop of a change."""
        self.name, self.path, self.run = place
        self.writable, self._publish = writable and self.run is None, publish
        self.changes, self._lock = Changes(), RLock()  # held while the file is looked at
        self._known: os.stat_result | None = None
        self._lanes: dict[str, Lane] = {}
        self._making = Lock()  # of lanes; whoever has it waits for no file
        self._watched: Study | None = None
        self._seen, self._imported = NOTHING_SEEN, (-1, 0)
        self._now = Change(0, {})
        self.error: str | None = None
        self.stuck: str | None = None  # why a move that is due is not made
        self._moved = False
        self.columns: TrialColumns | None = None  # of the lane that reads
        self.judged, self.judged_at = dict[str, Given](), NOTHING_JUDGED  # of the lane that judges

    # -- what is asked of the file --

    def reads(self, job: Callable[[Study], Found]) -> "Future[Found]":
        """What a job makes of the study, read."""
        return self._lane("read").run(job)

    def judges(self, job: Callable[[Study], Found]) -> "Future[Found]":
        """The same for what may take a while."""
        return self._lane("judge").run(job)

    def writes(self, job: Callable[[Study], Found]) -> "Future[Found]":
        """The same for what writes; on disk, and known to be a change, when it is done.

        In one transaction with what else waits to be written. A job that fails has written nothing.
        """
        return self._lane("write", True).together(_of_no_run(job), self._seen_at_once)

    def _writes_alone(self, job: Callable[[Study], Found]) -> "Future[Found]":
        """The same in transactions of its own."""

        def done(study: Study) -> Found:
            try:
                return job(study)
            finally:
                self._seen_at_once()

        return self._lane("write", True).run(done)

    def _seen_at_once(self) -> None:
        try:
            self.look()
        except InputError:  # what is the matter, the next one is told
            pass
        except Exception:  # it is written all the same
            log.exception("%s could not be looked at", self.path)

    def settles(self) -> "Future[None]":
        """Has the moves made that are due; what writes them waits for its turn among the others."""

        def settled(study: Study) -> None:
            if RUN in study.settings:
                return
            try:
                study.settle(self.written)
            except Exception as wrong:
                self.stuck = str(wrong) or type(wrong).__name__
                raise
            self.stuck = None

        return self._lane("move", True).run(settled)

    def puts_right(self, job: Callable[[Study], Found]) -> "Future[Found]":
        """What a job makes of the study while no move is made, which it may make again.

        What it writes it has done `writing=...`: results are told meanwhile.
        """
        return self._lane("move", True).run(_of_no_run(job))

    def written(self, job: Callable[[], bool]) -> bool:
        """What a job of another lane gives that writes, done by the one that alone does."""
        return self._writes_alone(lambda _: job()).result()

    def _lane(self, name: str, written: bool = False) -> Lane:
        with self._making:
            if name not in self._lanes:
                self._lanes[name] = Lane(self.path, written, self._check)
            return self._lanes[name]

    def _check(self) -> None:
        """Raises where another file lies in the place of the one that was served first."""
        if self._known is None:
            self.look()
        check_same(self.path, self._known)

    # -- its changes --

    @property
    def watched(self) -> bool:
        """Whether anybody has asked for it yet."""
        return self._known is not None

    @property
    def is_back(self) -> bool:
        """Whether its file, that was moved away, lies in its place again."""
        return self._moved and self._known is not None and is_at(self.path, self._known)

    def look(self) -> Change:
        """How the study is now; whoever waits for a change of it is told. From any thread."""
        with self._lock:
            try:
                return self._looked()
            except InputError as wrong:
                self._lost(wrong)
                raise

    def _lost(self, wrong: InputError) -> None:
        """The file cannot be read: whoever waits for a change hears of it once, and may ask why."""
        known, self.error = self.error, str(wrong)
        if self._watched is not None and isinstance(wrong, Damaged):
            with suppress(Problem):  # it is being stopped
                for lane in list(self._lanes.values()):
                    lane.run(Study.counts)  # which lets go of the file too, and opens it anew
        self._forget()
        self._moved = self._known is not None and not is_at(self.path, self._known)
        if known is None and isinstance(wrong, Damaged) and self._now.version > 0:
            version = next_version(self._now.version)
            line = {**self._now.line, "version": version, "error": str(wrong)}
            self._now = Change(version, line)
            self._publish(self.changes, self._now)

    def _looked(self) -> Change:
        check_same(self.path, self._known)
        if self._watched is None:
            self._watched = opened(self.path, False)
            self._known = self.path.stat() if self._known is None else self._known
        number = self._watched.store.changes()
        if number == self._seen and self.error is None:
            return self._now
        fresh, self._seen, self.error = self._now.version > 0, number, None
        self._moved = False
        version = next_version(self._now.version)
        self._now = Change(version, {"version": version, **self._line(self._watched)})
        if fresh:
            self._publish(self.changes, self._now)
        elif self.writable and self._now.line["until_move"] == 0:  # it was stopped before its move
            self.settles()
        return self._now

    def _line(self, study: Study) -> Plain:
        store = study.store
        with store.reading():
            moves = {"until_move": study.until_move(), "moves": store.last_move().id}
            return {"title": title(store), "counts": self._counts(study), **moves}

    def _counts(self, study: Study) -> Plain:
        """How many trials there are of each kind, as `study show --json` has them."""
        store = study.store
        counts, last = study.counts(), store.last_event()
        if self._imported[0] != last:  # whatever imports says so
            self._imported = last, store.count([FOREIGN])
        dropped = [row.told.status for row in store.results(store.dropped()).values()]
        found = {key: counts[key] for key in (PENDING, OK, FAILED)}
        found |= {"dropped": dropped.count(FAILED), "imported": self._imported[1]}
        return {**found, "enqueued": store.enqueued()}

    def _forget(self) -> None:
        watched, self._watched, self._seen = self._watched, None, NOTHING_SEEN
        if watched is not None:
            with suppress(Exception):
                watched.close()

    def about(self) -> Plain:
        """The study in a line, or what is the matter with its file."""
        line = {"name": self.name, "title": None, "path": str(self.path), "error": None}
        try:
            now = self.look()
        except InputError as wrong:
            return {**line, "error": str(wrong), "version": self._now.version, "counts": None}
        known = {key: now.line[key] for key in ("title", "version", "counts")}
        return {**line, **known}

    def close(self) -> None:
        """Ends its lanes: that which writes after what it is at, the others when they can."""
        with self._making:
            ended = {name: lane.close() for name, lane in self._lanes.items()}
        if self._lock.acquire(timeout=CLOSE_SECONDS):  # or whoever looks waits for the file
            self._forget()
            self._lock.release()
        if "write" in ended:
            ended["write"].result()
        wait(ended.values(), CLOSE_SECONDS)


def _of_no_run(job: Callable[[Study], Found]) -> Callable[[Study], Found]:
    """A job that changes a study, once it is known not to be that of a run."""

    def done(study: Study) -> Found:
        if RUN in study.settings:
            raise Problem(HTTPStatus.CONFLICT, f"{study.store.where} {OF_A_RUN}")
        return job(study)

    return done

"""A study that is served: its file, its lanes, and what is known of its changes."""

import os
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import suppress
from pathlib import Path
from threading import RLock
from typing import NamedTuple, TypeVar

from recoup.checks import InputError
from recoup.core.types import Given, Plain
from recoup.serve.changes import Change, Changes, next_version
from recoup.serve.lane import Lane, check_same, opened
from recoup.store.errors import Damaged
from recoup.store.place import is_at
from recoup.store.rows import FAILED, FOREIGN, OK, PENDING
from recoup.study.reader.settings import RUN
from recoup.study.study import Study
from recoup.study.trials.diary import title
from recoup.study.views.trial_columns import TrialColumns

Found = TypeVar("Found")
CLOSE_SECONDS = 0.3  # that reading and judging may take still, once a server is stopped
Publish = Callable[[Changes, Change], None]


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
        self.changes, self._lock = Changes(), RLock()
        self._known: os.stat_result | None = None
        self._lanes: dict[str, Lane] = {}
        self._watched: Study | None = None
        self._seen, self._imported = -1, (-1, 0)
        self._now = Change(0, {})
        self.error: str | None = None
        self._moved = False
        self.columns: TrialColumns | None = None  # of the lane that reads
        self.judged, self.judged_at = dict[str, Given](), 0  # of the lane that judges

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
        return self._lane("write", True).together(job, self._seen_at_once)

    def _writes_alone(self, job: Callable[[Study], Found]) -> "Future[Found]":
        """The same in transactions of its own."""

        def done(study: Study) -> Found:
            try:
                return job(study)
            finally:
                self._seen_at_once()

        return self._lane("write", True).run(done)

    def _seen_at_once(self) -> None:
        with suppress(InputError):  # what is the matter, the next one is told
            self.look()

    def settles(self) -> "Future[None]":
        """Has the moves made that are due; what writes them waits for its turn among the others."""

        def written(job: Callable[[], bool]) -> bool:
            return self._writes_alone(lambda _: job()).result()

        def settled(study: Study) -> None:
            if RUN not in study.settings:
                study.settle(written)

        return self._lane("move", True).run(settled)

    def puts_right(self, job: Callable[[Study], Found]) -> "Future[Found]":
        """The same as `writes`, while no move is being made."""
        return self._lane("move", True).run(lambda _: self._writes_alone(job).result())

    def _lane(self, name: str, written: bool = False) -> Lane:
        with self._lock:
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
        """Whether anybody has asked for it yet; of one that was moved away, whether it is back."""
        back = self._moved and self._known is not None and is_at(self.path, self._known)
        return self._watched is not None or back

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
        watched, self._watched, self._seen = self._watched, None, -1
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
        ended = {name: lane.close() for name, lane in self._lanes.items()}
        with self._lock:
            self._forget()
        if "write" in ended:
            ended["write"].result()
        wait(ended.values(), CLOSE_SECONDS)

"""One thread at a study's file: what is asked of it is done one after the other.

A study has four such lanes: one alone writes; one makes moves, and has what a move writes done by
the first; one reads what is shown; one judges, which may take a while. SQLite's readers do not wait
for its writer, so that a result is on disk at once whatever the others do.
"""

import os
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple, TypeVar

from recoup.core.types import Given
from recoup.serve.problems import AGAIN, Problem
from recoup.store.errors import Damaged, Locked
from recoup.store.place import is_at
from recoup.store.store import Store
from recoup.study.study import Study

Found = TypeVar("Found")
TOGETHER = 64  # jobs, at most, of one transaction


class Waiting(NamedTuple):
    """A job that may be done in one transaction with others, and what comes of it."""

    job: Callable[[Study], Any]
    found: "Future[Any]"


class Lane:
    """A thread, and its connection to a file, which is opened when it is first needed."""

    def __init__(self, path: Path, written: bool, check: Callable[[], object]) -> None:
        """`check` raises where the file is not the one that was named any more."""
        self._path, self._written, self._check = path, written, check
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=path.name)
        self._study: Study | None = None
        self._waiting: deque[Waiting] = deque()

    def run(self, job: Callable[[Study], Found]) -> "Future[Found]":
        """What a job makes of the study, once it is its turn."""
        return self._in_turn(lambda: self._done(job))

    def together(
        self, job: Callable[[Study], Found], then: Callable[[], object]
    ) -> "Future[Found]":
        """The same of a job that writes, in one transaction with those that wait then.

        A transaction waits for the disk, which takes longer than all else about a result: those
        that come meanwhile share the next one. `then` is done once after it.
        """
        mine = Waiting(job, Future())
        self._waiting.append(mine)
        return self._in_turn(lambda: self._of_group(mine, then))

    def _in_turn(self, job: Callable[[], Found]) -> "Future[Found]":
        try:
            return self._thread.submit(job)
        except RuntimeError:  # it is closed
            stops = "the server is being stopped."
            raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, stops, AGAIN) from None

    def close(self) -> "Future[None]":
        """Ends the thread after what it is at; nothing else that waits for it is begun."""
        self._thread.shutdown(wait=False, cancel_futures=True)
        last: Future[None] = Future()
        Thread(target=self._closed, args=(last,), daemon=True).start()
        return last

    def _closed(self, last: "Future[None]") -> None:
        self._thread.shutdown(wait=True)
        self._let_go()
        last.set_result(None)

    def _of_group(self, mine: Waiting, then: Callable[[], object]) -> Given:
        """What came of a job: done now with those that wait, unless it was done with others."""
        if not mine.found.done():
            some = [self._waiting.popleft() for _ in range(min(len(self._waiting), TOGETHER))]
            try:
                self._do_together(some)
            finally:
                then()
        return mine.found.result()

    def _do_together(self, some: Sequence[Waiting]) -> None:
        """Does jobs in one transaction; should one of them fail, each in its own."""
        try:
            found = self._done(lambda study: in_one(study, some)) if len(some) > 1 else None
        except Locked as wrong:  # before any of them was begun; to try each would wait as often
            for one in some:
                one.found.set_exception(wrong)
            return
        except BaseException:  # nothing of it has happened; whoever is at fault is told so below
            found = None
        if found is not None:
            for one, value in zip(some, found, strict=True):
                one.found.set_result(value)
            return
        for one in some:
            try:
                one.found.set_result(self._done(one.job))
            except BaseException as wrong:
                one.found.set_exception(wrong)

    def _done(self, job: Callable[[Study], Found]) -> Found:
        self._check()
        if self._study is None:
            self._study = opened(self._path, self._written)
        try:
            return job(self._study)
        except Damaged:
            self._let_go()  # and opened anew, should it have been put right
            raise

    def _let_go(self) -> None:
        study, self._study = self._study, None
        if study is not None:
            with suppress(Exception):
                study.close()


def in_one(study: Study, some: Sequence[Waiting]) -> list[Given]:
    """What jobs make of a study, all of them in one transaction, or none."""
    with study.store.writing_together():
        return [one.job(study) for one in some]


def opened(path: Path, written: bool) -> Study:
    """The study in a file; a move that is due is left to the lane of moves."""
    store = Store.open(path, read_only=not written)
    try:
        return Study(store)
    except BaseException:
        store.close()
        raise


def check_same(path: Path, known: os.stat_result | None) -> None:
    """Raises where another file lies in the place of the one that was opened, or none."""
    if known is not None and not is_at(path, known):
        raise Damaged(
            f"{path} was moved or removed since it was opened, or another file lies in the place "
            "of it: put it back, or start the server anew."
        )

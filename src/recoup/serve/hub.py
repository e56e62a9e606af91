"""All that a server serves, by name, and the thread that looks whether other processes write."""

import asyncio
import logging
import os
import time
from collections.abc import Container, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Event, Lock, Thread

from recoup.checks import InputError, check_path
from recoup.serve.changes import Change, Changes
from recoup.serve.served import Place, Served
from recoup.serve.tokens import Door
from recoup.study.run.beside import STUDY

LOOK_SECONDS = 0.2  # between two looks at the files
AGAIN_SECONDS = 5.0  # between two looks at one that cannot be read
ENDING = ".db"
log = logging.getLogger(__name__)


class Hub:
    """The studies and runs that were named, and those that lie directly in named directories."""

    def __init__(self, named: Sequence[Path], door: Door, read_only: bool) -> None:
        self.door, self.read_only = door, read_only
        self.streams = 0  # that are open
        self.served: dict[str, Served] = {}
        self._named = list(named)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._finding, self._stop = Lock(), Event()
        self._watcher = Thread(target=self._watch, name="watcher", daemon=True)
        self.find()

    def find(self) -> None:
        """Serves what lies in the named directories by now, too; studies are named before runs."""
        with self._finding:
            served = dict(self.served)
            known = {one.path.resolve() for one in served.values()}
            there = [path for path in self._named if not known or path.exists()]  # or it is gone
            places = [place for path in there for place in places_in(path)]
            for place in sorted(places, key=lambda place: place.run is not None):
                if place.path.resolve() in known:
                    continue
                known.add(place.path.resolve())
                name = _free(place.name, served)
                called = place._replace(name=name)
                served[name] = Served(called, not self.read_only, self._publish)
            self.served = served

    # -- changes --

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """From now on changes are told to an event loop."""
        self._loop = loop
        self._watcher.start()

    def _publish(self, changes: Changes, change: Change) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(changes.add, change)

    def _watch(self) -> None:
        """Looks at all files, again and again; seldom, and beside the others, at one in trouble."""
        beside, again = dict[str, Thread](), time.monotonic()
        while not self._stop.wait(LOOK_SECONDS):
            due = time.monotonic() >= again
            again = time.monotonic() + AGAIN_SECONDS if due else again
            for name, one in self.served.items():
                if one.watched and one.error is None:
                    _look(one)
                elif one.watched and (due or one.is_back) and not _is_at_work(beside.get(name)):
                    beside[name] = Thread(target=_look, args=(one,), daemon=True)
                    beside[name].start()

    def end(self) -> None:
        """Lets all streams go: nothing comes any more."""
        self._stop.set()
        for one in self.served.values():
            one.changes.end()

    def close(self) -> None:
        """Closes the files; what was acknowledged is on disk, whatever a thread is still at."""
        self._stop.set()
        for one in self.served.values():
            one.close()


def _free(name: str, taken: Container[str]) -> str:
    """A name that is not taken: with -2 behind it, where it is."""
    found, n = name, 2
    while found in taken:
        found, n = f"{name}-{n}", n + 1
    return found


def _look(one: Served) -> None:
    """Looks at a study; what is the matter is kept, and said to whoever asks."""
    try:
        one.look()
    except InputError:
        pass
    except Exception:  # of one file: the others are looked at
        log.exception("%s could not be looked at", one.path)


def _is_at_work(thread: Thread | None) -> bool:
    return thread is not None and thread.is_alive()


def places_in(path: Path) -> Iterator[Place]:
    """The studies and runs that a path names: itself, or what lies directly in a directory."""
    check_path("what is served", path)
    if not path.exists():
        raise InputError(f"there is no study or run in {path}.")
    if path.is_file():
        yield Place(said(path.name.removesuffix(ENDING)), path)
    elif (path / STUDY).is_file():
        yield Place(said(path.resolve().name), path / STUDY, path)
    else:
        for one in sorted(path.iterdir()):
            with suppress(PermissionError):  # what one may not look into is no study
                if one.is_file() and one.suffix == ENDING:
                    yield Place(said(one.stem), one)
                elif (one / STUDY).is_file():
                    yield Place(said(one.name), one / STUDY, one)


def said(name: str) -> str:
    """The name of a file as an address can have it, whatever bytes it is made of."""
    return os.fsencode(name).decode(errors="replace")

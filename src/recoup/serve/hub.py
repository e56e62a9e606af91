"""All that a server serves, by name, and the thread that looks whether other processes write."""

import asyncio
import logging
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Event, Thread

from recoup.checks import InputError, check_path
from recoup.serve.changes import Change, Changes
from recoup.serve.served import Place, Served
from recoup.serve.tokens import Door
from recoup.study.run.beside import STUDY

LOOK_SECONDS = 0.2  # between two looks at the files
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
        self._stop = Event()
        self._watcher = Thread(target=self._watch, name="watcher", daemon=True)
        self.find()

    def find(self) -> None:
        """Serves what lies in the named directories by now, too."""
        known = {one.path for one in self.served.values()}
        for path in self._named:
            if known and not path.exists():  # it is gone meanwhile: those in it say so
                continue
            for place in places_in(path):
                if place.path not in known:
                    known.add(place.path)
                    name = self._free(place.name)
                    self.served[name] = Served(
                        place._replace(name=name), not self.read_only, self._publish
                    )

    def _free(self, name: str) -> str:
        """A name that no other study has: with -2 behind it, where one has it."""
        found, n = name, 2
        while found in self.served:
            found, n = f"{name}-{n}", n + 1
        return found

    # -- changes --

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """From now on changes are told to an event loop."""
        self._loop = loop
        self._watcher.start()

    def _publish(self, changes: Changes, change: Change) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(changes.add, change)

    def _watch(self) -> None:
        while not self._stop.wait(LOOK_SECONDS):
            for one in list(self.served.values()):
                try:
                    if one.watched:
                        one.look()
                except InputError:
                    pass  # kept, and said to whoever asks
                except Exception:  # of one file: the others are looked at
                    log.exception("%s could not be looked at", one.path)

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
            if one.is_file() and one.suffix == ENDING:
                yield Place(said(one.stem), one)
            elif (one / STUDY).is_file():
                yield Place(said(one.name), one / STUDY, one)


def said(name: str) -> str:
    """The name of a file as an address can have it, whatever bytes it is made of."""
    return os.fsencode(name).decode(errors="replace")

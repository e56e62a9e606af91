"""The count beside a study file: how much was told and noted, by which a lost log is noticed.

It never runs ahead of the file, so that a count that is higher than what the file holds means that
results are gone, or events, as amendments are. It says too of which file it is: a log that lies
beside another is noticed.
"""

import os
import struct
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from recoup.store.place import COUNT, beside, may_be_count

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

CONTENT = struct.Struct("<qqIq")  # results told, last trial, identity of the file, last event
CRC = struct.Struct("<I")  # after them
LOCK_POLL = 0.005  # seconds between two looks at a lock
FOLLOW = getattr(os, "O_NOFOLLOW", 0)  # a link that lies there is none of ours


class Count(NamedTuple):
    """What the count beside a file says."""

    told: int
    last: int  # trial
    identity: int
    events: int


NONE = Count(0, 0, 0, 0)


def count_beside(path: Path) -> Count:
    """The count beside a study file; zeros where there is none that can be believed."""
    try:
        descriptor = os.open(beside(path, COUNT), os.O_RDONLY | FOLLOW)
        try:
            content = os.read(descriptor, CONTENT.size + CRC.size + 1)
        finally:
            os.close(descriptor)
    except OSError:
        return NONE
    if len(content) == CONTENT.size + CRC.size and _has_crc(content):
        return Count(*CONTENT.unpack(content[: CONTENT.size]))
    return NONE


class Counting:
    """Writes the count beside one file. Nothing depends on it: what cannot be written is left."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def note(self, count: Count) -> None:
        """Writes a count, in one piece; not synchronised."""
        content = CONTENT.pack(*count)
        with suppress(OSError, AttributeError):  # not every system can write at a place
            if self._descriptor is None:
                self._descriptor = self._opened()
            os.pwrite(self._descriptor, content + CRC.pack(zlib.crc32(content)), 0)

    @contextmanager
    def alone(self, wait: float = 0.0) -> Iterator[bool]:
        """Whether this process alone makes a move meanwhile: one is enough, for all make the same.

        It waits for another that is at it, so many seconds at most. The lock ends with the process
        that holds it. Where there are no locks, all are alone.
        """
        mine = os.getpid()
        try:
            descriptor = self._opened()
        except OSError:
            yield True
            return
        try:
            until = time.monotonic() + wait
            while not (locked := _locked(descriptor)) and time.monotonic() < until:
                time.sleep(LOCK_POLL)
            yield locked
        finally:
            if os.getpid() == mine:
                _unlock(descriptor)
            os.close(descriptor)

    def close(self, keep: bool) -> None:
        """Ends the writing; without `keep` the count goes, as one that nobody needs any more."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
        if not keep:
            with suppress(OSError):
                if may_be_count(beside(self._path, COUNT)):
                    beside(self._path, COUNT).unlink(missing_ok=True)

    def _opened(self) -> int:
        """The count's file, open to those that the study's file is open to."""
        if beside(self._path, COUNT).exists() and not may_be_count(beside(self._path, COUNT)):
            raise FileExistsError(f"{beside(self._path, COUNT)} is no count")
        descriptor = os.open(beside(self._path, COUNT), os.O_RDWR | os.O_CREAT | FOLLOW, 0o600)
        with suppress(OSError, AttributeError):  # it may be another's
            os.fchmod(descriptor, self._path.stat().st_mode & 0o777)
        return descriptor


def _has_crc(content: bytes) -> bool:
    """Whether the CRC-32 at the end is that of what stands before it."""
    return CRC.pack(zlib.crc32(content[: -CRC.size])) == content[-CRC.size :]


def _locked(descriptor: int) -> bool:
    """Takes the lock of an open file; False where another process has it."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True


def _unlock(descriptor: int) -> None:
    """Gives the lock of an open file back.

    Closing it is not enough: a process that was forked meanwhile has it open too, and the lock with
    it, for as long as it lives.
    """
    if fcntl is not None:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_UN)

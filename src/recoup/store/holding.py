"""A lock that says that a file is open, which nothing else that its process does takes away.

SQLite's own locks are of a kind that goes as soon as the process closes the file anywhere: once it
has copied it, say. Others take it for closed then, and remove its log. This one lies on the same
bytes and belongs to one open file: others see it as one of SQLite's.
"""

import os
import struct
import sys
from contextlib import suppress
from pathlib import Path

from recoup.store.place import is_at

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

FIRST_BYTE, BYTES = 0x40000002, 510  # by which SQLite knows who has a file open
LOCK = struct.Struct("hhqqi4x")  # kind, from where on, first byte, how many, nobody


def held(path: Path, known: os.stat_result) -> int | None:
    """A file that is open with such a lock; None where another lies there, or there are no such."""
    if not (sys.platform == "linux" and hasattr(fcntl, "F_OFD_SETLK")):
        return None
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        if is_at(path, known):
            _set(descriptor, fcntl.F_RDLCK)
            return descriptor
    except OSError:  # a file system without them
        pass
    os.close(descriptor)
    return None


def let_go(descriptor: int) -> None:
    """Takes the lock away, so that SQLite may close the file as the last one; it stays open."""
    with suppress(OSError):
        _set(descriptor, fcntl.F_UNLCK)


def _set(descriptor: int, kind: int) -> None:
    fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, LOCK.pack(kind, os.SEEK_SET, FIRST_BYTE, BYTES, 0))

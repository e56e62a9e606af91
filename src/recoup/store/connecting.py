"""Connections to a study file, and what makes it known before any is trusted."""

import os
import sqlite3
import zlib
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple
from weakref import WeakSet

from recoup.checks import InputError
from recoup.store.count import Count
from recoup.store.errors import BUSY, Damaged, NoRoom, sqlite_errors
from recoup.store.holding import held, let_go
from recoup.store.place import COUNT, LOG, address, beside, is_at
from recoup.store.rows import CREATED, RECOVERED


class Access(NamedTuple):
    """How a file is opened."""

    written: bool = True
    beside: bool = True  # whether SQLite may keep beside it what it needs while it is open
    wanted: bool = False  # it is only read because it was opened so


TO_WRITE = Access()


class Link:
    """The connection to a file that was opened."""

    def __init__(
        self,
        path: Path,
        place: Path | None,
        connection: sqlite3.Connection,
        access: Access,
        *,
        known: bool,
    ) -> None:
        """`path` is how it was named, `place` where it lay then: None of one in memory.

        `known` says that the file is there, and that another is not to be taken for it.
        """
        self._path, self._place, self._access = path, place, access
        self._log_place = beside(place, LOG) if place else None  # while `place` is no link
        self._known = place.stat() if place and known else None
        self._connection, self._process = connection, os.getpid()
        self._foreign: list[sqlite3.Connection] = []  # of the process that this one was forked from
        self._still, self._log = self._as_it_lies(), self._log_as_it_lies()
        self._held, self.times = self._hold(), 1  # that it was connected
        if place and known:
            LINKS.add(self)

    def __del__(self) -> None:
        """One that nobody has closed goes as if somebody had; at exit modules are gone before."""
        held_here = getattr(self, "_held", None)
        if held_here is not None and os is not None and os.getpid() == self._process:
            let_go(held_here)
            with suppress(sqlite3.Error):
                self._connection.close()
            os.close(held_here)

    @property
    def connection(self) -> sqlite3.Connection:
        """The connection of this process: one that was forked opens the file anew.

        SQLite's connections do not survive a fork; the parent's stays open there. Nor does one last
        that has taken the file for one that nobody changes, once somebody does, nor one whose log
        another process has removed.
        """
        if os.getpid() != self._process:
            if self._place is not None:
                self._held = None  # what the parent may let go
                mine = self._anew(self._place)
                self._foreign.append(self._connection)
                self._connection = mine
            self._process = os.getpid()
        if self._log and not self._connection.in_transaction and not self._has_log():
            self._begin_again()
        still = self._place if self._still and not self._connection.in_transaction else None
        if still is not None and self._is_outdated():
            before, self._connection = self._connection, self._anew(still)
            before.close()
        return self._connection

    def close(self) -> bool:
        """Closes the connection of this process; whether its log went by that into the file.

        One that was removed while it was open is written into the file now, while it can be read.
        """
        mine = self._log is not None and self._has_log()
        if self._log is not None and not mine and os.getpid() == self._process:
            with suppress(sqlite3.Error):
                self._connection.execute("PRAGMA wal_checkpoint")
        self._log = None  # whatever became of it
        connection = self.connection
        if self._held is not None:
            let_go(self._held)
        connection.close()
        self._let_be()
        self._still = self._log = None
        LINKS.discard(self)
        return mine and self._place is not None and not beside(self._place, LOG).exists()

    def leave(self, at_rest: bool) -> None:
        """Closes the connection of the process that this one was forked from, in this one.

        While that process has the file open no log can go by it. SQLite forgets that it has the
        file open: what this process opens then has locks of its own, which others see. One that is
        not `at_rest`, or in a transaction, cannot be closed: SQLite goes on with its log.
        """
        with suppress(sqlite3.Error):
            if self._known is not None and at_rest and not self._connection.in_transaction:
                self._connection.close()
                self._let_be()
            elif self._place and self._known and self._log:
                STRANDED.append((self._known, self._log))
        self._held = None  # where it stays open, so does the lock

    def check_there(self) -> None:
        """Raises where another file lies in the place of this one, or none: who would find it?"""
        if self._place and self._known is not None and not is_at(self._place, self._known):
            raise Damaged(
                f"{self._path} was moved or removed since it was opened, or another file lies in "
                "the place of it: nothing was written. Put it back, or open the study anew."
            )
        if not self._has_log():
            raise Damaged(f"{self._gone()}: nothing was written. Do it once more.")

    def _has_log(self) -> bool:
        """Whether the log lies there that this process writes to; so while the file is not there.

        A process that reads the file by itself, to copy it, loses all its locks on it when it has
        done so. Another that closes it then takes itself for the last, and removes the log.
        """
        if not (self._place and self._known and self._log) or not is_at(self._place, self._known):
            return True
        log = beside(self._place, LOG) if self._place.is_symlink() else self._log_place
        return log is not None and _identity_of(log) == self._log

    def _begin_again(self) -> None:
        """Connects anew: what the log held went to the file.

        Not while another connection of this process has the file: SQLite would read both as one.
        """
        assert self._place is not None
        others = (one for one in LINKS if one is not self and one._process == self._process)
        if self._foreign or any(one._known and is_at(self._place, one._known) for one in others):
            raise Damaged(
                f"{self._gone()}: close it wherever it is open in this process, and open it anew."
            )
        with suppress(sqlite3.Error):
            self._connection.execute("PRAGMA wal_checkpoint")  # if it was not another process
        self._connection.close()
        self._connection = self._anew(self._place)

    def _hold(self) -> int | None:
        """The file, open with a lock by which others know it; None where it has no log."""
        if not (self._place and self._known and self._log):
            return None
        found = held(self._place, self._known)
        check_forked(self._place)  # from here on its log stays
        return found

    def _let_be(self) -> None:
        """Closes it; in a process that was forked, the lock stays the parent's."""
        if self._held is not None:
            os.close(self._held)
        self._held = None

    def _gone(self) -> str:
        return (
            f"the log of {self._path} was removed while it was open here (another process has "
            "closed it after this one had read the file by itself, to copy it)"
        )

    def _log_as_it_lies(self) -> tuple[int, int] | None:
        """Which file the log is that SQLite writes to; None where it has none."""
        if not (self._place and self._known and self._access.beside):
            return None
        self._connection.execute("PRAGMA schema_version").fetchone()  # it is opened to read
        return _identity_of(beside(self._place, LOG))

    def _anew(self, place: Path) -> sqlite3.Connection:
        """Another connection to the file that was opened, once it is known to be there still."""
        with sqlite_errors(self._path):
            self._log = None
            self.check_there()
            check_forked(place)
            connection = connected(place, self._access)
            if self._access.written:
                keep_log(connection)
            before, self._connection = self._connection, connection
            self._still, self._log = self._as_it_lies(), self._log_as_it_lies()
            self._connection = before
            self._held = self._held if self._held is not None else self._hold()
        self.times += 1
        return connection

    def _as_it_lies(self) -> tuple[int, int] | None:
        """When a file was changed that SQLite takes for one that nobody changes, and its size.

        None of any other: so is one taken that nothing may be kept beside, as `address` says.
        """
        if self._access.beside or self._place is None or beside(self._place, LOG).exists():
            return None
        found = self._place.stat()
        return found.st_mtime_ns, found.st_size

    def _is_outdated(self) -> bool:
        """Whether such a file was changed since; one that is gone is read on as it was."""
        try:
            return self._as_it_lies() != self._still
        except OSError:
            return False


LINKS: "WeakSet[Link]" = WeakSet()  # to files that this process has open
STRANDED: list[tuple[os.stat_result, tuple[int, int]]] = []  # files that a fork has left open, in
# the middle of something, and their logs of then


def check_forked(path: Path) -> None:
    """Raises where SQLite would read a file by a log that it had when this process was forked."""
    for known, log in STRANDED:
        if is_at(path, known) and _identity_of(beside(path, LOG)) != log:
            raise InputError(
                f"{path} was being read or written when this process was forked, and was closed "
                "since: it can be opened in a new process alone, not in this one. Fork while it is "
                "at rest."
            )


def _identity_of(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def connected(path: Path, access: Access) -> sqlite3.Connection:
    """A connection to a file; one to read writes no row.

    Where SQLite may keep files beside it, it reads while others write, and the last to close leaves
    one file, as ever.
    """
    connection = connect(address(path, "rw" if access.beside else "ro"))
    connection.execute(f"PRAGMA query_only = {'OFF' if access.written else 'ON'}")
    return connection


def connect(where: str) -> sqlite3.Connection:
    """A connection that any thread may use, one at a time; what a file says runs nothing."""
    connection = sqlite3.connect(
        where, timeout=BUSY, isolation_level=None, uri=True, check_same_thread=False
    )
    connection.execute("PRAGMA trusted_schema = OFF")
    return connection


def keep_log(connection: sqlite3.Connection) -> None:
    """A commit is on disk when it returns; readers are not held up by it."""
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")


def empty_log(path: Path, connection: sqlite3.Connection) -> None:
    """Writes all of a file's log into the file itself, or raises.

    Closing it does the same, and says nothing where there is no room for it.
    """
    busy, frames, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    if busy or frames:
        raise NoRoom(f"the log of {path} could not be written into the file")


def identity(connection: sqlite3.Connection) -> int:
    """A number that two files do not share, unless one is a copy of the other."""
    query = "SELECT crc FROM events WHERE kind IN (?, ?) ORDER BY id"
    rows = connection.execute(query, (CREATED, RECOVERED)).fetchall()
    return zlib.crc32(repr(rows).encode())


def has_other(path: Path, known: int) -> bool:
    """Whether a file itself, without its log, is another than the one of that identity."""
    try:
        with closing(connect(f"{address(path, 'ro')}&immutable=1")) as without_log:
            return identity(without_log) != known
    except sqlite3.DatabaseError:  # damaged, or just being written: SQLite will say
        return False


def check_log(path: Path, count: Count) -> None:
    """Raises where the log beside a file is that of another, which SQLite would write over it."""
    log = beside(path, LOG)
    if not count.identity or not log.exists() or not log.stat().st_size:
        return
    if has_other(path, count.identity):
        raise Damaged(
            f"{log.name} is the log of another file that lay in the place of {path}: move it away, "
            f"with {beside(path, '-shm').name} and {beside(path, COUNT).name}, before {path.name} "
            "is opened."
        )

"""The study file: SQLite, one transaction for each thing that must not be lost.

Rows are written once and never changed (but for what `amending` puts right, and leases), and each
carries a checksum: whatever part of a damaged file can still be read is known to be what was
written. Opening a stranger's file runs no code: there are numbers, JSON and text in it, nothing
else.
"""

import os
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from recoup.checks import InputError, check_path
from recoup.outputs import unfinished_of
from recoup.store.count import Count, Counting, count_beside
from recoup.store.errors import BUSY, damage, sensible, sqlite_errors
from recoup.store.names import check_names, why_only_read
from recoup.store.place import (
    COUNT,
    LOG,
    address,
    beside,
    check_place,
    is_at,
    is_writable,
    put,
    settled,
)
from recoup.store.records import counters_of
from recoup.store.rows import CREATED, RECOVERED, Counters
from recoup.store.schema import (
    APPLICATION,
    EXTRAS,
    LATER,
    NEWEST,
    TABLES,
    VERSION,
    check_schema,
    checksum,
    our_schema,
    statements_of,
)

MEMORY = ":memory:"
Row = TypeVar("Row")


class StudyFile:
    """A connection to a study file: transactions, and rows with their checksums."""

    def __init__(
        self,
        path: Path,
        connection: sqlite3.Connection,
        read_only: bool = False,
        counting: bool = True,
    ) -> None:
        """`path` is how it was named, and is shown; what is opened later lies where it lay then.

        `counting` says whether a count is kept beside the file; an unfinished one has none.
        """
        self.path, self.read_only = path, read_only
        self._place = path if str(path) == MEMORY else settled(path)
        self._connection, self._process = connection, os.getpid()
        self._foreign: list[sqlite3.Connection] = []  # of the process that this one was forked from
        self._counting = Counting(self._place) if counting and not read_only else None
        self._known = self._place.stat() if counting else None
        self._identity = 0

    @classmethod
    def create(cls, path: Path, fill: Callable[["StudyFile"], None]) -> "StudyFile":
        """A new file with what `fill` writes into it; it is there whole, or not."""
        check_place(path)
        unfinished = unfinished_of(path)
        unfinished.unlink(missing_ok=True)
        try:
            with sqlite_errors(path):
                connection = _connect(address(unfinished, "rwc"))
                try:
                    _keep_log(connection)
                    file = cls(path, connection, counting=False)
                    file._make_tables()
                    fill(file)
                finally:
                    connection.close()
            put(unfinished, path)
        finally:
            unfinished.unlink(missing_ok=True)
        return cls.open(path)

    @classmethod
    def in_memory(cls, fill: Callable[["StudyFile"], None]) -> "StudyFile":
        """The same without a file; it ends with the process."""
        connection = sqlite3.connect(MEMORY, isolation_level=None)
        file = cls(Path(MEMORY), connection, counting=False)
        file._make_tables()
        fill(file)
        return file

    @classmethod
    def open(cls, path: Path) -> "StudyFile":
        """The file of an existing study, once it is known to be one that this program can read."""
        check_present(path)
        count = count_beside(path)  # before the file is read: it never runs ahead of that
        _check_log(path, count)
        writable = check_names(path) and is_writable(path)
        with sqlite_errors(path):
            connection = _connect(address(path, "rw" if writable else "ro"))
            try:
                _check_format(path, format_of(path, connection))
                check_schema(path, connection, our_schema())
                if writable:
                    _keep_log(connection)
                file = cls(path, connection, read_only=not writable)
                file._check_count(count)
                file._identity = _identity(connection)
            except BaseException:
                connection.close()
                raise
        return file

    @property
    def connection(self) -> sqlite3.Connection:
        """The connection of this process: one that was forked opens the file anew.

        SQLite's connections do not survive a fork; the parent's stays untouched, and open.
        """
        if os.getpid() != self._process:
            if str(self.path) != MEMORY:
                mine = self._connected_anew()
                self._foreign.append(self._connection)
                self._connection = mine
            self._process = os.getpid()
        return self._connection

    def _connected_anew(self) -> sqlite3.Connection:
        """Another connection to the file that was opened, once it is known to be there still."""
        with sqlite_errors(self.path):
            self._check_there()
            connection = _connect(address(self._place, "ro" if self.read_only else "rw"))
            if not self.read_only:
                _keep_log(connection)
        return connection

    def _check_there(self) -> None:
        """Raises where another file lies in the place of this one, or none: who would find it?"""
        if self._known is not None and not is_at(self._place, self._known):
            raise InputError(
                f"{self.path} was moved or removed since it was opened, or another file lies in "
                "the place of it: nothing was written. Put it back, or open the study anew."
            )

    def close(self) -> None:
        """Closes the connection; the last one to do so leaves one file."""
        with sqlite_errors(self.path):
            self.connection.close()
        if self._counting is not None:
            self._counting.close(keep=beside(self._place, LOG).exists())

    # -- transactions --

    @contextmanager
    def writing(self) -> Iterator[None]:
        """A transaction that is on disk when it ends, or has not happened."""
        if self.read_only:
            raise InputError(why_only_read(self.path))
        with sqlite_errors(self.path):
            self.connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._check_there()
                self.connection.execute("COMMIT")
            except BaseException:
                if self.connection.in_transaction:  # SQLite ends it by itself on a full disk
                    self.connection.execute("ROLLBACK")
                raise

    @contextmanager
    def reading(self) -> Iterator[None]:
        """All reads inside see the same state of the file, whatever others write meanwhile."""
        with sqlite_errors(self.path):
            begun = self.connection.in_transaction
            if not begun:
                self.connection.execute("BEGIN")
            try:
                yield
            finally:
                if not begun and self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")

    @contextmanager
    def alone(self, wait: float = 0.0) -> Iterator[bool]:
        """Whether no other process makes a move meanwhile, after so many seconds at most."""
        if self._counting is None:
            yield True
            return
        with self._counting.alone(wait) as alone:
            yield alone

    # -- rows --

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """All rows of a query."""
        with sqlite_errors(self.path):
            return self.connection.execute(query, values).fetchall()

    def has(self, table: str) -> bool:
        """Whether a table is there: some are made when they are first needed."""
        return bool(self.rows("SELECT 1 FROM sqlite_schema WHERE name = ?", (table,)))

    def read(
        self,
        table: str,
        make: Callable[[tuple[Any, ...]], Row],
        where: str = "",
        values: Sequence[Any] = (),
    ) -> list[Row]:
        """What `make` makes of the rows of a table, once their checksums are known to hold."""
        if table in LATER and not self.has(table):
            return []
        with sqlite_errors(self.path), sensible(self.path):
            cursor = self.connection.execute(f"SELECT * FROM {table} {where}", values)
            return [make(self._sound(table, row)) for row in cursor]

    def one(
        self,
        table: str,
        make: Callable[[tuple[Any, ...]], Row],
        where: str = "",
        values: Sequence[Any] = (),
    ) -> Row:
        """What `make` makes of one row of a table, which must be there."""
        found = self.read(table, make, where, values)
        if not found:
            raise InputError(damage(self.path, f"a row of {table} is not there"))
        return found[0]

    def insert(self, table: str, rows: Iterable[Sequence[Any]], verb: str = "INSERT") -> None:
        """Writes rows of a table, each with its checksum; a row begins with its id."""
        if table in LATER and not self.has(table):
            self.connection.execute(statements_of((table,))[0])
            self.mark_newest()
        marks = ", ".join("?" * (len(TABLES[table]) + 2))
        self.connection.executemany(
            f"{verb} INTO {table} VALUES ({marks})", [(*row, checksum(table, row)) for row in rows]
        )

    def mark_newest(self) -> None:
        """Says that an older recoup cannot read the file; inside a transaction."""
        self.connection.execute(f"PRAGMA user_version = {NEWEST}")

    def delete(self, table: str, where: str = "", values: Sequence[Any] = ()) -> None:
        """Takes rows out of a table: what waits in line, what is derived, leases of what was told.

        And a trajectory that an event keeps from then on. Nothing else ever goes.
        """
        self.connection.execute(f"DELETE FROM {table} {where}", values)

    def _sound(self, table: str, row: tuple[Any, ...]) -> tuple[Any, ...]:
        """`row` without its checksum, once that is known to hold."""
        content = row[:-1]
        if checksum(table, content) != row[-1]:
            raise InputError(damage(self.path, f"row {row[0]} of {table} is not as written"))
        return content

    def _make_tables(self) -> None:
        with self.writing():
            for statement in (*statements_of(TABLES.keys() - LATER), *EXTRAS):
                self.connection.execute(statement)
            self.connection.execute(f"PRAGMA application_id = {APPLICATION}")
            self.connection.execute(f"PRAGMA user_version = {VERSION}")
            self.insert("counters", [(0, *Counters())])

    # -- the count beside the file --

    def note_count(self, counters: Counters) -> None:
        """Writes how many results were told, and the last trial, to the count beside the file."""
        if self._counting is not None:
            told = counters.ok + counters.failed
            self._counting.note(Count(told, counters.last, self._identity))

    def _check_count(self, count: Count) -> None:
        """Raises where fewer results are there than were told."""
        counters = self.one("counters", counters_of)
        there = counters.ok + counters.failed
        if there < count.told:
            raise InputError(
                f"{missing_results(self.path, there, count.told)} Put the newer one back, or go on "
                f"without them by `recoup study check {self.path} --recover NEW`."
            )


def check_present(path: Path) -> None:
    """Raises unless there is a file with something in it."""
    check_path("the study's file", path)
    if path.is_dir():
        raise InputError(f"{path} is a directory, not a study file.")
    if not path.exists():
        raise InputError(f"there is no study in {path}.")
    if path.stat().st_size == 0:
        raise InputError(
            f"{path} is empty, so it holds no study: remove it to start anew, or restore it."
        )


def format_of(path: Path, connection: sqlite3.Connection) -> int:
    """The format of a study file, once it is known to be one."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION:
        raise InputError(f"{path} is a SQLite file of another program, not a study.")
    if version > NEWEST:
        raise InputError(
            f"{path} was written by a newer recoup (format {version}, this one reads "
            f"{NEWEST}): upgrade recoup."
        )
    return int(version)


def missing_results(path: Path, there: int, told: int) -> str:
    """A sentence about a file that has fewer results than were told to it."""
    return (
        f"{told - there} of the {told} results told to {path} are missing: its log "
        f"{beside(path, LOG).name} was removed, or an older copy was put in its place."
    )


def _identity(connection: sqlite3.Connection) -> int:
    """A number that two files do not share, unless one is a copy of the other."""
    query = "SELECT crc FROM events WHERE kind IN (?, ?) ORDER BY id"
    rows = connection.execute(query, (CREATED, RECOVERED)).fetchall()
    return zlib.crc32(repr(rows).encode())


def _check_log(path: Path, count: Count) -> None:
    """Raises where the log beside a file is that of another, which SQLite would write over it."""
    log = beside(path, LOG)
    if not count.identity or not log.exists() or not log.stat().st_size:
        return
    try:
        with closing(_connect(f"{address(path, 'ro')}&immutable=1")) as without_log:
            identity = _identity(without_log)
    except sqlite3.DatabaseError:  # damaged, or just being written: SQLite will say
        return
    if identity != count.identity:
        raise InputError(
            f"{log.name} is the log of another file that lay in the place of {path}: move it away, "
            f"with {beside(path, '-shm').name} and {beside(path, COUNT).name}, before {path.name} "
            "is opened."
        )


def _connect(where: str) -> sqlite3.Connection:
    connection = sqlite3.connect(where, timeout=BUSY, isolation_level=None, uri=True)
    connection.execute("PRAGMA trusted_schema = OFF")
    return connection


def _keep_log(connection: sqlite3.Connection) -> None:
    """A commit is on disk when it returns; readers are not held up by it."""
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")


def _check_format(path: Path, version: int) -> None:
    if version == 1:
        raise InputError(
            f"{path} is of format 1, written by recoup 0.1: `recoup study upgrade {path} NEW` "
            "carries it over to a new file."
        )
    if version not in (VERSION, NEWEST):
        raise InputError(damage(path, f"it says to be of format {version}, which there is none of"))

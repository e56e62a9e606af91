"""The study file: SQLite, one transaction for each thing that must not be lost.

Rows are written once and never changed, and each carries a checksum: whatever part of a damaged
file can still be read is known to be what was written. Opening a stranger's file runs no code:
there are numbers, JSON and text in it, nothing else.
"""

import sqlite3
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, TypeVar

from recoup.checks import InputError
from recoup.store.errors import BUSY, damage, read_only, sensible, sqlite_errors
from recoup.store.place import (
    COUNT,
    LOG,
    address,
    beside,
    check_place,
    is_writable,
    put,
    unfinished_of,
)
from recoup.store.records import counters_of
from recoup.store.rows import Counters
from recoup.store.schema import APPLICATION, EXTRAS, TABLES, VERSION, checksum

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
        """`counting` says whether a count is kept beside the file; an unfinished one has none."""
        self.path, self.connection, self.read_only = path, connection, read_only
        self._counting = counting and not read_only
        self._count: IO[bytes] | None = None  # beside the file

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
        connection = sqlite3.connect(":memory:", isolation_level=None)
        file = cls(Path(":memory:"), connection, counting=False)
        file._make_tables()
        fill(file)
        return file

    @classmethod
    def open(cls, path: Path) -> "StudyFile":
        """The file of an existing study, once it is known to be one that this program can read."""
        check_present(path)
        writable = is_writable(path)
        with sqlite_errors(path):
            connection = _connect(address(path, "rw" if writable else "ro"))
            try:
                _check_format(path, format_of(path, connection))
                if writable:
                    _keep_log(connection)
                file = cls(path, connection, read_only=not writable)
                file._check_count()
            except BaseException:
                connection.close()
                raise
        return file

    def close(self) -> None:
        """Closes the connection; the last one to do so leaves one file."""
        self.connection.close()
        if self._count is not None:
            self._count.close()
            self._count = None
        if self._counting and not beside(self.path, LOG).exists():
            beside(self.path, COUNT).unlink(missing_ok=True)

    # -- transactions --

    @contextmanager
    def writing(self) -> Iterator[None]:
        """A transaction that is on disk when it ends, or has not happened."""
        if self.read_only:
            raise InputError(read_only(self.path))
        with sqlite_errors(self.path):
            self.connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self.connection.execute("COMMIT")
            except BaseException:
                if self.connection.in_transaction:  # SQLite ends it by itself on a full disk
                    self.connection.execute("ROLLBACK")
                raise

    @contextmanager
    def reading(self) -> Iterator[None]:
        """All reads inside see the same state of the file, whatever others write meanwhile."""
        if self.connection.in_transaction:
            yield
            return
        with sqlite_errors(self.path):
            self.connection.execute("BEGIN")
            try:
                yield
            finally:
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")

    # -- rows --

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """All rows of a query."""
        with sqlite_errors(self.path):
            return self.connection.execute(query, values).fetchall()

    def read(
        self,
        table: str,
        make: Callable[[tuple[Any, ...]], Row],
        where: str = "",
        values: Sequence[Any] = (),
    ) -> list[Row]:
        """What `make` makes of the rows of a table, once their checksums are known to hold."""
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
        marks = ", ".join("?" * (len(TABLES[table]) + 2))
        self.connection.executemany(
            f"{verb} INTO {table} VALUES ({marks})", [(*row, checksum(table, row)) for row in rows]
        )

    def delete(self, table: str, where: str = "", values: Sequence[Any] = ()) -> None:
        """Takes rows out of a table; only what waits in line and what is derived ever goes."""
        self.connection.execute(f"DELETE FROM {table} {where}", values)

    def _sound(self, table: str, row: tuple[Any, ...]) -> tuple[Any, ...]:
        """`row` without its checksum, once that is known to hold."""
        content = row[:-1]
        if checksum(table, content) != row[-1]:
            raise InputError(damage(self.path, f"row {row[0]} of {table} is not as written"))
        return content

    def _make_tables(self) -> None:
        with self.writing():
            for table, columns in TABLES.items():
                body = ", ".join(f'"{name}" {kind}' for name, kind in map(str.split, columns))
                self.connection.execute(
                    f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, {body}, crc INTEGER)"
                )
            for statement in EXTRAS:
                self.connection.execute(statement)
            self.connection.execute(f"PRAGMA application_id = {APPLICATION}")
            self.connection.execute(f"PRAGMA user_version = {VERSION}")
            self.insert("counters", [(0, *Counters())])

    # -- the count beside the file --

    def note_count(self, counters: Counters) -> None:
        """Writes how many results were told, and the last trial, to a count beside the file.

        It is what a deleted log is noticed by. Not synchronised: it never runs ahead of the file.
        The results are safe without it, so that a disk with no room for it is no error.
        """
        if not self._counting:
            return
        with suppress(OSError):
            if self._count is None:
                path = beside(self.path, COUNT)
                self._count = path.open("r+b" if path.exists() else "w+b", buffering=0)
            self._count.seek(0)
            self._count.write(struct.pack("<qq", counters.ok + counters.failed, counters.last))

    def _check_count(self) -> None:
        """Raises where fewer results are there than were told."""
        counters = self.one("counters", counters_of)
        there, (told, _) = counters.ok + counters.failed, count_beside(self.path)
        if there < told:
            raise InputError(
                f"{missing_results(self.path, there, told)} Put the newer one back, or go on "
                f"without them by `recoup study check {self.path} --recover NEW`."
            )


def check_present(path: Path) -> None:
    """Raises unless there is a file with something in it."""
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
    if version > VERSION:
        raise InputError(
            f"{path} was written by a newer recoup (format {version}, this one reads "
            f"{VERSION}): upgrade recoup."
        )
    return int(version)


def count_beside(path: Path) -> tuple[int, int]:
    """How many results were told before a crash, and the last trial, as the count beside it says.

    Zeros where there is none.
    """
    try:
        content = beside(path, COUNT).read_bytes()
    except OSError:
        return 0, 0
    return struct.unpack("<qq", content) if len(content) == 16 else (0, 0)


def missing_results(path: Path, there: int, told: int) -> str:
    """A sentence about a file that has fewer results than were told to it."""
    return (
        f"{told - there} of the {told} results told to {path} are missing: its log "
        f"{path.name}{LOG} was removed, or an older copy was put in its place."
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
    if version != VERSION:
        raise InputError(damage(path, f"it says to be of format {version}, which there is none of"))

"""The study file: SQLite, one transaction for each thing that must not be lost.

Rows are written once and never changed (but for what `Store` puts right, and leases), and each
carries a checksum: whatever part of a damaged file can still be read is known to be what was
written. Opening a stranger's file runs no code: there are numbers, JSON and text in it, nothing
else.
"""

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar
from weakref import WeakSet

from recoup.checks import InputError, check_path
from recoup.outputs import BESIDE, unfinished_of
from recoup.store.codec import counters_of
from recoup.store.connecting import (
    TO_WRITE,
    Access,
    Link,
    check_forked,
    check_log,
    connect,
    connected,
    empty_log,
    has_other,
    identity,
    keep_log,
)
from recoup.store.count import Count, Counting, count_beside
from recoup.store.errors import Damaged, NoRoom, damage, opened_to_read, sensible, sqlite_errors
from recoup.store.names import check_names, why_only_read
from recoup.store.place import (
    LOG,
    MEMORY,
    address,
    beside,
    check_place,
    is_writable,
    put,
    settled,
)
from recoup.store.rows import Counters
from recoup.store.schema import (
    APPLICATION,
    EXTRAS,
    FORMAT,
    LATER,
    TABLES,
    check_schema,
    checksum,
    is_sound,
    our_schema,
    statements_of,
)
from recoup.store.turns import Turn

TOLD, NOTED = "results told to", "events, as amendments are, noted in"  # a file
Row = TypeVar("Row")


class StudyFile:
    """A connection to a study file: transactions, and rows with their checksums.

    Threads share it: a transaction is one thread's, and the others wait for its end.
    """

    def __init__(
        self,
        path: Path,
        connection: sqlite3.Connection,
        access: Access = TO_WRITE,
        counting: bool = True,
    ) -> None:
        """`path` is how it was named, and is shown; what is opened later lies where it lay then.

        `counting` says whether a count is kept beside the file; an unfinished one has none.
        """
        self.path, self.read_only, self._access = path, not access.written, access
        self.turn = Turn()
        place = None if str(path) == MEMORY else settled(path)
        self._link = Link(path, place, connection, access, known=counting)
        self._count_at = place if counting else None
        self._counting = Counting(place) if place and counting and access.written else None
        self._identity = 0
        self._looked: tuple[int, int] | None = None  # when it was changed, and its size
        FILES.add(self)

    @classmethod
    def create(cls, path: Path, fill: Callable[["StudyFile"], None]) -> "StudyFile":
        """A new file with what `fill` writes into it; it is there whole, or not."""
        check_place(path)
        unfinished = unfinished_of(path)
        unfinished.unlink(missing_ok=True)
        try:
            with sqlite_errors(path):
                connection = connect(address(unfinished, "rwc"))
                try:
                    keep_log(connection)
                    file = cls(path, connection, counting=False)
                    file._make_tables()
                    fill(file)
                    empty_log(path, connection)
                finally:
                    connection.close()
            put(unfinished, path)
        finally:
            for ending in ("", *BESIDE):  # where that failed, a log is left
                Path(f"{unfinished}{ending}").unlink(missing_ok=True)
        try:
            return cls.open(path)
        except NoRoom as wrong:
            then = "the new study is there, and whole; free some space to open it."
            raise NoRoom(wrong.what, then) from None

    def copy_to(self, path: Path) -> None:
        """Writes all that it holds now to a new file, whoever writes to it meanwhile."""
        check_place(path)
        unfinished = unfinished_of(path)
        try:
            with (
                self.turn.taken(),
                sqlite_errors(path),
                closing(connect(address(unfinished, "rwc"))) as copied,
            ):
                self.connection.backup(copied)
            put(unfinished, path)
        finally:
            for ending in ("", *BESIDE):
                Path(f"{unfinished}{ending}").unlink(missing_ok=True)

    @classmethod
    def in_memory(cls) -> "StudyFile":
        """The same without a file, and empty; it ends with the process."""
        connection = sqlite3.connect(MEMORY, isolation_level=None, check_same_thread=False)
        file = cls(Path(MEMORY), connection, counting=False)
        file._make_tables()
        return file

    @classmethod
    def open(cls, path: Path, read_only: bool = False) -> "StudyFile":
        """The file of an existing study, once it is known to be one that this program can read.

        With `read_only` nothing is written to it, and nothing made beside it that stays.
        """
        check_present(path)
        count = count_beside(path)  # before the file is read: it never runs ahead of that
        check_log(path, count)
        check_forked(settled(path))
        writable = check_names(path) and is_writable(path)
        access = Access(writable and not read_only, writable, read_only)
        with sqlite_errors(path):
            connection, file = connected(path, access), None
            try:
                _check_format(path, format_of(path, connection))
                check_schema(path, connection, our_schema())
                if access.written:
                    keep_log(connection)
                file = cls(path, connection, access)
                file._identity = identity(connection)
                file._check_count(count)
            except BaseException:
                connection.close() if file is None else file._link.close()
                raise
        return file

    @property
    def connection(self) -> sqlite3.Connection:
        """The connection of this process to the file as it lies."""
        return self._link.connection

    @property
    def connected(self) -> int:
        """How often it was connected to: to another connection, all may have changed."""
        return self._link.times

    def close(self) -> None:
        """Closes the connection; the last one to do so leaves one file."""
        with self.turn.taken(), sqlite_errors(self.path):
            folded = self._link.close()
            counting, place = self._counting, self._count_at
            if place and self._access.wanted and self._access.beside:
                counting = Counting(place)  # of others, who have closed it meanwhile
            if place and counting is not None:
                counting.close(keep=not folded)

    # -- transactions --

    @contextmanager
    def writing(self) -> Iterator[None]:
        """A transaction that is on disk when it ends, or has not happened."""
        self.check_written()
        with self.turn.taken(), sqlite_errors(self.path):
            self.connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._link.check_there()
                self._check_same()
                self.connection.execute("COMMIT")
            except BaseException:
                if self.connection.in_transaction:  # SQLite ends it by itself on a full disk
                    self.connection.execute("ROLLBACK")
                raise

    def check_written(self) -> None:
        """Raises where the file is only read."""
        if self.read_only:
            raise InputError(
                opened_to_read(self.path) if self._access.wanted else why_only_read(self.path)
            )

    def _check_same(self) -> None:
        """Raises where another study was copied over this one: both would end up as neither."""
        if self._count_at is None or not self._identity:
            return
        found = self._count_at.stat()
        if self._looked == (found.st_mtime_ns, found.st_size):
            return
        if has_other(self._count_at, self._identity):
            raise Damaged(
                f"another study was copied over {self.path} while it was open: nothing was "
                "written. Close it wherever it is open, and put the right file back."
            )
        self._looked = found.st_mtime_ns, found.st_size

    @contextmanager
    def reading(self) -> Iterator[None]:
        """All reads inside see the same state of the file, whatever others write meanwhile."""
        with self.turn.taken(), sqlite_errors(self.path):
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
        with self.turn.taken(), sqlite_errors(self.path):
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
        with self.turn.taken(), sqlite_errors(self.path), sensible(self.path):
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
            raise Damaged(damage(self.path, f"a row of {table} is not there"))
        return found[0]

    def insert(self, table: str, rows: Iterable[Sequence[Any]], verb: str = "INSERT") -> None:
        """Writes rows of a table, each with its checksum; a row begins with its id."""
        if table in LATER and not self.has(table):
            self.connection.execute(statements_of((table,))[0])
        marks = ", ".join("?" * (len(TABLES[table]) + 2))
        self.connection.executemany(
            f"{verb} INTO {table} VALUES ({marks})", [(*row, checksum(table, row)) for row in rows]
        )

    def delete(self, table: str, where: str = "", values: Sequence[Any] = ()) -> None:
        """Takes rows out: of what waits, is derived or lent, and of what an event keeps then."""
        self.connection.execute(f"DELETE FROM {table} {where}", values)

    def _sound(self, table: str, row: tuple[Any, ...]) -> tuple[Any, ...]:
        """`row` without its checksum, once that is known to hold."""
        if not is_sound(table, row):
            raise Damaged(damage(self.path, f"row {row[0]} of {table} is not as written"))
        return row[:-1]

    def _make_tables(self) -> None:
        with self.writing():
            for statement in (*statements_of(TABLES.keys() - set(LATER)), *EXTRAS):
                self.connection.execute(statement)
            self.connection.execute(f"PRAGMA application_id = {APPLICATION}")
            self.connection.execute(f"PRAGMA user_version = {FORMAT}")
            self.insert("counters", [(0, *Counters())])

    # -- the count beside the file --

    def note_count(self, counters: Counters, events: int) -> None:
        """Writes how many results were told, and the last trial and event, beside the file."""
        if self._counting is not None:
            told = counters.ok + counters.failed
            self._counting.note(Count(told, counters.last, self._identity, events))

    def last_id(self, table: str) -> int:
        """The highest id of a table, 0 where it is empty."""
        return int(self.rows(f"SELECT COALESCE(MAX(id), 0) FROM {table}")[0][0])

    def _check_count(self, count: Count) -> None:
        """Raises where fewer results are there than were told, or fewer events than were noted."""
        if count.identity not in (0, self._identity):  # of another file that lay here
            return
        counters, events = self.one("counters", counters_of), self.last_id("events")
        told = (TOLD, counters.ok + counters.failed, count.told)
        for what, there, counted in (told, (NOTED, events, count.events)):
            if there < counted:
                raise Damaged(
                    f"{missing(self.path, what, there, counted)} Put the newer one back, or go on "
                    f"without them by `recoup study check {self.path} --recover NEW`."
                )


FILES: "WeakSet[StudyFile]" = WeakSet()  # that this process has open
FORKING = 2.0  # seconds, at most, that a fork waits for threads which are at a file


class _Forks:
    """What is done where this process is forked: the child has no connection of the parent's.

    No thread is at a file meanwhile, as far as that is soon; one that is leaves its connection.
    """

    def __init__(self) -> None:
        self._lock, self._files, self._turns = Lock(), list[StudyFile](), ExitStack()

    def before(self) -> None:
        self._lock.acquire()
        for file in list(FILES):
            if self._turns.enter_context(file.turn.taken(FORKING)):
                self._files.append(file)

    def in_parent(self) -> None:
        self._files.clear()
        self._turns.close()
        self._lock.release()

    def in_child(self) -> None:
        for file in list(FILES):
            file._link.leave(at_rest=file in self._files)
        self.in_parent()


if hasattr(os, "register_at_fork"):  # not on Windows, where nothing forks
    forks = _Forks()
    os.register_at_fork(
        before=forks.before, after_in_parent=forks.in_parent, after_in_child=forks.in_child
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
        raise Damaged(f"{path} is a SQLite file of another program, not a study.")
    if version > FORMAT:
        raise InputError(
            f"{path} was written by a newer recoup (format {version}, this one reads "
            f"{FORMAT}): upgrade recoup."
        )
    return int(version)


def missing(path: Path, what: str, there: int, count: int) -> str:
    """A sentence about a file that has fewer results, or events, than its count says."""
    return (
        f"{count - there} of the {count} {what} {path} are missing: its log "
        f"{beside(path, LOG).name} was removed, or an older copy was put in its place."
    )


def _check_format(path: Path, version: int) -> None:
    if version < FORMAT:
        raise InputError(
            f"{path} is of format {version}, of a recoup that was never published, and this one "
            f"reads {FORMAT}: go on with the clone that wrote it, or `recoup study export` there "
            "and `recoup study import` here."
        )

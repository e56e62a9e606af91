"""The study file: SQLite, one transaction for each thing that must not be lost.

Rows are written once and never changed, and each carries a checksum: whatever part of a damaged
file can still be read is known to be what was written. Opening a stranger's file runs no code:
there are numbers, JSON and text in it, nothing else.
"""

import json
import os
import re
import sqlite3
import struct
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from recoup.checks import InputError

APPLICATION = 0x5265636F  # "Reco": told to SQLite, so that a foreign file is known as such
VERSION = 1
BUSY = 10.0  # seconds to wait for another process
LOG, COUNT = "-wal", "-count"  # what lies beside a file that is open
CREATED = "created"  # the event that repeats the settings
UNFINISHED = ".new"
DAMAGE = ("malformed", "disk image", "no such", "disk I/O", "decode")  # in what SQLite says

TABLES = {  # every one has `id INTEGER PRIMARY KEY` before these columns, and `crc INTEGER` behind
    "counters": (  # one row, the only one that changes; first in the file
        "trials INTEGER",
        "ok INTEGER",
        "failed INTEGER",
        "counted INTEGER",
        "fresh INTEGER",
        "last INTEGER",
    ),
    "settings": ("key TEXT", "value TEXT"),
    "proposals": ("origin TEXT", "mean BLOB", "std BLOB"),
    "moves": (
        "proposal INTEGER",  # that the move made
        "counted INTEGER",  # the last result that it was made of
        "memory TEXT",  # of the update rule
        "info TEXT",  # what it was made of
        "made REAL",
    ),
    "asked": (
        "kind TEXT",
        "proposal INTEGER",  # that drew it, if one did
        "theta BLOB",
        "seed INTEGER",
        "asked_at REAL",
    ),
    "told": (
        "status TEXT",
        "counted INTEGER",  # its place among the results that moves are made of
        "return REAL",
        "stderr REAL",
        "episodes INTEGER",
        "note TEXT",
        "told_at REAL",
    ),
    "trajectories": ("steps INTEGER", "content BLOB"),
    "queue": ("theta BLOB", "note TEXT"),
    "events": ("kind TEXT", "content TEXT", "at REAL"),
    "own": ("content BLOB",),  # by move: densities of its new results under what drew them
    "mixture": ("content BLOB",),  # of the newest move alone: of all results, under all proposals
}
EXTRAS = """
CREATE UNIQUE INDEX told_in_order ON told (counted);
CREATE VIEW trials AS
    SELECT asked.id AS id, kind, proposal, theta, seed, COALESCE(status, 'pending') AS status,
           "return", stderr, episodes, note, asked_at, told_at
    FROM asked LEFT JOIN told ON told.id = asked.id;
"""


class Conflict(InputError):
    """Two rows claim the same place."""


class Exists(InputError):
    """There is a file where a new one was to be made."""


class Counters(NamedTuple):
    """How many there are, kept beside the rows so that missing ones are noticed."""

    trials: int
    ok: int
    failed: int
    counted: int  # results that moves are made of, in the order of telling
    fresh: int  # of them, those drawn by this study that no move was made of yet
    last: int  # the number of the last trial


class StudyFile:
    """A connection to a study file, and the few sentences for what can be wrong with one."""

    def __init__(self, path: Path, connection: sqlite3.Connection, read_only: bool = False) -> None:
        self.path, self.connection, self.read_only = path, connection, read_only
        self._count: IO[bytes] | None = None  # beside the file

    @classmethod
    def create(
        cls,
        path: Path,
        settings: dict[str, Any],
        then: Callable[[sqlite3.Connection], None] = lambda connection: None,
        **start: Any,
    ) -> "StudyFile":
        """A new file with the settings and the first proposal in it; it is there whole, or not.

        `start` is the first distribution, `mean` and `std`, the update rule's `memory`, and `info`;
        `then` writes what else is to be there from the beginning.
        """
        _check_place(path)
        unfinished = path.with_name(f"{path.name}.{os.getpid()}{UNFINISHED}")
        unfinished.unlink(missing_ok=True)
        try:
            with telling(path):
                connection = _connect(f"file:{_quoted(unfinished)}")
                file = cls(unfinished, connection)
                try:
                    _fill(file, settings, **start)
                    with file.writing():
                        then(connection)
                finally:
                    connection.close()
                _put(unfinished, path)
        finally:
            unfinished.unlink(missing_ok=True)
        return cls.open(path)

    @classmethod
    def in_memory(cls, settings: dict[str, Any], **start: Any) -> "StudyFile":
        """The same without a file; it ends with the process."""
        file = cls(Path(":memory:"), sqlite3.connect(":memory:", isolation_level=None))
        _fill(file, settings, **start)
        return file

    @classmethod
    def open(cls, path: Path) -> "StudyFile":
        """The file of an existing study, once it is known to be one that this program can read."""
        if path.is_dir():
            raise InputError(f"{path} is a directory, not a study file.")
        if path.stat().st_size == 0:
            raise InputError(
                f"{path} is empty, so it holds no study: remove it to start anew, or restore it."
            )
        with telling(path):
            read_only = not _writable(path)
            connection = _connect(_address(path, read_only))
            (application,) = connection.execute("PRAGMA application_id").fetchone()
            (version,) = connection.execute("PRAGMA user_version").fetchone()
        if application != APPLICATION:
            connection.close()
            raise InputError(f"{path} is a SQLite file of another program, not a study.")
        if version > VERSION:
            connection.close()
            raise InputError(
                f"{path} was written by a newer recoup (format {version}, this one reads "
                f"{VERSION}): upgrade recoup."
            )
        file = cls(path, connection, read_only)
        try:
            file._check_count()
        except InputError:
            connection.close()
            raise
        return file

    def close(self) -> None:
        """Closes the connection; the last one to do so leaves one file."""
        self.connection.close()
        if self._count is not None:
            self._count.close()
            self._count = None
        if not self.read_only and not _beside(self.path, LOG).exists():
            _beside(self.path, COUNT).unlink(missing_ok=True)

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction that is on disk when it ends, or has not happened."""
        if self.read_only:
            raise InputError(_sentence(self.path, "readonly"))
        with telling(self.path):
            self.connection.execute("BEGIN IMMEDIATE")
            try:
                yield self.connection
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
        with telling(self.path):
            self.connection.execute("BEGIN")
            try:
                yield
            finally:
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")

    def rows(self, query: str, values: Any = ()) -> list[tuple[Any, ...]]:
        """All rows of a query."""
        with telling(self.path):
            return self.connection.execute(query, values).fetchall()

    def read(self, table: str, where: str = "", values: Any = ()) -> list[tuple[Any, ...]]:
        """Rows of a table in full, once their checksums are known to hold."""
        rows = self.rows(f"SELECT * FROM {table} {where}", values)
        return [self.sound(table, row) for row in rows]

    def sound(self, table: str, row: tuple[Any, ...]) -> tuple[Any, ...]:
        """`row` without its checksum, once that is known to hold."""
        if checksum(table, row[:-1]) != row[-1]:
            raise InputError(damage(self.path, f"row {row[0]} of {table} is not as written"))
        return row[:-1]

    def settings(self) -> dict[str, Any]:
        """The study's settings, as they were when it was made."""
        return {key: json.loads(value) for _, key, value in self.read("settings")}

    def counters(self) -> Counters:
        """How many trials and results there are."""
        return Counters(*self.one("counters")[1:])

    def one(self, table: str, where: str = "", values: Any = ()) -> tuple[Any, ...]:
        """One row of a table, which must be there."""
        found = self.read(table, where, values)
        if not found:
            raise InputError(damage(self.path, f"a row of {table} is not there"))
        return found[0]

    def note_count(self, counters: Counters) -> None:
        """Writes how many results were told, and the last trial, to a count beside the file.

        It is what a deleted log is noticed by. Not synchronised: it never runs ahead of the file.
        """
        if self._count is None:
            path = _beside(self.path, COUNT)
            self._count = path.open("r+b" if path.exists() else "w+b", buffering=0)
        self._count.seek(0)
        self._count.write(struct.pack("<qq", counters.ok + counters.failed, counters.last))

    def _check_count(self) -> None:
        """Raises where fewer results are there than were told."""
        counters = self.counters()
        there, (told, _) = counters.ok + counters.failed, count_beside(self.path)
        if there < told:
            raise InputError(
                f"{told - there} of the {told} results told to {self.path} are missing: its log "
                f"{self.path.name}{LOG} was removed, or an older copy was put in its place. Put "
                f"the newer one back, or go on without them by `recoup study check {self.path} "
                "--recover NEW`."
            )


def count_beside(path: Path) -> tuple[int, int]:
    """How many results were told before a crash, and the last trial, as the count beside it says.

    Zeros where there is none.
    """
    try:
        content = _beside(path, COUNT).read_bytes()
    except OSError:
        return 0, 0
    return struct.unpack("<qq", content) if len(content) == 16 else (0, 0)


def insert(
    connection: sqlite3.Connection, table: str, rows: Iterable[Sequence[Any]], verb: str = "INSERT"
) -> None:
    """Writes rows of a table, each with its checksum; a row begins with its id."""
    marks = ", ".join("?" * (len(TABLES[table]) + 2))
    connection.executemany(
        f"{verb} INTO {table} VALUES ({marks})", [(*row, checksum(table, row)) for row in rows]
    )


def counters_of(connection: sqlite3.Connection) -> Counters:
    """The counters, inside a transaction."""
    return Counters(*connection.execute("SELECT * FROM counters").fetchone()[1:-1])


def count(connection: sqlite3.Connection, counters: Counters) -> None:
    """Writes the counters, inside a transaction."""
    insert(connection, "counters", [(0, *counters)], verb="INSERT OR REPLACE")


def note_event(connection: sqlite3.Connection, kind: str, content: dict[str, Any]) -> None:
    """Writes that something happened to the study."""
    (last,) = connection.execute("SELECT COALESCE(MAX(id), 0) FROM events").fetchone()
    insert(connection, "events", [(last + 1, kind, json.dumps(content), time.time())])


def checksum(table: str, row: Sequence[Any]) -> int:
    """CRC-32 of a row's content, which also says of which table it is."""
    crc = zlib.crc32(table.encode())
    for value in row:
        crc = zlib.crc32(value if isinstance(value, bytes) else repr(value).encode(), crc)
    return crc


def _fill(
    file: StudyFile,
    settings: dict[str, Any],
    mean: Any,
    std: Any,
    memory: list[Any],
    info: dict[str, Any] | None = None,
) -> None:
    connection = file.connection
    for table, columns in TABLES.items():
        body = ", ".join(f'"{name}" {kind}' for name, kind in map(str.split, columns))
        connection.execute(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, {body}, crc INTEGER)")
    connection.executescript(EXTRAS)
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    connection.execute(f"PRAGMA user_version = {VERSION}")
    with file.writing():
        rows = [(i, key, json.dumps(value)) for i, (key, value) in enumerate(settings.items())]
        count(connection, Counters(0, 0, 0, 0, 0, 0))
        insert(connection, "settings", rows)
        insert(connection, "proposals", [(0, "start", packed(mean), packed(std))])
        texts = (json.dumps(memory), json.dumps(info or {}))
        insert(connection, "moves", [(0, 0, 0, *texts, time.time())])
        note_event(connection, CREATED, settings)  # on another page, in case theirs is lost


def _connect(address: str) -> sqlite3.Connection:
    connection = sqlite3.connect(address, timeout=BUSY, isolation_level=None, uri=True)
    connection.execute("PRAGMA trusted_schema = OFF")
    if "mode=ro" not in address:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
    return connection


def _address(path: Path, read_only: bool) -> str:
    if not read_only:
        return f"file:{_quoted(path)}?mode=rw"
    still = "" if _beside(path, LOG).exists() else "&immutable=1"
    return f"file:{_quoted(path)}?mode=ro{still}"


def _writable(path: Path) -> bool:
    return os.access(path, os.W_OK) and os.access(path.absolute().parent, os.W_OK)


def _quoted(path: Path) -> str:
    from urllib.parse import quote

    whole = os.fsencode(path.absolute())
    return quote(b"/" + whole.lstrip(b"/")) if os.sep == "/" else quote(whole)


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)


def _check_place(path: Path) -> None:
    """Raises unless a new file can be made there; leftovers of killed processes are cleared."""
    if path.exists():
        raise Exists(f"{path} exists already.")
    if not path.parent.is_dir():
        raise InputError(f"{path.parent} does not exist: make it, or name another place.")
    if _beside(path, LOG).exists():
        raise InputError(
            f"{path}{LOG} lies there, the log of a study whose file {path} is gone: put the file "
            "back, or remove the log to start anew."
        )
    _beside(path, COUNT).unlink(missing_ok=True)
    unfinished = re.compile(rf"{re.escape(path.name)}\.(\d+)\{UNFINISHED}(-wal|-shm|-journal)?")
    for leftover in path.parent.iterdir():
        match = unfinished.fullmatch(leftover.name)
        if match and not _alive(match[1]):
            leftover.unlink(missing_ok=True)


def _alive(process: str) -> bool:
    """Whether a process with this number is running, as far as can be told."""
    try:
        os.kill(int(process), 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True


def _put(unfinished: Path, path: Path) -> None:
    """Gives a finished file its name, for good, unless another process has taken it."""
    try:
        os.link(unfinished, path)  # fails, where a rename would overwrite
    except FileExistsError:
        raise Exists(f"{path} exists already: another process has made it.") from None
    except OSError:  # a file system without links
        unfinished.replace(path)
    unfinished.unlink(missing_ok=True)
    with suppress(OSError):  # not every system can synchronise a directory
        descriptor = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def telling(path: Path) -> Iterator[None]:
    """What SQLite has against a file, as a sentence that says what to do."""
    try:
        yield
    except sqlite3.IntegrityError as wrong:
        raise Conflict(damage(path, str(wrong))) from None
    except sqlite3.DatabaseError as wrong:
        raise InputError(_sentence(path, str(wrong))) from None


@contextmanager
def understood(path: Path) -> Iterator[None]:
    """What stands in a file but makes no sense, as a sentence; RECOUP_TRACEBACK=1 shows where."""
    try:
        yield
    except InputError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as wrong:
        if os.environ.get("RECOUP_TRACEBACK"):
            raise
        reason = f"{type(wrong).__name__}: {wrong}".partition("\n")[0]
        raise InputError(damage(path, reason)) from None
    except (AssertionError, MemoryError, RecursionError) as wrong:
        if os.environ.get("RECOUP_TRACEBACK"):
            raise
        raise InputError(damage(path, type(wrong).__name__)) from None


def damage(path: Path, reason: str) -> str:
    """A sentence about a file that is not as it was written, and what to do."""
    return (
        f"{path} is damaged ({reason}): `recoup study check {path} --recover NEW` saves what can "
        "be read."
    )


def _sentence(path: Path, reason: str) -> str:
    if "locked" in reason or "busy" in reason:
        return f"{path} is being written by another process for over {BUSY:.0f} s: try again."
    if "not a database" in reason:
        return f"{path} is not a study file (not SQLite)."
    if "readonly" in reason or "read-only" in reason:
        return f"{path} cannot be written to: it, or its directory, is read-only."
    if "full" in reason:
        return f"the disk of {path} is full: nothing was changed; free some space and try again."
    if "closed database" in reason:
        return f"the study in {path} was closed: open it again."
    if any(word in reason for word in DAMAGE):
        return damage(path, reason)
    return f"{path}: {reason}."


def packed(values: Any) -> bytes:
    """Numbers as eight bytes each, little-endian."""
    return np.ascontiguousarray(values, "<f8").tobytes()


def unpacked(content: bytes) -> np.ndarray:
    """What `packed` has packed."""
    return np.frombuffer(content, "<f8").astype(np.float64)

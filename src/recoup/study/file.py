"""The study file: SQLite, one transaction for each thing that must not be lost.

Opening a stranger's file runs no code: there are numbers, JSON and text in it, nothing else.
"""

import json
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from recoup.checks import InputError

APPLICATION = 0x5265636F  # "Reco": told to SQLite, so that a foreign file is known as such
VERSION = 1
BUSY = 10.0  # seconds to wait for another process
SCHEMA = """
CREATE TABLE settings (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE proposals (
    id INTEGER PRIMARY KEY,
    mean BLOB NOT NULL,
    std BLOB NOT NULL,
    memory TEXT NOT NULL,  -- of the update rule
    results INTEGER NOT NULL,  -- finite results that had been told when it was made
    info TEXT NOT NULL,  -- what the move that made it was made of
    made REAL NOT NULL
);
CREATE TABLE trials (
    id INTEGER PRIMARY KEY,
    proposal INTEGER NOT NULL REFERENCES proposals(id),
    theta BLOB NOT NULL,
    seed INTEGER NOT NULL,
    status TEXT NOT NULL,
    told INTEGER UNIQUE,  -- its place in the order of telling
    value REAL,
    stderr REAL,
    episodes INTEGER,
    note TEXT,
    asked_at REAL NOT NULL,
    told_at REAL
);
CREATE INDEX trials_by_status ON trials (status);
"""


class StudyFile:
    """A connection to a study file, and the few sentences for what can be wrong with one."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path, self.connection = path, connection

    @classmethod
    def create(cls, path: Path, settings: dict[str, Any], memory: list[Any]) -> "StudyFile":
        """A new file with the settings and the first proposal in it; it is there whole, or not.

        `memory` is that of the update rule at the start.
        """
        if not path.parent.is_dir():
            raise InputError(f"{path.parent} does not exist: make it, or name another place.")
        unfinished = path.with_name(path.name + ".new")
        unfinished.unlink(missing_ok=True)
        with telling(path):
            connection = _connect(unfinished)
            connection.executescript(SCHEMA)
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            connection.execute(f"PRAGMA user_version = {VERSION}")
            rows = [(key, json.dumps(value)) for key, value in settings.items()]
            connection.executemany("INSERT INTO settings VALUES (?, ?)", rows)
            connection.execute(
                "INSERT INTO proposals VALUES (0, ?, ?, ?, 0, '{}', ?)",
                (
                    packed(settings["mean"]),
                    packed(settings["std"]),
                    json.dumps(memory),
                    time.time(),
                ),
            )
            connection.close()
            unfinished.replace(path)
        return cls.open(path)

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
            connection = _connect(path)
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
        return cls(path, connection)

    def close(self) -> None:
        """Closes the connection; the log is folded into the one file."""
        self.connection.close()

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction that is on disk when it ends, or has not happened."""
        with telling(self.path):
            self.connection.execute("BEGIN IMMEDIATE")
            try:
                yield self.connection
            except BaseException:
                if self.connection.in_transaction:  # SQLite ends it by itself on a full disk
                    self.connection.execute("ROLLBACK")
                raise
            self.connection.execute("COMMIT")

    def rows(self, query: str, values: Any = ()) -> list[tuple[Any, ...]]:
        """All rows of a query."""
        with telling(self.path):
            return self.connection.execute(query, values).fetchall()

    def settings(self) -> dict[str, Any]:
        """The study's settings, as they were when it was made."""
        return {key: json.loads(value) for key, value in self.rows("SELECT * FROM settings")}


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=BUSY, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    return connection


@contextmanager
def telling(path: Path) -> Iterator[None]:
    """What SQLite has against a file, as a sentence that says what to do."""
    try:
        yield
    except sqlite3.OperationalError as wrong:
        raise InputError(_sentence(path, str(wrong))) from None
    except sqlite3.DatabaseError as wrong:
        if isinstance(wrong, sqlite3.IntegrityError):
            raise
        raise InputError(_sentence(path, str(wrong))) from None


def _sentence(path: Path, reason: str) -> str:
    if "locked" in reason:
        return f"{path} is being written by another process for over {BUSY:.0f} s: try again."
    if "not a database" in reason:
        return f"{path} is not a study file (not SQLite)."
    if "malformed" in reason or "disk image" in reason:
        return f"{path} is damaged ({reason}): `recoup study check` says what can be saved."
    if "readonly" in reason or "read-only" in reason:
        return f"{path} cannot be written to: it, or its directory, is read-only."
    if "full" in reason:
        return f"the disk of {path} is full: nothing was changed; free some space and try again."
    return f"{path}: {reason}."


def packed(values: Any) -> bytes:
    """Numbers as eight bytes each, little-endian."""
    return np.ascontiguousarray(values, "<f8").tobytes()


def unpacked(content: bytes) -> np.ndarray:
    """What `packed` has packed."""
    return np.frombuffer(content, "<f8").astype(np.float64)

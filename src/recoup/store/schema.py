"""The tables of a study file, the checksum of a row, and arrays as bytes."""

import json
import sqlite3
import struct
import zlib
from collections.abc import Collection, Sequence
from contextlib import closing
from functools import cache
from math import prod
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np

from recoup.checks import InputError
from recoup.store.errors import Damaged, damage
from recoup.store.rows import Leaf, Memory

APPLICATION = 0x5265636F  # "Reco": told to SQLite, so that a foreign file is known as such
FORMAT = 10  # of study files

TABLES = {  # every one has `id INTEGER PRIMARY KEY` before these columns, and `crc INTEGER` after
    "counters": (  # one row, which changes with every result; first in the file
        "trials INTEGER",  # how many there are
        "ok INTEGER",  # results with a return
        "failed INTEGER",  # results without one
        "counted INTEGER",  # the last place that a result was given
        "fresh INTEGER",  # results that no move was made of yet
        "last INTEGER",  # the number of the newest move
    ),
    "settings": (  # what the study was made with
        "key TEXT",  # the name of a setting
        "value TEXT",  # as JSON
    ),
    "proposals": (  # distributions that drew samples, each once
        "origin TEXT",  # what made it: start, move, or where it was imported from
        "family TEXT",  # the kind of distribution
        "numbers BLOB",  # of its rho, one array after the other
    ),
    "moves": (  # of the distribution, the start among them as 0
        "proposal INTEGER",  # that the move made
        "counted INTEGER",  # the last result that it was made of
        "memory BLOB",  # of the update rule, NULL while it has not begun
        "info TEXT",  # what it was made of
        "made REAL",  # when
    ),
    "asked": (  # trials, by number
        "kind TEXT",  # drawn, mirror, repeat, mean, own or imported
        "proposal INTEGER",  # that drew it, if one did
        "theta BLOB",  # latent
        "seed INTEGER",  # of the episode's randomness
        "asked_at REAL",  # when
    ),
    "told": (  # results, by trial
        "status TEXT",  # ok or failed
        "counted INTEGER",  # its place among the results that moves are made of
        "return REAL",  # or the cost
        "stderr REAL",  # of several episodes
        "episodes INTEGER",  # of which the return is the mean
        "note TEXT",  # why it failed
        "told_at REAL",  # when
    ),
    "trajectories": (  # by trial, for methods that explore in action space
        "steps INTEGER",  # how many happened
        "content BLOB",  # rows of features, actions and reward
    ),
    "queue": (  # trials of one's own choice that wait for `ask`
        "theta BLOB",  # latent
        "note TEXT",  # why, for people
    ),
    "events": (  # what else happened: amended, cancelled, noted and so on
        "kind TEXT",  # which of them
        "content TEXT",  # as JSON
        "at REAL",  # when
    ),
    "own": (  # by move: densities of its new results under what drew them
        "content BLOB",  # their logarithms
    ),
    "mixture": (  # of the newest move alone: of all results, under all proposals
        "content BLOB",  # logarithms of their densities
    ),
    "tests": (  # by move: what fresh episodes said, in a training run
        "mean REAL",  # of the returns
        "stderr REAL",  # of the mean
        "episodes INTEGER",  # how many
        "wall_s REAL",  # seconds since the run began
    ),
    "leases": (  # by trial: until when it is lent to whoever asked for it
        "until REAL",  # NULL: it is not handed out again
        "times INTEGER",  # how often it was handed out
    ),
    "also": (  # by trial: numbers told beside its return, or known before it
        "content TEXT",  # as JSON, by name
    ),
    "requests": (  # by a number of its key: what was asked for, so that it is not given twice
        "key TEXT",  # that the client chose
        "body TEXT",  # of the request
        "trials TEXT",  # that it was given
        "at REAL",  # when
    ),
    "workers": (  # by trial: to whom it was handed out last
        "name TEXT",  # as it called itself
    ),
}
NULLS = {  # columns that may be empty; of `tests` all
    "moves": ("memory",),
    "asked": ("proposal",),
    "told": ("counted", "return", "stderr", "episodes", "note"),
    "queue": ("note",),
    "leases": ("until",),
    "tests": ("mean", "stderr", "episodes", "wall_s"),
}
OF_SQL = {"INTEGER": int, "REAL": float, "TEXT": str, "BLOB": bytes}


def _kinds(table: str, column: str) -> tuple[type, ...]:
    """What a column may hold."""
    name, kind = column.split()
    return (OF_SQL[kind], *((NoneType,) if name in NULLS.get(table, ()) else ()))


KINDS = {name: ((int,), *(_kinds(name, c) for c in columns)) for name, columns in TABLES.items()}
LATER = ("leases", "also", "requests", "workers")  # made when first needed: a file may lack them
EXTRAS = (
    "CREATE UNIQUE INDEX told_in_order ON told (counted)",
    """CREATE VIEW trials AS
    SELECT asked.id AS id, kind, proposal, theta, seed, COALESCE(status, 'pending') AS status,
           "return", stderr, episodes, note, asked_at, told_at
    FROM asked LEFT JOIN told ON told.id = asked.id""",
)
NUMBER = np.dtype("<f8")
DTYPES = ("float64", "float32", "float16", "int64", "int32", "uint32", "bool")  # of a memory
DIMENSIONS = 32  # of a leaf of a memory, at most


def checksum(table: str, row: Sequence[Any]) -> int:
    """CRC-32 of a row's content, which also says of which table it is."""
    crc, text = zlib.crc32(table.encode()), ""
    for value in row:
        if type(value) is bytes:
            crc, text = zlib.crc32(value, zlib.crc32(text.encode(), crc)), ""
        else:  # together with those after it: fewer calls, the same checksum
            text += repr(value)
    return zlib.crc32(text.encode(), crc)


def is_sound(table: str, row: Sequence[Any]) -> bool:
    """Whether a row has its checksum at the end, and holds what its columns are made for.

    SQLite keeps anything anywhere, and who wants to can compute a checksum.
    """
    *content, crc = row
    kinds = zip(content, KINDS[table], strict=True)
    return checksum(table, content) == crc and all(type(x) in known for x, known in kinds)


def packed(values: Any) -> bytes:
    """Numbers as eight bytes each, little-endian."""
    return np.ascontiguousarray(values, NUMBER).tobytes()


def unpacked(content: bytes) -> np.ndarray:
    """What `packed` has packed, flat."""
    return np.frombuffer(content, NUMBER).copy()


def packed_memory(memory: Memory) -> bytes | None:
    """An update rule's memory as bytes: the length of a JSON header, the header, the arrays.

    The header has path, dtype and shape of every leaf; the arrays follow, little-endian.
    """
    if memory is None:
        return None
    values = [np.asarray(leaf.value) for leaf in memory]
    for leaf, value in zip(memory, values, strict=True):
        if value.dtype.name not in DTYPES:
            raise InputError(
                f"the memory of an update rule must be made of {', '.join(DTYPES)}; "
                f"{leaf.path!r} is {value.dtype.name}."
            )
    names = [
        {"path": leaf.path, "dtype": value.dtype.name, "shape": list(value.shape)}
        for leaf, value in zip(memory, values, strict=True)
    ]
    header = json.dumps(names).encode()
    arrays = [value.astype(value.dtype.newbyteorder("<")).tobytes() for value in values]
    return b"".join([struct.pack("<I", len(header)), header, *arrays])


def unpacked_memory(content: bytes | None) -> Memory:
    """What `packed_memory` has packed; a ValueError where the header does not fit the bytes.

    Sizes are compared before any array is made, so that a header costs no more than its bytes.
    """
    if content is None:
        return None
    if not isinstance(content, bytes) or len(content) < 4:
        raise ValueError("a memory that is too short")
    start = 4 + struct.unpack_from("<I", content)[0]
    if start > len(content):
        raise ValueError("a memory whose header is longer than all of it")
    leaves = []
    for path, dtype, shape in map(_described, json.loads(content[4:start])):
        size = prod(shape) * dtype.itemsize
        if size > len(content) - start:
            raise ValueError("a memory that is shorter than its header says")
        leaves.append(Leaf(path, _array(content[start : start + size], dtype, shape)))
        start += size
    if start < len(content):
        raise ValueError("a memory that is longer than its header says")
    return tuple(leaves)


def _described(leaf: Any) -> tuple[str, np.dtype[Any], tuple[int, ...]]:
    """Path, dtype and shape of a leaf, once the header has made sense of them."""
    path, name, shape = leaf["path"], leaf["dtype"], leaf["shape"]
    if not isinstance(path, str) or name not in DTYPES:
        raise ValueError(f"a memory of the unknown dtype {str(name)[:20]!r}")
    whole = all(type(n) is int and 0 <= n < 2**31 for n in shape)
    if not isinstance(shape, list) or len(shape) > DIMENSIONS or not whole:
        raise ValueError("a memory of an impossible shape")
    return path, np.dtype(name).newbyteorder("<"), tuple(shape)


def _array(content: bytes, dtype: np.dtype[Any], shape: tuple[int, ...]) -> np.ndarray:
    if dtype.kind == "b" and content.strip(b"\0\1"):
        raise ValueError("a memory of bools that are neither true nor false")
    return np.frombuffer(content, dtype).astype(dtype.newbyteorder("=")).reshape(shape)


def check_schema(path: Path, connection: sqlite3.Connection, ours: dict[str, str]) -> None:
    """Raises where a file holds tables, views or triggers other than `ours`: SQL of a stranger."""
    rows = connection.execute("SELECT name, sql FROM sqlite_schema").fetchall()
    found = {name: sql for name, sql in rows if not _of_sqlite(name)}
    strange = sorted(name for name, sql in found.items() if ours.get(name) != sql)
    if strange:
        raise InputError(
            f"{path} holds SQL that recoup did not write ({strange[0]!r}), so it is not opened."
        )
    lost = sorted(ours.keys() - found.keys() - set(LATER))
    if lost:
        raise Damaged(damage(path, f"{lost[0]} is not there"))


def _of_sqlite(name: str) -> bool:
    """Whether a table is one that SQLite makes for itself: statistics, which run nothing."""
    return name.startswith("sqlite_stat")


def statements_of(wanted: Collection[str]) -> list[str]:
    """What makes the tables of a study file that are `wanted`."""
    tables = [
        (name, ", ".join(f'"{column}" {kind}' for column, kind in map(str.split, columns)))
        for name, columns in TABLES.items()
        if name in wanted
    ]
    return [
        f"CREATE TABLE {name} (id INTEGER PRIMARY KEY, {body}, crc INTEGER)"
        for name, body in tables
    ]


@cache
def our_schema() -> dict[str, str]:
    """Tables, indices and views of a study file by name, as SQLite writes them down."""
    with closing(sqlite3.connect(":memory:")) as connection:
        for statement in (*statements_of(TABLES), *EXTRAS):
            connection.execute(statement)
        return dict(connection.execute("SELECT name, sql FROM sqlite_schema").fetchall())

"""Files of format 1, written by recoup 0.1: everything in one, carried over to a new file.

In format 1 a proposal was a `mean` and a `std`, the memory of an update rule JSON (and always
empty), and the move of a training run held the tested return among its `info`.
"""

import json
import shutil
import sqlite3
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple, TypeVar

from recoup.checks import InputError
from recoup.store.codec import (
    WRONG,
    Record,
    asked_of,
    counters_of,
    densities_of,
    event_of,
    queued_of,
    result_of,
    setting_of,
    trajectory_of,
)
from recoup.store.file import TOLD, check_present, format_of, missing
from recoup.store.names import check_names
from recoup.store.place import COUNT, LOG, address, beside
from recoup.store.rows import CREATED, Contents, Move, Proposal, Test
from recoup.store.schema import checksum, unpacked
from recoup.store.store import Store

UPGRADED = "upgraded"
POLICY, DIAGONAL = "policy", "diagonal"  # the families of format 1
RUN = "run"  # the plan, in the settings of a training run
TESTED = ("return_search", "return_search_stderr", "wall_s")
COUNTED = ("iteration", "episodes", "std_min", "std_max")  # said by the move and its proposal
Row = TypeVar("Row")


class Carried(NamedTuple):
    """What was carried over."""

    results: int
    trials: int
    moves: int
    words: str


def carry_over(old: Path, new: Path) -> Carried:
    """Writes everything in the format-1 file `old` to a new file; `old` is left as it is."""
    if new.exists():
        raise InputError(f"{new} exists already: name another file to upgrade to.")
    rows = _read(old)
    settings, counters = rows.settings, rows.counters
    assert settings is not None
    assert counters is not None

    def write(store: Store) -> None:
        store.restore(rows, counters)
        store.note(UPGRADED, {"from": 1, "of": str(old), "trials": counters.last})

    Store.create(new, settings, rows.proposals[0], then=write).close()
    told, moves = len(rows.told), max(rows.moves)
    words = (
        f"{_counted(told, 'result')} of {_counted(len(rows.asked), 'trial')} and "
        f"{_counted(moves, 'move')} were carried over to {new}; {old} is as it was."
    )
    return Carried(told, len(rows.asked), moves, words)


class Old:
    """The tables of a format-1 file, read with their checksums."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def read(self, table: str, make: Callable[[Record], Row]) -> dict[int, Row]:
        """What `make` makes of the rows of a table, by id."""
        found = {}
        for *row, crc in self._connection.execute(f"SELECT * FROM {table} ORDER BY id"):
            if checksum(table, row) != crc:
                raise ValueError(f"row {row[0]} of {table} is not as written")
            found[row[0]] = make(tuple(row))
        return found


def _read(path: Path) -> Contents:
    """All of a format-1 file as rows of format 2, once they are known to be all there."""
    check_present(path)
    check_names(path)
    with _still(path) as still, _said(path), _connected(path, still) as connection:
        rows = _contents(Old(connection))
        _check_whole(path, rows)
        return rows


def _contents(old: Old) -> Contents:
    settings = dict(old.read("settings", setting_of).values())
    family = POLICY if "horizon" in settings else DIAGONAL
    if family == DIAGONAL:
        settings["family"] = DIAGONAL
    moves = old.read("moves", _move)
    tests = {}
    if RUN in settings:
        episodes = settings[RUN]["test_episodes"]
        tests = {number: _test(move, episodes) for number, move in moves.items()}
        moves = {number: _untested(move) for number, move in moves.items()}
    events = old.read("events", event_of)
    for number, event in events.items():
        if event.kind == CREATED:  # it repeats the settings
            events[number] = event._replace(content=settings)
    return Contents(
        settings=settings,
        counters=old.read("counters", counters_of).get(0),
        proposals=old.read("proposals", lambda record: _proposal(record, family)),
        moves=moves,
        asked=old.read("asked", asked_of),
        told=old.read("told", result_of),
        trajectories=dict(old.read("trajectories", trajectory_of).values()),
        queue=old.read("queue", queued_of),
        events=events,
        own=old.read("own", densities_of),
        mixture=old.read("mixture", densities_of),
        tests=tests,
        leases={},
        requests={},
        workers={},
    )


def _proposal(record: Record, family: str) -> Proposal:
    """The proposal of a record: its mean and std in one block."""
    number, origin, mean, std = record
    return Proposal(number, origin, family, unpacked(mean + std))


def _move(record: Record) -> Move:
    number, proposal, counted, memory, info, made = record
    if json.loads(memory) != []:
        raise ValueError(f"move {number} has a memory, which recoup 0.1 has never written")
    return Move(number, proposal, counted, None, dict(json.loads(info)), made)


def _test(move: Move, episodes: int) -> Test:
    """What fresh episodes said after a move of a training run."""
    mean, stderr, wall_s = (float(move.info[key]) for key in TESTED)
    return Test(move.id, mean, stderr, int(episodes), wall_s)


def _untested(move: Move) -> Move:
    info = {key: value for key, value in move.info.items() if key not in TESTED + COUNTED}
    return move._replace(info=info)


def _check_whole(path: Path, rows: Contents) -> None:
    """Raises where the counters, or other rows, speak of rows that are not there."""
    counters = rows.counters
    if counters is None:
        raise ValueError("a row of counters is not there")
    there, told = counters.ok + counters.failed, _told_before(path)
    if there < told:
        raise InputError(
            f"{missing(path, TOLD, there, told)} Put the newer one back, or recover the rest "
            "with recoup 0.1."
        )
    if len(rows.told) != there or len(rows.asked) != counters.trials:
        raise ValueError("its counters are higher than its rows")
    drew = {trial.proposal for trial in rows.asked.values()} - {None}
    made = {move.proposal for move in rows.moves.values()}
    if not (drew | made | {0} <= rows.proposals.keys() and 0 in rows.moves):
        raise ValueError("rows of proposals or moves are not there")
    if not rows.asked.keys() >= rows.told.keys() >= rows.trajectories.keys():
        raise ValueError("rows of trials are not there")


def _told_before(path: Path) -> int:
    """How many results were told, as the count of format 1 says beside a file."""
    with suppress(OSError, struct.error):
        return int(struct.unpack("<qq", beside(path, COUNT).read_bytes())[0])
    return 0


@contextmanager
def _still(path: Path) -> Iterator[Path]:
    """The file itself, or, where it has a log, a copy of both: reading a log changes the file."""
    log = beside(path, LOG)
    if not log.exists():
        yield path
        return
    with TemporaryDirectory() as folder:
        copy, before = Path(folder) / path.name, _state(path, log)
        shutil.copyfile(path, copy)
        shutil.copyfile(log, beside(copy, LOG))
        if _state(path, log) != before:
            raise InputError(f"{path} is being written by another process: close it there first.")
        yield copy


def _state(*paths: Path) -> list[tuple[int, int]]:
    return [(path.stat().st_size, path.stat().st_mtime_ns) for path in paths]


@contextmanager
def _connected(path: Path, still: Path) -> Iterator[sqlite3.Connection]:
    """A connection to `still`, once it is known to be of format 1."""
    mode = "ro" if still == path else "rw"
    connection = sqlite3.connect(address(still, mode), isolation_level=None, uri=True)
    try:
        connection.execute("PRAGMA trusted_schema = OFF")
        version = format_of(path, connection)
        if version != 1:
            raise InputError(f"{path} is of format {version}: only format 1 is to be carried over.")
        _check_plain(path, connection)
        yield connection
    finally:
        connection.close()


def _check_plain(path: Path, connection: sqlite3.Connection) -> None:
    """Raises where a file holds SQL that is none of recoup 0.1's: it made tables and one view."""
    query = "SELECT name FROM sqlite_schema WHERE type NOT IN ('table', 'index')"
    strange = [name for (name,) in connection.execute(query) if name != "trials"]
    if strange:
        raise InputError(
            f"{path} holds SQL that recoup did not write ({strange[0]!r}), so it is not opened."
        )


@contextmanager
def _said(path: Path) -> Iterator[None]:
    """Whatever is wrong with a format-1 file, as a sentence."""
    try:
        yield
    except InputError:
        raise
    except (sqlite3.DatabaseError, *WRONG) as wrong:
        if "not a database" in str(wrong):
            raise InputError(f"{path} is not a study file (not SQLite).") from None
        reason = str(wrong).partition("\n")[0]
        raise InputError(
            f"{path} is damaged ({reason}): recover it with recoup 0.1, which wrote it, and then "
            "upgrade what that has saved."
        ) from None


def _counted(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"

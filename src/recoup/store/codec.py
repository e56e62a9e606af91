"""Rows as the tables hold them, made of named rows, and named rows made of them.

A record is a row of a table without its checksum: its id, then its columns. What SQLite would
change is put right before it is written, for the checksum is of what comes back: a column of reals
turns 3 into 3.0 and -0.0 into 0.0, and keeps NULL in place of NaN.
"""

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from types import NoneType
from typing import Any, TypeVar

import numpy as np

from recoup.checks import InputError
from recoup.store.rows import (
    BEGUN,
    CREATED,
    FAILED,
    OK,
    Asked,
    AskedColumns,
    Contents,
    Counters,
    Event,
    Lease,
    Move,
    Proposal,
    Queued,
    Request,
    Result,
    Test,
    Told,
    ToldColumns,
)
from recoup.store.schema import packed, packed_memory, unpacked, unpacked_memory

Record = tuple[Any, ...]
Row = TypeVar("Row")
# What a move says of itself in numbers, or null.
OF_MOVES = ("objective", "low", "high", "samples", "ess", "max_weight", "pareto_k", "kl", "late")
WRONG = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


# -- to be written --


def of_proposal(row: Proposal) -> Record:
    """The record of a proposal."""
    return int(row.id), row.origin, row.family, packed(row.numbers)


def of_move(row: Move) -> Record:
    """The record of a move."""
    memory, info = packed_memory(row.memory), json.dumps(row.info)
    return int(row.id), int(row.proposal), int(row.counted), memory, info, _real(row.made)


def of_asked(row: Asked, now: float = 0.0) -> Record:
    """The record of a trial, asked `now` unless it says when."""
    theta, at = packed(row.theta), _real(row.asked_at or now)
    return int(row.id), row.kind, _whole(row.proposal), theta, int(row.seed), at


def of_result(row: Result) -> Record:
    """The record of a result `as_kept`, but for its trajectory."""
    told = row.told
    return row.id, told.status, row.counted, *told[1:5], row.told_at


def of_trajectory(number: int, rows: np.ndarray) -> Record:
    """The record of a trajectory `[t, F + A + 1]`."""
    if rows.ndim != 2 or not rows.size:
        got = list(rows.shape)
        raise InputError(f"a trajectory must have shape [t, F + A + 1], t > 0, got {got}.")
    return int(number), len(rows), packed(rows)


def of_queued(row: Queued) -> Record:
    """The record of a theta that waits."""
    return int(row.id), packed(row.theta), row.note


def of_event(row: Event) -> Record:
    """The record of an event."""
    return int(row.id), row.kind, json.dumps(row.content), _real(row.at)


def of_test(row: Test) -> Record:
    """The record of a test."""
    numbers = _real(row.mean), _real(row.stderr), int(row.episodes), _real(row.wall_s)
    return int(row.move), *numbers


def of_lease(row: Lease) -> Record:
    """The record of a lease."""
    return int(row.id), _real(row.until), int(row.times)


def number_of(key: str) -> int:
    """The id of the row of a request: a number that two keys do not share."""
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:8]) >> 1


def of_request(row: Request, now: float = 0.0) -> Record:
    """The record of a request, which came `now` unless it says when."""
    return number_of(row.key), row.key, row.body, json.dumps(row.trials), _real(row.at or now)


def of_worker(number: int, name: str) -> Record:
    """The record of whom a trial was handed out to."""
    return int(number), name


def of_also(number: int, also: dict[str, float]) -> Record:
    """The record of numbers that were told beside a return."""
    return int(number), json.dumps(also)


def of_densities(move: int, values: np.ndarray) -> Record:
    """The record of the densities that a move has left."""
    return int(move), packed(values)


def as_kept(told: Told) -> Told:
    """A result with its numbers as they come back from a file."""
    numbers = _real(told.value), _real(told.stderr), _whole(told.episodes)
    also = {name: float(x) + 0.0 for name, x in (told.also or {}).items()}
    return Told(told.status, *numbers, told.note, told.trajectory, also or None)


# -- as they were read --


def counters_of(record: Record) -> Counters:
    """The counters of a record."""
    if not all(type(n) is int and 0 <= n < 2**62 for n in record):  # so that sums fit a column
        raise ValueError("counters that count nothing")
    return Counters(*record[1:])


def proposal_of(record: Record) -> Proposal:
    """The proposal of a record."""
    number, origin, family, numbers = record
    return Proposal(number, origin, family, unpacked(numbers))


def move_of(record: Record, memory_too: bool = True) -> Move:
    """The move of a record; to unpack its memory takes longer than all else."""
    number, proposal, counted, memory, info, made = record
    said = _object(info)
    if not all(isinstance(said.get(key), (int, float, NoneType)) for key in OF_MOVES):
        raise ValueError("a number of a move that is none")
    if type(said.get(BEGUN, 0)) is not int or not 0 <= said.get(BEGUN, 0) < max(number, 1):
        raise ValueError("a move that began from one after it")
    unpacked = unpacked_memory(memory) if memory_too else None
    return Move(number, proposal, counted, unpacked, said, made)


def asked_of(record: Record) -> Asked:
    """The trial of a record."""
    number, kind, proposal, theta, seed, at = record
    return Asked(number, kind, proposal, unpacked(theta), seed, at)


def result_of(record: Record) -> Result:
    """The result of a record."""
    number, status, counted, value, stderr, episodes, note, at = record
    if status not in (OK, FAILED):
        raise ValueError("a result that is neither ok nor failed")
    return Result(number, Told(status, value, stderr, episodes, note), counted, at)


def trajectory_of(record: Record) -> tuple[int, np.ndarray]:
    """The trial of a record, and its trajectory `[t, F + A + 1]`."""
    number, steps, content = record
    return number, unpacked(content).reshape(steps, -1)


def queued_of(record: Record) -> Queued:
    """The waiting theta of a record."""
    number, theta, note = record
    return Queued(number, unpacked(theta), note)


def event_of(record: Record) -> Event:
    """The event of a record."""
    number, kind, content, at = record
    return Event(number, kind, _object(content), at)


def test_of(record: Record) -> Test:
    """The test of a record."""
    move, mean, stderr, episodes, wall_s = record
    mean, stderr, wall_s = (math.nan if x is None else float(x) for x in (mean, stderr, wall_s))
    return Test(move, mean, stderr, episodes, wall_s)


def lease_of(record: Record) -> Lease:
    """The lease of a record."""
    number, until, times = record
    if not (until is None or type(until) is float) or type(times) is not int:
        raise ValueError("a lease that is made of no numbers")
    return Lease(number, until, times)


def request_of(record: Record) -> Request:
    """The request of a record."""
    number, key, body, trials, at = record
    listed = json.loads(trials)
    if number != number_of(key) or not all(type(n) is int for n in listed):
        raise ValueError("a request that makes no sense")
    return Request(key, body, listed, at)


def worker_of(record: Record) -> tuple[int, str]:
    """The trial of a record, and the name of whom it was handed out to."""
    number, name = record
    return number, str(name)


def also_of(record: Record) -> tuple[int, dict[str, float]]:
    """The trial of a record, and the numbers told beside its return."""
    number, content = record
    found = _object(content)
    if not all(type(x) is float and math.isfinite(x) for x in found.values()):
        raise ValueError("a number beside a return that is none")
    return number, found


def densities_of(record: Record) -> np.ndarray:
    """The densities of a record."""
    return unpacked(record[1])


def asked_columns(rows: Sequence[Record]) -> AskedColumns:
    """Records of trials as arrays."""
    number, kind, proposal, theta, *_ = zip(*rows, strict=True) if rows else ((),) * 4
    drew = np.array([-1 if one is None else one for one in proposal], np.int64)
    numbers = unpacked(b"".join(theta)).reshape(len(rows), -1) if rows else np.zeros((0, 0))
    return AskedColumns(np.array(number, np.int64), np.array(kind, "U8"), drew, numbers)


def value_of(record: Record) -> Record:
    """Of the record of a result its trial, its return and when it was told."""
    return record[0], record[3], record[7]


def told_columns(rows: Sequence[Record]) -> ToldColumns:
    """Trials, returns and times as arrays; a return that is none is not a number."""
    number, value, at = zip(*rows, strict=True) if rows else ((),) * 3
    return ToldColumns(np.array(number, np.int64), np.array(value, float), np.array(at, float))


def setting_of(record: Record) -> tuple[str, Any]:
    """A setting's name and value."""
    return record[1], json.loads(record[2])


def contents_of(rows: dict[str, dict[int, Record]]) -> Contents:
    """Records of all tables as named rows; those that make no sense are left out."""
    events = _made(rows["events"], event_of)
    settings = dict(_made(rows["settings"], setting_of).values()) or None
    for event in events.values():
        if event.kind == CREATED:
            settings = event.content
    return Contents(
        settings=settings,
        counters=_made(rows["counters"], counters_of).get(0),
        proposals=_made(rows["proposals"], proposal_of),
        moves=_made(rows["moves"], move_of),
        asked=_made(rows["asked"], asked_of),
        told=_beside(_made(rows["told"], result_of), _made(rows["also"], also_of)),
        trajectories=dict(_made(rows["trajectories"], trajectory_of).values()),
        queue=_made(rows["queue"], queued_of),
        events=events,
        own=_made(rows["own"], densities_of),
        mixture=_made(rows["mixture"], densities_of),
        tests=_made(rows["tests"], test_of),
        leases=_made(rows["leases"], lease_of),
        requests=_made(rows["requests"], request_of),
        workers=dict(_made(rows["workers"], worker_of).values()),
    )


def records_of(rows: Contents) -> dict[str, Iterable[Record]]:
    """Named rows as records of their tables; all but settings and counters.

    A table that is made when it is first needed is left out where it would be empty.
    """
    later = {"leases": [of_lease(row) for row in rows.leases.values()]}
    later["requests"] = [of_request(row) for row in rows.requests.values()]
    later["workers"] = [of_worker(*item) for item in rows.workers.items()]
    later["also"] = [of_also(n, x.told.also) for n, x in rows.told.items() if x.told.also]
    return {
        "proposals": map(of_proposal, rows.proposals.values()),
        "moves": map(of_move, rows.moves.values()),
        "asked": map(of_asked, rows.asked.values()),
        "told": map(of_result, rows.told.values()),
        "trajectories": (of_trajectory(*item) for item in rows.trajectories.items()),
        "queue": map(of_queued, rows.queue.values()),
        "events": map(of_event, rows.events.values()),
        "own": (of_densities(*item) for item in rows.own.items()),
        "mixture": (of_densities(*item) for item in rows.mixture.items()),
        "tests": map(of_test, rows.tests.values()),
        **{table: records for table, records in later.items() if records},
    }


def _made(records: dict[int, Record], make: Callable[[Record], Row]) -> dict[int, Row]:
    found = {}
    for number, record in records.items():
        with suppress(*WRONG):
            found[number] = make(record)
    return found


def _beside(
    told: dict[int, Result], also: dict[int, tuple[int, dict[str, float]]]
) -> dict[int, Result]:
    """Results with the numbers that were told beside their returns."""
    return {n: with_also(row, also[n][1]) if n in also else row for n, row in told.items()}


def with_also(row: Result, also: dict[str, float] | None) -> Result:
    """A result with the numbers that were told beside its return."""
    return row._replace(told=row.told._replace(also=also))


def _object(text: str) -> dict[str, Any]:
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError("JSON that is no object")
    return found


def _real(value: Any) -> float | None:
    """A number as a column of reals gives it back."""
    if value is None or value != value:
        return None
    return float(value) + 0.0


def _whole(value: Any) -> int | None:
    return None if value is None else int(value)

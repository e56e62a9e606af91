"""A new study file of everything that can still be read of a damaged one."""

import json
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from recoup.checks import InputError
from recoup.store.file import (
    CREATED,
    Counters,
    StudyFile,
    count,
    count_beside,
    insert,
    note_event,
)
from recoup.store.rows import DRAWN, FAILED, MIRROR, OK, OWN
from recoup.store.salvage import Rows, salvage
from recoup.study.settings import check_settings

RECOVERED = "recovered"


class Recovered(NamedTuple):
    """What was saved of a damaged study, and what was not."""

    results: int
    trials: int
    missing: int  # results that were told and cannot be read, at least
    moves: int
    words: str


def recover(path: Path, new: Path) -> Recovered:
    """Writes everything readable of `path` to a new study; `path` is left as it is."""
    if new.exists():
        raise InputError(f"{new} exists already: name another file to recover to.")
    if not path.is_file():
        raise InputError(f"there is no file {path}.")
    rows = salvage(path)
    settings = _settings(rows)
    if settings is None:
        raise InputError(
            f"{path} holds no settings of a study that can be read: it is none, or too much of it "
            "is destroyed."
        )
    told_before, last, counted = _before(path, rows)
    _keep_whole(rows, settings)
    missing = max(told_before - len(rows["told"]), 0)
    whole = missing == 0 and sorted(rows["moves"]) == list(range(len(rows["moves"])))

    def write(connection: sqlite3.Connection) -> None:
        _write(connection, rows, last, whole)
        found = {"of": str(path), "missing": missing, "whole": whole}
        note_event(connection, RECOVERED, found)

    start = {"mean": settings["mean"], "std": settings["std"]}
    StudyFile.create(new, settings, write, **start, memory=[]).close()
    return _recovered(rows, new, missing, counted)


def _recovered(rows: Rows, new: Path, missing: int, counted: bool) -> Recovered:
    """What was saved, in numbers and words; `counted` says that the number missing is known."""
    told, asked, moves = (len(rows[table]) for table in ("told", "asked", "moves"))
    lost = f"{_counted(missing, 'result')} {'is' if missing == 1 else 'are'} missing"
    lost = lost if missing else "none that was told is missing"
    if not counted:
        lost = f"at least {missing} are missing, for the count of them is destroyed too"
    saved = f"{_counted(told, 'result')} of {_counted(asked, 'trial')} and "
    saved += _counted(max(moves - 1, 0), "move")
    return Recovered(told, asked, missing, moves, f"{saved} were saved in {new}; {lost}.")


def _counted(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"


def _settings(rows: Rows) -> dict[str, Any] | None:
    """The settings, from their own table or from the event that repeats them."""
    wrong = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
    with suppress(*wrong):
        found = {key: json.loads(value) for _, key, value in rows["settings"].values()}
        for _, kind, content, _ in rows["events"].values():
            if kind == CREATED:
                found = json.loads(content)
        check_settings(found)
        return found
    return None


def _before(path: Path, rows: Rows) -> tuple[int, int, bool]:
    """How many results were told and the last trial, at least; and whether the counters are there.

    A trial whose row is lost may still be on a robot: its number is not given out again.
    """
    told, last = count_beside(path)
    told = max(told, len(rows["told"]), *(row[2] or 0 for row in rows["told"].values()), 0)
    last = max(last, *rows["asked"], *rows["told"], 0)
    for _, *row in rows["counters"].values():
        counters = Counters(*row)
        told, last = max(told, counters.ok + counters.failed), max(last, counters.last)
    return told, last, bool(rows["counters"])


def _keep_whole(rows: Rows, settings: dict[str, Any]) -> None:
    """Leaves out what cannot be used without what was lost, and marks what can in part."""
    dim = settings["dim"]
    asked, told = rows["asked"], rows["told"]
    for number, row in list(asked.items()):
        if row[2] is not None and row[2] not in rows["proposals"]:  # its density is not known
            asked[number] = (number, OWN, None, *row[3:])
    for number, row in list(told.items()):
        trial = asked.get(number)
        needs = "horizon" in settings and row[1] == OK and number not in rows["trajectories"]
        if trial is None or needs or not _fits(trial[3], dim):
            del told[number]
        elif trial[1] == OWN or not _pair_is_whole(number, trial[1], asked, told, settings):
            told[number] = (number, row[1], None, *row[3:])
    moves = {n: row for n, row in rows["moves"].items() if row[1] in rows["proposals"]}
    rows["moves"] = moves
    rows["trajectories"] = {n: row for n, row in rows["trajectories"].items() if n in told}


def _fits(theta: Any, dim: int) -> bool:
    return isinstance(theta, bytes) and len(theta) == 8 * dim


def _pair_is_whole(
    number: int, kind: str, asked: dict[int, Any], told: dict[int, Any], settings: dict[str, Any]
) -> bool:
    if not settings.get("mirrored"):
        return True
    partner = number - 1 if kind == MIRROR else number + 1
    return partner in asked and partner in told


def _ready(number: int, rows: Rows) -> int:
    """How many results a place makes ready for a move: two for a mirrored pair."""
    kind = rows["asked"][number][1]
    partner = number - 1 if kind == MIRROR else number + 1
    paired = kind == MIRROR or rows["asked"].get(partner, (0, ""))[1] == MIRROR
    drew = [number, partner] if paired else [number] if kind == DRAWN else []
    return sum(rows["told"][n][1] == OK for n in drew)


def _densities_fit(rows: Rows) -> bool:
    """Whether the densities are those of the last move, none missing and none too many."""
    last = max(rows["moves"], default=0)
    mark = rows["moves"][last][2] if last else 0
    results = sum((row[2] or 0) <= mark and bool(row[2]) for row in rows["told"].values())
    paired = any(row[1] == MIRROR for row in rows["asked"].values())
    size = 8 * results * (2 if paired else 1)
    own, mixture = rows["own"], rows["mixture"]
    own_fits = not own or (
        sorted(own) == list(range(1, last + 1)) and sum(len(row[1]) for row in own.values()) == size
    )
    mixture_fits = not mixture or (list(mixture) == [last] and len(mixture[last][1]) == size)
    return own_fits and mixture_fits


def _write(connection: sqlite3.Connection, rows: Rows, last: int, whole: bool) -> None:
    """Everything that was saved, and counters that fit it.

    Densities are made again unless results and moves are there as a `whole`, and they fit them.
    """
    derived = ("own", "mixture") if whole and _densities_fit(rows) else ()
    for table in ("proposals", "moves", "asked", "told", "trajectories", *derived):
        insert(connection, table, rows[table].values(), verb="INSERT OR REPLACE")
    own = {row[3] for row in rows["asked"].values() if row[1] == OWN}
    queue = [row for row in rows["queue"].values() if row[1] not in own]
    insert(connection, "queue", queue)
    told = rows["told"].values()
    mark = max((row[2] for row in rows["moves"].values()), default=0)
    places = [row[2] for row in told if row[2] is not None]
    fresh = [row for row in told if (row[2] or 0) > mark]
    counters = Counters(
        trials=len(rows["asked"]),
        ok=sum(row[1] == OK for row in told),
        failed=sum(row[1] == FAILED for row in told),
        counted=max(places, default=0),
        fresh=sum(_ready(row[0], rows) for row in fresh),
        last=last,
    )
    count(connection, counters)

"""A new study file of everything that can still be read of a damaged one."""

from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from recoup.checks import InputError, check_path
from recoup.core.types import Plain
from recoup.store.count import Count, count_beside
from recoup.store.events import amendments
from recoup.store.names import check_names
from recoup.store.places import densities_fit, fitting_counters, partner_of
from recoup.store.rows import (
    AMENDED,
    DROP,
    DROPPED,
    FAILED,
    OK,
    OWN,
    RECOVERED,
    Contents,
    Proposal,
    Result,
)
from recoup.store.salvage import Salvaged, Tick, salvage
from recoup.store.store import Store
from recoup.study.moves.first import first_proposal
from recoup.study.reader.settings import check_settings, method_of, missing_parts
from recoup.study.space.limits import limits_of

TRIALS_LISTED = 10  # trials that are named


class Recovered(NamedTuple):
    """What was saved of a damaged study, and what was not."""

    results: int
    trials: int
    missing: int  # results that were told and cannot be read, at least
    moves: int
    words: str


def recover(path: Path, new: Path, tick: Tick = lambda done, of: None) -> Recovered:
    """Writes everything readable of `path` to a new study; `path` is left as it is.

    `tick` hears how far the reading is.
    """
    if check_path("NEW", new).exists():
        raise InputError(f"{new} exists already: name another file to recover to.")
    if not check_path("FILE", path).is_file():
        raise InputError(f"there is no file {path}.")
    check_names(path)
    saved = salvage(path, tick)
    rows, settings = saved.rows, _settings(saved.rows)
    if settings is None:
        raise InputError(
            f"{path} holds no settings of a study that can be read: it is none, or too much of it "
            "is destroyed."
        )
    count = count_beside(path)
    if count.events > max(rows.events, default=0):  # in a log that is gone
        saved = saved._replace(events_lost=True)
    told_before, last = _before(count, rows)
    start = _start(rows, settings)
    rows = _usable(rows, settings)
    missing = max(told_before - len(rows.told), 0)
    in_order = sorted(rows.moves) == list(range(len(rows.moves)))
    whole = missing == 0 and in_order and 0 in rows.moves and 0 in rows.proposals
    whole = whole and not (saved.unsure or saved.unnumbered or saved.settings_lost)
    if not (whole and densities_fit(rows)):  # made again, with the next move
        rows = rows._replace(own={}, mixture={})

    def write(store: Store) -> None:
        valued = method_of(settings).values_failures
        store.restore(rows, fitting_counters(rows, last, valued))
        for result in _dropped(rows) if saved.events_lost else ():
            store.note(AMENDED, _drop(result))
        store.note(RECOVERED, {"of": str(path), "missing": missing, "whole": whole})

    Store.create(new, settings, start, then=write).close()
    return _recovered(saved, rows, new, missing)


def _start(rows: Contents, settings: Plain) -> Proposal:
    """The first proposal: as it was stored, or made again from the settings."""
    if 0 in rows.proposals:
        return rows.proposals[0]
    if "family" in missing_parts(settings, {}):
        raise InputError(
            "the first distribution is destroyed, and is of a family that only Python can make: "
            "what is left of the study cannot be recovered without it."
        )
    return first_proposal(settings)


def _dropped(rows: Contents) -> list[Result]:
    """The results that were dropped, as they say themselves, where no event does."""
    known = {one.trial: one.dropped for one in amendments(rows.events.values())}
    return [
        result
        for number, result in rows.told.items()
        if result.told.status == FAILED
        and result.counted is None
        and str(result.told.note).startswith(DROPPED)
        and not known.get(number)
    ]


def _drop(result: Result) -> Plain:
    """The event of a result that was dropped, without what it was before."""
    now = list(result.told[:5])
    why = "what it was before is lost"
    content = {"trial": result.id, DROP: True, "place": None, "was": now, "now": now, "why": why}
    return {**content, "told_at": result.told_at, "moves": {}}


def _recovered(saved: Salvaged, rows: Contents, new: Path, missing: int) -> Recovered:
    """What was saved, in numbers and words; `rows` are those that can be used."""
    told, asked, moves = len(rows.told), len(rows.asked), len(rows.moves)
    lost = f"{_counted(missing, 'result')} {'is' if missing == 1 else 'are'} missing"
    lost = lost if missing else "none that was told is missing"
    if not saved.counted:
        lost = f"at least {missing} are missing, for the count of them is destroyed too"
    words = f"{_counted(told, 'result')} of {_counted(asked, 'trial')} and "
    words += f"{_counted(max(moves - 1, 0), 'move')} were saved in {new}; {lost}."
    if gone := max(rows.moves, default=0) + 1 - moves:
        words += f" {_counted(gone, 'move')} before the last {'is' if gone == 1 else 'are'} lost."
    before = {n for n, result in saved.rows.told.items() if result.counted is not None}
    if unweighed := sum(n in before and row.counted is None for n, row in rows.told.items()):
        one = unweighed == 1
        words += (
            f" {_counted(unweighed, 'result')} {'counts' if one else 'count'} for `recommend` and "
            f"`best`, not for moves: what drew {'it' if one else 'them'}, or the other of a pair, "
            "is lost."
        )
    words += _numbers_lost(saved, rows)
    if saved.settings_lost:
        words += (
            " Settings of the study are lost, and those of a new one stand in their place: names "
            "and bounds of parameters, which way is better, limits or settings of the method may "
            "be others. Look at `show` before you go on."
        )
    if saved.events_lost:
        words += " Events of the study are lost, amendments may be among them."
    if saved.unsure:
        one = len(saved.unsure) == 1
        words += (
            f" {_counted(len(saved.unsure), 'result')} may be as {'it was' if one else 'they were'}"
            f" before an amendment: trial{'' if one else 's'} {_listed(saved.unsure)}."
        )
    if saved.unfinished:
        words += " What its log ends in was not finished, or is damaged: it is left out."
    return Recovered(told, asked, missing, moves, words)


def _numbers_lost(saved: Salvaged, rows: Contents) -> str:
    """Which results lack numbers that were told beside them, in sentences."""
    words, lacking = "", _without_numbers(rows)
    if lacking:
        words += (
            f" {_counted(len(lacking), 'result')} {'has' if len(lacking) == 1 else 'have'} no "
            "number for a limit: it is lost, or was not known."
        )
    if others := [n for n in saved.unnumbered if n in rows.told and n not in lacking]:
        words += (
            f" Numbers beside {_counted(len(others), 'result')} may be lost: "
            f"trial{'' if len(others) == 1 else 's'} {_listed(others)}."
        )
    return words


def _without_numbers(rows: Contents) -> set[int]:
    """The results with a return that lack a number that has a limit."""
    names = limits_of(rows.settings or {}).names
    told = {n: row.told for n, row in rows.told.items() if row.told.status == OK}
    return {n for n, one in told.items() if any(name not in (one.also or {}) for name in names)}


def _listed(numbers: list[int]) -> str:
    more = f" and {len(numbers) - TRIALS_LISTED} more" if len(numbers) > TRIALS_LISTED else ""
    return f"{', '.join(map(str, numbers[:TRIALS_LISTED]))}{more}"


def _counted(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"


def _settings(rows: Contents) -> Plain | None:
    """The settings, once they are such as a study can have been made with."""
    wrong = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
    with suppress(*wrong):
        if rows.settings is not None:
            check_settings(rows.settings, method_of(rows.settings))
            return rows.settings
    return None


def _before(count: Count, rows: Contents) -> tuple[int, int]:
    """How many results were told and the last trial, at least.

    A trial whose row is lost may still be on a robot: its number is not given out again.
    """
    places = [result.counted or 0 for result in rows.told.values()]
    told = max(count.told, len(rows.told), *places, 0)
    last = max(count.last, *rows.asked, *rows.told, 0)
    if rows.counters is not None:
        told = max(told, rows.counters.ok + rows.counters.failed)
        last = max(last, rows.counters.last)
    return told, last


def _usable(rows: Contents, settings: Plain) -> Contents:
    """What can be used without what was lost; a trial without its proposal is kept as one's own.

    A result that cannot be weighed any more loses its place among those that can.
    """
    asked = {
        number: trial
        if trial.proposal is None or trial.proposal in rows.proposals
        else trial._replace(kind=OWN, proposal=None)
        for number, trial in rows.asked.items()
    }
    kept = rows._replace(asked=asked)
    told = {n: result for n, result in rows.told.items() if _has_all(kept, settings, result)}
    paired = bool(settings.get("mirrored"))
    told = {
        n: result
        if asked[n].kind != OWN and (not paired or _pair_is_whole(n, kept, told))
        else result._replace(counted=None)
        for n, result in told.items()
    }
    moves = {n: move for n, move in rows.moves.items() if move.proposal in rows.proposals}
    trajectories = {n: rows_ for n, rows_ in rows.trajectories.items() if n in told}
    leases = {n: lease for n, lease in rows.leases.items() if n in asked}
    workers = {n: name for n, name in rows.workers.items() if n in asked}
    requests = {n: row for n, row in rows.requests.items() if all(i in asked for i in row.trials)}
    kept = kept._replace(leases=leases, workers=workers, requests=requests)
    return kept._replace(told=told, moves=moves, trajectories=trajectories)


def _has_all(rows: Contents, settings: Plain, result: Result) -> bool:
    """Whether the trial of a result is there, and the trajectory if it has one."""
    trial = rows.asked.get(result.id)
    needs = "horizon" in settings and result.told.status == OK
    if trial is None or (needs and result.id not in rows.trajectories):
        return False
    return trial.theta.size == settings["dim"]


def _pair_is_whole(number: int, rows: Contents, told: dict[int, Result]) -> bool:
    partner = partner_of(number, rows.asked[number].kind)
    return partner in rows.asked and partner in told

"""A result that was told wrongly is put right, and every move that was made of it is made again."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from recoup.checks import InputError, check_text, printable, shortly
from recoup.core.types import Given, Plain
from recoup.store.events import told_in
from recoup.store.protocol import Storage
from recoup.store.rows import (
    AMENDED,
    BEGUN,
    DROP,
    DROPPED,
    FAILED,
    KeptDensities,
    Made,
    Result,
    Told,
    same,
)
from recoup.store.store import Store
from recoup.study.exchange.replay import differences, moves_again
from recoup.study.moves.again import SAME_MOVE, may_be_another, not_the_one
from recoup.study.moves.settling import Job, at_once, late_in
from recoup.study.reader.opened import Opened
from recoup.study.space.contexts import beside, check_alike
from recoup.study.space.limits import Limits, known_numbers, numbers_given
from recoup.study.trials.results import BEFORE, in_words, told_of, told_within

AMEND_WAIT = 10.0  # seconds, at most, for another process that makes a move
READ_TRIES = 20


class Amended(NamedTuple):
    """What was put right, and what follows from it.

    `Study.amend` gives it.

    >>> found = study.amend(3, 7.5, why="typed 75", dry_run=True)
    >>> found.trial, found.now, found.moves
    (3, '7.5', [1, 2, 3])
    """

    trial: int  # its number
    was: str  # the result before
    now: str  # the result since
    moves: list[int]  # that were made again
    mean_before: np.ndarray  # of the newest distribution, latent where parameters are named
    mean_after: np.ndarray  # likewise
    words: str  # what that means


def result_instead(study: Opened, number: int, drop: str | None, **how: Given) -> Told:
    """The result that takes the place of another: one as `told_of` makes it, or one that is none.

    What is told beside a return stays, but for what is given of it; that may be given alone.
    `trajectory="before"` is the result with the trajectory that an amendment took away.
    """
    if drop is not None:
        if any(x is not None for x in how.values()) or not check_text("`drop`", drop).strip():
            raise InputError("`drop` says why a result is worth nothing, in place of another.")
        how = {"failed": f"{DROPPED}{drop}"}
        return told_of(**how, layout=study.layout)
    also, context = how.pop("also", None), how.pop("context", None)
    before = _result(study.store, number).told
    if isinstance(how.get("trajectory"), str):
        return _taken_away(study, number, **how)
    given = numbers_given(beside(also, context, amends=True))
    numbers = {**(before.also or {}), **given}
    alone = also is not None or context is not None
    if alone and all(x is None for x in how.values()):
        trajectory = study.store.trajectories([number]).get(number)
        return before._replace(trajectory=trajectory, also=known_numbers(numbers))
    if sum(x is not None for x in how.values()) != 1:
        noun = study.goal.noun
        raise InputError(
            f"amend takes one of these: another {noun}, the {noun}s of several episodes, why it "
            "failed, or why it is worth nothing (`drop`); numbers beside it (`also`) and what was "
            "known before it (`context`) may stand alone."
        )
    asked_for = study.limits if before.status == FAILED else Limits()
    told = told_of(**how, also=numbers, layout=study.layout, discount=study.discount)
    study.ends.check(study.goal.noun, told.value, how.get("values"))
    return told_within(asked_for, told, numbers)


def _taken_away(study: Opened, number: int, trajectory: str, **other: Given) -> Told:
    """The last result of a trial whose trajectory went with an amendment, as the event keeps it."""
    if trajectory != BEFORE or any(x is not None for x in other.values()):
        raise InputError(
            f"`trajectory` must be an episode, or {BEFORE!r} without another result beside, got "
            f"{shortly(trajectory)}."
        )
    events = [event.content for event in study.store.events(AMENDED)]
    kept = [x for x in events if x["trial"] == number and x.get("trajectory") is not None]
    if not kept:
        raise InputError(f"no amendment of trial {number} has kept a trajectory of before.")
    rows = np.array(kept[-1]["trajectory"], float)
    return told_in(kept[-1], "was")._replace(trajectory=rows)


class Amendment(NamedTuple):
    """What takes the place of the result of a trial."""

    number: int
    told: Told
    drop: bool
    why: str | None


def amend(
    study: Opened, asked: Amendment, *, dry: bool, writing: Callable[[Job], bool] = at_once
) -> Amended:
    """Puts another result in place of that of a trial; nothing is changed where it is `dry`.

    `writing` does what writes it, as what writes a move. While moves are made again no other
    process makes one, as far as there are locks; where one has all the same, they are made again
    from what it left.
    """
    study.check_whole()
    check_alike(study.store, [asked.told], asked.number)
    if not dry:
        study.store.check_written()
    _result(study.store, asked.number)  # what cannot be amended is said at once
    with study.store.alone(AMEND_WAIT):
        for _ in range(READ_TRIES):
            found = _amended(study, asked, dry, writing)
            if found is not None:
                return found
    raise InputError(
        f"trial {asked.number} was not amended: other processes move the study faster than its "
        "moves can be made again. Nothing was changed; amend it while they are at rest."
    )


def _amended(
    study: Opened, asked: Amendment, dry: bool, writing: Callable[[Job], bool]
) -> Amended | None:
    """What was put right; None where another process has amended or moved meanwhile."""
    store, (number, told, drop, why) = study.store, asked
    before, last = _result(store, number), store.last_move()
    was = before.told._replace(trajectory=store.trajectories([number]).get(number))
    if same(was, told) and not drop:
        raise InputError(f"trial {number} was told {in_words(told)}, as it should be.")
    if number in store.dropped():
        raise InputError(f"trial {number} was dropped, and stays out of all estimates.")
    remade, kept = _remade(study, number, told, drop)

    def put() -> bool:
        with store.writing():
            now = store.last_move()
            if _result(store, number) != before or now.proposal != last.proposal:
                return False
            _note(study, before._replace(told=was), told, drop, why, remade)
            _put(study, store, number, told, drop)
            store.replace_moves(study.family, remade, kept)
        return True

    if not (dry or writing(put)):
        return None
    return _said(study, before, told, remade, last.proposal, drop, dry)


def _result(store: Storage, number: int) -> Result:
    found = store.results([number])
    if number not in found:
        known = bool(store.asked([number]))
        what = "has no result yet: tell it" if known else "is none of this study"
        raise InputError(f"trial {number} {what}.")
    return found[number]


def _put(study: Opened, store: Store, number: int, told: Told, drop: bool) -> None:
    store.replace_result(number, told, dropped=drop, valued=study.method.values_failures)


def _remade(study: Opened, number: int, told: Told, drop: bool) -> tuple[list[Made], KeptDensities]:
    """The moves that the result was part of, made again on a copy with the other in its place.

    And the densities that all moves leave.
    """
    place = study.store.place_of(number)
    if place is None or place > study.store.last_move().counted:
        return [], KeptDensities({}, np.zeros(0))
    copy = study.store.copy()
    try:
        _check_parts(study, Opened(copy, study.parts), number, place)
        with copy.writing():
            _put(study, copy, number, told, drop)
        there = Opened(copy, study.parts)
        made = list(moves_again(there, place))
        for mark, move in made:
            late = late_in(there, mark.number, mark.counted)
            move.info.update({"late": late, BEGUN: mark.begun})
    finally:
        copy.close()
    remade = [
        Made(mark.number, mark.counted, move.numbers, move.memory, move.info)
        for mark, move in made
        if mark.counted >= place
    ]
    return remade, KeptDensities(
        {mark.number: move.own for mark, move in made}, made[-1][1].mixture
    )


def _check_parts(study: Opened, copy: Opened, number: int, place: int) -> None:
    """Raises where another part than the one given made a move that would be made again."""
    if not may_be_another(study):
        return
    again = {mark.number for mark in copy.marks() if mark.number and mark.counted >= place}
    others = [move for move, gap in differences(copy) if move in again and not gap <= SAME_MOVE]
    if others:
        raise InputError(
            f"trial {number} was not amended: {not_the_one(study, others[0])}, and would make it "
            "again in another way. Give that one, or `fork` the study and amend the fork."
        )


def _note(
    study: Opened, before: Result, told: Told, drop: bool, why: str | None, remade: list[Made]
) -> None:
    """Keeps what a result was, in the file."""
    old = {move.id: move.proposal for move in study.store.moves()}
    content: Plain = {
        "trial": before.id,
        DROP: drop,
        "place": study.store.place_of(before.id),
        "was": list(before.told[:5]),
        "told_at": before.told_at,
        "now": list(told[:5]),
        "why": why,
        "moves": {str(move.number): old[move.number] for move in remade},
    }
    beside = {"was_also": before.told.also, "now_also": told.also}
    content |= {key: also for key, also in beside.items() if also}
    if before.told.trajectory is not None:
        content["trajectory"] = before.told.trajectory.tolist()
    study.store.note(AMENDED, content)


def _said(
    study: Opened,
    before: Result,
    told: Told,
    remade: list[Made],
    proposal: int,
    drop: bool,
    dry: bool,
) -> Amended:
    rho = study.rho(study.store.proposal(proposal).numbers)
    start, std = np.asarray(rho.mean), np.asarray(rho.std)
    end = np.asarray(study.rho(remade[-1].numbers).mean) if remade else start
    was, now = in_words(before.told), printable(str(told.note)) if drop else in_words(told)
    words = [
        f"Trial {before.id}: {was} {'would become' if dry else 'is now'} {now}.",
        _moves_in_words([move.number for move in remade], dry),
    ]
    if remade and len(std) == len(start):  # in action space there is no such measure
        away = np.sqrt(np.mean(((end - start) / std) ** 2))
        going = "would go" if dry else "went"
        words.append(f"The newest mean {going} {away:.2g} standard deviations.")
    words += ["Nothing was changed."] if dry else []
    moves = [move.number for move in remade]
    return Amended(before.id, was, now, moves, start, end, " ".join(words))


def _moves_in_words(moves: list[int], dry: bool) -> str:
    if not moves:
        return "No move was made of it."
    one = len(moves) == 1
    which = f"Move {moves[0]}" if one else f"Moves {moves[0]} to {moves[-1]}"
    verb = "would be" if dry else "was" if one else "were"
    return f"{which} {verb} made again from the results."

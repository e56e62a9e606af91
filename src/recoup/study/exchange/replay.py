"""The moves of a study over again: its own, to verify them, or another method's, at no rollout."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from recoup.checks import InputError
from recoup.core.types import Given, Plain
from recoup.engine.methods import Method, family_name, known_method, method_row
from recoup.study.moves.again import gap
from recoup.study.reader.opened import Mark, Opened, check_own_family
from recoup.study.reader.settings import STEPPING, of_the_problem
from recoup.study.space.goals import turned_row

if TYPE_CHECKING:
    from recoup.study.moves.steps import Before, StudyMove

RULE = (*STEPPING, "direction")  # what decides of which kind the memory of a row's moves is
Tick = Callable[[int, int], None]  # moves done, moves in all


class Replayed(NamedTuple):
    """One move of another method over the same results.

    >>> last = study.replay("cem")[-1]
    >>> last.move, last.results, last.mean.shape
    (3, 36, (2,))
    """

    move: int  # its number
    results: int  # up to which it was made
    mean: np.ndarray  # [D], latent
    std: np.ndarray  # [D], latent
    info: Plain  # numbers by name

    def plain(self) -> Plain:
        """The move as JSON can hold it.

        >>> list(study.replay("cem")[-1].plain())[:4]
        ['move', 'results', 'mean', 'std']
        """
        distribution = {"mean": self.mean.tolist(), "std": self.std.tolist()}
        return {"move": self.move, "results": self.results, **distribution, **self.info}


def replay(
    study: Opened,
    method: str | None = None,
    *,
    mean: Given = None,
    std: Given = None,
    tick: Tick = lambda done, of: None,
    **settings: Given,
) -> list[Replayed]:
    """How `method` would have moved, given the same results at the same times.

    The samples are those that the study's own distributions drew, weighed accordingly; how far the
    replayed distribution has left them is what `info["ess"]` says. It starts where the study did,
    unless `mean` (in the user's units) and `std` say otherwise; a fork's own update rule with the
    memory that the fork began with.
    """
    row = _row(study, method, settings)
    with study.store.reading():  # results of one state of the file, whatever others write
        return _replayed(study, row, mean, std, tick)


def _replayed(study: Opened, row: Method, mean: Given, std: Given, tick: Tick) -> list[Replayed]:
    """The moves of `row` over the study's results, each from where the study's own began."""
    from recoup.study.moves.steps import Before

    marks = study.marks()
    same = all(getattr(row, key) == getattr(study.method, key) for key in RULE)
    memory = marks[0].memory if same and mean is None and std is None else None
    states = [Before(_first(study, marks[0], mean, std), memory)]
    found: list[Replayed] = []
    for mark, made in _moves(study, row, marks, lambda i: states[i], tick):
        states.append(Before(made.numbers, made.memory))
        found.append(Replayed(mark.number, mark.counted, *study.shown(made.numbers), made.info))
    return found


def _first(study: Opened, start: Mark, mean: Given, std: Given) -> np.ndarray:
    """Where a replay starts: where the study did, unless it is said."""
    return study.around(start.numbers, mean, std)


def differences(study: Opened, tick: Tick = lambda done, of: None) -> list[tuple[int, float]]:
    """For every move, how far what is stored lies from what its results say, relative.

    Each is made again from the distribution that it began from as that is stored, so that a
    difference is of that move alone.
    """
    from recoup.study.moves.steps import Before

    study.check_whole()
    marks = study.marks()

    def before(i: int) -> "Before":
        return Before(marks[i].numbers, marks[i].memory)

    return [
        (mark.number, gap(study, made, mark))
        for mark, made in _moves(study, study.method, marks, before, tick)
    ]


def moves_again(study: Opened, place: int) -> "Iterator[tuple[Mark, StudyMove]]":
    """All moves, those that a result at `place` is part of from where the one before now leads.

    The others are made again for the densities that they leave: to the last bit those that the
    study would have come to. `own` has those of a move's new results.
    """
    from recoup.study.moves.steps import Before

    marks = study.marks()
    states = [Before(mark.numbers, mark.memory) for mark in marks if mark.counted < place]
    known, kept = 0, study.method.window is None and study.method.reweighs
    for mark, made in _moves(study, study.method, marks, lambda i: states[i]):
        if mark.counted >= place:
            states.append(Before(made.numbers, made.memory))
        nothing = made.own[:0]
        own, mixture = (made.own[known:], made.mixture) if kept else (nothing, nothing)
        known = len(made.own)
        yield mark, made._replace(own=own, mixture=mixture)


def _moves(
    study: Opened,
    method: Method,
    marks: list[Mark],
    before: "Callable[[int], Before]",
    tick: Tick = lambda done, of: None,
) -> "Iterator[tuple[Mark, StudyMove]]":
    """The moves of `method` at the places where the study has moved."""
    from recoup.study.moves.study_move import make_move

    whole = study.ledger(0, method.reweighs)
    for i, mark in enumerate(marks[1:]):
        ledger, begun = whole, _index(marks, mark.begun)
        if method.window is not None:
            first = max(mark.begun + 1 - method.window, 0)
            start = marks[_index(marks, first)].counted
            ledger = study.ledger(start, method.reweighs)
        since = marks[begun].counted
        made = make_move(method, study.discount, ledger, mark.counted, since, before(begun))
        ledger.own, ledger.mixture = made.own, made.mixture
        yield mark, made
        tick(i + 1, len(marks) - 1)


def _index(marks: list[Mark], number: int) -> int:
    """Which of the marks is that of a move, or of one before it where a recovery has left gaps."""
    return max(i for i, mark in enumerate(marks) if mark.number <= number)


def _row(study: Opened, method: str | Method | None, settings: Plain) -> Method:
    """The method to replay; how the samples were drawn is the study's."""
    own = method is None or method == study.method.name
    mine = turned_row(study.method, study.sign)  # as it was told, as `settings` are
    base = mine if method is None or own else known_method(method)
    if base.space != study.method.space:
        where = "actions" if study.method.space == "actions" else "parameters"
        raise InputError(f"this study explored in {where}: {base.name} cannot use its results.")
    if own and not study.missing.keys() <= settings.keys():
        study.check_whole()
    if not own and base.space == "parameters" and "family" in study.missing:
        study.check_whole()
    defaults = of_the_problem(mine) if own or base.space == "parameters" else {}
    row = turned_row(method_row(base, defaults, **settings), study.sign)
    if family_name(row) != study.family:
        raise InputError(f"this study draws from the family {study.family}: leave out family.")
    if study.has_own_family:
        check_own_family(study, row)
    return replace(row, mirrored=study.method.mirrored)

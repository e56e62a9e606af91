"""A move that is made once more from its results: whether it is the one that is stored."""

from typing import TYPE_CHECKING

import numpy as np

from recoup.checks import printable
from recoup.store.rows import RECOVERED, Move
from recoup.study.reader.ledger import Ledger
from recoup.study.reader.opened import Mark, Opened
from recoup.study.reader.settings import missing_parts

if TYPE_CHECKING:
    from recoup.study.moves.steps import StudyMove

SAME_MOVE = 1e-6  # a move that differs by more does not follow from its results


def may_be_another(study: Opened) -> bool:
    """Whether a part of the user's was given that may be another than the one of the same name.

    Of what was recovered with losses no move follows from the results that are left.
    """
    return bool(study.parts) and not study.missing and is_whole(study)


def is_whole(study: Opened) -> bool:
    """Whether no row was lost in a recovery from a damaged file, if there was any."""
    return all(event.content["whole"] for event in study.store.events(RECOVERED))


def mark_of(study: Opened, move: Move) -> Mark:
    """A move as it is stored, with the distribution that it made."""
    numbers = study.store.proposal(move.proposal).numbers
    return Mark(move.id, move.counted, move.memory, numbers, move.begun)


def apart(study: Opened, ledger: Ledger, before: Mark, stored: Mark) -> float:
    """How far the move that began from `before` lies from what its results make, relative.

    `ledger` has those results, read, and the densities that the move left, if any are kept.
    """
    from recoup.study.moves.steps import Before
    from recoup.study.moves.study_move import make_move

    how = (study.method, study.discount, ledger, stored.counted, before.counted)
    made = make_move(*how, Before(before.numbers, before.memory))
    return gap(study, made, stored)


def not_the_one(study: Opened, number: int) -> str:
    """Says that a move was made by something else than what was given."""
    given = missing_parts(study.settings, {})
    named = " and ".join(f"{key}={text}" for key, text in given.items())
    return printable(
        f"the {named} that was given is not the one that made move {number} of {study.where}"
    )


def gap(study: Opened, made: "StudyMove", stored: Mark) -> float:
    """How far a move lies from what is stored of it, relative to the scale of the distribution.

    Its memory counts too, each array by its own scale; infinite where it is another structure.
    """
    scale = float(np.max(study.shown(stored.numbers)[1]))
    away = np.abs(made.numbers - stored.numbers) / (np.abs(stored.numbers) + scale)
    other = stored.memory or ()
    mine = made.memory or ()
    if [(x.path, x.value.shape) for x in mine] != [(x.path, x.value.shape) for x in other]:
        return float("inf")
    both = ((x.value, y.value) for x, y in zip(mine, other, strict=True))
    return max(float(np.max(away)), *(_apart(x, y) for x, y in both), 0.0)


def _apart(made: np.ndarray, stored: np.ndarray) -> float:
    """How far two arrays lie apart, relative to their largest number."""
    if np.array_equal(made, stored, equal_nan=True):
        return 0.0
    one, other = made.astype(np.float64), stored.astype(np.float64)
    away = float(np.max(np.abs(one - other)) / max(np.max(np.abs(one)), np.max(np.abs(other))))
    return away if np.isfinite(away) else float("inf")

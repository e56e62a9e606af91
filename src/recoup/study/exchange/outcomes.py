"""What a table says came of its rows: a return, that they failed and why, or nothing yet."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from recoup.checks import InputError, check_text, shortly
from recoup.core.types import Cell, Given, Table
from recoup.store.rows import CANCELLED, FAILED, OK, PENDING
from recoup.study.exchange.cells import numbers
from recoup.study.exchange.tables import ASKED_AT
from recoup.study.reader.opened import Opened

STATUSES = (OK, FAILED, PENDING, CANCELLED)
UNTOLD = ("", PENDING, CANCELLED)  # what is typed into such a row was told to no study
FLAGS = {"": None, "false": None, "true": ""}  # cells of `failed` that are no reason
TRIALS_NAMED = 5  # trials in a sentence


class Outcomes(NamedTuple):
    """What came of the rows of a table."""

    returns: np.ndarray  # [n], not a number where there is none
    failed: np.ndarray  # [n] those that were rolled out without one
    why: list[str]  # [n] of them, empty where nobody said
    typed: np.ndarray  # [n] results that somebody wrote into the table, and no study was told

    def reasons(self, notes: np.ndarray | None) -> np.ndarray:
        """Texts `[n]`: why rows failed; else what stands in the `notes` of an export."""
        known = [""] * len(self.why) if notes is None else notes
        return np.array([a or b for a, b in zip(self.why, known, strict=True)], object)


def outcomes(path: Path, table: Table) -> Outcomes:
    """What the columns `return`, `failed` and `status` of a table say, the last two if it has them.

    A return that is not finite is a failure, as in arrays; an empty cell says nothing. So does
    whatever stands for a return that is still to come.
    """
    returns = numbers(path, table, ["return"])[:, 0]
    n, finite = len(returns), np.isfinite(returns)
    words = [_status(path, line, x) for line, x in enumerate(_cells(table, "status", n), 2)]
    why = [_why(cell) for cell in _cells(table, FAILED, n)]
    fails = np.array([a is not None or b == FAILED for a, b in zip(why, words, strict=True)], bool)
    earns = finite | np.array([word == OK for word in words], bool)
    if (fails & earns).any():
        line = int(np.argmax(fails & earns)) + 2
        raise InputError(
            f"line {line} of {path}: give a return (status {OK}), or why it failed (status "
            f"{FAILED}), not both."
        )
    said = np.array([cell not in ("", None) for cell in table["return"]], bool)
    waits = np.array([word in (PENDING, CANCELLED) for word in words], bool)
    fails |= said & ~finite & ~waits
    untold = np.array([word in UNTOLD for word in words], bool)
    untold |= np.array([cell in ("", None) for cell in _cells(table, "told_at", n)], bool)
    reasons = [check_text("a reason to import", text or "") for text in why]
    return Outcomes(np.where(finite, returns, np.nan), fails, reasons, untold & (finite | fails))


def check_none_untold(study: Opened, path: Path, table: Table, told: Outcomes) -> None:
    """Raises where results were typed into a table of this study, which has none of these trials.

    To import them would leave the trials without: they are told.
    """
    if "id" not in table or ASKED_AT not in table:
        return
    store = study.store
    without = [*store.pending(), *store.asked(store.cancelled())]
    known = {(float(trial.id), round(trial.asked_at, 5)): trial.id for trial in without}
    rows = zip(table["id"], table[ASKED_AT], told.typed, strict=True)
    found = [known.get((_number(a), round(_number(b), 5))) for a, b, typed in rows if typed]
    ids = [str(number) for number in found if number is not None]
    if ids:
        named = ", ".join([*ids[:TRIALS_NAMED], *(["..."] if len(ids) > TRIALS_NAMED else [])])
        raise InputError(
            f"{path} has results of trials that this study asked for and was not told of "
            f"({named}): tell them (`recoup study tell {study.where} --file RESULTS`, a CSV with "
            "columns id, return, failed and these trials alone); nothing was imported."
        )


def _cells(table: Table, name: str, n: int) -> Sequence[Cell]:
    """The `n` cells of a column, empty ones where a table has none of that name."""
    return table.get(name, [""] * n)


def _status(path: Path, line: int, cell: Cell) -> str:
    """What a cell says became of its row, whatever its case; empty where it says nothing."""
    word = _text(cell).lower()
    if word and word not in STATUSES:
        known = f"{', '.join(STATUSES[:-1])} or {STATUSES[-1]}"
        raise InputError(
            f"line {line} of {path}: status must be {known} (or empty), got {shortly(cell)}."
        )
    return word


def _why(cell: Cell) -> str | None:
    """Why a row failed, empty where it does not say; None where it did not fail."""
    text = _text(cell)
    return FLAGS.get(text.lower(), text)


def _text(cell: Cell) -> str:
    """What stands in a cell, without white space; of one that is not a number nothing."""
    return "" if cell is None or cell != cell else str(cell).strip()


def _number(cell: Given) -> float:
    """A number, if a cell holds one; else none that a trial has."""
    try:
        return float(cell)
    except (TypeError, ValueError):
        return -1.0

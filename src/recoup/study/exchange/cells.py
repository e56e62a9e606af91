"""The cells of a table as numbers: parameters in the user's units, choices by their places."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from recoup.checks import InputError, as_typed
from recoup.core.types import Cell, Table
from recoup.study.exchange.tables import theta_columns
from recoup.study.reader.opened import Opened
from recoup.study.space.choices import place_of


def thetas(study: Opened, path: Path, table: Table) -> np.ndarray:
    """The parameters `[n, P]` of a table's rows, in the user's units."""
    words, found = dict(study.choices), dict(table)
    for name, choices in words.items():
        cells = enumerate(table[name], 2)
        found[name] = [_place(path, line, name, choices, cell) for line, cell in cells]
    return numbers(path, found, theta_columns(study))


def _place(path: Path, line: int, name: str, choices: Sequence[str], cell: Cell) -> float | None:
    """The place of a choice; None where a cell is empty."""
    if cell in ("", None):
        return None
    try:
        return place_of(name, choices, str(cell))
    except InputError as wrong:
        raise InputError(f"line {line} of {path}: {wrong}") from None


def numbers(path: Path, table: Table, names: Sequence[str]) -> np.ndarray:
    """Columns `[n, len(names)]` of numbers, not a number where a cell is empty."""
    found = np.empty((len(table[names[0]]), len(names)))
    for i, name in enumerate(names):
        for line, cell in enumerate(table[name]):
            try:
                found[line, i] = _number(cell)
            except (TypeError, ValueError):
                raise InputError(
                    f"line {line + 2} of {path}: {name} must be a number, got {cell!r}."
                ) from None
    return found


def _number(cell: Cell) -> float:
    """A cell as a number, not one where it is empty."""
    return np.nan if cell in ("", None) else float(as_typed(cell))

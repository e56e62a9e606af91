"""Parameters that a fork no longer searches: at which values every trial of it is rolled out."""

from collections.abc import Sequence
from math import isclose
from typing import NamedTuple

from recoup.checks import check_number, check_text
from recoup.core.types import Plain, Settings, Table, Value
from recoup.study.space.parameters import check_unit, labelled
from recoup.study.text.notebook import typed

FROZEN = "frozen"  # the setting of a fork, and what columns of tables begin with
SAME_VALUE = 1e-9  # relative: the same value


class Frozen(NamedTuple):
    """A parameter that stays where it is, with its value in the user's units."""

    name: str
    value: float | int | str
    unit: str | None = None

    @property
    def text(self) -> str:
        """Its name and its value, with the digits that it takes to type it."""
        return f"{labelled(self.name, self.unit)} = {typed(self.value)}"


def frozen_in(settings: Settings) -> tuple[Frozen, ...]:
    """The parameters that a study has frozen; raises where a file holds something else there."""
    return tuple(_checked(Frozen(**row)) for row in settings.get(FROZEN, ()))


def _checked(row: Frozen) -> Frozen:
    check_text("the name of a frozen parameter", row.name)
    if row.unit is not None:
        check_unit(row.name, row.unit)
    if isinstance(row.value, str):
        check_text(row.name, row.value)
    else:
        check_number(row.name, row.value)
    return row


def in_words(rows: Sequence[Frozen]) -> str:
    """What is frozen in one line; empty where nothing is."""
    return ", ".join(row.text for row in rows)


def frozen_words(rows: Sequence[Frozen]) -> str:
    """That they belong to every trial, in a sentence; empty where there are none."""
    if not rows:
        return ""
    one = len(rows) == 1
    return (
        f"{in_words(rows)} {'is' if one else 'are'} frozen: {'it' if one else 'they'} "
        f"belong{'s' if one else ''} to these parameters, and to every trial."
    )


def frozen_columns(table: Table, theta: Sequence[str]) -> Plain:
    """What a table says of parameters that were not drawn, where it says the same in all rows."""
    names = [name for name in table if name.startswith(f"{FROZEN}_") and name not in theta]
    said = {name: {str(cell) for cell in table[name]} - {"", "None"} for name in names}
    return {name.partition("_")[2]: cells.pop() for name, cells in said.items() if len(cells) == 1}


def frozen_elsewhere(here: Sequence[Frozen], there: Settings) -> str:
    """That samples stood elsewhere than what is frozen here, in a sentence; empty if they did not.

    Of what one of the two does not say nothing is known.
    """
    apart = [row for row in here if row.name in there and not _is_same(row.value, there[row.name])]
    if not apart:
        return ""
    stood = in_words([row._replace(value=_number(there[row.name])) for row in apart])
    return f"They were rolled out with {stood}, here it is {in_words(apart)}: another policy."


def _is_same(a: Value, b: Value) -> bool:
    a, b = _number(a), _number(b)
    if isinstance(a, str) or isinstance(b, str):
        return bool(a == b)
    return isclose(a, b, rel_tol=SAME_VALUE)


def _number(cell: Value) -> Value:
    """A number, if a cell of a table holds one; a choice as it is."""
    try:
        return float(cell)
    except ValueError:
        return cell

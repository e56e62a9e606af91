"""Numbers told beside a return, and limits that the search keeps them within.

`force<50` is a limit on the number `force`. It is kept at a theta where a rollout lies within it
with the stated probability. Nothing here looks at results: `recoup.study.voice.keeping` does.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from math import isfinite, isnan, nan
from typing import NamedTuple

import numpy as np

from recoup.checks import (
    InputError,
    as_typed,
    check_between,
    check_mapping,
    check_number,
    check_numbers,
    check_whole_numbers,
    shortly,
)
from recoup.core.plain.limit_chance import Bound, LimitsToKeep
from recoup.core.types import Given, Plain, Settings
from recoup.engine.methods import Method
from recoup.store.queries import Queries
from recoup.store.rows import CONTEXT
from recoup.study.space.parameters import Parameter

LIMITS, WITHIN = "limits", "within"  # settings of a study that has limits; others have neither
USUAL = 0.95  # probability with which each is to be kept, unless said
LEAST_WITHIN, MOST_WITHIN = 0.5, 0.999  # that may be asked for
NAME = re.compile(r"[^\W\d][\w.]{0,39}")
WRITTEN = re.compile(r"\s*(.*?)\s*(<=|>=|<|>)\s*(.*?)\s*")
RETURNS = ("return", "cost")  # what no other number is called
NONE = "none"  # in place of a limit: no limit at all


class Limit(NamedTuple):
    """What a number told beside a return is to lie below, or above."""

    name: str
    side: str  # <, <=, > or >=
    bound: float

    @property
    def text(self) -> str:
        """The limit as it is written."""
        short = f"{self.bound:g}"
        return f"{self.name}{self.side}{short if float(short) == self.bound else repr(self.bound)}"

    @property
    def sign(self) -> float:
        """Of a number, where larger is nearer to breaking the limit."""
        return 1.0 if self.side.startswith("<") else -1.0

    def is_broken(self, value: float) -> bool:
        """Whether a number lies outside of the limit."""
        past = self.sign * (value - self.bound)
        return past > 0 if self.side.endswith("=") else past >= 0


class Limits(NamedTuple):
    """All limits of a study, and the probability with which each is to be kept."""

    rows: tuple[Limit, ...] = ()
    within: float = USUAL

    @property
    def names(self) -> list[str]:
        """The names of the numbers that have limits."""
        return list(dict.fromkeys(limit.name for limit in self.rows))

    def kept(self) -> LimitsToKeep | None:
        """The limits as the rule takes them; None where there are none."""
        if not self.rows:
            return None
        place = self.names.index
        bounds = (Bound(place(x.name), x.sign, x.bound, x.side.endswith("=")) for x in self.rows)
        return LimitsToKeep(tuple(bounds), self.within)

    def broken(self, also: Mapping[str, float] | None) -> list[Limit]:
        """The limits that numbers break; what is not known breaks none."""
        known = also or {}
        return [row for row in self.rows if row.name in known and row.is_broken(known[row.name])]


def limits_of(settings: Settings) -> Limits:
    """The limits of a study's settings."""
    if LIMITS not in settings:
        return Limits()
    return Limits(_checked(map(limit, settings[LIMITS])), _within(settings[WITHIN]))


def are_none(given: Given) -> bool:
    """Whether limits are given, and are none."""
    return not list(_listed(given))


def limits_given(given: Given, within: Given, row: Method) -> Plain:
    """The settings of limits as a user gives them, for a method; none where there are no limits."""
    rows = _checked(_listed(given))
    if not rows:
        if within is not None:
            raise InputError(
                "`within` says how surely limits are kept, and there is none: give one, such as "
                "force<50."
            )
        return {}
    if not isinstance(row.family, str):
        raise InputError("limits are kept with a family of ours: leave out family, or the limits.")
    if not row.way.limits:
        raise InputError(
            f"{row.name} looks at returns alone and keeps no limits: leave out method for the one "
            "that does, or tell a return that is worse where a limit is broken."
        )
    return {LIMITS: [x.text for x in rows], WITHIN: _within(USUAL if within is None else within)}


def check_no_parameters(limits: Limits, parameters: Sequence[Parameter]) -> None:
    """Raises where a limit is on what is asked for, or on the return itself."""
    for row in limits.rows:
        if row.name.startswith(CONTEXT):
            raise InputError(
                f"{row.text}: what is known before a trial has no limit, as nothing that is tried "
                "changes it; a limit is on a number told beside a return, such as force<50."
            )
        if row.name in RETURNS:
            raise InputError(
                f"{row.text}: a limit is on a number told beside a {row.name}, such as force<50; "
                f"the {row.name} itself has none."
            )
        if row.name in {p.name for p in parameters}:
            raise InputError(
                f"{row.text}: {row.name} is a parameter, which bounds keep within "
                f"({row.name}=LOW:HIGH); a limit is on a number told beside a return, such as "
                "force<50."
            )


def limit(text: Given) -> Limit:
    """A limit as it is written: NAME<NUMBER, or <=, > or >=."""
    found = WRITTEN.fullmatch(text) if isinstance(text, str) else None
    number = nan
    with suppress(ValueError):
        number = nan if found is None else as_typed(found[3])
    if found is None or not isfinite(number):
        raise InputError(
            f"a limit is written like force<50 or clearance>=0.1, got {shortly(text)}."
        )
    return Limit(check_name(found[1]), found[2], number + 0.0)


def check_name(name: Given) -> str:
    """The name of a number told beside a return, once it can name one."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise InputError(
            "a number beside a return needs a name that begins with a letter, of at most 40 "
            f"letters, digits, _ and ., got {shortly(name)}."
        )
    return name


def _listed(given: Given) -> Iterable[Limit]:
    """Limits in any of the ways in which they are given."""
    if given is None or given == NONE:
        return []
    if isinstance(given, str):
        return [limit(given)]
    if isinstance(given, Mapping):
        pairs = [(name, x) for name, how in given.items() for x in ([how] if _is_one(how) else how)]
        return [limit(f"{check_name(name)}{x}" if _is_one(x) else x) for name, x in pairs]
    if isinstance(given, Sequence) and list(given) == [NONE]:
        return []
    if not isinstance(given, Sequence):
        raise InputError(f"limits are a list such as ['force<50'], got {shortly(given)}.")
    return [limit(x.text if isinstance(x, Limit) else x) for x in given]


def _is_one(how: Given) -> bool:
    return isinstance(how, str) or not isinstance(how, Sequence)


def _checked(rows: Iterable[Limit]) -> tuple[Limit, ...]:
    """Limits in order, once one side of a number has one, and some number lies within them."""
    found: dict[tuple[str, float], Limit] = {}
    for row in rows:
        other = found.setdefault((row.name, row.sign), row)
        if other != row:
            raise InputError(f"{other.text} and {row.text} are two limits on one side of a number.")
    for (name, sign), above in found.items():
        below = found.get((name, 1.0))
        if sign < 0 and below is not None and not above.bound < below.bound:
            raise InputError(f"no number is within both {below.text} and {above.text}.")
    return tuple(sorted(found.values()))


def _within(value: Given) -> float:
    return check_between("within", value, LEAST_WITHIN, MOST_WITHIN)


# -- numbers as they are told --


def numbers_given(given: Given) -> dict[str, float]:
    """Numbers beside a return by name, as they are told; not a number where one is not known."""
    found = {}
    for name, value in check_mapping("also", {} if given is None else given).items():
        found[check_name(name)] = _number(f"also {name}", value)
    return found


def _number(what: str, value: Given) -> float:
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if is_unknown(value):
        return float("nan")
    if isinstance(value, (list, tuple, np.ndarray)):
        raise InputError(
            f"{what} is one number for the whole trial, got {shortly(value)}: give the one that "
            "its limit is meant for, such as the largest of all episodes."
        )
    number = check_number(what, value)
    check_whole_numbers(what, [value])
    return number + 0.0


def is_unknown(value: Given) -> bool:
    """Whether a number is told as one that is not known."""
    return value is None or (isinstance(value, (float, np.floating)) and bool(isnan(value)))


def known_numbers(numbers: Mapping[str, float]) -> dict[str, float] | None:
    """The numbers that are known, by name in order; None where there is none."""
    return {name: numbers[name] for name in sorted(numbers) if not isnan(numbers[name])} or None


def check_told(limits: Limits, numbers: Mapping[str, float]) -> None:
    """Raises where a number that has a limit is not told."""
    missing = [name for name in limits.names if name not in numbers]
    if not missing:
        return
    texts = [row.text for row in limits.rows if row.name in missing]
    name = missing[0]
    raise InputError(
        f"this study keeps {' and '.join(texts)}: tell {' and '.join(missing)} beside the result, "
        f"also={{'{name}': ...}} or --also {name}=NUMBER ({name}=nan where it is not known)."
    )


def in_words(also: Mapping[str, float] | None) -> str:
    """Numbers beside a return in a few words, after a comma; empty where there are none."""
    return "".join(f", {name} {value:.6g}" for name, value in (also or {}).items())


def also_columns(
    of: Given, given: Settings, shape: tuple[int, ...]
) -> dict[str, np.ndarray] | None:
    """Numbers told beside returns, each as many as there are; not a number where not known."""
    found = {}
    for name, values in given.items():
        check_numbers(f"{check_name(name)} of {of}", values)
        column = np.asarray(values, float)
        if column.shape != shape or np.isinf(column).any():
            raise InputError(
                f"{name} of {of} must have one number for each return: finite, or not a number "
                "where it is not known."
            )
        found[name] = column
    return found or None


def numbers_of(store: Queries, ids: Sequence[int]) -> dict[str, np.ndarray] | None:
    """The numbers told beside the returns of trials, by name; None where there are none."""
    names, told = store.numbers(), store.results(ids)
    known = [told[number].told.also or {} for number in ids]
    return {name: np.array([x.get(name, np.nan) for x in known]) for name in names} or None


def some_of(also: Mapping[str, np.ndarray] | None, which: np.ndarray) -> dict[str, np.ndarray]:
    """Numbers of some of the trials that they are of, by name."""
    return {name: column[which] for name, column in (also or {}).items()}

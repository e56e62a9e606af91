"""Which way is better: returns, of which larger is better, or costs, of which smaller is.

Inside, larger is better everywhere. What is told is stored and shown as it was told; it is turned
where results are read to compute with, and what comes of that is turned back where it is shown.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from recoup.checks import InputError, check_choice, check_number
from recoup.core.types import Array, Given, Plain, Settings
from recoup.engine.methods import Method

GOAL = "goal"  # the setting of a study of costs; others have none
ENDS = ("return_above", "return_below")  # the settings of what a result cannot be


class Goal(NamedTuple):
    """What a result is called, and which way it is better."""

    word: str  # as `direction` takes it
    sign: float  # of what is told, where larger is better
    noun: str
    better: str
    gain: str  # what is gained, before a number: a verb
    gained: str
    lost: str  # the other way
    top: str  # where it is best

    @property
    def nouns(self) -> str:
        """Several results."""
        return f"{self.noun}s"


MAXIMIZE = Goal("maximize", 1.0, "return", "larger is better", "gain", "gained", "lost", "top")
MINIMIZE = Goal(
    "minimize",
    -1.0,
    "cost",
    "smaller is better",
    "lower the cost by",
    "lowered the cost by",
    "raised the cost by",
    "bottom",
)
GOALS = {goal.word: goal for goal in (MAXIMIZE, MINIMIZE)}


class Ends(NamedTuple):
    """Between what results lie, as they are told: below or above them none can be."""

    low: float = -np.inf
    high: float = np.inf

    def check(self, noun: str, value: float | None, values: Iterable[float] | None) -> None:
        """Raises where a result, or that of one of several episodes, cannot be."""
        for one in [value] if values is None else values:
            if one is not None and not self.low <= one <= self.high:
                side, end = ("below", self.low) if one < self.low else ("above", self.high)
                raise InputError(f"a {noun} of this study cannot be {side} {end:g}, got {one:g}.")

    def within(self, *values: float) -> list[float]:
        """Expected returns, as far as they can be."""
        return [float(x) for x in np.clip(values, *self)]


def ends_of(settings: Settings) -> Ends:
    """Between what the results of a study lie, by its settings."""
    given = (settings.get(key) for key in ENDS)
    said = [x if x is None else check_number(key, x) for key, x in zip(ENDS, given, strict=True)]
    found = Ends(*(end if x is None else x for x, end in zip(said, Ends(), strict=True)))
    if not found.low < found.high:
        raise InputError(f"return_above ({found.low:g}) must be below return_below.")
    return found


def ends_given(given: Plain) -> Plain:
    """The ends among settings, checked, and taken from them."""
    found = {key: given.pop(key) for key in ENDS if given.get(key) is not None}
    ends = zip(ENDS, ends_of(found), strict=True)
    return {key: end for key, end in ends if key in found}


def goal_of(settings: Settings) -> Goal:
    """The goal of a study's settings."""
    word = settings.get(GOAL, MAXIMIZE.word)
    return GOALS[check_choice(GOAL, word, GOALS)]


def goal_given(given: Settings) -> tuple[Goal | None, Plain]:
    """The goal that `direction` says, if it says one, and all other settings.

    A direction of any other word is a part of a method: how a step is found.
    """
    word = given.get("direction")
    if not isinstance(word, str) or word[:3].lower() not in ("min", "max"):
        return None, dict(given)
    check_choice("direction", word, GOALS)
    return GOALS[word], {key: value for key, value in given.items() if key != "direction"}


def turned(value: Given, sign: float) -> Array:
    """A number or an array as it is computed with, or one of those as it was told; no -0."""
    return value if sign > 0 else 0.0 - value


def turned_ends(low: float, high: float, sign: float) -> tuple[float, float]:
    """An interval, likewise: the lower end of returns is the upper one of costs."""
    return (low, high) if sign > 0 else (0.0 - high, 0.0 - low)


def turned_row(row: Method, sign: float) -> Method:
    """A method whose failures are worth a number, likewise."""
    if sign > 0 or isinstance(row.failure, str):
        return row
    return replace(row, failure=turned(row.failure, sign))

"""Claims of the paper as measured statements, and the one rule that judges them all.

A claim is a list of contrasts: numbers that are positive where it is true. Each is measured run by
run, so that what runs share (a start, a seed) cancels, and is judged at two standard errors.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

HOLDS, FAILS, OPEN = "holds", "does not hold", "inconclusive"
ERRORS = 2.0  # standard errors that a verdict needs
LEAST = 5  # runs that it needs
RULE = (
    f"A contrast holds if it lies more than {ERRORS:g} standard errors above 0, does not hold if "
    f"more than {ERRORS:g} below, and is inconclusive otherwise or with fewer than {LEAST} runs. A "
    "claim holds if all its contrasts hold, does not hold if any does not, and is inconclusive "
    "otherwise."
)


class Contrast(NamedTuple):
    """A measured number that is positive where the claim is true."""

    what: str
    effect: float
    stderr: float
    runs: int

    @property
    def errors(self) -> float:
        """The effect in standard errors; without any spread, infinitely many."""
        return self.effect / self.stderr if self.stderr else float(np.copysign(np.inf, self.effect))

    @property
    def verdict(self) -> str:
        """By the rule, from the numbers alone."""
        if self.runs < LEAST or not np.isfinite([self.effect, self.stderr]).all():
            return OPEN
        if abs(self.effect) <= ERRORS * self.stderr:
            return OPEN
        return HOLDS if self.effect > 0 else FAILS


class Claim(NamedTuple):
    """A sentence of the paper, where it stands, and what was measured of it."""

    id: str
    where: str
    says: str
    contrasts: tuple[Contrast, ...]
    note: str = ""  # how the words were made measurable, or what explains the finding

    @property
    def verdict(self) -> str:
        """By the rule: all contrasts, or any against."""
        verdicts = {contrast.verdict for contrast in self.contrasts}
        if FAILS in verdicts:
            return FAILS
        return HOLDS if verdicts == {HOLDS} else OPEN

    @property
    def least(self) -> Contrast:
        """The least favourable contrast, in standard errors."""
        return min(self.contrasts, key=lambda c: c.errors)

    def as_record(self) -> dict[str, Any]:
        """The claim as plain values, its verdict computed."""
        contrasts = [{**c._asdict(), "verdict": c.verdict} for c in self.contrasts]
        least = self.contrasts.index(self.least)
        return {**self._asdict(), "contrasts": contrasts, "verdict": self.verdict, "least": least}


def contrast(what: str, by_run: Any) -> Contrast:
    """The mean over runs `[R]` of a number, with its standard error."""
    by_run = np.asarray(by_run, float)
    runs = by_run.size
    stderr = float(by_run.std(ddof=1) / np.sqrt(runs)) if runs > 1 else 0.0  # too few to judge
    return Contrast(what, float(by_run.mean()), stderr, runs)


def above(values: dict[str, Any], best: str, others: Sequence[str], what: str) -> list[Contrast]:
    """Contrasts of one method against others, paired run by run; `values[method]` is `[R]`."""
    return [
        contrast(f"{best} minus {other}, {what}", np.asarray(values[best]) - values[other])
        for other in others
    ]

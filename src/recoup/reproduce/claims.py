"""Claims of the paper as measured statements, and the one rule that judges them all.

A claim is a list of contrasts: numbers that are positive where it is true. Each is measured run by
run, so that what runs share (a start, a seed) cancels, and is judged by a t-test over runs; then
all claims are judged again, together, by Holm's correction for so many tests.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtr

from recoup.core.types import Plain, Settings

HOLDS, FAILS, OPEN = "holds", "does not hold", "inconclusive"
SMALL_P = 0.05  # a verdict needs a smaller p
LEAST_RUNS = 5  # and so many runs
RULE = (
    f"A contrast holds if it lies above 0 and a two-sided t-test over runs gives p < {SMALL_P:g}; "
    f"it does not hold if it lies below 0 with p < {SMALL_P:g}; it is inconclusive otherwise, "
    f"with fewer than {LEAST_RUNS} runs, and where it is too noisy to tell the greatest value "
    "that it can have from 0. (Where all runs give one number, p is that of a sign test; where "
    "nothing is left to chance, 0.) A claim holds if all its contrasts hold, does not hold if any "
    "does not, and is inconclusive otherwise."
)
HOLM = (
    "With so many claims some would be decided by chance alone. The second verdict is Holm's: the "
    "chance that even one of all decisions together is wrong is kept below "
    f"{SMALL_P:.0%}. The p of a claim that holds is the largest of its contrasts; of one that does "
    "not, the smallest times their number."
)


class Contrast(NamedTuple):
    """A measured number that is positive where the claim is true."""

    what: str
    effect: float
    stderr: float
    runs: int  # 0: nothing in it is left to chance
    most: float | None = None  # the greatest that it can be, where there is such a limit

    @property
    def errors(self) -> float:
        """The effect in standard errors; without any spread, infinitely many."""
        return self.effect / self.stderr if self.stderr else float(np.copysign(np.inf, self.effect))

    @property
    def p(self) -> float:
        """The chance of an effect as large, of either sign, where there is none; 1 if too few."""
        if not np.isfinite([self.effect, self.stderr]).all() or 0 < self.runs < LEAST_RUNS:
            return 1.0
        return self._chance_of(self.effect)

    @property
    def uninformative(self) -> bool:
        """Whether even the greatest value that it can have could not be told from 0."""
        return self.most is not None and not self._chance_of(self.most) < SMALL_P

    @property
    def verdict(self) -> str:
        """By the rule, from the numbers alone."""
        if not self.p < SMALL_P:
            return OPEN
        if self.effect < 0:
            return FAILS
        return OPEN if self.uninformative else HOLDS

    def _chance_of(self, effect: float) -> float:
        if effect == 0:
            return 1.0
        if self.runs == 0:
            return 0.0
        if self.stderr == 0:
            return float(2.0 ** (1 - self.runs))
        return float(2 * stdtr(self.runs - 1, -abs(effect) / self.stderr))


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
    def p(self) -> float:
        """Of its verdict: the largest of contrasts that all hold; the smallest against, times k."""
        against = [c.p for c in self.contrasts if c.verdict == FAILS]
        if against:
            return min(1.0, len(self.contrasts) * min(against))
        return max(1.0 if c.effect <= 0 or c.uninformative else c.p for c in self.contrasts)

    @property
    def least(self) -> Contrast:
        """The least favourable contrast, in standard errors."""
        return min(self.contrasts, key=lambda c: c.errors)

    def as_record(self) -> Plain:
        """The claim as plain values, its verdict computed."""
        contrasts = [
            {**c._asdict(), "p": c.p, "uninformative": c.uninformative, "verdict": c.verdict}
            for c in self.contrasts
        ]
        found = {"p": self.p, "verdict": self.verdict}
        least = self.contrasts.index(self.least)
        return {**self._asdict(), "contrasts": contrasts, **found, "least": least}


class Said(NamedTuple):
    """A sentence of the paper as a row: where it stands, a quantity, and what is held against it.

    `of` takes the quantity from a figure's data. What is `measured` of it are contrasts, or numbers
    by run under what they are called; the note may say numbers of it too.
    """

    id: str
    says: str
    measured: Callable[[Any], Settings | Iterable[Contrast]]
    note: str | Callable[[Any], str] = ""
    of: Callable[[Any], Any] = lambda data: data
    where: str = ""  # unless it stands in the section about its figure

    def judged(self, data: Any, section: str) -> Claim:
        """The claim, measured."""
        quantity = self.of(data)
        found = self.measured(quantity)
        if isinstance(found, Mapping):
            found = (contrast(what, by_run) for what, by_run in found.items())
        note = self.note if isinstance(self.note, str) else self.note(quantity)
        return Claim(self.id, self.where or section, self.says, tuple(found), note)


def contrast(what: str, by_run: Any, most: float | None = None) -> Contrast:
    """The mean over runs `[R]` of a number, with its standard error."""
    by_run = np.asarray(by_run, float)
    runs = by_run.size
    if runs == 0:  # no run has such a number: nothing is known
        return Contrast(what, float("nan"), 0.0, 0, most)
    same = runs < 2 or np.ptp(by_run) == 0  # a mean rounds: equal numbers have no spread
    stderr = 0.0 if same else float(by_run.std(ddof=1) / np.sqrt(runs))
    return Contrast(what, float(by_run.mean()), stderr, runs, most)


def slope(values: np.ndarray) -> np.ndarray:
    """Least squares slopes `[R]` of values `[R, C]` over their place, a step."""
    steps = np.arange(values.shape[1]) - (values.shape[1] - 1) / 2
    return values @ steps / (steps @ steps)


def certain(what: str, effect: float) -> Contrast:
    """A contrast that was computed, with nothing left to chance."""
    return Contrast(what, float(effect), 0.0, 0)


def above(values: Plain, best: str, others: Sequence[str], what: str) -> list[Contrast]:
    """Contrasts of one method against others, paired run by run; `values[method]` is `[R]`."""
    return [
        contrast(f"{best} minus {other}, {what}", np.asarray(values[best]) - values[other])
        for other in others
    ]


def holm(chances: Sequence[float]) -> np.ndarray:
    """p-values `[K]` corrected for there being K of them: below the level together, not each.

    Implements: holm1979.
    """
    p = np.asarray(chances, float)
    order = np.argsort(p, kind="stable")
    steps = np.maximum.accumulate((p.size - np.arange(p.size)) * p[order])
    corrected = np.empty(p.size)
    corrected[order] = np.minimum(steps, 1.0)
    return corrected


def corrected(records: Sequence[Plain]) -> list[Plain]:
    """Records of claims with what Holm's correction over all of them leaves of each verdict."""
    together = holm([record["p"] for record in records])
    return [
        {
            **record,
            "holm_p": float(p),
            "holm_verdict": record["verdict"] if p < SMALL_P else OPEN,
            "holm_of": len(records),
        }
        for record, p in zip(records, together, strict=True)
    ]

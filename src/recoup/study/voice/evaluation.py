"""What a distribution is worth, as `Study.evaluate` says it."""

from collections.abc import Sequence
from math import isfinite
from typing import NamedTuple

from recoup.notebooks import facts
from recoup.study.space.goals import GOALS, MAXIMIZE
from recoup.study.voice.sentences import in_short


class Evaluation(NamedTuple):
    """The expected return of a distribution, from results that others drew.

    `Study.evaluate` gives it.

    >>> found = study.evaluate(mean={"gain": 30, "offset": 1}, std=0.3)
    >>> found
    Evaluation(9.55... (95 %: 9.5... to 9.5...); 19 results, by a model of the returns)
    """

    mean: float  # not a number where the results say nothing
    stderr: float  # its standard error
    ess: float  # effective sample size
    pareto_k: float  # of the weights: above 0.7 they are not to be trusted
    samples: int  # results that were looked at
    words: str  # what that means
    low: float  # of the 95 % interval; not a number where none can be given
    high: float  # likewise
    unseen: float  # share of the distribution where hardly any result could have been drawn
    explained: float  # share of the returns' variance that a model took over; 0: weights alone
    direction: str = MAXIMIZE.word  # minimize: it is an expected cost
    improbable: Sequence[int] = ()  # trials whose results stand out, to be looked at

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval; not numbers where none can be given.

        >>> low, high = study.evaluate(mean={"gain": 30, "offset": 1}, std=0.3).interval
        >>> print(f"{low:.1f} to {high:.1f}")
        9.5 to 9.6
        """
        return self.low, self.high

    def __repr__(self) -> str:
        worth = f"{self.samples} results that count for {self.ess:.1f}"
        if self.explained == 1:  # by the model alone, which looks at others than weights do
            worth = self.words.partition(":")[0]
        return f"Evaluation({self._answer()}; {worth})"

    def _repr_html_(self) -> str:
        rows = {"effective sample size": f"{self.ess:.1f} of {self.samples}"}
        if isfinite(self.pareto_k):
            rows["Pareto k-hat"] = f"{self.pareto_k:.2f}"
        rows["in words"] = self.words
        return facts(f"Expected {GOALS[self.direction].noun}: {self._answer()}", rows)

    def _answer(self) -> str:
        return in_short(self.mean, self.low, self.high)

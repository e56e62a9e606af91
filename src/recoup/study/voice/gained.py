"""What the last distributions earned, and the slope of that: of the past alone."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from recoup.core.worth import NOTHING, ROUNDING, Interval, quantile
from recoup.store.rows import SAMPLED
from recoup.study.voice.landscape import PlacedResult

LAST_BATCHES = 5  # batches that are looked back on
FARTHEST = float(np.finfo(float).max)


class Batch(NamedTuple):
    """What the results of one distribution earned.

    >>> [batch.results for batch in advice.batches]
    [12, 12, 12]
    """

    proposal: int  # the distribution that drew them
    results: int  # how many
    mean: float  # of their returns
    stderr: float  # of the mean

    def times(self, unit: float) -> "Batch":
        """The batch in other units of returns: each return times `unit`.

        Raises nothing.

        >>> cents = advice.batches[0].times(100)
        >>> cents.results
        12
        """
        return self._replace(mean=self.mean * unit + 0.0, stderr=self.stderr * abs(unit))


class PastGain(NamedTuple):
    """What a batch has gained of late: the slope of the returns over the last distributions."""

    each: float
    interval: Interval
    spread: float  # standard deviation of one return of the search

    def times(self, unit: float) -> "PastGain":
        """The gain in other units of returns."""
        return PastGain(self.each * unit, times(self.interval, unit), self.spread * unit)


def times(interval: Interval, unit: float) -> Interval:
    """An interval in other units; no return, and so no end, lies beyond the largest number."""
    most = FARTHEST / abs(unit)
    return Interval(*sorted(float(np.clip(end, -most, most)) * unit + 0.0 for end in interval))


def gained(known: Sequence[PlacedResult]) -> tuple[list[Batch], PastGain]:
    """What the last distributions earned, and the slope of that with its 95 % interval.

    Those that drew a single result are taken together with the next.
    """
    by_proposal: dict[int, list[float]] = {}
    for result in known:
        if result.kind in SAMPLED and result.proposal is not None:
            by_proposal.setdefault(result.proposal, []).append(result.value)
    groups: list[tuple[int, list[float]]] = []
    for number in sorted(by_proposal):
        if groups and len(groups[-1][1]) < 2:
            groups[-1] = (number, groups[-1][1] + by_proposal[number])
        else:
            groups.append((number, by_proposal[number]))
    last = [group for group in groups if len(group[1]) > 1][-LAST_BATCHES:]
    batches = [
        Batch(number, len(x), float(np.mean(x)), float(np.std(x, ddof=1)) / len(x) ** 0.5)
        for number, x in last
    ]
    if len(last) < 2:
        return batches, PastGain(np.nan, NOTHING, np.nan)
    x = np.concatenate([np.full(len(values), float(i)) for i, (_, values) in enumerate(last)])
    return batches, _slope(x, np.concatenate([values for _, values in last]))


def _slope(x: np.ndarray, y: np.ndarray) -> PastGain:
    """The slope of `y [n]` over `x [n]` by least squares; no interval where nothing varied."""
    if np.ptp(y) <= ROUNDING * np.max(np.abs(y)):  # all equal: what is left is rounding
        return PastGain(0.0, NOTHING, 0.0)
    apart = x - np.mean(x)
    each = float(apart @ y / (apart @ apart))
    left = y - np.mean(y) - each * apart
    degrees = max(len(y) - 2, 1)
    spread = float(left @ left / degrees) ** 0.5
    half = quantile(degrees + 1) * spread / float(apart @ apart) ** 0.5
    return PastGain(each, Interval(each - half, each + half), spread)

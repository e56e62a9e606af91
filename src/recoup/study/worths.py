"""What the mean policy is worth, and what trials of it say by themselves. No JAX."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from recoup.core.worth import Interval, proportion, quantile
from recoup.study.gained import times

AT_MEAN = 5  # trials of the mean policy that are enough by themselves


class Worth(NamedTuple):
    """The expected return of the mean policy, and what that rests on."""

    value: float
    stderr: float
    interval: Interval
    rests_on: str

    def times(self, unit: float) -> "Worth":
        """The same in other units."""
        ends = times(self.interval, unit)
        return Worth(self.value * unit + 0.0, self.stderr * abs(unit), ends, self.rests_on)


def of_trials(values: Sequence[float], everything: np.ndarray) -> Worth | None:
    """What trials of the mean policy itself say, where there are enough of them.

    Where all returns ever told are one of two, Wilson's interval of the share of the higher one;
    else Student's, if any differ: what has not varied yet may do so the next time.
    """
    if len(values) < AT_MEAN:
        return None
    mean, about = float(np.mean(values)), f"{len(values)} trials of the mean policy"
    levels = np.unique(everything)
    if len(levels) == 2:
        low, high = (float(level) for level in levels)
        share = proportion(sum(value == high for value in values), len(values))
        ends = Interval(*(low + (high - low) * end for end in share))
        return Worth(mean, (ends.high - ends.low) / 2 / quantile(np.inf), ends, about)
    if min(values) == max(values):
        return None
    stderr = float(np.std(values, ddof=1)) / len(values) ** 0.5
    half = quantile(len(values)) * stderr
    return Worth(mean, stderr, Interval(mean - half, mean + half), about)

"""What the mean policy is worth, and what trials of it say by themselves. No JAX."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from recoup.core.worth import NOTHING, Interval, proportion, quantile
from recoup.store.rows import MEAN
from recoup.study.reader.opened import Opened
from recoup.study.voice.gained import times
from recoup.study.voice.landscape import Landscape, ModelledResults, may_be_better, worth_of

AT_MEAN = 5  # trials of the mean policy that are enough by themselves


class MeanPolicyWorth(NamedTuple):
    """The expected return of the mean policy, and what that rests on.

    >>> f"{advice.of_mean.value:.1f}"
    '10.0'
    """

    value: float  # not a number where it is not known
    stderr: float  # of that
    interval: Interval  # 95 %
    rests_on: str  # what it was taken from, in words
    results: int = 0  # that say so
    alone: bool = False  # whether they are trials of the mean policy itself

    def times(self, unit: float) -> "MeanPolicyWorth":
        """The worth in other units of returns: each return times `unit`.

        Raises nothing.

        >>> advice.of_mean.times(100).results
        36
        """
        return self._replace(
            value=self.value * unit + 0.0,
            stderr=self.stderr * abs(unit),
            interval=times(self.interval, unit),
        )


def as_shown(study: Opened, results: ModelledResults, worth: MeanPolicyWorth) -> MeanPolicyWorth:
    """A worth in the user's units, as far as a return can be so."""
    here = worth.times(results.unit * study.sign)
    value, *ends = study.ends.within(here.value, *here.interval)
    return here._replace(value=value, interval=Interval(*ends))


def of_mean(
    study: Opened, results: ModelledResults, found: Landscape | None, none: str
) -> MeanPolicyWorth:
    """What the mean policy is worth: by those trials of it that have a value, or by a model.

    `none` is why there is no model, where `found` is none.
    """
    at_mean = [
        r.value for r in results.known if r.kind == MEAN and np.array_equal(r.theta, results.mean)
    ]
    alone = of_trials(at_mean, results.values)
    if alone is not None:
        left_out = _tried(results) > len(at_mean)
        return alone._replace(rests_on=f"{alone.rests_on} that did not fail") if left_out else alone
    if found is None:
        equal = float(results.known[0].value) if "all equal" in none else np.nan
        return MeanPolicyWorth(equal, np.nan, NOTHING, none, 0)
    return by_model(study, results, found, may_be_better(found))


def _tried(results: ModelledResults) -> int:
    """How many trials of the mean policy have a result, failures among them."""
    return sum(x.kind == MEAN and np.array_equal(x.theta, results.mean) for x, _ in results.told)


def by_model(
    study: Opened, results: ModelledResults, found: Landscape, better: float = 0.0
) -> MeanPolicyWorth:
    """What a model says of the middle that it is about, which may be so much `better`."""
    here = worth_of(found, found.here(), results, better)
    looked = found.belief.results
    near = f"{looked} results, by a model of the {study.goal.nouns} near it"
    if here.nearest:
        looked, near = here.nearest, f"the {here.nearest} results nearest to it"
    return MeanPolicyWorth(here.value, here.stderr, here.interval, near, looked)


def of_trials(values: Sequence[float], everything: np.ndarray) -> MeanPolicyWorth | None:
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
        return MeanPolicyWorth(
            mean, (ends.high - ends.low) / 2 / quantile(np.inf), ends, about, len(values), True
        )
    if min(values) == max(values):
        return None
    stderr = float(np.std(values, ddof=1)) / len(values) ** 0.5
    half = quantile(len(values)) * stderr
    ends = Interval(mean - half, mean + half)
    return MeanPolicyWorth(mean, stderr, ends, about, len(values), True)

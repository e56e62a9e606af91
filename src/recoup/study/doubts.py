"""Whether what is said of a theta rests on results that stand out from all others. No JAX."""

from collections.abc import Callable
from math import isfinite
from typing import NamedTuple

from recoup.study import sentences
from recoup.study.landscape import Results, why_none
from recoup.study.opened import Opened
from recoup.study.slips import slips
from recoup.study.worths import Worth

SHOWN = 2  # results that stand out, of which it is said


class Doubt(NamedTuple):
    """Results without which something else would be said."""

    trials: list[int]
    words: str


NO_DOUBT = Doubt([], "")


def doubted(
    study: Opened, results: Results, worth: Worth, again: Callable[[Results], Worth]
) -> Doubt:
    """Which results that stand out a `worth` rests on, and what it would be without them.

    One slip of the keyboard can be all that a model of few results sees. `again` says what the rest
    of the results are worth; where its interval holds the value, nothing is doubted. Inside
    `reading()`.
    """
    told = {x.id: row.told.value for x, row in results.told if row.told.value is not None}
    strange = slips(told)
    rest = results.without({slip.trial for slip in strange})
    if not strange or not isfinite(worth.value) or not rest.known or why_none(study, rest):
        return NO_DOUBT
    other = again(rest)
    if not isfinite(other.interval.low) or _holds(other, worth.value):
        return NO_DOUBT
    shown = other.times(results.unit * study.sign)
    without = sentences.without_slips(len(strange), shown.value, *shown.interval, study.goal)
    words = [*(slip.words for slip in strange[-SHOWN:]), without]
    return Doubt([slip.trial for slip in strange], " ".join(words))


def _holds(worth: Worth, value: float) -> bool:
    return worth.interval.low <= value <= worth.interval.high

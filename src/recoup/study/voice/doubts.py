"""Whether what is said of a theta rests on results that stand out from all others. No JAX."""

from collections.abc import Callable, Sequence
from math import isfinite
from typing import NamedTuple

from recoup.study.reader.opened import Opened
from recoup.study.voice import sentences
from recoup.study.voice.landscape import ModelledResults, remembered, why_none
from recoup.study.voice.slips import Slip, slips
from recoup.study.voice.worths import MeanPolicyWorth, as_shown

DOUBTED = 2  # results that stand out, of which it is said
LOOKED_AT = 4  # the farthest of them, each of which is left out alone


class Doubt(NamedTuple):
    """Results without which something else would be said."""

    trials: list[int]
    words: str


NO_DOUBT = Doubt([], "")


def doubted(
    study: Opened,
    results: ModelledResults,
    worth: MeanPolicyWorth,
    again: Callable[[ModelledResults], MeanPolicyWorth],
) -> Doubt:
    """Which results that stand out a `worth` rests on, and what it would be without them.

    One slip of the keyboard can be all that a model of few results sees. `again` says what the rest
    of the results are worth; where its interval holds the value, nothing is doubted. Inside
    `reading()`.
    """
    strange = standing_out(study)
    if not strange or not isfinite(worth.value):
        return NO_DOUBT

    def without(left_out: Sequence[Slip]) -> MeanPolicyWorth | None:
        """The worth without some results, where that is another."""
        rest = results.without({slip.trial for slip in left_out})
        if not rest.known or why_none(study, rest):
            return None
        other = again(rest)
        known = isfinite(other.interval.low)
        return None if not known or _holds(other, worth.value) else other

    alone = [slip for slip in strange[:LOOKED_AT] if without([slip]) is not None]
    named = alone or strange
    other = without(named)
    if other is None:
        return NO_DOUBT
    here = as_shown(study, results, other)
    said = sentences.without_slips(len(named), here.value, *here.interval, study.goal)
    more = sentences.others_stand_out(len(named) - DOUBTED) if len(named) > DOUBTED else ""
    words = [*(slip.words for slip in named[:DOUBTED]), more, said]
    return Doubt(sorted(slip.trial for slip in named), " ".join(filter(None, words)))


def standing_out(study: Opened) -> list[Slip]:
    """The results that stand out, the farthest first; remembered, inside `reading()`."""

    def made() -> list[Slip]:
        told = study.store.returns(study.store.dropped())
        return sorted(slips(told), key=lambda slip: -slip.times)

    return remembered(study, "slips", made)


def _holds(worth: MeanPolicyWorth, value: float) -> bool:
    return worth.interval.low <= value <= worth.interval.high

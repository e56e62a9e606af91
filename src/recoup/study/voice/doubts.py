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
SURELY_FAR = 1e6  # times farther than the others: that is named whatever rests on it


class Doubt(NamedTuple):
    """Results without which something else would be said, and those that are surely slips."""

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
    of the results are worth; where its interval holds the value, nothing is doubted but one or two
    of another sign or very far away: of more that is the way of the returns. Inside `reading()`.
    """
    strange = standing_out(study)
    if not strange:
        return NO_DOUBT

    def without(left_out: Sequence[Slip]) -> MeanPolicyWorth | None:
        """The worth without some results, where that is another."""
        rest = results.without({slip.trial for slip in left_out})
        if not isfinite(worth.value) or not rest.known or why_none(study, rest):
            return None
        other = again(rest)
        known = isfinite(other.interval.low)
        return None if not known or _holds(other, worth.value) else other

    alone = [slip for slip in strange[:LOOKED_AT] if without([slip]) is not None]
    sure = [slip for slip in strange if slip.sign or slip.times > SURELY_FAR]
    sure = sure if len(sure) <= DOUBTED else []
    named = [slip for slip in strange if slip in alone or slip in sure] or strange
    other, said = without(named), ""
    if other is None and not sure:
        return NO_DOUBT
    if other is not None:
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

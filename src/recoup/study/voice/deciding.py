"""Whether to go on, and how to spend so many trials: one decision, for verdict and plan. No JAX."""

from collections.abc import Sequence
from math import ceil, isfinite
from typing import NamedTuple

from recoup.engine.methods import Method
from recoup.engine.parts import PARTS
from recoup.study.voice.doubts import NO_DOUBT, Doubt
from recoup.study.voice.gained import PastGain
from recoup.study.voice.keeping import Within
from recoup.study.voice.rehearsal import Forecast
from recoup.study.voice.worths import AT_MEAN, MeanPolicyWorth

GO_ON, STOP, TRY = "go on", "stop", "try the mean"
SMALL_GAIN = 0.25  # of the noise of one return: a gain of a batch below this is none
SURE = 0.5  # likewise: an expected return that is known as well as this is known
TENTH = 0.1  # of what is worth a batch: less is no gain
SOON = 3  # distributions before which it is too soon to stop
STUDENT = 2.1  # errors of a mean to either side of a 95 % interval of as many trials as it takes
MOST_BATCHES = 12  # that are rehearsed for a budget
SHORTER = {"epsilon": "a shorter epsilon", "kl": "a smaller kl"}  # of steps, by their setting


class BudgetPlan(NamedTuple):
    """How a budget of trials is best spent.

    >>> advice.plan.search, advice.plan.tries
    (12, 8)
    """

    search: int  # trials that the search takes
    gain: float  # that they should bring to the mean policy; not a number where it is not said
    tries: int  # of the mean policy, with the rest


class VerdictBasis(NamedTuple):
    """What a verdict is made of, over the unit of the results."""

    worth: MeanPolicyWorth
    batches: int  # of the past, as far as they are looked back on
    past: PastGain
    coming: list[Forecast]  # empty where nothing can be rehearsed
    noise: float
    climbs: list[str]  # parameters that are surely not at their best
    rare: int | None  # how many results differ from all others, where these are too few
    limits: list[Within]  # how surely the mean policy keeps each limit
    outside: list[str]  # limits that it does not keep surely enough
    strayed: bool  # whether results of late broke limits: then returns fall on the way back
    doubt: Doubt = NO_DOUBT  # of the worth, by results that stand out
    wrong: Sequence[tuple[str, str, str, list[str]]] = ()  # choices, as `better_choice` takes them
    fails: bool = False  # the mean policy, so often that it is not to be deployed
    untried: int = 0  # trials of it that it takes to say so, where many of too few failed
    shorter: str = ""  # what would make steps so: a setting of the method, if it has one


def decided(outlook: VerdictBasis, least: float = 0.0) -> tuple[str, int]:
    """What to do, and how often to try the mean where that is it.

    Go on while the next batch should bring the mean policy, or a draw, a quarter of the noise of
    one return, or the mean policy a tenth of what is worth a batch; or it is too soon to say. Then
    know what it is worth, and whether it fails; then stop. Stop at once where the last batches
    surely lost. Go on where the mean policy does not keep its limits surely enough, or fails too
    often.
    """
    past = outlook.past
    if outlook.outside:
        return GO_ON, 0
    if has_lost(outlook):
        return STOP, 0
    if outlook.fails or outlook.rare is not None or outlook.batches < SOON or outlook.wrong:
        return GO_ON, 0
    if outlook.coming:
        coming = outlook.coming[0]
        on = _is_enough(outlook, coming.policy.value, coming.draw.value, least)
    else:
        on = bool(outlook.climbs) or past.interval.low > 0
        on |= past.interval.high > max(SMALL_GAIN * past.spread, least)
    if on:
        return GO_ON, 0
    half = (outlook.worth.interval.high - outlook.worth.interval.low) / 2
    sure = past.spread == 0 or half <= SURE * _varies(outlook)
    tries = outlook.untried if sure else _tries(outlook)
    return (TRY, tries) if tries else (STOP, 0)


def has_lost(outlook: VerdictBasis) -> bool:
    """Whether the last batches surely earned less than those before, and not for limits."""
    past = outlook.past
    return isfinite(past.each) and past.interval.high < 0 and not outlook.strayed


def _is_enough(outlook: VerdictBasis, policy: float, draw: float, least: float) -> bool:
    """Whether a batch that should bring so much is worth it."""
    small = SMALL_GAIN * outlook.noise
    return policy >= (TENTH * least if least else small) or draw >= max(small, least)


def _tries(outlook: VerdictBasis) -> int:
    """How often more to try the mean for its expected return to be known as well as counts."""
    varies, worth = _varies(outlook), outlook.worth
    noise = outlook.noise if isfinite(outlook.noise) else varies
    needed = (STUDENT * noise / (SURE * varies)) ** 2
    return max(ceil(max(needed, AT_MEAN)) - (worth.results if worth.alone else 0), 0)


def _varies(outlook: VerdictBasis) -> float:
    """What one return varies by: its noise; without any, by how much draws differ too."""
    spread = outlook.past.spread
    return outlook.noise if outlook.noise >= TENTH * spread else spread


def shorter_steps(row: Method) -> str:
    """What makes the steps of a method shorter, in words; empty where no setting does."""
    if not row.way.length:
        return ""
    word = getattr(row, row.way.length)
    settings = PARTS[row.way.length][word].settings if isinstance(word, str) else ()
    return next((words for key, words in SHORTER.items() if key in settings), "")


def planned(outlook: VerdictBasis, budget: int, least: float = 0.0) -> BudgetPlan:
    """How to spend a budget: as `decided` says, batch by batch, and the rest on the mean.

    Where the search goes on for another reason than what batches gain, it takes all of it; where
    every batch that was rehearsed is worth it, all but a few trials of the mean.
    """
    if decided(outlook, least)[0] != GO_ON:
        return BudgetPlan(0, 0.0, budget)
    if outlook.outside or outlook.fails or outlook.rare is not None or outlook.wrong:
        return BudgetPlan(budget, float("nan"), 0)
    if not outlook.coming:
        return _as_long_as_it_gains(budget)
    soon = SOON - outlook.batches  # batches that are made whatever they bring
    if soon > 0 and budget < outlook.coming[0].results:
        return BudgetPlan(budget, float("nan"), 0)
    search, policy, draw = 0, 0.0, 0.0
    for i, coming in enumerate(outlook.coming):
        gains = coming.policy.value - policy, coming.draw.value - draw
        if coming.results > budget or not (i < soon or _is_enough(outlook, *gains, least)):
            return BudgetPlan(search, policy, budget - search)
        search, policy, draw = coming.results, coming.policy.value, coming.draw.value
    more, unforeseen = budget - search, len(outlook.coming) == MOST_BATCHES
    if unforeseen and more > AT_MEAN:
        return _as_long_as_it_gains(budget)
    return BudgetPlan(search, policy, more)


def _as_long_as_it_gains(budget: int) -> BudgetPlan:
    """A search whose end is not foreseen, but for some trials of the mean at the end."""
    search = budget - AT_MEAN if budget > AT_MEAN else budget
    return BudgetPlan(search, float("nan"), budget - search)

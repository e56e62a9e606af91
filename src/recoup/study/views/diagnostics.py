"""What a study's results say: how the search fares, and what a candidate is worth."""

from typing import TYPE_CHECKING

import numpy as np

from recoup.checks import InputError
from recoup.core.types import Given, Plain
from recoup.core.worth import EQUAL, Worth
from recoup.store.rows import FAILED, FOREIGN, OK, PENDING, SAMPLED
from recoup.study.exchange.fork import FORKED
from recoup.study.moves.settling import MoveMaker
from recoup.study.reader.opened import Opened
from recoup.study.run.ends import outdated
from recoup.study.space.goals import Goal, turned, turned_ends
from recoup.study.trials.leases import overdue
from recoup.study.views.aside import aside
from recoup.study.views.people import people
from recoup.study.voice import sentences, worths
from recoup.study.voice.advice import advice
from recoup.study.voice.doubts import NO_DOUBT, Doubt, doubted, standing_out
from recoup.study.voice.evaluation import Evaluation
from recoup.study.voice.gained import times
from recoup.study.voice.keeping import limits_found
from recoup.study.voice.landscape import (
    ModelledResults,
    fitted,
    landscape,
    left_out_of,
    results_of,
    why_none,
    worth_of,
)
from recoup.study.voice.slips import slips

if TYPE_CHECKING:  # needs JAX
    from recoup.study.moves.steps import Judged

VAGUE = 1.0  # standard deviations of the returns: a wider half of an interval says nothing
IMPROBABLE_SHOWN = 3  # improbable results that are spoken of, the last ones


def evaluate(opened: Opened, mover: MoveMaker, mean: Given, std: Given) -> Evaluation:
    """The expected return of a candidate distribution, from all results."""
    from recoup.core.pareto import pareto_k
    from recoup.study.moves.study_move import judge

    if "family" in opened.missing:
        opened.check_whole()
    with opened.store.reading():
        target = opened.target(mean, std)
        counted = opened.store.counters().counted
        if counted < 2:
            raise InputError(
                f"{opened.where} has {counted} result{'' if counted == 1 else 's'} of its own "
                "distributions: two are needed to evaluate."
            )
        found = judge(opened.method, mover.all_results(), counted, target)
        modelled = _modelled(opened, target, found.worth)
        looked = found.samples
        if modelled is not None:
            (worth, looked, left_out) = modelled
            found = found._replace(worth=worth, censored=left_out)
        doubt = _doubt(opened, target, found.worth)
    worth = found.worth
    ends = turned_ends(*worth.interval, opened.sign)
    mean, low, high = opened.ends.within(turned(worth.mean, opened.sign), *ends)
    return Evaluation(
        mean=mean,
        stderr=worth.stderr,
        ess=worth.ess,
        pareto_k=pareto_k(found.weights),
        samples=found.samples,
        words=" ".join(filter(None, [_words(found, looked, opened.goal), doubt.words])),
        low=low,
        high=high,
        unseen=worth.unseen,
        explained=worth.explained,
        direction=opened.goal.word,
        improbable=doubt.trials,
    )


def _doubt(opened: Opened, target: np.ndarray, worth: Worth) -> Doubt:
    """Whether the worth of a candidate rests on results that stand out from all others."""
    if opened.has_own_family or opened.method.space == "actions":
        return NO_DOUBT
    store = opened.store
    inside = not opened.charts and store.counters().ok > len(store.dropped())  # some of them
    if inside and not standing_out(opened):  # without a look at where results lie
        return NO_DOUBT
    results, rho = results_of(opened), opened.rho(target)

    def again(rest: ModelledResults) -> worths.MeanPolicyWorth:
        found = fitted(opened, rest, rho)
        here = worth_of(found, found.draw(rho), rest)
        return worths.MeanPolicyWorth(here.value, here.stderr, here.interval, "")

    unit = 1 / results.unit
    ends = times(worth.interval, unit)
    said = worths.MeanPolicyWorth(worth.mean * unit, worth.stderr * unit, ends, "")
    return doubted(opened, results, said, again)


def _modelled(opened: Opened, target: np.ndarray, worth: Worth) -> tuple[Worth, int, int] | None:
    """What the model of the returns says of a candidate, where weights cannot; None where neither.

    With how many results that model looked at, and how many failures it leaves out.

    Weights are right for a candidate that was fixed beforehand. The newest distribution was chosen
    by the very results that would be weighed: of it they say too much good.
    """
    store = opened.store
    led = store.last_move().id > 0 or bool(store.events(FORKED))  # which starts where results led
    chosen = led and np.array_equal(target, store.newest().numbers)
    if not (chosen or worth.refused not in ("", EQUAL)) or opened.has_own_family:
        return None
    results = results_of(opened)
    if why_none(opened, results):
        return None
    rho = opened.rho(target)
    found = landscape(opened, results, None if chosen else rho)
    here = worth_of(found, found.draw(rho), results)
    half = (here.interval.high - here.interval.low) / 2
    spread = float(np.std(results.values))
    if not np.isfinite(half) or (not chosen and half > VAGUE * spread):
        return None
    unit = results.unit
    judged = Worth(
        here.value * unit,
        here.stderr * unit,
        times(here.interval, unit),
        worth.ess,
        worth.unseen,
        1.0,
        "nearest" if here.nearest else "chosen" if chosen else "modelled",
    )
    return judged, here.nearest or found.belief.results, left_out_of(opened, results)


def _words(found: "Judged", looked: int, goal: Goal) -> str:
    """What it rests on: `looked` is how many results the weights or the model have seen."""
    worth = found.worth
    return sentences.judgement(
        looked,
        worth.ess,
        worth.explained,
        refused=worth.refused,
        unseen=worth.unseen,
        censored=found.censored,
        draw=found.draw,
        goal=goal,
    )


def diagnostics(opened: Opened) -> Plain:
    """How the search fares, in numbers and, under `advice`, in words."""
    store = opened.store
    counters, last = store.counters(), store.last_move()
    nothing = store.dropped()
    lost = [row.told.status for row in store.results(nothing).values()]
    unset = dict.fromkeys(("ess", "samples", "max_weight", "pareto_k", "objective"))
    found: Plain = {
        **unset,
        **last.info,
        PENDING: counters.trials - counters.ok - counters.failed - len(store.cancelled()),
        OK: counters.ok,
        FAILED: counters.failed,
        "dropped": lost.count(FAILED),  # of the failed
        "uncounted": lost.count(OK),  # of the ok: the other of their pair was dropped
        "imported": store.count([FOREIGN]),
        "waiting": store.count(SAMPLED, told=False),
        "overdue": overdue(store),
        "moves": last.id,
        "until_move": opened.until_move(),
        "direction": opened.goal.word,
        "missing": opened.lacks,
        **people(opened),
        **limits_found(opened),
        **aside(opened).found(opened),
    }
    strange = slips(store.returns(nothing))
    found["improbable"] = [slip.trial for slip in strange]
    said = [
        *filter(None, [outdated(opened)]),
        *advice(opened.method, opened.batch, found, opened.goal),
    ]
    return {**found, "advice": said + [slip.words for slip in strange[-IMPROBABLE_SHOWN:]]}

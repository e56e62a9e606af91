"""Which parameters to deploy, what they are worth, and whether to go on. No JAX."""

from collections.abc import Sequence
from functools import partial
from math import isfinite
from typing import NamedTuple

import numpy as np

from recoup.checks import check_count, check_positive
from recoup.core.families.gaussian import Diagonal
from recoup.core.types import Plain
from recoup.core.worth import NOTHING, Interval
from recoup.notebooks import facts
from recoup.study.moves.settling import MoveMaker
from recoup.study.reader.opened import Opened
from recoup.study.space.frozen import frozen_words
from recoup.study.space.goals import GOALS, MAXIMIZE, Goal
from recoup.study.text.notebook import in_a_row, parameter_rows
from recoup.study.voice import sentences
from recoup.study.voice.best import Best, best_of_each
from recoup.study.voice.deciding import (
    GO_ON,
    MOST_BATCHES,
    STOP,
    TRY,
    BudgetPlan,
    VerdictBasis,
    decided,
    has_lost,
    planned,
    shorter_steps,
)
from recoup.study.voice.deploying import NEWEST, Candidate, Known, deployed
from recoup.study.voice.doubts import Doubt, doubted
from recoup.study.voice.failing import Failing, Tried, in_order, tried_of
from recoup.study.voice.gained import Batch, gained, times
from recoup.study.voice.keeping import Within, keeping_of, outside, refused, within_words
from recoup.study.voice.landscape import (
    Landscape,
    LastMove,
    ModelledResults,
    at_last_move,
    everywhere,
    fitted,
    landscape,
    rarely,
    results_of,
    why_none,
)
from recoup.study.voice.predict import Matters, matters, worth_at
from recoup.study.voice.rehearsal import Forecast, Scene, can_rehearse, forecasts
from recoup.study.voice.worths import MeanPolicyWorth, as_shown, of_mean

LATE = 4  # batches of which it is asked whether they strayed from limits


class Recommendation(NamedTuple):
    """The parameters to deploy, and what results say about them.

    `Study.recommend` gives it; printed, it is its `words`.

    >>> advice
    Recommendation(go on; return 10.02 (95 %: 9.9... to 10.0...); gain=20.1..., offset=0.99...)
    >>> print(advice)
    Trial 24 is the one to deploy. ...
    >>> advice.deploys, advice.number
    ('trial', 24)
    """

    theta: np.ndarray  # [P] in the user's units: what `deploys` names
    params: Plain  # the same by name
    deploys: str  # mean (the newest: `Study.mean_policy`), earlier mean, trial, or start
    number: int | None  # of the move that made it, or of the trial; None of the start
    frozen: Plain  # with them: parameters that are searched no more
    low: np.ndarray  # [P] of the 95 % interval of the best value of each, the others staying
    high: np.ndarray  # infinite where the best may lie beyond what was tried
    choices: dict[str, dict[str, float]]  # by name: how surely each of several is the best one
    expected: float  # return of these parameters; not a number where it is not known
    stderr: float  # of that
    interval: Interval  # 95 %
    rests_on: str  # what it was taken from, in words
    of_mean: MeanPolicyWorth  # the same of the mean policy, whether it is to be deployed or not
    improbable: list[int]  # trials whose results stand out, to be looked at
    failing: Failing  # how often they fail
    limits: list[Within]  # how surely they keep each limit
    batches: list[Batch]  # of the distributions that drew results, in order
    gain: float  # of a batch, over the last of them; not a number before the second
    gain_interval: Interval  # 95 %
    next_results: int  # that the next move needs
    next_gain: float  # of the mean policy by that move; not a number where it is not forecast
    next_gain_interval: Interval  # 95 %
    next_draw_gain: float  # of a draw of the distribution, likewise
    next_draw_gain_interval: Interval  # 95 %
    verdict: str  # go on, stop, or try the mean
    tries: int  # how often, for the last
    plan: BudgetPlan | None  # of a budget, where one was given
    matters: list[Matters]  # parameters and pairs, by what they explain; empty where not known
    words: str
    direction: str = MAXIMIZE.word  # minimize: what is expected are costs

    def __str__(self) -> str:
        return self.words

    def __repr__(self) -> str:
        worth = sentences.in_short(self.expected, *self.interval)
        deployed = in_a_row(tuple(self.params), list(self.params.values()))
        return f"Recommendation({self.verdict}; {GOALS[self.direction].noun} {worth}; {deployed})"

    def _repr_html_(self) -> str:
        expected = f"expected {GOALS[self.direction].noun}"
        rows = {expected: sentences.in_short(self.expected, *self.interval), "next": self.verdict}
        params = parameter_rows(tuple(self.params), list(self.params.values()))
        return facts("To deploy", {**params, **rows, "in words": self.words})

    @property
    def best(self) -> list[list[float] | dict[str, float]]:
        """For each parameter the ends between which it is best, or how surely each choice is.

        >>> low, high = advice.best[1]
        >>> print(f"the offset is best between {low:.1f} and {high:.1f}")
        the offset is best between 0.9 and 1.0
        """
        ends = zip(self.params, self.low.tolist(), self.high.tolist(), strict=True)
        return [self.choices.get(name, [low, high]) for name, low, high in ends]

    def plain(self) -> Plain:
        """The recommendation as JSON can hold it.

        >>> advice.plain()["verdict"]
        'go on'
        """
        pairs = zip(self.params.values(), self.theta.tolist(), strict=True)
        found = self._asdict() | {
            "theta": [word if isinstance(word, str) else value for word, value in pairs],
            "batches": [batch._asdict() for batch in self.batches],
            "failing": self.failing._asdict(),
            "of_mean": self.of_mean._asdict() | {"interval": list(self.of_mean.interval)},
            "limits": [row._asdict() for row in self.limits],
            "best_between": dict(zip(self.params, self.best, strict=True)),
            "plan": None if self.plan is None else self.plan._asdict(),
            "matters": [row._asdict() | {"names": list(row.names)} for row in self.matters],
        }
        for key in ("interval", "gain_interval", "next_gain_interval", "next_draw_gain_interval"):
            found[key] = list(found[key])
        del found["low"], found["high"], found["choices"]
        return found


def recommend(
    study: Opened, mover: MoveMaker, worth: float | None = None, budget: int | None = None
) -> Recommendation:
    """What to deploy, what it is worth, what the next batch should gain, what to do.

    Nothing is computed by the search's weights: a model of the returns near the mean says what it
    is worth and where each parameter is best; trials of the mean itself, where there are enough,
    say the first without any model. The next moves are rehearsed on batches that it imagines.
    """
    least = 0.0 if worth is None else check_positive("worth", worth)
    budget = None if budget is None else check_count("budget", budget)
    with study.store.reading():
        results = results_of(study)
        tried, limits = tried_of(study, results), keeping_of(study, results)
        fails = bool(tried.refused)
        if not fails:
            tried = tried._replace(refused=refused(limits, study.limits.within))
        none = why_none(study, results)
        found = None if none else landscape(study, results)
        wide = None if found is None else everywhere(found, results)
        best = best_of_each(study, results, wide)
        then = at_last_move(study, results)
        batches, past = gained(then.results.known)
        now = of_mean(study, results, found, none)
        taken = deployed(study, results, wide, Known(now, limits, tried))
        outlook = VerdictBasis(
            worth=now,
            doubt=_doubt(study, results, *taken),
            batches=len(batches),
            past=past,
            coming=_coming(study, mover, then, found, budget),
            noise=np.nan if found is None else found.belief.noise,
            climbs=best.climbs,
            wrong=_better(study, results, limits, best.wrong),
            rare=rarely(results.values),
            fails=fails,
            untried=tried.more,
            shorter=shorter_steps(study.method),
            **_limits(study, results, limits),
        )
        explained = matters(study, results)
        due = "" if study.until_move() else sentences.due(study.lacks)
    verdict, tries = decided(outlook, least / results.unit)
    plan = None if budget is None else planned(outlook, budget, least / results.unit)
    told = _told(study, results, outlook, best, taken, (verdict, tries, plan))
    said = sentences.what_matters(explained, best.known, study.goal)
    words = filter(None, [due, told.words, said, frozen_words(study.frozen)])
    return told._replace(matters=explained, words=" ".join(words))


def _doubt(study: Opened, results: ModelledResults, one: Candidate, known: Known) -> Doubt:
    """Which results that stand out the worth of what is deployed rests on."""
    is_mean = np.array_equal(one.theta, results.mean)
    rho = None if is_mean else Diagonal(one.theta, results.std)
    again = partial(worth_at, study, rho=rho, model=fitted)
    return doubted(study, results, known.worth, again)


def _better(
    study: Opened,
    results: ModelledResults,
    limits: list[Within],
    wrong: Sequence[tuple[str, str, str]],
) -> list[tuple[str, str, str, list[str]]]:
    """Choices that are better than what is `wrong`, each with the limits that it may not keep.

    One that surely breaks a limit which what stands keeps, as `limits` has it, is left aside.
    """
    within, found = study.limits.within, []
    broken = {row.limit for row in outside(limits, within)}
    for name, now, better in wrong:
        params = {**study.params(study.in_units(results.mean)), name: better}
        rho = Diagonal(study.latent_theta(list(params.values())), results.std)
        unsure = outside(keeping_of(study, results, rho), within)
        if not any(row.high < within and row.limit not in broken for row in unsure):
            found.append((name, now, better, [row.limit for row in unsure]))
    return found


def _told(
    study: Opened,
    results: ModelledResults,
    outlook: VerdictBasis,
    best: Best,
    taken: tuple[Candidate, Known],
    decision: tuple[str, int, BudgetPlan | None],
) -> Recommendation:
    """A recommendation in the user's units and words."""
    unit, signed = results.unit, results.unit * study.sign  # a gain is better, either way
    (one, known), past = taken, outlook.past.times(unit)
    worth, worth_of_mean = (as_shown(study, results, x) for x in (known.worth, outlook.worth))
    verdict, tries, plan = decision
    plan = None if plan is None else plan._replace(gain=plan.gain * unit)
    theta = study.in_units(one.theta)
    found = Recommendation(
        theta=theta,
        params=study.params(theta),
        deploys=one.what,
        number=one.number,
        frozen={row.name: row.value for row in study.frozen},
        low=best.low,
        high=best.high,
        choices=best.choices,
        expected=worth.value,
        stderr=worth.stderr,
        interval=worth.interval,
        rests_on=worth.rests_on,
        of_mean=worth_of_mean,
        improbable=outlook.doubt.trials,
        failing=known.tried.failing,
        limits=known.limits,
        batches=[batch.times(signed) for batch in gained(results.known)[0]],
        gain=past.each,
        gain_interval=past.interval,
        **_next_gains(outlook.coming, unit),
        verdict=verdict,
        tries=tries,
        plan=plan,
        matters=[],
        words="",
        direction=study.goal.word,
    )
    return found._replace(words=_words(found, outlook, known, past.spread, study.goal))


def _next_gains(coming: Sequence[Forecast], unit: float) -> Plain:
    """What the next move should gain, in the user's units; not a number where nothing says so."""
    if not coming:
        return {
            "next_results": 0,
            **dict.fromkeys(("next_gain", "next_draw_gain"), np.nan),
            **dict.fromkeys(("next_gain_interval", "next_draw_gain_interval"), NOTHING),
        }
    first = coming[0]
    return {
        "next_results": first.results,
        "next_gain": first.policy.value * unit,
        "next_gain_interval": times(first.policy.interval, unit),
        "next_draw_gain": first.draw.value * unit,
        "next_draw_gain_interval": times(first.draw.interval, unit),
    }


def _limits(study: Opened, results: ModelledResults, found: list[Within]) -> Plain:
    """What an outlook says of limits."""
    late = [result.told.also for _, result in in_order(study, results.told)[-LATE * study.batch :]]
    return {
        "limits": found,
        "outside": [row.limit for row in outside(found, study.limits.within)],
        "strayed": any(study.limits.broken(also) for also in late),
    }


def _coming(
    study: Opened,
    mover: MoveMaker,
    then: LastMove,
    found: Landscape | None,
    budget: int | None,
) -> list[Forecast]:
    """What the next moves should gain, as many as a budget allows for."""
    unit = then.results.unit
    if found is None or unit != 1.0 or not can_rehearse(study) or not study.until_move():
        return []  # returns as large or small as numbers go are not imagined
    batches = 1 if budget is None else int(np.clip(budget // study.batch, 1, MOST_BATCHES))
    model = fitted(study, then.results) if then.later else found
    return forecasts(Scene(study, mover.next_results(), model, unit, then.later), batches)


def _words(
    found: Recommendation, outlook: VerdictBasis, known: Known, spread: float, goal: Goal
) -> str:
    tried, mean, other = known.tried, found.of_mean, ""
    take = sentences.deploy(tried.times, tried.failed, tried.refused, tried.more)
    if found.deploys != NEWEST:
        name = sentences.deployed_name(found.deploys, found.number)
        take = sentences.deploy_other(name, tried.refused)
        here = (found.expected, *found.interval, found.rests_on, goal, name)
        other = "" if known.worth is outlook.worth else sentences.expected_return(*here)
    of_mean = sentences.expected_return(mean.value, *mean.interval, mean.rests_on, goal)
    said = [
        take,
        *(within_words(row) for row in found.limits),
        other or of_mean,
        outlook.doubt.words,
        "" if known.worth.alone else sentences.left_out_of_that(tried.left_out),
        sentences.fails(*tried.failing[:4]) if tried.failures else "",
        of_mean if other else "",
        sentences.gained(len(found.batches), found.gain, *found.gain_interval, goal),
        *(sentences.better_choice(*x) for x in outlook.wrong if found.params[x[0]] == x[1]),
        _next(found, outlook, spread, goal, tried),
    ]
    if found.plan is not None:
        said.append(_plan_words(found, found.plan, outlook, goal))
    return " ".join(filter(None, said))


def _plan_words(found: Recommendation, plan: BudgetPlan, outlook: VerdictBasis, goal: Goal) -> str:
    """How to spend a budget, and why so, in a sentence."""
    if plan.search:
        return sentences.plan(*plan, goal)
    if found.verdict == GO_ON:
        return sentences.plan_too_few(plan.tries, found.next_results)
    return sentences.plan_after_loss(plan.tries) if has_lost(outlook) else sentences.plan(*plan)


def _next(
    found: Recommendation, outlook: VerdictBasis, spread: float, goal: Goal, tried: Tried
) -> str:
    """What to do next, in a sentence."""
    if outlook.outside:
        return sentences.go_on_to_limits(outlook.outside)
    if has_lost(outlook):
        return sentences.lost(goal, outlook.shorter)
    if outlook.fails:
        return sentences.go_on_failing(tried.in_a_row)
    if outlook.rare is not None:
        return sentences.go_on_rare(outlook.rare, goal)
    if not isfinite(found.gain):
        return sentences.go_on_blind(goal)
    if outlook.coming:
        return _of_forecast(found, goal)
    if found.verdict == STOP and not isfinite(found.gain_interval.high):
        return sentences.stop_equal(goal)
    if found.verdict == STOP:
        return sentences.stop(found.gain_interval.high, spread, goal)
    if found.verdict == TRY:
        return sentences.try_the_mean(found.tries, goal)
    if found.gain_interval.low > 0:
        return sentences.gains_still(goal)
    if outlook.climbs:
        return sentences.go_on_for(outlook.climbs)
    return sentences.go_on_perhaps(found.gain_interval.high, goal)


def _of_forecast(found: Recommendation, goal: Goal) -> str:
    policy = sentences.coming(
        found.next_results, found.next_gain, *found.next_gain_interval, "the mean policy", goal
    )
    draw = sentences.coming_draw(found.next_draw_gain, *found.next_draw_gain_interval, goal)
    if found.verdict == GO_ON and found.next_gain <= 0 < found.next_draw_gain:
        return f"{sentences.closing_in()} {draw} {policy[:1].upper()}{policy[1:]}"
    if found.verdict == GO_ON:
        return f"Go on: {policy} {draw}"
    if found.verdict == TRY:
        return f"{sentences.try_the_mean(found.tries, goal)} {policy[:1].upper()}{policy[1:]}"
    return f"Stop: {policy}"

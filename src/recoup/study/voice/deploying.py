"""Which parameters are the ones to deploy: the newest mean, unless others are better. No JAX.

Held against each other, by one model of all results, are the newest mean, those before it, what was
tried, and the start. What stands is the newest mean; while it is hardly known beside all returns
that were seen, the start. Another takes its place where the lower end of the difference is above 0,
so that a lucky one of many is not taken for the best.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np

from recoup.core.families.gaussian import Diagonal
from recoup.core.plain.belief import expected
from recoup.core.worth import quantile
from recoup.store.rows import MEAN
from recoup.study.reader.opened import Opened
from recoup.study.voice.failing import TOO_RISKY, Tried, failing_of
from recoup.study.voice.keeping import Within, keeping_of, outside
from recoup.study.voice.landscape import (
    MODEL_RESULTS,
    Landscape,
    ModelledResults,
    fitted,
    landscape,
    why_none,
)
from recoup.study.voice.predict import worth_at
from recoup.study.voice.worths import MeanPolicyWorth

NEWEST, EARLIER, TRIAL, START = "mean", "earlier mean", "trial", "start"
LAST_MEANS, BEST_TRIED = 30, 30  # that are looked at: the last ones, and the best results
VAGUEST = 1.5  # interval of what may be deployed, over the range of all returns
BETTER = {NEWEST: 2.0, START: 1.0}  # joint errors by which another must be above what stands
CHECKED = 4  # candidates that are held to limits and failures, at most


class Candidate(NamedTuple):
    """Parameters that one may deploy."""

    what: str  # mean, earlier mean, trial or start
    number: int | None  # of the move that made it, or of the trial
    theta: np.ndarray  # [D] latent


class Known(NamedTuple):
    """What is known of a candidate."""

    worth: MeanPolicyWorth
    limits: list[Within]
    tried: Tried

    def of(self, study: Opened, results: ModelledResults, one: Candidate) -> "Known":
        """Likewise of one that is not the newest mean, of which this is known."""
        rho = Diagonal(one.theta, results.std)
        failing = failing_of(study, results.told, one.theta, results.std)
        tried = self.tried._replace(times=0, failed=0, more=0, failing=failing)
        worth = self.worth  # where no model says anything of either
        if not why_none(study, results):
            worth = worth_at(study, results, rho, landscape)
        return Known(worth, keeping_of(study, results, rho), tried)


def deployed(
    study: Opened, results: ModelledResults, found: Landscape | None, mean: Known
) -> tuple[Candidate, Known]:
    """What to deploy, by a model of all results, with what is known of it; inside `reading()`.

    Nothing is known to be better than the start where there is no model. What fails too often, or
    does not keep its limits surely enough, is not taken, unless that is so of all: then it is the
    newest mean, of which `mean` says so.
    """
    newest, *others = candidates(study, results)
    if study.method.space == "actions":
        return newest, mean
    if found is None and np.ptp(results.values) > 0 and len(results.known) >= MODEL_RESULTS:
        found = fitted(study, results)  # in so many dimensions too few for an interval alone
    first: Iterable[Candidate] = others[:1] if newest.what == NEWEST else [newest]
    if found is not None:
        first = _in_order([newest, *others], results, found)
    for one in islice(first, CHECKED):
        known = mean if one is newest else mean.of(study, results, one)
        if not (mean.tried.in_a_row or _refused(study, known)):
            return one, known
    return newest, mean


def _refused(study: Opened, known: Known) -> bool:
    """Whether it fails too often, or does not keep its limits surely enough."""
    fails = known.tried.failures and known.tried.failing.rate > TOO_RISKY
    return bool(fails or outside(known.limits, study.limits.within))


def candidates(study: Opened, results: ModelledResults) -> list[Candidate]:
    """The newest mean, the start, other means and the best of what was tried."""
    store = study.store
    moves = {move.proposal: move.id for move in store.last_moves(LAST_MEANS)}
    made = store.proposals(moves)
    means = {number: study.shown(made[row].numbers)[0] for row, number in moves.items()}
    start = Candidate(START, None, study.shown(store.proposal(0).numbers)[0])
    last = max(means, default=0)
    newest = [Candidate(NEWEST, last, results.mean)] if means else []
    earlier = [Candidate(EARLIER, number, means[number]) for number in means if number < last]
    best = sorted((x for x in results.known if x.kind != MEAN), key=lambda x: -x.value)[:BEST_TRIED]
    tried = [Candidate(TRIAL, x.trial, x.theta) for x in best]
    return [*newest, start, *earlier, *tried]


def _in_order(
    candidates: list[Candidate], results: ModelledResults, found: Landscape
) -> Iterator[Candidate]:
    """What may be deployed, the best lower end of the difference to what stands first."""
    looks = found.at(np.stack([one.theta for one in candidates]))
    mean, covariance = expected(found.belief, looks)
    variance = np.diag(covariance)
    width = 2 * quantile(found.belief.results) * np.sqrt(variance.clip(0))
    known = width <= VAGUEST * np.ptp(results.values)
    stands = 0 if known[0] or candidates[0].what == START else 1  # the newest mean, or the start
    known[stands] = True
    apart = np.sqrt((variance + variance[stands] - 2 * covariance[stands]).clip(0))
    lower = mean - mean[stands] - BETTER[candidates[stands].what] * apart
    order = np.argsort(-np.where(known, lower, -np.inf), kind="stable")
    return (candidates[i] for i in order if known[i])

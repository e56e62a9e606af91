"""What weights alone say of a candidate distribution: at once, for sliders while they move.

`evaluate` says it exactly. All that does not depend on the candidate is kept while nothing in the
study changes: samples, what drew them, and their densities under the mixture of all of it.
"""

from typing import NamedTuple

import numpy as np

from recoup.core.intervals import WeighedDraws, successes
from recoup.core.plain.judge import Drew, unseen_share
from recoup.core.plain.small_archive import Samples, valued
from recoup.core.types import Given
from recoup.core.weights import bounded_exp
from recoup.core.worth import LEAST_ESS, UNSEEN
from recoup.study.moves.settling import MoveMaker
from recoup.study.moves.uncompiled import placed_samples
from recoup.study.reader.opened import Opened
from recoup.study.space.goals import turned


class WeighedSamples(NamedTuple):
    """The samples of a study, and what drew them."""

    samples: Samples
    drew: Drew
    returns: np.ndarray  # [n]
    valid: np.ndarray  # [n] which of them count
    counts: np.ndarray  # [P] how many each proposal drew


class WeighedMean(NamedTuple):
    """The weighted mean return of a candidate; not a number where results say nothing.

    >>> found = study.weighed()
    >>> 0 <= found.unseen <= 1
    True
    """

    value: float  # the expected return
    ess: float  # effective sample size
    unseen: float  # share of the candidate where hardly any result could have been drawn


def weighed(opened: Opened, mover: MoveMaker, mean: Given, std: Given) -> WeighedMean | None:
    """What weights say of a candidate; None of what only JAX or a user's family can weigh."""
    row = opened.method
    if opened.missing or opened.has_own_family or row.space == "actions":
        return None
    with opened.store.reading():
        target = opened.target(mean, std)
        found = _known(opened, mover)
    if found is None:
        return WeighedMean(np.nan, 0.0, 1.0)
    samples, drew, returns, valid, counts = found
    rho = drew.proposals.family.unpacked(target, opened.dim)
    density = drew.proposals.density(rho, samples.theta)
    ratio = np.where(drew.outside, -np.inf, density) - drew.mixture
    weights = bounded_exp(ratio + np.log(len(returns)))
    of_ok = np.where(valid, weights, 0.0)
    total, squares = float(np.sum(of_ok)), float(np.sum(of_ok**2))
    ess = total**2 / squares if squares else 0.0
    drawn = np.ones(len(returns), bool)
    data = WeighedDraws(weights, returns, valid, drawn, samples.drawn_by, len(counts), row.draw)
    unseen = min(unseen_share(rho, drew.proposals, counts) / float(successes(data)), 1.0)
    if unseen > UNSEEN or ess < LEAST_ESS:
        return WeighedMean(np.nan, ess, unseen)
    value = float(np.sum(of_ok * np.where(valid, returns, 0.0)) / total)
    return WeighedMean(turned(value, opened.sign), ess, unseen)


def _known(opened: Opened, mover: MoveMaker) -> WeighedSamples | None:
    """The samples as they are; kept until anything in the study changes. None before the second."""
    version = opened.store.version()
    kept: tuple[str, WeighedSamples | None] | None = opened.remembered.get("weighed")
    if kept is None or kept[0] != version:
        counted = opened.store.counters().counted
        made = _samples(opened, mover, counted) if counted > 1 else None
        kept = opened.remembered["weighed"] = version, made
    return kept[1]


def _samples(opened: Opened, mover: MoveMaker, counted: int) -> WeighedSamples:
    ledger = mover.all_results()
    results = ledger.results(counted)
    with np.errstate(all="ignore"):
        samples, drew = placed_samples(opened.method, ledger, results)
    returns, valid = valued(samples.returns, opened.method.stated)
    counts = np.bincount(samples.drawn_by, minlength=len(drew.proposals.rhos.mean))
    return WeighedSamples(samples, drew, returns, valid, counts)

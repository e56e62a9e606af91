"""What the samples of a small archive say of a candidate: `core.judgement` in the form of NumPy."""

from typing import NamedTuple

import numpy as np

from recoup.core.intervals import WeighedDraws, by_weights, successes, with_model
from recoup.core.plain.densities import Proposals
from recoup.core.plain.small_archive import Samples, valued
from recoup.core.types import Rho
from recoup.core.weights import bounded_exp
from recoup.core.worth import FEW, Seen, probes, refusal


class Drew(NamedTuple):
    """What drew the samples."""

    proposals: Proposals
    outside: np.ndarray  # [n] samples where no candidate can have any density
    mixture: np.ndarray  # [n] the log of the counted sum of the samples' densities, relative


def judged(
    rho: Rho,
    samples: Samples,
    drew: Drew,
    *,
    failure: str | float,
    size: int,
) -> tuple[Seen, np.ndarray, float, int]:
    """What samples say of `rho`, their weights, its unseen share, and how many are left out.

    The model is fitted only where weights alone do not refuse: its numbers would not be shown.
    """
    returns, valid = valued(samples.returns, failure)
    target = drew.proposals.density(rho, samples.theta)
    target = np.where(drew.outside, -np.inf, target)
    weights = bounded_exp(target - drew.mixture + np.log(max(len(returns), 1)))
    strata, drawn = len(drew.proposals.rhos.mean), np.ones(len(returns), bool)
    data = WeighedDraws(weights, returns, valid, drawn, samples.drawn_by, strata, size)
    counts = np.bincount(samples.drawn_by, minlength=strata)
    unseen = min(unseen_share(rho, drew.proposals, counts) / float(successes(data)), 1.0)
    seen = by_weights(data)
    if not refusal(seen, unseen, samples.theta.shape[1]):
        seen = with_model(data, seen, lambda rows: drew.proposals.noise(rho, samples.theta[rows]))
    return seen, np.where(valid, weights, 0.0), unseen, int(np.sum(~valid))


def unseen_share(rho: Rho, proposals: Proposals, counts: np.ndarray) -> float:
    """How much of a candidate lies where hardly any sample could have been drawn.

    Proposals one after the other, the newest first: a mixture only grows, so that a place which
    some of them reach is looked at no more.
    """
    theta = rho.theta(probes(len(rho.mean)))
    target, z = proposals.density(rho, theta), proposals.noise(proposals.reference, theta)
    mixture, left = np.full(len(theta), -np.inf), np.arange(len(theta))
    for slot in np.flatnonzero(counts)[::-1]:
        row = proposals.drawn_density(int(slot), theta[left], z[left])
        mixture[left] = np.logaddexp(mixture[left], np.log(counts[slot]) + row)
        left = left[target[left] - mixture[left] > -np.log(FEW)]
        if not len(left):
            break
    return len(left) / len(theta)

"""What a small archive says of a candidate: `core.intervals` in NumPy."""

from typing import NamedTuple

import numpy as np

from recoup.core.plain.densities import Proposals, Rho, gained_mixture, log_ratio
from recoup.core.plain.errors import standard_error
from recoup.core.plain.model import fitted
from recoup.core.plain.move import Samples, valued
from recoup.core.weights import bounded_exp, by_draw, effective_sample_size
from recoup.core.worth import FAR_AWAY, FEW, MOST, NEGLIGIBLE, Seen, probes


class Weighed(NamedTuple):
    """Results and their weights, draws of `size` adjacent samples each, as `intervals.Weighed`."""

    weights: np.ndarray
    returns: np.ndarray
    valid: np.ndarray
    stratum: np.ndarray
    size: int

    def mean_of(self, values: np.ndarray, drawn: np.ndarray | None = None) -> tuple[float, float]:
        """The self-normalised mean of `values [n]`, and its standard error."""
        total = float(np.sum(self.weights)) or 1.0
        mean = float(np.sum(self.weights * values)) / total
        drew = np.ones(len(values), bool) if drawn is None else drawn
        residuals = by_draw(self.weights * (values - mean), self.size)
        by_chance = by_draw(drew, self.size) > 0
        stratum = self.stratum[:: self.size]
        return mean, standard_error(residuals, by_chance, stratum) / total


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
    """What samples say of `rho`, their weights, its unseen share, and how many are left out."""
    returns, valid = valued(samples.returns, failure)
    target = log_ratio(rho, drew.proposals.reference, samples.theta)
    target = np.where(drew.outside, -np.inf, target)
    log_w = target - drew.mixture + np.log(max(len(returns), 1))
    weights = bounded_exp(log_w)
    data = Weighed(weights, returns, valid, samples.drawn_by, size)
    seen = looked_at(data, rho.whitened(np, samples.theta))
    counts = np.bincount(samples.drawn_by, minlength=len(drew.proposals.rhos.mean))
    unseen = min(unseen_share(rho, drew.proposals, counts) / successes(data), 1.0)
    return seen, np.where(valid, weights, 0.0), unseen, int(np.sum(~valid))


def unseen_share(rho: Rho, proposals: Proposals, counts: np.ndarray) -> float:
    """How much of a candidate lies where hardly any sample could have been drawn."""
    theta = rho.theta(probes(len(rho.mean)))
    none = np.full(len(theta), -np.inf)
    mixture = gained_mixture(proposals, counts, theta, none)
    return float(np.mean(log_ratio(rho, proposals.reference, theta) - mixture > -np.log(FEW)))


def successes(data: Weighed) -> float:
    """The share of the candidate that does not fail, by weights; 1 where nothing has."""
    kept = float(np.sum(data.weights[data.valid]))
    return kept / float(np.sum(data.weights)) if kept > 0 else 1.0


def looked_at(data: Weighed, z: np.ndarray) -> Seen:
    """What `data` says; `z [n, D]` are its samples where the candidate is N(0, I)."""
    returns, valid = data.returns, data.valid
    kept = data._replace(weights=np.where(valid, data.weights, 0.0))
    n = float(np.sum(valid))
    weighted, stderr = kept.mean_of(returns)
    ess = float(effective_sample_size(by_draw(kept.weights, data.size)))
    told = returns[valid]
    return Seen(
        weighted,
        stderr,
        *_with_model(data, weighted, z),
        ess=ess,
        even=ess / max(n / data.size, 1),
        mean_weight=float(np.sum(kept.weights)) / max(n, 1),
        spread=float(np.max(told, initial=-np.inf) - np.min(told, initial=np.inf)),
        std=kept.mean_of((returns - weighted) ** 2)[0] ** 0.5,
        samples=n,
    )


def _with_model(data: Weighed, centre: float, z: np.ndarray) -> tuple[float, float, float]:
    """The mean with the model as control variate, the error of its correction, and its own."""
    heavy = _heaviest(data)
    drawn = data.weights[heavy] > FAR_AWAY * np.max(data.weights)
    if not drawn.any():  # no weight at all
        return centre, float("nan"), float("inf")
    part = data._replace(
        weights=data.weights[heavy],
        returns=np.where(data.valid, data.returns - centre, 0.0)[heavy],
        valid=data.valid[heavy],
        stratum=data.stratum[heavy],
    )
    model = fitted(z[heavy][drawn], part.returns[drawn])
    residuals = np.zeros(len(heavy))
    residuals[drawn] = model.residuals
    left, stderr = part.mean_of(residuals, drawn)
    without = float(np.sum(model.pulls * model.residuals)) / max(int(np.sum(drawn)), 1)
    kept = np.sum(part.weights) >= (1 - NEGLIGIBLE) * np.sum(data.weights)
    success = successes(data)
    mean = centre + (model.mean + left - without) / success
    return mean, stderr / success, model.std / success if kept else float("inf")


def _heaviest(data: Weighed) -> np.ndarray:
    """Which samples belong to the draws of most weight, as many as the model looks at."""
    draws = by_draw(data.weights, data.size)
    chosen = np.argsort(-draws, kind="stable")[: MOST // data.size]
    return (chosen[:, None] * data.size + np.arange(data.size)).ravel()

"""One move of a small archive: the estimate of `core.estimators.whole`, the steps of `updates`."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from recoup.core.baselines import Baseline
from recoup.core.families.rho import MAX_LOG_TAU, Diagonal
from recoup.core.gradient import Earned, Scores, mean_gradient
from recoup.core.plain.densities import kl_divergence
from recoup.core.plain.errors import standard_error
from recoup.core.weights import (
    LogDensities,
    Ratio,
    Shaper,
    by_draw,
    effective_sample_size,
    mixture_ratio,
    own_ratio,
    weigh,
)


class Samples(NamedTuple):
    """Results as they were told, and what drew them."""

    theta: np.ndarray  # [n, D]
    returns: np.ndarray  # [n], not finite where one failed
    drawn_by: np.ndarray  # [n]


class Parts(NamedTuple):
    """What an estimate is made of."""

    ratio: Ratio
    shapers: Sequence[Shaper]
    normalised: bool
    baseline: Baseline
    failure: str | float
    size: int  # adjacent samples that are one draw


class Estimate(NamedTuple):
    """What samples say about one rho, as `whole.Estimate`."""

    gradient: Any
    objective: float
    objective_stderr: float
    weights: np.ndarray
    ess: float
    max_weight: float
    samples: int
    mean_weight: float
    censored: int


def valued(returns: np.ndarray, failure: str | float) -> tuple[np.ndarray, np.ndarray]:
    """Returns with what failures are worth, zero where that is nothing known, and which are valid.

    As `archive.with_failures`.
    """
    valid = np.isfinite(returns)
    if failure == "censored":
        return np.where(valid, returns, 0.0), valid
    worst = np.min(returns[valid], initial=np.inf)
    value = worst if failure == "worst" else float(failure)
    if not np.isfinite(value):
        return np.where(valid, returns, 0.0), valid
    return np.where(valid, returns, value), np.ones_like(valid)


def estimate(parts: Parts, rho: Diagonal, samples: Samples, densities: LogDensities) -> Estimate:
    """The gradient at `rho`, and what the weights make of the objective."""
    returns, valid = valued(samples.returns, parts.failure)
    censored = int(np.sum(~valid))
    normalised = parts.normalised or censored > 0
    weights = weigh(parts.ratio, parts.shapers, densities, valid, normalised)
    raw = weigh(parts.ratio, parts.shapers, densities, np.ones_like(valid), False)
    n, size = int(np.sum(valid)), parts.size
    objective = float(np.sum(weights * returns)) / max(n, 1)
    residuals = weights * (returns - objective) if normalised else weights * returns - objective
    stderr = standard_error(
        by_draw(np.where(valid, residuals, 0.0), size),
        np.ones(len(valid) // size, bool),
        samples.drawn_by[::size],
    )
    return Estimate(
        gradient=_gradient(parts, rho, samples, (returns, weights, valid), censored > 0),
        objective=objective if n else float("nan"),
        objective_stderr=stderr / max(n, 1),
        weights=weights,
        ess=float(effective_sample_size(by_draw(weights, size))),
        max_weight=float(np.max(weights, initial=0.0)),
        samples=n,
        mean_weight=_mean_weight(parts, raw, samples.drawn_by),
        censored=censored,
    )


def _mean_weight(parts: Parts, weights: np.ndarray, drawn_by: np.ndarray) -> float:
    """The mean weight of what was drawn; not a number where it says nothing."""
    plain = parts.ratio in (own_ratio, mixture_ratio) and not parts.shapers
    if not plain and len(set(drawn_by.tolist())) > 1:
        return float("nan")
    return float(np.sum(weights)) / max(len(weights), 1)


def _gradient(
    parts: Parts,
    rho: Diagonal,
    samples: Samples,
    known: tuple[np.ndarray, np.ndarray, np.ndarray],
    censored: bool,
) -> Diagonal:
    """The gradient of a diagonal Gaussian, of returns relative to one that occurred."""
    returns, weights, valid = known
    most = valid & (weights == np.max(weights[valid], initial=-np.inf))
    largest = float(np.max(returns[most], initial=-np.inf))
    origin = largest if np.isfinite(largest) else 0.0
    returns = np.where(valid, returns - origin, 0.0)
    mass = float(np.sum(weights))
    centre = float(np.sum(weights * returns)) / (mass if mass > 0 else 1.0)
    scores = _scores(rho, samples.theta, centre)
    earned = Earned(returns, weights, valid, np.float64(origin), order=samples.drawn_by)
    b = np.float64(centre) if censored else parts.baseline(earned, scores)
    return mean_gradient(returns, weights, scores, b, np.sum(valid))


def _scores(rho: Diagonal, theta: np.ndarray, centre: float) -> Scores:
    """The scores of samples `[n, D]` under a diagonal Gaussian, added up as they are asked for."""
    z = (theta - rho.mean) / rho.std
    each = Diagonal(z / rho.std, (z**2 - 1) / rho.std)
    return Scores(
        norms=sum(np.sum(s**2, axis=1) for s in each),
        centre=np.float64(centre),
        total=lambda c: Diagonal(*(_total(c, s) for s in each)),
        squares=lambda c: Diagonal(*(_total(c, s**2) for s in each)),
    )


def _total(c: np.ndarray, values: np.ndarray) -> np.ndarray:
    """sum_n c_n v_n, always in the same order: a BLAS may split it by its threads."""
    return np.einsum("n,nd->d", c, values, optimize=False)


# -- steps --

Step = Callable[[Diagonal, Diagonal], Diagonal]  # rho, gradient -> rho


def normalised_ascent(epsilon: float, tau_floor: float) -> Step:
    """A step of length epsilon along the gradient."""

    def step(rho: Diagonal, gradient: Diagonal) -> Diagonal:
        unit = _unit(gradient)
        return _floored(
            Diagonal(rho.mean + epsilon * unit.mean, rho.std + epsilon * unit.std), tau_floor
        )

    return step


def natural_step(kl: float, tau_floor: float) -> Step:
    """A natural-gradient step so long that KL(new || old) is `kl`, as `gaussian.moved`."""

    def step(rho: Diagonal, gradient: Diagonal) -> Diagonal:
        unit = _unit(gradient)
        fisher = Diagonal(rho.std**-2, 2 * rho.std**-2)
        along = Diagonal(unit.mean / fisher.mean, unit.std / fisher.std)

        def at(length: float) -> Diagonal:
            d_log_tau = np.clip(length * along.std / rho.std, -MAX_LOG_TAU, MAX_LOG_TAU)
            return Diagonal(rho.mean + length * along.mean, rho.std * np.exp(d_log_tau))

        free, capped = (float(np.sum(f * v**2)) for f, v in zip(fisher, along, strict=True))
        longest = _safe_sqrt(2 * kl, free) if free > 0 else 8 * _safe_sqrt(2 * kl, capped)
        low, high = 0.0, longest
        for _ in range(60):
            middle = 0.5 * (low + high)
            short = kl_divergence(at(middle), rho) < kl
            low, high = (middle, high) if short else (low, middle)
        return _floored(at(low), tau_floor)

    return step


def _safe_sqrt(top: float, bottom: float) -> float:
    return (top / bottom) ** 0.5 if bottom > 0 else 0.0


def _floored(rho: Diagonal, least: float) -> Diagonal:
    return Diagonal(rho.mean, np.maximum(rho.std, least))


def _unit(gradient: Diagonal) -> Diagonal:
    """The gradient over its norm; zero where it is zero or not finite."""
    largest = float(np.max([np.max(np.abs(g)) for g in gradient]))
    if not 0 < largest < np.inf:  # also where it is not a number
        return Diagonal(*(np.zeros_like(g) for g in gradient))
    scaled = [g / largest for g in gradient]
    norm = sum(float(np.sum(g**2)) for g in scaled) ** 0.5
    return Diagonal(*(g / norm for g in scaled))

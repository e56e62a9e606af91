"""What the contexts of trials explain of their returns: what was known before any policy acted.

A context (a payload, a temperature, the observation after a reset) does not depend on theta. What
it explains of the returns, centred over the contexts seen, may be taken off of them: no expectation
changes, and the noise that it is goes. In the model of the returns it is one more kernel, over
contexts, beside that over theta. The posterior of theta's part, given the returns, is the one
given the returns less the posterior mean of the context's part, so that model and weights alike
see those.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from recoup.core.rules import model as models
from recoup.core.rules.newton import clipped
from recoup.core.rules.tuning import TUNED

LEAST = 8  # samples with a context from which on anything is taken off
NEWEST_FITTED = 300  # the newest of them that the kernel is fitted to
RATIOS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)  # the context's variance over that of the noise
NOISES = (0.1, 0.3, 1.0, 3.0, 10.0)  # times the noise that the last move's model has found
NEAR = (0.3, 0.6, 1.7, 3.0)  # the same, about the best so far
FINER = (0.5, 2.0)  # times the best ratio so far


class Explained(NamedTuple):
    """What is taken off of returns."""

    part: np.ndarray  # [n] in returns; zero where no context is known
    share: np.float64  # of the variance of those returns


class _Try(NamedTuple):
    """A model with a ratio and a noise."""

    ratio: float
    noise: float
    fit: models.Fit
    worth: float  # log-evidence and prior


def explained(
    z: np.ndarray,
    returns: np.ndarray,
    known: np.ndarray,
    newest: np.ndarray,
    context: np.ndarray,
    hyper: np.ndarray,
) -> Explained:
    """What contexts `[n, C]` explain of returns `[n]`, where they are `known [n]`.

    Fitted to those among the `newest [n]` samples; `hyper [3]` is that of the model of returns.

    Implements: rasmussen2006 eq. 2.25 of contexts: the posterior mean of their part of a sum,
    e = r v K_c (K + r v K_c + v I)^-1 y, with ratio r and noise v by the evidence; (14) in
    docs/recoup.md. Zero where no r is surely better than none.
    """
    nothing = Explained(np.zeros(len(returns)), np.float64(0))
    fitted = np.flatnonzero(known & newest)[-NEWEST_FITTED:]
    if len(fitted) < LEAST:
        return nothing
    sure = np.ones(len(fitted), bool)
    y, scale = clipped(np, returns[fitted], sure)
    if not np.isfinite(scale) or scale == 0:
        return nothing
    k = kernel(context[known], context[fitted])
    points = models.points_of(np, z[fitted], sure)
    best = chosen(points, y, hyper, k[np.searchsorted(np.flatnonzero(known), fitted)])
    if best is None:
        return nothing
    part = np.zeros(len(returns))
    part[known] = best.ratio * best.noise * (k @ best.fit.alpha)
    share = np.var(part[fitted]) / np.var(y)
    return Explained(part * scale, np.minimum(share, 1.0))


def kernel(at: np.ndarray, fitted: np.ndarray) -> np.ndarray:
    """The kernel `[m, n]` of contexts `at [m, C]` and those that it is `fitted [n, C]` to.

    A plane, its squares and products, and bumps, in standard deviations of each number; each part
    is centred over the fitted contexts and of mean variance one there, and so is their sum. Zero
    where all contexts are alike.
    """
    middle, spread = fitted.mean(axis=0), fitted.std(axis=0)
    some = spread > 1e-12 * (1 + np.abs(middle))
    u, v = ((x[:, some] - middle[some]) / spread[some] for x in (at, fitted))
    across, own = np.zeros((len(u), len(v))), np.zeros((len(v), len(v)))
    for part in (_plane, _squares, _bumps):
        there = part(v, v)
        across, own = across + _unit(part(u, v), there), own + _unit(there, there)
    return _unit(across, own)


def _plane(u: np.ndarray, v: np.ndarray) -> np.ndarray:
    return u @ v.T


def _squares(u: np.ndarray, v: np.ndarray) -> np.ndarray:
    found: np.ndarray = (u @ v.T) ** 2
    return found


def _bumps(u: np.ndarray, v: np.ndarray) -> np.ndarray:
    apart = np.sum(u**2, axis=1)[:, None] + np.sum(v**2, axis=1) - 2 * (u @ v.T)
    return np.exp(-np.maximum(apart, 0.0) / (2 * max(u.shape[1], 1)))


def _unit(k: np.ndarray, own: np.ndarray) -> np.ndarray:
    """A kernel `k [m, n]`, centred by that of the fitted points themselves, `own [n, n]`."""
    middle = own.mean(axis=0)
    variance = np.mean(np.diagonal(own) - 2 * middle + middle.mean())
    centred = k - middle - k.mean(axis=1)[:, None] + middle.mean()
    return centred / variance if variance > 1e-12 else np.zeros_like(k)


def chosen(points: models.Points, y: np.ndarray, hyper: np.ndarray, k: np.ndarray) -> _Try | None:
    """The ratio and the noise of most evidence; None where it is not surely more than without."""
    theta = models.covariance(np, points, np.array([hyper[0], -np.inf, hyper[2]]))
    noise = np.exp(hyper[1])

    def tried(ratio: float, noise: float) -> _Try:
        v = float(np.clip(noise, 1e-6, 1e3))
        whole = theta + (v * ratio) * k
        whole[np.diag_indices(len(y))] += v
        fit = models.fitted(np, whole, y, len(y))
        prior = -((np.log(v / TUNED.noise_prior) / TUNED.prior_spreads[1]) ** 2) / 2
        return _Try(ratio, v, fit, float(fit.evidence + prior))

    def best_of(known: Iterable[_Try], *pairs: tuple[float, float]) -> _Try:
        return max((*known, *(tried(*pair) for pair in pairs)), key=lambda one: one.worth)

    without = best_of((), *((0.0, noise * times) for times in NOISES))
    best = best_of((), *((ratio, without.noise / (1 + ratio)) for ratio in RATIOS))
    best = best_of((best,), *((best.ratio, best.noise * times) for times in NEAR))
    best = best_of((best,), *((best.ratio * times, best.noise) for times in FINER))
    return best if best.worth > without.worth + TUNED.evident else None

"""The paper's theorems as functions: bounds on the variance of gradient estimates.

Variances are traces of covariance matrices, for N' samples drawn independently from one proposal
rho'. Where a theorem's assumption fails the function says which, in the `InputError` it raises.
"""

from math import inf, isfinite
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from recoup.checks import (
    InputError,
    check_between,
    check_count,
    check_finite,
    check_numbers,
    check_positive,
    check_stds,
)
from recoup.core.families.gaussian import Diagonal, log_ratio
from recoup.core.types import Array


class BlockBounds(NamedTuple):
    """A bound for the gradient with respect to eta, and one for tau."""

    eta: float
    tau: float


class WeightRange(NamedTuple):
    """The least and the greatest importance weight."""

    w_min: float
    w_max: float


def weight_range(
    target: tuple[Array, Array], proposal: tuple[Array, Array], support: Array | None = None
) -> WeightRange:
    """Infimum and supremum of w = p(theta | target) / p(theta | proposal).

    Over all theta the supremum is finite only where every tau is below the proposal's (or the
    coordinate's distributions are equal), the infimum positive only where every tau is above it:
    both at once only for equal distributions. On a bounded `support [M, D]`, points that stand for
    it, both are always finite and positive.

    Implements: zhao2013 S3.1 w_min <= w(theta) <= w_max.
    """
    (eta, tau), (eta_q, tau_q) = _checked("target", target), _checked("proposal", proposal)
    if eta.shape != eta_q.shape:
        raise InputError(
            f"target and proposal must have one dimension, got {eta.size} and {eta_q.size}."
        )
    if support is not None:
        _check_support(support, eta.size)
        with jax.enable_x64(True):
            p = Diagonal(jnp.asarray(eta), jnp.asarray(tau))
            q = Diagonal(jnp.asarray(eta_q), jnp.asarray(tau_q))
            points = jnp.asarray(np.asarray(support, float))
            log_w = np.asarray(jax.vmap(log_ratio, (None, None, 0))(p, q, points))
        return WeightRange(float(np.exp(log_w.min())), float(np.exp(log_w.max())))
    equal = (tau == tau_q) & (eta == eta_q)
    with np.errstate(divide="ignore", invalid="ignore"):
        extreme = np.log(tau_q / tau) + (eta - eta_q) ** 2 / (2 * (tau_q**2 - tau**2))
    log_max = np.where(equal, 0.0, np.where(tau < tau_q, extreme, inf))
    log_min = np.where(equal, 0.0, np.where(tau > tau_q, extreme, -inf))
    return WeightRange(float(np.exp(log_min.sum())), float(np.exp(log_max.sum())))


def return_scale(discount: float, horizon: int) -> float:
    """(1 - gamma^T) / (1 - gamma), the return of an episode whose every reward is 1."""
    discount = check_between("discount", discount, 0.0, 1.0)
    horizon = check_count("horizon", horizon)
    return float(horizon) if discount == 1 else (1 - discount**horizon) / (1 - discount)


def inverse_variance(tau: Array) -> float:
    """B, the trace of the inverse covariance of the search distribution.

    Implements: zhao2013 S3.1 B = sum_i tau_i^-2.
    """
    check_numbers("tau", tau)
    check_stds("tau", tau)
    return float(np.sum(np.asarray(tau, float) ** -2))


def variance_bound(
    tau: Array, *, beta: float, discount: float, horizon: int, samples: int, w_max: float
) -> BlockBounds:
    """Upper bounds of the variance of IW-PGPE's gradients, rewards within [-beta, beta].

    Implements: zhao2013 Thm. 1 beta^2 (1 - gamma^T)^2 B w_max / (N' (1 - gamma)^2), twice for tau.
    """
    _assume_bounded_above("Theorem 1", w_max)
    scale = check_positive("beta", beta) ** 2 * w_max
    return _bounds(scale, tau, discount, horizon, samples)


def excess_variance(baseline: float, optimal: float, curvature: float, samples: int) -> float:
    """Variance with `baseline` minus that with the `optimal` one; `curvature` is E[w^2 ||s||^2].

    Implements: zhao2013 Thm. 2 (b - b*)^2 E[w^2 ||s||^2] / N'.
    """
    return (baseline - optimal) ** 2 * curvature / check_count("samples", samples)


def reduction_lower_bound(
    tau: Array, *, alpha: float, discount: float, horizon: int, samples: int, w_min: float
) -> BlockBounds:
    """Least reduction of variance by the optimal baseline, rewards of at least alpha > 0.

    Implements: zhao2013 Thm. 3 (lower) alpha^2 (1 - gamma^T)^2 B w_min / (N' (1 - gamma)^2), twice
    for tau. Differs: holds for the baseline that is optimal for each block, eta and tau, by itself;
    the joint scalar of Theorem 2 can violate it.
    """
    _assume_bounded_below("Theorem 3", w_min)
    scale = check_positive("alpha", alpha) ** 2 * w_min
    return _bounds(scale, tau, discount, horizon, samples)


def reduction_upper_bound(
    tau: Array, *, beta: float, discount: float, horizon: int, samples: int, w_max: float
) -> BlockBounds:
    """Greatest reduction of variance by the optimal baseline, rewards within [-beta, beta].

    Implements: zhao2013 Thm. 3 (upper): the bound of Theorem 1, of which no more can be removed.
    """
    _assume_bounded_above("Theorem 3", w_max)
    return variance_bound(
        tau, beta=beta, discount=discount, horizon=horizon, samples=samples, w_max=w_max
    )


def optimal_variance_bound(
    tau: Array,
    *,
    alpha: float,
    beta: float,
    discount: float,
    horizon: int,
    samples: int,
    w_min: float,
    w_max: float,
) -> BlockBounds:
    """Upper bounds of the variance with the optimal baseline, rewards within [alpha, beta].

    Implements: zhao2013 Cor. (1 - gamma^T)^2 B (beta^2 w_max - alpha^2 w_min) / (N' (1 - gamma)^2),
    twice for tau. Differs: each block's own optimal baseline, as in Theorem 3.
    """
    _assume_bounded_above("The Corollary", w_max)
    _assume_bounded_below("The Corollary", w_min)
    if not 0 < alpha < beta:
        raise InputError(f"The Corollary needs 0 < alpha < beta, got {alpha} and {beta}.")
    if w_min > w_max:
        raise InputError(f"The Corollary needs w_min <= w_max, got {w_min} and {w_max}.")
    return _bounds(beta**2 * w_max - alpha**2 * w_min, tau, discount, horizon, samples)


def _bounds(scale: float, tau: Array, discount: float, horizon: int, samples: int) -> BlockBounds:
    eta = scale * return_scale(discount, horizon) ** 2 * inverse_variance(tau)
    eta /= check_count("samples", samples)
    return BlockBounds(eta=eta, tau=2 * eta)


def _assume_bounded_above(theorem: str, w_max: float) -> None:
    check_numbers("w_max", w_max)
    if not (isfinite(w_max) and w_max > 0):
        raise InputError(
            f"{theorem} needs weights bounded above, 0 < w_max < infinity, got {w_max}: a Gaussian "
            "target must be narrower than the proposal in every coordinate, or the support bounded."
        )


def _assume_bounded_below(theorem: str, w_min: float) -> None:
    check_numbers("w_min", w_min)
    if not (isfinite(w_min) and w_min > 0):
        raise InputError(
            f"{theorem} needs weights bounded below, w_min > 0, got {w_min}: a Gaussian target "
            "must be wider than the proposal in every coordinate, or the support bounded."
        )


def _checked(what: str, rho: tuple[Array, Array]) -> tuple[np.ndarray, np.ndarray]:
    """The eta and tau `[D]` of one distribution."""
    for part in rho:
        check_numbers(what, part)
    eta, tau = (np.atleast_1d(np.asarray(x, float)) for x in rho)
    check_finite(f"{what} eta", eta)
    check_stds(f"{what} tau", tau)
    if eta.shape != tau.shape or eta.ndim != 1:
        raise InputError(
            f"{what} must be eta and tau of one shape [D], got {list(eta.shape)} and "
            f"{list(tau.shape)}."
        )
    return eta, tau


def _check_support(support: Array, dim: int) -> None:
    check_numbers("support", support)
    if np.ndim(support) != 2 or np.shape(support)[1] != dim or np.shape(support)[0] == 0:
        got = list(np.shape(support))
        raise InputError(f"support must have shape [M, D] = [M, {dim}], got {got}.")
    check_finite("support", support)

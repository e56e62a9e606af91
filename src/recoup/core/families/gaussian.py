"""The paper's search distribution: the diagonal Gaussian over policy parameters."""

from functools import cache

import jax
import jax.numpy as jnp
from jax import Array

from recoup.core.families.family import Coordinates, Family, draw, length_to, longest_length
from recoup.core.families.rho import MAX_LOG_TAU, Diagonal
from recoup.core.sweeps import products, total


@cache
def diagonal_gaussian() -> Family:
    """The paper's family; one object, so that what was compiled for it is found again."""
    return Family(
        name="diagonal",
        start=Diagonal.start,
        draw=draw,
        log_ratio=log_ratio,
        score=score,
        divergence=lambda new, old, samples, valid: kl_divergence(new, old),
        packed=Diagonal.packed,
        unpacked=Diagonal.unpacked,
        floored=floored,
        natural=natural,
        moved=moved,
        renyi2=renyi2_divergence,
        whitened=lambda rho, theta: (theta - rho.eta) / rho.tau,
        log_ratios=log_ratios,
        coordinates=Coordinates(
            ratio_scale, ratio_vectors, ratio_terms, score_vectors, score_terms
        ),
    )


def log_density(rho: Diagonal, theta: Array) -> Array:
    """Log-density of one sample, a scalar.

    Implements: zhao2013 S2.2 p(theta | rho), as a sum of logs over coordinates.
    """
    z = (theta - rho.eta) / rho.tau
    return -jnp.sum(jnp.log(rho.tau) + 0.5 * z**2) - 0.5 * z.size * jnp.log(2 * jnp.pi)


def log_ratio(rho: Diagonal, reference: Diagonal, theta: Array) -> Array:
    """log p(theta | rho) - log p(theta | reference) of one sample, a scalar.

    Implements: zhao2013 S3.1 w(theta) = p(theta | rho) / p(theta | rho'), in logs.

    Summed as per-coordinate differences: with z = (theta - eta) / tau, z' likewise and
    a = (eta - eta') / tau, each coordinate adds log(tau' / tau) + (z'^2 - z^2) / 2, and that half
    is z' (bend z' + slope) - a^2 / 2: no two large numbers are subtracted. What is free of theta
    stands apart, so that `vmap` over samples computes it once: a sample costs no division.
    """
    terms = ratio_terms(ratio_vectors(rho, reference), theta)
    return ratio_scale(rho, reference) + total(terms)


def log_ratios(rhos: Diagonal, reference: Diagonal, theta: Array) -> Array:
    """`log_ratio [P, n]` of samples `[n, D]` under `rhos [P, D]`, by two products of matrices."""

    def some(theta: Array, eta: Array, inverse: Array, bend: Array, slope: Array) -> Array:
        z_ref = (theta - eta) * inverse
        return bend @ (z_ref**2).T + slope @ z_ref.T

    eta, inverse = reference.eta[None], 1 / reference.tau[None]
    scale = jax.vmap(ratio_scale, (0, None))(rhos, reference)
    bend_and_slope = _bend_and_slope(rhos, reference)
    return scale[:, None] + products(some, theta, eta, inverse, *bend_and_slope)


def ratio_vectors(rho: Diagonal, reference: Diagonal) -> tuple[Array, Array, Array]:
    """What `ratio_terms` are made of, each `[D]`: they take theta as it is, and not z'."""
    inverse = 1 / reference.tau
    bend, slope = _bend_and_slope(rho, reference)
    return reference.eta, bend * inverse * inverse, slope * inverse


def ratio_terms(vectors: tuple[Array, Array, Array], theta: Array) -> Array:
    """What the coordinates of one sample add to `log_ratio` beside `ratio_scale`, `[D]`."""
    eta, bend, slope = vectors
    away = theta - eta
    return away * (bend * away + slope)


def ratio_scale(rho: Diagonal, reference: Diagonal) -> Array:
    """What `log_ratio` adds for every sample, a scalar."""
    away = (rho.eta - reference.eta) / rho.tau
    return jnp.sum(jnp.log1p((reference.tau - rho.tau) / rho.tau) - 0.5 * away**2)


def _bend_and_slope(rho: Diagonal, reference: Diagonal) -> tuple[Array, Array]:
    bend = 0.5 * ((rho.tau - reference.tau) / rho.tau) * (rho.tau + reference.tau) / rho.tau
    return bend, (rho.eta - reference.eta) / rho.tau * reference.tau / rho.tau


def score(rho: Diagonal, theta: Array) -> Diagonal:
    """Gradient of the log-density of one sample with respect to (eta, tau), each `[D]`.

    Implements: zhao2013 S2.2 (theta - eta) / tau^2 and ((theta - eta)^2 - tau^2) / tau^3.
    """
    return score_terms(score_vectors(rho), theta)


def score_vectors(rho: Diagonal) -> tuple[Array, Array]:
    """What `score` is made of, each `[D]`."""
    return rho.eta, 1 / rho.tau


def score_terms(vectors: tuple[Array, Array], theta: Array) -> Diagonal:
    """`score`, of its vectors."""
    eta, inverse = vectors
    z = (theta - eta) * inverse
    return Diagonal(eta=z * inverse, tau=(z**2 - 1) * inverse)


def fisher(rho: Diagonal) -> Diagonal:
    """Diagonal of the Fisher information: 1 / tau^2 for eta, 2 / tau^2 for tau.

    Implements: wierstra2014 Fisher information of the diagonal Gaussian.
    """
    return Diagonal(eta=rho.tau**-2, tau=2 * rho.tau**-2)


def natural(rho: Diagonal, gradient: Diagonal) -> Diagonal:
    """The natural gradient F^-1 g."""
    return jax.tree.map(jnp.divide, gradient, fisher(rho))


def moved(rho: Diagonal, direction: Diagonal, kl: float) -> Diagonal:
    """rho moved along a natural `direction` until KL(new || old) is `kl`.

    A step in (eta, log tau), so that tau stays positive; no log tau changes by more than
    `MAX_LOG_TAU`. Where that leaves no length that reaches `kl`, the step stays below it.
    """

    def at(length: Array) -> Diagonal:
        d_log_tau = jnp.clip(length * direction.tau / rho.tau, -MAX_LOG_TAU, MAX_LOG_TAU)
        return Diagonal(rho.eta + length * direction.eta, rho.tau * jnp.exp(d_log_tau))

    c = jax.tree.map(lambda f, v: jnp.sum(f * v**2), fisher(rho), direction)
    longest = longest_length(kl, free=c.eta, capped=c.tau)
    return at(length_to(kl, lambda length: kl_divergence(at(length), rho), longest))


def floored(rho: Diagonal, least: float) -> Diagonal:
    """rho with no standard deviation below `least`."""
    return rho._replace(tau=jnp.maximum(rho.tau, least))


def kl_divergence(p: Diagonal, q: Diagonal) -> Array:
    """Kullback-Leibler divergence KL(p || q), a scalar.

    Implements: kullback1951 KL of diagonal Gaussians,
    sum_i log(tau_q / tau_p) + (tau_p^2 + (eta_p - eta_q)^2) / (2 tau_q^2) - 1/2.
    """
    log_scale = jnp.log1p((p.tau - q.tau) / q.tau)
    spread = 0.5 * jnp.expm1(2 * log_scale) - log_scale
    return jnp.sum(spread + 0.5 * ((p.eta - q.eta) / q.tau) ** 2)


def renyi2_divergence(p: Diagonal, q: Diagonal) -> Array:
    """Renyi divergence of order 2, log E_q[(p / q)^2], a scalar; infinite where a coordinate is.

    Implements: gil2013 order-2 Renyi divergence of diagonal Gaussians.

    Finite only if 2 tau_q^2 > tau_p^2 in every coordinate: each is tested by itself, because in a
    product two negative terms would cancel into a number that looks finite.
    """
    gap = 2 * q.tau**2 - p.tau**2
    finite = gap > 0
    safe = jnp.where(finite, gap, 1.0)
    scale = 2 * jnp.log(q.tau) - jnp.log(p.tau) - 0.5 * jnp.log(safe)
    terms = scale + (p.eta - q.eta) ** 2 / safe
    return jnp.sum(jnp.where(finite, terms, jnp.inf))

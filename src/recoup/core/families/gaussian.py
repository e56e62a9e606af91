"""Search distributions: what draws the samples, and every density the weights need.

A family is a record of pure functions of one sample and its hyper-parameter rho; batches are
made by `jax.vmap`. The paper's is the diagonal Gaussian over policy parameters.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array

from recoup.core.families.normals import standard_normal


class Rho(NamedTuple):
    """Hyper-parameter of the diagonal Gaussian: means `eta [D]`, standard deviations `tau [D]`.

    In action space it is the Gaussian policy's: mu `[F A]`, sigma `[A]`.
    """

    eta: Array
    tau: Array


class Family(NamedTuple):
    """A search distribution as functions of one sample; rho and samples are pytrees."""

    draw: Callable[[Array, Any, int], Any]  # key, rho, N -> samples with a leading axis [N]
    log_ratio: Callable[[Any, Any, Any], Array]  # rho, reference, sample -> scalar
    score: Callable[[Any, Any], Any]  # rho, sample -> pytree shaped like rho
    paired: bool  # samples 2i and 2i + 1 of a batch are a mirrored pair
    divergence: Callable[[Any, Any, Any, Array], Array]  # KL(new || old), samples and valid [N]


class LogDensities(NamedTuple):
    """Log-densities of samples, each relative to a reference that the sample shares with all three.

    The weights see only differences of them, so the reference cancels.
    """

    target: Array
    own: Array  # of the proposal that drew the sample
    mixture: Array | None  # of the mixture of all proposals by their counts, where it is kept


def diagonal_gaussian(mirrored: bool = False) -> Family:
    """The paper's family; `mirrored` draws in pairs `eta + noise, eta - noise`."""
    return Family(
        draw_mirrored if mirrored else draw,
        log_ratio,
        score,
        mirrored,
        divergence=lambda new, old, samples, valid: kl_divergence(new, old),
    )


def draw(key: Array, rho: Rho, n: int) -> Array:
    """Independent samples `[N, D]` of theta ~ N(eta, diag tau^2).

    Implements: zhao2013 S2.2 p(theta_i | rho_i) = N(theta_i | eta_i, tau_i^2).
    """
    return rho.eta + rho.tau * standard_normal(key, (n, *rho.eta.shape), rho.eta.dtype)


def draw_mirrored(key: Array, rho: Rho, n: int) -> Array:
    """Samples `[N, D]` in adjacent pairs: theta_{2i} = eta + noise, theta_{2i+1} = eta - noise.

    Implements: sehnke2010 symmetric sampling.
    """
    noise = rho.tau * standard_normal(key, (n // 2, *rho.eta.shape), rho.eta.dtype)
    pairs = jnp.stack([rho.eta + noise, rho.eta - noise], axis=1)
    return pairs.reshape(n, *rho.eta.shape)


def log_density(rho: Rho, theta: Array) -> Array:
    """Log-density of one sample, a scalar.

    Implements: zhao2013 S2.2 p(theta | rho), as a sum of logs over coordinates.
    """
    z = (theta - rho.eta) / rho.tau
    return -jnp.sum(jnp.log(rho.tau) + 0.5 * z**2) - 0.5 * z.size * jnp.log(2 * jnp.pi)


def log_ratio(rho: Rho, reference: Rho, theta: Array) -> Array:
    """log p(theta | rho) - log p(theta | reference) of one sample, a scalar.

    Implements: zhao2013 S3.1 w(theta) = p(theta | rho) / p(theta | rho'), in logs.

    Summed as per-coordinate differences: with z' = (theta - eta') / tau' and
    delta = z' - z = (z' (tau - tau') + eta - eta') / tau, each coordinate adds
    log(tau' / tau) + (z'^2 - z^2) / 2, and no two large numbers are subtracted. The part that
    is free of theta is summed apart, so that `vmap` over samples computes it once.
    """
    z_ref = (theta - reference.eta) / reference.tau
    delta = (z_ref * (rho.tau - reference.tau) + (rho.eta - reference.eta)) / rho.tau
    scale = jnp.sum(jnp.log1p((reference.tau - rho.tau) / rho.tau))
    return scale + jnp.sum(0.5 * delta * (2 * z_ref - delta))


def score(rho: Rho, theta: Array) -> Rho:
    """Gradient of the log-density of one sample with respect to (eta, tau), each `[D]`.

    Implements: zhao2013 S2.2 (theta - eta) / tau^2 and ((theta - eta)^2 - tau^2) / tau^3.
    """
    z = (theta - rho.eta) / rho.tau
    return Rho(eta=z / rho.tau, tau=(z**2 - 1) / rho.tau)


def fisher(rho: Rho) -> Rho:
    """Diagonal of the Fisher information: 1 / tau^2 for eta, 2 / tau^2 for tau.

    Implements: wierstra2014 Fisher information of the diagonal Gaussian.
    """
    return Rho(eta=rho.tau**-2, tau=2 * rho.tau**-2)


def kl_divergence(p: Rho, q: Rho) -> Array:
    """Kullback-Leibler divergence KL(p || q), a scalar.

    Implements: kullback1951 KL of diagonal Gaussians,
    sum_i log(tau_q / tau_p) + (tau_p^2 + (eta_p - eta_q)^2) / (2 tau_q^2) - 1/2.
    """
    log_scale = jnp.log1p((p.tau - q.tau) / q.tau)
    spread = 0.5 * jnp.expm1(2 * log_scale) - log_scale
    return jnp.sum(spread + 0.5 * ((p.eta - q.eta) / q.tau) ** 2)


def renyi2_divergence(p: Rho, q: Rho) -> Array:
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

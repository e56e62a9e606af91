"""The paper's search distribution: the diagonal Gaussian over policy parameters."""

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from recoup.core.arrays import Array, namespace, tree_map
from recoup.core.families.family import (
    Coordinates,
    Family,
    block,
    length_to,
    longest_length,
    of_records,
    renyi2_of_axes,
)
from recoup.core.families.shapes import DIAGONAL, Symmetric
from recoup.core.types import Namespace

MAX_LOG_TAU = 0.5  # the most that one natural step changes a log standard deviation by


class Diagonal(NamedTuple):
    """Of the diagonal Gaussian over theta: means `eta [D]`, standard deviations `tau [D]`."""

    eta: Array
    tau: Array

    @property
    def mean(self) -> Array:
        """Means `[..., D]`."""
        return self.eta

    @property
    def std(self) -> Array:
        """Standard deviations `[..., D]`."""
        return self.tau

    @classmethod
    def start(cls, mean: Array, std: Array) -> "Diagonal":
        """The Gaussian with these means and standard deviations, each `[D]`."""
        return cls(mean, std)

    def theta(self, noise: Array) -> Array:
        """The theta `[..., D]` that standard normal noise `[..., D]` becomes.

        Implements: zhao2013 S2.2 p(theta_i | rho_i) = N(theta_i | eta_i, tau_i^2).
        """
        return self.eta + self.tau * noise

    def whitened(self, xp: Namespace, theta: Array) -> Array:
        """The noise `[n, D]` that became `theta [n, D]`."""
        return (theta - self.eta) / self.tau

    def log_spread(self, xp: Namespace) -> Array:
        """Logarithms of the standard deviations `[D]`."""
        return xp.log(self.tau)

    def stretched(self, xp: Namespace, delta: Array, log: Symmetric, least: Array) -> "Diagonal":
        """Moved by `delta [D]` in noise, the spread times exp(`log [D]`), but not below `least`."""
        return Diagonal(self.eta + self.tau * delta, xp.maximum(self.tau * xp.exp(log), least))

    def refitted(self, xp: Namespace, delta: Array, variance: Symmetric) -> "Diagonal":
        """The Gaussian that has mean `delta [D]` and `variance [D]` in noise."""
        return Diagonal(self.eta + self.tau * delta, self.tau * xp.sqrt(variance))

    def rearranged(self, source: Sequence[int | None], mean: Array, std: Array) -> "Diagonal":
        """That of other coordinates, with means and standard deviations `[D]` of their own."""
        return Diagonal(mean, std)

    def given(self, kept: Sequence[int], fixed: Sequence[int], values: Array) -> "Diagonal":
        """That of the `kept` coordinates where the `fixed` ones have `values`: of no account."""
        return Diagonal(self.eta[list(kept)], self.tau[list(kept)])

    @property
    def positive(self) -> Array:
        """What must be positive `[..., D]`."""
        return self.tau

    def packed(self) -> np.ndarray:
        """One block of numbers `[..., 2 D]`."""
        return block(self.eta, self.tau)

    @classmethod
    def unpacked(cls, numbers: Array, dim: int) -> "Diagonal":
        """What `packed` has packed, of `dim` means."""
        return cls(numbers[..., :dim], numbers[..., dim:])


@cache
def diagonal_gaussian() -> Family:
    """The paper's family; one object, so that what was compiled for it is found again."""
    return of_records(
        "diagonal",
        Diagonal,
        kl_divergence,
        ratio_of_noise,
        shape=DIAGONAL,
        log_ratio=log_ratio,
        score=score,
        log_density=log_density,
        floored=floored,
        natural=natural,
        moved=moved,
        renyi2=renyi2_divergence,
        log_ratios=log_ratios,
        coordinates=Coordinates(
            ratio_scale, ratio_vectors, ratio_terms, score_vectors, score_terms
        ),
    )


def log_density(rho: Diagonal, theta: Array) -> Array:
    """Log-density of one sample, a scalar.

    Implements: zhao2013 S2.2 p(theta | rho), as a sum of logs over coordinates.
    """
    xp, z = namespace(rho.tau, theta), (theta - rho.eta) / rho.tau
    constant = 0.5 * z.shape[-1] * xp.log(2 * np.pi)
    return -xp.sum(xp.log(rho.tau) + 0.5 * z**2, axis=-1) - constant


def log_ratio(rho: Diagonal, reference: Diagonal, theta: Array) -> Array:
    """log p(theta | rho) - log p(theta | reference) of one sample, a scalar.

    Implements: zhao2013 S3.1 w(theta) = p(theta | rho) / p(theta | rho'), in logs.

    Summed as per-coordinate differences: with z = (theta - eta) / tau, z' likewise and
    a = (eta - eta') / tau, each coordinate adds log(tau' / tau) + (z'^2 - z^2) / 2, and that half
    is z' (bend z' + slope) - a^2 / 2: no two large numbers are subtracted. What is free of theta
    stands apart, so that `vmap` over samples computes it once: a sample costs no division.
    """
    from recoup.core.sweeps import total

    terms = ratio_terms(ratio_vectors(rho, reference), theta)
    return ratio_scale(rho, reference) + total(terms)


def ratio_of_noise(rho: Diagonal, reference: Diagonal, z: Array) -> Array:
    """`log_ratio` of the noise z that became a sample under the reference; NumPy takes `[n, D]`.

    The same half of z'^2 - z^2 as (z' - z) (z' + z) / 2. It costs more, and keeps its digits where
    rho is far narrower than the reference: there a^2 is large beside what is left of it.
    """
    xp = namespace(rho.tau, z)
    delta = (z * (rho.tau - reference.tau) + (rho.eta - reference.eta)) / rho.tau
    scale = xp.sum(xp.log1p((reference.tau - rho.tau) / rho.tau), axis=-1)
    return scale + xp.sum(0.5 * delta * (2 * z - delta), axis=-1)


def log_ratios(rhos: Diagonal, reference: Diagonal, theta: Array) -> Array:
    """`log_ratio [P, n]` of samples `[n, D]` under `rhos [P, D]`, by two products of matrices."""
    import jax

    from recoup.core.sweeps import products

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
    xp, away = namespace(rho.tau, reference.tau), (rho.eta - reference.eta) / rho.tau
    return xp.sum(xp.log1p((reference.tau - rho.tau) / rho.tau) - 0.5 * away**2)


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
    xp = namespace(rho.tau, gradient.tau)
    return tree_map(xp, xp.divide, gradient, fisher(rho))


def moved(rho: Diagonal, direction: Diagonal, kl: float) -> Diagonal:
    """rho moved along a natural `direction` until KL(new || old) is `kl`.

    A step in (eta, log tau), so that tau stays positive; no log tau changes by more than
    `MAX_LOG_TAU`. Where that leaves no length that reaches `kl`, the step stays below it.
    """
    xp = namespace(rho.tau, direction.tau)

    def at(length: Array) -> Diagonal:
        d_log_tau = xp.clip(length * direction.tau / rho.tau, -MAX_LOG_TAU, MAX_LOG_TAU)
        return Diagonal(rho.eta + length * direction.eta, rho.tau * xp.exp(d_log_tau))

    c = tree_map(xp, lambda f, v: xp.sum(f * v**2), fisher(rho), direction)
    longest = longest_length(kl, free=c.eta, capped=c.tau)
    return at(length_to(kl, lambda length: kl_divergence(at(length), rho), longest))


def floored(rho: Diagonal, least: float) -> Diagonal:
    """rho with no standard deviation below `least`."""
    return rho._replace(tau=namespace(rho.tau).maximum(rho.tau, least))


def kl_divergence(p: Diagonal, q: Diagonal) -> Array:
    """Kullback-Leibler divergence KL(p || q), a scalar.

    Implements: kullback1951 KL of diagonal Gaussians,
    sum_i log(tau_q / tau_p) + (tau_p^2 + (eta_p - eta_q)^2) / (2 tau_q^2) - 1/2.
    """
    xp = namespace(p.tau, q.tau)
    log_scale = xp.log1p((p.tau - q.tau) / q.tau)
    spread = 0.5 * xp.expm1(2 * log_scale) - log_scale
    return xp.sum(spread + 0.5 * ((p.eta - q.eta) / q.tau) ** 2)


def renyi2_divergence(p: Diagonal, q: Diagonal) -> Array:
    """Renyi divergence of order 2, log E_q[(p / q)^2], a scalar; infinite where a coordinate is.

    Implements: gil2013 order-2 Renyi divergence of diagonal Gaussians.

    With l = (tau_p / tau_q)^2 and u = (eta_p - eta_q) / tau_q: sum u^2 / (2 - l) - log((2 - l) l)
    / 2. Finite only if l < 2 in every coordinate: each is tested by itself, because in a product
    two negative terms would cancel into a number that looks finite.
    """
    xp, away = namespace(p.tau, q.tau), (p.eta - q.eta) / q.tau
    return renyi2_of_axes(xp, (p.tau / q.tau) ** 2, away)

"""The Gaussian with one standard deviation for all coordinates."""

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from recoup.core.arrays import Array, namespace
from recoup.core.families.family import Family, block, of_records, renyi2_of_axes
from recoup.core.families.shapes import DIAGONAL


class Round(NamedTuple):
    """Means `eta [D]`, and one standard deviation `tau [1]`."""

    eta: Any
    tau: Any

    @property
    def mean(self) -> Any:
        return self.eta

    @property
    def std(self) -> Any:
        return self.tau + 0 * self.eta

    @property
    def positive(self) -> Any:
        return self.std

    @classmethod
    def start(cls, mean: Any, std: Any) -> "Round":
        """As wide as the standard deviations are in the mean."""
        return cls(mean, std.mean(-1, keepdims=True))

    def theta(self, noise: Any) -> Any:
        return self.eta + self.tau * noise

    def whitened(self, xp: Any, theta: Any) -> Any:
        return (theta - self.eta) / self.tau

    def log_spread(self, xp: Any) -> Any:
        return xp.log(self.std)

    def stretched(self, xp: Any, delta: Any, log: Any, least: Any) -> "Round":
        tau = xp.maximum(self.tau * xp.exp(xp.mean(log)), xp.mean(xp.asarray(least)))
        return Round(self.eta + self.tau * delta, tau)

    def refitted(self, xp: Any, delta: Any, variance: Any) -> "Round":
        return Round(self.eta + self.tau * delta, self.tau * xp.sqrt(xp.mean(variance)))

    def rearranged(self, source: Sequence[int | None], mean: Any, std: Any) -> "Round":
        return Round.start(mean, std)

    def given(self, kept: Sequence[int], fixed: Sequence[int], values: Any) -> "Round":
        return Round(self.eta[list(kept)], self.tau)

    def packed(self) -> np.ndarray:
        return block(self.eta, self.tau)

    @classmethod
    def unpacked(cls, numbers: Any, dim: int) -> "Round":
        return cls(numbers[..., :dim], numbers[..., dim:])


@cache
def round_gaussian() -> Family:
    return of_records(
        "round",
        Round,
        kl_divergence,
        ratio_of_noise,
        shape=DIAGONAL,
        log_density=log_density,
        score=score,
        floored=floored,
        renyi2=renyi2_divergence,
    )


def log_density(rho: Round, theta: Array) -> Array:
    xp, z = namespace(rho.tau, theta), (theta - rho.eta) / rho.tau
    constant = z.shape[-1] * (xp.log(rho.tau[0]) + 0.5 * xp.log(2 * np.pi))
    return -0.5 * xp.sum(z**2, axis=-1) - constant


def ratio_of_noise(rho: Round, reference: Round, z: Array) -> Array:
    xp = namespace(rho.tau, z)
    delta = (z * (rho.tau - reference.tau) + (rho.eta - reference.eta)) / rho.tau
    scale = z.shape[-1] * xp.log1p((reference.tau[0] - rho.tau[0]) / rho.tau[0])
    return scale + xp.sum(0.5 * delta * (2 * z - delta), axis=-1)


def score(rho: Round, theta: Array) -> Round:
    z = (theta - rho.eta) / rho.tau
    return Round(z / rho.tau, (z**2 - 1).sum(-1)[..., None] / rho.tau)


def floored(rho: Round, least: float) -> Round:
    return rho._replace(tau=namespace(rho.tau).maximum(rho.tau, least))


def kl_divergence(p: Round, q: Round) -> Array:
    xp, log_scale = namespace(p.tau, q.tau), namespace(p.tau, q.tau).log(p.std / q.std)
    spread = 0.5 * xp.expm1(2 * log_scale) - log_scale
    return xp.sum(spread + 0.5 * ((p.eta - q.eta) / q.tau) ** 2)


def renyi2_divergence(p: Round, q: Round) -> Array:
    away = (p.eta - q.eta) / q.tau
    return renyi2_of_axes(namespace(p.tau, q.tau), (p.std / q.std) ** 2, away)

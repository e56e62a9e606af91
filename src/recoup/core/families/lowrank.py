"""The Gaussian of low rank beside a diagonal: some correlations, in O(D r) memory and time.

Its factor A = diag(tau) M, with M = I + U diag(s - 1) U^T and orthonormal U `[D, r]`, is inverted
by its 1 / s. With y = (theta - eta) / tau and z = M^-1 y the noise, log p is, but for a constant,
-sum log tau - sum log s - |z|^2 / 2.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from recoup.core.arrays import Array, namespace, repeat
from recoup.core.families.family import Family, block, of_records
from recoup.core.families.shapes import Axes, Shape, Symmetric
from recoup.core.families.spikes import Spiked, compressed, diagonalised, lengths, spiked, waves
from recoup.core.types import Namespace

RANK = 8  # axes, where there are as many coordinates
ROUNDS = 4  # of the iteration that looks for the leading axes of a matrix
LEAST_LEFT = 1e-3  # of a coordinate that the leading axes leave over


class LowRank(NamedTuple):
    """Of the Gaussian whose covariance is of low rank beside a diagonal, in O(D r) numbers.

    Means `eta [D]`, `tau [D]`, orthonormal `axes [D, r]` and `scale [r]`: theta = eta + tau * M z
    with M = I + U diag(scale - 1) U^T. Noise along an axis is multiplied by its scale, which may
    be wide or narrow; across them all it is left alone. M is its own square root of the
    covariance, symmetric, and its inverse has 1 / scale in place of scale.
    """

    eta: Array
    tau: Array
    axes: Array
    scale: Array

    @property
    def mean(self) -> Array:
        """Means `[..., D]`."""
        return self.eta

    @property
    def std(self) -> Array:
        """Standard deviations `[..., D]` of the coordinates, each by itself."""
        return self.tau * lengths(self.axes, self.scale)

    @classmethod
    def start(cls, mean: Array, std: Array) -> "LowRank":
        """The Gaussian with these means and standard deviations, each `[D]`, uncorrelated.

        Its axes, of scale 1, are waves over the coordinates: where a gradient begins.
        """
        axes = (np.zeros((*std.shape, 1)) + waves(std.shape[-1], RANK)).astype(std.dtype)
        return cls(mean, std, axes, 0 * axes[..., 0, :] + 1)

    def theta(self, noise: Array) -> Array:
        """The theta `[..., D]` that standard normal noise `[..., D]` becomes."""
        along = (self.axes * noise[..., :, None]).sum(-2) * (self.scale - 1)
        return self.eta + self.tau * (noise + (self.axes * along[..., None, :]).sum(-1))

    def whitened(self, xp: Namespace, theta: Array) -> Array:
        """The noise `[n, D]` that became `theta [n, D]`."""
        return self.multiplied((theta - self.eta) / self.tau, 1 / self.scale)

    def multiplied(self, x: Array, scale: Array) -> Array:
        """`x [..., D]`, times `scale [r]` along the axes."""
        return x + ((x @ self.axes) * (scale - 1)) @ self.axes.T

    def log_spread(self, xp: Namespace) -> Array:
        """Logarithms of the spread `[D]`, that of each axis shared among its coordinates."""
        return xp.log(self.tau) + self.axes**2 @ xp.log(self.scale)

    def stretched(self, xp: Namespace, delta: Array, log: Symmetric, least: Array) -> "LowRank":
        """Moved by `delta [D]` in noise, the spread times exp(diagonal) exp(Q diag(values) Q^T).

        `log` has that `diagonal [D]`, `axes` Q `[D, k]` and `values [k]`; `[D]` is the diagonal
        alone. The spread stays above `least [D]`. If a number were infinite, nothing moves.
        """
        log = spiked(xp, log)
        values, axes = diagonalised(xp, log.axes, xp.diag(log.values))
        first = xp.exp(log.diagonal)
        new = self._times(xp, delta, first, axes, xp.expm1(2 * values)).floored(xp, least)
        sound = xp.asarray(True)
        for part in new:
            sound = sound & xp.all(xp.isfinite(part))
        return LowRank(*(xp.where(sound, x, y) for x, y in zip(new, self, strict=True)))

    def refitted(self, xp: Namespace, delta: Array, covariance: Symmetric) -> "LowRank":
        """The Gaussian with mean `delta [D]` and that covariance in noise, held as a `log` is."""
        covariance = spiked(xp, covariance)
        first = xp.sqrt(covariance.diagonal)
        axes = covariance.axes / first[:, None]
        return self._times(xp, delta, first, axes, covariance.values)

    def _times(
        self, xp: Namespace, delta: Array, first: Array, axes: Array, values: Array
    ) -> "LowRank":
        """The spread times K K^T = E (I + V diag(values) V^T) E in noise, E = diag(`first`).

        M E = E (I + E^-1 U L (E U)^T), so that E joins tau, and the rest is I and a matrix of low
        rank: the `r` axes of it that stretch most are kept, and tau makes up in every coordinate
        for the variance of the others.
        """
        less, thin, wide = self.scale - 1, self.axes / first[:, None], self.axes * first[:, None]
        seen = wide + (axes * values) @ (axes.T @ wide)
        none = xp.zeros((len(values), len(less)), dtype=first.dtype)
        both = less[:, None] * (wide.T @ seen) * less
        rest, here = xp.zeros_like(both), xp.diag(less)
        rows = [[xp.diag(values), none, none], [none.T, both, here], [none.T, here, rest]]
        eta = self.eta + self.tau * self.multiplied(delta, self.scale)
        basis = xp.concatenate([axes, thin, seen], axis=1)
        return LowRank(eta, *compressed(xp, self.tau * first, basis, xp.block(rows), len(less)))

    def floored(self, xp: Namespace, least: Array) -> "LowRank":
        """No tau below `least`, nor the length of an axis: its scale times |tau u|."""
        tau = xp.maximum(self.tau, least)
        shortest = xp.sqrt(((self.axes * (0 * tau + least)[:, None]) ** 2).sum(0))
        length = xp.sqrt(((self.axes * tau[:, None]) ** 2).sum(0))
        return self._replace(tau=tau, scale=xp.maximum(self.scale, shortest / length))

    def rearranged(self, source: Sequence[int | None], mean: Array, std: Array) -> "LowRank":
        """That of other coordinates, with means and standard deviations `[D]` of their own.

        `source [D]` says where each was before: those keep their correlations; None is new, and has
        none.
        """
        rows = [self.axes[i] if i is not None else 0 * self.axes[0] for i in source]
        found = self._of_rows(np.ones(len(source)), np.stack(rows))
        return found._replace(eta=mean, tau=std / lengths(found.axes, found.scale))

    def given(self, kept: Sequence[int], fixed: Sequence[int], values: Array) -> "LowRank":
        """That of the `kept` coordinates where the `fixed` ones have `values [F]`.

        The inverse of a covariance, of which those of the kept are a block, has 1 / scale.
        """
        both, n = [*kept, *fixed], len(kept)
        all_of = self._of_rows(self.tau[both], self.axes[both])
        inner = all_of._replace(scale=1 / all_of.scale)
        found = inner._of_rows(1 / all_of.tau[:n], all_of.axes[:n])
        new = LowRank(self.eta[list(kept)], 1 / found.tau, found.axes, 1 / found.scale)
        known = all_of.axes[n:].T @ ((values - self.eta[list(fixed)]) / all_of.tau[n:])
        pull = all_of.axes[:n] @ ((inner.scale**2 - 1) * known)
        return new._replace(eta=new.eta - new.tau * new.multiplied(pull, new.scale**2))

    def _of_rows(self, tau: np.ndarray, axes: np.ndarray) -> "LowRank":
        """The one with covariance tau (I + axes (scale^2 - 1) axes^T) tau, of mean zero."""
        more = waves(len(tau), RANK)  # as many axes as so many coordinates have
        core = np.diag(np.append(self.scale**2 - 1, np.zeros(more.shape[1])))
        basis = np.concatenate([axes, more], axis=1)
        return LowRank(0 * tau, *compressed(np, tau, basis, core, more.shape[1]))

    @property
    def positive(self) -> Array:
        """What must be positive `[..., D]`: tau, and every scale."""
        return self.tau * np.min(self.scale, axis=-1, keepdims=True)

    def packed(self) -> np.ndarray:
        """One block of numbers `[..., 2 D + D r + r]`: means, tau, axes row by row, scale."""
        axes = np.asarray(self.axes)
        flat = axes.reshape(*axes.shape[:-2], -1)
        return block(self.eta, self.tau, flat, self.scale)

    @classmethod
    def unpacked(cls, numbers: Array, dim: int) -> "LowRank":
        """What `packed` has packed, of `dim` means."""
        rank = (numbers.shape[-1] - 2 * dim) // (dim + 1)
        axes = numbers[..., 2 * dim : 2 * dim + dim * rank]
        axes = axes.reshape(*numbers.shape[:-1], dim, rank)
        scale = numbers[..., 2 * dim + dim * rank :]
        return cls(numbers[..., :dim], numbers[..., dim : 2 * dim], axes, scale)


@cache
def low_rank_gaussian() -> Family:
    """The family of Gaussians with `RANK` axes beside the coordinates; one object."""
    return of_records(
        "lowrank",
        LowRank,
        kl_divergence,
        ratio_of_noise,
        shape=LOW_RANK,
        score=score,
        log_density=log_density,
        floored=floored,
        renyi2=renyi2_divergence,
        work=lambda dim: dim * min(dim, RANK),
    )


def log_density(rho: LowRank, theta: Array) -> Array:
    """Log-density of one sample, a scalar; NumPy takes `[n, D]`.

    Implements: woodbury1950 (I + U diag(s - 1) U^T)^-1 = I + U diag(1 / s - 1) U^T, and its
    determinant, the product of s.
    """
    xp = namespace(rho.tau, theta)
    z = rho.whitened(xp, theta)
    constant = xp.sum(xp.log(rho.tau)) + xp.sum(xp.log(rho.scale))
    return -constant - 0.5 * z.shape[-1] * xp.log(2 * np.pi) - 0.5 * xp.sum(z**2, axis=-1)


def ratio_of_noise(rho: LowRank, reference: LowRank, z: Array) -> Array:
    """`log_ratio` of the noise z that became a sample under the reference; NumPy takes `[n, D]`.

    As that of full covariance: with delta what z is less the noise under rho, the quadratic part is
    delta^T (2 z - delta) / 2.
    """
    xp = namespace(rho.tau, z)
    here, there = (r.multiplied(z, r.scale) - z for r in (rho, reference))
    away = (rho.tau - reference.tau) * (z + here) + reference.tau * (here - there)
    delta = rho.multiplied((away + (rho.eta - reference.eta)) / rho.tau, 1 / rho.scale)
    scale = xp.sum(xp.log1p((reference.tau - rho.tau) / rho.tau))
    scale = scale + xp.sum(xp.log(reference.scale) - xp.log(rho.scale))
    return scale + xp.sum(0.5 * delta * (2 * z - delta), axis=-1)


def score(rho: LowRank, theta: Array) -> LowRank:
    """Gradient of the log-density of one sample with respect to (eta, tau, U, s).

    NumPy takes samples `[n, D]`. Along U it is that of M = I + U diag(s - 1) U^T wherever U goes;
    `floored` finds the orthonormal axes of the same M.

    Implements: wierstra2014 gradients of log N(theta | eta, A A^T), with u = M^-1 z: u / tau,
    (u y - 1) / tau, and by M -M^-1 + (u z^T + z u^T) / 2.
    """
    y = (theta - rho.eta) / rho.tau
    z = rho.multiplied(y, 1 / rho.scale)
    u, less = rho.multiplied(z, 1 / rho.scale), rho.scale - 1
    along_z, along_u = z @ rho.axes, u @ rho.axes
    turning = u[..., None] * (along_z * less)[..., None, :]
    turning = turning + z[..., None] * (along_u * less)[..., None, :]
    return LowRank(
        eta=u / rho.tau,
        tau=(u * y - 1) / rho.tau,
        axes=turning - 2 * rho.axes * (less / rho.scale),
        scale=along_u * along_z - 1 / rho.scale,
    )


def floored(rho: LowRank, least: float) -> LowRank:
    """M by orthonormal axes; no tau below `least`, nor the length of an axis in theta."""
    xp = namespace(rho.tau)
    less, tau = rho.scale - 1, xp.maximum(rho.tau, least)
    core = 2 * xp.diag(less) + less[:, None] * (rho.axes.T @ rho.axes) * less
    found = compressed(xp, tau, rho.axes, core, len(less))
    return LowRank(rho.eta, *found).floored(xp, least)


def kl_divergence(p: LowRank, q: LowRank) -> Array:
    """Kullback-Leibler divergence KL(p || q), a scalar.

    Implements: kullback1951 KL of Gaussians of low rank, (||T||^2 - D + |d|^2) / 2 - log det T
    with T = M_q^-1 E M_p, E = diag(tau_p / tau_q) and d = A_q^-1 (eta_p - eta_q).

    ||T||^2 is a sum over coordinates and over pairs of axes: T itself is never made.
    """
    xp = namespace(p.tau, q.tau)
    log_scale = xp.log1p((p.tau - q.tau) / q.tau)
    square = xp.exp(2 * log_scale)
    wide, thin = p.scale**2 - 1, q.scale**-2 - 1
    across = (q.axes * xp.exp(log_scale)[:, None]).T @ p.axes
    axes = wide @ (p.axes**2).T @ square + thin @ (q.axes**2).T @ square
    axes = axes + thin @ across**2 @ wide
    shift = q.multiplied((p.eta - q.eta) / q.tau, 1 / q.scale)
    apart = xp.sum(0.5 * xp.expm1(2 * log_scale) - log_scale) + 0.5 * xp.sum(shift**2)
    return apart + 0.5 * axes - xp.sum(xp.log(p.scale)) + xp.sum(xp.log(q.scale))


def renyi2_divergence(p: LowRank, q: LowRank) -> Array:
    """Renyi divergence of order 2, log E_q[(p / q)^2], a scalar; infinite where it does not exist.

    Implements: gil2013 order-2 Renyi divergence of Gaussians of low rank, d^T V^-1 d
    - log(det V det S_p) / 2 + log det S_q with V = 2 S_q - S_p, finite only if V is positive.

    Over tau_q, V is G + W J W^T, with a diagonal G, J of signs and 2 r columns W. With
    K = J + W^T G^-1 W its inverse is G^-1 - G^-1 W K^-1 W^T G^-1, det V = det G det J det K, and it
    has as many negative eigenvalues as G, and K positive ones, less the positive ones of J.
    """
    xp = namespace(p.tau, q.tau)
    ratio = p.tau / q.tau
    g = 2 - ratio**2
    c = xp.concatenate([2 * (q.scale**2 - 1), 1 - p.scale**2])
    w = xp.concatenate([q.axes, ratio[:, None] * p.axes], axis=1) * xp.sqrt(xp.abs(c))
    sign = xp.where(c < 0, -1.0, 1.0)
    values, turn = xp.linalg.eigh(xp.diag(sign) + (w.T / g) @ w)
    below = xp.sum(g < 0) + xp.sum(values > 0) - xp.sum(sign > 0)
    d = (p.eta - q.eta) / q.tau
    along = turn.T @ (w.T @ (d / g))
    far = xp.sum(d**2 / g) - xp.sum(along**2 / values)
    volume = xp.sum(xp.log(xp.abs(g))) + xp.sum(xp.log(xp.abs(values)))
    volume = volume + 2 * xp.sum(xp.log(ratio))
    scales = xp.sum(xp.log(p.scale)) - 2 * xp.sum(xp.log(q.scale))
    found = far - 0.5 * volume - scales
    return xp.where((below == 0) & xp.isfinite(found), found, xp.inf)


def leading(xp: Namespace, product: Callable[[Array], Array], like: Array) -> tuple[Array, Array]:
    """The values `[r]` of a symmetric matrix that are largest, but for signs, and their axes.

    `product` multiplies columns `[D, k]` by it; `like [D]` is any vector of its size.

    Implements: halko2011 subspace iteration, on twice as many columns as are wanted.
    """
    many, dtype = min(2 * RANK, like.size), like.dtype
    first = product(xp.asarray(waves(like.size, many), dtype=dtype))
    found = repeat(xp, ROUNDS, lambda q: product(xp.linalg.qr(q)[0]), first)
    q = xp.linalg.qr(found)[0]
    values, turn = xp.linalg.eigh(q.T @ product(q))
    most = xp.argsort(-xp.abs(values))[: min(RANK, like.size)]
    return values[most], q @ turn[:, most]


def _outer(z: Array, c: Array) -> Callable[[Array], Array]:
    """Products with sum_n c_n z_n z_n^T."""
    return lambda q: z.T @ (c[:, None] * (z @ q))


def _axes(xp: Namespace, z: Array, weights: Array, level: Array) -> Axes:
    """The leading axes, and beside them the coordinates with what those leave over."""
    values, q = leading(xp, _outer(z, weights), z[0])
    values, held = values + level, q**2
    counts = xp.maximum(1 - xp.sum(held, axis=1), LEAST_LEFT)
    own = (weights @ z**2 + level - held @ values) / counts
    n = values.size

    def across(x: Array) -> Array:
        return x - (x @ q) @ q.T

    def log(values: Array) -> Spiked:
        return Spiked(values[n:], q, values[:n] - values[n:] @ held)

    return Axes(
        values=xp.concatenate([values, own]),
        counts=xp.concatenate([xp.ones_like(values), counts]),
        turned=lambda x: xp.concatenate([x @ q, across(x)], axis=-1),
        unturned=lambda x: q @ x[:n] + across(x[n:]),
        log=log,
    )


def _bounded(xp: Namespace, own: Array, z: Array, c: Array, rate: Array, most: float) -> Spiked:
    outer, square = _outer(z, c), c @ z**2
    values, q = leading(xp, lambda q: outer(q) - square[:, None] * q, own)
    return Spiked(xp.clip(own, -most, most), q, xp.clip(rate * values, -most, most))


def _mixed(one: Spiked, other: Spiked, share: Array) -> Spiked:
    xp = namespace(one.diagonal, other.diagonal)
    return Spiked(
        (1 - share) * one.diagonal + share * other.diagonal,
        xp.concatenate([one.axes, other.axes], axis=1),
        xp.concatenate([(1 - share) * one.values, share * other.values]),
    )


def _covariance(xp: Namespace, z: Array, c: Array, mass: Array) -> Spiked:
    """The variances of the coordinates, and of their correlations the leading ones.

    Implements: donoho2018 eigenvalues of a spiked covariance: one of l, seen in a share g of
    dimensions over samples, is that of ((l + 1 - g) + sqrt((l + 1 - g)^2 - 4 l)) / 2 where l lies
    above (1 + sqrt g)^2, with the other root below (1 - sqrt g)^2 where g < 1, and noise between.
    """
    variance = xp.maximum(c @ z**2 / mass, float(np.finfo(z.dtype).tiny))
    y = z / xp.sqrt(variance)
    outer = _outer(y, c / mass)
    found, q = leading(xp, lambda q: outer(q) - q, variance)
    seen, g = xp.maximum(1 + found, 0.0), variance.size * xp.sum(c**2)
    middle = seen + 1 - g
    root = xp.sqrt(xp.maximum(middle**2 - 4 * seen, 0.0))
    edges = (1 - xp.sqrt(g)) ** 2, (1 + xp.sqrt(g)) ** 2
    above, below = seen > edges[1], (seen < edges[0]) & (g < 1) & (seen > 0)
    spiked = xp.where(above, middle + root, xp.where(below, middle - root, 2.0)) / 2 - 1
    own = variance / (1 + q**2 @ spiked)
    return Spiked(own, xp.sqrt(own)[:, None] * q, spiked)


LOW_RANK = Shape(
    narrowest=1e-6,
    turn=lambda dim: (9 + 3 * float(np.log(dim))) / (5 * dim**1.5),
    axes=_axes,
    bounded=_bounded,
    along=spiked,
    mixed=_mixed,
    mean=lambda xp, log: xp.mean(log.diagonal + log.axes**2 @ log.values),
    even=lambda xp, log, size: Spiked(size * xp.ones_like(log.diagonal), log.axes, 0 * log.values),
    covariance=_covariance,
)

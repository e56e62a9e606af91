"""The Gaussian with full covariance over policy parameters, by its Cholesky factor.

With z = A^-1 (theta - eta) and A the factor, a small move in *local* coordinates, eta + A d and
A (I + H) with H lower triangular, has the score (z, tril(z z^T - I)): its coordinates are
uncorrelated, with variance 1, and 2 on H's diagonal. So the Fisher information is diagonal there,
whatever the covariance is.
"""

from collections.abc import Sequence
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np

from recoup.checks import InputError, check_finite, check_shape, check_stds, is_traced
from recoup.core.arrays import Array, namespace
from recoup.core.families.family import (
    Family,
    block,
    length_to,
    longest_length,
    of_records,
    renyi2_of_axes,
)
from recoup.core.families.shapes import FULL, Symmetric
from recoup.core.linalg import cholesky, lower_of, solve_lower
from recoup.core.types import Namespace

MAX_LOG_SCALE = 0.5  # the most that one natural step changes the log of the factor's diagonal by


class Full(NamedTuple):
    """Of the Gaussian with full covariance: means `eta [D]`, and `factor [D, D]`.

    The factor is lower triangular with a positive diagonal; the covariance is factor factor^T.
    """

    eta: Array
    factor: Array

    @property
    def mean(self) -> Array:
        """Means `[..., D]`."""
        return self.eta

    @property
    def std(self) -> Array:
        """Standard deviations `[..., D]` of the coordinates, each by itself."""
        return (self.factor**2).sum(-1) ** 0.5

    @classmethod
    def start(cls, mean: Array, std: Array) -> "Full":
        """The Gaussian with these means and standard deviations, each `[D]`, uncorrelated."""
        return cls(mean, std[..., None] * np.eye(std.shape[-1], dtype=std.dtype))

    def theta(self, noise: Array) -> Array:
        """The theta `[..., D]` that standard normal noise `[..., D]` becomes."""
        return self.eta + (self.factor * noise[..., None, :]).sum(-1)

    def whitened(self, xp: Namespace, theta: Array) -> Array:
        """The noise `[n, D]` that became `theta [n, D]`."""
        return solve_lower(xp, self.factor, (theta - self.eta).T).T

    def log_spread(self, xp: Namespace) -> Array:
        """The mean logarithm of the axes' lengths, for each of `[D]` the same."""
        axes = xp.log(xp.diagonal(self.factor))
        return xp.zeros_like(self.eta) + xp.mean(axes)

    def stretched(self, xp: Namespace, delta: Array, log: Symmetric, least: Array) -> "Full":
        """Moved by `delta [D]` in noise, the spread times exp(`log [D, D]`), symmetric; or `[D]`.

        What the factor becomes, A exp(log), has another that is lower triangular and means the
        same; its diagonal stays above `least [D]`. If a number were infinite, nothing moves.
        """
        values, axes = xp.linalg.eigh(xp.diag(log) if log.ndim == 1 else log)
        factor = lower_of(xp, self.factor @ (axes * xp.exp(values)))
        factor = factor + xp.diag(xp.maximum(least - xp.diagonal(factor), 0.0))
        eta = self.eta + self.factor @ delta
        sound = xp.all(xp.isfinite(factor)) & xp.all(xp.isfinite(eta))
        return Full(xp.where(sound, eta, self.eta), xp.where(sound, factor, self.factor))

    def refitted(self, xp: Namespace, delta: Array, covariance: Symmetric) -> "Full":
        """The Gaussian that has mean `delta [D]` and `covariance [D, D]`, or `[D]`, in noise.

        A covariance that is flat in some direction is a little wider, by rounding errors.
        """
        covariance = xp.diag(covariance) if covariance.ndim == 1 else covariance
        tiny = 4 * float(np.finfo(covariance.dtype).eps) * (1 + xp.trace(covariance))
        turn = cholesky(xp, covariance + tiny * xp.eye(delta.shape[0], dtype=delta.dtype))
        return Full(self.eta + self.factor @ delta, self.factor @ turn)

    def rearranged(self, source: Sequence[int | None], mean: Array, std: Array) -> "Full":
        """That of other coordinates, with means and standard deviations `[D]` of their own.

        `source [D]` says where each was before: those keep their correlations; None is new, and has
        none.
        """
        old = [i for i in source if i is not None]
        new = [j for j, i in enumerate(source) if i is not None]
        found = np.eye(len(source))
        found[np.ix_(new, new)] = lower_of(np, self.factor[old] / self.std[old, None])
        return Full(mean, std[:, None] * found)

    def given(self, kept: Sequence[int], fixed: Sequence[int], values: Array) -> "Full":
        """That of the `kept` coordinates where the `fixed` ones have `values [F]`.

        With the fixed ones first, the factor's first rows say which noise became the values, and
        the others what it adds to the mean.
        """
        factor, n = lower_of(np, self.factor[[*fixed, *kept]]), len(fixed)
        noise = solve_lower(np, factor[:n, :n], (values - self.eta[list(fixed)])[:, None])[:, 0]
        return Full(self.eta[list(kept)] + factor[n:, :n] @ noise, factor[n:, n:])

    @property
    def positive(self) -> Array:
        """What must be positive `[..., D]`: the diagonal of the factor."""
        return np.diagonal(self.factor, axis1=-2, axis2=-1)

    def check_factor(self, name: str, letters: str, shape: tuple[int, ...]) -> None:
        """Raises unless the factor is one beside means of this shape.

        A user may give a factor wherever standard deviations may stand.
        """
        check_shape(name, self.factor, letters[:-1] + ", D]", (*shape, shape[-1]))
        check_finite(name, self.factor)
        if not is_traced(self.factor) and np.triu(np.asarray(self.factor), 1).any():
            raise InputError(f"{name} must be lower triangular.")
        check_stds(f"{name} diagonal", _scale(self))

    def packed(self) -> np.ndarray:
        """One block of numbers `[..., D + D (D + 1) / 2]`: means, then the factor row by row."""
        rows, columns = np.tril_indices(np.shape(self.eta)[-1])
        return block(self.eta, np.asarray(self.factor)[..., rows, columns])

    @classmethod
    def unpacked(cls, numbers: Array, dim: int) -> "Full":
        """What `packed` has packed, of `dim` means."""
        place, lower = _triangle(dim)
        return cls(numbers[..., :dim], numbers[..., dim:][..., place] * lower)


@cache
def full_gaussian() -> Family:
    """The family of Gaussians with any covariance; one object."""
    return of_records(
        "full",
        Full,
        kl_divergence,
        ratio_of_noise,
        shape=FULL,
        score=score,
        log_density=log_density,
        floored=floored,
        natural=natural,
        moved=moved,
        renyi2=renyi2_divergence,
        work=lambda dim: dim**2,
    )


def log_density(rho: Full, theta: Array) -> Array:
    """Log-density of one sample, a scalar.

    Implements: wierstra2014 log N(theta | eta, A A^T).
    """
    xp, z = namespace(rho.factor, theta), _whitened(rho, theta)
    constant = xp.sum(xp.log(_scale(rho))) + 0.5 * z.shape[-1] * xp.log(2 * np.pi)
    return -constant - 0.5 * xp.sum(z**2, axis=-1)


def ratio_of_noise(rho: Full, reference: Full, z: Array) -> Array:
    """`log_ratio` of the noise z that became a sample under the reference; NumPy takes `[n, D]`.

    Implements: wierstra2014 ratio of Gaussians with full covariance, in logs.

    With delta = A^-1 ((A - A') z + eta - eta'), what z is less the noise under rho, the quadratic
    part is delta^T (2 z - delta) / 2: no two large numbers are subtracted.
    """
    xp = namespace(rho.factor, z)
    away = z @ (rho.factor - reference.factor).T + (rho.eta - reference.eta)
    delta = solve_lower(xp, rho.factor, away.T).T
    scale = xp.sum(xp.log1p((_scale(reference) - _scale(rho)) / _scale(rho)))
    return scale + xp.sum(0.5 * delta * (2 * z - delta), axis=-1)


def score(rho: Full, theta: Array) -> Full:
    """Gradient of the log-density of one sample with respect to (eta, A): `[D]` and `[D, D]`.

    NumPy takes samples `[n, D]`.

    Implements: wierstra2014 A^-T z and, on the lower triangle, A^-T (z z^T - I).
    """
    xp, z = namespace(rho.factor, theta), _whitened(rho, theta)
    outer = z[..., :, None] * z[..., None, :] - xp.eye(z.shape[-1], dtype=z.dtype)
    both = xp.concatenate([z[..., None], outer], axis=-1)
    rows = xp.moveaxis(both, -2, 0)  # of the factor
    solved = solve_lower(xp, rho.factor, rows.reshape(len(rows), -1), transposed=True)
    solved = xp.moveaxis(solved.reshape(rows.shape), 0, -2)
    return Full(solved[..., 0], xp.tril(solved[..., 1:]))


def natural(rho: Full, gradient: Full) -> Full:
    """The natural gradient F^-1 g, with respect to (eta, A).

    Implements: wierstra2014 local coordinates, in which F^-1 halves the diagonal of A^T g.
    """
    xp, local = namespace(rho.factor, gradient.factor), _to_local(rho, gradient)
    halved = local.factor - 0.5 * xp.diag(xp.diag(local.factor))
    return Full(rho.factor @ local.eta, rho.factor @ halved)


def moved(rho: Full, direction: Full, kl: float) -> Full:
    """rho moved along a natural `direction` until KL(new || old) is `kl`.

    A step in local coordinates, the logarithm of the diagonal's, so that the factor stays one; no
    entry of its diagonal changes by more than a factor exp(`MAX_LOG_SCALE`). Where that leaves no
    length that reaches `kl`, the step stays below it.
    """
    xp = namespace(rho.factor, direction.factor)
    shift = solve_lower(xp, rho.factor, direction.eta)
    turn = solve_lower(xp, rho.factor, direction.factor)
    stretch, below = xp.diag(turn), xp.tril(turn, -1)

    def local(length: Array) -> Full:
        scale = xp.exp(xp.clip(length * stretch, -MAX_LOG_SCALE, MAX_LOG_SCALE))
        return Full(length * shift, length * below + xp.diag(scale))

    free = xp.sum(shift**2) + xp.sum(below**2)
    longest = longest_length(kl, free=free, capped=2 * xp.sum(stretch**2))
    length = length_to(kl, lambda a: _local_kl(local(a)), longest)
    new = local(length)
    return Full(rho.eta + rho.factor @ new.eta, rho.factor @ new.factor)


def floored(rho: Full, least: float) -> Full:
    """rho with a lower triangular factor, and no entry of its diagonal below `least`.

    That entry is a coordinate's standard deviation once those before it are known.
    """
    xp = namespace(rho.factor)
    short = xp.maximum(least - _scale(rho), 0.0)
    return rho._replace(factor=xp.tril(rho.factor) + xp.diag(short))


def kl_divergence(p: Full, q: Full) -> Array:
    """Kullback-Leibler divergence KL(p || q), a scalar.

    Implements: kullback1951 KL of Gaussians with full covariance, with T = A_q^-1 A_p and
    d = A_q^-1 (eta_p - eta_q): (||T||^2 - D + ||d||^2) / 2 - sum_i log T_ii.
    """
    return _local_kl(_relative(p, q))


def renyi2_divergence(p: Full, q: Full) -> Array:
    """Renyi divergence of order 2, log E_q[(p / q)^2], a scalar; infinite where it does not exist.

    Implements: gil2013 order-2 Renyi divergence of Gaussians with full covariance. With l the
    eigenvalues of T T^T and u the coordinates of d along its axes: sum u^2 / (2 - l) - log((2 - l)
    l) / 2, finite only if every l < 2.
    """
    xp, local = namespace(p.factor, q.factor), _relative(p, q)
    values, axes = xp.linalg.eigh(local.factor @ local.factor.T)
    return renyi2_of_axes(xp, values, axes.T @ local.eta)


def _whitened(rho: Full, theta: Array) -> Array:
    return rho.whitened(namespace(rho.factor, theta), theta)


def _scale(rho: Full) -> Array:
    return namespace(rho.factor).diagonal(rho.factor, axis1=-2, axis2=-1)


def _to_local(rho: Full, gradient: Full) -> Full:
    """A gradient with respect to (eta, A) as one with respect to local coordinates."""
    xp = namespace(rho.factor, gradient.factor)
    return Full(rho.factor.T @ gradient.eta, xp.tril(rho.factor.T @ gradient.factor))


def _relative(p: Full, q: Full) -> Full:
    """p as q sees it, whitened: d and T."""
    xp = namespace(p.factor, q.factor)
    both = xp.column_stack([p.eta - q.eta, p.factor])
    solved = solve_lower(xp, q.factor, both)
    return Full(solved[:, 0], solved[:, 1:])


def _local_kl(local: Full) -> Array:
    """KL of N(d, T T^T) from the standard normal, with T near the identity taken exactly."""
    xp = namespace(local.factor)
    diagonal = xp.diagonal(local.factor)
    log_scale = xp.log1p(diagonal - 1)
    spread = 0.5 * xp.expm1(2 * log_scale) - log_scale
    below = xp.tril(local.factor, -1)
    return xp.sum(spread) + 0.5 * (xp.sum(below**2) + xp.sum(local.eta**2))


@lru_cache(maxsize=32)
def _triangle(dim: int) -> tuple[np.ndarray, np.ndarray]:
    """For each entry of a matrix, its place among those of the lower triangle, and which are."""
    lower = np.tri(dim, dtype=bool)
    place = np.cumsum(lower).reshape(dim, dim) - 1
    return np.where(lower, place, 0), lower

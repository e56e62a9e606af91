"""The Gaussian with full covariance over policy parameters, by its Cholesky factor.

With z = A^-1 (theta - eta) and A the factor, a small move in *local* coordinates, eta + A d and
A (I + H) with H lower triangular, has the score (z, tril(z z^T - I)): its coordinates are
uncorrelated, with variance 1, and 2 on H's diagonal. So the Fisher information is diagonal there,
whatever the covariance is.
"""

from functools import cache

import numpy as np

from recoup.core.arrays import Array, behind, namespace, solve_lower
from recoup.core.families.family import (
    Family,
    by_methods,
    draw,
    length_to,
    longest_length,
    renyi2_of_axes,
)
from recoup.core.families.rho import Full
from recoup.core.families.shapes import FULL

MAX_LOG_SCALE = 0.5  # the most that one natural step changes the log of the factor's diagonal by


@cache
def full_gaussian() -> Family:
    """The family of Gaussians with any covariance; one object."""
    return Family(
        name="full",
        start=Full.start,
        draw=draw,
        log_ratio=log_ratio,
        score=score,
        divergence=lambda new, old, samples, valid: kl_divergence(new, old),
        packed=Full.packed,
        unpacked=Full.unpacked,
        log_density=log_density,
        floored=floored,
        natural=natural,
        moved=moved,
        renyi2=renyi2_divergence,
        ratio_of_noise=ratio_of_noise,
        work=lambda dim: dim**2,
        **by_methods(FULL),
    )


def log_density(rho: Full, theta: Array) -> Array:
    """Log-density of one sample, a scalar.

    Implements: wierstra2014 log N(theta | eta, A A^T).
    """
    xp, z = namespace(rho.factor, theta), _whitened(rho, theta)
    constant = xp.sum(xp.log(_scale(rho))) + 0.5 * z.shape[-1] * xp.log(2 * np.pi)
    return -constant - 0.5 * xp.sum(z**2, axis=-1)


def log_ratio(rho: Full, reference: Full, theta: Array) -> Array:
    """log p(theta | rho) - log p(theta | reference) of one sample, a scalar."""
    return ratio_of_noise(rho, reference, _whitened(reference, theta))


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
    turn = solve_lower(xp, behind(xp, rho.factor, shift), direction.factor)
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
    return namespace(rho.factor).diagonal(rho.factor)


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

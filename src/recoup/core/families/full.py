"""The Gaussian with full covariance over policy parameters, by its Cholesky factor.

With z = A^-1 (theta - eta) and A the factor, a small move in *local* coordinates, eta + A d and
A (I + H) with H lower triangular, has the score (z, tril(z z^T - I)): its coordinates are
uncorrelated, with variance 1, and 2 on H's diagonal. So the Fisher information is diagonal there,
whatever the covariance is.
"""

from functools import cache

import jax.numpy as jnp
from jax import Array
from jax.scipy.linalg import solve_triangular

from recoup.core.arrays import behind
from recoup.core.families.family import Family, draw, length_to, longest_length
from recoup.core.families.rho import Full

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
        floored=floored,
        natural=natural,
        moved=moved,
        renyi2=renyi2_divergence,
        whitened=_whitened,
    )


def log_density(rho: Full, theta: Array) -> Array:
    """Log-density of one sample, a scalar.

    Implements: wierstra2014 log N(theta | eta, A A^T).
    """
    z = _whitened(rho, theta)
    return -jnp.sum(jnp.log(_scale(rho)) + 0.5 * z**2) - 0.5 * z.size * jnp.log(2 * jnp.pi)


def log_ratio(rho: Full, reference: Full, theta: Array) -> Array:
    """log p(theta | rho) - log p(theta | reference) of one sample, a scalar.

    Implements: wierstra2014 ratio of Gaussians with full covariance, in logs.

    With z' the sample whitened by the reference and delta = z' - z = A^-1 ((A - A') z' + eta -
    eta'), the quadratic part is delta^T (2 z' - delta) / 2: no two large numbers are subtracted.
    """
    z_ref = _whitened(reference, theta)
    away = (rho.factor - reference.factor) @ z_ref + (rho.eta - reference.eta)
    delta = solve_triangular(rho.factor, away, lower=True)
    scale = jnp.sum(jnp.log1p((_scale(reference) - _scale(rho)) / _scale(rho)))
    return scale + jnp.sum(0.5 * delta * (2 * z_ref - delta))


def score(rho: Full, theta: Array) -> Full:
    """Gradient of the log-density of one sample with respect to (eta, A): `[D]` and `[D, D]`.

    Implements: wierstra2014 A^-T z and, on the lower triangle, A^-T (z z^T - I).
    """
    z = _whitened(rho, theta)
    outer = jnp.outer(z, z) - jnp.eye(z.size, dtype=z.dtype)
    both = jnp.column_stack([z, outer])
    solved = solve_triangular(rho.factor, both, lower=True, trans="T")
    return Full(solved[:, 0], jnp.tril(solved[:, 1:]))


def natural(rho: Full, gradient: Full) -> Full:
    """The natural gradient F^-1 g, with respect to (eta, A).

    Implements: wierstra2014 local coordinates, in which F^-1 halves the diagonal of A^T g.
    """
    local = _to_local(rho, gradient)
    halved = local.factor - 0.5 * jnp.diag(jnp.diag(local.factor))
    return Full(rho.factor @ local.eta, rho.factor @ halved)


def moved(rho: Full, direction: Full, kl: float) -> Full:
    """rho moved along a natural `direction` until KL(new || old) is `kl`.

    A step in local coordinates, the logarithm of the diagonal's, so that the factor stays one; no
    entry of its diagonal changes by more than a factor exp(`MAX_LOG_SCALE`). Where that leaves no
    length that reaches `kl`, the step stays below it.
    """
    shift = solve_triangular(rho.factor, direction.eta, lower=True)
    turn = solve_triangular(behind(jnp, rho.factor, shift), direction.factor, lower=True)
    stretch, below = jnp.diag(turn), jnp.tril(turn, -1)

    def local(length: Array) -> Full:
        scale = jnp.exp(jnp.clip(length * stretch, -MAX_LOG_SCALE, MAX_LOG_SCALE))
        return Full(length * shift, length * below + jnp.diag(scale))

    free = jnp.sum(shift**2) + jnp.sum(below**2)
    longest = longest_length(kl, free=free, capped=2 * jnp.sum(stretch**2))
    length = length_to(kl, lambda a: _local_kl(local(a)), longest)
    new = local(length)
    return Full(rho.eta + rho.factor @ new.eta, rho.factor @ new.factor)


def floored(rho: Full, least: float) -> Full:
    """rho with a lower triangular factor, and no entry of its diagonal below `least`.

    That entry is a coordinate's standard deviation once those before it are known.
    """
    short = jnp.maximum(least - _scale(rho), 0.0)
    return rho._replace(factor=jnp.tril(rho.factor) + jnp.diag(short))


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
    local = _relative(p, q)
    values, axes = jnp.linalg.eigh(local.factor @ local.factor.T)
    gap = 2 - values
    finite = gap > 0
    safe = jnp.where(finite, gap, 1.0)
    terms = (axes.T @ local.eta) ** 2 / safe - 0.5 * jnp.log(safe * values)
    return jnp.sum(jnp.where(finite, terms, jnp.inf))


def _whitened(rho: Full, theta: Array) -> Array:
    return solve_triangular(rho.factor, theta - rho.eta, lower=True)


def _scale(rho: Full) -> Array:
    return jnp.diagonal(rho.factor)


def _to_local(rho: Full, gradient: Full) -> Full:
    """A gradient with respect to (eta, A) as one with respect to local coordinates."""
    return Full(rho.factor.T @ gradient.eta, jnp.tril(rho.factor.T @ gradient.factor))


def _relative(p: Full, q: Full) -> Full:
    """p as q sees it, whitened: d and T."""
    both = jnp.column_stack([p.eta - q.eta, p.factor])
    solved = solve_triangular(q.factor, both, lower=True)
    return Full(solved[:, 0], solved[:, 1:])


def _local_kl(local: Full) -> Array:
    """KL of N(d, T T^T) from the standard normal, with T near the identity taken exactly."""
    diagonal = jnp.diagonal(local.factor)
    log_scale = jnp.log1p(diagonal - 1)
    spread = 0.5 * jnp.expm1(2 * log_scale) - log_scale
    below = jnp.tril(local.factor, -1)
    return jnp.sum(spread) + 0.5 * (jnp.sum(below**2) + jnp.sum(local.eta**2))

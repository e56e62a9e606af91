"""A model of the returns over theta: a Gaussian process, whose mean under a Gaussian is known.

Points are given in the coordinates of that Gaussian, so that it is N(0, I) there. The kernel knows
a level, a slope, a bowl about the middle of the Gaussian, and bumps of one length: the first three
carry on beyond the points, the bumps do not, and where they are needed the variance grows.

(A bowl about the middle of the points would be biased: they lie nearer to their own mean than new
ones do, by 2 D / n, which counts where there are fewer points than dimensions.)

No hyper-parameter is chosen: all of a grid take part, by their evidence. Points that are not valid
take part in nothing.
"""

from itertools import product
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from recoup.core.prior import BOWLS, LENGTHS, LEVEL, NOISES, SLOPE


class Hyper(NamedTuple):
    """One point of the grid; variances are over that of the bumps."""

    length: Array  # squared
    bowl: Array
    noise: Array


class Points(NamedTuple):
    """Where returns were seen."""

    z: Array  # [n, D], zero where not valid
    valid: Array  # [n]
    bowl: Array  # [n] half of |z|^2, less its mean
    below: Array  # what that is on average under N(0, I)


class Fitted(NamedTuple):
    """What the model says of the mean return under N(0, I), and of each return without itself."""

    mean: Array
    std: Array  # of that mean, as the model has it
    residuals: Array  # [n] returns less what the others predict
    pulls: Array  # [n] how far the mean follows each return


def points_of(z: Array, valid: Array) -> Points:
    """The points of `z [n, D]`."""
    z = jnp.where(valid[:, None], z, 0.0)
    n = jnp.maximum(jnp.sum(valid, dtype=z.dtype), 1)
    squares = jnp.sum(z**2, axis=1)
    mean = jnp.sum(squares) / n
    return Points(z, valid, (squares - mean) / 2, (z.shape[1] - mean) / 2)


def kernel(points: Points, hyper: Hyper) -> Array:
    """k(z_a, z_b) `[n, n]`, without the noise; zero where either is not valid."""
    products = points.z @ points.z.T
    squares = jnp.diagonal(products)
    apart = jnp.maximum(squares[:, None] + squares - 2 * products, 0.0)
    trend = SLOPE * products + hyper.bowl * jnp.outer(points.bowl, points.bowl)
    k = LEVEL + jnp.exp(-apart / (2 * hyper.length)) + trend / hyper.length
    return jnp.where(jnp.outer(points.valid, points.valid), k, 0.0)


def expected_kernel(points: Points, hyper: Hyper) -> tuple[Array, Array]:
    """E k(z, z_a) `[n]` over z ~ N(0, I), and E k(z, z') over two of them.

    Implements: ohagan1991 Bayes-Hermite quadrature, E exp(-|z - a|^2 / 2l) = (l / (l + 1))^(D/2)
    exp(-|a|^2 / 2(l + 1)).
    """
    length, dim = hyper.length, points.z.shape[1]
    near = jnp.exp(-jnp.sum(points.z**2, axis=1) / (2 * (1 + length)))
    bumps = (length / (1 + length)) ** (dim / 2) * near
    each = LEVEL + bumps + hyper.bowl * points.bowl * points.below / length
    both = LEVEL + (length / (2 + length)) ** (dim / 2) + hyper.bowl * points.below**2 / length
    return jnp.where(points.valid, each, 0.0), both


class Posterior(NamedTuple):
    """What one hyper-parameter says; `evidence` is the log of its posterior, but for a constant."""

    evidence: Array
    mean: Array
    variance: Array
    residuals: Array  # [n]
    pulls: Array  # [n]


def posterior(points: Points, y: Array, length: Array, bowl: Array, noises: Array) -> Posterior:
    """The posteriors of all `noises [V]`, from one decomposition of the kernel; leading axis [V].

    Implements: rasmussen2006 eq. 5.12 and leave-one-out residuals, [K^-1 y]_i / [K^-1]_ii, with the
    signal's variance integrated out under an inverse-gamma(1, 1) prior. Differs: `y` is in units of
    its own standard deviation.
    """
    hyper = Hyper(length, bowl, noises[0])
    values, vectors = jnp.linalg.eigh(kernel(points, hyper))
    values = jnp.maximum(values, 0.0)
    each, both = expected_kernel(points, hyper)
    n, dim = jnp.sum(points.valid, dtype=y.dtype), points.z.shape[1]
    empty = y.size - n
    along_y, along_each = vectors.T @ y, vectors.T @ each

    def one(noise: Array) -> Posterior:
        at, inverse = hyper._replace(noise=noise), 1 / (values + noise)
        signal = (along_y**2 @ inverse + 2) / (n + 2)
        log_det = jnp.sum(jnp.log(values + noise)) - empty * jnp.log(noise)
        pulls = vectors @ (along_each * inverse)
        diagonal = vectors**2 @ inverse
        return Posterior(
            evidence=_log_prior(at, dim) - (n + 2) / 2 * jnp.log(signal) - log_det / 2,
            mean=pulls @ y,
            variance=signal * jnp.maximum(both - along_each**2 @ inverse, 0.0),
            residuals=jnp.where(points.valid, vectors @ (along_y * inverse) / diagonal, 0.0),
            pulls=pulls,
        )

    return jax.vmap(one)(noises)


def _log_prior(hyper: Hyper, dim: int) -> Array:
    """Normal in the logarithms of length, bowl and noise; but for a constant."""
    scaled = (
        jnp.log(hyper.length / dim),
        jnp.log(hyper.bowl / 0.25) / 1.5,
        jnp.log(hyper.noise / 0.1) / 3.0,
    )
    return -(scaled[0] ** 2 + scaled[1] ** 2 + scaled[2] ** 2) / 2


def fitted(z: Array, returns: Array, valid: Array) -> Fitted:
    """The model of `returns [n]` at `z [n, D]`, averaged over the grid by evidence."""
    points, dtype = points_of(z, valid), returns.dtype
    n = jnp.maximum(jnp.sum(valid, dtype=dtype), 1)
    level = jnp.sum(jnp.where(valid, returns, 0.0)) / n
    centred = jnp.where(valid, returns - level, 0.0)
    scale = jnp.sqrt(jnp.sum(centred**2) / n)
    scale = jnp.where(scale > 0, scale, 1.0)
    grid = jnp.asarray(list(product(LENGTHS, BOWLS)), dtype) * jnp.asarray([z.shape[1], 1], dtype)
    noises = jnp.asarray(NOISES, dtype)

    def at(cell: Array) -> Posterior:
        return posterior(points, centred / scale, cell[0], cell[1], noises)

    found = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), jax.lax.map(at, grid))
    share = jax.nn.softmax(found.evidence)
    mean = share @ found.mean
    variance = share @ (found.variance + (found.mean - mean) ** 2)
    return Fitted(
        mean=level + scale * mean,
        std=scale * jnp.sqrt(variance),
        residuals=scale * share @ found.residuals,
        pulls=share @ found.pulls,
    )

"""A model of the returns over theta: a Gaussian process, whose mean under a Gaussian is known.

Points are given in the coordinates of that Gaussian, so that it is N(0, I) there. The kernel knows
a level, a slope, a bowl about the middle of the Gaussian, and bumps of one length: the first three
carry on beyond the points, the bumps do not, and where they are needed the variance grows.

(A bowl about the middle of the points would be biased: they lie nearer to their own mean than new
ones do, by 2 D / n, which counts where there are fewer points than dimensions.)

No hyper-parameter is chosen: all of a grid take part, by their evidence. A cell of the grid is a
length and a bowl; every cell has all noises `[V]`. Cells of one length share a decomposition: a
bowl adds c u u^T to the kernel, and by Sherman and Morrison (K + c u u^T)^-1 =
M - c M u u^T M / (1 + c u^T M u), with M = K^-1.

Arrays of NumPy stay so; those of JAX may be traced. Points that are not valid take part in nothing.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from recoup.core.arrays import Array, mapped, namespace
from recoup.core.prior import BOWLS, LENGTHS, LEVEL, NOISES, SLOPE


class SeenPoints(NamedTuple):
    """Where returns were seen."""

    z: Array  # [n, D], zero where not valid
    squares: Array  # [n] |z|^2
    middle: Array  # their mean
    products: Array  # [n, n] z_a^T z_b
    apart: Array  # [n, n] |z_a - z_b|^2
    valid: Array | None = None  # [n]; None: all are

    @property
    def bowl(self) -> Array:
        """Half of |z|^2, less its mean `[n]`; zero where not valid."""
        u = (self.squares - self.middle) / 2
        return u if self.valid is None else u * self.valid

    @property
    def below(self) -> Array:
        """What that is on average under N(0, I)."""
        return (self.z.shape[1] - self.middle) / 2


def points_of(z: Array, valid: Array | None = None) -> SeenPoints:
    """The points of `z [n, D]`."""
    xp = namespace(z)
    if valid is not None:
        z = xp.where(valid[:, None], z, 0.0)
    squares, products = xp.sum(z**2, axis=1), z @ z.T
    apart = xp.maximum(squares[:, None] + squares - 2 * products, 0.0)
    return SeenPoints(z, squares, xp.sum(squares) / _count(z, valid), products, apart, valid)


def _count(z: Array, valid: Array | None) -> Array:
    """How many are valid, at least one; in the type of z."""
    if valid is None:
        return max(len(z), 1)
    xp = namespace(z, valid)
    return xp.maximum(xp.sum(valid, dtype=z.dtype), 1)


def standardised(returns: Array, valid: Array | None = None) -> tuple[Array, Array, Array]:
    """Returns in units of their standard deviation, about their mean; the mean, and the unit."""
    xp, n = namespace(returns), _count(returns, valid)
    told = returns if valid is None else xp.where(valid, returns, 0.0)
    level = xp.sum(told) / n
    centred = returns - level if valid is None else xp.where(valid, returns - level, 0.0)
    scale = xp.sqrt(xp.sum(centred**2) / n)
    scale = xp.where(scale > 0, scale, 1.0)
    return centred / scale, level, scale


def kernel(points: SeenPoints, length: Array) -> Array:
    """k(z_a, z_b) `[n, n]`, without bowl and noise; zero where either is not valid."""
    xp = namespace(points.z, length)
    k = LEVEL + xp.exp(points.apart * (-0.5 / length)) + points.products * (SLOPE / length)
    if points.valid is None:
        return k
    return xp.where(points.valid[:, None] & points.valid, k, 0.0)


def expected_kernel(points: SeenPoints, length: Array, bowl: float) -> tuple[Array, Array]:
    """E k(z, z_a) `[n]` over z ~ N(0, I), and E k(z, z') over two of them, with the bowl.

    Implements: ohagan1991 Bayes-Hermite quadrature, E exp(-|z - a|^2 / 2l) = (l / (l + 1))^(D/2)
    exp(-|a|^2 / 2(l + 1)).
    """
    xp, dim = namespace(points.z, length), points.z.shape[1]
    tilt = bowl * points.below / length
    bumps = (length / (1 + length)) ** (dim / 2) * xp.exp(-points.squares / (2 * (1 + length)))
    each = LEVEL + bumps + tilt * points.bowl
    both = LEVEL + (length / (2 + length)) ** (dim / 2) + tilt * points.below
    return each if points.valid is None else xp.where(points.valid, each, 0.0), both


class GridCell(NamedTuple):
    """A length and a bowl, fitted to returns in units of their standard deviation."""

    length: Array
    bowl: float
    evidence: Array  # [V] log posterior, but for a constant
    signal: Array  # [V] variance of the bumps
    k_y: Array  # [V, n] K^-1 y
    diagonal: Array  # [V, n] of K^-1
    share: Array  # [V] of the bowl's correction
    m_u: Array  # [V, n]
    inverse: Array  # [V, n] of the eigenvalues and noise
    vectors: Array  # [n, n]

    def solved(self, x: Array) -> Array:
        """K^-1 x `[V, n]`."""
        m_x = ((self.vectors.T @ x) * self.inverse) @ self.vectors.T
        return m_x - (self.share * (self.m_u @ x))[:, None] * self.m_u


def cells_of_length(
    points: SeenPoints,
    y: Array,
    length: Array,
    *,
    more: Array | float = 0.0,
    bowls: Sequence[float] = BOWLS,
    noises: Sequence[float] = NOISES,
) -> list[GridCell]:
    """The cells of one length, from one decomposition of the kernel; `more [n, n]` is added to it.

    Implements: rasmussen2006 eq. 5.12, with the signal's variance integrated out under an
    inverse-gamma(1, 1) prior. Differs: `y [n]` is in units of its own standard deviation.
    """
    xp = namespace(points.z, y)
    noise, u = xp.asarray(noises, dtype=y.dtype), points.bowl
    n = y.size if points.valid is None else xp.sum(points.valid, dtype=y.dtype)
    values, vectors = xp.linalg.eigh(kernel(points, length) + more)
    inverse = 1 / (xp.maximum(values, 0.0) + noise[:, None])
    m_y, m_u = (((vectors.T @ x) * inverse) @ vectors.T for x in (y, u))
    diagonal, u_m_u = inverse @ (vectors**2).T, m_u @ u
    log_det = -xp.sum(xp.log(inverse), axis=1) - (y.size - n) * xp.log(noise)
    found = []
    for bowl in bowls:
        c = bowl / length
        share = c / (1 + c * u_m_u)
        k_y = m_y - (share * (m_u @ y))[:, None] * m_u
        signal = (k_y @ y + 2) / (n + 2)
        likely = -(n + 2) / 2 * xp.log(signal) - (log_det + xp.log1p(c * u_m_u)) / 2
        evidence = _log_prior(length / points.z.shape[1], bowl, noise) + likely
        left = diagonal - share[:, None] * m_u**2
        found.append(
            GridCell(length, bowl, evidence, signal, k_y, left, share, m_u, inverse, vectors)
        )
    return found


def cells(points: SeenPoints, y: Array, more: Array | float = 0.0) -> list[GridCell]:
    """All cells of the grid, fitted to `y [n]`; `more [n, n]` is added to their kernel."""
    lengths = [scaled * points.z.shape[1] for scaled in LENGTHS]
    return [cell for length in lengths for cell in cells_of_length(points, y, length, more=more)]


def _log_prior(length: Array, bowl: float, noise: Array) -> Array:
    """Normal in the logarithms of length, bowl and noise `[V]`; but for a constant."""
    xp = namespace(length, noise)
    scaled = xp.log(length), np.log(bowl / 0.25) / 1.5, xp.log(noise / 0.1) / 3.0
    return -(scaled[0] ** 2 + scaled[1] ** 2 + scaled[2] ** 2) / 2


def shares(evidence: Array) -> Array:
    """Posterior probabilities of log evidences."""
    xp = namespace(evidence)
    found = xp.exp(evidence - xp.max(evidence))
    return found / xp.sum(found)


class Posterior(NamedTuple):
    """What one hyper-parameter says; `evidence` is the log of its posterior, but for a constant."""

    evidence: Array
    mean: Array
    variance: Array
    residuals: Array  # [n] y less what the others predict
    pulls: Array  # [n]


def posterior(points: SeenPoints, y: Array, length: Array, **grid: Sequence[float]) -> Posterior:
    """What the cells of one length say of the mean under N(0, I); leading axis bowls and noises.

    Implements: rasmussen2006 leave-one-out residuals, [K^-1 y]_i / [K^-1]_ii.
    """
    xp, found = namespace(points.z, y, length), []
    for cell in cells_of_length(points, y, length, **grid):
        each, both = expected_kernel(points, length, cell.bowl)
        pulls = cell.solved(each)
        variance = cell.signal * xp.maximum(both - pulls @ each, 0.0)
        residuals = cell.k_y / cell.diagonal
        if points.valid is not None:
            residuals = xp.where(points.valid, residuals, 0.0)
        found.append(Posterior(cell.evidence, pulls @ y, variance, residuals, pulls))
    return Posterior(*(xp.concatenate(x) for x in zip(*found, strict=True)))


class SurrogateFit(NamedTuple):
    """What the model says of the mean return under N(0, I), and of each return without itself."""

    mean: Array
    std: Array  # of that mean, as the model has it
    residuals: Array  # [n] returns less what the others predict
    pulls: Array  # [n] how far the mean follows each return


def fitted(z: Array, returns: Array, valid: Array) -> SurrogateFit:
    """The model of `returns [n]` at `z [n, D]`, averaged over the grid by evidence."""
    xp = namespace(z, returns, valid)
    if xp is np and not valid.all():  # a small decomposition in place of one with empty rows
        return _spread_out(fitted(z[valid], returns[valid], valid[valid]), valid)
    y, level, scale = standardised(returns, valid)
    points = points_of(z, valid)
    lengths = xp.asarray(LENGTHS, dtype=returns.dtype) * z.shape[1]
    by_length = mapped(xp, lambda length: posterior(points, y, length), lengths)
    size = by_length.evidence.size
    found = Posterior(*(x.reshape(size, *x.shape[2:]) for x in by_length))
    share = shares(found.evidence)
    mean = share @ found.mean
    variance = share @ (found.variance + (found.mean - mean) ** 2)
    return SurrogateFit(
        mean=level + scale * mean,
        std=scale * xp.sqrt(variance),
        residuals=scale * share @ found.residuals,
        pulls=share @ found.pulls,
    )


def _spread_out(found: SurrogateFit, valid: np.ndarray) -> SurrogateFit:
    """A fit with zeros in the places of points that are not valid."""
    residuals, pulls = np.zeros(len(valid)), np.zeros(len(valid))
    residuals[valid], pulls[valid] = found.residuals, found.pulls
    return found._replace(residuals=residuals, pulls=pulls)

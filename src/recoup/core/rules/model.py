"""A model of the returns about the distribution that moves: slope, curvature, and their doubt.

A Gaussian process over z, fitted to old and new samples alike: it needs no density ratio, only to
hold nearby. Its kernel knows a level, a slope and a bowl about the mean of the points, which carry
on along the path of the search, and bumps of one length, which take up what the others cannot say.
"""

from typing import NamedTuple

import numpy as np

from recoup.core.arrays import Array, Dtype, mean_of, repeat, when
from recoup.core.families.shapes import Axes, Shape
from recoup.core.linalg import cholesky, solve_lower
from recoup.core.prior import LEVEL, SLOPE
from recoup.core.rules.tuning import TUNED
from recoup.core.types import Namespace


class Points(NamedTuple):
    """Where returns were seen, and what the kernel needs of it."""

    z: Array  # [n, D], zero where not valid
    valid: Array  # [n]
    squares: Array  # [n] |z|^2
    apart: Array  # [n, n] |z_a - z_b|^2
    mean: Array  # [D] of the points
    centred: Array  # [n, D] z less that
    slope: Array  # [n, n] products of the centred
    bowl: Array  # [n] half of |centred|^2, less its mean


def apart_of(xp: Namespace, z: Array, valid: Array) -> tuple[Array, Array]:
    """|z_a - z_b|^2 `[n, n]` and |z|^2 `[n]` of valid samples `z [n, D]`."""
    z = xp.where(valid[:, None], z, 0.0)
    squares = xp.sum(z**2, axis=1)
    return xp.maximum(squares[:, None] + squares - 2 * (z @ z.T), 0.0), squares


def points_of(xp: Namespace, z: Array, valid: Array, apart: Array | None = None) -> Points:
    """The points of `z [n, D]`; their squared distances where they are known already."""
    z = xp.where(valid[:, None], z, 0.0)
    mean = mean_of(xp, z, valid)
    centred = xp.where(valid[:, None], z - mean, 0.0)
    far = xp.sum(centred**2, axis=1)
    return Points(
        z=z,
        valid=valid,
        squares=xp.sum(z**2, axis=1),
        apart=apart_of(xp, z, valid)[0] if apart is None else apart,
        mean=mean,
        centred=centred,
        slope=centred @ centred.T,
        bowl=xp.where(valid, (far - mean_of(xp, far, valid)) / 2, 0.0),
    )


def prior_of(xp: Namespace, dim: int, length: float, dtype: Dtype) -> Array:
    """The middle of the prior: logarithms of squared length, noise and bowl `[3]`."""
    return xp.log(xp.asarray([length * dim, TUNED.noise_prior, TUNED.bowl_prior], dtype=dtype))


def covariance(xp: Namespace, points: Points, hyper: Array) -> Array:
    """K `[n, n]`: the kernel, and the noise on its diagonal; one where a point is not valid."""
    length, noise, bowl = xp.exp(hyper[0]), xp.exp(hyper[1]), xp.exp(hyper[2])
    trend = SLOPE * points.slope + bowl * points.bowl[:, None] * points.bowl
    k = LEVEL + xp.exp(-points.apart / (2 * length)) + trend / length
    k = xp.where(points.valid[:, None] & points.valid, k, 0.0)
    own = xp.where(points.valid, noise + _jitter(xp, k), 1.0)
    return k + xp.diag(own)


def _jitter(xp: Namespace, k: Array) -> Array:
    """What keeps K positive: next to nothing in float64, more where numbers have fewer digits."""
    eps = float(np.finfo(k.dtype).eps)
    return 1e-9 if eps < 1e-10 else 0.3 * eps * xp.trace(k)


class Fit(NamedTuple):
    """The model of given hyper-parameters."""

    factor: Array  # [n, n] lower, of K
    alpha: Array  # [n] K^-1 y
    signal: Array  # s^2, the variance that the kernel is over
    evidence: Array  # logarithm, but for a constant


def fit(xp: Namespace, points: Points, y: Array, hyper: Array) -> Fit:
    """The model of `y [n]`, zero where not valid."""
    return fitted(xp, covariance(xp, points, hyper), y, xp.sum(points.valid))


def fitted(xp: Namespace, k: Array, y: Array, n: Array | int) -> Fit:
    """The model of `y [n]` with a covariance `k [n, n]`, of which so many are valid.

    Implements: rasmussen2006 eq. 5.8 log marginal likelihood, the signal's variance integrated out
    under an inverse-gamma(1, 1) prior.
    """
    factor = cholesky(xp, k)
    half = solve_lower(xp, factor, y)
    signal = (xp.sum(half**2) + 2) / (n + 2)
    found = -(n + 2) / 2 * xp.log(signal) - xp.sum(xp.log(xp.diagonal(factor)))
    alpha = solve_lower(xp, factor, half, transposed=True)
    return Fit(factor, alpha, signal, xp.where(xp.isfinite(found), found, -xp.inf))


def improved(
    xp: Namespace, points: Points, y: Array, hyper: Array, middle: Array, turn: Array
) -> tuple[Array, Fit]:
    """Hyper-parameters one stride better by evidence and prior, if one is; and the model of them.

    All three are tried one after the other while there are few points, later that of the `turn`.
    """
    dim, early = points.z.shape[1], xp.sum(points.valid) <= TUNED.early
    low = xp.log(xp.asarray([0.3 * dim, 1e-6, 1e-30], dtype=y.dtype))
    high = xp.log(xp.asarray([1e3 * dim, 1e3, 1e30], dtype=y.dtype))
    strides = xp.asarray(np.log(TUNED.strides), dtype=y.dtype)

    def attempt(at: tuple[Array, Array, Fit]) -> tuple[Array, Array, Fit]:
        trial, hyper, best = at
        which, up = trial // 2, trial % 2 == 0
        moved = xp.clip(hyper + xp.where(up, strides, -strides), low, high)
        moved = xp.where(xp.arange(3) == which, moved, hyper)
        found = fit(xp, points, y, moved)
        gain = found.evidence - best.evidence
        gain = gain + log_prior(xp, moved, middle) - log_prior(xp, hyper, middle)
        kept = (xp.where(gain > 0, new, old) for new, old in zip(found, best, strict=True))
        return trial + 1, xp.where(gain > 0, moved, hyper), Fit(*kept)

    def go_on(at: tuple[Array, Array, Fit]) -> tuple[Array, Array, Fit]:
        tried = early | (at[0] // 2 == turn)
        return when(xp, tried, attempt, lambda left: (left[0] + 1, *left[1:]), at)

    first = (xp.asarray(0), hyper, fit(xp, points, y, hyper))
    _, hyper, best = repeat(xp, 2 * len(TUNED.strides), go_on, first)
    return hyper, best


def sound(xp: Namespace, model: Fit) -> tuple[Array, Fit]:
    """Whether K had a factor, and the model; one that expects nothing, where it had none.

    Far points and few digits can leave a K that is not positive.
    """
    found = model.evidence > -xp.inf
    n = model.alpha.shape[0]
    return found, Fit(
        factor=xp.where(found, model.factor, xp.eye(n, dtype=model.factor.dtype)),
        alpha=xp.where(found, model.alpha, 0.0),
        signal=xp.where(found, model.signal, 1.0),
        evidence=model.evidence,
    )


def log_prior(xp: Namespace, hyper: Array, middle: Array) -> Array:
    """Normal in the logarithms; but for a constant."""
    return -xp.sum(((hyper - middle) / xp.asarray(TUNED.prior_spreads, dtype=hyper.dtype)) ** 2) / 2


def rise(
    xp: Namespace, points: Points, hyper: Array, model: Fit, deltas: Array
) -> tuple[Array, Array]:
    """What the expected return under N(delta, I) is more than under N(0, I) `[R]`; its variance.

    For `deltas [R, D]`, curvature and bumps included: how far the model can be followed.

    Implements: ohagan1991 rise of the expectation by a step, with its posterior variance, in closed
    form as those of `images`: E exp(-|z - a|^2 / 2l) is (l / w)^(D/2) exp(-|a - delta|^2 / 2w)
    with w = l + 1, and with w = l + 2 between two such expectations.
    """
    length, bowl, dim = xp.exp(hyper[0]), xp.exp(hyper[2]), deltas.shape[1]
    at = xp.concatenate([xp.zeros_like(deltas[:1]), deltas])
    squares, centred = xp.sum(at**2, axis=1), at - points.mean
    bowls = (xp.sum(centred**2, axis=1) - xp.sum(points.mean**2)) / 2  # but for a constant

    def bumps(apart: Array, wide: Array) -> Array:
        far = xp.exp(-xp.maximum(apart, 0.0) / (2 * wide))
        return xp.exp(0.5 * dim * xp.log(length / wide)) * far

    def more(k: Array) -> Array:
        return k[1:] - k[0]

    apart = squares[:, None] + points.squares - 2 * at @ points.z.T
    k = bumps(apart, length + 1) + SLOPE / length * (centred @ points.centred.T)
    k = k + bowl / length * bowls[:, None] * points.bowl
    beside = more(xp.where(points.valid, k, 0.0))
    own = bumps(squares[:, None] + squares - 2 * at @ at.T, length + 2)
    own = own + SLOPE / length * (centred @ centred.T) + bowl / length * bowls[:, None] * bowls
    prior = xp.diagonal(more(more(own).T))
    known = xp.sum(solve_lower(xp, model.factor, beside.T) ** 2, axis=0)
    return beside @ model.alpha, model.signal * xp.maximum(prior - known, 1e-12)


class Local(NamedTuple):
    """Slope and curvature of the expected return under N(0, I), and how far they are in doubt."""

    axes: Axes  # of the Hessian, m of them; the others are along these
    slope: Array  # [m]
    variance: Array  # [m] of the slope
    doubt: Array  # standard deviation of the mean of the Hessian's values
    resolved: Array  # share of the slope's prior variance that the points have taken away


class Images(NamedTuple):
    """What the expectation under N(0, I) makes of the kernel at each point."""

    bumps: Array  # [n] E of the bump
    slope: Array  # [n, D] covariance of the slope with the return there
    bend: Array  # [n] covariance of the Hessian's trace with it


def images(xp: Namespace, points: Points, hyper: Array) -> Images:
    """The expectations, in closed form.

    Implements: ohagan1991 slope and curvature of the Bayes-Hermite expectation, with respect to the
    mean of the Gaussian: of exp(-|z - a|^2 / 2l) it is k = (l / (l + 1))^(D/2)
    exp(-|a|^2 / 2(l + 1)), k a / (l + 1) and k (a a^T / (l + 1)^2 - I / (l + 1)).
    """
    length, bowl, dim = xp.exp(hyper[0]), xp.exp(hyper[2]), points.z.shape[1]
    wide = 1 + length
    bumps = xp.exp(0.5 * dim * xp.log(length / wide) - points.squares / (2 * wide))
    bumps = xp.where(points.valid, bumps, 0.0)
    slope = (bumps / wide)[:, None] * points.z + SLOPE / length * points.centred
    slope = slope - (bowl / length * points.bowl)[:, None] * points.mean
    bend = bumps * (points.squares / wide**2 - dim / wide) + bowl * dim / length * points.bowl
    return Images(bumps, slope, bend)


def local(
    xp: Namespace, points: Points, hyper: Array, model: Fit, shape: Shape, pulled: bool = True
) -> Local:
    """Slope and Hessian of the model's expectation, with their posterior variances.

    The bowl pulls the slope towards the mean of the points: it is one number, well known where the
    slope's own are not, and would lead back to where the search has been. Unless `pulled`, it is
    believed along each axis only as far as the slope is known there.
    """
    length, bowl, dim = xp.exp(hyper[0]), xp.exp(hyper[2]), points.z.shape[1]
    wide, seen = 1 + length, images(xp, points, hyper)
    both = xp.exp(0.5 * dim * xp.log(length / (length + 2)))  # E of a bump at two z
    weights = model.alpha * seen.bumps / wide**2
    level = bowl / length * (model.alpha @ points.bowl) - xp.sum(weights) * wide
    slope, prior = seen.slope.T @ model.alpha, both / (length + 2) + SLOPE / length
    axes = shape.axes(xp, points.z, weights, level)
    turned, mean, slope = map(axes.turned, (seen.slope, points.mean, slope))
    known = solve_lower(xp, model.factor, xp.concatenate([turned, seen.bend[:, None]], axis=1))
    known = xp.sum(known**2, axis=0)
    before = prior * axes.counts + bowl / length * mean**2
    variance = xp.maximum(before - known[:-1], 1e-12)
    resolved = xp.clip(1 - variance / before, 0.0, 1.0)
    if not pulled:
        slope = slope + (1 - resolved) * bowl / length * (model.alpha @ points.bowl) * mean
    square = float(dim) ** 2  # as a whole number it is too large for JAX from D = 46,341 on
    bend = both * (square + 2 * dim) / (length + 2) ** 2 + bowl * square / length - known[-1]
    return Local(
        axes=axes,
        slope=slope,
        variance=model.signal * variance,
        doubt=xp.sqrt(model.signal * xp.maximum(bend, 1e-12)) / dim,
        resolved=xp.mean(axes.counts * resolved) * (len(resolved) / dim),
    )

"""Shapes of a stretch: what a family lets its spread become, in the coordinates of its noise.

A stretch multiplies the spread by exp(log), with log a symmetric matrix in noise. A shape says how
that matrix is held: the diagonal alone, or all of it. A rule asks for what it needs of such
matrices and never looks inside one.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from recoup.core.arrays import Array
from recoup.core.types import Namespace, Pytree

Symmetric = Pytree  # a symmetric matrix in noise, held as its shape has it


class Axes(NamedTuple):
    """A symmetric matrix by its values along axes."""

    values: Array  # [m]
    counts: Array | float  # [m] how many dimensions each stands for; their sum is D
    turned: Callable[[Array], Array]  # x [..., D] -> along the axes [..., m]
    unturned: Callable[[Array], Array]  # [m] -> x [D]
    log: Callable[[Array], Symmetric]  # [m] -> the matrix with other values, in the shape


class Shape(NamedTuple):
    """What a rule asks of the symmetric matrices of one shape."""

    narrowest: float  # the least spread, over that of the start
    turn: Callable[[int], float]  # D -> rate at which samples say which way the axes lie
    axes: Callable[[Namespace, Array, Array, Array], Axes]  # z [n, D], w [n], a ->
    # sum w z z^T + a I
    bounded: Callable[[Namespace, Array, Array, Array, Array, float], Symmetric]  # own [D], z,
    # c [n], rate, most -> the log with this diagonal, rate sum c z z^T off it, values within `most`
    along: Callable[[Namespace, Array], Symmetric]  # [D] -> the diagonal matrix
    mixed: Callable[[Symmetric, Symmetric, Array], Symmetric]  # a log, another, its share
    mean: Callable[[Namespace, Symmetric], Array]  # of the diagonal of a log
    even: Callable[[Namespace, Symmetric, Array], Symmetric]  # log, a -> a I, held as the log is
    covariance: Callable[[Namespace, Array, Array, Array], Symmetric]  # z [n, D], c [n], a ->
    # sum c z z^T / a


def _coordinates(xp: Namespace, z: Array, weights: Array, level: Array) -> Axes:
    return Axes(weights @ z**2 + level, 1.0, *3 * (lambda x: x,))


DIAGONAL = Shape(
    narrowest=1e-3,
    turn=lambda dim: 0.0,
    axes=_coordinates,
    bounded=lambda xp, own, z, c, rate, most: xp.clip(own, -most, most),
    along=lambda xp, log: log,
    mixed=lambda one, other, share: (1 - share) * one + share * other,
    mean=lambda xp, log: xp.mean(log),
    even=lambda xp, log, size: size * xp.ones_like(log),
    covariance=lambda xp, z, c, mass: c @ z**2 / mass,
)


def _eigenvectors(xp: Namespace, z: Array, weights: Array, level: Array) -> Axes:
    values, axes = xp.linalg.eigh(_outer(z, weights) + level * xp.eye(z.shape[1]))
    return Axes(
        values=values,
        counts=1.0,
        turned=lambda x: x @ axes,
        unturned=lambda x: axes @ x,
        log=lambda log: (axes * log) @ axes.T,
    )


def _bounded(xp: Namespace, own: Array, z: Array, c: Array, rate: Array, most: float) -> Array:
    outer = _outer(z, c)
    outer = outer - xp.diag(xp.diagonal(outer))
    values, axes = xp.linalg.eigh(xp.diag(own) + rate * outer)
    return (axes * xp.clip(values, -most, most)) @ axes.T


def _outer(z: Array, c: Array) -> Array:
    return (z * c[:, None]).T @ z


FULL = Shape(
    narrowest=1e-6,  # of a conditional deviation
    turn=lambda dim: (9 + 3 * float(np.log(dim))) / (5 * dim**1.5),
    axes=_eigenvectors,
    bounded=_bounded,
    along=lambda xp, log: xp.diag(log),
    mixed=DIAGONAL.mixed,
    mean=lambda xp, log: xp.mean(xp.diagonal(log)),
    even=lambda xp, log, size: size * xp.eye(log.shape[0]),
    covariance=lambda xp, z, c, mass: _outer(z, c) / mass,
)

SHAPES = {"diagonal": DIAGONAL, "full": FULL}  # that a family of a user's may name

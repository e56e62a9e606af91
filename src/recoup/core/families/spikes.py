"""Matrices that are the identity but along a few axes: I + B C B^T."""

from typing import NamedTuple

import numpy as np

from recoup.core.arrays import Array
from recoup.core.types import Namespace


class Spiked(NamedTuple):
    """A symmetric matrix: diag(diagonal) + axes diag(values) axes^T."""

    diagonal: Array  # [D]
    axes: Array  # [D, k]
    values: Array  # [k]


def spiked(xp: Namespace, matrix: Array) -> Spiked:
    """A matrix that is held so already, or the diagonal one of `[D]`."""
    if isinstance(matrix, Spiked):
        return matrix
    return Spiked(matrix, xp.zeros_like(matrix)[:, None][:, :0], matrix[:0])


def diagonalised(xp: Namespace, basis: Array, core: Array) -> tuple[Array, Array]:
    """Values `[k]` and orthonormal axes `[D, k]` of B C B^T, of `basis [D, m]`; k = min(D, m)."""
    if not basis.shape[1]:
        return basis[0], basis
    q, r = xp.linalg.qr(basis)
    values, turn = xp.linalg.eigh(r @ core @ r.T)
    return values, q @ turn


def compressed(
    xp: Namespace, tau: Array, basis: Array, core: Array, rank: int
) -> tuple[Array, Array, Array]:
    """tau, axes and scale of the covariance tau (I + B C B^T) tau, with `rank` axes.

    Those that stretch most, up or down; tau keeps the variance of every coordinate.
    """
    values, all_axes = diagonalised(xp, basis, core)
    tiny = float(np.finfo(tau.dtype).tiny)
    log = xp.log(xp.maximum(1 + values, tiny)) / 2
    most = xp.argsort(-xp.abs(log))[:rank]
    axes, scale = all_axes[:, most], xp.exp(log[most])
    variance = xp.maximum(1 + ((basis @ core) * basis).sum(-1), tiny)
    return tau * xp.sqrt(variance) / lengths(axes, scale), axes, scale


def waves(dim: int, most: int) -> np.ndarray:
    """Orthonormal columns `[D, min(D, most)]`: cosines, the constant one last of all.

    Implements: ahmed1974 discrete cosine transform, its first columns.
    """
    many = min(dim, most)
    order = np.arange(1, many + 1) % dim
    found = np.cos(np.pi / dim * (np.arange(dim)[:, None] + 0.5) * order)
    return found * np.where(order > 0, np.sqrt(2 / dim), np.sqrt(1 / dim))


def lengths(axes: Array, scale: Array) -> Array:
    """Of the rows of M = I + U diag(scale - 1) U^T `[..., D]`, with U the `axes`."""
    return (1 + (axes**2 * (scale**2 - 1)[..., None, :]).sum(-1)) ** 0.5

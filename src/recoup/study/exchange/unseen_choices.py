"""Latent numbers of choices of which only the choices are known: of samples from elsewhere.

They are drawn, by what drew the samples, as they are where those choices stand. A sample is then
distributed exactly as if it had been drawn here, so that its weight is right; one place for each
choice would not do, since a density there says nothing of how likely the choice was. The same
sample gets the same numbers whenever it comes, in whatever order.
"""

from collections import Counter
from zlib import crc32

import numpy as np

from recoup.core.families.gaussian import Diagonal
from recoup.core.types import Array, Given, Rho
from recoup.study.reader.opened import Opened
from recoup.study.space.choices import drawn_as
from recoup.study.space.parameters import places_of, to_user, value_of


def places_given(study: Opened, theta: Given) -> Array:
    """Thetas `[n, P]` as Python gives them, with places for the words of choices."""
    if not study.choices or (isinstance(theta, np.ndarray) and theta.dtype.kind in "fiu"):
        return theta
    parameters, found = study.parameters, []
    for row in theta if isinstance(theta, (list, tuple, np.ndarray)) else ():
        if np.shape(row) != (len(parameters),):
            return theta  # which is refused for its shape
        found.append([value_of(p, x) for p, x in zip(parameters, row, strict=True)])
    return np.array(found, object).astype(float) if _are_numbers(found) else theta


def _are_numbers(rows: list[list[Given]]) -> bool:
    return all(isinstance(x, (int, float, np.number)) for row in rows for x in row)


def with_drawn_choices(
    study: Opened,
    theta: np.ndarray,
    returns: np.ndarray,
    which: np.ndarray,
    blocks: np.ndarray | None,
) -> np.ndarray:
    """Latent thetas `[n, D]`, the choices of those `which [n]` drawn by their `blocks [m, K]`.

    Without blocks they are drawn as if all choices had been equally likely. Their `returns [n]`
    tell apart what was tried more than once: a table may come again in another order.
    """
    found, seen = theta.copy(), Counter[bytes]()
    rows, earned = to_user(study.parameters, theta), np.where(np.isfinite(returns), returns, np.nan)
    for j, i in enumerate(np.flatnonzero(which)):
        key = np.concatenate([rows[i], theta[i], [earned[i] + 0.0]]).tobytes()
        rng = np.random.default_rng([crc32(key), seen[key]])
        seen[key] += 1
        columns, places = _columns(study)
        rho: Rho = Diagonal(np.zeros(len(columns)), np.ones(len(columns)))
        if blocks is not None:
            rho = _drew(study, blocks[j], columns, theta[i])
        wanted = [int(rows[i][study.names.index(name)]) for name, _ in study.choices]
        found[i, columns] = drawn_as(rng, rho, places, wanted)
    return found


def _columns(study: Opened) -> tuple[list[int], list[slice]]:
    """The latent numbers of all choices, and where those of each stand among them."""
    pairs = zip(study.parameters, places_of(study.parameters), strict=True)
    columns = [i for p, place in pairs if p.choices for i in range(study.dim)[place]]
    return columns, places_of([p for p in study.parameters if p.choices])


def _drew(study: Opened, block: np.ndarray, columns: list[int], theta: np.ndarray) -> Array:
    """What drew the choices' numbers, given the others of a latent theta `[D]`."""
    others = [i for i in range(study.dim) if i not in columns]
    if study.has_own_family:
        mean, std = study.shown(block)
        return Diagonal(mean[columns], std[columns])
    return study.rho(block).given(columns, others, theta[others])

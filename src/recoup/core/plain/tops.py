"""Where each coordinate is best while the others stay, and how much each matters. No JAX."""

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from recoup.core.plain.belief import Belief, Looks, drawn, looks_at, tamed
from recoup.core.worth import COVERAGE, PROBE_DRAWS, Interval, probes

FUNCTIONS = 200  # functions that may be true, by which tops are known
EFFECT_FUNCTIONS = 100  # functions by which effects are known
NEAR = np.linspace(-2.5, 2.5, 31)  # in standard deviations
FAR_PLACES = 8  # places beyond those, up to the farthest result on either side
SPOTS = 256  # places at which all of what returns vary by is known
NODES, SHARES = np.polynomial.hermite_e.hermegauss(5)  # of Gauss and Hermite, under N(0, 1)
MAIN = 0.1  # share of the likeliest cell's below which one takes no part in effects
MISSED = 0.4  # of a share, or of what is left: how far a model's shape is from the truth's
PAIRED = 3  # coordinates that matter most, of which pairs are looked at


def places(tried: np.ndarray) -> np.ndarray:
    """Where a coordinate is looked at, of which results lie at `tried [n]`: 0 is its mean.

    As far as any result on either side, and closer together near 0.
    """
    found = [NEAR]
    for side in (-1.0, 1.0):
        farthest = float(np.max(side * tried))
        if farthest > NEAR[-1]:
            found.append(side * np.geomspace(NEAR[-1], farthest, FAR_PLACES + 1)[1:])
    return np.sort(np.concatenate(found))


def tops(belief: Belief, ways: np.ndarray, tried: np.ndarray) -> list[Interval]:
    """Between which values each coordinate is best, 95 %, while the others stay at 0.

    Coordinate i runs along `ways[i] [D]`, and results lie at `tried[:, i]` of it. The model is
    drawn many times over, and each time the best place looked for; infinite where that is the last
    place looked at too often.
    """
    at = [places(column) for column in tried.T]
    looks = [belief.looks(tamed(x[:, None] * way)) for x, way in zip(at, ways, strict=True)]
    lines = drawn(belief, looks, FUNCTIONS, np.random.default_rng(0))
    return [top_of(x, np.argmax(line, axis=1)) for x, line in zip(at, lines, strict=True)]


def top_of(at: np.ndarray, best: np.ndarray) -> Interval:
    """The interval of the best place, of `best [draws]` among `at [m]`."""
    beyond = (1 - COVERAGE) / 2
    low, high = np.quantile(best, [beyond, 1 - beyond], method="closest_observation")
    ends = np.concatenate([[-np.inf], (at[1:] + at[:-1]) / 2, [np.inf]])
    return Interval(float(ends[int(low)]), float(ends[int(high) + 1]))


def best_of(belief: Belief, at: np.ndarray) -> np.ndarray:
    """How often each of a few places `at [m, D]` is the best of them `[m]`, in what may be true."""
    (values,) = drawn(belief, [belief.looks(at)], FUNCTIONS, np.random.default_rng(0))
    return np.bincount(np.argmax(values, axis=1), minlength=len(at)) / FUNCTIONS


class Axis(NamedTuple):
    """What varies by itself: a coordinate, or several of which some places were tried."""

    columns: tuple[int, ...]
    places: np.ndarray | None = None  # [m, C]; None: one coordinate, which is Gaussian
    shares: np.ndarray = SHARES  # [m] how likely each place, or node, is


class Effect(NamedTuple):
    """How much of what the returns vary by, beside noise, a coordinate or a pair explains."""

    which: tuple[int, ...]
    share: float
    stderr: float
    size: float  # its variance over that of the mean of all results' noise: about 1 where none is


def effects(
    belief: Belief, mean: np.ndarray, std: np.ndarray, axes: Sequence[Axis] | None = None
) -> list[Effect]:
    """Of every axis, and of pairs of those that matter, under N(`mean`, `std`^2) `[D]`.

    The axes are the coordinates, unless said.

    Implements: sobol2001 eqs. 5, 6 first- and second-order indices; E[f | x_i] is a look in which
    x_i does not vary. Differs: the variances are those of functions that the model may be, with the
    standard deviation over them, so that doubt counts as a small effect; and none of them is quite
    the truth, which counts as an error too.
    """
    rng, belief = np.random.default_rng(0), _apart(belief)
    noise = (belief.noise / belief.scale) ** 2 / belief.results
    given = [Axis((i,)) for i in range(len(mean))] if axes is None else axes
    axes = [_stretched(axis, belief.stretch) for axis in given]
    at, spread = mean * belief.stretch, std * belief.stretch
    spots = _spots(at, spread, axes)
    alone = [_fixed(at, spread, [axis]) for axis in axes]
    lines = drawn(belief, [looks_at(spots, np.zeros_like(spots)), *alone], EFFECT_FUNCTIONS, rng)
    z = (spots - at) / np.where(spread > 0, spread, 1.0)
    total = _total(lines[0], _additive(z, spots, axes))
    pairs = zip(lines[1:], axes, strict=True)
    first = np.array([_variance(line, axis.shares) for line, axis in pairs])  # [A, draws]
    found = [_effect((i,), first[i], total, noise) for i in range(len(axes))]
    likeliest = sorted(range(len(axes)), key=lambda i: -found[i].share)[:PAIRED]
    for i, j in combinations(sorted(likeliest), 2):
        (both,) = drawn(belief, [_fixed(at, spread, [axes[i], axes[j]])], EFFECT_FUNCTIONS, rng)
        weights = np.outer(axes[i].shares, axes[j].shares).ravel()
        found.append(_effect((i, j), _variance(both, weights) - first[i] - first[j], total, noise))
    return found


def _stretched(axis: Axis, stretch: np.ndarray) -> Axis:
    """An axis in the coordinates of the model."""
    if axis.places is None:
        return axis
    return axis._replace(places=axis.places * stretch[list(axis.columns)])


def _spots(mean: np.ndarray, std: np.ndarray, axes: Sequence[Axis]) -> np.ndarray:
    """Places `[SPOTS, D]` all over what varies; each place of an axis as often as it is likely."""
    noise = probes(len(mean))[:: PROBE_DRAWS // SPOTS]
    found = mean + std * noise
    for axis in axes:
        if axis.places is not None:
            ranks = np.argsort(np.argsort(noise[:, axis.columns[0]]))
            ends = np.cumsum(axis.shares)[:-1]
            which = np.searchsorted(ends, (ranks + 0.5) / len(noise))
            found[:, list(axis.columns)] = axis.places[which]
    return found


def _additive(z: np.ndarray, spots: np.ndarray, axes: Sequence[Axis]) -> np.ndarray:
    """Functions of one axis each at `spots [n, D]` `[n, F]`, whose variance is 1 and mean 0.

    Of a number a line and a parabola, with `z [n, D]` in standard deviations; of places, as many
    as tell them apart.
    """
    found = [np.zeros((len(z), 0))]
    for axis in axes:
        columns = list(axis.columns)
        if axis.places is None:
            found += [z[:, columns], (z[:, columns] ** 2 - 1) / 2**0.5]
        else:
            root = np.sqrt(axis.shares)[:, None]
            own = np.linalg.qr(np.eye(len(root))[:, :-1] - root @ root[:-1].T)[0]
            apart = np.abs(spots[:, None, columns] - axis.places).sum(axis=2)
            found.append((own / root)[np.argmin(apart, axis=1)])
    return np.concatenate(found, axis=1)


def _total(values: np.ndarray, additive: np.ndarray) -> np.ndarray:
    """The variance `[draws]` of `values [draws, n]`, by functions `[n, F]` whose own is known.

    Few spots have variances and correlations of their own, which are not those that are meant: so
    what is additive is fitted and counts with the variance that it is known to have, and what is
    left over by its mean square.
    """
    n, known = additive.shape
    x = np.hstack([np.ones((n, 1)), additive])
    fitted = np.linalg.lstsq(x, values.T, rcond=None)[0]
    left = np.sum((values.T - x @ fitted) ** 2, axis=0) / (n - known - 1)
    return np.sum(fitted[1:] ** 2, axis=0) + left


def _apart(belief: Belief) -> Belief:
    """The likeliest of the model, without what depends on the distance: no coordinate's effect."""
    cells = [cell for cell in belief.cells if not cell.hyper.about] or belief.cells
    likeliest = max(cell.hyper.share for cell in cells)
    return belief._replace(cells=[c for c in cells if c.hyper.share > MAIN * likeliest])


def _fixed(mean: np.ndarray, std: np.ndarray, axes: Sequence[Axis]) -> Looks:
    """Looks in which some axes stand at their nodes or places and the others vary."""
    grid = np.meshgrid(*(np.arange(len(axis.shares)) for axis in axes), indexing="ij")
    means = np.repeat(mean[None], grid[0].size, axis=0)
    variance = np.repeat(std[None] ** 2, grid[0].size, axis=0)
    for axis, which in zip(axes, grid, strict=True):
        columns = list(axis.columns)
        if axis.places is None:
            means[:, columns] += std[columns] * NODES[which.ravel()][:, None]
        else:
            means[:, columns] = axis.places[which.ravel()]
        variance[:, columns] = 0.0
    return looks_at(means, variance)


def _variance(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The variance `[draws]` of `values [draws, m]` under `weights [m]`."""
    share = weights / np.sum(weights)
    return values**2 @ share - (values @ share) ** 2


def _effect(which: tuple[int, ...], part: np.ndarray, total: np.ndarray, noise: float) -> Effect:
    ratio, size = part / np.maximum(total, 1e-300), float(np.mean(part)) / max(noise, 1e-300)
    share = float(np.clip(np.mean(ratio), 0.0, 1.0))
    stderr = float(np.hypot(np.std(ratio), MISSED * min(share, 1 - share)))
    return Effect(which, share, stderr, size)

"""What the model of the returns believes of points and of distributions, jointly. No JAX.

A *look* is the mean return over N(a, diag(v)): the return at a point where v is 0. The model is the
Gaussian process of `core.surrogate` with one more part, returns that depend on the distance from
0 alone: bumps round off a sharp top, and in many dimensions no result lies near the middle, so that
the others say little of how high it is. What the model believes of several looks, given returns, is
a Gaussian for every cell of its grid, and a mixture of those by their evidence.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from recoup.core.linalg import inverted
from recoup.core.prior import LEVEL, NOISES, SLOPE
from recoup.core.surrogate import SeenPoints, cells, points_of, shares, standardised
from recoup.core.worth import MODELLED, PROBE_DRAWS, probes

ABOUT = (0.0, 3.0)  # variances of what depends on the distance alone, over that of the bumps
REACH = 1.0  # its length, over the root of the number of dimensions
RADII = 64  # distances by which a distribution is known
LIKELY = 1e-3  # share of the evidence below which a cell of the grid is left out
TINY, SMALLEST_VARIANCE = 1e-9, 1e-8  # what keeps a covariance positive; of its largest variance
MISTAKEN = 1.5  # times the noise of near results, from which on far ones make noise of shape
EACH = 3  # results for each coefficient of a parabola, which are enough for one
FARTHEST = 10.0  # standard deviations up to which coordinates are what they are
STRETCHED = (0.3, 3.0)  # coordinates, at least and at most


def tamed(z: np.ndarray) -> np.ndarray:
    """Coordinates, those beyond `FARTHEST` nearer: by the logarithm of how far beyond they lie.

    After a long search without noise the first results lie a million deviations away, and the
    fourth power of that, which is a bowl's, leaves no digit for what lies near.
    """
    far = np.maximum(np.abs(z), FARTHEST)
    return np.where(np.abs(z) > FARTHEST, np.sign(z) * FARTHEST * (1 + np.log(far / FARTHEST)), z)


class Looks(NamedTuple):
    """Distributions whose mean return is asked for, in the coordinates of the model."""

    mean: np.ndarray  # [m, D]
    variance: np.ndarray  # [m, D]
    radii: np.ndarray  # [m, 1] or [m, RADII]: equally likely distances from 0, over root D


def looks_at(mean: np.ndarray, variance: np.ndarray) -> Looks:
    """The distributions with `mean [m, D]` and `variance [m, D]`; points where that is 0."""
    dim = mean.shape[1]
    if not variance.any():
        return Looks(mean, variance, np.sqrt(np.sum(mean**2, axis=1, keepdims=True) / dim))
    x = mean[:, None] + np.sqrt(variance)[:, None] * probes(dim)[:: PROBE_DRAWS // RADII]
    return Looks(mean, variance, np.sqrt(np.sum(x**2, axis=2) / dim))


def joined(*several: Looks) -> Looks:
    """Several sets of looks as one, in their order."""
    if len(several) == 1:
        return several[0]
    wide = max(looks.radii.shape[1] for looks in several)
    radii = [np.broadcast_to(x.radii, (len(x.radii), wide)) for x in several]
    return Looks(
        np.concatenate([x.mean for x in several]),
        np.concatenate([x.variance for x in several]),
        np.concatenate(radii),
    )


class Hyper(NamedTuple):
    """A cell of the grid: its kernel, over the variance of the bumps, and how likely it is."""

    length: float
    bowl: float
    about: float
    noise: float
    signal: float  # variance of the bumps, over that of the returns
    share: float  # of the posterior


def covariance(hyper: Hyper, one: Looks, other: Looks, middle: float) -> np.ndarray:
    """Of what is expected of two sets of looks `[m, k]`, over the variance of the bumps.

    `middle` is the mean of |z|^2 over the results, about which the bowl is.
    """
    return next(covariances([hyper], one, other, middle))


def covariances(
    hypers: Sequence[Hyper], one: Looks, other: Looks, middle: float
) -> Iterator[np.ndarray]:
    """Covariances of two sets of looks for several cells; what the cells share is computed once."""
    products = one.mean @ np.swapaxes(other.mean, -1, -2)
    bumps = {x: _bumps(x, one, other, products) for x in {hyper.length for hyper in hypers}}
    heights = [(np.sum(x.mean**2 + x.variance, axis=-1) - middle) / 2 for x in (one, other)]
    bowls = heights[0][..., None] * heights[1][..., None, :]
    about = by_distance(one.radii, other.radii) if any(x.about for x in hypers) else 0.0
    flat = {  # all but the bowl: of few kinds
        (length, part): LEVEL + bumps[length] + SLOPE / length * products + part * about
        for length, part in {(hyper.length, hyper.about) for hyper in hypers}
    }
    for hyper in hypers:
        found = hyper.bowl / hyper.length * bowls
        found += flat[hyper.length, hyper.about]
        yield found


def _bumps(length: float, one: Looks, other: Looks, products: np.ndarray) -> np.ndarray:
    """The kernel of the bumps `[m, k]`.

    Implements: rasmussen2006 S4.2 squared exponential, with its mean over two Gaussians: E k(x, x')
    is prod (l / (l + v + v'))^(1/2) exp(-(a - a')^2 / (2 (l + v + v'))).
    """
    if not (one.variance.any() or other.variance.any()):
        squares = [np.sum(x.mean**2, axis=-1) for x in (one, other)]
        apart = squares[0][..., None] + squares[1][..., None, :] - 2 * products
        apart = np.maximum(apart, 0.0)
        return np.exp(-apart / (2 * length))
    if not other.variance.any():
        return _bumps(length, other, one, products.T).T
    if not one.variance.any():  # the squares by their parts, without an array [m, k, D]
        spread = length + other.variance
        parts = one.mean**2 @ (1 / spread).T - 2 * one.mean @ (other.mean / spread).T
        apart = np.maximum(parts + np.sum(other.mean**2 / spread, axis=1), 0.0)
        return np.exp(-(apart + np.sum(np.log(spread / length), axis=1)) / 2)
    spread = length + one.variance[:, None] + other.variance  # [m, k, D]
    away = (one.mean[:, None] - other.mean) ** 2 / spread + np.log(spread / length)
    return np.exp(-np.sum(away, axis=-1) / 2)


def by_distance(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The kernel of returns that depend on the distance alone `[m, k]`, of radii `[m, P]`."""
    if one.shape[-1] == other.shape[-1] == 1:
        return np.exp(-((one - np.swapaxes(other, -1, -2)) ** 2) / (2 * REACH**2))
    found, few = np.zeros((len(one), len(other))), len(one) < one.shape[1]
    for i, radii in enumerate(one if few else one.T):  # [P] of one look, or one of each [m]
        each = np.mean(np.exp(-((radii[:, None, None] - other) ** 2) / (2 * REACH**2)), axis=2)
        if few:
            found[i] = np.mean(each, axis=0)
        else:
            found += each / one.shape[1]
    return found


class FittedCell(NamedTuple):
    """A cell of the grid with the returns that it has seen."""

    hyper: Hyper
    at: Looks
    middle: float
    inverse: np.ndarray  # [n, n] lower, of the factor of the returns' covariance: it is asked often
    half: np.ndarray  # [n] factor^-1 y

    def expects(self, looks: Looks) -> tuple[np.ndarray, np.ndarray]:
        """The mean `[m]` and the covariance `[m, m]` of looks, in units of the returns."""
        return next(expectations([self], [looks]))[0]

    def expects_apart(self, looks: Looks) -> np.ndarray:
        """The mean `[m]` without what depends on the distance from 0."""
        k = covariance(self.hyper._replace(about=0.0), self.at, looks, self.middle)
        return k.T @ (self.inverse.T @ self.half)

    def told(self, looks: Looks, y: np.ndarray) -> "FittedCell":
        """The cell once it has seen the returns `y [k]` of more points too.

        The factor of the larger covariance has this one as its corner, and so has its inverse.
        """
        rows = (self.inverse @ covariance(self.hyper, self.at, looks, self.middle)).T  # [k, n]
        own = covariance(self.hyper, looks, looks, self.middle) - rows @ rows.T
        corner = inverted(factored(own, self.hyper.noise))
        beside = np.zeros(rows.T.shape)
        inverse = np.block([[self.inverse, beside], [-corner @ rows @ self.inverse, corner]])
        half = np.append(self.half, corner @ (y - rows @ self.half))
        return self._replace(at=joined(self.at, looks), inverse=inverse, half=half)


def seen(hypers: Sequence[Hyper], at: Looks, middle: float, y: np.ndarray) -> list[FittedCell]:
    """Cells with the returns `y [n]` of points.

    Implements: rasmussen2006 eqs. 2.25, 2.26 the posterior of a Gaussian process.
    """
    found = []
    for hyper, k in zip(hypers, covariances(hypers, at, at, middle), strict=True):
        inverse = inverted(factored(k, hyper.noise))
        found.append(FittedCell(hyper, at, middle, inverse, inverse @ y))
    return found


def expectations(
    cells: Sequence[FittedCell], several: Sequence[Looks]
) -> Iterator[list[tuple[np.ndarray, np.ndarray]]]:
    """For each of some cells that have seen the same, what it `expects` of sets of looks.

    Without what one set has to do with another.
    """
    hypers, at, middle = [cell.hyper for cell in cells], cells[0].at, cells[0].middle
    ends = np.cumsum([len(looks.mean) for looks in several])[:-1]
    own = _of_each(hypers, several, middle)
    beside = covariances(hypers, at, joined(*several), middle)
    for cell, before, across in zip(cells, own, beside, strict=True):
        parts = np.split(cell.inverse @ across, ends, axis=1)
        yield [
            (rows.T @ cell.half, cell.hyper.signal * (k - rows.T @ rows))
            for k, rows in zip(before, parts, strict=True)
        ]


def _of_each(
    hypers: Sequence[Hyper], several: Sequence[Looks], middle: float
) -> Iterator[Iterable[np.ndarray]]:
    """For each cell the covariance of every set of looks with itself; of points all at once."""
    alike = len({looks.mean.shape for looks in several}) == 1
    if alike and not any(looks.variance.any() for looks in several):
        stacked = Looks(*map(np.stack, zip(*several, strict=True)))
        return covariances(hypers, stacked, stacked, middle)
    return zip(*(covariances(hypers, looks, looks, middle) for looks in several), strict=True)


class Belief(NamedTuple):
    """The model of some returns near z = 0."""

    cells: list[FittedCell]
    level: float  # mean of the returns
    scale: float  # their standard deviation, which is the unit of the cells
    stretch: np.ndarray  # [D] by which coordinates are multiplied, so that all count alike
    results: int

    def looks(self, mean: np.ndarray, std: np.ndarray | float = 0.0) -> Looks:
        """Distributions with `mean [m, D]` and `std`, in the coordinates of the results."""
        mean = np.atleast_2d(mean) * self.stretch
        return looks_at(mean, np.broadcast_to((std * self.stretch) ** 2, mean.shape))

    @property
    def noise(self) -> float:
        """Standard deviation of one return at one point."""
        parts = (c.hyper.share * c.hyper.signal * c.hyper.noise for c in self.cells)
        return self.scale * sum(parts) ** 0.5

    def chosen(self, draws: int) -> list[FittedCell]:
        """`draws` cells, each as often as it is likely."""
        ends = np.cumsum([cell.hyper.share for cell in self.cells])
        places = np.searchsorted(ends, (np.arange(draws) + 0.5) / draws * ends[-1])
        return [self.cells[place] for place in places]


def believed(
    z: np.ndarray,
    returns: np.ndarray,
    about: Sequence[float] = ABOUT,
    within: float = np.inf,
) -> Belief:
    """What `returns [n]` at `z [n, D]` say near z = 0; the nearest `MODELLED` of them take part.

    `about` are the variances of what depends on the distance alone. Where there is more noise in
    all of them than in those `within` so many times the root of D, the latter alone take part: one
    kernel for a sharp top and for all that lies about it takes the top's own shape for noise.
    """
    squares, dim = np.sum(z**2, axis=1), z.shape[1]
    order = np.argsort(squares, kind="stable")[:MODELLED]
    wide = _believed(z[order], returns[order], about)
    first = order[: max(int(np.sum(squares <= within**2 * dim)), EACH * (1 + 2 * dim))]
    if len(first) == len(order) or np.ptp(returns[first]) == 0:  # equal ones say nothing of noise
        return wide
    near = _believed(z[first], returns[first], about)
    return near if wide.noise > MISTAKEN * near.noise else wide


def _believed(z: np.ndarray, returns: np.ndarray, about: Sequence[float]) -> Belief:
    """The belief of all the results, however many there are."""
    y, level, scale = standardised(returns)
    stretch = stretch_of(z, y)
    points = points_of(z * stretch)
    at = looks_at(points.z, np.zeros_like(points.z))
    found = seen(_likely(points, at, y, about), at, points.middle, y)
    return Belief(found, level, scale, stretch, len(z))


def _likely(points: SeenPoints, at: Looks, y: np.ndarray, about: Sequence[float]) -> list[Hyper]:
    """The cells of the grid that may be true, with their shares."""
    kernel = by_distance(at.radii, at.radii) if any(about) else 0.0
    grid = [(part, cell) for part in about for cell in cells(points, y, part * kernel)]
    share = shares(np.concatenate([cell.evidence for _, cell in grid])).reshape(len(grid), -1)
    found = [
        Hyper(cell.length, cell.bowl, round_part, noise, float(signal), float(part))
        for (round_part, cell), parts in zip(grid, share, strict=True)
        for noise, signal, part in zip(NOISES, cell.signal, parts, strict=True)
        if part > LIKELY
    ]
    total = sum(hyper.share for hyper in found)
    return [hyper._replace(share=hyper.share / total) for hyper in found]


def stretch_of(z: np.ndarray, y: np.ndarray) -> np.ndarray:
    """By how much to stretch each coordinate `[D]`, so that all count alike: the kernel is round.

    By the square root of what a parabola through the results gives to each; 1 where they are too
    few for one.
    """
    n, dim = z.shape
    if n < EACH * (1 + 2 * dim):
        return np.ones(dim)
    x = np.hstack([np.ones((n, 1)), z, (z**2 - np.mean(z**2, axis=0)) / 2**0.5])
    coefficients = np.linalg.lstsq(x, y, rcond=None)[0][1:].reshape(2, dim)
    share = np.hypot(*coefficients)
    share = np.sqrt(share / np.mean(share)) if np.mean(share) > 0 else np.ones(dim)
    return np.clip(share, *STRETCHED)


def expected(belief: Belief, looks: Looks) -> tuple[np.ndarray, np.ndarray]:
    """Means `[m]` and covariance `[m, m]` of looks, in returns: all cells together."""
    found = [pair for (pair,) in expectations(belief.cells, [looks])]
    means, spreads = (np.array(x) for x in zip(*found, strict=True))
    share = np.array([cell.hyper.share for cell in belief.cells])
    mean = share @ means
    apart = means - mean
    both = np.einsum("c,cij->ij", share, spreads) + (apart * share[:, None]).T @ apart
    return belief.level + belief.scale * mean, belief.scale**2 * both


def drawn(
    belief: Belief, looks: Sequence[Looks], draws: int, rng: np.random.Generator
) -> list[np.ndarray]:
    """Of each set of looks, `draws` of what may be true `[draws, m]`, in units of the returns."""
    if not looks:
        return []
    chosen = belief.chosen(draws)
    found = [np.empty((draws, len(one.mean))) for one in looks]
    cells = list({id(cell): cell for cell in chosen}.values())
    for cell, each in zip(cells, expectations(cells, looks), strict=True):
        rows = [i for i, other in enumerate(chosen) if other is cell]
        factors = _factors([spread for _, spread in each])
        for (mean, _), factor, into in zip(each, factors, found, strict=True):
            into[rows] = mean + rng.standard_normal((len(rows), len(mean))) @ factor.T
    return found


def _factors(several: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
    """The lower factors of covariances: all at once where they are as large and have one."""
    noises = [SMALLEST_VARIANCE * float(np.max(np.diagonal(one))) for one in several]
    if len({one.shape for one in several}) == 1:
        found, i = np.array(several), np.arange(len(several[0]))
        found[:, i, i] += (np.array(noises) + TINY)[:, None]
        try:
            return list(np.linalg.cholesky(found))
        except np.linalg.LinAlgError:
            pass
    return [factored(one, noise) for one, noise in zip(several, noises, strict=True)]


def factored(covariance: np.ndarray, noise: float) -> np.ndarray:
    """The lower factor `[n, n]` of a covariance with `noise` on its diagonal.

    Results that lie far apart in units of a narrow distribution make numbers of many sizes, and
    rounding can take a covariance below zero: then with as little more as it takes.
    """
    own, found = np.diagonal(covariance), covariance.copy()
    least = np.finfo(float).eps * max(float(np.max(own, initial=0.0)), TINY)
    for more in (0.0, *(least * 10.0**i for i in range(2, 12))):
        np.fill_diagonal(found, own + (noise + TINY + more))
        try:
            return np.linalg.cholesky(found)
        except np.linalg.LinAlgError:
            continue
    return np.diag(np.sqrt(np.maximum(own, 0.0) + noise + TINY))

"""The hyper-parameters rho of the search distributions, as records of arrays.

Each can be made from means and standard deviations, shows them, turns standard normal noise into a
theta, and packs itself into one block of numbers, which is what a study file stores. All of it is
plain arithmetic on arrays with any leading axes, in NumPy or JAX, and needs no JAX to be imported.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from recoup.core.arrays import cholesky, lower_of, solve_lower
from recoup.core.families.spikes import compressed, diagonalised, lengths, spiked, waves

MAX_LOG_TAU = 0.5  # the most that one natural step changes a log standard deviation by
RANK = 8  # axes of a covariance of low rank, where there are as many coordinates


class Diagonal(NamedTuple):
    """Of the diagonal Gaussian over theta: means `eta [D]`, standard deviations `tau [D]`."""

    eta: Any
    tau: Any

    @property
    def mean(self) -> Any:
        """Means `[..., D]`."""
        return self.eta

    @property
    def std(self) -> Any:
        """Standard deviations `[..., D]`."""
        return self.tau

    @classmethod
    def start(cls, mean: Any, std: Any) -> "Diagonal":
        """The Gaussian with these means and standard deviations, each `[D]`."""
        return cls(mean, std)

    def theta(self, noise: Any) -> Any:
        """The theta `[..., D]` that standard normal noise `[..., D]` becomes.

        Implements: zhao2013 S2.2 p(theta_i | rho_i) = N(theta_i | eta_i, tau_i^2).
        """
        return self.eta + self.tau * noise

    def whitened(self, xp: Any, theta: Any) -> Any:
        """The noise `[n, D]` that became `theta [n, D]`."""
        return (theta - self.eta) / self.tau

    def log_spread(self, xp: Any) -> Any:
        """Logarithms of the standard deviations `[D]`."""
        return xp.log(self.tau)

    def stretched(self, xp: Any, delta: Any, log: Any, least: Any) -> "Diagonal":
        """Moved by `delta [D]` in noise, the spread times exp(`log [D]`), but not below `least`."""
        return Diagonal(self.eta + self.tau * delta, xp.maximum(self.tau * xp.exp(log), least))

    def refitted(self, xp: Any, delta: Any, variance: Any) -> "Diagonal":
        """The Gaussian that has mean `delta [D]` and `variance [D]` in noise."""
        return Diagonal(self.eta + self.tau * delta, self.tau * xp.sqrt(variance))

    def rearranged(self, source: Sequence[int | None], mean: Any, std: Any) -> "Diagonal":
        """That of other coordinates, with means and standard deviations `[D]` of their own."""
        return Diagonal(mean, std)

    def given(self, kept: Sequence[int], fixed: Sequence[int], values: Any) -> "Diagonal":
        """That of the `kept` coordinates where the `fixed` ones have `values`: of no account."""
        return Diagonal(self.eta[list(kept)], self.tau[list(kept)])

    @property
    def positive(self) -> Any:
        """What must be positive `[..., D]`."""
        return self.tau

    def packed(self) -> np.ndarray:
        """One block of numbers `[..., 2 D]`."""
        return _block(self.eta, self.tau)

    @classmethod
    def unpacked(cls, numbers: Any, dim: int) -> "Diagonal":
        """What `packed` has packed, of `dim` means."""
        return cls(numbers[..., :dim], numbers[..., dim:])


class Full(NamedTuple):
    """Of the Gaussian with full covariance: means `eta [D]`, and `factor [D, D]`.

    The factor is lower triangular with a positive diagonal; the covariance is factor factor^T.
    """

    eta: Any
    factor: Any

    @property
    def mean(self) -> Any:
        """Means `[..., D]`."""
        return self.eta

    @property
    def std(self) -> Any:
        """Standard deviations `[..., D]` of the coordinates, each by itself."""
        return (self.factor**2).sum(-1) ** 0.5

    @classmethod
    def start(cls, mean: Any, std: Any) -> "Full":
        """The Gaussian with these means and standard deviations, each `[D]`, uncorrelated."""
        return cls(mean, std[..., None] * np.eye(std.shape[-1], dtype=std.dtype))

    def theta(self, noise: Any) -> Any:
        """The theta `[..., D]` that standard normal noise `[..., D]` becomes."""
        return self.eta + (self.factor * noise[..., None, :]).sum(-1)

    def whitened(self, xp: Any, theta: Any) -> Any:
        """The noise `[n, D]` that became `theta [n, D]`."""
        return solve_lower(xp, self.factor, (theta - self.eta).T).T

    def log_spread(self, xp: Any) -> Any:
        """The mean logarithm of the axes' lengths, for each of `[D]` the same."""
        axes = xp.log(xp.diagonal(self.factor))
        return xp.zeros_like(self.eta) + xp.mean(axes)

    def stretched(self, xp: Any, delta: Any, log: Any, least: Any) -> "Full":
        """Moved by `delta [D]` in noise, the spread times exp(`log [D, D]`), symmetric; or `[D]`.

        What the factor becomes, A exp(log), has another that is lower triangular and means the
        same; its diagonal stays above `least [D]`. If a number were infinite, nothing moves.
        """
        values, axes = xp.linalg.eigh(xp.diag(log) if log.ndim == 1 else log)
        factor = lower_of(xp, self.factor @ (axes * xp.exp(values)))
        factor = factor + xp.diag(xp.maximum(least - xp.diagonal(factor), 0.0))
        eta = self.eta + self.factor @ delta
        sound = xp.all(xp.isfinite(factor)) & xp.all(xp.isfinite(eta))
        return Full(xp.where(sound, eta, self.eta), xp.where(sound, factor, self.factor))

    def refitted(self, xp: Any, delta: Any, covariance: Any) -> "Full":
        """The Gaussian that has mean `delta [D]` and `covariance [D, D]`, or `[D]`, in noise.

        A covariance that is flat in some direction is a little wider, by rounding errors.
        """
        covariance = xp.diag(covariance) if covariance.ndim == 1 else covariance
        tiny = 4 * float(np.finfo(covariance.dtype).eps) * (1 + xp.trace(covariance))
        turn = cholesky(xp, covariance + tiny * xp.eye(delta.shape[0], dtype=delta.dtype))
        return Full(self.eta + self.factor @ delta, self.factor @ turn)

    def rearranged(self, source: Sequence[int | None], mean: Any, std: Any) -> "Full":
        """That of other coordinates, with means and standard deviations `[D]` of their own.

        `source [D]` says where each was before: those keep their correlations; None is new, and has
        none.
        """
        old = [i for i in source if i is not None]
        new = [j for j, i in enumerate(source) if i is not None]
        upper = np.linalg.qr((self.factor[old] / self.std[old, None]).T, mode="r")
        found = np.eye(len(source))
        found[np.ix_(new, new)] = (upper * np.sign(np.diagonal(upper))[:, None]).T
        return Full(mean, std[:, None] * found)

    def given(self, kept: Sequence[int], fixed: Sequence[int], values: Any) -> "Full":
        """That of the `kept` coordinates where the `fixed` ones have `values [F]`.

        With the fixed ones first, the factor's first rows say which noise became the values, and
        the others what it adds to the mean.
        """
        upper = np.linalg.qr(self.factor[[*fixed, *kept]].T, mode="r")
        factor, n = (upper * np.sign(np.diagonal(upper))[:, None]).T, len(fixed)
        noise = solve_lower(np, factor[:n, :n], (values - self.eta[list(fixed)])[:, None])[:, 0]
        return Full(self.eta[list(kept)] + factor[n:, :n] @ noise, factor[n:, n:])

    @property
    def positive(self) -> Any:
        """What must be positive `[..., D]`: the diagonal of the factor."""
        return np.diagonal(self.factor, axis1=-2, axis2=-1)

    def packed(self) -> np.ndarray:
        """One block of numbers `[..., D + D (D + 1) / 2]`: means, then the factor row by row."""
        rows, columns = np.tril_indices(np.shape(self.eta)[-1])
        return _block(self.eta, np.asarray(self.factor)[..., rows, columns])

    @classmethod
    def unpacked(cls, numbers: Any, dim: int) -> "Full":
        """What `packed` has packed, of `dim` means."""
        place, lower = _triangle(dim)
        return cls(numbers[..., :dim], numbers[..., dim:][..., place] * lower)


class LowRank(NamedTuple):
    """Of the Gaussian whose covariance is of low rank beside a diagonal, in O(D r) numbers.

    Means `eta [D]`, `tau [D]`, orthonormal `axes [D, r]` and `scale [r]`: theta = eta + tau * M z
    with M = I + U diag(scale - 1) U^T. Noise along an axis is multiplied by its scale, which may
    be wide or narrow; across them all it is left alone. M is its own square root of the
    covariance, symmetric, and its inverse has 1 / scale in place of scale.
    """

    eta: Any
    tau: Any
    axes: Any
    scale: Any

    @property
    def mean(self) -> Any:
        """Means `[..., D]`."""
        return self.eta

    @property
    def std(self) -> Any:
        """Standard deviations `[..., D]` of the coordinates, each by itself."""
        return self.tau * lengths(self.axes, self.scale)

    @classmethod
    def start(cls, mean: Any, std: Any) -> "LowRank":
        """The Gaussian with these means and standard deviations, each `[D]`, uncorrelated.

        Its axes, of scale 1, are waves over the coordinates: where a gradient begins.
        """
        axes = (np.zeros((*std.shape, 1)) + waves(std.shape[-1], RANK)).astype(std.dtype)
        return cls(mean, std, axes, 0 * axes[..., 0, :] + 1)

    def theta(self, noise: Any) -> Any:
        """The theta `[..., D]` that standard normal noise `[..., D]` becomes."""
        along = (self.axes * noise[..., :, None]).sum(-2) * (self.scale - 1)
        return self.eta + self.tau * (noise + (self.axes * along[..., None, :]).sum(-1))

    def whitened(self, xp: Any, theta: Any) -> Any:
        """The noise `[n, D]` that became `theta [n, D]`."""
        return self.multiplied((theta - self.eta) / self.tau, 1 / self.scale)

    def multiplied(self, x: Any, scale: Any) -> Any:
        """`x [..., D]`, times `scale [r]` along the axes."""
        return x + ((x @ self.axes) * (scale - 1)) @ self.axes.T

    def log_spread(self, xp: Any) -> Any:
        """Logarithms of the spread `[D]`, that of each axis shared among its coordinates."""
        return xp.log(self.tau) + self.axes**2 @ xp.log(self.scale)

    def stretched(self, xp: Any, delta: Any, log: Any, least: Any) -> "LowRank":
        """Moved by `delta [D]` in noise, the spread times exp(diagonal) exp(Q diag(values) Q^T).

        `log` has that `diagonal [D]`, `axes` Q `[D, k]` and `values [k]`; `[D]` is the diagonal
        alone. The spread stays above `least [D]`. If a number were infinite, nothing moves.
        """
        log = spiked(xp, log)
        values, axes = diagonalised(xp, log.axes, xp.diag(log.values))
        first = xp.exp(log.diagonal)
        new = self._times(xp, delta, first, axes, xp.expm1(2 * values)).floored(xp, least)
        sound = xp.asarray(True)
        for part in new:
            sound = sound & xp.all(xp.isfinite(part))
        return LowRank(*(xp.where(sound, x, y) for x, y in zip(new, self, strict=True)))

    def refitted(self, xp: Any, delta: Any, covariance: Any) -> "LowRank":
        """The Gaussian with mean `delta [D]` and that covariance in noise, held as a `log` is."""
        covariance = spiked(xp, covariance)
        first = xp.sqrt(covariance.diagonal)
        axes = covariance.axes / first[:, None]
        return self._times(xp, delta, first, axes, covariance.values)

    def _times(self, xp: Any, delta: Any, first: Any, axes: Any, values: Any) -> "LowRank":
        """The spread times K K^T = E (I + V diag(values) V^T) E in noise, E = diag(`first`).

        M E = E (I + E^-1 U L (E U)^T), so that E joins tau, and the rest is I and a matrix of low
        rank: the `r` axes of it that stretch most are kept, and tau makes up in every coordinate
        for the variance of the others.
        """
        less, thin, wide = self.scale - 1, self.axes / first[:, None], self.axes * first[:, None]
        seen = wide + (axes * values) @ (axes.T @ wide)
        none = xp.zeros((len(values), len(less)), dtype=first.dtype)
        both = less[:, None] * (wide.T @ seen) * less
        rest, here = xp.zeros_like(both), xp.diag(less)
        rows = [[xp.diag(values), none, none], [none.T, both, here], [none.T, here, rest]]
        eta = self.eta + self.tau * self.multiplied(delta, self.scale)
        basis = xp.concatenate([axes, thin, seen], axis=1)
        return LowRank(eta, *compressed(xp, self.tau * first, basis, xp.block(rows), len(less)))

    def floored(self, xp: Any, least: Any) -> "LowRank":
        """No tau below `least`, nor the length of an axis: its scale times |tau u|."""
        tau = xp.maximum(self.tau, least)
        shortest = xp.sqrt(((self.axes * (0 * tau + least)[:, None]) ** 2).sum(0))
        length = xp.sqrt(((self.axes * tau[:, None]) ** 2).sum(0))
        return self._replace(tau=tau, scale=xp.maximum(self.scale, shortest / length))

    def rearranged(self, source: Sequence[int | None], mean: Any, std: Any) -> "LowRank":
        """That of other coordinates, with means and standard deviations `[D]` of their own.

        `source [D]` says where each was before: those keep their correlations; None is new, and has
        none.
        """
        rows = [self.axes[i] if i is not None else 0 * self.axes[0] for i in source]
        found = self._of_rows(np.ones(len(source)), np.stack(rows))
        return found._replace(eta=mean, tau=std / lengths(found.axes, found.scale))

    def given(self, kept: Sequence[int], fixed: Sequence[int], values: Any) -> "LowRank":
        """That of the `kept` coordinates where the `fixed` ones have `values [F]`.

        The inverse of a covariance, of which those of the kept are a block, has 1 / scale.
        """
        both, n = [*kept, *fixed], len(kept)
        all_of = self._of_rows(self.tau[both], self.axes[both])
        inner = all_of._replace(scale=1 / all_of.scale)
        found = inner._of_rows(1 / all_of.tau[:n], all_of.axes[:n])
        new = LowRank(self.eta[list(kept)], 1 / found.tau, found.axes, 1 / found.scale)
        known = all_of.axes[n:].T @ ((values - self.eta[list(fixed)]) / all_of.tau[n:])
        pull = all_of.axes[:n] @ ((inner.scale**2 - 1) * known)
        return new._replace(eta=new.eta - new.tau * new.multiplied(pull, new.scale**2))

    def _of_rows(self, tau: np.ndarray, axes: np.ndarray) -> "LowRank":
        """The one with covariance tau (I + axes (scale^2 - 1) axes^T) tau, of mean zero."""
        more = waves(len(tau), RANK)  # as many axes as so many coordinates have
        core = np.diag(np.append(self.scale**2 - 1, np.zeros(more.shape[1])))
        basis = np.concatenate([axes, more], axis=1)
        return LowRank(0 * tau, *compressed(np, tau, basis, core, more.shape[1]))

    @property
    def positive(self) -> Any:
        """What must be positive `[..., D]`: tau, and every scale."""
        return self.tau * np.min(self.scale, axis=-1, keepdims=True)

    def packed(self) -> np.ndarray:
        """One block of numbers `[..., 2 D + D r + r]`: means, tau, axes row by row, scale."""
        axes = np.asarray(self.axes)
        flat = axes.reshape(*axes.shape[:-2], -1)
        return _block(self.eta, self.tau, flat, self.scale)

    @classmethod
    def unpacked(cls, numbers: Any, dim: int) -> "LowRank":
        """What `packed` has packed, of `dim` means."""
        rank = (numbers.shape[-1] - 2 * dim) // (dim + 1)
        axes = numbers[..., 2 * dim : 2 * dim + dim * rank]
        axes = axes.reshape(*numbers.shape[:-1], dim, rank)
        scale = numbers[..., 2 * dim + dim * rank :]
        return cls(numbers[..., :dim], numbers[..., dim : 2 * dim], axes, scale)


class Policy(NamedTuple):
    """Of the linear Gaussian policy: means `mu [F A]`, standard deviations `sigma [A]` of actions.

    Here the sample is a trajectory; theta, what a trial is given, is the policy's mu.
    """

    mu: Any
    sigma: Any

    @property
    def mean(self) -> Any:
        """Means `[..., F A]`."""
        return self.mu

    @property
    def std(self) -> Any:
        """Standard deviations of the actions `[..., A]`."""
        return self.sigma

    @classmethod
    def start(cls, mean: Any, std: Any) -> "Policy":
        """The policy with these means `[F A]` and standard deviations `[A]`."""
        return cls(mean, std)

    def theta(self, noise: Any) -> Any:
        """mu, whatever the noise: such a policy draws its actions, not its parameters."""
        return self.mu

    @property
    def positive(self) -> Any:
        """What must be positive `[..., A]`."""
        return self.sigma

    def packed(self) -> np.ndarray:
        """One block of numbers `[..., F A + A]`."""
        return _block(self.mu, self.sigma)

    @classmethod
    def unpacked(cls, numbers: Any, dim: int) -> "Policy":
        """What `packed` has packed, of `dim` means."""
        return cls(numbers[..., :dim], numbers[..., dim:])


RHOS: dict[str, Any] = {"diagonal": Diagonal, "full": Full, "lowrank": LowRank, "policy": Policy}

# of each family the one whose distributions its `start` makes: they have no number but those given
STARTS_AS = {
    "diagonal": "diagonal",
    "full": "diagonal",
    "lowrank": "diagonal",
    "policy": "policy",
}


def _block(*parts: Any) -> np.ndarray:
    return np.concatenate([np.asarray(part, np.float64) for part in parts], axis=-1)


@lru_cache(maxsize=32)
def _triangle(dim: int) -> tuple[np.ndarray, np.ndarray]:
    """For each entry of a matrix, its place among those of the lower triangle, and which are."""
    lower = np.tri(dim, dtype=bool)
    place = np.cumsum(lower).reshape(dim, dim) - 1
    return np.where(lower, place, 0), lower

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

MAX_LOG_TAU = 0.5  # the most that one natural step changes a log standard deviation by


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
        """Moved by `delta [D]` in noise, the spread times exp(`log [D, D]`), symmetric.

        What the factor becomes, A exp(log), has another that is lower triangular and means the
        same; its diagonal stays above `least [D]`. If a number were infinite, nothing moves.
        """
        values, axes = xp.linalg.eigh(log)
        factor = lower_of(xp, self.factor @ (axes * xp.exp(values)))
        factor = factor + xp.diag(xp.maximum(least - xp.diagonal(factor), 0.0))
        eta = self.eta + self.factor @ delta
        sound = xp.all(xp.isfinite(factor)) & xp.all(xp.isfinite(eta))
        return Full(xp.where(sound, eta, self.eta), xp.where(sound, factor, self.factor))

    def refitted(self, xp: Any, delta: Any, covariance: Any) -> "Full":
        """The Gaussian that has mean `delta [D]` and `covariance [D, D]` in noise.

        A covariance that is flat in some direction is a little wider, by rounding errors.
        """
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


RHOS: dict[str, Any] = {"diagonal": Diagonal, "full": Full, "policy": Policy}

# of each family the one whose distributions its `start` makes: they have no number but those given
STARTS_AS = {"diagonal": "diagonal", "full": "diagonal", "policy": "policy"}


def _block(*parts: Any) -> np.ndarray:
    return np.concatenate([np.asarray(part, np.float64) for part in parts], axis=-1)


@lru_cache(maxsize=32)
def _triangle(dim: int) -> tuple[np.ndarray, np.ndarray]:
    """For each entry of a matrix, its place among those of the lower triangle, and which are."""
    lower = np.tri(dim, dtype=bool)
    place = np.cumsum(lower).reshape(dim, dim) - 1
    return np.where(lower, place, 0), lower

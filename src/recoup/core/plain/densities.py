"""Log-densities of Gaussians, relative to a reference, of many samples at once."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from recoup.core.arrays import solve_lower
from recoup.core.families.rho import Diagonal, Full

Rho = Diagonal | Full

# theta [n, D] -> its image where a proposal is Gaussian, and the log of the volume that the map
# stretches by [n]: minus infinity where it has no image
Chart = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


class Proposals(NamedTuple):
    """What drew the samples, and the distribution that densities are relative to."""

    rhos: Rho  # leading axis [P]
    reference: Rho
    charts: Sequence[Chart | None] = ()  # [P] of those Gaussian in other coordinates; none at all

    def density(self, slot: int, theta: np.ndarray, z_ref: np.ndarray | None = None) -> np.ndarray:
        """Of `theta [n, D]` under one proposal `[n]`, relative; see `log_ratio`."""
        rho = row_of(self.rhos, slot)
        chart = self.charts[slot] if self.charts else None
        if chart is None:
            return log_ratio(rho, self.reference, theta, z_ref)
        image, stretch = chart(theta)
        return log_density(rho, image) + stretch - log_density(self.reference, theta)


def row_of(rhos: Rho, slot: Any) -> Any:
    """One of many rho, or several."""
    return type(rhos)(*(x[slot] for x in rhos))


def log_density(rho: Rho, theta: np.ndarray) -> np.ndarray:
    """log p(theta | rho) `[n]`, as the families' `log_density`."""
    z = rho.whitened(np, theta)
    constant = np.sum(rho.log_spread(np)) + 0.5 * z.shape[-1] * np.log(2 * np.pi)
    return -constant - 0.5 * np.sum(z**2, axis=-1)


def log_ratio(
    rho: Rho, reference: Rho, theta: np.ndarray, z_ref: np.ndarray | None = None
) -> np.ndarray:
    """log p(theta | rho) - log p(theta | reference) `[n]`, as the families' `log_ratio`.

    `z_ref [n, D]` is the noise that became theta under the reference, where it is known already.
    """
    z_ref = reference.whitened(np, theta) if z_ref is None else z_ref
    if isinstance(rho, Full):
        return _full_log_ratio(rho, reference, z_ref)
    delta = (z_ref * (rho.std - reference.std) + (rho.mean - reference.mean)) / rho.std
    scale = np.sum(np.log1p((reference.std - rho.std) / rho.std), axis=-1)
    return scale + np.sum(0.5 * delta * (2 * z_ref - delta), axis=-1)


def _full_log_ratio(rho: Full, reference: Any, z_ref: np.ndarray) -> np.ndarray:
    away = z_ref @ (rho.factor - reference.factor).T + (rho.mean - reference.mean)
    delta = solve_lower(np, rho.factor, away.T).T
    scale = np.sum(reference.log_spread(np) - rho.log_spread(np))
    return scale + np.sum(0.5 * delta * (2 * z_ref - delta), axis=-1)


def own_density(proposals: Proposals, drawn_by: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """Of each sample under the proposal that drew it `[n]`, as `mixtures.own_density`."""
    if not proposals.charts and isinstance(proposals.rhos, Diagonal):
        return log_ratio(row_of(proposals.rhos, drawn_by), proposals.reference, theta)
    found = np.zeros(len(theta))
    for slot in np.unique(drawn_by):
        rows = drawn_by == slot
        found[rows] = proposals.density(int(slot), theta[rows])
    return found


def gained_mixture(
    proposals: Proposals, gained: np.ndarray, theta: np.ndarray, mixture: np.ndarray
) -> np.ndarray:
    """The log of the counted sum of densities `[n]` once proposals have `gained [P]` samples.

    From a mixture of minus infinity it is the whole, as `mixtures.mixture_density`; from another,
    as `mixtures.gained_mixture`.
    """
    z_ref = proposals.reference.whitened(np, theta)  # for all of them
    for slot in np.flatnonzero(gained):
        row = proposals.density(int(slot), theta, z_ref)
        mixture = np.logaddexp(mixture, np.log(gained[slot]) + row)
    return mixture


def kl_divergence(p: Diagonal, q: Diagonal) -> float:
    """KL(p || q), as `gaussian.kl_divergence`."""
    log_scale = np.log1p((p.std - q.std) / q.std)
    spread = 0.5 * np.expm1(2 * log_scale) - log_scale
    return float(np.sum(spread + 0.5 * ((p.mean - q.mean) / q.std) ** 2))

"""Log-densities of Gaussians, relative to a reference, of many samples at once."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from recoup.core.families.family import Family
from recoup.core.types import Array, Rho

# theta [n, D] -> its image where a proposal is Gaussian, and the log of the volume that the map
# stretches by [n]: minus infinity where it has no image
Chart = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


class Proposals(NamedTuple):
    """What drew the samples, and the distribution that densities are relative to."""

    family: Family
    rhos: Rho  # leading axis [P]
    reference: Rho
    charts: Sequence[Chart | None] = ()  # [P] of those Gaussian in other coordinates; none at all

    def density(self, rho: Rho, theta: np.ndarray, z: np.ndarray | None = None) -> np.ndarray:
        """log p(theta | rho) of `theta [n, D]`, relative `[n]`.

        `z [n, D]` is the noise that became theta under the reference, where it is known already.
        """
        ratio = self.family.ratio_of_noise
        assert ratio is not None
        return ratio(rho, self.reference, self.noise(self.reference, theta) if z is None else z)

    def noise(self, rho: Rho, theta: np.ndarray) -> np.ndarray:
        """What became `theta [n, D]` under rho `[n, D]`."""
        whitened = self.family.whitened
        assert whitened is not None
        return whitened(rho, theta)

    def drawn_density(
        self, slot: int, theta: np.ndarray, z: np.ndarray | None = None
    ) -> np.ndarray:
        """The log-density `[n]` of the proposal in a slot, where it is Gaussian."""
        rho = row_of(self.rhos, slot)
        chart = self.charts[slot] if self.charts else None
        if chart is None:
            return self.density(rho, theta, z)
        log_density = self.family.log_density
        assert log_density is not None
        image, stretch = chart(theta)
        return log_density(rho, image) + stretch - log_density(self.reference, theta)


def row_of(rhos: Rho, slot: Array) -> Rho:
    """One of many rho, or several."""
    return type(rhos)(*(x[slot] for x in rhos))


def own_density(proposals: Proposals, drawn_by: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """Of each sample under the proposal that drew it `[n]`, as `mixtures.own_density`."""
    if not proposals.charts and proposals.family.coordinates is not None:
        return proposals.density(row_of(proposals.rhos, drawn_by), theta)
    found = np.zeros(len(theta))
    for slot in np.unique(drawn_by):
        rows = drawn_by == slot
        found[rows] = proposals.drawn_density(int(slot), theta[rows])
    return found


def gained_mixture(
    proposals: Proposals, gained: np.ndarray, theta: np.ndarray, mixture: np.ndarray
) -> np.ndarray:
    """The log of the counted sum of densities `[n]` once proposals have `gained [P]` samples.

    From a mixture of minus infinity it is the whole, as `mixtures.mixture_density`; from another,
    as `mixtures.gained_mixture`.
    """
    if not len(theta):
        return mixture
    z_ref = proposals.noise(proposals.reference, theta)  # for all of them
    for slot in np.flatnonzero(gained):
        row = proposals.drawn_density(int(slot), theta, z_ref)
        mixture = np.logaddexp(mixture, np.log(gained[slot]) + row)
    return mixture

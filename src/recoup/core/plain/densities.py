"""Log-densities of the diagonal Gaussian, relative to a reference, of many samples at once."""

import numpy as np

from recoup.core.families.rho import Diagonal


def log_ratio(rho: Diagonal, reference: Diagonal, theta: np.ndarray) -> np.ndarray:
    """log p(theta | rho) - log p(theta | reference) `[n]`, as `gaussian.log_ratio`."""
    z_ref = (theta - reference.eta) / reference.tau
    delta = (z_ref * (rho.tau - reference.tau) + (rho.eta - reference.eta)) / rho.tau
    scale = np.sum(np.log1p((reference.tau - rho.tau) / rho.tau), axis=-1)
    return scale + np.sum(0.5 * delta * (2 * z_ref - delta), axis=-1)


def own_density(
    proposals: Diagonal, drawn_by: np.ndarray, reference: Diagonal, theta: np.ndarray
) -> np.ndarray:
    """Of each sample under the proposal that drew it `[n]`, as `archive.own_density`."""
    drew = Diagonal(proposals.eta[drawn_by], proposals.tau[drawn_by])
    return log_ratio(drew, reference, theta)


def gained_mixture(
    proposals: Diagonal,
    gained: np.ndarray,
    reference: Diagonal,
    theta: np.ndarray,
    mixture: np.ndarray,
) -> np.ndarray:
    """The log of the counted sum of densities `[n]` once proposals have `gained [P]` samples.

    From a mixture of minus infinity it is the whole, as `archive.mixture_density`; from another,
    as `archive.gained_mixture`.
    """
    for slot in np.flatnonzero(gained):
        row = log_ratio(Diagonal(proposals.eta[slot], proposals.tau[slot]), reference, theta)
        mixture = np.logaddexp(mixture, np.log(gained[slot]) + row)
    return mixture


def kl_divergence(p: Diagonal, q: Diagonal) -> float:
    """KL(p || q), as `gaussian.kl_divergence`."""
    log_scale = np.log1p((p.tau - q.tau) / q.tau)
    spread = 0.5 * np.expm1(2 * log_scale) - log_scale
    return float(np.sum(spread + 0.5 * ((p.eta - q.eta) / q.tau) ** 2))

"""Log-densities of the diagonal Gaussian, relative to a reference, of many samples at once."""

import numpy as np

from recoup.core.families.rho import Diagonal


def log_ratio(rho: Diagonal, reference: Diagonal, theta: np.ndarray) -> np.ndarray:
    """log p(theta | rho) - log p(theta | reference) `[n]`, as `gaussian.log_ratio`."""
    z_ref = (theta - reference.mean) / reference.std
    delta = (z_ref * (rho.std - reference.std) + (rho.mean - reference.mean)) / rho.std
    scale = np.sum(np.log1p((reference.std - rho.std) / rho.std), axis=-1)
    return scale + np.sum(0.5 * delta * (2 * z_ref - delta), axis=-1)


def own_density(
    proposals: Diagonal, drawn_by: np.ndarray, reference: Diagonal, theta: np.ndarray
) -> np.ndarray:
    """Of each sample under the proposal that drew it `[n]`, as `archive.own_density`."""
    drew = Diagonal(proposals.mean[drawn_by], proposals.std[drawn_by])
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
        row = log_ratio(Diagonal(proposals.mean[slot], proposals.std[slot]), reference, theta)
        mixture = np.logaddexp(mixture, np.log(gained[slot]) + row)
    return mixture


def kl_divergence(p: Diagonal, q: Diagonal) -> float:
    """KL(p || q), as `gaussian.kl_divergence`."""
    log_scale = np.log1p((p.std - q.std) / q.std)
    spread = 0.5 * np.expm1(2 * log_scale) - log_scale
    return float(np.sum(spread + 0.5 * ((p.mean - q.mean) / q.std) ** 2))

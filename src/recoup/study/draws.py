"""The randomness of a study: a function of its seed and a trial's number, and of nothing else.

Whatever process asks, after whatever crash, the next theta is the one that would have come.
"""

from typing import Any

import numpy as np

from recoup.store.rows import MIRROR

NOISE, EPISODE = 0, 1  # what a trial needs random numbers for


def theta_of(rho: Any, seed: int, number: int, kind: str, dim: int) -> np.ndarray:
    """The latent theta `[D]` of trial `number` when `rho` draws it.

    The second of a mirrored pair has the noise of the first, turned round.
    """
    mirror = kind == MIRROR
    noise = _generator(seed, number - mirror, NOISE).standard_normal(dim)
    return np.asarray(rho.theta(-noise if mirror else noise), np.float64)


def episode_seed(seed: int, number: int) -> int:
    """The seed of a trial's episode."""
    return int(_generator(seed, number, EPISODE).integers(2**31))


def _generator(seed: int, number: int, use: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(key=[seed, 2 * number + use]))

"""The randomness of a study: a function of its seed and a trial's number, and of nothing else.

Whatever process asks, after whatever crash, the next theta is the one that would have come.
"""

from functools import lru_cache

import numpy as np

from recoup.core.families.family import orthogonal
from recoup.core.types import Rho
from recoup.store.rows import MIRROR

NOISE_STREAM, EPISODE_STREAM = 0, 1  # what a trial needs random numbers for
ODD = 1640531527  # near the golden section of 2^32, so that neighbours lie far apart


def theta_of(rho: Rho, seed: int, number: int, kind: str, dim: int, block: int = 1) -> np.ndarray:
    """The latent theta `[D]` of trial `number` when `rho` draws it.

    Of every `block` of trials, by their numbers, the noise has orthogonal directions.

    The second of a mirrored pair has the noise of the first, turned round. A repeat has the theta
    of the first that its distribution drew: `number` is then that one's.
    """
    first = number - 1 if kind == MIRROR else number
    noise = _block_of(seed, (first - 1) // block, dim, block)[(first - 1) % block]
    return np.asarray(rho.theta(-noise if kind == MIRROR else noise), np.float64)


def episode_seed(seed: int, number: int) -> int:
    """The seed of a trial's episode: no two trials of a study have the same.

    An odd number times the trial's, from a random place on, visits every seed below 2^31 once;
    seeds drawn at random would meet after some 50,000 trials.
    """
    return (_first_seed(seed) + ODD * number) % 2**31


@lru_cache(maxsize=4)
def _block_of(seed: int, number: int, dim: int, size: int) -> np.ndarray:
    """The noise `[size, D]` of the trials of a block."""
    trials = range(number * size + 1, (number + 1) * size + 1)
    noise = [_generator(seed, trial, NOISE_STREAM).standard_normal(dim) for trial in trials]
    return orthogonal(np, np.stack(noise)) if size > 1 else np.stack(noise)


@lru_cache(maxsize=64)
def _first_seed(seed: int) -> int:
    return int(_generator(seed, 0, EPISODE_STREAM).integers(2**31))


def _generator(seed: int, number: int, use: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(key=[seed, 2 * number + use]))

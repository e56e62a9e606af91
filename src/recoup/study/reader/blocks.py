"""Blocks of numbers: how a study's file holds the distributions of a family."""

from collections.abc import Callable

import numpy as np

from recoup.core.arrays import Out
from recoup.core.families.table import FAMILIES
from recoup.core.types import Chosen, Given, Pytree


def start_block(family: str, method: Chosen, mean: Given, std: Given) -> np.ndarray:
    """The block of numbers `[K]` of a distribution with latent means and deviations."""
    mean, std = np.asarray(mean, float), np.asarray(std, float)
    if method.space == "actions" or isinstance(method.family, str):
        return FAMILIES[family].rho.start(mean, std).packed()
    own = method.family
    return np.asarray(in_double(lambda: own.packed(own.start(mean, std)))(), np.float64)


def in_double(function: Callable[..., Out]) -> Callable[..., Out]:
    """A function of a family of one's own, whatever precision JAX is set to outside."""

    def called(*arguments: Pytree) -> Out:
        import jax  # which such a function needs itself

        with jax.enable_x64(True):
            return function(*arguments)

    return called

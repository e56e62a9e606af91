"""TBPSA and NGOpt of nevergrad between bounds.

Both are told that returns are noisy, as nevergrad's documentation asks for. Told that there is no
noise, NGOpt takes surrogate models in two dimensions, and those of nevergrad 1.0.12 make a number
of an array, which NumPy 2.4 refuses.
"""

import warnings
from typing import Any, cast

import nevergrad
import numpy as np

from recoup.core.types import Settings

BUDGET = 200  # trials that it is told it has, unless said
RECENT = 20  # trials that stand for what it tries now


def tbpsa(dim: int, seed: int, settings: Settings) -> "Candidates":
    """TBPSA, nevergrad's evolution strategy for noise: populations grow where it rules."""
    return Candidates("TBPSA", dim, seed, settings)


def ngopt(dim: int, seed: int, settings: Settings) -> "Candidates":
    """NGOpt, which chooses among nevergrad's optimisers by noise, budget and parameters."""
    return Candidates("NGOpt", dim, seed, settings)


class Candidates:
    """An optimiser of nevergrad, a trial at a time; it deploys what it recommends."""

    batch = 1

    def __init__(self, name: str, dim: int, seed: int, settings: Settings) -> None:
        space = nevergrad.p.Array(init=np.full(dim, 0.5), lower=0.0, upper=1.0)
        space.function.deterministic = False
        space.random_state.seed(seed % 2**32)
        budget = int(settings.get("budget", BUDGET))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = nevergrad.optimizers.registry[name]
            self._optimizer = made(space, budget=budget, num_workers=1)
        self._asked, self._recent = cast(Any, None), list[np.ndarray]()
        self._middle = np.full(dim, 0.5)

    def ask(self) -> np.ndarray:
        """The next trial."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of its own choices
            self._asked = self._optimizer.ask()
        self._recent = [*self._recent, np.asarray(self._asked.value)][-RECENT:]
        return self._recent[-1][None]

    def tell(self, x: np.ndarray, returns: np.ndarray) -> None:
        """Its return; nevergrad minimises."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._optimizer.tell(self._asked, -float(returns[0]))

    def mean(self) -> np.ndarray:
        """What it recommends; the middle before there is anything."""
        if not self._optimizer.num_tell:
            return self._middle
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return np.asarray(self._optimizer.provide_recommendation().value)

    def draw(self, noise: np.ndarray) -> np.ndarray:
        """What it tried last."""
        return np.array(self._recent).reshape(-1, len(self._middle))

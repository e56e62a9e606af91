"""SMAC3 between bounds: its facade for black boxes, a Gaussian process and EI."""

import warnings
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import numpy as np

from recoup.core.types import Settings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of what it imports, which is to go
    from ConfigSpace import ConfigurationSpace, Float
    from smac import BlackBoxFacade, Scenario
    from smac.runhistory import TrialValue

BUDGET = 200  # trials that it is told it has, unless said
RECENT = 20  # trials that stand for what it tries now


def smac(dim: int, seed: int, settings: Settings) -> "Facade":
    """A run; `budget` decides how many points of Sobol's come first, a quarter at most."""
    return Facade(dim, seed, int(settings.get("budget", BUDGET)))


class Facade:
    """The facade, asked and told; what it deploys is its incumbent, tried up to three times."""

    batch = 1

    def __init__(self, dim: int, seed: int, budget: int) -> None:
        space = ConfigurationSpace({f"x{i}": Float(f"x{i}", (0.0, 1.0)) for i in range(dim)})
        self._names, self._middle = list(space), np.full(dim, 0.5)
        self._asked, self._recent = cast(Any, None), list[np.ndarray]()
        self._folder = TemporaryDirectory(prefix="recoup-smac-")  # SMAC writes what it is made of
        place = Path(self._folder.name)
        scenario = Scenario(space, output_directory=place, n_trials=budget, seed=seed % 2**31)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._facade = BlackBoxFacade(scenario, _unused, logging_level=False, overwrite=True)

    def ask(self) -> np.ndarray:
        """The next trial."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of fits that do not converge
            self._asked = self._facade.ask()
        self._recent = [*self._recent, self._point(self._asked.config)][-RECENT:]
        return self._recent[-1][None]

    def tell(self, x: np.ndarray, returns: np.ndarray) -> None:
        """Its return; SMAC minimises."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._facade.tell(self._asked, TrialValue(cost=-float(returns[0])), save=False)

    def mean(self) -> np.ndarray:
        """Its incumbent; the middle before there is one."""
        found = self._facade.intensifier.get_incumbent()
        return self._middle if found is None else self._point(found)

    def draw(self, noise: np.ndarray) -> np.ndarray:
        """What it tried last."""
        return np.array(self._recent).reshape(-1, len(self._middle))

    def close(self) -> None:
        """Removes what SMAC has written."""
        self._folder.cleanup()

    def _point(self, config: Any) -> np.ndarray:
        return np.array([float(config[name]) for name in self._names])


def _unused(config: Any, seed: int = 0) -> float:
    """What SMAC would evaluate by itself: nothing, for it is asked and told."""
    raise RuntimeError("SMAC is asked and told here: it has nothing to evaluate.")

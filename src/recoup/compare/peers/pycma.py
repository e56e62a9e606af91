"""CMA-ES of pycma, alone and with its linear-quadratic surrogate."""

import warnings
from collections.abc import Callable
from typing import Any, cast

import cma
import numpy as np
from cma.evolution_strategy import InjectionWarning
from cma.fitness_models import SurrogatePopulation

from recoup.compare.entrants import population
from recoup.compare.peers.scaled import Again, Controlled, Start
from recoup.core.types import Settings


def cma_es(mean: np.ndarray, std: np.ndarray, seed: int, settings: Settings) -> "Evolution":
    """A run of CMA-ES with pycma's own settings; it never stops by itself."""
    return Evolution(Start(mean, std, seed, settings))


def lq_cma_es(mean: np.ndarray, std: np.ndarray, seed: int, settings: Settings) -> "Surrogate":
    """A run of lq-CMA-ES: its loop is that of `cma.fmin_lq_surr2`, without restarts."""
    return Surrogate(Start(mean, std, seed, settings))


def _strategy(start: Start) -> Any:
    """pycma's strategy, with random numbers of its own: pycma's are shared by the process."""
    rng = np.random.default_rng(start.seed)
    drawn = {"seed": np.nan, "randn": lambda *shape: rng.standard_normal(shape)}
    options = {**drawn, "verbose": -9}
    if "popsize" in start.settings:
        options["popsize"] = population(start.settings, start.dim)
    return cma.CMAEvolutionStrategy(np.zeros(start.dim), start.sigma, options)


class Evolution:
    """CMA-ES, asked and told."""

    def __init__(self, start: Start) -> None:
        self._start, self._strategy = start, _strategy(start)
        self.batch, self._asked = int(self._strategy.popsize), cast(Any, None)

    def ask(self) -> np.ndarray:
        """A population."""
        self._asked = self._strategy.ask()
        return self._start.theta(self._asked)

    def tell(self, theta: np.ndarray, returns: np.ndarray) -> None:
        """The distribution moves; pycma minimises, and knows again what it asked for."""
        self._strategy.tell(self._asked, list(-returns))

    def mean(self) -> np.ndarray:
        """The mean of the distribution."""
        return self._start.theta(self._strategy.mean)

    def draw(self, noise: np.ndarray) -> np.ndarray:
        """Samples of the distribution."""
        factor = np.linalg.cholesky(np.atleast_2d(self._strategy.sm.covariance_matrix))
        return self._start.theta(self._strategy.mean + self._strategy.sigma * noise @ factor.T)


class Surrogate(Evolution):
    """lq-CMA-ES, an episode at a time: the surrogate decides how many a population needs."""

    def __init__(self, start: Start) -> None:
        super().__init__(start)
        self.batch, self._running = 1, Controlled(_surrogate_loop(self._strategy))

    def ask(self) -> np.ndarray:
        """What is evaluated next."""
        return self._start.theta(self._running.ask())

    def tell(self, theta: np.ndarray, returns: np.ndarray) -> None:
        """Its value."""
        self._running.tell(returns)

    def close(self) -> None:
        """Ends its loop."""
        self._running.close()


def _surrogate_loop(strategy: Any) -> Callable[[Callable[[Any], np.ndarray]], None]:
    def work(evaluate: Callable[[Any], np.ndarray]) -> None:
        surrogate = SurrogatePopulation(lambda x: -float(evaluate(x)[0]))
        while True:
            asked = strategy.ask()
            warnings.simplefilter("ignore", InjectionWarning)  # of optima that are not taken up
            try:
                values = surrogate(asked)
            except Again:  # nothing was told so far
                continue
            strategy.tell(asked, values)
            strategy.inject([surrogate.model.xopt])

    return work

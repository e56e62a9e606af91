"""CMA-ES between bounds: pycma's, with its noise handler, and with learning-rate adaptation.

They search the unit box from its middle with standard deviation `sigma`, 0.3 unless said: the
third of the box that pycma and cmaes advise.
"""

from collections.abc import Callable
from typing import Any, cast

import cma
import numpy as np

from recoup.compare.entrants import population
from recoup.compare.peers.scaled import Again, Controlled
from recoup.core.types import Settings

SIGMA = 0.3
AGAIN = 2  # candidates that are evaluated again; pycma's 2 + popsize / 20 is rounded at random
MOST_AGAIN = 30  # evaluations of one candidate that the noise handler may ask for


def cma_es(dim: int, seed: int, settings: Settings) -> "BoxEvolution":
    """pycma with bounds, its own settings otherwise."""
    return BoxEvolution(_strategy(dim, seed, settings))


def noisy_cma_es(dim: int, seed: int, settings: Settings) -> "Repeating":
    """The same with pycma's noise handler, which evaluates some candidates again."""
    return Repeating(_strategy(dim, seed, settings))


def lra_cma_es(dim: int, seed: int, settings: Settings) -> "Adapting":
    """LRA-CMA-ES of the package cmaes: learning rates that keep a signal-to-noise ratio."""
    from cmaes import CMA

    given = {"population_size": population(settings, dim)} if "popsize" in settings else {}
    bounds = np.tile([0.0, 1.0], (dim, 1))
    sigma = float(settings.get("sigma", SIGMA))
    made = CMA(np.full(dim, 0.5), sigma, bounds=bounds, seed=seed, lr_adapt=True, **given)
    return Adapting(made)


def _strategy(dim: int, seed: int, settings: Settings) -> Any:
    rng = np.random.default_rng(seed)
    drawn = {"seed": np.nan, "randn": lambda *shape: rng.standard_normal(shape)}
    options = {**drawn, "verbose": -9, "bounds": [0.0, 1.0]}
    if "popsize" in settings:
        options["popsize"] = population(settings, dim)
    sigma = float(settings.get("sigma", SIGMA))
    return cma.CMAEvolutionStrategy(np.full(dim, 0.5), sigma, options)


class BoxEvolution:
    """pycma, asked and told."""

    def __init__(self, strategy: Any) -> None:
        self._strategy = strategy
        self.batch, self._asked = int(strategy.popsize), cast(Any, None)

    def ask(self) -> np.ndarray:
        """A population within the box."""
        self._asked = self._strategy.ask()
        return np.array(self._asked)

    def tell(self, x: np.ndarray, returns: np.ndarray) -> None:
        """The distribution moves; pycma minimises."""
        self._strategy.tell(self._asked, list(-returns))

    def mean(self) -> np.ndarray:
        """The mean of the distribution, within the box."""
        return np.array(self._strategy.result.xfavorite)

    def draw(self, noise: np.ndarray) -> np.ndarray:
        """Samples of the distribution, within the box."""
        strategy = self._strategy
        factor = np.linalg.cholesky(np.atleast_2d(strategy.sm.covariance_matrix))
        drawn = strategy.mean + strategy.sigma * noise @ factor.T
        repair = strategy.boundary_handler.repair
        return np.array([strategy.gp.pheno(one, into_bounds=repair) for one in drawn])


class Repeating(BoxEvolution):
    """pycma with its noise handler, a trial at a time."""

    def __init__(self, strategy: Any) -> None:
        super().__init__(strategy)
        self.batch, self._running = 1, Controlled(_repeating_loop(strategy))

    def ask(self) -> np.ndarray:
        """What is evaluated next."""
        return self._running.ask()

    def tell(self, x: np.ndarray, returns: np.ndarray) -> None:
        """Its return."""
        self._running.tell(returns)

    def close(self) -> None:
        """Ends its loop."""
        self._running.close()


def _repeating_loop(strategy: Any) -> Callable[[Callable[[Any], np.ndarray]], None]:
    """The loop of `cma.NoiseHandler`'s own documentation."""

    def work(evaluate: Callable[[Any], np.ndarray]) -> None:
        handler = cma.NoiseHandler(strategy.N, maxevals=[1, 1, MOST_AGAIN], reevals=AGAIN)

        def cost(x: Any) -> float:
            return -float(evaluate(x)[0])

        while True:
            try:
                asked, values = strategy.ask_and_eval(cost, evaluations=handler.evaluations)
                strategy.tell(asked, values)
                strategy.sigma *= handler(asked, values, cost, strategy.ask)
            except Again:  # nothing was told so far
                continue

    return work


class Adapting:
    """The package cmaes, asked for one candidate at a time and told a population."""

    def __init__(self, strategy: Any) -> None:
        self._strategy, self.batch = strategy, int(strategy.population_size)

    def ask(self) -> np.ndarray:
        """A population within the box."""
        return np.array([self._strategy.ask() for _ in range(self.batch)])

    def tell(self, x: np.ndarray, returns: np.ndarray) -> None:
        """The distribution moves; cmaes minimises."""
        self._strategy.tell(list(zip(x, -returns, strict=True)))

    def mean(self) -> np.ndarray:
        """The mean of the distribution."""
        return np.clip(self._strategy.mean, 0.0, 1.0)

    def draw(self, noise: np.ndarray) -> np.ndarray:
        """Samples of the distribution."""
        factor = np.linalg.cholesky(self._strategy._C)
        drawn = self._strategy.mean + self._strategy._sigma * noise @ factor.T
        return np.clip(drawn, 0.0, 1.0)

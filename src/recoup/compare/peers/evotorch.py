"""PGPE of EvoTorch."""

import logging
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import torch
from evotorch import Problem
from evotorch.algorithms import PGPE

from recoup.compare.entrants import population
from recoup.compare.peers.scaled import Again, Controlled, Start
from recoup.core.types import Settings

logging.getLogger("evotorch").setLevel(logging.WARNING)  # it says how every problem is made


class Rollouts(Problem):
    """Maximises what `evaluate` gives for populations."""

    def __init__(self, dim: int, evaluate: Callable[[Any], np.ndarray], seed: int) -> None:
        super().__init__("max", solution_length=dim, initial_bounds=(-1.0, 1.0), seed=seed)
        self._evaluate_rows = evaluate

    def _evaluate_batch(self, solutions: Any) -> None:
        try:
            returns = self._evaluate_rows(solutions.values.numpy().copy())
        except Again:  # they cannot be others: the same ones in other episodes
            self._evaluate_batch(solutions)
            return
        solutions.set_evals(torch.as_tensor(returns, dtype=self.eval_dtype))


def pgpe(mean: np.ndarray, std: np.ndarray, seed: int, settings: Settings) -> "Searcher":
    """PGPE with ClipUp; `lr` the step of the centre. It steps before it samples: a batch late."""
    return Searcher(Start(mean, std, seed, settings))


class Searcher:
    """A searcher of EvoTorch, which evaluates by itself."""

    def __init__(self, start: Start) -> None:
        self._start, self._inner = start, cast(Any, None)
        self.batch = population(start.settings, start.dim, even=True)
        self._running = Controlled(self._work)

    def _work(self, evaluate: Callable[[Any], np.ndarray]) -> None:
        start = self._start
        rate = float(start.settings.get("lr", 0.15))
        self._inner = PGPE(
            Rollouts(start.dim, evaluate, start.seed),
            popsize=self.batch,
            center_learning_rate=rate,
            stdev_learning_rate=0.1,
            stdev_init=start.sigma,
            center_init=torch.zeros(start.dim),
            optimizer="clipup",
            optimizer_config={"max_speed": 2 * rate},
            ranking_method="centered",
        )
        while True:
            self._inner.step()

    def ask(self) -> np.ndarray:
        """A population."""
        return self._start.theta(self._running.ask())

    def tell(self, theta: np.ndarray, returns: np.ndarray) -> None:
        """Its returns."""
        self._running.tell(returns)

    def mean(self) -> np.ndarray:
        """The centre of the distribution."""
        if self._inner is None:
            return self._start.mean
        return self._start.theta(self._inner.status["center"].numpy())

    def draw(self, noise: np.ndarray) -> np.ndarray:
        """Samples of the distribution."""
        if self._inner is None:
            return self._start.theta(self._start.sigma * noise)
        center, std = (self._inner.status[key].numpy() for key in ("center", "stdev"))
        return self._start.theta(center + std * noise)

    def close(self) -> None:
        """Ends its loop."""
        self._running.close()

"""Samplers of Optuna: x is searched between bounds, since Optuna's parameters have them."""

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import optuna

from recoup.compare.entrants import population
from recoup.compare.peers.scaled import Start
from recoup.core.types import Plain, Settings

BOUNDS_WIDTH = 10.0  # bounds: so many standard deviations around the start
RECENT = 20  # trials that stand for what it tries now


def tpe(mean: np.ndarray, std: np.ndarray, seed: int, settings: Settings) -> "Trials":
    """Optuna's default sampler; `startup` random trials before it models (10 unless said)."""
    given: Plain = {"n_startup_trials": int(settings["startup"])} if "startup" in settings else {}
    start = Start(mean, std, seed, settings)
    return Trials(start, optuna.samplers.TPESampler(seed=seed, **given))


def cma_es(mean: np.ndarray, std: np.ndarray, seed: int, settings: Settings) -> "Trials":
    """CMA-ES of the package cmaes, as Optuna drives it."""
    start = Start(mean, std, seed, settings)
    given: Plain = {"x0": dict.fromkeys(_names(start.dim), 0.0)}
    if "popsize" in settings:
        given["popsize"] = population(settings, start.dim)
    sigma = start.sigma / (2 * _width(settings))  # Optuna's parameters lie in [0, 1] inside
    with warnings.catch_warnings():  # `x0` and `sigma0` are to go in Optuna 6
        warnings.simplefilter("ignore", FutureWarning)
        sampler = optuna.samplers.CmaEsSampler(
            sigma0=sigma, seed=seed, n_startup_trials=1, warn_independent_sampling=False, **given
        )
    return Trials(start, sampler)


def _width(settings: Settings) -> float:
    return float(settings.get("width", BOUNDS_WIDTH))


def _names(dim: int) -> list[str]:
    return [f"x{i}" for i in range(dim)]


class Trials:
    """A study of Optuna, a trial at a time. It has no distribution: it shows what it tried last.

    The first trial is the mean of the start. What it would deploy is its best trial.
    """

    batch = 1
    failures = True  # Optuna knows trials that failed

    def __init__(self, start: Start, sampler: Any) -> None:
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._start, self._names = start, _names(start.dim)
        width = _width(start.settings)
        self._space: Plain = {
            name: optuna.distributions.FloatDistribution(-width, width) for name in self._names
        }
        self._study = optuna.create_study(direction="maximize", sampler=sampler)
        self._study.enqueue_trial(dict.fromkeys(self._names, 0.0))
        self._trial: Any = None
        self._recent: list[np.ndarray] = []
        self._succeeded = False

    def ask(self) -> np.ndarray:
        """The next trial."""
        self._trial = self._study.ask(self._space)
        theta = self._theta(self._trial.params)
        self._recent = [*self._recent, theta][-RECENT:]
        return theta[None]

    def tell(self, theta: np.ndarray, returns: np.ndarray) -> None:
        """Its value, or that it failed."""
        if np.isfinite(returns[0]):
            self._study.tell(self._trial, float(returns[0]))
            self._succeeded = True
        else:
            self._study.tell(self._trial, state=optuna.trial.TrialState.FAIL)

    def mean(self) -> np.ndarray:
        """The parameters of the best trial, or the start."""
        if not self._succeeded:
            return self._start.mean
        return self._theta(self._study.best_params)

    def draw(self, noise: np.ndarray) -> np.ndarray:
        """What it tried last."""
        return np.array(self._recent).reshape(-1, self._start.dim)

    def _theta(self, params: Mapping[str, float]) -> np.ndarray:
        return self._start.theta([params[name] for name in self._names])

"""Samplers of Optuna between bounds: TPE over all parameters together, and its Gaussian process."""

import warnings

import numpy as np
import optuna

from recoup.compare.peers.optuna import Trials
from recoup.compare.peers.scaled import Start
from recoup.compare.peers.small_gp import best_tried
from recoup.core.types import Plain, Settings


def tpe(dim: int, seed: int, settings: Settings) -> Trials:
    """TPE with `multivariate=True`; `startup` random trials before it models (10 unless said)."""
    given: Plain = {"n_startup_trials": int(settings["startup"])} if "startup" in settings else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        sampler = optuna.samplers.TPESampler(seed=seed, multivariate=True, **given)
    return Trials(_start(dim, seed, settings), sampler)


def gp(dim: int, seed: int, settings: Settings) -> "Modelled":
    """GPSampler, told that returns are noisy; `startup` as above."""
    given: Plain = {"n_startup_trials": int(settings["startup"])} if "startup" in settings else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        sampler = optuna.samplers.GPSampler(seed=seed, deterministic_objective=False, **given)
    return Modelled(_start(dim, seed, settings), sampler)


def _start(dim: int, seed: int, settings: Settings) -> Start:
    """The unit box: x in -1/2 .. 1/2 around its middle."""
    return Start(np.full(dim, 0.5), np.ones(dim), seed, {**settings, "width": 0.5})


class Modelled(Trials):
    """A study of Optuna; what it deploys is the tried point with the highest posterior mean.

    Optuna keeps its own process to itself, so that of `small_gp` is fitted to the same trials.
    """

    def mean(self) -> np.ndarray:
        """The tried point that a Gaussian process expects most of, or the start."""
        done = self._study.get_trials(states=(optuna.trial.TrialState.COMPLETE,), deepcopy=False)
        if len(done) < 2:
            return self._start.mean
        x = np.array([self._theta(trial.params) for trial in done])
        return best_tried(x, np.array([trial.value for trial in done]))

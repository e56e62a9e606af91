"""What a run is determined by and what is measured on its way: plain records."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from recoup.engine.methods import Method

AGES = ((0, 1), (1, 3), (3, 10), (10, 30), (30, None))  # iterations back, from and before


class Measured(NamedTuple):
    """A mean over fresh episodes, with its standard error."""

    mean: float
    stderr: float
    episodes: int


class Evaluated(NamedTuple):
    """What fresh episodes say about a run."""

    return_search: Measured
    return_mean_policy: Measured


class Curve(NamedTuple):
    """Expected return of the search distribution on fresh episodes, by rollouts spent."""

    episodes: np.ndarray
    mean: np.ndarray
    stderr: np.ndarray


@dataclass(frozen=True)
class Step:
    """One row of a run's history: the distribution after `iteration` moves, and the last move."""

    iteration: int
    episodes: int
    return_search: float  # on fresh test episodes
    return_search_stderr: float
    std_min: float
    std_max: float
    batch_return: float | None = None  # mean of the rollouts the move was made of
    failed: int | None = None
    objective: float | None = None  # the archive's own estimate, before the move
    objective_stderr: float | None = None
    samples: int | None = None
    ess: float | None = None  # in samples, under mirrored sampling too
    max_weight: float | None = None
    pareto_k: float | None = None
    kl: float | None = None
    flatten: float | None = None  # nu of w^nu, where the method may choose it
    wall_s: float = 0.0  # since the run began, without the time it was stopped


@dataclass(frozen=True)
class Plan:
    """Everything a run is determined by, resolved."""

    task: str
    method: str
    seed: int
    iterations: int
    batch: int
    horizon: int
    discount: float
    options: dict[str, Any]  # of the task
    mean: Any  # None: drawn from N(0, I)
    std: Any
    test_episodes: int
    settings: Method

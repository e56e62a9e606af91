"""Recoup: policy search that gets the most out of every rollout."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from recoup.diagnostics import pareto_k as pareto_k
    from recoup.estimation import estimate as estimate
    from recoup.evosax import EvosaxStrategy as EvosaxStrategy
    from recoup.runs import Run as Run
    from recoup.runs import load as load
    from recoup.searches import search as search
    from recoup.study.study import Study as Study
    from recoup.training import evaluate as evaluate
    from recoup.training import resume as resume
    from recoup.training import train as train
    from recoup.trajectories import Trajectory as Trajectory

from recoup.tasks import register_envs

__version__ = "0.1.0"

_HOMES = {
    "EvosaxStrategy": "recoup.evosax",
    "Run": "recoup.runs",
    "Study": "recoup.study.study",
    "Trajectory": "recoup.trajectories",
    "estimate": "recoup.estimation",
    "evaluate": "recoup.training",
    "load": "recoup.runs",
    "pareto_k": "recoup.diagnostics",
    "resume": "recoup.training",
    "search": "recoup.searches",
    "train": "recoup.training",
}

__all__ = ["__version__", *sorted(_HOMES)]


def __getattr__(name: str) -> Any:
    """Public names are imported when they are first used, so that `import recoup` stays fast."""
    if name not in _HOMES:
        raise AttributeError(f"module 'recoup' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__


register_envs()  # so that `gymnasium.make("recoup/Toy-v0")` works after `import recoup`

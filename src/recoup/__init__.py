"""Recoup: policy search that gets the most out of every rollout.

A search by hand, kept in a file:

    study = recoup.Study.open("robot.db", dim=3)
    [trial] = study.ask()             # what to roll out: trial.theta
    study.tell(trial.id, 12.3)        # what came of it, in any order
    print(study.recommend())          # what to deploy, and whether to go on

The same in a loop, on a task:

    run = recoup.train("mountain-car", seed=0)

Where to go on:

    help(recoup.Study)      ask, tell, and every question that a study answers
    help(recoup.train)      tasks, policies, workers; recoup.resume, load, evaluate
    help(recoup.estimate)   what old samples say about another distribution
    help(recoup.search)     the methods as pure functions of JAX
    help(recoup.connect)    a study on another machine
    help(recoup.Mover)      a method of your own; recoup.family, Update, needs
    print(recoup.METHODS)   all methods; `recoup methods` says what they do

In a terminal: `recoup --help`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from recoup import envs

if TYPE_CHECKING:
    from recoup.checks import InputError as InputError
    from recoup.core.families.family import Family as Family
    from recoup.core.families.own import family as family
    from recoup.core.families.trajectory import Trajectory as Trajectory
    from recoup.core.gradient import relative as relative
    from recoup.core.movers import Experience as Experience
    from recoup.core.movers import Mover as Mover
    from recoup.core.pareto import pareto_k as pareto_k
    from recoup.core.updates import Update as Update
    from recoup.core.weights import needs as needs
    from recoup.engine.as_evosax import EvosaxStrategy as EvosaxStrategy
    from recoup.engine.estimate import estimate as estimate
    from recoup.engine.methods import METHODS as METHODS
    from recoup.engine.methods import Method as Method
    from recoup.engine.search import Search as Search
    from recoup.engine.search import search as search
    from recoup.runs.callbacks import Callback as Callback
    from recoup.runs.callbacks import TensorBoard as TensorBoard
    from recoup.runs.run import Run as Run
    from recoup.runs.run import load as load
    from recoup.runs.train import evaluate as evaluate
    from recoup.runs.train import resume as resume
    from recoup.runs.train import train as train
    from recoup.serve.client import connect as connect
    from recoup.study.reader.records import Trial as Trial
    from recoup.study.study import Study as Study
    from recoup.study.views.snapshot import Snapshot as Snapshot
    from recoup.study.voice.evaluation import Evaluation as Evaluation
    from recoup.study.voice.predict import Prediction as Prediction
    from recoup.study.voice.recommend import Recommendation as Recommendation
    from recoup.tasks.own.found import register_task as register_task
    from recoup.tasks.policies.policy_files import load_policy as load_policy

__version__ = "0.2.0"

_HOMES = {
    "Callback": "recoup.runs.callbacks",
    "Evaluation": "recoup.study.voice.evaluation",
    "EvosaxStrategy": "recoup.engine.as_evosax",
    "Experience": "recoup.core.movers",
    "Family": "recoup.core.families.family",
    "InputError": "recoup.checks",
    "METHODS": "recoup.engine.methods",
    "Method": "recoup.engine.methods",
    "Mover": "recoup.core.movers",
    "Prediction": "recoup.study.voice.predict",
    "Recommendation": "recoup.study.voice.recommend",
    "Run": "recoup.runs.run",
    "Search": "recoup.engine.search",
    "Snapshot": "recoup.study.views.snapshot",
    "Study": "recoup.study.study",
    "TensorBoard": "recoup.runs.callbacks",
    "Trajectory": "recoup.core.families.trajectory",
    "Trial": "recoup.study.reader.records",
    "Update": "recoup.core.updates",
    "connect": "recoup.serve.client",
    "estimate": "recoup.engine.estimate",
    "evaluate": "recoup.runs.train",
    "family": "recoup.core.families.own",
    "load": "recoup.runs.run",
    "load_policy": "recoup.tasks.policies.policy_files",
    "needs": "recoup.core.weights",
    "pareto_k": "recoup.core.pareto",
    "register_task": "recoup.tasks.own.found",
    "relative": "recoup.core.gradient",
    "resume": "recoup.runs.train",
    "search": "recoup.engine.search",
    "train": "recoup.runs.train",
}

__all__ = ["__version__", *sorted(_HOMES)]


def __getattr__(name: str) -> Any:
    """Public names are imported when they are first used, so that `import recoup` stays fast."""
    if name not in _HOMES:
        raise AttributeError(f"module 'recoup' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__


envs.offer()  # so that `gymnasium.make("recoup/Toy-v0")` works

"""What a run is determined by: the task, the method, the seed, the budget; checked and resolved."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from recoup.checks import (
    AT_ONCE,
    InputError,
    check_count,
    check_finite,
    check_flag,
    check_mapping,
    check_stds,
    check_vector,
)
from recoup.core.types import Given, Plain, Settings
from recoup.engine.methods import Method, default_batch, method_row, settings_of, sized
from recoup.runs.problem import Problem, Settled, batch_for, fingerprint_of, is_ours, settled
from recoup.study.reader.opened import Opened
from recoup.study.reader.settings import RUN, parameters_given, resolved
from recoup.study.reader.version import version_of
from recoup.study.run.ends import EXTENDED
from recoup.tasks.own.found import REGISTERED
from recoup.tasks.own.host import How
from recoup.tasks.row import TaskRow
from recoup.tasks.task import Task

DEFAULT_ITERATIONS = 30
KEEP_EVERY = 10  # moves between two policies that are kept
OF_THE_TASK = (  # settings of `train` that say what the task is
    "horizon",
    "discount",
    "options",
    "policy",
    "policy_options",
    "episodes_per_trial",
    "warm_up",
    "normalize",
    "dim",
    "params",
)


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
    options: Plain  # of the task
    mean: Given  # None: drawn from N(0, I), or where the parameters start
    std: Given
    test_episodes: int
    settings: Method
    spare: int = 0  # trials beyond the last whole batch
    episodes_per_trial: int = 1
    own: bool = False  # whether the task is the user's
    tested: bool = True  # whether the curve is measured on episodes of its own
    test_all: bool = True  # after every iteration, or after some
    policy: Plain | None = None  # as JSON can hold it
    warm_up: int = 0  # episodes spent before the search
    engine: Plain = field(default_factory=dict)  # how trials are rolled out
    keep_every: int = KEEP_EVERY  # moves between two policies that are kept; 0: none is
    version: str = ""  # of what makes a policy of a theta, and a return of a policy
    fingerprint: Any = None  # [T * K, O] that the policy gives on fixed observations and thetas

    @property
    def trials(self) -> int:
        """Trials to roll out."""
        return self.iterations * self.batch + self.spare

    @property
    def episodes(self) -> int:
        """Rollouts to spend."""
        return self.trials * self.episodes_per_trial

    def plain(self) -> Plain:
        """The plan as JSON can hold it, but for the settings, which are the study's own."""
        return {key: value for key, value in asdict(self).items() if key != "settings"}


@dataclass(frozen=True)
class Wanted:
    """A run as it was asked for."""

    task: Given
    method: str | Method
    episodes: int | None
    iterations: int | None
    batch: int | None
    seed: int
    mean: Given
    std: Given
    settings: Plain
    of_task: Plain = field(default_factory=dict)  # by the names in `OF_THE_TASK`
    test_episodes: int | None = None
    test_all: bool = False
    engine: Plain = field(default_factory=dict)
    keep_every: int | None = None


def plan_of(wanted: Wanted) -> tuple[Plan, Problem]:
    """The plan of a run and its task, once everything is such as it may be."""
    wanted = _with_defaults(wanted)
    seed = check_seed(wanted.seed)
    method_row(wanted.method, **wanted.settings)  # before a task is made, which may take long
    names = tuple(one.name for one in parameters_given(wanted.of_task.get("params")))
    told = {key: v for key, v in wanted.of_task.items() if key != "params" and v is not None}
    for key in ("options", "policy_options"):
        check_mapping(key, told.get(key, {}))
    episodes = told.pop("episodes_per_trial", 1)
    found = settled(wanted.task, How(**told, episodes=episodes, names=names, seed=seed))
    made = method_row(wanted.method, task_settings(found, wanted.method), **wanted.settings)
    method = sized(made, found.problem.dim)
    if not is_ours(wanted.task) and method.space == "actions":
        raise InputError(
            f"{method.name} explores in action space, which is for our own tasks: use one that "
            "searches parameters (`recoup methods`)."
        )
    std = found.std if wanted.std is None and not names else wanted.std
    _check_start(wanted.mean, std, found.problem, method, bool(names))
    plan = replace(_planned(wanted, found, method), seed=seed, std=_start_stored(std))
    gives = fingerprint_of(found, plan.mean, plan.std)
    return replace(plan, version=version_of(plan.plain()), fingerprint=gives), found.problem


def _planned(wanted: Wanted, found: Settled, method: Method) -> Plan:
    batch, iterations, spare = _budget(wanted, found, method)
    problem, told = found.problem, wanted.of_task
    tests = found.test_episodes if wanted.test_episodes is None else wanted.test_episodes
    tested = isinstance(problem, Task)
    if check_flag("test_all", wanted.test_all) and not tested:
        raise InputError(
            f"the curve of {found.name} is made of its trials: test_all is for tasks of ours, and "
            "environments in JAX."
        )
    return Plan(
        task=found.name,
        method=method.name,
        seed=0,
        iterations=iterations,
        batch=batch,
        horizon=problem.horizon,
        discount=problem.discount,
        options=_plain_options(told.get("options") or {}),
        mean=_start_stored(wanted.mean),
        std=None,
        test_episodes=check_count("test_episodes", tests, 2, AT_ONCE),
        settings=method,
        spare=spare,
        episodes_per_trial=told.get("episodes_per_trial") or 1,
        own=not is_ours(wanted.task),
        tested=tested,
        test_all=wanted.test_all,
        policy=found.policy,
        warm_up=told.get("warm_up") or 0,
        engine=wanted.engine,
        keep_every=_keep_every(wanted.keep_every, found),
    )


def _keep_every(given: int | None, found: Settled) -> int:
    """Moves between two policies that are kept."""
    if given is None:
        return KEEP_EVERY
    if found.policy is None:
        raise InputError(f"{found.name} has no policy of an environment to keep: leave it out.")
    return check_count("keep_every", given, least=0)


def _with_defaults(wanted: Wanted) -> Wanted:
    """What was asked for, with the settings that a registered task has where none are given."""
    found = REGISTERED.get(wanted.task) if isinstance(wanted.task, str) else None
    if found is None:
        return wanted
    mine = {k: v for k, v in found.defaults.items() if k not in OF_THE_TASK}
    known = ("batch", "mean", "std", "test_episodes")
    for key in mine:
        if key not in known:
            raise InputError(f"the task {found.name} was registered with an unknown {key!r}.")
    unset = {key: value for key, value in mine.items() if getattr(wanted, key) is None}
    own = {key: found.defaults[key] for key in OF_THE_TASK if key in found.defaults}
    return replace(wanted, of_task={**own, **wanted.of_task}, **unset)


def _budget(wanted: Wanted, found: Settled, method: Method) -> tuple[int, int, int]:
    """The batch, how many of them, and how many trials are left over."""
    each = check_count("episodes_per_trial", wanted.of_task.get("episodes_per_trial") or 1)
    if wanted.episodes is not None and wanted.iterations is not None:
        raise InputError("give episodes or iterations, not both.")
    trials = None
    if wanted.episodes is not None:
        trials = _whole_trials(wanted.episodes, each)
    made_for = default_batch(method, found.problem.dim)
    if wanted.batch is None and (found.batch is None or made_for is not None):
        batch = made_for or batch_for(found.problem.dim, trials)
        if wanted.settings.get("mirrored"):
            batch += batch % 2
        if trials is not None and trials < batch:
            batch = trials
        if trials is not None:
            return batch, *divmod(trials, batch)
    else:
        given = found.batch if wanted.batch is None else wanted.batch
        batch = check_count("batch", given, most=AT_ONCE)
    return batch, _iterations(trials, wanted.iterations, batch), 0


def _whole_trials(episodes: int, each: int) -> int:
    """How many trials so many episodes are, `each` of which has some."""
    trials, rest = divmod(check_count("episodes", episodes), each)
    if rest:
        raise InputError(
            f"episodes must be a multiple of the {each} episodes of a trial, got {episodes}."
        )
    return trials


def _check_start(mean: Given, std: Given, problem: Problem, method: Method, named: bool) -> None:
    """Raises unless a run can start so; with named parameters the study looks at it."""
    if named:
        return
    check_vector("mean", 0.0 if mean is None else mean, problem.dim)
    check_finite("mean", 0.0 if mean is None else mean)
    in_actions = method.space == "actions"
    check_vector("std", std, problem.actions if in_actions else problem.dim, "DA"[in_actions])
    check_stds("std", std)


def _start_stored(value: Given) -> Any:
    if value is None or isinstance(value, Mapping):
        return value
    return np.asarray(value, np.float64).tolist()


def _plain_options(options: Settings) -> Plain:
    """Options of a task as JSON can hold them, or one sentence about the one that it cannot."""
    found = {k: v.tolist() if hasattr(v, "tolist") else v for k, v in options.items()}
    for key, value in found.items():
        try:
            json.dumps(value)
        except (TypeError, ValueError):
            raise InputError(
                f"the option {key!r} cannot be written to a run: it must be made of numbers, texts "
                "and lists; or give a function that makes the environment with it."
            ) from None
    return found


def study_settings(plan: Plan, problem: Problem, mean: Given, params: Given = None) -> Plain:
    """The settings of the study that a run is, starting from the means `[D]`."""
    given = {"method": plan.settings, "batch": plan.batch, "seed": plan.seed}
    given |= {"dim": problem.dim, "mean": mean, "std": plan.std}
    if params is not None:
        given["params"] = params
    if plan.settings.space == "actions":
        given |= {
            "horizon": problem.horizon,
            "actions": problem.actions,
            "discount": problem.discount,
        }
    return {**resolved({k: v for k, v in given.items() if v is not None}), RUN: plan.plain()}


def stored_plan(study: Opened) -> Plan:
    """The plan of a run, as its study holds it; its budget as it was last set."""
    if RUN not in study.settings:
        raise InputError(f"{study.where} is a study of its own, not that of a run.")
    try:
        made = {**study.settings[RUN], "settings": study.method}
        plan = _checked(Plan(**made))
    except (TypeError, ValueError) as wrong:
        raise InputError(f"the plan of the run in {study.where} cannot be read: {wrong}.") from None
    extended = study.store.events(EXTENDED)
    if not extended:
        return plan
    budget = extended[-1].content
    return replace(
        plan,
        iterations=check_count(EXTENDED, budget["iterations"]),
        spare=check_count(EXTENDED, budget["spare"], least=0),
    )


def _checked(plan: Plan) -> Plan:
    """A plan from a file, once its numbers are such as a run can have been made with."""
    for key in ("iterations", "batch", "horizon", "episodes_per_trial", "test_episodes"):
        check_count(key, getattr(plan, key))
    for key in ("spare", "warm_up", "keep_every"):
        check_count(key, getattr(plan, key), least=0)
    check_flag("test_all", plan.test_all)
    for key in ("options", "engine"):
        if not isinstance(getattr(plan, key), dict):
            raise InputError(f"{key} must be a mapping")
    return plan


def extended_by(plan: Plan, iterations: int | None, episodes: int | None, told: int) -> Plan:
    """The plan with another budget, once a run of which so many trials were told can come to it."""
    if iterations is not None and episodes is not None:
        raise InputError("give episodes or iterations, not both.")
    if iterations is not None:
        return replace(plan, iterations=_more_iterations(plan, iterations, told), spare=0)
    if episodes is None:
        return plan
    trials = _whole_trials(episodes, plan.episodes_per_trial)
    if trials < told:
        spent = told * plan.episodes_per_trial
        raise InputError(
            f"the run has spent {spent} episodes: it can be extended to more, not cut to "
            f"{episodes}."
        )
    if trials < plan.batch:
        least = plan.batch * plan.episodes_per_trial
        raise InputError(f"episodes must be at least the {least} of one batch, got {episodes}.")
    whole, spare = divmod(trials, plan.batch)
    return replace(plan, iterations=whole, spare=spare)


def _more_iterations(plan: Plan, iterations: int, told: int) -> int:
    """`iterations`, once a run of which so many trials were told can come to them."""
    iterations, done = check_count("iterations", iterations), -(-told // plan.batch)
    if iterations < done:
        raise InputError(
            f"the run has spent {told} episodes, which are {done} iterations of {plan.batch}: it "
            f"can be extended to more, not cut to {iterations}."
        )
    return iterations


def task_settings(task: TaskRow | Settled, method: str | Method) -> Plain:
    """The settings that a task asks of a method, where it has them."""
    asks = task.epsilon is not None and "epsilon" in settings_of(method)
    return {"epsilon": task.epsilon} if asks else {}


def check_seed(seed: Given) -> int:
    """`seed` as an int, once it is one that every kind of randomness takes."""
    return check_count("seed", seed, least=0, most=2**32 - 1)


def _iterations(trials: int | None, iterations: int | None, batch: int) -> int:
    if trials is None:
        return check_count("iterations", DEFAULT_ITERATIONS if iterations is None else iterations)
    whole, rest = divmod(trials, batch)
    if rest:
        near = f"{whole * batch} or {(whole + 1) * batch}" if whole else f"{batch}"
        raise InputError(
            f"episodes must be a multiple of the batch of {batch}, got {trials}: use {near}."
        )
    return whole

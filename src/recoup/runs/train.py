"""`recoup.train`, `resume` and `evaluate`: a study that a loop asks, rolls out and tells."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from recoup.checks import InputError, check_count
from recoup.engine.composition import family_of
from recoup.engine.methods import DEFAULT_METHOD, Method, own_parts
from recoup.runs.directory import (
    CURVE,
    make_directory,
    note_iterations,
    refuse_existing,
    study_in,
)
from recoup.runs.history import Step, history_of, step_of
from recoup.runs.plan import (
    EXTENDED,
    Plan,
    Wanted,
    check_extension,
    plan_of,
    stored_plan,
    study_settings,
)
from recoup.runs.run import FINISHED, SPENT, Run, end_of, load
from recoup.store.rows import FAILED, Test, Told
from recoup.study.notebook import facts
from recoup.study.study import Study
from recoup.tasks.registry import make_task
from recoup.tasks.rollouts import (
    Engine,
    Measured,
    Outcome,
    TaskEngine,
    fresh_returns,
    mean_policy_returns,
    measured,
)
from recoup.tasks.task import Task

FRESH, LAST = 2**31 - 1, 2**31 - 2  # of keys: an evaluation's, and the last test's of a run

Show = Callable[[Step], None]


class Evaluated(NamedTuple):
    """What fresh episodes say about a run."""

    return_search: Measured
    return_mean_policy: Measured

    def __repr__(self) -> str:
        texts = [f"{name} {words}" for name, words in self._rows().items()]
        return f"Evaluated({', '.join(texts)})"

    def _repr_html_(self) -> str:
        return facts("Expected returns on fresh episodes", self._rows())

    def _rows(self) -> dict[str, str]:
        both = zip(("search distribution", "mean policy"), self, strict=True)
        return {k: f"{m.mean:.4g} ± {m.stderr:.2g} of {m.episodes} episodes" for k, m in both}


def train(
    task: str,
    method: str | Method = DEFAULT_METHOD,
    *,
    episodes: int | None = None,
    iterations: int | None = None,
    batch: int | None = None,
    seed: int = 0,
    mean: Any = None,
    std: Any = 1.0,
    horizon: int | None = None,
    discount: float | None = None,
    options: dict[str, Any] | None = None,
    out: str | Path | None = None,
    progress: bool | Show = False,
    **settings: Any,
) -> Run:
    """Learns `task` by `method` and measures the result on fresh episodes.

    `episodes` or `iterations` is the budget (30 iterations unless said), `batch` the rollouts of
    one iteration (the task's own unless said). `mean` and `std` are the start, numbers or `[D]`
    (in action space mu `[D]` and sigma `[A]`); a mean of None is drawn from N(0, I), as in the
    paper. `options` are the task's own, for instance
    `{"features": "raw"}` for a reaching task. `out` is a directory to write the run to;
    it must not exist. `progress=True` shows a live display; a function gets every `Step`.
    `settings` replace those of the method's row, for instance `epsilon=0.5` or `mirrored=True`;
    `family`, `weighting`, `baseline`, `direction` and `update` take a word or an object of yours.

    Test episodes, drawn anew after every iteration for the curve, teach the search nothing.
    """
    budget = (episodes, iterations, batch, seed)
    wanted = Wanted(task, method, *budget, mean, std, horizon, discount, options or {}, settings)
    plan, problem = plan_of(wanted)
    directory = None if out is None else Path(out)
    if directory is not None:
        refuse_existing(directory)
    with jax.enable_x64(True):
        made = study_settings(plan, problem, _start(plan, problem))  # may refuse: nothing shown yet
        path = None if directory is None else make_directory(directory, plan)
        with (
            _shown(plan, progress) as show,
            _closed_if_stopped(Study.create(path, made, own_parts(plan.settings))) as study,
        ):
            return _learn(study, _Work(plan, problem, directory is None), directory, show)


def resume(
    run: "str | Path | Run",
    *,
    iterations: int | None = None,
    progress: bool | Show = False,
    **parts: Any,
) -> Run:
    """Goes on with a run after any stop; it ends as if it had never stopped.

    Everything is in the run's study: what was told, and where the distribution has moved. A run
    that is finished is given as it is, unless `iterations` gives it a larger budget: then it goes
    on to that many, from what it has. `parts` are those of its method that only Python can give
    (`update=optax.adam(0.1)`), again.
    """
    study, directory = _study_of(run, parts)
    with nullcontext() if directory is None else _closed_if_stopped(study):
        if iterations is not None:
            _extend(study, directory, iterations)
        if end_of(study.opened) is not None:
            return Run(study.opened, directory)
        study.opened.check_whole()
        plan = stored_plan(study.opened)
        problem = make_task(plan.task, plan.horizon, plan.discount, **plan.options)
        with jax.enable_x64(True), _shown(plan, progress) as show:
            return _learn(study, _Work(plan, problem, directory is None), directory, show)


def _study_of(run: "str | Path | Run", parts: dict[str, Any]) -> tuple[Study, Path | None]:
    """The study of a run, open, and the directory that it lies in; None where it is in memory."""
    if not isinstance(run, Run):
        return Study.open(study_in(run), **parts), Path(run)
    if run.out is None:
        return run.study, None
    return Study.open(study_in(run.out), **{**run.parts, **parts}), run.out


def _extend(study: Study, directory: Path | None, iterations: int) -> None:
    """Gives a run another budget, on disk before anything is spent of it."""
    plan = stored_plan(study.opened)
    check_extension(plan, iterations, study.store.told_count(SPENT))
    if iterations == plan.iterations:
        return
    with study.store.writing():
        study.store.note(EXTENDED, {"iterations": int(iterations)})
    if directory is not None:
        note_iterations(directory, int(iterations))


def evaluate(run: "str | Path | Run", *, episodes: int | None = None, seed: int = 0) -> Evaluated:
    """Expected returns of a run's search distribution and of its mean policy, on fresh episodes.

    As many `episodes` as the run was tested with, unless said; none of them is one that the run
    has seen.
    """
    run = run if isinstance(run, Run) else load(run)
    count = run.plan.test_episodes if episodes is None else check_count("episodes", episodes, 2)
    seed = check_count("seed", seed, least=0)
    with jax.enable_x64(True):
        tests = _Tests(run.plan, run.task, count)
        keys = jax.random.split(jax.random.fold_in(jax.random.key(seed), FRESH))
        return tests.both(keys, run.rho)


class _Tests:
    """Fresh episodes of a run's distribution and of its mean policy."""

    def __init__(self, plan: Plan, problem: Task, episodes: int) -> None:
        self._search = fresh_returns(problem, family_of(plan.settings), episodes)
        self._policy = mean_policy_returns(problem, episodes)

    def search(self, key: Array, rho: Any) -> Measured:
        """What a distribution earns."""
        return measured(self._search(key, jax.tree.map(jnp.asarray, rho)))

    def both(self, keys: Array, rho: Any) -> Evaluated:
        """What a distribution earns, and its mean policy."""
        policy = measured(self._policy(keys[1], jnp.asarray(rho.mean)))
        return Evaluated(self.search(keys[0], rho), policy)


class _Work:
    """What a run is made with: its plan, what rolls out, what tests, and the keys of the tests."""

    def __init__(self, plan: Plan, problem: Task, in_memory: bool = False) -> None:
        self.plan = plan
        together = plan.batch if problem.traced or in_memory else 1  # slow ones, each safe at once
        self.engine: Engine = TaskEngine(problem, together)
        self.tests = _Tests(plan, problem, plan.test_episodes)
        self.key_test = _keys(plan)[2]
        self.began = time.perf_counter()

    def key(self, i: int) -> Array:
        """Of the test after move `i`."""
        return jax.random.fold_in(self.key_test, i)


def _keys(plan: Plan) -> Array:
    """Keys of the start, of the moves (lock step alone uses them) and of the tests."""
    return jax.random.split(jax.random.key(plan.seed), 3)


def _start(plan: Plan, problem: Task) -> Any:
    """The means that a run starts from."""
    if plan.mean is not None:
        return plan.mean
    return np.asarray(jax.random.normal(_keys(plan)[0], (problem.dim,), jnp.float64))


@contextmanager
def _closed_if_stopped(study: Study) -> Iterator[Study]:
    """Leaves one whole file behind, whatever stops a run."""
    try:
        yield study
    except BaseException:
        study.close()
        raise


@contextmanager
def _shown(plan: Plan, progress: bool | Show) -> Iterator[Show]:
    if progress is True:
        from recoup.runs.progress import live

        with live(plan) as show:
            yield show
    else:
        yield progress or (lambda step: None)


def _learn(study: Study, work: _Work, directory: Path | None, show: Show) -> Run:
    """Asks, rolls out and tells until the budget is spent; gives what was learned."""
    before = study.store.tests()
    if before:  # the time it was stopped does not count
        work.began -= before[-1].wall_s
        show(history_of(study.opened).steps[before[-1].move])
    study.tell_all([])  # makes the move that a stop may have left due
    _test(study, work, show)
    trials = [trial for trial in study.pending() if trial.kind in SPENT]
    while (left := work.plan.episodes - study.store.told_count(SPENT)) > 0:
        for outcomes in work.engine.evaluate(trials[:left] or study.ask(_wanted(study, left))):
            study.tell_all([(outcome.id, _as_told(study, outcome)) for outcome in outcomes])
            _test(study, work, show)
        trials = []
    _finish(study, work)
    run = Run(study.opened, directory)
    if directory is not None:
        run.plot(directory / CURVE)
    return run


def _wanted(study: Study, left: int) -> int:
    """How many trials to ask for: those until the next move, as far as the budget goes."""
    return min(max(study.until_move(), 1), left)


def _as_told(study: Study, outcome: Outcome) -> Told:
    """An outcome as a study keeps it: failed where it is not finite."""
    try:
        if outcome.trajectory is not None:
            return study.result(trajectory=outcome.trajectory)
        return study.result(outcome.value)
    except InputError:
        return Told(FAILED, note="its return was not finite")


def _test(study: Study, work: _Work, show: Show) -> None:
    """Tests the newest distribution on fresh episodes, once."""
    store, move = study.store, study.store.last_move()
    if store.test(move.id) is not None:
        return
    rho = study.opened.rho(store.newest().numbers)
    found = work.tests.search(work.key(move.id), rho)
    test = Test(move.id, *found, time.perf_counter() - work.began)
    with store.writing():
        store.add_test(test)
    show(step_of(move, np.asarray(rho.std), store.told_count(SPENT), test))


def _finish(study: Study, work: _Work) -> None:
    """Writes what was learned and what it is worth."""
    keys = jax.random.split(work.key(LAST))
    found = work.tests.both(keys, study.opened.rho(study.store.newest().numbers))
    with study.store.writing():
        study.store.note(
            FINISHED,
            {
                **{key: value._asdict() for key, value in found._asdict().items()},
                "wall_s": time.perf_counter() - work.began,
            },
        )

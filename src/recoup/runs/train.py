"""`recoup.train`, `resume` and `evaluate`: a study that a loop asks, rolls out and tells."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from recoup.checks import AT_ONCE, InputError, check_count, check_path
from recoup.core.types import Given, Plain, Rho, Settings
from recoup.engine.methods import DEFAULT_METHOD, Method, own_parts
from recoup.runs.callbacks import check_callbacks
from recoup.runs.directory import (
    alone_in,
    current_directory,
    new_run_in,
    note_budget,
    refuse_existing,
    study_in,
)
from recoup.runs.engines import check_engine, engine_of, engine_settings, stored_engine
from recoup.runs.fresh import FRESH, EngineTests, Evaluated
from recoup.runs.kept import LAST, chosen_move
from recoup.runs.learning import Display, Show, learn, put_right, rolling, work_of
from recoup.runs.plan import (
    OF_THE_TASK,
    Plan,
    Wanted,
    check_seed,
    extended_by,
    plan_of,
    stored_plan,
    study_settings,
)
from recoup.runs.problem import Problem, again, check_given
from recoup.runs.run import SPENT, Run, load
from recoup.store.place import settled
from recoup.study.run.ends import EXTENDED, end_of
from recoup.study.study import Study
from recoup.tasks.task import Task


def train(
    task: Given,
    method: str | Method = DEFAULT_METHOD,
    *,
    episodes: int | None = None,
    iterations: int | None = None,
    batch: int | None = None,
    seed: int = 0,
    mean: Given = None,
    std: Given = None,
    horizon: int | None = None,
    discount: float | None = None,
    options: Settings | None = None,
    policy: Given = None,
    policy_options: Settings | None = None,
    episodes_per_trial: int | None = None,
    warm_up: int | None = None,
    normalize: bool | None = None,
    dim: int | None = None,
    params: Given = None,
    engine: str | None = None,
    workers: int | None = None,
    sync: bool | None = None,
    timeout: float | None = None,
    retries: int | None = None,
    address: str | None = None,
    test_episodes: int | None = None,
    test_all: bool = False,
    keep_every: int | None = None,
    out: str | Path | None = None,
    progress: bool | Show = False,
    callbacks: Given = (),
    **settings: Given,
) -> Run:
    """Learns `task` by `method` and measures the result on fresh episodes; it gives a `Run`.

    `task` is one of ours by name (`recoup tasks`), a Gymnasium id, a function that makes an
    environment, `"module:callable"`, an environment in JAX; or a function of theta, which needs
    `dim`, or of named parameters, which needs `params` as `recoup.Study.open` takes them. `method`
    is a name of `recoup.METHODS`, a `recoup.Method` or a mover of yours.

    `episodes` or `iterations` is the budget (30 iterations unless said), `batch` the trials of one
    iteration (unless said, half of 4 + 3 ln D, four at least; of methods that follow a gradient the
    task's own, or about 4 + 3 ln D). All randomness follows from `seed`. `mean` and `std` are the
    start, numbers or `[D]` (in action space mu `[D]` and sigma `[A]`); on our tasks a mean of None
    is drawn from N(0, I), as in the paper, on others it is zero, and deviations follow the policy's
    fan-in. `horizon` is how many steps an episode has at most, and rewards lose `discount` with
    each step, both the task's own unless said. `options` are the task's own: `{"features": "raw"}`
    for a reaching task, what an environment's constructor takes for one of yours.
    `episodes_per_trial` episodes make one result, their mean.

    `policy` is `"linear"`, `"kernels"` or `"mlp"`, with `policy_options`; a module of Flax, Equinox
    or PyTorch; or an object with `parameters` and `act(theta, observation)`. `warm_up` episodes
    before the search give what `normalize=True` needs, or the centres of kernels.

    `engine` is `"serial"`, `"process"` or `"ray"` (whose cluster is at `address`) with so many
    `workers`: a new trial starts as soon as one is free, unless `sync=True` waits for the batch. A
    trial that fails, or takes longer
    than `timeout` seconds, is tried again `retries` times (once unless said).

    `out` is a directory to write the run to; it must not exist. Of an environment it gets the
    newest policy, `policy.npz`, and in `policies/` the best and every tenth (`keep_every`; 0 keeps
    none). `progress=True` shows a live
    display; a function gets every `HistoryRow`. `callbacks` hear of results, moves and checkpoints.
    `settings` replace those of the method's row, for instance `window=3`; of a method that follows
    a gradient (`"mis-pgpe-ob"`) also `epsilon=0.5` or `mirrored=True`, and `family`, `weighting`,
    `baseline`, `direction` and `update` take a word or an object of yours.

    On our tasks the points of the curve are measured on test episodes, which teach the search
    nothing: after each of the first ten iterations, every second up to 20, every fourth up to 40
    and so on, and after the last; `test_all=True` tests after every one. On others the curve is
    made of the trials themselves, and only the end is tested, with `test_episodes` (20) each of the
    search distribution and its mean policy.

    Raises `InputError` for a task, a method or a setting that cannot be used, and where `out` is
    there already; `Broken` where no trial of the task can be rolled out.

    >>> run = recoup.train(throw, dim=2, episodes=20, seed=1)
    >>> run.episodes, run.finished
    (20, True)
    """
    given, here = locals(), current_directory()  # before the task is made, which may change it
    directory = None if out is None else settled(check_path("out", out))
    if out is not None:
        refuse_existing(Path(out))
    elif keep_every is not None:
        raise InputError("keep_every is for policies in a run directory: give one with out=...")
    how = {key: given[key] for key in OF_THE_TASK if given[key] is not None}
    named = {"engine": engine, "workers": workers, "sync": sync, "timeout": timeout}
    engines = engine_settings(**named, retries=retries, address=address)
    budget = (episodes, iterations, batch, seed, mean, std)
    tests = (test_episodes, test_all)
    wanted = Wanted(task, method, *budget, settings, how, *tests, engines, keep_every)
    listeners = check_callbacks(callbacks)
    plan, problem = plan_of(wanted)
    check_engine(problem, engines)
    with _precise(problem):
        start = _start(plan, problem)  # may refuse: nothing shown yet
        made = study_settings(plan, problem, start, how.get("params"))
        with (
            rolling(plan, problem, here) as rolls,  # so may workers
            new_run_in(directory, plan) as path,
            _shown(plan, progress) as display,
            _closed_if_stopped(Study.create(path, made, own_parts(plan.settings))) as study,
            work_of(study, plan, problem, rolls, directory, display, listeners) as work,
        ):
            return learn(study, work)


def resume(
    run: "str | Path | Run",
    *,
    iterations: int | None = None,
    episodes: int | None = None,
    progress: bool | Show = False,
    callbacks: Given = (),
    task: Given = None,
    policy: Given = None,
    engine: Settings | None = None,
    **parts: Given,
) -> Run:
    """Goes on with a run after any stop; it ends as if it had never stopped.

    `run` is its directory, or a `Run`. Everything is in the run's study: what was told, and where
    the distribution has moved. A run that is finished is given as it is, with files beside it that
    follow from its study (others are written again), unless `iterations` or `episodes` give it a
    larger budget: then it goes on to that many in all, from what it has; or results were amended
    since: then what follows from them is tested and written again, and no rollout is spent but
    those of tests. `task` and `policy` are those of the run, where only Python can give them; so
    are `parts`, those of its method (`update=optax.adam(0.1)`). `engine` holds other settings of
    the engine: `{"engine": "process", "workers": 4}`. `progress` and `callbacks` are as `train`
    takes them.

    Raises `InputError` where there is no run, another process works on it, or the task is needed
    and cannot be found.

    >>> longer = recoup.resume("runs/throw", iterations=6, task=throw)
    >>> longer.history[-1].iteration
    6
    """
    directory, here = _directory_of(run), current_directory()
    given = None if engine is None else engine_settings(**engine)
    listeners = check_callbacks(callbacks)
    with alone_in(directory), _study_of(run, parts) as study:
        before = stored_plan(study.opened)
        plan = extended_by(before, iterations, episodes, study.store.count(SPENT, told=True))
        if end_of(study.opened) is not None and plan == before:
            known = any(one is not None for one in (task, policy, _held(run, task)))
            problem = _problem(run, plan, study, task, policy) if known else None
            with _precise(problem):
                return put_right(study, directory, problem)
        study.opened.check_whole()
        chosen = stored_engine(plan.engine) if given is None else given
        plan = replace(plan, engine=chosen)
        problem = _problem(run, plan, study, task, policy)
        with (
            _precise(problem),
            rolling(plan, problem, here) as rolls,
            _shown(plan, progress) as display,
            work_of(study, plan, problem, rolls, directory, display, listeners) as work,
        ):
            _note_budget(study, directory, plan)  # last: whatever refuses has changed nothing
            return learn(study, work)


def _directory_of(run: "str | Path | Run") -> Path | None:
    """Where a run lies, whatever directory is changed to; None where it is in memory."""
    if isinstance(run, Run):
        return run.out
    study_in(run)
    return settled(Path(run))


@contextmanager
def _study_of(run: "str | Path | Run", parts: Plain) -> Iterator[Study]:
    """The study of a run, open; one of a file is closed again where something stops it."""
    if isinstance(run, Run):
        if run.out is None:
            yield run.study
            return
        parts, run = {**run.parts, **parts}, run.out
    with _closed_if_stopped(Study.open(study_in(run), **parts)) as study:
        yield study


def _held(run: "str | Path | Run", task: Given) -> Problem | None:
    """The task that a run of this process holds, unless another is given."""
    return run.problem if isinstance(run, Run) and task is None else None


def _problem(
    run: "str | Path | Run", plan: Plan, study: Study, task: Given, policy: Given
) -> Problem:
    """The task of a run, once what was given is what it was made with."""
    held = _held(run, task)
    if held is None:
        return again(plan, study.dim, study.names, task, policy)
    if policy is not None:
        check_given(plan, study.dim, policy)
    return held


def _note_budget(study: Study, directory: Path | None, plan: Plan) -> None:
    """Writes the budget of a run, where it is another than before."""
    if plan.trials != stored_plan(study.opened).trials:
        with study.store.writing():
            study.store.note(EXTENDED, {"iterations": plan.iterations, "spare": plan.spare})
    if directory is not None:
        note_budget(directory, plan.iterations, plan.spare)


def evaluate(
    run: "str | Path | Run",
    *,
    episodes: int | None = None,
    seed: int = 0,
    task: Given = None,
    policy: Given = None,
    which: str | int = LAST,
) -> Evaluated:
    """Expected returns of a run's search distribution and of its mean policy, on fresh episodes.

    `run` is a directory or a `Run`. As many `episodes` as the run was tested with, unless said;
    none of them is one that the run has seen: they follow from `seed`. `task` and `policy` are
    those of the run, where only Python can give them. `which` is "last", "best" (the highest point
    of the curve, judged here by others) or the number of a move. It gives an `Evaluated`.

    Raises `InputError` where there is no run, or its task cannot be found.

    >>> found = recoup.evaluate(run, episodes=30, seed=1)
    >>> found.return_mean_policy.episodes
    30
    """
    run = run if isinstance(run, Run) else load(run, task=task, policy=policy)
    count = run.plan.test_episodes
    if episodes is not None:
        count = check_count("episodes", episodes, 2, AT_ONCE)
    seed = check_seed(seed)
    problem, rho = run.task, _rho_of(run, which)
    with _precise(problem):
        if isinstance(problem, Task):
            from recoup.runs.in_jax import TaskTests

            return TaskTests(run.plan, problem, count).both(FRESH, rho, seed)
        engine, _ = engine_of(problem, {}, 1, 1)
        try:
            return EngineTests(run.study.opened, engine, count).both(FRESH, rho, seed)
        finally:
            engine.close()


def _rho_of(run: Run, which: str | int) -> Rho:
    """The distribution after one of a run's moves."""
    if which == LAST:
        return run.rho
    opened = run.study.opened
    move = opened.store.moves()[chosen_move(run.history, which)]
    return opened.rho(opened.store.proposal(move.proposal).numbers)


def _start(plan: Plan, problem: Problem) -> Rho:
    """The means that a run starts from; None where named parameters have their own."""
    if plan.mean is not None or plan.own:
        return plan.mean
    from recoup.runs.in_jax import drawn_start

    return drawn_start(plan, problem.dim)


@contextmanager
def _precise(problem: Problem | None) -> Iterator[None]:
    """A task in JAX is rolled out in 64 bits; one of the user's own as that process is set."""
    if not isinstance(problem, Task):
        yield
        return
    from recoup.runs.in_jax import in_double

    with in_double():
        yield


@contextmanager
def _closed_if_stopped(study: Study) -> Iterator[Study]:
    """Leaves one whole file behind, whatever stops a run."""
    try:
        yield study
    except BaseException:
        study.close()
        raise


@contextmanager
def _shown(plan: Plan, progress: bool | Show) -> Iterator[Display]:
    if progress is True:
        from recoup.runs.progress import live

        with live(plan) as display:
            yield display
    else:
        yield Display(progress or (lambda step: None), lambda load: None)

"""`recoup.train`, `resume` and `evaluate`: whole runs on the built-in tasks."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from recoup.checks import InputError, check_count, check_finite, check_stds, check_vector
from recoup.core.pareto import pareto_k
from recoup.core.families.gaussian import Rho
from recoup.engine.methods import DEFAULT_METHOD, METHODS, method_row, settings_of
from recoup.runs.history import AGES, Evaluated, Measured, Plan, Step
from recoup.runs.directory import CURVE, RunFile
from recoup.runs.run import Run, load
from recoup.engine.search import Search, SearchInfo, SearchState, search
from recoup.store.rows import Told
from recoup.tasks.registry import Task, TaskRow, make_task, task_row
from recoup.core.families.trajectory import Episodes, Trajectory, discounted_rewards

DEFAULT_ITERATIONS = 30
FRESH = 2**31 - 1  # of the keys of an evaluation, apart from those of any run


def train(
    task: str,
    method: str = DEFAULT_METHOD,
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
    progress: bool | Callable[[Step], None] = False,
    **settings: Any,
) -> Run:
    """Learns `task` by `method` and measures the result on fresh episodes.

    `episodes` or `iterations` is the budget (30 iterations unless said), `batch` the rollouts of
    one iteration (the task's own unless said). `mean` and `std` are the start, numbers or `[D]`
    (in action space mu `[D]` and sigma `[A]`); a mean of None is drawn from N(0, I), as in the
    paper. `options` are the task's own, for instance
    `{"features": "raw"}` for a reaching task. `out` is a directory to write the run to;
    it must not exist. `progress=True` shows a live display; a function gets every `Step`.
    `settings` replace those of the method's row, for instance `epsilon=0.5` or `mirrored=True`.
    The archive has room for the whole run from the start, and every iteration passes over it.

    Test episodes, drawn anew after every iteration for the curve, teach the search nothing.
    """
    plan, problem = _plan(
        task,
        method,
        episodes,
        iterations,
        batch,
        seed,
        mean,
        std,
        horizon,
        discount,
        options or {},
        settings,
    )
    directory = None if out is None else Path(out)
    if directory is not None:
        RunFile.refuse_existing(directory)
    work = _work(plan, problem)
    with _shown(plan, progress) as show, jax.enable_x64(True):
        state = work.method.init(work.key_start, plan.mean, np.asarray(plan.std))
        first = _step(plan, 0, state.rho, work.tested(0, state.rho), None, None, work.began)
        file = RunFile.create(directory, plan, problem.actions, *_host(state.rho), first)
        with _closed_if_stopped(file):
            show(first)
            return _go_on(work, file, state, [first], show)


def resume(
    run: str | Path,
    *,
    progress: bool | Callable[[Step], None] = False,
    update: Any = None,
) -> Run:
    """Goes on with a run after any stop; it ends as if it had never stopped.

    The search's state is made again from the results in the run's study. A run that is finished is
    given as it is. `update` is the update rule again, where it was given in Python.
    """
    file = RunFile.open(run)
    with _closed_if_stopped(file):
        if file.result() is not None:
            return Run(file)
        plan = file.plan(update)
        problem = make_task(plan.task, plan.horizon, plan.discount, **plan.options)
        work = _work(plan, problem)
        with _shown(plan, progress) as show, jax.enable_x64(True):
            state, history = _caught_up(work, file)
            work = work._replace(began=work.began - history[-1].wall_s)
            show(history[-1])
            return _go_on(work, file, state, history, show)


def evaluate(run: "str | Path | Run", *, episodes: int | None = None, seed: int = 0) -> Evaluated:
    """Expected returns of a run's search distribution and of its mean policy, on fresh episodes.

    As many `episodes` as the run was tested with, unless said; none of them is one that the run
    has seen.
    """
    run = run if isinstance(run, Run) else load(run)
    count = run.plan.test_episodes if episodes is None else check_count("episodes", episodes, 2)
    seed = check_count("seed", seed, least=0)
    with jax.enable_x64(True):
        test = fresh_returns(run.task, run.plan.settings.space, count)
        if run.task.traced:
            test = jax.jit(test)
        rho = Rho(jnp.asarray(run.mean), jnp.asarray(run.std))
        at_mean = Rho(rho.eta, jnp.zeros_like(rho.tau))
        keys = jax.random.split(jax.random.fold_in(jax.random.key(seed), FRESH))
        return Evaluated(measured(test(keys[0], rho)), measured(test(keys[1], at_mean)))


def _plan(
    task: str,
    method: str,
    episodes: int | None,
    iterations: int | None,
    batch: int | None,
    seed: int,
    mean: Any,
    std: Any,
    horizon: int | None,
    discount: float | None,
    options: dict[str, Any],
    settings: dict[str, Any],
) -> tuple[Plan, Task]:
    row = task_row(task)
    resolved = method_row(method, **{**task_settings(row, method), **settings})
    batch = row.batch if batch is None else check_count("batch", batch)
    iterations = _iterations(episodes, iterations, batch)
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or not 0 <= seed < 2**32:
        raise InputError(f"seed must be a whole number in 0..{2**32 - 1}, got {seed!r}.")
    problem = make_task(task, horizon, discount, **options)
    check_vector("mean", 0.0 if mean is None else mean, problem.dim)
    check_finite("mean", 0.0 if mean is None else mean)
    in_actions = resolved.space == "actions"
    check_vector("std", std, problem.actions if in_actions else problem.dim, "DA"[in_actions])
    check_stds("std", std)
    plan = Plan(
        task=row.name,
        method=resolved.name,
        seed=int(seed),
        iterations=iterations,
        batch=batch,
        horizon=problem.horizon,
        discount=problem.discount,
        options={k: v.tolist() if hasattr(v, "tolist") else v for k, v in options.items()},
        mean=None if mean is None else np.asarray(mean, np.float64).tolist(),
        std=np.asarray(std, np.float64).tolist(),
        test_episodes=row.test_episodes,
        settings=resolved,
    )
    return plan, problem


def task_settings(row: TaskRow, method: str) -> dict[str, Any]:
    """The settings that a task asks of a method, where it has them."""
    return {"epsilon": row.epsilon} if "epsilon" in settings_of(method) else {}


def _iterations(episodes: int | None, iterations: int | None, batch: int) -> int:
    if episodes is not None and iterations is not None:
        raise InputError("give episodes or iterations, not both.")
    if episodes is None:
        return check_count("iterations", DEFAULT_ITERATIONS if iterations is None else iterations)
    whole, rest = divmod(check_count("episodes", episodes), batch)
    if rest:
        near = f"{whole * batch} or {(whole + 1) * batch}" if whole else f"{batch}"
        raise InputError(
            f"episodes must be a multiple of the batch of {batch}, got {episodes}: use {near}."
        )
    return whole


class _Work(NamedTuple):
    """What a run is made with: its stages, compiled as far as the task allows, and its keys."""

    plan: Plan
    problem: Task
    method: Search
    roll: Callable[[Array, Any], tuple[Any, ...]]
    test: Callable[[Array, Rho], Array]
    key_start: Array
    key_run: Array
    key_test: Array
    began: float

    def tested(self, i: int, rho: Rho) -> Measured:
        """What fresh episodes say about the distribution after iteration `i`."""
        return measured(self.test(jax.random.fold_in(self.key_test, i), rho))


def _work(plan: Plan, problem: Task) -> _Work:
    resolved = {name: getattr(plan.settings, name) for name in settings_of(plan.method)}
    method = search_of(problem, plan.method, plan.batch, plan.iterations, resolved)
    test = fresh_returns(problem, plan.settings.space, plan.test_episodes)
    roll: Callable[[Array, Any], tuple[Any, ...]] = partial(roll_out, problem)
    if problem.traced:
        roll, test = jax.jit(roll), jax.jit(test)
    start, run, tests = jax.random.split(jax.random.key(plan.seed), 3)
    return _Work(plan, problem, method, roll, test, start, run, tests, time.perf_counter())


@contextmanager
def _closed_if_stopped(file: RunFile) -> Iterator[None]:
    """Leaves one whole file behind, whatever stops a run."""
    try:
        yield
    except BaseException:
        file.file.close()
        raise


@contextmanager
def _shown(plan: Plan, progress: bool | Callable[[Step], None]) -> Iterator[Callable[[Step], None]]:
    if progress is True:
        from recoup.runs.progress import live

        with live(plan) as show:
            yield show
    else:
        yield progress or (lambda step: None)


def _go_on(
    work: _Work,
    file: RunFile,
    state: SearchState,
    history: list[Step],
    show: Callable[[Step], None],
) -> Run:
    """The rest of a run, from the state after `history`, and what it has learned."""
    plan, began = work.plan, work.began
    for i in range(len(history), plan.iterations + 1):
        state, info, put = _iterate(work, file, i, state)
        tested = work.tested(i, state.rho)
        step = _step(plan, i, state.rho, tested, info, put.returns, began)
        put.write(step, *_host(state.rho), ages(weight_by_age(i, np.asarray(info.weights))))
        history.append(step)
        show(step)
    keys = jax.random.split(jax.random.fold_in(work.key_test, plan.iterations + 1))
    at_mean = Rho(state.rho.eta, jnp.zeros_like(state.rho.tau))
    file.finish(
        {
            "return_search": measured(work.test(keys[0], state.rho))._asdict(),
            "return_mean_policy": measured(work.test(keys[1], at_mean))._asdict(),
            "wall_s": time.perf_counter() - began,
        }
    )
    run = Run(file)
    if file.directory is not None:
        run.plot(file.directory / CURVE)
    return run


class _Put(NamedTuple):
    """The returns of an iteration, and what writes the move that they make."""

    returns: np.ndarray
    write: Callable[..., None]


def _iterate(
    work: _Work, file: RunFile, i: int, state: SearchState
) -> tuple[SearchState, SearchInfo, _Put]:
    """One iteration: ask, roll out, tell.

    Tasks in JAX roll out a batch at once, and are written with the move; others are written episode
    by episode, and an episode that is there already is not rolled out again.
    """
    key_ask, key_roll, key_tell = jax.random.split(jax.random.fold_in(work.key_run, i), 3)
    asked, state = work.method.ask(key_ask, state)
    theta, seeds = _trials(key_roll, asked, work.plan.batch)
    if work.problem.traced or file.directory is None:
        told = work.roll(key_roll, asked)
        results = _results(file, told)
        write: Callable[..., None] = partial(file.add_iteration, theta, seeds, results)
    else:
        file.add_trials(i, theta, seeds)
        told = _one_by_one(work, file, i, key_roll, asked)
        write = file.add_move
    returns = np.asarray(returns_of(work.problem, told))
    state, info = work.method.tell(key_tell, state, *told)
    return state, info, _Put(returns, write)


def _one_by_one(work: _Work, file: RunFile, i: int, key: Array, asked: Any) -> tuple[Any, ...]:
    """What `tell` takes, each episode on disk before the next begins."""
    known = file.told(i)
    for j, number in enumerate(file.ids(i)):
        if number not in known:
            file.add_result(number, _results(file, roll_one(work.problem, key, asked, j))[0])
    return _as_told(file, i, asked)


def _as_told(file: RunFile, i: int, asked: Any) -> tuple[Any, ...]:
    """What `tell` takes, from the results of iteration `i` in the run's study."""
    known = file.told(i)
    if not isinstance(asked, Episodes):
        return jnp.asarray(asked), jnp.asarray([known[number][0] for number in file.ids(i)])
    samples = file.shape.arrays(file.batch)
    samples[3][:] = 1
    for j, number in enumerate(file.ids(i)):
        trajectory = known[number][1]
        if trajectory is None:
            samples[2][j] = np.nan  # failed
            continue
        samples[3][j], parts = trajectory
        for array, part in zip(samples[:3], parts, strict=True):
            array[j, : len(part)] = part
    return (Trajectory(*(jnp.asarray(x) for x in samples)),)


def _results(file: RunFile, told: tuple[Any, ...]) -> list[Told]:
    """Results as the study keeps them."""
    if not isinstance(told[0], Trajectory):
        return [file.as_told(value) for value in np.asarray(told[1])]
    arrays = [np.asarray(x) for x in told[0]]
    return [file.as_told(0.0, Trajectory(*(x[j] for x in arrays))) for j in range(len(arrays[0]))]


def _trials(key: Array, asked: Any, n: int) -> tuple[np.ndarray, list[int]]:
    """Thetas `[N, D]` and seeds of what was asked: the policy's, where it draws the actions."""
    if isinstance(asked, Episodes):
        return np.tile(np.asarray(asked.policy.eta), (n, 1)), np.asarray(asked.seeds).tolist()
    words = np.asarray(jax.random.key_data(jax.random.split(key, n)))
    return np.asarray(asked), np.ascontiguousarray(words).view(np.int64)[:, 0].tolist()


def _caught_up(work: _Work, file: RunFile) -> tuple[SearchState, list[Step]]:
    """The state after the moves that are stored, made again from their results."""
    moves = file.moves()
    start = file.settings
    state = work.method.init(work.key_start, np.array(start["mean"]), np.array(start["std"]))
    for i in range(1, len(moves.steps)):
        key_ask, _, key_tell = jax.random.split(jax.random.fold_in(work.key_run, i), 3)
        asked, state = work.method.ask(key_ask, state)
        if not isinstance(asked, Episodes):
            asked = file.theta(i)
        state, _ = work.method.tell(key_tell, state, *_as_told(file, i, asked))
        mean, std = _host(state.rho)
        if not (_close(mean, moves.mean[i]) and _close(std, moves.std[i])):
            raise InputError(
                f"move {i} of {file.file.path} comes out differently here: resume the run with the "
                "versions in its config.json."
            )
    return state, moves.steps


def _close(a: np.ndarray, b: np.ndarray) -> bool:
    return bool(np.allclose(a, b, rtol=1e-6, atol=1e-9))


def _host(rho: Rho) -> tuple[np.ndarray, np.ndarray]:
    return np.asarray(rho.eta), np.asarray(rho.tau)


def search_of(
    problem: Task, method: str, batch: int, iterations: int, settings: dict[str, Any]
) -> Search:
    """The search of a run on `problem`, with room for all of it."""
    if METHODS[method].space == "actions":
        settings = settings | {
            "horizon": problem.horizon,
            "actions": problem.actions,
            "discount": problem.discount,
        }
    return search(
        method,
        dim=problem.dim,
        batch=batch,
        capacity=iterations * batch,
        late=0,
        table=False,
        **settings,
    )


def roll_out(problem: Task, key: Array, asked: Any) -> tuple[Any, ...]:
    """What `tell` takes, for what `ask` gave: theta and returns, or trajectories.

    Of one run, or of many side by side: then the keys are `[R]`, and so is the leading axis of all.
    """
    if isinstance(asked, Episodes):
        return (_with_axes(asked.seeds.shape, problem.episodes(*_policies(asked))),)
    keys = jax.vmap(lambda one: jax.random.split(one, asked.shape[-2]))(key.reshape(-1))
    returns = problem.rollouts(keys.ravel(), asked.reshape(-1, asked.shape[-1]))
    return asked, _with_axes(asked.shape[:-1], returns)


def roll_one(problem: Task, key: Array, asked: Any, j: int) -> tuple[Any, ...]:
    """Episode `j` of what `roll_out` rolls out, alone, with a leading axis of one."""
    if isinstance(asked, Episodes):
        keys, policies = _policies(asked)
        one = jax.tree.map(lambda x: x[j : j + 1], policies)
        return (problem.episodes(keys[j : j + 1], one),)
    keys = jax.random.split(key, asked.shape[0])
    return asked[j : j + 1], problem.rollouts(keys[j : j + 1], asked[j : j + 1])


def _policies(asked: Episodes) -> tuple[Array, Rho]:
    """The key and the policy of every episode, in one row."""
    each = asked.seeds.shape[-1]
    policies = [jnp.repeat(x.reshape(-1, x.shape[-1]), each, axis=0) for x in asked.policy]
    return jax.vmap(jax.random.key)(asked.seeds.ravel()), Rho(*policies)


def _with_axes(lead: tuple[int, ...], rows: Any) -> Any:
    return jax.tree.map(lambda x: x.reshape(lead + x.shape[1:]), rows)


def returns_of(problem: Task, told: tuple[Any, ...]) -> Array:
    """Returns `[N]`, or `[R, N]`, of what was told."""
    if isinstance(told[0], Trajectory):
        discounted = partial(discounted_rewards, problem.discount)
        for _ in told[0].rewards.shape[:-1]:
            discounted = jax.vmap(discounted)
        return jnp.sum(discounted(told[0]), axis=-1)
    return told[1]


def fresh_returns(problem: Task, space: str, episodes: int) -> Callable[[Array, Rho], Array]:
    """`test(key, rho) -> returns [episodes]` of fresh policies drawn from rho, an episode each.

    In action space rho is the policy, and its actions are drawn. With keys `[R]` and rho of many
    runs, `[R, episodes]`.
    """
    draw = jax.jit(partial(_fresh, problem.dim, space, episodes))

    def test(key: Array, rho: Rho) -> Array:
        key_roll, asked = (jax.vmap(draw) if key.ndim else draw)(key, rho)
        return returns_of(problem, roll_out(problem, key_roll, asked))

    return test


def _fresh(dim: int, space: str, episodes: int, key: Array, rho: Rho) -> tuple[Array, Any]:
    """What to roll out in a test of rho, and the key to do it with."""
    key_draw, key_roll = jax.random.split(key)
    if space == "actions":
        return key_roll, Episodes(rho, jax.random.bits(key_roll, (episodes,), jnp.uint32))
    noise = jax.random.normal(key_draw, (episodes, dim), rho.eta.dtype)
    return key_roll, rho.eta + rho.tau * noise


def measured(returns: Any) -> Measured:
    """Mean and standard error of the returns of fresh episodes.

    Implements: zhao2013 S2.1 J(theta) at one policy, by Monte Carlo; over policies drawn from rho,
    the expected return of rho.
    """
    returns = np.asarray(returns)
    return Measured(
        float(returns.mean()), float(returns.std(ddof=1) / np.sqrt(returns.size)), returns.size
    )


def weight_by_age(iteration: int, weights: np.ndarray) -> list[float]:
    """Shares of the total weight `[B, N]` by age: this iteration's batch first, then back."""
    by_block, newest = weights.sum(1), (iteration - 1) % len(weights)
    back = [(newest - age) % len(weights) for age in range(min(iteration, len(weights)))]
    total = by_block.sum()
    return (by_block[back] / total).tolist() if total > 0 else []


def ages(shares: Sequence[float]) -> list[float]:
    """Shares of the weight by `AGES`, from those of each batch, this iteration's first."""
    return [float(sum(shares[low:high])) for low, high in AGES]


def _step(
    plan: Plan,
    i: int,
    rho: Rho,
    tested: Measured,
    info: SearchInfo | None,
    returns: Any,
    began: float,
) -> Step:
    step = Step(
        iteration=i,
        episodes=i * plan.batch,
        return_search=tested.mean,
        return_search_stderr=tested.stderr,
        std_min=float(rho.tau.min()),
        std_max=float(rho.tau.max()),
        wall_s=time.perf_counter() - began,
    )
    if info is None:
        return step
    finite = np.asarray(returns)[np.isfinite(returns)]
    return replace(
        step,
        batch_return=float(finite.mean()) if finite.size else float("nan"),
        failed=int(info.failed),
        objective=float(info.objective),
        objective_stderr=float(info.objective_stderr),
        samples=int(info.samples),
        ess=float(info.ess) * (2 if plan.settings.mirrored else 1),  # which counts pairs
        max_weight=float(info.max_weight),
        pareto_k=pareto_k(info.weights),
        kl=float(info.kl),
        flatten=None if info.flatten is None else float(info.flatten),
    )

"""`recoup.train`: a whole run on one of the built-in tasks, from start to measured result."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from recoup.checks import InputError, check_count, check_finite, check_stds, check_vector
from recoup.diagnostics import pareto_k
from recoup.families import Rho
from recoup.methods import DEFAULT_METHOD, METHODS, method_row, settings_of
from recoup.records import Curve, Measured, Move, Plan, Step
from recoup.rundir import CURVE, RunDirectory
from recoup.searches import Search, SearchInfo, SearchState, search
from recoup.tasks import Task, TaskRow, make_task, task_row
from recoup.trajectories import Episodes, Trajectory, discounted_rewards

DEFAULT_ITERATIONS = 30


@dataclass(frozen=True)
class Run:
    """A finished run: what was learned, how it went, and what it is worth."""

    plan: Plan
    mean: np.ndarray
    std: np.ndarray
    history: list[Step]
    return_search: Measured
    return_mean_policy: Measured
    wall_s: float
    out: Path | None
    task: Task = field(repr=False)

    @property
    def curve(self) -> Curve:
        """Expected return after each iteration, the start included."""
        columns = zip(
            *((s.episodes, s.return_search, s.return_search_stderr) for s in self.history),
            strict=True,
        )
        return Curve(*(np.array(column) for column in columns))

    def policy(self, observation: Any) -> np.ndarray:
        """The action of the mean policy, the one to deploy."""
        return self.task.act(self.mean, observation)

    def plot(self, path: str | Path | None = None) -> Any:
        """The learning curve as a matplotlib figure, saved to `path` if one is given."""
        from recoup.plots import learning_curve

        plan = self.plan
        title = f"{plan.task} · {plan.method} · batch {plan.batch} · seed {plan.seed}"
        columns = ("episodes", "samples", "ess", "max_weight")
        moves = {
            key: np.array([getattr(step, key) for step in self.history[1:]]) for key in columns
        }
        figure = learning_curve(title, self.curve, self.return_mean_policy, moves)
        if path is not None:
            figure.savefig(path, dpi=150)
        return figure

    def summary(self) -> dict[str, Any]:
        """The run in a few words, as `recoup train --json` prints it."""
        return {
            "task": self.plan.task,
            "method": self.plan.method,
            "seed": self.plan.seed,
            "episodes": self.plan.iterations * self.plan.batch,
            "iterations": self.plan.iterations,
            "batch": self.plan.batch,
            "return_search": self.return_search._asdict(),
            "return_mean_policy": self.return_mean_policy._asdict(),
            "mean": self.mean.tolist(),
            "std": self.std.tolist(),
            "wall_s": self.wall_s,
            "run": None if self.out is None else str(self.out),
        }


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
    resolved = {name: getattr(plan.settings, name) for name in settings_of(method)}
    method_search = search_of(problem, method, plan.batch, plan.iterations, resolved)
    directory = None if out is None else RunDirectory.create(Path(out), plan)
    if progress is True:
        from recoup.progress import live

        with live(plan) as show:
            return _run(plan, problem, method_search, directory, show)
    return _run(plan, problem, method_search, directory, progress or (lambda step: None))


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


def _run(
    plan: Plan,
    problem: Task,
    method: Search,
    directory: RunDirectory | None,
    show: Callable[[Step], None],
) -> Run:
    started = time.perf_counter()
    with jax.enable_x64(True):
        iterate = _iteration(problem, method)
        test = fresh_returns(problem, plan.settings.space, plan.test_episodes)
        if problem.traced:
            iterate, test = jax.jit(iterate, donate_argnums=1), jax.jit(test)
        key_start, key_run, key_test = jax.random.split(jax.random.key(plan.seed), 3)
        state = method.init(key_start, plan.mean, np.asarray(plan.std))
        history: list[Step] = []
        for i in range(plan.iterations + 1):
            info, returns = None, None
            if i > 0:
                state, info, returns = iterate(jax.random.fold_in(key_run, i), state)
            tested = measured(test(jax.random.fold_in(key_test, i), state.rho))
            history.append(_step(plan, i, state.rho, tested, info, returns))
            show(history[-1])
            if directory is not None:
                directory.add(history[-1], _move(i, state.rho, info))
        keys = jax.random.split(jax.random.fold_in(key_test, plan.iterations + 1))
        at_mean = Rho(state.rho.eta, jnp.zeros_like(state.rho.tau))
        run = Run(
            plan=plan,
            mean=np.asarray(state.mean),
            std=np.asarray(state.std),
            history=history,
            return_search=measured(test(keys[0], state.rho)),
            return_mean_policy=measured(test(keys[1], at_mean)),
            wall_s=time.perf_counter() - started,
            out=None if directory is None else directory.path,
            task=problem,
        )
    if directory is not None:
        directory.finish(run.summary())
        run.plot(directory.path / CURVE)
    return run


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


def _iteration(
    problem: Task, method: Search
) -> Callable[[Array, SearchState], tuple[SearchState, SearchInfo, Array]]:
    def iterate(key: Array, state: SearchState) -> tuple[SearchState, SearchInfo, Array]:
        key_ask, key_roll, key_tell = jax.random.split(key, 3)
        asked, state = method.ask(key_ask, state)
        told = roll_out(problem, key_roll, asked)
        state, info = method.tell(key_tell, state, *told)
        return state, info, returns_of(problem, told)

    return iterate


def roll_out(problem: Task, key: Array, asked: Any) -> tuple[Any, ...]:
    """What `tell` takes, for what `ask` gave: theta and returns, or trajectories.

    Of one run, or of many side by side: then the keys are `[R]`, and so is the leading axis of all.
    """
    if isinstance(asked, Episodes):
        return (_with_axes(asked.seeds.shape, problem.episodes(*_one_by_one(asked))),)
    keys = jax.vmap(lambda one: jax.random.split(one, asked.shape[-2]))(key.reshape(-1))
    returns = problem.rollouts(keys.ravel(), asked.reshape(-1, asked.shape[-1]))
    return asked, _with_axes(asked.shape[:-1], returns)


def _one_by_one(asked: Episodes) -> tuple[Array, Rho]:
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


def _move(i: int, rho: Rho, info: SearchInfo | None) -> Move:
    shares: list[float] = [] if info is None else weight_by_age(i, np.asarray(info.weights))
    return Move(i, np.asarray(rho.eta).tolist(), np.asarray(rho.tau).tolist(), shares)


def weight_by_age(iteration: int, weights: np.ndarray) -> list[float]:
    """Shares of the total weight `[B, N]` by age: this iteration's batch first, then back."""
    by_block, newest = weights.sum(1), (iteration - 1) % len(weights)
    back = [(newest - age) % len(weights) for age in range(min(iteration, len(weights)))]
    total = by_block.sum()
    return (by_block[back] / total).tolist() if total > 0 else []


def _step(
    plan: Plan, i: int, rho: Rho, tested: Measured, info: SearchInfo | None, returns: Any
) -> Step:
    step = Step(
        iteration=i,
        episodes=i * plan.batch,
        return_search=tested.mean,
        return_search_stderr=tested.stderr,
        std_min=float(rho.tau.min()),
        std_max=float(rho.tau.max()),
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
        ess=float(info.ess),
        max_weight=float(info.max_weight),
        pareto_k=pareto_k(info.weights),
        kl=float(info.kl),
        flatten=None if info.flatten is None else float(info.flatten),
    )

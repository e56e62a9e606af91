"""Filming the learned policy of a run."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from recoup.checks import InputError, check_finite, check_path, check_shape
from recoup.pictures.film import Film, film, film_strip, steps_plot, write_video
from recoup.runs.plan import check_seed
from recoup.runs.run import Run, load
from recoup.tasks.own.host import HostTask
from recoup.tasks.registry import make_env, make_problem, named, task_row

VIDEO, STRIP, STEPS, STEPS_PLOT = "policy.mp4", "strip.png", "steps.csv", "steps.png"
EPISODES = 20  # behind the distances and costs along the episode


def render_run(
    path: str | Path,
    *,
    seed: int = 0,
    steps: Sequence[int] | None = None,
    out: Any = None,
    task: Any = None,
    policy: Any = None,
) -> dict[str, Path]:
    """Films the mean policy of a run directory; gives the files that were written, by kind.

    `steps` are those of the film strip (six over the episode unless said). A reaching task also
    gets the hand's distance and the control cost of every step, as numbers and as a plot. `task`
    and `policy` are those of the run, where only Python can give them.
    """
    path = check_path("the run", path)
    run = load(path, task=task, policy=policy)
    plan, theta = run.plan, run.mean
    out = _writable(path if out is None else check_path("out", out))
    seed = check_seed(seed)
    check_shape(f"the mean of {path}", theta, "[D]", (run.task.dim,))
    check_finite(f"the mean of {path}", theta)
    shot = _filmed(run, seed)
    title = f"{plan.task} · {plan.method} · {run.history[-1].episodes} episodes"
    strip = film_strip(shot, title, steps)  # before anything is written: it may refuse the steps
    out.mkdir(parents=True, exist_ok=True)
    written = {"video": out / VIDEO, "strip": out / STRIP}
    write_video(shot, written["video"])
    strip.savefig(written["strip"], dpi=120)
    if not plan.own and task_row(plan.task).trace is not None:
        written |= _write_steps(run, seed, title, out)
    return written


def _filmed(run: Run, seed: int) -> Film:
    """One episode of the mean policy."""
    plan, problem = run.plan, run.task
    if not isinstance(problem, HostTask):
        if plan.own:
            raise InputError(f"{plan.task} is an environment in JAX: it has no pictures to film.")
        env = make_env(plan.task, "rgb_array", plan.horizon, **plan.options)
        act = run.policy
    else:
        env, act = _env(problem), run.learned_policy()
    try:
        return film(env, act, seed, plan.horizon)
    finally:
        env.close()


def _env(problem: HostTask) -> Any:
    """An environment that can be filmed."""
    if problem.env is None:
        raise InputError(f"{problem.name} is a function: there is nothing to film.")
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    if sys.platform == "linux" and not os.environ.get("DISPLAY"):
        os.environ.setdefault("MUJOCO_GL", "egl")
        os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
    try:
        return problem.env(render_mode="rgb_array")
    except TypeError:
        raise InputError(
            f"what makes {problem.name} must take render_mode='rgb_array', to be filmed."
        ) from None


def _write_steps(run: Run, seed: int, title: str, out: Path) -> dict[str, Path]:
    """Distance and cost of fresh episodes of the mean policy, as CSV and as a plot."""
    plan, where = run.plan, task_row(run.plan.task).trace
    assert where is not None
    keys = jax.random.split(jax.random.key(seed), EPISODES)
    problem = make_problem(plan.task, **plan.options)
    went = named(where)(problem, plan.horizon, keys, run.mean)
    rows = [
        (episode, step + 1, went.distance[episode, step], went.cost[episode, step])
        for episode in range(len(went.distance))
        for step in range(plan.horizon)
    ]
    written = {"steps": out / STEPS, "steps_plot": out / STEPS_PLOT}
    header = "episode,step,distance_m,control_cost"
    np.savetxt(written["steps"], rows, "%d,%d,%.6g,%.6g", header=header, comments="")
    unit = "deg²" if problem.cost == "angle" else "(N m)²"
    steps_plot(went.distance, went.cost, title, unit).savefig(written["steps_plot"], dpi=130)
    return written


def _writable(out: Path) -> Path:
    """`out`, once it is known that it can be written to."""
    there = next(place for place in (out, *out.absolute().parents) if place.exists())
    if not there.is_dir() or not os.access(there, os.W_OK):
        raise InputError(f"{out} cannot be written to: name another directory with --out.")
    return out

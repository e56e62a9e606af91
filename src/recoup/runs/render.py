"""Filming the learned policy of a run."""

import os
import sys
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.error import DependencyNotInstalled

from recoup.checks import InputError, check_finite, check_path, check_shape, not_installed
from recoup.core.types import Given
from recoup.outputs import Kind, Over, beginning_of, check_output, written
from recoup.pictures.film import Film, film, film_strip, steps_plot, write_video
from recoup.pictures.picture_files import FILM, PICTURE, shown_by, write_picture
from recoup.runs.plan import check_seed
from recoup.runs.run import Run, load
from recoup.store.place import settled
from recoup.tasks.engines.attempt import Raised, closed, theirs
from recoup.tasks.engines.engine import Broken
from recoup.tasks.own.host import HostTask
from recoup.tasks.registry import make_env, make_problem, named, task_row

VIDEO, STRIP, STEPS, STEPS_PLOT = "policy.mp4", "strip.png", "steps.csv", "steps.png"
RENDERED_EPISODES = 20  # of the distances and costs along the episode
HEADER = "episode,step,distance_m,control_cost"
TABLE = Kind((".csv",), lambda path: beginning_of(path).startswith(f"{HEADER}\n".encode()))
FILES = {VIDEO: FILM, STRIP: PICTURE, STEPS: TABLE, STEPS_PLOT: PICTURE}


def render_run(
    path: str | Path,
    *,
    seed: int = 0,
    steps: Sequence[int] | None = None,
    out: Given = None,
    task: Given = None,
    policy: Given = None,
    force: bool = False,
) -> dict[str, Path]:
    """Films the mean policy of a run directory; gives the files that were written, by kind.

    `steps` are those of the film strip (six over the episode unless said). A reaching task also
    gets the hand's distance and the control cost of every step, as numbers and as a plot. `task`
    and `policy` are those of the run, where only Python can give them. Older files of ours are
    replaced; with `force` any others too.
    """
    path = check_path("the run", path)
    place = path if out is None else check_path("out", out)
    out = settled(place)  # the task may change the directory
    run = load(path, task=task, policy=policy)
    plan, theta = run.plan, run.mean
    _check_writable(out)
    over = Over(force, home=out == settled(path))
    traced = not plan.own and task_row(plan.task).trace is not None
    for name in FILES if traced else (VIDEO, STRIP):
        check_output(out / name, FILES[name], over, parents=True)
    seed = check_seed(seed)
    check_shape(f"the mean of {path}", theta, "[D]", (run.task.dim,))
    check_finite(f"the mean of {path}", theta)
    shot = _filmed(run, seed)
    title = f"{plan.task} · {plan.method} · {run.history[-1].episodes} episodes"
    strip = film_strip(shot, title, steps)  # before anything is written: it may refuse the steps
    out.mkdir(parents=True, exist_ok=True)
    places = {"video": out / VIDEO, "strip": out / STRIP}
    write_video(shot, places["video"], over, policy_shown(run))
    write_picture(strip, places["strip"], 120, over, policy_shown(run))
    if traced:
        places |= _write_steps(run, seed, title, out, over)
    return places


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
        with theirs():
            return film(env, act, seed, plan.horizon)
    except Raised as wrong:
        if isinstance(wrong.__cause__, InputError):
            raise wrong.__cause__ from None
        if isinstance(wrong.__cause__, DependencyNotInstalled):
            raise _lacking(wrong.__cause__) from None
        raise Broken(f"the episode failed: {wrong.words}", wrong.trace) from wrong.__cause__
    finally:
        closed(env.close)


def _lacking(missing: DependencyNotInstalled) -> InputError:
    """What to install, where Gymnasium says that an environment needs a package for its pictures.

    It names an extra of its own, which may bring more than pictures need.
    """
    if "pygame" in str(missing):
        return not_installed("pictures of this environment need pygame", "video")
    return InputError(f"pictures of this environment need a package that is missing: {missing}")


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


def _write_steps(run: Run, seed: int, title: str, out: Path, over: Over) -> dict[str, Path]:
    """Distance and cost of fresh episodes of the mean policy, as CSV and as a plot."""
    import jax  # of a task in JAX

    plan, where = run.plan, task_row(run.plan.task).trace
    assert where is not None
    keys = jax.random.split(jax.random.key(seed), RENDERED_EPISODES)
    problem = make_problem(plan.task, **plan.options)
    went = named(where)(problem, plan.horizon, keys, run.mean)
    rows = [
        (episode, step + 1, went.distance[episode, step], went.cost[episode, step])
        for episode in range(len(went.distance))
        for step in range(plan.horizon)
    ]
    places = {"steps": out / STEPS, "steps_plot": out / STEPS_PLOT}
    with written(places["steps"], TABLE, over) as unfinished:
        np.savetxt(unfinished, rows, "%d,%d,%.6g,%.6g", header=HEADER, comments="")
    unit = "deg²" if problem.cost == "angle" else "(N m)²"
    drawn = steps_plot(went.distance, went.cost, title, unit)
    write_picture(drawn, places["steps_plot"], 130, over, policy_shown(run))
    return places


def policy_shown(run: Run) -> str:
    """The mean policy of a run in a few letters, as its films and their pictures say it."""
    return sha256(np.asarray(run.mean, float).tobytes()).hexdigest()


def is_of_before(path: Path, run: Run) -> bool:
    """Whether a film or picture that `render` made is not of a run's newest mean policy."""
    return shown_by(path) != policy_shown(run)


def _check_writable(out: Path) -> None:
    """Raises unless files can be written to a directory, which may not be there yet."""
    there = next(place for place in (out, *out.parents) if place.exists())
    if not there.is_dir() or not os.access(there, os.W_OK):
        raise InputError(f"{out} cannot be written to: name another directory with --out.")

"""Pictures that move: an episode of a policy as a video and as a film strip."""

import os
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from recoup.checks import InputError, check_count, check_finite, check_shape
from recoup.runs.directory import RunFile
from recoup.study.settings import RUN
from recoup.tasks.registry import make_env, make_problem, make_task

VIDEO, STRIP, STEPS, STEPS_PLOT = "policy.mp4", "strip.png", "steps.csv", "steps.png"
EPISODES = 20  # behind the distances and costs along the episode


class Film(NamedTuple):
    """One episode, frame by frame: the start and then every step."""

    frames: np.ndarray  # [T + 1, height, width, 3]
    rewards: np.ndarray  # [T]
    captions: list[str]  # of the frames
    fps: int


def film(env: Any, act: Callable[[Any], Any], seed: int = 0) -> Film:
    """An episode of `act(observation) -> action` in any Gymnasium environment with `rgb_array`."""
    if env.render_mode != "rgb_array":
        raise InputError('the environment must be made with render_mode="rgb_array".')
    observation, info = env.reset(seed=seed)
    frames, rewards, captions, over = [env.render()], [], [_caption(0, info)], False
    while not over:
        observation, reward, terminated, truncated, info = env.step(act(observation))
        over = terminated or truncated
        frames.append(env.render())
        rewards.append(float(reward))
        captions.append(_caption(len(rewards), info))
    fps = int(env.metadata.get("render_fps") or 30)
    return Film(np.stack(frames), np.array(rewards), captions, fps)


def render_run(
    path: str | Path, *, seed: int = 0, steps: Sequence[int] | None = None, out: Any = None
) -> dict[str, Path]:
    """Films the mean policy of a run directory; gives the files that were written, by kind.

    `steps` are those of the film strip (six over the episode unless said). A reaching task also
    gets the hand's distance and the control cost of every step, as numbers and as a plot.
    """
    path = Path(path)
    config, theta, episodes = _read(path)
    out = _writable(path if out is None else Path(out))
    seed = check_count("seed", seed, least=0)
    options = config.get("options", {})
    task = make_task(config["task"], config["horizon"], config["discount"], **options)
    check_shape(f"the mean of {path}", theta, "[D]", (task.dim,))
    check_finite(f"the mean of {path}", theta)
    env = make_env(config["task"], "rgb_array", config["horizon"], **options)
    try:
        shot = film(env, lambda observation: task.act(theta, observation), seed)
    finally:
        env.close()
    title = f"{config['task']} · {config['method']} · {episodes} episodes"
    strip = film_strip(shot, title, steps)  # before anything is written: it may refuse the steps
    out.mkdir(parents=True, exist_ok=True)
    written = {"video": out / VIDEO, "strip": out / STRIP}
    write_video(shot, written["video"])
    strip.savefig(written["strip"], dpi=120)
    if config["task"].startswith("reach"):
        written |= _write_steps(config, options, theta, seed, title, out)
    return written


def write_video(shot: Film, path: Path) -> None:
    """An H.264 video; needs no ffmpeg on the system."""
    try:
        import imageio.v2 as imageio
        import imageio_ffmpeg  # noqa: F401  (what imageio writes H.264 with)
    except ImportError:
        raise InputError("a video needs imageio: pip install 'recoup[video]'.") from None
    with warnings.catch_warnings():  # JAX warns of forks; this one becomes ffmpeg at once
        warnings.filterwarnings("ignore", "os.fork", RuntimeWarning)
        imageio.mimwrite(path, list(shot.frames), fps=shot.fps, macro_block_size=2, quality=8)


def film_strip(shot: Film, title: str, steps: Sequence[int] | None = None) -> Figure:
    """Frames side by side, what was measured under each."""
    last = len(shot.frames) - 1
    chosen = _spread(last) if steps is None else list(steps)
    for step in chosen:
        if not 0 <= step <= last:
            raise InputError(f"the steps of the film strip must lie in 0..{last}, got {step}.")
    height, width = shot.frames.shape[1:3]
    inches = 2.4
    figure = Figure(
        figsize=(inches * len(chosen), inches * height / width + 0.6), layout="compressed"
    )
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    for axes, step in zip(figure.subplots(1, len(chosen), squeeze=False)[0], chosen, strict=True):
        axes.imshow(shot.frames[step])
        axes.set_xlabel(shot.captions[step], fontsize=10)
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set_visible(False)
    return figure


def steps_plot(distance: np.ndarray, cost: np.ndarray, title: str, unit: str = "(N m)²") -> Figure:
    """Distance and control cost along the episode, `[N, T]`: every episode, and their mean.

    Implements: zhao2013 Fig. 10, distance and control costs over the trajectory.
    """
    figure = Figure(figsize=(7, 4.6), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True)
    above.set_title(title, loc="left", fontsize=11)
    time = np.arange(1, distance.shape[1] + 1)
    for axes, values, colour, label in (
        (above, 100 * distance, "#0b6e99", "hand to target, cm"),
        (below, cost, "#c4622d", f"control cost, {unit}"),
    ):
        axes.plot(time, values.T, color=colour, alpha=0.2, lw=0.8)
        axes.plot(time, values.mean(0), color=colour, lw=1.8)
        axes.set_ylabel(label)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25, lw=0.6)
        axes.set_ylim(bottom=0)
        axes.margins(x=0.01)
    below.set_xlabel("step")
    return figure


def _write_steps(
    config: dict[str, Any], options: dict[str, Any], theta: Any, seed: int, title: str, out: Path
) -> dict[str, Path]:
    """Distance and cost of fresh episodes of the mean policy, as CSV and as a plot."""
    import jax

    from recoup.tasks.reach.task import trace

    keys = jax.random.split(jax.random.key(seed), EPISODES)
    problem = make_problem(config["task"], **options)
    went = trace(problem, config["horizon"], keys, theta)
    rows = [
        (episode, step + 1, went.distance[episode, step], went.cost[episode, step])
        for episode in range(len(went.distance))
        for step in range(config["horizon"])
    ]
    written = {"steps": out / STEPS, "steps_plot": out / STEPS_PLOT}
    header = "episode,step,distance_m,control_cost"
    np.savetxt(written["steps"], rows, "%d,%d,%.6g,%.6g", header=header, comments="")
    unit = "deg²" if problem.cost == "angle" else "(N m)²"
    steps_plot(went.distance, went.cost, title, unit).savefig(written["steps_plot"], dpi=130)
    return written


def _caption(step: int, info: dict[str, Any]) -> str:
    distance = info.get("distance")
    return f"step {step}" + ("" if distance is None else f" · {100 * distance:.1f} cm")


def _spread(last: int, frames: int = 6) -> list[int]:
    """Steps over the episode, denser at its beginning, where most happens."""
    share = np.linspace(0, 1, frames) ** 2.5
    return sorted({int(step) for step in np.round(last * share)})


def _read(path: Path) -> tuple[dict[str, Any], np.ndarray, int]:
    """The plan of a run, the mean of its search distribution, and the episodes behind it."""
    run = RunFile.open(path)
    try:
        moves = run.moves()
        return run.settings[RUN], moves.mean[-1], moves.steps[-1].episodes
    finally:
        run.file.close()


def _writable(out: Path) -> Path:
    """`out`, once it is known that it can be written to."""
    there = next(place for place in (out, *out.absolute().parents) if place.exists())
    if not there.is_dir() or not os.access(there, os.W_OK):
        raise InputError(f"{out} cannot be written to: name another directory with --out.")
    return out

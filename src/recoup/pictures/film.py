"""Pictures that move: an episode of a policy as a video and as a film strip."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from recoup.checks import InputError, not_installed
from recoup.outputs import OURS, Over, written
from recoup.pictures.picture_files import FILM, film_mark

FRAMES = 120  # frames of a film, about
Act = Callable[[Any], Any]


class Film(NamedTuple):
    """One episode, frame by frame: the start and then every step, or every few."""

    frames: np.ndarray  # [F, height, width, 3]
    rewards: np.ndarray  # [T]
    captions: list[str]  # of the frames
    fps: int
    steps: np.ndarray  # [F] that the frames are of


def film(env: Any, act: Act, seed: int = 0, horizon: int | None = None, most: int = FRAMES) -> Film:
    """An episode of `act(observation) -> action` in any Gymnasium environment with `rgb_array`.

    Until it ends, or `horizon` steps have passed. Of a long one every so many steps are filmed, so
    that there are `most` frames about, and the film is played as fast as the episode was.
    """
    if env.render_mode != "rgb_array":
        raise InputError('the environment must be made with render_mode="rgb_array".')
    every = 1
    if horizon is not None and horizon > most:  # it may still be short: see
        steps = sum(1 for _ in _episode(env, act, seed, horizon)) - 1
        every = max(-(-steps // most), 1)
    frames, rewards, captions, numbers = [], [], [], []
    for step, (reward, info, over) in enumerate(_episode(env, act, seed, horizon)):
        rewards += [reward] if step else []
        if step % every == 0 or over:
            frames.append(env.render())
            captions.append(_caption(step, info))
            numbers.append(step)
    fps = max(round(int(env.metadata.get("render_fps") or 30) / every), 1)
    return Film(np.stack(frames), np.array(rewards), captions, fps, np.array(numbers))


def _episode(
    env: Any, act: Act, seed: int, horizon: int | None
) -> Iterator[tuple[float, dict[str, Any], bool]]:
    """Reward and info of the start and of every step, and whether it was the last."""
    if hasattr(act, "begin"):  # a policy with a memory starts anew
        act.begin()
    observation, info = env.reset(seed=seed)
    over, step = False, 0
    yield 0.0, info, over
    while not over:
        observation, reward, terminated, truncated, info = env.step(act(observation))
        step += 1
        over = bool(terminated or truncated) or step == horizon
        yield float(reward), info, over


def write_video(shot: Film, path: Path, over: Over = OURS, shown: str = "") -> None:
    """An H.264 video, in place of an older one of ours; needs no ffmpeg on the system.

    It says what is `shown` on it, in a few letters, for `shown_by`.
    """
    try:
        import imageio.v2 as imageio
        import imageio_ffmpeg  # noqa: F401  (what imageio writes H.264 with)
    except ImportError:
        raise not_installed("a video needs imageio", "video") from None
    with warnings.catch_warnings():  # JAX warns of forks; this one becomes ffmpeg at once
        warnings.filterwarnings("ignore", "os.fork", RuntimeWarning)
        how = {"fps": shot.fps, "macro_block_size": 2, "quality": 8}
        said = {"output_params": film_mark(shown)}
        content = imageio.mimwrite("<bytes>", list(shot.frames), format="mp4", **how, **said)
    with written(path, FILM, over) as unfinished:
        unfinished.write_bytes(content)


def film_strip(shot: Film, title: str, steps: Sequence[int] | None = None) -> Figure:
    """Frames side by side, what was measured under each."""
    last = int(shot.steps[-1])
    wanted = _spread(last) if steps is None else list(steps)
    for step in wanted:
        if not 0 <= step <= last:
            raise InputError(f"the steps of the film strip must lie in 0..{last}, got {step}.")
    chosen = sorted({int(np.argmin(np.abs(shot.steps - step))) for step in wanted})
    height, width = shot.frames.shape[1:3]
    inches = 2.4
    figure = Figure(
        figsize=(inches * len(chosen), inches * height / width + 0.6), layout="compressed"
    )
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    for axes, frame in zip(figure.subplots(1, len(chosen), squeeze=False)[0], chosen, strict=True):
        axes.imshow(shot.frames[frame])
        axes.set_xlabel(shot.captions[frame], fontsize=10)
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


def _caption(step: int, info: dict[str, Any]) -> str:
    distance = info.get("distance")
    return f"step {step}" + ("" if distance is None else f" · {100 * distance:.1f} cm")


def _spread(last: int, frames: int = 6) -> list[int]:
    """Steps over the episode, denser at its beginning, where most happens."""
    share = np.linspace(0, 1, frames) ** 2.5
    return sorted({int(step) for step in np.round(last * share)})

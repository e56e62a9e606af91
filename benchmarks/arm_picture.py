"""The moving picture of README: the arm before, while and after it learns to reach.

recoup train reach-2 --episodes 200 --seed 0 --out runs/arm
python -m benchmarks.arm_picture runs/arm docs/reach.gif
"""

import os
import sys

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import recoup
from recoup.pictures.film import film
from recoup.tasks.registry import make_env

MOMENTS = (0, 20, 50, 200)  # episodes
STEPS = 13  # that are shown: what comes later hardly counts, at a discount of 0.9 a step
FIRST, FRAME, LAST = 800, 200, 2500  # milliseconds that they stay; the arm's step lasts 100
WINDOW = slice(8, 468), slice(140, 600)  # the part of a frame where the arm is
WIDE, HIGH, DOTS = 8.4, 2.62, 100
COLOURS = 128


def episodes(run):
    """Films of the mean policy at every moment: one episode each, with the same noise."""
    moves = {step.episodes: step.iteration for step in run.history}
    means = run.study.distributions()
    for moment in MOMENTS:
        env = make_env(run.plan.task, "rgb_array", STEPS)
        theta = means[moves[moment]][0].reshape(-1, env.action_space.shape[0])
        yield film(env, lambda observation, theta=theta: observation @ theta, seed=0)
        env.close()


def drawn(films, step):
    """The picture `[height, width, 3]` at one step: the films side by side."""
    figure = Figure(figsize=(WIDE, HIGH), dpi=DOTS, layout="constrained", facecolor="white")
    figure.get_layout_engine().set(w_pad=0.03, h_pad=0.02, wspace=0.01)
    for axes, shot, moment in zip(figure.subplots(1, len(films)), films, MOMENTS, strict=True):
        axes.imshow(shot.frames[step][WINDOW], interpolation="lanczos")
        axes.set_title(f"after {moment} episodes" if moment else "before learning", fontsize=11)
        axes.set_xlabel(shot.captions[step].partition(" · ")[2] + " to go", fontsize=11)
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set_visible(False)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3]


def colours(films):
    """A picture with what a palette must have: the start, the end, and much of the red target."""
    start, end = drawn(films, 0), drawn(films, STEPS)
    red = start[(start[..., 0] > 180) & (start[..., 1] < 110)]
    return np.concatenate([start, end, np.resize(red, (60, *start.shape[1:]))])


def main(run, path):
    """Writes the picture as a GIF that plays for ever, at half the speed of the arm."""
    from PIL import Image

    films = list(episodes(recoup.load(run)))
    pictures = [Image.fromarray(drawn(films, step)) for step in range(STEPS + 1)]
    palette = Image.fromarray(colours(films)).quantize(COLOURS)  # one for all: nothing flickers
    pictures = [picture.quantize(palette=palette, dither=0) for picture in pictures]
    times = [FIRST] + [FRAME] * (STEPS - 1) + [LAST]
    pictures[0].save(path, save_all=True, append_images=pictures[1:], duration=times, loop=0)


if __name__ == "__main__":
    os.environ.setdefault("MUJOCO_GL", "egl")
    main(*sys.argv[1:])

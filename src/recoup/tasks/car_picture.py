"""The mountain car as a picture: the valley, the car on its slope, the goal's flag."""

from functools import cache
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Polygon
from matplotlib.transforms import Affine2D

from recoup.core.types import Array, State

GOAL = 0.45
HEIGHT = 0.5  # of the hills, whose landscape is sin(3x): drawn half as high
CAR = np.array([(-0.09, 0.03), (-0.075, 0.09), (-0.03, 0.10), (-0.01, 0.14), (0.05, 0.14)])
CAR = np.concatenate([CAR, [(0.07, 0.09), (0.1, 0.08), (0.1, 0.03)]])
WHEELS = (-0.05, 0.06)


def car_picture(state: State) -> np.ndarray:
    """A picture `[360, 480, 3]` of the car at state (position, velocity)."""
    canvas, car, speed = _stage()
    x, velocity = float(state[0]), float(state[1])
    slope = np.arctan(HEIGHT * 3 * np.cos(3 * x))
    car.set(Affine2D().scale(1.3).rotate(slope).translate(x, _hill(x)))
    speed.set_text(f"velocity {velocity:+.2f}")
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()


def _hill(x: Array) -> Array:
    return HEIGHT * np.sin(3 * x)


class _Car:
    """The car's patches, moved together."""

    def __init__(self, axes: Any) -> None:
        self.axes = axes
        self.patches = [
            Polygon(CAR, closed=True, fc="#c4622d", ec="#7a3a17", lw=1.2, zorder=3),
            *(Circle((w, 0.03), 0.03, fc="0.15", zorder=4) for w in WHEELS),
        ]
        for patch in self.patches:
            axes.add_patch(patch)

    def set(self, where: Affine2D) -> None:
        for patch in self.patches:
            patch.set_transform(where + self.axes.transData)


@cache
def _stage() -> tuple[Any, ...]:
    """Everything that does not move, drawn once."""
    figure = Figure(figsize=(4.8, 3.6), dpi=100)
    canvas = FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(-1.4, 0.8), ylim=(-0.7, 0.95))
    axes.set_axis_off()
    figure.set_facecolor("#dfe7ef")
    x = np.linspace(-1.4, 0.8, 300)
    axes.fill_between(x, -1, _hill(x), color="#8d9a7b", lw=0)
    axes.plot(x, _hill(x), color="#5c664f", lw=2)
    foot, top = _hill(GOAL), _hill(GOAL) + 0.3
    axes.plot([GOAL, GOAL], [foot, top], color="0.2", lw=1.5)
    axes.add_patch(
        Polygon([(GOAL, top), (GOAL + 0.1, top - 0.05), (GOAL, top - 0.1)], fc="#b22222")
    )
    speed = axes.text(0.03, 0.94, "", transform=axes.transAxes, fontsize=11, va="top")
    return canvas, _Car(axes), speed

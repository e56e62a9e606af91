"""Pictures, drawn without a display and without touching matplotlib's global state."""

import textwrap
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

INK, ACCENT, SECOND = "#222222", "#0b6e99", "#c4622d"
COLOURS = (ACCENT, SECOND, "#3b7d3a", "#7a4fa3", "#a5361a", "#b58900", "#4d5b66", "#d1629b")
LEGEND = 8  # points of its letters
HANDLE = 7  # letters whose place the line before a label takes
AXES_WIDTH = 6.5  # inches of the axes of several runs
STYLES = ("-", "--", "-.")  # so that lines that lie on each other are told apart


class Line(NamedTuple):
    """Runs that differ in their seeds alone: their mean, its standard error, and each of them."""

    label: str
    episodes: np.ndarray  # [E] that all of them reached
    mean: np.ndarray  # [E]
    stderr: np.ndarray  # [E], not a number where there is one run
    runs: list[tuple[np.ndarray, np.ndarray]]  # episodes and returns of each
    spent: int  # episodes, by each of them at least

    def end(self) -> str:
        """The last point, in words."""
        if not np.isfinite(self.stderr[-1]):
            return f"{self.mean[-1]:.3g}, one run"
        return f"{self.mean[-1]:.3g} ± {self.stderr[-1]:.2g}"


class Panel(NamedTuple):
    """Lines that can be compared: those of one task."""

    title: str
    lines: list[Line]


def legend_columns(labels: Sequence[str], inches: float, size: float = LEGEND) -> int:
    """How many labels of a legend stand beside each other in so many `inches`."""
    widest = max((len(line) for label in labels for line in label.splitlines()), default=0)
    return max(int(_letters(inches, size) // (widest + HANDLE)), 1)


def _letters(inches: float, size: float) -> float:
    """How many letters of a font of this `size` stand in a line of so many `inches`."""
    return inches * 72 / (size * 0.55)


def wrapped(label: str, inches: float) -> str:
    """A label of a legend, in as many lines as it needs."""
    return textwrap.fill(label, int(_letters(inches, LEGEND)) - HANDLE)


def legend_above(axes: Axes, title: str, inches: float, size: float = 11.0) -> None:
    """A legend between title and axes, which are so many `inches` wide: it hides nothing."""
    _, labels = axes.get_legend_handles_labels()
    if not labels:
        axes.set_title(title, loc="left", color=INK, fontsize=size)
        return
    columns = legend_columns(labels, inches)
    lines = sum(label.count("\n") + 1 for label in labels)
    rows = -(-lines // columns)  # a label of several lines stands alone in its row
    axes.set_title(title, loc="left", color=INK, fontsize=size, pad=8 + 1.55 * LEGEND * rows)
    axes.legend(
        frameon=False,
        fontsize=LEGEND,
        ncols=columns,
        loc="lower left",
        bbox_to_anchor=(0, 1),
        borderaxespad=0.2,
    )


def learning_curve(title: str, curve: Any, final: Any, moves: dict[str, np.ndarray]) -> Figure:
    """Expected return over episodes with its standard error; below it, what reuse is worth.

    `curve` has the arrays episodes, mean and stderr; `final`, if there is one, the mean and stderr
    of the mean policy; `moves` the columns episodes, samples, ess and max_weight.
    """
    figure = Figure(figsize=(7, 5.4), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[2.2, 1])
    _returns(above, curve, final)
    legend_above(above, title, 6)
    _reuse(below, moves)
    for axes in (above, below):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25, linewidth=0.6)
        axes.margins(x=0.01)
    figure.align_ylabels()
    return figure


def _returns(axes: Axes, curve: Any, final: Any) -> None:
    axes.fill_between(
        curve.episodes,
        curve.mean - curve.stderr,
        curve.mean + curve.stderr,
        color=ACCENT,
        alpha=0.2,
        linewidth=0,
        label="± 1 standard error",
    )
    axes.plot(curve.episodes, curve.mean, color=ACCENT, linewidth=1.8, label="search distribution")
    if final is not None:
        axes.errorbar(
            curve.episodes[-1],
            final.mean,
            final.stderr,
            fmt="D",
            color=SECOND,
            markersize=6,
            capsize=3,
            clip_on=False,
            zorder=3,
            label=f"mean policy: {final.mean:.2f}",
        )
    axes.set_ylabel("expected return")


def _reuse(axes: Axes, moves: dict[str, np.ndarray]) -> None:
    for name, label, colour, width in (
        ("samples", "samples kept", "0.7", 3.0),  # seen also where another lies on it
        ("ess", "effective sample size", ACCENT, 1.6),
        ("max_weight", "largest weight", SECOND, 1.2),
    ):
        axes.plot(moves["episodes"], moves[name], color=colour, linewidth=width, label=label)
    if np.nanmax(moves["samples"], initial=0) > 0:  # of failures alone there is nothing to show
        axes.set_yscale("log")
    axes.set_xlabel("episodes")
    axes.set_ylabel("reuse")
    legend_above(axes, "", 6)


def overlaid(panels: Sequence[Panel]) -> Figure:
    """Learning curves of several runs, a panel each task: mean, standard error, every run thin."""
    figure = Figure(figsize=(7.5, 0.4 + 3.9 * len(panels)), layout="constrained")
    for axes, panel in zip(figure.subplots(len(panels), squeeze=False)[:, 0], panels, strict=True):
        for i, line in enumerate(panel.lines):
            colour = COLOURS[i % len(COLOURS)]
            _line(axes, line, colour, STYLES[i % len(STYLES)])
        axes.set(xlabel="episodes", ylabel="expected return")
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25, linewidth=0.6)
        axes.margins(x=0.01)
        legend_above(axes, panel.title.replace("$", "\\$"), AXES_WIDTH)
    return figure


def _line(axes: Axes, line: Line, colour: str, style: str) -> None:
    several = len(line.runs) > 1
    for episodes, returns in line.runs if several else ():
        axes.plot(episodes, returns, color=colour, lw=0.7, alpha=0.3)
    low, high = line.mean - line.stderr, line.mean + line.stderr
    axes.fill_between(line.episodes, low, high, color=colour, alpha=0.2, lw=0)
    words = f"{len(line.runs)} runs" if several else "one run"
    label = wrapped(f"{line.label}, {words}", AXES_WIDTH).replace("$", "\\$")
    axes.plot(line.episodes, line.mean, style, color=colour, lw=1.9, label=label)


def replayed(
    own_name: str,
    own: list[dict[str, Any]],
    name: str,
    found: Sequence[Any],
    noun: str = "return",
) -> Figure:
    """Estimates and effective sample sizes of a study's moves, and of another method's."""
    figure = Figure(figsize=(7, 5), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[1.6, 1])
    results = np.array([row.results for row in found])
    for label, infos, colour, style in (
        (own_name, own, ACCENT, "-"),
        (f"replayed: {name}", [row.info for row in found], SECOND, "--"),
    ):
        keys = ("objective", "low", "high", "ess")
        columns = ([info.get(key) for info in infos] for key in keys)
        value, low, high, ess = (np.array(column, float) for column in columns)
        above.fill_between(results, low, high, color=colour, alpha=0.18, lw=0)
        above.plot(results, value, style, color=colour, linewidth=1.7, label=label)
        below.plot(results, ess, style, color=colour, linewidth=1.5)
    above.set_ylabel(f"estimated {noun},\n95 % interval")
    legend_above(above, f"{name} on the results of {own_name}", 6)
    below.set(xlabel="results", ylabel="effective\nsample size", yscale="log")
    for axes in (above, below):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25, linewidth=0.6)
        axes.margins(x=0.01)
    return figure

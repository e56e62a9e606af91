"""Learning curves of several methods on one task: of what they draw, and of what they deploy."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullLocator, SymmetricalLogLocator

from recoup.pictures.curves import INK, legend_columns

# Colours that are told apart with any kind of sight (Okabe and Ito, without yellow), then again
# with other lines.
COLOURS = ("#d55e00", "#0072b2", "#009e73", "#cc79a7", "#000000", "#56b4e9", "#e69f00", "#7a7a7a")
LINES = ("-", (0, (5, 2)), (0, (1, 1.4)))
MARKERS = "osD^vPX*<>"
DECADES = 30.0  # losses that differ by more than this factor are drawn on a logarithmic scale


class MethodCurve(NamedTuple):
    """A method's mean over runs and its standard error at each point; NaN where it has none."""

    label: str
    search: tuple[np.ndarray, np.ndarray]  # [C] each
    policy: tuple[np.ndarray, np.ndarray]


def compared(title: str, episodes: Sequence[int], methods: Sequence[MethodCurve]) -> Figure:
    """Two panels over episodes: expected return of the search distribution, of the mean policy."""
    labels = [method.label.replace("$", "\\$") for method in methods]
    columns = min(legend_columns(labels, 9.6, 9), 4)
    rows = -(-len(methods) // columns)
    figure = Figure(figsize=(10, 4.3 + 0.22 * rows), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    figure.suptitle(title.replace("$", "\\$"), x=0.01, ha="left", color=INK, fontsize=12)
    at = np.asarray(episodes, float)
    for axes, kind, words in zip(
        panels,
        ("search", "policy"),
        ("search distribution (J)", "mean policy (m)"),
        strict=True,
    ):
        drawn = [_line(axes, at, getattr(method, kind), i) for i, method in enumerate(methods)]
        axes.set_title(words, loc="left", fontsize=10, color=INK)
        axes.set_xlabel("episodes")
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25, linewidth=0.6)
        axes.margins(x=0.02)
    panels[0].set_ylabel("expected return")
    _scaled(panels, methods)
    look = {"ncols": columns, "frameon": False, "fontsize": 9}
    figure.legend(drawn, labels, loc="outside lower center", **look)
    return figure


def _line(axes: Axes, at: np.ndarray, curve: tuple[np.ndarray, np.ndarray], i: int) -> Line2D:
    """The i-th method's curve; a label is not given here, where one with `_` first is not shown."""
    mean, stderr = curve
    colour = COLOURS[i % len(COLOURS)]
    error = np.where(np.isfinite(stderr), stderr, 0.0)
    axes.fill_between(at, mean - error, mean + error, color=colour, alpha=0.16, linewidth=0)
    (line,) = axes.plot(
        at,
        mean,
        color=colour,
        linestyle=LINES[i // len(COLOURS) % len(LINES)],
        marker=MARKERS[i % len(MARKERS)],
        markersize=4.5,
        linewidth=1.7,
    )
    return line


def _scaled(panels: Sequence[Axes], methods: Sequence[MethodCurve]) -> None:
    """A logarithmic scale of losses where all returns are negative and far from each other."""
    values = np.concatenate([np.concatenate([m.search[0], m.policy[0]]) for m in methods])
    values = values[np.isfinite(values)]
    if not len(values) or values.max() >= 0 or values.min() > DECADES * values.max():
        return
    least = -values.max()
    for axes in panels:
        axes.set_yscale("symlog", linthresh=least, linscale=0.15)
        axes.set_ylim(top=-0.8 * least)
        axes.yaxis.set_major_locator(SymmetricalLogLocator(base=10, linthresh=1e-12, subs=(1, 3)))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:,.6g}"))

"""One look for all pictures: a colour, a line and a marker for every method."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from recoup.core.types import Array


class Look(NamedTuple):
    """How a method is drawn; lines and markers tell them apart without colour."""

    colour: str
    line: Any
    marker: str


SOLID, DASHED, DOTTED = "-", (0, (4, 2)), (0, (1, 1.3))
LOOKS = {
    "pgpe": Look("#8c8c8c", DASHED, "o"),
    "pgpe-ob": Look("#555555", SOLID, "o"),
    "niw-pgpe": Look("#cc79a7", DASHED, "s"),
    "niw-pgpe-ob": Look("#b0528a", SOLID, "s"),
    "iw-pgpe": Look("#3d9bd1", DASHED, "^"),
    "iw-pgpe-ob": Look("#0072b2", SOLID, "^"),
    "iw-pgpe-split": Look("#004c78", DOTTED, "x"),
    "tiw-pgpe-ob": Look("#009e73", SOLID, "v"),
    "mis-pgpe-ob": Look("#d55e00", SOLID, "D"),
    "iw-reinforce-ob": Look("#b8860b", DOTTED, "P"),
    "tiw-enac": Look("#7b5ea7", DOTTED, "X"),
    "r3": Look("#000000", DOTTED, "*"),
}
MARKS = 8  # markers and error bars a curve


def picture(columns: int = 1, rows: int = 1, width: float = 6.4, height: float = 4.2) -> Any:
    """A figure and its axes `[rows][columns]`, in the common style."""
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    for each in axes.flat:
        plain(each)
    return figure, axes


def plain(axes: Axes) -> None:
    """The common style of one pair of axes."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.margins(x=0.02)
    axes.tick_params(labelsize=9)


def curve(axes: Axes, x: Array, by_run: np.ndarray, method: str, geometric: bool = False) -> None:
    """Mean over runs `[R, C]` of one method with its standard error; geometric on a log scale."""
    look, x = LOOKS[method], np.asarray(x)
    mean, error = by_run.mean(0), stderr(by_run)
    if geometric:
        logs = np.log(np.maximum(by_run, 1e-12))
        mean, factor = np.exp(logs.mean(0)), np.exp(stderr(logs))
        error = np.stack([mean - mean / factor, mean * factor - mean])
        axes.set_yscale("log")
    every = max(1, round(len(x) / MARKS))
    axes.errorbar(
        x,
        mean,
        error,
        color=look.colour,
        linestyle=look.line,
        linewidth=1.7,
        marker=look.marker,
        markersize=4.5,
        markevery=every,
        errorevery=every,
        elinewidth=1,
        capsize=2,
        label=method,
    )


def legend(figure: Figure, axes: Axes, order: Iterable[str] | None = None) -> None:
    """One legend to the right of everything; `order` from top to bottom."""
    handles, labels = axes.get_legend_handles_labels()
    found = dict(zip(labels, handles, strict=True))
    names = [name for name in (order or found) if name in found]
    figure.legend(
        [found[name] for name in names],
        names,
        loc="outside right center",
        frameon=False,
        fontsize=9,
    )


def stderr(by_run: np.ndarray) -> np.ndarray:
    """Standard error of the mean over the leading axis; zero for one run."""
    if len(by_run) < 2:
        return np.zeros(by_run.shape[1:])
    return by_run.std(0, ddof=1) / np.sqrt(len(by_run))

"""Several studies laid over each other: the best result so far, and what each move expected."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from recoup.pictures.curves import COLOURS, STYLES, legend_above


class Course(NamedTuple):
    """How a study went, by results told."""

    label: str
    noun: str  # what a result is called: a return, or a cost
    best: np.ndarray  # [n] of the results up to each, not a number before the first that counts
    at: np.ndarray  # [M] results told when each move was made
    estimate: np.ndarray  # [M] of the distribution before each move
    low: np.ndarray  # [M] of its 95 % interval, not a number where there is none
    high: np.ndarray  # [M]


def laid_over(courses: Sequence[Course]) -> Figure:
    """Two panels over results told for each kind of result: the best so far, and the estimates."""
    nouns = list(dict.fromkeys(course.noun for course in courses))
    figure = Figure(figsize=(7.5, 7.2 * len(nouns)), layout="constrained")
    rows: Any = figure.subplots(2 * len(nouns), 1, squeeze=False)[:, 0]
    for i, noun in enumerate(nouns):
        best, expected = rows[2 * i], rows[2 * i + 1]
        for j, course in enumerate(courses):
            if course.noun == noun:
                _drawn(best, expected, course, j)
        _dressed(best, f"Best {noun} so far", noun)
        _dressed(expected, f"Expected {noun} at each move, 95 % interval", f"expected {noun}")
    return figure


def _drawn(best: Axes, expected: Axes, course: Course, i: int) -> None:
    """A study's two curves, in a colour and a style of its own."""
    colour, style = COLOURS[i % len(COLOURS)], STYLES[i % len(STYLES)]
    look: dict[str, Any] = {"color": colour, "linestyle": style, "lw": 1.8}
    label = course.label.replace("$", "\\$")
    told = np.arange(1, len(course.best) + 1)
    best.plot(told, course.best, drawstyle="steps-post", label=label, **look)
    expected.fill_between(course.at, course.low, course.high, color=colour, alpha=0.18, lw=0)
    some = np.isfinite(course.low)
    ends = [course.estimate - course.low, course.high - course.estimate]
    ends = [np.maximum(side[some], 0) for side in ends]
    where = course.at[some], course.estimate[some]
    expected.errorbar(*where, ends, fmt="none", color=colour, capsize=2, lw=1)
    expected.plot(course.at, course.estimate, marker=".", label=label, **look)


def _dressed(axes: Axes, title: str, what: str) -> None:
    axes.set(xlabel="results told", ylabel=what)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25, linewidth=0.6)
    axes.set_xlim(left=0)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    legend_above(axes, title, 6.5)

"""The page of a run: how it went, what reuse was worth, what it was made with."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from recoup.checks import InputError, check_path, printable
from recoup.outputs import Over
from recoup.pictures.curves import ACCENT, SECOND, learning_curve, overlaid
from recoup.report.html import check_page, drawn, embedded, page, write_page
from recoup.report.overlay import overlay
from recoup.runs.directory import CONFIG
from recoup.runs.render import STEPS_PLOT, STRIP, VIDEO, is_of_before
from recoup.runs.run import Run, load, method_settings
from recoup.study.voice.reasons import reasons
from recoup.study.voice.sentences import health

PAGE = "report.html"
MEASURED = {  # by whether a run's distributions were tested: what its curve is of
    True: "Expected return on fresh episodes, wherever it was measured.",
    False: "On tasks of your own, the mean return of the trials that each distribution drew.",
}
SHOWN = 12  # parameters whose means are drawn one by one


def write_report(
    runs: Sequence[str | Path], out: str | Path | None = None, *, force: bool = False
) -> Path:
    """One page for all of `runs`, into `out` (the first run's `report.html` unless said).

    An older page of ours is replaced; with `force` any other file but a study.
    """
    if not runs:
        raise InputError("a report needs at least one run directory.")
    paths = [Path(run) for run in runs]
    path = paths[0] / PAGE if out is None else check_path("out", out)
    loaded = [load(run) for run in paths]
    check_page(path, Over(force))
    shown = [_run(*both) for both in zip(paths, loaded, strict=True)]
    once = _once({one.resolve(): run for one, run in zip(paths, loaded, strict=True)})
    content = page("run.html", runs=shown, together=_together(once.runs), copies=once.copies)
    return write_page(path, content, Over(force))


def _run(path: Path, run: Run) -> dict[str, Any]:
    found = _json(path / CONFIG) if (path / CONFIG).exists() else {}  # a run that was carried over
    config = {**found, **run.plan.plain()}  # for people only: what the study says is true
    history = _history(run)
    pictures = {name: path / name for name in (STRIP, STEPS_PLOT) if (path / name).is_file()}
    film = path / VIDEO
    return {
        "name": path.resolve().name,
        "config": config,
        "settings": {**_flat(config), **method_settings(run)},
        "versions": _object(config, "versions"),
        "search": run.return_search,
        "mean_policy": run.return_mean_policy,
        "finished": run.finished,
        "outdated": run.outdated,
        "was_finished": run.was_finished,
        "episodes": run.episodes,
        "tested": run.plan.tested,
        "last": {key: _last(values) for key, values in history.items()},
        "failed": run.failed,
        "dropped": run.dropped,
        "advice": _advice(history, run),
        "curve": drawn(_curve(printable(path.name), history, run)),
        "distribution": drawn(_distribution(run)),
        "age": drawn(_age(run.ages)) if _mixed(run.ages) else None,
        "ages": _ages_in_words(run.ages),
        "pictures": [
            (name, embedded(one), is_of_before(one, run)) for name, one in pictures.items()
        ],
        "film": embedded(film) if film.is_file() else None,
        "filmed_before": film.is_file() and is_of_before(film, run),
    }


class _Once(NamedTuple):
    """Runs of which each is there once, and the names of their copies."""

    runs: list[Run]
    copies: list[str]


def _once(runs: Mapping[Path, Run]) -> _Once:
    """Runs without copies: of those that began as one, the one that has gone farthest.

    That is known by when its study was made, for a copy has the same.
    """
    found: dict[Any, tuple[Path, Run]] = {}
    copies = []
    for path, run in runs.items():
        mine = (run.plan.task, run.plan.method, run.plan.seed, run.began_at)
        before = found.setdefault(mine, (path, run))
        if before[1] is not run:
            farther = run.episodes > before[1].episodes
            copies.append((before[0] if farther else path).name)
            found[mine] = (path, run) if farther else before
    return _Once([run for _, run in found.values()], copies)


def _together(runs: Sequence[Run]) -> dict[str, Any] | None:
    """Several runs in one picture."""
    if len(runs) < 2:
        return None
    panels, kinds = overlay(runs), {run.plan.tested for run in runs}
    of = " ".join(MEASURED[kind] for kind in sorted(kinds, reverse=True))
    return {"picture": drawn(overlaid(panels)), "panels": panels, "of": of}


# -- what the run directory holds --


def _json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text())
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(f"{path.parent} is not a run directory: it has no {path.name}.") from None
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as wrong:
        raise InputError(f"{path} cannot be read: {wrong}.") from None
    if not isinstance(content, dict):
        raise InputError(f"{path} is not of a run: it holds no object.")
    return content


def _history(run: Run) -> dict[str, np.ndarray]:
    """Columns of the history, not a number where there is nothing."""
    rows = [vars(step) for step in run.history]
    return {
        key: np.array([np.nan if row[key] is None else row[key] for row in rows], float)
        for key in rows[0]
    }


def _object(content: dict[str, Any], key: str) -> dict[str, Any]:
    found = content.get(key)
    return found if isinstance(found, dict) else {}


def _flat(content: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in content.items() if k not in ("settings", "versions", "command")}


def _last(values: np.ndarray) -> float | None:
    return None if np.isnan(values[-1]) else float(values[-1])


def _advice(history: dict[str, np.ndarray], run: Run) -> str:
    """What the last move rests on, in plain words."""
    ess, samples, k = (history[key][-1] for key in ("ess", "samples", "pareto_k"))
    if np.isnan(ess):
        return "No iteration has been made yet."
    if run.notes:
        return " ".join(reasons(run.notes, ess))
    return health(samples, ess, k)


# -- pictures --


def _curve(title: str, history: dict[str, np.ndarray], run: Run) -> Figure:
    moves = {key: values[1:] for key, values in history.items()}
    return learning_curve(title.replace("$", "\\$"), run.curve, run.return_mean_policy, moves)


def _distribution(run: Run) -> Figure:
    """Means and standard deviations of the search distribution over iterations."""
    figure = Figure(figsize=(7, 4.4), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True)
    x = np.arange(len(run.history))
    for axes, values, label in (
        (above, run.means, "mean"),
        (below, run.stds, "standard deviation"),
    ):
        if values.shape[1] <= SHOWN:
            axes.plot(x, values, color=ACCENT, linewidth=1.1, alpha=0.8)
        else:
            low, middle, high = np.quantile(values, [0.1, 0.5, 0.9], axis=1)
            axes.fill_between(x, low, high, color=ACCENT, alpha=0.2, linewidth=0)
            axes.plot(x, middle, color=ACCENT, linewidth=1.6)
            label += "\n(median, 10-90 %)"
        axes.set_ylabel(label)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25, linewidth=0.6)
        axes.margins(x=0.01)
    below.set_xlabel("iteration")
    below.xaxis.set_major_locator(MaxNLocator(integer=True))
    return figure


def _mixed(shares: np.ndarray) -> bool:
    """Whether samples of several ages had a say: else there is nothing to draw."""
    return len(shares) > 1 and int((np.nan_to_num(shares) > 0).any(axis=0).sum()) > 1


def _ages_in_words(shares: np.ndarray) -> str:
    """Where all the weight came from, where a picture would be of one colour; else nothing."""
    old = np.nan_to_num(shares) > 0
    if _mixed(shares) or not old.any():
        return ""
    if old[:, 0].all():
        return (
            "Every estimate rests on the samples of its own iteration alone: nothing older was "
            "used again."
        )
    return "The weight of every estimate came from samples of one age."


def _age(shares: np.ndarray) -> Figure:
    """Where the weight of each estimate came from: the shares of samples by their age."""
    figure = Figure(figsize=(7, 3), layout="constrained")
    axes = figure.subplots()
    names = ("this iteration", "1-2 back", "3-9 back", "10-29 back", "older")
    hatches = (None, "//", "..", "xx", "--")
    colours = (ACCENT, "#5aa7c7", "#a9d3e3", "#e3b99a", SECOND)
    stacked = axes.stackplot(np.arange(1, len(shares) + 1), shares.T, colors=colours)
    seen = (np.nan_to_num(shares) > 0).any(axis=0)
    for area, hatch, name, some in zip(stacked, hatches, names, seen, strict=True):
        area.set(hatch=hatch, edgecolor="white", linewidth=0.3, label=name if some else None)
    axes.set(xlabel="iteration", ylabel="share of the weight", ylim=(0, 1))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.margins(x=0)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside right center", frameon=False, fontsize=8)
    return figure

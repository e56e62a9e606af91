"""Several runs laid over each other: those that differ in nothing but the seed are one line."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from recoup.pictures.curves import Line, Panel
from recoup.runs.run import Run

FREE = ("seed", "iterations", "spare", "test_all")  # what runs of one line may differ in
FOLLOWS = ("version",)  # from the others
FITTED = ("fingerprint",)  # and where a policy was fitted in a warm-up, whose episodes are random


def overlay(runs: Sequence[Run]) -> list[Panel]:
    """A panel a task, a line for each method (and each of its settings) in it."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(repr(sorted(_settings(run).items())), []).append(run)
    lines = list(groups.values())
    tasks = dict.fromkeys(run.plan.task for run in runs)
    return [Panel(task, _lines([g for g in lines if g[0].plan.task == task])) for task in tasks]


def _lines(groups: Sequence[list[Run]]) -> list[Line]:
    return [_line(_label(group[0], groups), group) for group in groups]


def _settings(run: Run) -> dict[str, Any]:
    """Everything that was chosen for a run, but for its seed and its length."""
    policy = run.plan.policy if run.plan.warm_up else None
    left = (*FREE, *FOLLOWS, *(FITTED if policy else ()))
    plan = {key: value for key, value in run.plan.plain().items() if key not in left}
    plan |= {"policy": _unfitted(policy)} if policy else {}
    return {**plan, **{key: repr(value) for key, value in vars(run.plan.settings).items()}}


def _unfitted(policy: Mapping[str, Any]) -> dict[str, Any]:
    """A policy without what a warm-up gave it: how observations are scaled, where kernels lie."""
    found = {**policy, "scale": policy.get("scale") is not None}
    network = policy.get("network")
    if isinstance(network, Mapping) and "centres" in network:
        fitted = {"centres": len(network["centres"]), "widths": None}
        found["network"] = {**network, **fitted}
    return found


def _label(run: Run, groups: Iterable[Sequence[Run]]) -> str:
    """The method, and what sets it apart from other lines of the same method."""
    mine = _settings(run)
    others = [_settings(g[0]) for g in groups if g[0].plan.method == run.plan.method]
    apart = [key for key in mine if any(other.get(key) != mine[key] for other in others)]
    words = ", ".join(f"{key}={_word(mine[key])}" for key in apart if key != "fingerprint")
    return run.plan.method + (f" ({words or 'another policy'})" if apart else "")


def _word(value: Any) -> str:
    """A setting in a label: a policy by its kind and sizes, equal numbers of a list as one."""
    if isinstance(value, Mapping) and "kind" in value:
        network = value.get("network")
        hidden = network.get("hidden") if isinstance(network, Mapping) else None
        sizes = "-".join(map(str, hidden)) if hidden else ""
        return f"{value['kind']} {sizes}".strip()
    if isinstance(value, Mapping):
        words = [str(x) if key == "engine" else f"{key}={x}" for key, x in value.items()]
        return " ".join(words) or "as ever"
    if isinstance(value, list) and value and all(isinstance(x, int | float) for x in value):
        ends = [f"{x:.4g}" for x in (min(value), max(value))]
        return ends[0] if ends[0] == ends[1] else " to ".join(ends)
    return str(value).strip("'")


def _line(label: str, runs: Sequence[Run]) -> Line:
    """Mean and standard error over runs, at every number of episodes that all of them reached.

    Runs whose failures put their points elsewhere are read between their points.
    """
    curves = [run.curve for run in runs]
    end = min(curve.episodes[-1] for curve in curves)
    grid = np.unique(np.concatenate([curve.episodes for curve in curves]))
    grid = grid[grid <= end]
    values = np.stack([np.interp(grid, curve.episodes, curve.mean) for curve in curves])
    error = np.full(grid.shape, np.nan)
    if len(runs) > 1:
        error = values.std(0, ddof=1) / np.sqrt(len(runs))
    single = [(curve.episodes, curve.mean) for curve in curves]
    spent = min(run.episodes for run in runs)
    return Line(label, grid, values.mean(0), error, single, spent)

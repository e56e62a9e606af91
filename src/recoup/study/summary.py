"""A study in short: in one line, as rows of a table, and as a notebook shows it."""

from collections.abc import Sequence
from math import isfinite
from typing import Any, NamedTuple

import numpy as np

from recoup.store.dropped import AMENDED, dropped
from recoup.study.judging import diagnostics
from recoup.study.leases import told_later
from recoup.study.notebook import SHOWN, digits, facts, grid
from recoup.study.opened import Opened
from recoup.study.trials import Named, Trial, by_name


class Deployed(NamedTuple):
    """A parameter of the mean policy, in the user's units, and one standard deviation around it."""

    name: str
    value: float
    low: float | None  # None where the search explores in actions
    high: float | None


def mean_policy(study: Opened) -> "np.ndarray | Named":
    """The mean of the newest distribution in the user's units, by name where there are names."""
    return mean_of(study, study.mean)


def mean_of(study: Opened, mean: np.ndarray) -> "np.ndarray | Named":
    """Latent means `[D]` in the user's units, likewise."""
    values = study.in_units(mean)
    if not study.names:
        return values
    return Named(by_name(study.names, values, study.whole))


def deployed(study: Opened) -> list[Deployed]:
    """The mean policy, a row a parameter."""
    mean, std = study.mean, study.std
    names = study.names or tuple(f"theta_{i}" for i in range(study.dim))
    values = study.in_units(mean).tolist()
    around: list[Any] = [[None] * study.dim] * 2
    if study.method.space == "parameters":
        around = [study.in_units(mean + sign * std).tolist() for sign in (-1, 1)]
    return [Deployed(*row) for row in zip(names, values, *around, strict=True)]


def in_a_line(study: Opened) -> str:
    """The file, the method and how far the search has come; a closed study says that it is."""
    parameters = f"{study.dim} parameter{'' if study.dim == 1 else 's'}"
    try:
        with study.store.reading():
            counters, moves = study.store.counters(), study.store.last_move().id
        results = counters.ok + counters.failed
        state = f"{results} result{'' if results == 1 else 's'}"
        state += f", {moves} move{'' if moves == 1 else 's'}"
    except Exception:  # closed, or damaged: what shows an object must not fail
        state = "closed"
    return f"Study({str(study.path)!r}, {study.method.name}, {parameters}, {state})"


def as_html(study: Opened) -> str:
    """A study as a notebook shows it: its state, and the mean policy."""
    try:
        with study.store.reading():
            found, best = diagnostics(study), study.store.best(dropped(study.store))
            state = summary_rows(study, found, None if best is None else (best[0].id, best[1]))
            rows = deployed(study)
    except Exception:  # closed, or damaged: what shows an object must not fail
        return facts(in_a_line(study), {})
    heads = ("parameter", "mean policy", "-1 std", "+1 std")
    cells = [(r.name, *("" if x is None else digits(x) for x in r[1:])) for r in rows[:SHOWN]]
    if study.dim > SHOWN:
        cells.append((f"... {study.dim - SHOWN} more", "", "", ""))
    return facts(str(study.path), state) + grid(heads, cells)


def summary_rows(
    study: Opened,
    found: dict[str, Any],
    best: tuple[int, float] | None,
    waiting: Sequence[int] = (),
) -> dict[str, str]:
    """The state of a study, a row each: what `diagnostics` found, the best trial, those waiting."""
    counted = found["ok"] - found.get("uncounted", 0)
    trials = f"{found['pending']} pending, {found['ok']} ok"
    if counted < found["ok"]:
        trials += f" ({found['uncounted']} of them left with the dropped one of their pair)"
    trials += f", {found['failed']} failed"
    trials += f" ({found['dropped']} of them dropped)" if found.get("dropped") else ""
    if found["imported"]:
        trials += f" ({found['imported']} of them from elsewhere)"
    rows = {
        "method": f"{study.method.name}, batch {study.batch}, {study.dim} parameter"
        f"{'' if study.dim == 1 else 's'}",
        "trials": trials,
        "moves": f"{found['moves']}; the next after {more_results(found['until_move'])}",
        "best": "none yet" if best is None else _best(*best, counted),
    }
    if righted := [event.content for event in study.store.events(AMENDED)]:
        last = righted[-1]
        why = f" ({last['why']})" if last["why"] else ""
        rows["amended"] = f"{len(righted)}; the last: trial {last['trial']}{why}"
    if later := told_later(study.store):
        rows["told later"] = f"{len(later)}, not counted; the last: trial {later[-1].trial}"
    if waiting:
        more = f" and {len(waiting) - SHOWN} more" if len(waiting) > SHOWN else ""
        word = "trials" if len(waiting) > 1 else "trial"
        rows["waiting"] = f"{word} {', '.join(map(str, waiting[:SHOWN]))}{more}"
    if found["moves"]:
        k = found["pareto_k"]
        tail = f", Pareto k-hat {k:.2f}" if k is not None and isfinite(k) else ""
        rows["estimate"] = f"{with_interval(found)}, of the distribution that moved last"
        rows["reuse"] = f"{found['samples']} results that count for {found['ess']:.1f}{tail}"
    return rows


def _best(trial: int, value: float, told: int) -> str:
    """The best trial: of several noisy ones, the one that was lucky, too."""
    among = f", the best of {told} noisy returns: expect less of it" if told > 1 else ""
    return f"trial {trial}: {value:.6g}{among}"


def more_results(left: int) -> str:
    """So many more results, in words."""
    return f"{left} more result{'' if left == 1 else 's'}"


def with_interval(info: dict[str, Any]) -> str:
    """The estimate of a move with its interval, if it has one that can be believed."""
    low, high = info.get("low"), info.get("high")
    if low is None or high is None or not isfinite(low):
        return f"{info['objective']:.4g}, without an interval that could be believed"
    return f"{info['objective']:.4g} ({low:.4g} to {high:.4g}, 95 %)"


def best_trial(found: tuple[Trial, float] | None) -> tuple[int, float] | None:
    """`Study.best` as `summary_rows` takes it."""
    return None if found is None else (found[0].id, found[1])

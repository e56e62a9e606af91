"""What `recoup study` prints: trials, the state of a study, a replay."""

import csv
import json
import sys
from collections.abc import Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from recoup.cli.app import cell
from recoup.store.rows import REPEAT
from recoup.study.notebook import SHOWN, digits
from recoup.study.sentences import LEAST
from recoup.study.summary import best_trial, deployed
from recoup.study.summary import summary_rows as state_rows
from recoup.study.tables import quoted

if TYPE_CHECKING:  # JAX is slow to import, and most commands need none of it
    from recoup.study.leases import Waiting
    from recoup.study.replay import Replayed
    from recoup.study.study import Study
    from recoup.study.trials import Trial


def print_trials(trials: "Sequence[Trial]", form: str) -> None:
    """Trials as a table, as JSON or as CSV."""
    if form == "json":
        print(json.dumps([trial.plain() for trial in trials]))
    elif form == "csv":
        _print_csv(trials, {})
    else:
        Console().print(_trials_table(trials, {}))
        _explain_repeats(trials)


def print_waiting(waiting: "Sequence[Waiting]", form: str) -> None:
    """Trials that wait for a result, with their ages and leases, likewise."""
    trials = [row.trial for row in waiting]
    if form == "json":
        print(json.dumps([row.plain() for row in waiting]))
    elif form == "csv":
        times = [row.asked_at for row in waiting], [row.lease_until for row in waiting]
        _print_csv(trials, dict(zip(("asked_at", "lease_until"), times, strict=True)))
    else:
        beside = {"asked": [row.age for row in waiting]}
        if any(row.lease_until is not None for row in waiting):
            beside["lease"] = [row.lease for row in waiting]
        if any(row.handed_out > 1 for row in waiting):
            beside["handed out"] = [_times(row.handed_out) for row in waiting]
        Console().print(_trials_table(trials, beside))
        _explain_repeats(trials)


def _explain_repeats(trials: "Sequence[Trial]") -> None:
    """Says of rows that look like the ones before them that this is no fault."""
    for trial in trials:
        if trial.kind == REPEAT:
            print(
                f"{trial.id} is {trial.id - 1} once more: roll it out anew; by how much the two "
                "differ is noise."
            )


def _print_csv(trials: "Sequence[Trial]", beside: dict[str, list[Any]]) -> None:
    """Trials as CSV, with the columns `beside` them."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(["id", "seed", *map(quoted, _names(trials)), *beside])
    for i, trial in enumerate(trials):
        more = (column[i] for column in beside.values())
        values = trial.params.values() if trial.names else trial.theta.tolist()
        writer.writerow([trial.id, trial.seed, *values, *more])


def _trials_table(trials: "Sequence[Trial]", beside: dict[str, list[str]]) -> Table:
    names = _names(trials)
    wide = len(names) > SHOWN
    table = Table(show_edge=False)
    for head in ("id", "seed", *(["theta"] if wide else names), *beside):
        table.add_column(cell(head), justify="right")
    for i, trial in enumerate(trials):
        values = list(trial.params.values()) or trial.theta.tolist()
        shown = [str(x) if isinstance(x, int) else f"{x:.5g}" for x in values]
        if wide:
            shown = [" ".join([*shown[:SHOWN], f"... {len(names) - SHOWN} more"])]
        more = (cells[i] for cells in beside.values())
        table.add_row(str(trial.id), str(trial.seed), *shown, *more)
    return table


def _times(n: int) -> str:
    return "once" if n == 1 else f"{n} times"


def _names(trials: "Sequence[Trial]") -> list[str]:
    """What the columns of thetas are called."""
    return list(trials[0].names) or _numbered(len(trials[0].theta))


def summary_rows(
    study: "Study",
    found: dict[str, Any],
    best: "tuple[Trial, float] | None",
    waiting: Sequence[int],
) -> dict[str, str]:
    """The state of a study, a row each, as a terminal shows it."""
    rows = state_rows(study.opened, found, best_trial(best), waiting)
    return {key: cell(text) for key, text in rows.items()}


def distribution_table(study: "Study") -> Table:
    """The newest distribution: its mean policy in the user's units, and its spread."""
    table = Table(show_edge=False)
    in_actions = study.method.space == "actions"
    for head in ("parameter", "mean policy", *([] if in_actions else ["±1 std"])):
        table.add_column(head, justify="left" if head == "parameter" else "right")
    for row in deployed(study.opened)[:SHOWN]:
        spread = [] if in_actions else [f"{row.low:.4g} to {row.high:.4g}"]
        table.add_row(cell(row.name), digits(row.value), *spread)
    if study.dim > SHOWN:
        table.add_row(f"... {study.dim - SHOWN} more", "")
    for i, sigma in enumerate(study.std if in_actions else ()):
        table.add_row(f"std of action {i}", f"{sigma:.4g}")
    return table


def _numbered(n: int) -> list[str]:
    return [f"theta_{i}" for i in range(n)]


def print_replay(
    study: "Study", own: list[dict[str, Any]], name: str, found: "list[Replayed]"
) -> None:
    """A study's moves beside those of another method, at most twenty of them."""
    title = cell(f"{study.method.name}, and {name} replayed on the same results")
    table = Table(show_edge=False, title=title, title_justify="left")
    heads = ("move", "results", "estimate", "worth", "replayed", "worth", "apart")
    for head in heads:
        table.add_column(head, justify="right", no_wrap=True)
    every = max(len(found) // 20, 1)
    marks = study.distributions()
    for mine, row in list(zip(own, found, strict=True))[::-every][::-1]:
        both = [cell for info in (mine, row.info) for cell in (_estimate(info), _ess(info))]
        table.add_row(
            str(row.move),
            str(row.results),
            *both,
            _gap(row, *marks[row.move]),
        )
    console = Console()
    console.print(table)
    console.print(
        "\n±: half of the 95 % interval, where there is one that can be believed; worth: effective "
        "sample size; apart: distance of the means, in standard deviations.",
        highlight=False,
    )
    least = LEAST * study.method.draw  # pairs are draws, and `ess` counts samples
    if any(row.info["ess"] < least for row in found):
        console.print(
            f"Where that is under {least:.0f}, the replayed distribution has left the results "
            "behind, and its estimates say nothing."
        )


def _gap(row: "Replayed", mean: Any, std: Any) -> str:
    """Root mean square of the differences of the means, in standard deviations."""
    if len(mean) != len(std):  # in action space
        return ""
    return f"{(((row.mean - mean) / std) ** 2).mean() ** 0.5:.2f}"


def _estimate(info: dict[str, Any]) -> str:
    low, high = info.get("low"), info.get("high")
    if low is None or high is None or not isfinite(low):
        return f"{info['objective']:.3g}"
    return f"{info['objective']:.3g} ± {(high - low) / 2:.1g}"


def _ess(info: dict[str, Any]) -> str:
    return f"{info['ess']:.1f}"

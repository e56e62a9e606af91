"""What `recoup study` prints: trials, the state of a study, a replay."""

import csv
import sys
from collections.abc import Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any

from recoup.cli.app import for_tables, print_json
from recoup.cli.text_tables import Cell, show_table, show_text
from recoup.core.types import Given, Plain
from recoup.store.rows import REPEAT
from recoup.study.exchange.tables import quoted
from recoup.study.space.parameters import labelled
from recoup.study.text.notebook import typed
from recoup.study.trials.ask import repeated
from recoup.study.views.study_summary import deployed
from recoup.study.voice.sentences import LEAST_ESS, of_the_move, replayed

if TYPE_CHECKING:  # JAX is slow to import, and most commands need none of it
    from recoup.study.exchange.replay import Replayed
    from recoup.study.reader.records import Trial
    from recoup.study.study import Study
    from recoup.study.trials.leases import Waiting

MANY = 100  # parameters, at most, that tables show


def print_trials(study: "Study", trials: "Sequence[Trial]", form: str) -> None:
    """Trials as a table, as JSON or as CSV."""
    if form == "json":
        print_json([trial.plain() for trial in trials])
    elif form == "csv":
        _print_csv(trials, {})
    else:
        _show_trials(study, trials, {})


def print_waiting(study: "Study", waiting: "Sequence[Waiting]", form: str) -> None:
    """Trials that wait for a result, with their ages and leases, likewise."""
    trials = [row.trial for row in waiting]
    if form == "json":
        print_json([row.plain() for row in waiting])
    elif form == "csv":
        times = [row.asked_at for row in waiting], [row.lease_until for row in waiting]
        _print_csv(trials, dict(zip(("asked_at", "lease_until"), times, strict=True)))
    else:
        beside = {"asked": [row.age for row in waiting]}
        if any(row.lease_until is not None for row in waiting):
            beside["lease"] = [row.lease for row in waiting]
        if any(row.handed_out > 1 for row in waiting):
            beside["handed out"] = [_times(row.handed_out) for row in waiting]
        _show_trials(study, trials, beside)


def _explain_repeats(study: "Study", trials: "Sequence[Trial]") -> None:
    """Says of rows that look like others that this is no fault."""
    for trial in trials:
        if trial.kind == REPEAT:
            first = repeated(study.store, trial.id)
            show_text(
                f"{trial.id} is {first} once more: roll it out anew; by how much the two differ is "
                "noise."
            )


def _print_csv(trials: "Sequence[Trial]", beside: dict[str, list[Any]]) -> None:
    """Trials as CSV, with the columns `beside` them."""
    writer = csv.writer(for_tables(sys.stdout), lineterminator="\n")
    writer.writerow(["id", "seed", *map(quoted, _names(trials)), *beside])
    for i, trial in enumerate(trials):
        more = (column[i] for column in beside.values())
        values = trial.params.values() if trial.names else trial.theta.tolist()
        writer.writerow([trial.id, trial.seed, *map(quoted, values), *more])


def _show_trials(study: "Study", trials: "Sequence[Trial]", beside: dict[str, list[str]]) -> None:
    """Trials, each with the digits that it takes to type it, and the columns `beside` them."""
    names = _names(trials)
    varies = [row.varies for row in deployed(study.opened)][:MANY]
    rows = []
    for i, trial in enumerate(trials):
        values = (list(trial.params.values()) or trial.theta.tolist())[:MANY]
        shown = [typed_value(*pair) for pair in zip(values, varies, strict=True)]
        more = [cells[i] for cells in beside.values()]
        rows.append([str(trial.id), str(trial.seed), *shown, *more])
    labels = [labelled(name, study.opened.units.get(name)) for name in names[:MANY]]
    show_table(["id", "seed", *labels, *beside], rows)
    if len(names) > MANY:
        show_text(f"{len(names) - MANY} more parameters: --format json gives all of them.")
    _explain_repeats(study, trials)


def show_values(study: "Study", trial: "Trial") -> None:
    """Prints one trial, a row a parameter."""
    units = study.opened.units
    values = list(trial.params.values()) or trial.theta.tolist()
    names = [labelled(name, units.get(name)) for name in _names([trial])]
    varies = [row.varies for row in deployed(study.opened)]
    cells = [typed_value(*pair) for pair in zip(values, varies, strict=True)]
    rows = list(zip(names, cells, strict=True))[:MANY]
    show_table(["parameter", f"trial {trial.id}"], rows, texts=["parameter"])
    if len(names) > MANY:
        show_text(f"{len(names) - MANY} more parameters: --json gives all of them.")


def typed_value(value: float | str, varies: float | None) -> str:
    """A value of a parameter with the digits that it takes to type it."""
    return str(value) if isinstance(value, int) else typed(value, varies)


def _times(n: int) -> str:
    return "once" if n == 1 else f"{n} times"


def _names(trials: "Sequence[Trial]") -> list[str]:
    """What the columns of thetas are called."""
    return list(trials[0].names) or [f"theta_{i}" for i in range(len(trials[0].theta))]


def show_distribution(study: "Study") -> None:
    """Prints the newest distribution: its mean policy in the user's units, and its spread."""
    in_actions = study.method.space == "actions"
    heads = ["parameter", "mean policy", *([] if in_actions else ["±1 std"])]
    rows: list[list[str | Cell]] = []
    for row in deployed(study.opened)[:MANY]:
        text, around = (Cell(x, row.chances is not None) for x in (row.text, row.around))
        rows.append([row.label, text, *([] if in_actions else [around])])
    for i, sigma in enumerate(study.std if in_actions else ()):
        rows.append([f"std of action {i}", f"{sigma:.4g}"])
    show_table(heads, rows, texts=["parameter"])
    left = len(study.opened.labels) - MANY
    if left > 0:
        show_text(f"{left} more parameters: `recoup study export` writes all of them.")


def print_replay(study: "Study", own: list[Plain], name: str, found: "list[Replayed]") -> None:
    """A study's moves beside those of another method, at most twenty of them."""
    heads = ("move", "results", "estimate", "worth", "replayed", "worth", "apart")
    every = max(len(found) // 20, 1)
    marks = study.distributions()
    rows = [
        [
            str(row.move),
            str(row.results),
            *(x for info in (mine, row.info) for x in (_estimate(info), f"{info['ess']:.1f}")),
            _gap(row, *marks[row.move]),
        ]
        for mine, row in list(zip(own, found, strict=True))[::-every][::-1]
    ]
    title = f"{study.method.name}, and {name} replayed on the same results"
    show_table(heads, rows, title=title)
    print()
    show_text(replayed())
    least = LEAST_ESS * study.method.draw  # pairs are draws, and `ess` counts samples
    if any(row.info["ess"] < least for row in found):
        show_text(
            f"Where that is under {least:.0f}, the replayed distribution has left the results "
            "behind, and its estimates say nothing."
        )


def _gap(row: "Replayed", mean: Given, std: Given) -> str:
    """Root mean square of the differences of the means, in standard deviations."""
    if len(mean) != len(std):  # in action space
        return ""
    return f"{(((row.mean - mean) / std) ** 2).mean() ** 0.5:.2f}"


def _estimate(info: Plain) -> str:
    objective, low, high = info["objective"], info.get("low"), info.get("high")
    if not isfinite(objective):
        return of_the_move(objective, low, high)
    if low is None or high is None or not isfinite(low):
        return f"{objective:.3g}"
    return f"{objective:.3g} ± {(high - low) / 2:.1g}"

"""`recoup study`: a search by hand, one episode at a time, days apart."""

import csv
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from recoup.checks import InputError, check_choice
from recoup.options import pairs, vector, whole_option

if TYPE_CHECKING:
    from recoup.study.records import Trial
    from recoup.study.study import Study

EXAMPLES = """
[bold]Examples[/]

  recoup study new robot.db --dim 12 --std 0.3

  recoup study ask robot.db -n 4

  recoup study tell robot.db 3 -12.3

  recoup study tell robot.db 4 --failed "gripper slipped"

  recoup study show robot.db
"""
FORMATS = ("table", "json", "csv")
SIGNED = {"ignore_unknown_options": True}  # so that -12.3 is a number and no option

app = typer.Typer(no_args_is_help=True, rich_markup_mode="rich", epilog=EXAMPLES)


def _open(file: Path, **settings: Any) -> "Study":
    """The study in `file`; JAX is imported only here, so that help stays fast."""
    from recoup.study.study import Study

    return Study.open(file, **settings)


File = Annotated[Path, typer.Argument(help="The study's file.", metavar="FILE")]


@app.command()
def new(
    file: File,
    dim: Annotated[int, whole_option("Parameters.")],
    method: Annotated[str | None, typer.Option(help="See `recoup methods`.")] = None,
    batch: Annotated[int | None, whole_option("Results of one move (10 unless said).")] = None,
    seed: Annotated[int | None, whole_option("Seed of all randomness.")] = None,
    mean: Annotated[
        str | None, typer.Option(help="Start of the means: a number, or D separated by commas.")
    ] = None,
    std: Annotated[
        str | None, typer.Option(help="Start of the standard deviations, likewise.")
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="A setting of the method.", metavar="KEY=VALUE"),
    ] = None,
) -> None:
    """Start a study in a new file."""
    if file.exists():
        raise InputError(f"{file} exists already: `recoup study show {file}` says what is in it.")
    start = {"mean": mean, "std": std}
    numbers = {key: vector(f"--{key}", text) for key, text in start.items() if text is not None}
    settings = {"dim": dim, "method": method, "batch": batch, "seed": seed, **numbers}
    _open(file, **settings, **pairs("--set", set_ or [])).close()
    print(file)


@app.command()
def ask(
    file: File,
    n: Annotated[int, typer.Option("-n", help="How many trials.")] = 1,
    format: Annotated[str, typer.Option(help=f"{', '.join(FORMATS)}.")] = "table",
) -> None:
    """Ask for trials to roll out."""
    check_choice("format", format, FORMATS)
    with _open(file) as study:
        trials = study.ask(n)
    _print_trials(trials, format)


def _print_trials(trials: "list[Trial]", form: str) -> None:
    if form == "json":
        rows = [{"id": t.id, "theta": t.theta.tolist(), "seed": t.seed} for t in trials]
        print(json.dumps(rows))
    elif form == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(["id", "seed", *(f"theta_{i}" for i in range(len(trials[0].theta)))])
        writer.writerows([t.id, t.seed, *t.theta.tolist()] for t in trials)
    else:
        table = Table(show_edge=False)
        for head in ("id", "seed", "theta"):
            table.add_column(head, justify="left" if head == "theta" else "right")
        for t in trials:
            table.add_row(str(t.id), str(t.seed), "  ".join(f"{x:.5g}" for x in t.theta))
        Console().print(table)


@app.command(context_settings=SIGNED)
def tell(
    file: File,
    id: Annotated[int | None, typer.Argument(help="The trial.", metavar="[ID]")] = None,
    value: Annotated[str | None, typer.Argument(help="Its return.", metavar="[RETURN]")] = None,
    failed: Annotated[str | None, typer.Option(help="Why it failed, in place of a return.")] = None,
    results: Annotated[
        Path | None, typer.Option("--file", help="A CSV file with columns id, return, failed.")
    ] = None,
) -> None:
    """Tell what came of a trial, or of many from a file: all of them, or none."""
    if (results is None) == (id is None):
        raise InputError("tell takes the id of a trial, or --file with many results.")
    with _open(file) as study:
        if results is not None:
            told = _read_results(results)
            study.tell_all(told)
            print(f"{len(told)} results told.")
        else:
            assert id is not None
            study.tell(id, None if value is None else _return(value), failed=failed)


def _read_results(path: Path) -> list[tuple[int, Any]]:
    """Results from a CSV file, every row checked before any is told."""
    from recoup.study.records import told_of

    try:
        rows = list(csv.DictReader(path.read_text().splitlines()))
    except OSError as wrong:
        raise InputError(f"{path} cannot be read: {wrong.strerror}.") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is not a text file.") from None
    found = []
    for line, row in enumerate(rows, 2):
        try:
            value, failed = row.get("return") or None, row.get("failed") or None
            returned = None if value is None else _return(value)
            found.append((int(row["id"]), told_of(returned, failed=failed)))
        except (KeyError, TypeError, ValueError) as wrong:
            what = "it needs the columns id, return, failed" if "id" not in row else str(wrong)
            raise InputError(f"line {line} of {path}: {what}") from None
    return found


def _return(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"a return must be a number, got {text!r}.") from None


@app.command()
def show(file: File) -> None:
    """What is in a study, and how it fares."""
    with _open(file) as study:
        counts, history, best = study.counts(), study.history(), study.best
        table = Table(show_edge=False, show_header=False)
        rows = {
            "method": f"{study.method.name}, batch {study.batch}, {study.dim} parameters",
            "trials": ", ".join(f"{count} {status}" for status, count in counts.items()),
            "moves": f"{len(history)}; the next after {study.until_move()} more results",
            "best": "none yet" if best is None else f"trial {best[0].id}: {best[1]:.6g}",
        }
        if history:
            last = history[-1]
            rows["estimate"] = f"{last['objective']:.4g} ± {last['objective_stderr']:.2g}"
            rows["reuse"] = f"{last['samples']} results that count for {last['ess']:.1f}"
        for key, text in rows.items():
            table.add_row(key, text)
        Console().print(table)


@app.command(context_settings=SIGNED)
def evaluate(
    file: File,
    mean: Annotated[str | None, typer.Option(help="Means of a candidate (the newest's).")] = None,
    std: Annotated[str | None, typer.Option(help="Its standard deviations (the newest's).")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Expected return of a candidate distribution, at no rollout."""
    candidate = {
        key: None if text is None else vector(f"--{key}", text)
        for key, text in {"mean": mean, "std": std}.items()
    }
    with _open(file) as study:
        found = study.evaluate(**candidate)
    if as_json:
        plain = {k: None if v != v else v for k, v in found._asdict().items()}
        print(json.dumps(plain))
    else:
        known = found.mean == found.mean
        print(f"{found.mean:.4g} ± {found.stderr:.2g}: {found.words}" if known else found.words)

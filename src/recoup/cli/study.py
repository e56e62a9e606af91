"""`recoup study`: a search by hand, one episode at a time, days apart."""

import csv
import io
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from recoup.checks import InputError, check_choice
from recoup.cli.parsing import method_settings, vector, whole_option
from recoup.cli.study_tables import (
    distribution_table,
    more_results,
    plain,
    print_replay,
    print_trials,
    summary_rows,
)
from recoup.study.parameters import parameter, parameters_of

if TYPE_CHECKING:
    from recoup.store.rows import Told
    from recoup.study.study import Study

EXAMPLES = """
[bold]Examples[/]

  recoup study new robot.db --param stiffness=10:200:log --param damping=0:1

  recoup study ask robot.db -n 4

  recoup study tell robot.db 3 -12.3

  recoup study tell robot.db 4 --failed "gripper slipped"

  recoup study show robot.db
"""
NEW_EXAMPLES = """
[bold]Examples[/]

  recoup study new robot.db --dim 12 --std 0.3

  recoup study new robot.db --dim 2 --mean -1,0.5 --std 0.3,0.1 --method iw-pgpe-ob --batch 5

  recoup study new robot.db --param stiffness=10:200:log --param damping=0:1 --param offset
"""
TELL_EXAMPLES = """
[bold]Examples[/]

  recoup study tell robot.db 3 -12.3

  recoup study tell robot.db 3 -12.3 -11.8 -12.9   (three episodes of one theta, one result)

  recoup study tell robot.db 4 --failed "gripper slipped"

  recoup study tell robot.db --file results.csv    (columns id, return, failed)
"""
IMPORT_EXAMPLES = """
[bold]Examples[/]

  recoup study import robot.db last-year.db

  recoup study import robot.db samples.csv --mean 0,0 --std 0.5
"""
REPLAY_EXAMPLES = """
[bold]Examples[/]

  recoup study replay robot.db --method iw-pgpe-ob

  recoup study replay robot.db --set epsilon=0.3 --plot replay.png
"""
ASK_EXAMPLES = """
[bold]Examples[/]

  recoup study ask robot.db

  recoup study ask robot.db -n 4 --format json

  recoup study ask robot.db --at mean
"""
EVALUATE_EXAMPLES = """
[bold]Examples[/]

  recoup study evaluate robot.db

  recoup study evaluate robot.db --mean 400,0.6 --std 0.5 --json
"""
CHECK_EXAMPLES = """
[bold]Examples[/]

  recoup study check robot.db

  recoup study check robot.db --recover saved.db
"""
EXPORT_EXAMPLES = """
[bold]Examples[/]

  recoup study export robot.db > trials.csv

  recoup study export robot.db --out trials.parquet
"""
FORK_EXAMPLES = """
[bold]Examples[/]

  recoup study fork robot.db careful.db --method tiw-pgpe-ob --batch 4

  recoup study fork runs/reach-2-mis-pgpe-ob-0/study.db by-hand.db --std 0.3
"""
ENQUEUE_EXAMPLES = """
[bold]Examples[/]

  recoup study enqueue robot.db 0.3 -1.2

  recoup study enqueue robot.db stiffness=400 damping=0.7 --note "last year's gains"
"""
FORMATS = ("table", "json", "csv")
SIGNED = {"ignore_unknown_options": True}  # so that -12.3 is a number and no option

app = typer.Typer(no_args_is_help=True, rich_markup_mode="rich", epilog=EXAMPLES)


@contextmanager
def _open(file: Path) -> "Iterator[Study]":
    """The study in `file`; what stands there but makes no sense gets one sentence."""
    from recoup.store.file import understood
    from recoup.study.study import Study

    if not file.exists():
        raise InputError(f"there is no study in {file}: `recoup study new {file}` starts one.")
    with understood(file), Study.open(file) as study:
        yield study


File = Annotated[Path, typer.Argument(help="The study's file.", metavar="FILE")]
MethodOption = Annotated[str | None, typer.Option(help="See `recoup methods`.", metavar="NAME")]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", help="A setting of the method, repeatable.", metavar="KEY=VALUE"),
]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object, nothing else.")]
MeanOption = Annotated[
    str | None, typer.Option(help="Means: a number, or D separated by commas.", metavar="X,...")
]
StdOption = Annotated[
    str | None, typer.Option(help="Standard deviations, likewise.", metavar="X,...")
]
BatchOption = Annotated[int | None, whole_option("Results of one move (10 unless said).")]
SeedOption = Annotated[int | None, whole_option("Seed of all randomness (0 unless said).")]


def _given(**options: Any) -> dict[str, Any]:
    """The options that were given, vectors as numbers."""
    found = {key: value for key, value in options.items() if value is not None}
    return {
        key: vector(f"--{key}", value) if key in ("mean", "std") else value
        for key, value in found.items()
    }


@app.command(epilog=NEW_EXAMPLES, context_settings=SIGNED)
def new(
    file: File,
    dim: Annotated[
        int | None, whole_option("How many parameters, where they have no names.")
    ] = None,
    param: Annotated[
        list[str] | None,
        typer.Option(
            help="A named parameter, repeatable: NAME, NAME=LOW:HIGH, NAME=LOW:HIGH:log.",
            metavar="NAME=LOW:HIGH",
        ),
    ] = None,
    params: Annotated[
        Path | None,
        typer.Option(
            help="A TOML file of them: a table each, with low, high, scale, start, std.",
            metavar="TOML",
        ),
    ] = None,
    method: MethodOption = None,
    batch: BatchOption = None,
    seed: SeedOption = None,
    mean: MeanOption = None,
    std: StdOption = None,
    horizon: Annotated[
        int | None, whole_option("Steps of an episode, for methods that explore in actions.")
    ] = None,
    actions: Annotated[int | None, whole_option("Actions of the policy, likewise.")] = None,
    discount: Annotated[float | None, typer.Option(help="Of rewards, likewise.")] = None,
    set_: SetOption = None,
) -> None:
    """Start a study in a new file."""
    if file.exists():
        raise InputError(f"{file} exists already: `recoup study show {file}` says what is in it.")
    named = [parameter(text) for text in param or []]
    named += [] if params is None else parameters_of(params)
    if not named and dim is None:
        raise InputError("give --dim, or the parameters' names with --param or --params.")
    episode = {"horizon": horizon, "actions": actions, "discount": discount}
    given = _given(dim=dim, method=method, batch=batch, seed=seed, mean=mean, std=std, **episode)
    if named:
        given["params"] = named
    from recoup.study.study import Study

    Study.open(file, **given, **method_settings(set_)).close()
    print(file)


@app.command(epilog=ASK_EXAMPLES)
def ask(
    file: File,
    n: Annotated[
        int | None, typer.Option("-n", help="How many trials (1 unless said).", metavar="N")
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(help="`mean`: the mean policy, which is no part of any estimate."),
    ] = None,
    format: Annotated[str, typer.Option(help=f"{', '.join(FORMATS)}.")] = "table",
) -> None:
    """Ask for trials to roll out; they are on disk when they are printed."""
    check_choice("format", format, FORMATS)
    with _open(file) as study:
        trials = study.ask(n, at=at)
    print_trials(trials, format)


@app.command()
def pending(
    file: File,
    format: Annotated[str, typer.Option(help=f"{', '.join(FORMATS)}.")] = "table",
) -> None:
    """Show again the trials that wait for a result."""
    check_choice("format", format, FORMATS)
    with _open(file) as study:
        trials = study.pending()
    if trials or format == "json":
        print_trials(trials, format)
    else:
        print("No trial waits for a result.")


@app.command(epilog=ENQUEUE_EXAMPLES, context_settings=SIGNED)
def enqueue(
    file: File,
    theta: Annotated[
        list[str],
        typer.Argument(help="Values in order, or NAME=VALUE of each.", metavar="VALUE..."),
    ],
    note: Annotated[str | None, typer.Option(help="Why this one.")] = None,
) -> None:
    """Put a theta of your own choice in line for the next `ask`."""
    with _open(file) as study:
        named = [text for text in theta if "=" in text]
        if named and len(named) < len(theta):
            raise InputError("give all values in order, or all as NAME=VALUE.")
        numbers = {name: _number(text) for name, _, text in (t.partition("=") for t in named)}
        listed = [_number(part) for text in theta for part in text.split(",")] if not named else []
        study.enqueue(numbers or listed, note)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"a value must be a number, got {text!r}.") from None


@app.command(epilog=TELL_EXAMPLES, context_settings=SIGNED)
def tell(
    file: File,
    id: Annotated[int | None, typer.Argument(help="The trial.", metavar="[ID]")] = None,
    value: Annotated[
        list[str] | None,
        typer.Argument(help="Its return, or those of several episodes.", metavar="[RETURN...]"),
    ] = None,
    failed: Annotated[str | None, typer.Option(help="Why it failed, in place of a return.")] = None,
    trajectory: Annotated[
        Path | None,
        typer.Option(
            help="A .npz file with features, actions, rewards, for methods that explore in actions."
        ),
    ] = None,
    results: Annotated[
        Path | None, typer.Option("--file", help="A CSV file with columns id, return, failed.")
    ] = None,
) -> None:
    """Tell what came of a trial, or of many from a file: all of them, or none."""
    if (results is None) == (id is None):
        raise InputError("tell takes the id of a trial, or --file with many results.")
    if results is not None and (value or failed or trajectory):
        raise InputError("with --file every result stands in the file.")
    with _open(file) as study:
        moved = len(study.history())
        if results is not None:
            told = _read_results(study, results)
            study.tell_all(told)
            print(f"{len(told)} results told.")
        else:
            assert id is not None
            study.tell(id, **_told(value, failed, trajectory))
        _say_next(study, len(study.history()) - moved)


def _told(value: list[str] | None, failed: str | None, trajectory: Path | None) -> dict[str, Any]:
    returns = [_return(text) for text in value or []]
    episode = None
    if trajectory is not None:
        from recoup.study.tables import arrays_of

        episode = arrays_of(trajectory)
    several = len(returns) > 1
    return {
        "value": returns[0] if len(returns) == 1 else None,
        "values": returns if several else None,
        "failed": failed,
        "trajectory": episode,
    }


def _say_next(study: "Study", moves: int) -> None:
    if moves:
        print(f"The distribution moved{'' if moves == 1 else f' {moves} times'}.")
    print(f"{more_results(study.until_move())} until the next move.")


def _read_results(study: "Study", path: Path) -> "list[tuple[int, Told]]":
    """Results from a CSV file, every row checked before any is told."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as wrong:
        raise InputError(f"{path} cannot be read: {wrong.strerror}.") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is not a text file.") from None
    reader = csv.DictReader(io.StringIO(text, newline=""))
    columns = [name.strip() for name in reader.fieldnames or []]
    if "id" not in columns or not {"return", "failed"} & set(columns):
        found = ", ".join(columns) or "none"
        raise InputError(f"{path} needs the columns id, return, failed; it has {found}.")
    reader.fieldnames = columns
    results = [_result(study, f"line {line} of {path}", row) for line, row in enumerate(reader, 2)]
    if not results:
        raise InputError(f"{path} holds no results.")
    return results


def _result(study: "Study", where: str, row: dict[str, str]) -> "tuple[int, Told]":
    """One line of a file of results."""
    number, value, failed = ((row.get(key) or "").strip() for key in ("id", "return", "failed"))
    if not number.isdecimal():
        raise InputError(f"{where}: the id of a trial must be a whole number, got {number!r}.")
    if bool(value) == bool(failed):
        raise InputError(f"{where}: give a return, or why it failed, not both.")
    try:
        told = study.result(_return(value) if value else None, failed=failed or None)
    except InputError as wrong:
        raise InputError(f"{where}: {wrong}") from None
    return int(number), told


def _return(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"a return must be a number, got {text!r}.") from None


@app.command()
def show(file: File, as_json: JsonOption = False) -> None:
    """What is in a study, how it fares, and what that means for the next batch."""
    with _open(file) as study, study.file.reading():
        found, best = study.diagnostics(), study.best
        if as_json:
            print(
                json.dumps(
                    plain({**found, "best": best and {**best[0].plain(), "return": best[1]}})
                )
            )
            return
        console, table = Console(), Table(show_edge=False, show_header=False)
        waiting = [trial.id for trial in study.pending()]
        for key, text in summary_rows(study, found, best, waiting).items():
            table.add_row(f"[bold]{key}", text)
        console.print(table)
        console.print()
        console.print(distribution_table(study))
        for sentence in found["advice"]:
            console.print(f"\n{sentence}", highlight=False)


@app.command(epilog=EVALUATE_EXAMPLES, context_settings=SIGNED)
def evaluate(
    file: File,
    mean: MeanOption = None,
    std: StdOption = None,
    as_json: JsonOption = False,
) -> None:
    """Expected return of a candidate distribution (the newest unless given), at no rollout."""
    with _open(file) as study:
        found = study.evaluate(**_given(mean=mean, std=std))
    if as_json:
        print(json.dumps(plain(found._asdict())))
    elif isfinite(found.mean):
        print(f"{found.mean:.4g} ± {found.stderr:.2g}: {found.words}")
    else:
        print(found.words[:1].upper() + found.words[1:])


@app.command(epilog=CHECK_EXAMPLES)
def check(
    file: File,
    recover: Annotated[
        Path | None,
        typer.Option(help="Write everything that can be read to this new file.", metavar="NEW"),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress.")] = False,
) -> None:
    """Verify a study: its bytes, its rows, its counters, its draws and its moves."""
    if recover is not None:
        from recoup.study.recover import recover as recover_file

        print(recover_file(file, recover).words)
        return
    from recoup.study.verify import check as check_file

    with _progress("making its moves again", quiet) as tick:
        found = check_file(file, tick)
    for finding in found:
        print(f"{'ok   ' if finding.sound else 'WRONG'}  {finding.words}")
    if not all(finding.sound for finding in found):
        raise typer.Exit(1)


@contextmanager
def _progress(what: str, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    from rich.progress import Progress

    console = Console(stderr=True)
    hidden = quiet or not console.is_terminal
    with Progress(console=console, transient=True, disable=hidden) as bar:
        row = bar.add_task(what, total=None)
        yield lambda done, of: bar.update(row, completed=done, total=of)


@app.command(epilog=EXPORT_EXAMPLES)
def export(
    file: File,
    format: Annotated[
        str | None, typer.Option(help="csv or parquet (by the name's ending unless said).")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="File to write; CSV goes to standard output without one.")
    ] = None,
) -> None:
    """Write all trials as a table, with the distributions that drew them."""
    from recoup.study import tables

    form = format or ("parquet" if out and out.suffix in tables.PARQUET else "csv")
    check_choice("format", form, tables.FORMATS)
    if form == "parquet" and out is None:
        raise InputError("a Parquet file needs a name: give --out trials.parquet.")
    with _open(file) as study:
        if out is None:
            tables.write_csv(study, sys.stdout)
            return
        tables.refuse_existing(out)
        if form == "parquet":
            count = tables.write_parquet(study, out)
        else:
            with out.open("w", newline="") as stream:
                count = tables.write_csv(study, stream)
    print(f"{count} trials in {out}")


@app.command(name="import", epilog=IMPORT_EXAMPLES, context_settings=SIGNED)
def import_(
    file: File,
    samples: Annotated[
        Path,
        typer.Argument(help="A .csv, .parquet or .npz file, or another study.", metavar="SAMPLES"),
    ],
    mean: Annotated[
        str | None, typer.Option(help="Mean of what drew them, where the file does not say.")
    ] = None,
    std: Annotated[str | None, typer.Option(help="Its standard deviations, likewise.")] = None,
) -> None:
    """Add samples from elsewhere, weighed by what drew them."""
    from recoup.study.fork import import_samples
    from recoup.study.tables import read_samples

    with _open(file) as study:
        found = read_samples(study, samples)
        given = _given(mean=mean, std=std)
        if given:
            import numpy as np

            if found.mean is not None:
                raise InputError(f"{samples} says itself what drew them: leave out --mean, --std.")
            drawn = {key: np.asarray(value, float) for key, value in given.items()}
            found = found._replace(mean=drawn.get("mean"), std=drawn.get("std"))
        print(import_samples(study, found, str(samples)).words)


@app.command(epilog=REPLAY_EXAMPLES, context_settings=SIGNED)
def replay(
    file: File,
    method: MethodOption = None,
    mean: MeanOption = None,
    std: StdOption = None,
    set_: SetOption = None,
    plot: Annotated[Path | None, typer.Option(help="A picture of it.", metavar="PNG")] = None,
    as_json: JsonOption = False,
) -> None:
    """How another method would have moved on the same results, at no rollout."""
    from recoup.study.replay import replay as replay_study

    with _open(file) as study:
        given = {**_given(mean=mean, std=std), **method_settings(set_)}
        with _progress("replaying", as_json) as tick:
            found = replay_study(study, method, tick=tick, **given)
        if not found:
            raise InputError(f"{file} has not moved yet: there is nothing to replay.")
        own = study.history()
        name = method or study.method.name
        if plot is not None:
            from recoup.pictures.curves import replayed

            try:
                replayed(study.method.name, own, name, found).savefig(plot, dpi=150)
            except (OSError, ValueError) as wrong:
                raise InputError(f"{plot} cannot be written: {wrong}.") from None
        if as_json:
            print(json.dumps([plain(row.plain()) for row in found]))
        else:
            print_replay(study, own, name, found)


@app.command(epilog=FORK_EXAMPLES, context_settings=SIGNED)
def fork(
    file: File,
    new: Annotated[Path, typer.Argument(help="The new study's file.", metavar="NEW")],
    method: MethodOption = None,
    batch: Annotated[int | None, whole_option("Results of one move.")] = None,
    seed: Annotated[int | None, whole_option("Seed of all randomness.")] = None,
    mean: MeanOption = None,
    std: StdOption = None,
    set_: SetOption = None,
) -> None:
    """Start a new study from all results of an old one, under another method or start."""
    given = _given(method=method, batch=batch, seed=seed, mean=mean, std=std)
    with _open(file) as study, study.fork(new, **given, **method_settings(set_)) as forked:
        counts = forked.counts()
        print(f"{new}: starts from {counts['ok']} results of {file}")

"""`recoup study new|ask|pending|enqueue|tell|show|evaluate`: a search by hand, days apart."""

import csv
import io
import json
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from recoup.checks import InputError, check_choice, shortly
from recoup.cli.app import cell, say
from recoup.cli.parsing import duration, method_settings, typed_result, typed_return, whole_option
from recoup.cli.study_app import (
    SIGNED,
    BatchOption,
    File,
    JsonOption,
    LeaseOption,
    MeanOption,
    MethodOption,
    SeedOption,
    SetOption,
    StdOption,
    app,
    given_options,
    opened,
)
from recoup.cli.study_tables import (
    distribution_table,
    more_results,
    plain,
    print_trials,
    print_waiting,
    summary_rows,
)
from recoup.store.dropped import dropped
from recoup.study.amend import BEFORE, in_words
from recoup.study.parameters import parameter, parameters_of
from recoup.study.readings import heads
from recoup.study.slips import slips

if TYPE_CHECKING:
    from recoup.store.rows import Told
    from recoup.study.study import Study

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
AMEND_EXAMPLES = """
[bold]Examples[/]

  recoup study amend robot.db 6 -12.5 --why "a slip of the keyboard" --dry-run

  recoup study amend robot.db 6 --failed "the gripper opened"

  recoup study amend robot.db 6 --drop "the sensor was loose"

  recoup study amend arm.db 6 --trajectory episode.npz   (for methods that explore in actions)
"""
ASK_EXAMPLES = """
[bold]Examples[/]

  recoup study ask robot.db

  recoup study ask robot.db -n 4 --format json

  recoup study ask robot.db --at mean

  recoup study ask robot.db -n 4 --lease 1h   (handed out again if not told by then)
"""
EVALUATE_EXAMPLES = """
[bold]Examples[/]

  recoup study evaluate robot.db

  recoup study evaluate robot.db --mean 400,0.6 --std 0.5 --json
"""
ENQUEUE_EXAMPLES = """
[bold]Examples[/]

  recoup study enqueue robot.db 0.3 -1.2

  recoup study enqueue robot.db stiffness=400 damping=0.7 --note "last year's gains"
"""
FORMATS = ("table", "json", "csv")
LONGEST = 18  # digits of a trial's id


@app.command(epilog=NEW_EXAMPLES, context_settings=SIGNED)
def new(
    file: File,
    dim: Annotated[
        int | None, whole_option("How many parameters, where they have no names.")
    ] = None,
    param: Annotated[
        list[str] | None,
        typer.Option(
            help="A named parameter, repeatable: NAME, NAME=LOW:HIGH, with :log or :int behind it.",
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
    given = given_options(
        dim=dim, method=method, batch=batch, seed=seed, mean=mean, std=std, **episode
    )
    if named:
        given["params"] = named
    from recoup.study.study import Study

    Study.open(file, **given, **method_settings(set_)).close()
    say(file)


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
    lease: LeaseOption = None,
    format: Annotated[str, typer.Option(help=f"{', '.join(FORMATS)}.")] = "table",
) -> None:
    """Ask for trials to roll out; they are on disk when they are printed."""
    check_choice("format", format, FORMATS)
    seconds = None if lease is None else duration("--lease", lease)
    with opened(file) as study:
        trials = study.ask(n, at=at, lease=seconds)
    print_trials(trials, format)


@app.command()
def pending(
    file: File,
    format: Annotated[str, typer.Option(help=f"{', '.join(FORMATS)}.")] = "table",
) -> None:
    """Show again the trials that wait for a result, since when, and how long their leases run."""
    check_choice("format", format, FORMATS)
    with opened(file) as study:
        waiting = study.waiting()
    if waiting or format == "json":
        print_waiting(waiting, format)
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
    with opened(file) as study:
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
        raise InputError(f"a value must be a number, got {shortly(text)}.") from None


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
    with opened(file) as study:
        moved = len(study.history())
        if results is not None:
            told = _read_results(study, results)
            later = study.tell_all(told)
            print(f"{len(told)} results told.")
        else:
            assert id is not None
            told = [(id, study.result(**typed_result(value, failed, trajectory)))]
            later = study.tell_all(told)
            if not later:
                say(f"Trial {id}: {in_words(told[0][1])}.")
        for row in later:
            say(row.words)
        counting = study.store.returns(dropped(study.store))
        for slip in slips(counting, {number for number, _ in told}):
            say(slip.words)
        _say_next(study, len(study.history()) - moved)


@app.command(epilog=AMEND_EXAMPLES, context_settings=SIGNED)
def amend(
    file: File,
    id: Annotated[int, typer.Argument(help="The trial.", metavar="ID")],
    value: Annotated[
        list[str] | None,
        typer.Argument(help="Its return, or those of several episodes.", metavar="[RETURN...]"),
    ] = None,
    failed: Annotated[str | None, typer.Option(help="Why it failed, in place of a return.")] = None,
    trajectory: Annotated[
        str | None,
        typer.Option(
            help=f"A .npz file as `tell` takes it, or {BEFORE}: that which an amendment took away.",
            metavar=f"FILE|{BEFORE}",
        ),
    ] = None,
    drop: Annotated[
        str | None, typer.Option(help="Why it is worth nothing: kept, and counted for nothing.")
    ] = None,
    why: Annotated[str | None, typer.Option(help="Why it is put right.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would change, and change nothing.")
    ] = False,
) -> None:
    """Put a result right that was told wrongly; the moves made of it are made again."""
    given = typed_result(value, failed, None if trajectory == BEFORE else trajectory)
    if trajectory == BEFORE:
        given["trajectory"] = BEFORE
    with opened(file) as study:
        found = study.amend(id, **given, drop=drop, why=why, dry_run=dry_run)
    say(found.words)


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
    columns = heads(path, reader.fieldnames or [])
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
    if not number.isdecimal() or len(number) > LONGEST:
        raise InputError(f"{where}: the id of a trial must be a whole number, got {number[:40]!r}.")
    if not value and not failed:
        raise InputError(f"{where}: trial {number} has no return: give one, or why it failed.")
    if value and failed:
        raise InputError(f"{where}: give a return, or why it failed, not both.")
    try:
        told = study.result(typed_return(value) if value else None, failed=failed or None)
    except InputError as wrong:
        raise InputError(f"{where}: {wrong}") from None
    return int(number), told


@app.command()
def show(file: File, as_json: JsonOption = False) -> None:
    """What is in a study, how it fares, and what that means for the next batch."""
    with opened(file) as study, study.store.reading():
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
            console.print(f"\n{cell(sentence)}", highlight=False)


@app.command(epilog=EVALUATE_EXAMPLES, context_settings=SIGNED)
def evaluate(
    file: File,
    mean: MeanOption = None,
    std: StdOption = None,
    as_json: JsonOption = False,
) -> None:
    """Expected return of a candidate distribution (the newest unless given), at no rollout."""
    with opened(file) as study:
        found = study.evaluate(**given_options(mean=mean, std=std))
    if as_json:
        print(json.dumps(plain(found._asdict())))
    elif isfinite(found.low):
        say(f"{found.mean:.4g}, 95 % interval {found.low:.4g} to {found.high:.4g}. {found.words}")
    elif isfinite(found.mean):
        say(f"{found.mean:.4g}. {found.words}")
    else:
        say(found.words[:1].upper() + found.words[1:])

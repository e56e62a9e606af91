"""`recoup study ask|pending|enqueue`: trials to roll out."""

from typing import Annotated

from recoup.checks import InputError
from recoup.cli.app import argument, examples, option, print_json
from recoup.cli.parsing import check_once, duration, typed_value
from recoup.cli.study_app import (
    SIGNED,
    File,
    FormatOption,
    JsonOption,
    LeaseOption,
    app,
    form_of,
    opened,
)
from recoup.cli.study_tables import print_trials, print_waiting

ASK_EXAMPLES = examples(
    "study ask robot.db",
    "study ask robot.db -n 4 --json",
    "study ask robot.db --at mean",
    "study ask robot.db -n 4 --lease 1h   (handed out again if not told by then)",
)
ENQUEUE_EXAMPLES = examples(
    "study enqueue robot.db 0.3 -1.2",
    'study enqueue robot.db stiffness=400 gripper=soft --note "last year\'s gains"',
)


@app.command(epilog=ASK_EXAMPLES)
def ask(
    file: File,
    n: Annotated[int | None, option("-n", "How many trials (1 unless said).", metavar="N")] = None,
    at: Annotated[str | None, option("`mean`: the mean policy, of which no move is made.")] = None,
    lease: LeaseOption = None,
    format: FormatOption = None,
    as_json: JsonOption = False,
) -> None:
    """Ask for trials to roll out; they are on disk when they are printed."""
    form = form_of(format, as_json)
    seconds = None if lease is None else duration("--lease", lease)
    with opened(file) as study:
        print_trials(study, study.ask(n, at=at, lease=seconds), form)


@app.command()
def pending(file: File, format: FormatOption = None, as_json: JsonOption = False) -> None:
    """Show again the trials that wait for a result, since when, and how long their leases run."""
    form = form_of(format, as_json)
    with opened(file, read_only=True) as study:
        waiting = study.waiting()
        if waiting or form == "json":
            print_waiting(study, waiting, form)
        else:
            print("No trial waits for a result.")


@app.command(epilog=ENQUEUE_EXAMPLES, **SIGNED)
def enqueue(
    file: File,
    theta: Annotated[list[str], argument("Values in order, or NAME=VALUE of each.", "VALUE...")],
    note: Annotated[str | None, option("Why this one.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Put a theta of your own choice in line for the next `ask`."""
    with opened(file) as study:
        named = [text for text in theta if "=" in text]
        if named and len(named) < len(theta):
            raise InputError("give all values in order, or all as NAME=VALUE.")
        given: dict[str, float | str] = {}
        for name, _, value in (text.partition("=") for text in named):
            check_once("the parameter", name, given)
            given[name] = typed_value(value)
        listed = [typed_value(part) for text in theta for part in text.split(",")]
        study.enqueue(given or listed, note)
        if as_json:
            print_json({"in_line": len(study.queue())})

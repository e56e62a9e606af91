"""The program: what it says when it is started, and how every command ends."""

import os
from typing import Annotated

import typer

from recoup import __version__
from recoup.checks import InputError
from recoup.cli.app import app, fail, say, stop
from recoup.cli.study_app import app as study_app
from recoup.engine.methods import DEFAULT_METHOD, METHODS
from recoup.tasks.own.found import registered
from recoup.tasks.registry import TASKS

# Commands are listed in the order in which these modules add them.
from recoup.cli import train  # noqa: F401  # isort: skip
from recoup.cli import runs  # noqa: F401  # isort: skip
from recoup.cli import reproduce  # noqa: F401  # isort: skip
from recoup.cli import compare  # noqa: F401  # isort: skip
from recoup.cli import study  # noqa: F401  # isort: skip
from recoup.cli import study_recommend  # noqa: F401  # isort: skip
from recoup.cli import study_archives  # noqa: F401  # isort: skip
from recoup.cli import study_pictures  # noqa: F401  # isort: skip

HELP = "Policy search that gets the most out of every rollout."
EXAMPLES = """
[bold]Examples[/]

  recoup train mountain-car

  recoup train mountain-car --method iw-pgpe-ob --iterations 30 --json

  recoup study new robot.db --dim 12 --std 0.3

  recoup methods
"""

app.add_typer(study_app, name="study", help="A search by hand: ask, roll out, tell.")


def main() -> None:
    """Runs the program; whatever goes wrong becomes one sentence and an exit status."""
    try:
        status = app(standalone_mode=False)
    except typer.Exit as ended:
        status = ended.exit_code
    except KeyboardInterrupt:
        stop("stopped.")
    except typer.TyperException as wrong:
        if not wrong.format_message():  # no command was given, and the help has been shown
            raise SystemExit(wrong.exit_code) from None
        fail(wrong.format_message(), wrong.exit_code)
    except InputError as wrong:
        fail(str(wrong), 2)
    except Exception as failure:
        if os.environ.get("RECOUP_TRACEBACK"):
            raise
        what = str(failure).partition("\n")[0] or type(failure).__name__
        fail(f"{what} (RECOUP_TRACEBACK=1 shows where)", 1)
    raise SystemExit(status or 0)


def _print_version(asked: bool) -> None:
    if asked:
        print(f"recoup {__version__}")
        raise typer.Exit


@app.callback(help=HELP, epilog=EXAMPLES)
def recoup(  # noqa: D103
    version: Annotated[
        bool,
        typer.Option("--version", help="Print it.", callback=_print_version, is_eager=True),
    ] = False,
) -> None:
    pass


@app.command()
def methods() -> None:
    """List the methods, one line each."""
    for row in METHODS.values():
        mark = " (default)" if row.name == DEFAULT_METHOD else ""
        print(f"{row.name:<15} {row.summary}{mark}")


@app.command()
def tasks() -> None:
    """List the tasks, one line each."""
    for row in TASKS.values():
        print(f"{row.name:<18} {row.summary}")
    for found in registered().values():
        say(f"{found.name:<18} {found.summary or 'registered'}")
    print(f"{'a Gymnasium id':<18} any registered environment, for instance Pendulum-v1")
    print(f"{'module:callable':<18} a function that makes an environment; with --dim, of theta")

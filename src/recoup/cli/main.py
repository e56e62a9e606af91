"""The program: what it says when it is started, and how every command ends."""

import os
import sys
import warnings
from importlib import import_module
from io import TextIOWrapper
from typing import Annotated, Any

import typer

from recoup import __version__
from recoup.checks import InputError
from recoup.cli.app import app, examples, fail, option, stop
from recoup.cli.study_app import app as study_app

# Commands are listed in the order in which these modules add them.
BY_HAND = (
    *("study_commands", "study_ask", "study_diary", "study_recommend", "study_archives"),
    "study_pictures",
)
OTHERS = (
    *("train_commands", "run_commands", "policies", "reproduce_command", "compare", "lists"),
    *("serve_command", "work_command"),
)
COMPILER = ("jax", "jaxlib", "optax")
HELP = "Policy search that gets the most out of every rollout."
EXAMPLES = examples(
    "train mountain-car",
    "train mountain-car --method iw-pgpe-ob --iterations 30 --json",
    "study new robot.db --dim 12 --std 0.3",
    "methods",
)

app.add_typer(study_app, name="study", help="A search by hand: ask, roll out, tell.")


def main() -> None:
    """Runs the program; whatever goes wrong becomes one sentence and an exit status."""
    warnings.formatwarning = _one_sentence
    for stream in (sys.stdout, sys.stderr):  # a letter that one has not is written out
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    by_hand = sys.argv[1:2] == ["study"]  # imports take most of its time
    wanted = BY_HAND if by_hand else (*OTHERS, *BY_HAND)
    for name in ("serve_command",) if sys.argv[1:2] == ["serve"] else wanted:
        import_module(f"recoup.cli.{name}")
    try:
        status = app(standalone_mode=False)
        sys.stdout.flush()
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
        if by_hand and isinstance(failure, OSError) and not (failure.filename or _prints()):
            why = failure.strerror
            fail(f"only printing failed ({why}): what was to be stored is stored.", 1)
        if os.environ.get("RECOUP_TRACEBACK"):
            raise
        if getattr(failure, "name", None) in COMPILER:
            fail("this is computed by JAX, which is not installed: pip install jax optax", 1)
        what = str(failure).partition("\n")[0] or type(failure).__name__
        fail(f"{what} (RECOUP_TRACEBACK=1 shows where)", 1)
    raise SystemExit(status or 0)


def _prints() -> bool:
    """Whether standard output takes a line; a command of a study has stored all before it prints.

    Where it does not, what is left for it goes nowhere: else it would fail once more at the end.
    """
    try:
        print(flush=True)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return False
    return True


def _one_sentence(message: Any, *rest: Any, **more: Any) -> str:
    """A warning as it is printed: what it says, not the line of code that says it."""
    return f"warning: {message}\n"


def _print_version(asked: bool) -> None:
    if asked:
        print(f"recoup {__version__}")
        raise typer.Exit


@app.callback(help=HELP, epilog=EXAMPLES)
def recoup(  # noqa: D103
    version: Annotated[
        bool, option("--version", "Print it.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    pass

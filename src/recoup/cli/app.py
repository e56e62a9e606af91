"""The program's commands are added to this app, and what they share."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, NoReturn

import typer

app = typer.Typer(
    rich_markup_mode="rich",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

JsonOption = Annotated[
    bool, typer.Option("--json", help="Print one JSON object on standard output, nothing else.")
]

ForceOption = Annotated[
    bool,
    typer.Option("--force", help="Write over a file that recoup did not make; never over a study."),
]


def fail(sentence: str, status: int) -> NoReturn:
    """Ends with one sentence and a status."""
    print(f"recoup: {shown(sentence)}", file=sys.stderr)
    raise SystemExit(status)


def shown(text: str) -> str:
    """A text as a terminal may show it: what it would obey is written out."""
    return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in text)


def stop(sentence: str) -> NoReturn:
    """Ends at once after Ctrl-C: threads of others may not survive an orderly end."""
    print(f"recoup: {sentence}", file=sys.stderr, flush=True)
    os._exit(130)


@contextmanager
def interruptible() -> Iterator[None]:
    """Ctrl-C is an exception inside, so that what was begun can be left in order."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)

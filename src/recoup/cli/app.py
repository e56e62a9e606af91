"""The program's commands are added to this app, and what they share."""

import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Annotated, Any, NoReturn, cast

import numpy as np
import typer

from recoup.checks import printable, without_nan

app = typer.Typer(rich_markup_mode="rich", no_args_is_help=True, pretty_exceptions_enable=False)


def option(*words: str, **more: Any) -> Any:
    """An option: its names, where they are not the parameter's, and its help."""
    *names, text = words
    return typer.Option(*names, help=text, **more)


def argument(text: str, metavar: str, **more: Any) -> Any:
    """An argument: its help, and how it is called there."""
    return typer.Argument(help=text, metavar=metavar, **more)


JsonOption = Annotated[
    bool, option("--json", "Print one line of JSON on standard output, nothing else.")
]

ForceOption = Annotated[
    bool, option("--force", "Write over a file that recoup did not make; never over a study.")
]


def examples(*lines: str) -> str:
    """The end of a command's help: what is typed after `recoup`."""
    return "\n[bold]Examples[/]\n" + "".join(f"\n  recoup {line}\n" for line in lines)


def fail(sentence: str, status: int) -> NoReturn:
    """Ends with one sentence and a status."""
    print(f"recoup: {printable(sentence)}", file=sys.stderr)
    raise SystemExit(status)


def say(text: object) -> None:
    """Prints a text on one line; what a terminal would obey of what it quotes is written out."""
    print(printable(str(text)))


def say_path(what: str, path: Path, as_json: bool) -> None:
    """Prints what was written: its name alone, or as JSON under what it is."""
    if as_json:
        print_json({what: path})
    else:
        say(path)


def print_json(found: Any) -> None:
    """Prints what a command found as one line of JSON: null for what is not a number."""
    print(json.dumps(without_nan(_plain(found))))


def _plain(found: Any) -> Any:
    """The same as dicts, lists, texts and numbers."""
    if hasattr(found, "_asdict"):
        found = found._asdict()
    if isinstance(found, dict):
        return {key: _plain(value) for key, value in found.items()}
    if isinstance(found, (list, tuple)):
        return [_plain(value) for value in found]
    if isinstance(found, (np.ndarray, np.generic)):
        return found.tolist()
    return str(found) if isinstance(found, Path) else found


def stop(sentence: str) -> NoReturn:
    """Ends at once after Ctrl-C: threads of others may not survive an orderly end."""
    print(f"recoup: {printable(sentence)}", file=sys.stderr, flush=True)
    os._exit(130)


def for_tables(stream: IO[str]) -> IO[str]:
    """A stream for a table: UTF-8 into a file or a pipe, made printable on a terminal.

    The columns are named after parameters, and `import` reads UTF-8, whatever the locale is.
    """
    if stream.isatty():
        return cast(IO[str], _Printable(stream))
    if isinstance(stream, TextIOWrapper):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    return stream


class _Printable:
    """What is written line by line, with what a terminal would obey written out."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Writes a row, which ends with its own line break."""
        return self._stream.write(f"{printable(text.removesuffix(chr(10)))}\n")


@contextmanager
def interruptible() -> Iterator[None]:
    """Ctrl-C is an exception inside, so that what was begun can be left in order."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)

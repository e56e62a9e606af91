"""The program, called in this process: what it prints and how it ends, nothing compiled twice.

As a process of its own it is tested where that matters: streams, signals, start-up.
"""

import contextlib
import functools
import io
import os
import sys
from typing import NamedTuple
from unittest import mock

from typer import main as typer

from recoup.cli.main import main

BUILD = typer.get_command


class Done(NamedTuple):
    """As `subprocess.run` gives it."""

    returncode: int
    stdout: str
    stderr: str


@functools.cache
def built(app, commands):
    """The parser of the program: Typer makes it for each call, and takes longer than most do."""
    return BUILD(app)


def kept(app):
    """The same while no command was added."""
    groups = [app, *(group.typer_instance for group in app.registered_groups)]
    return built(app, sum(len(group.registered_commands) for group in groups))


def recoup(*words, cwd=None, together=False):
    """`recoup WORDS...` in the directory `cwd`; both streams as one where they are `together`."""
    out, before = io.StringIO(), os.getcwd()
    err = out if together else io.StringIO()
    argv = mock.patch.object(sys, "argv", ["recoup", *map(str, words)])
    parser = mock.patch.object(typer, "get_command", kept)
    os.chdir(cwd or before)
    try:
        with argv, parser, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                main()
                status = 0
            except SystemExit as ended:
                status = ended.code or 0
    finally:
        os.chdir(before)
    return Done(status, out.getvalue(), err.getvalue())

"""The program, called in this process: what it prints and how it ends, nothing compiled twice.

As a process of its own it is tested where that matters: streams, signals, start-up.
"""

import contextlib
import io
import os
import sys
from typing import NamedTuple
from unittest import mock

from recoup.cli.main import main


class Done(NamedTuple):
    """As `subprocess.run` gives it."""

    returncode: int
    stdout: str
    stderr: str


def recoup(*words, cwd=None, together=False):
    """`recoup WORDS...` in the directory `cwd`; both streams as one where they are `together`."""
    out, before = io.StringIO(), os.getcwd()
    err = out if together else io.StringIO()
    argv = mock.patch.object(sys, "argv", ["recoup", *map(str, words)])
    os.chdir(cwd or before)
    try:
        with argv, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                main()
                status = 0
            except SystemExit as ended:
                status = ended.code or 0
    finally:
        os.chdir(before)
    return Done(status, out.getvalue(), err.getvalue())

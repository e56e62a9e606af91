"""Where a study file lies: its address, what lies beside it, and how a new one gets its name."""

import os
import re
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from recoup.checks import InputError, check_path
from recoup.store.errors import Exists

LOG, COUNT = "-wal", "-count"  # what lies beside a file that is open
UNFINISHED = ".new"


def beside(path: Path, ending: str) -> Path:
    """The path of what lies beside a study file: its LOG or its COUNT.

    Beside the file itself, where SQLite looks, not beside a link to it.
    """
    file = path.resolve()
    return file.with_name(file.name + ending)


def unfinished_of(path: Path) -> Path:
    """The name that a new file has while this process writes it."""
    return path.with_name(f"{path.name}.{os.getpid()}{UNFINISHED}")


def address(path: Path, mode: str) -> str:
    """A file as SQLite is told of it; `mode` is rwc (made if it is not there), rw or ro.

    A file without a log that is only read is taken as one that nobody changes: SQLite then needs
    to write nothing beside it.
    """
    still = "&immutable=1" if mode == "ro" and not beside(path, LOG).exists() else ""
    return f"file:{_quoted(path)}?mode={mode}{still}"


def is_writable(path: Path) -> bool:
    """Whether a study file can be written to, and its log beside it."""
    return os.access(path, os.W_OK) and os.access(path.absolute().parent, os.W_OK)


def check_place(path: Path) -> None:
    """Raises unless a new file can be made there; leftovers of killed processes are cleared."""
    if check_path("the new file", path).exists():
        raise Exists(f"{path} exists already.")
    if not path.parent.is_dir():
        raise InputError(f"{path.parent} does not exist: make it, or name another place.")
    if beside(path, LOG).exists():
        raise InputError(
            f"{beside(path, LOG)} lies there, the log of a study whose file {path} is gone: put "
            "the file back, or remove the log to start anew."
        )
    beside(path, COUNT).unlink(missing_ok=True)
    unfinished = re.compile(rf"{re.escape(path.name)}\.(\d+)\{UNFINISHED}(-wal|-shm|-journal)?")
    for leftover in path.parent.iterdir():
        match = unfinished.fullmatch(leftover.name)
        if match and not _alive(match[1]):
            leftover.unlink(missing_ok=True)


def put(unfinished: Path, path: Path) -> None:
    """Gives a finished file its name, for good, unless another process has taken it."""
    try:
        os.link(unfinished, path)  # fails, where a rename would overwrite
    except FileExistsError:
        raise Exists(f"{path} exists already: another process has made it.") from None
    except OSError:  # a file system without links
        unfinished.replace(path)
    unfinished.unlink(missing_ok=True)
    with suppress(OSError):  # not every system can synchronise a directory
        descriptor = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _quoted(path: Path) -> str:
    whole = os.fsencode(path.absolute())
    return quote(b"/" + whole.lstrip(b"/")) if os.sep == "/" else quote(whole)


def _alive(process: str) -> bool:
    """Whether a process with this number is running, as far as can be told."""
    try:
        os.kill(int(process), 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True

"""Files that are written for people: whole or not at all, and never over what is not ours.

Whatever writes a page, a picture, a table, a film or a policy does so through `written`. An older
file of ours is replaced; any other only by force; a study, and what lies beside it, never is.
"""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from recoup.checks import InputError, check_path

MARK = b"recoup"  # in what says of a file by what it was made
UNFINISHED = ".new"
BESIDE = ("-wal", "-shm", "-journal", "-count")  # what lies beside a study that is open
SQLITE = b"SQLite format 3\0"
BEGINNINGS = {  # of files of a kind, and where they stand
    ".png": (0, b"\x89PNG\r\n\x1a\n"),
    ".pdf": (0, b"%PDF-"),
    ".svg": (0, b"<?xml"),
    ".mp4": (4, b"ftyp"),
    ".npz": (0, b"PK\3\4"),
    ".json": (0, b"{"),
}


class Kind(NamedTuple):
    """A kind of file that we write: how its name ends, and how one of ours is known again."""

    endings: tuple[str, ...]
    is_ours: Callable[[Path], bool]
    once: bool = False  # whether even one of ours is not replaced unasked
    ours: str = "one that recoup has made"


class Over(NamedTuple):
    """What may be written over, beside an older file of ours."""

    force: bool = False  # any plain file that is not a study
    home: bool = False  # in a directory of ours: what is of its kind, though it has no mark
    study: Path | None = None  # what is read, and is never written over


OURS = Over()


def check_output(path: Path, kind: Kind, over: Over = OURS, *, parents: bool = False) -> Path:
    """The file behind `path`, once it may be written: nothing is there, or an older one of ours.

    With `parents` a directory that is missing will be made.
    """
    try:
        file = _followed(path)
        _check_no_study(path, file, kind, over.study)
        _check_name(path, kind)
        check_directory(path, file.parent, parents)
        if file.exists():
            _check_replaceable(path, file, kind, over)
    except OSError as wrong:
        raise InputError(_unwritable(path, wrong)) from None
    return file


@contextmanager
def written(path: Path, kind: Kind, over: Over = OURS, *, parents: bool = False) -> Iterator[Path]:
    """The name that a file has while it is written; at the end it gets its own, at once.

    What is asked of `path` is what `check_output` asks. Where writing fails, nothing is left.
    """
    file = check_output(path, kind, over, parents=parents)
    unfinished = unfinished_of(file)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        clear_unfinished(file)
        unfinished.unlink(missing_ok=True)
        yield unfinished
        check_output(path, kind, over)  # others write too
        _finish(unfinished, file)
    except OSError as wrong:
        raise InputError(_unwritable(path, wrong)) from None
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)


def unfinished_of(path: Path) -> Path:
    """The name that a new file has while this process writes it."""
    return path.with_name(f"{path.name}.{os.getpid()}{UNFINISHED}")


def clear_unfinished(path: Path) -> None:
    """Removes what processes that were killed have left of a file while they wrote it."""
    for leftover in path.parent.iterdir():
        process = maker_of(path, leftover)
        if process is not None and not _alive(process):
            with suppress(OSError):
                leftover.unlink(missing_ok=True)


def maker_of(path: Path, other: Path) -> str | None:
    """The process that writes a file under another name; None where it is no such name."""
    unfinished = rf"{re.escape(path.name)}\.(\d+)\{UNFINISHED}(-wal|-shm|-journal)?"
    match = re.fullmatch(unfinished, other.name)
    return match and match[1]


def check_directory(path: Path, directory: Path, parents: bool) -> None:
    """Raises unless `path` can be made in a directory, before anything long is begun.

    With `parents` the directory may be missing: it will be made.
    """
    there = next(place for place in (directory, *directory.absolute().parents) if place.exists())
    if not there.is_dir():
        raise InputError(f"{path} cannot be written to: {there} is not a directory.")
    if there != directory and not parents:
        raise InputError(f"{directory} does not exist: make it, or name another place.")
    if not os.access(there, os.W_OK | os.X_OK):
        raise InputError(f"{path} cannot be written to: {there} is read-only.")


def check_no_link_to_nowhere(path: Path) -> None:
    """Raises where `path` is a link to what is not there, or to itself."""
    if check_path("the file", path).is_symlink() and not path.exists():
        raise InputError(f"{path} is a link that leads nowhere: remove it, or name another file.")


def beginning_of(path: Path, count: int = 4096) -> bytes:
    """The first bytes of a file."""
    with path.open("rb") as file:
        return file.read(count)


def end_of(path: Path, count: int = 4096) -> bytes:
    """The last bytes of a file."""
    with path.open("rb") as file:
        file.seek(-min(count, path.stat().st_size), os.SEEK_END)
        return file.read()


def in_words(endings: Sequence[str]) -> str:
    """`.csv, .parquet or .pq`."""
    *before, last = endings
    return f"{', '.join(before)} or {last}" if before else last


def _followed(path: Path) -> Path:
    """The file that a link leads to: what is written goes there, and the link stays."""
    check_no_link_to_nowhere(path)
    return path.resolve() if path.is_symlink() else path


def _check_no_study(path: Path, file: Path, kind: Kind, study: Path | None) -> None:
    instead = f"name a file that ends in {in_words(kind.endings)}"
    if study is not None and file.exists() and study.exists() and file.samefile(study):
        raise InputError(f"{path} is the study itself: {instead}.")
    if file.is_file() and beginning_of(file, len(SQLITE)) == SQLITE:
        raise InputError(f"{path} is a study, which nothing is written over: {instead}.")
    if file.name.endswith(BESIDE):
        raise InputError(f"{path} is the name of what lies beside a study: {instead}.")


def _check_name(path: Path, kind: Kind) -> None:
    if path.is_dir():
        raise InputError(f"{path} is a directory: name a file in it.")
    if path.suffix.lower() not in kind.endings:
        raise InputError(f"{path} must end in {in_words(kind.endings)}.")


def _check_replaceable(path: Path, file: Path, kind: Kind, over: Over) -> None:
    if not file.is_file():
        raise InputError(f"{path} is no plain file: name another.")
    if not os.access(file, os.W_OK):
        raise InputError(f"{path} cannot be written: it is read-only.")
    if kind.once and not over.force:
        raise InputError(
            f"{path} exists already: name another, or write over it with --force (in Python "
            "force=True)."
        )
    if not (over.force or kind.is_ours(file) or (over.home and _looks_like(file))):
        if over.home:
            raise InputError(f"{path} is not {kind.ours}: move it away.")
        raise InputError(
            f"{path} exists already, and is not {kind.ours}: name another file, or give --force "
            "(in Python force=True) to write over it."
        )


def _looks_like(file: Path) -> bool:
    """Whether a file begins as its ending says."""
    place, start = BEGINNINGS.get(file.suffix.lower(), (0, b""))
    return bool(start) and beginning_of(file)[place:].startswith(start)


def _finish(unfinished: Path, file: Path) -> None:
    """Gives a file its name, for good, and the rights of the one that it replaces."""
    if file.exists():
        with suppress(OSError):
            unfinished.chmod(file.stat().st_mode & 0o777)
    with unfinished.open("rb+") as content:
        os.fsync(content.fileno())
    os.replace(unfinished, file)


def _unwritable(path: Path, wrong: OSError) -> str:
    return f"{path} cannot be written: {wrong.strerror or wrong}."


def _alive(process: str) -> bool:
    """Whether a process with this number is running, as far as can be told."""
    try:
        os.kill(int(process), 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True

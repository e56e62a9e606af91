"""What can be wrong with a study file, in sentences that say what to do."""

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from recoup.checks import InputError
from recoup.store.rows import FAILED, Told, same

BUSY = 10.0  # seconds to wait for another process
WRITING = {  # SQLite's codes of what went wrong when it wrote, where the file itself is whole
    sqlite3.SQLITE_IOERR_WRITE,
    sqlite3.SQLITE_IOERR_SHMSIZE,
    sqlite3.SQLITE_IOERR_TRUNCATE,
}
IN_USE, FOREIGN_FILE = ("locked", "busy"), "not a database"  # in what SQLite says
DAMAGE = ("malformed", "disk image", "no such", "disk I/O", "decode")  # in what SQLite says


class Conflict(InputError):
    """Two rows of a study file claim the same place: it was put together by hand, or is damaged.

    What to do: `recoup study check FILE --recover NEW` saves what can be read.

    >>> issubclass(Conflict, recoup.InputError)
    True
    """


class NoRoom(InputError):
    """There is no room for what was to be written: nothing of it was.

    What to do: free some space and tell the result again; the study is as it was before.

    >>> issubclass(NoRoom, recoup.InputError)
    True
    """

    def __init__(
        self, what: str, then: str = "nothing was changed; free some space and try again."
    ) -> None:
        """With `what` is the matter, and what follows."""
        super().__init__(f"{what}: {then}")
        self.what = what


class Damaged(InputError):
    """The file is not as it was written, is another program's, or is not there any more.

    What to do: `recoup study check FILE --recover NEW` saves what can be read.

    >>> from pathlib import Path
    >>> size = Path("broken.db").write_text("no study")
    >>> recoup.Study.open("broken.db")
    Traceback (most recent call last):
    ...
    recoup.store.errors.Damaged: broken.db ...
    """


class Locked(InputError):
    """Another process is writing to the file, for longer than one waits.

    What to do: try again; if it stays so, find the process that has the file open.

    >>> issubclass(Locked, recoup.InputError)
    True
    """


class ToldBefore(InputError):
    """Another result was told of a trial before, which stays.

    What to do: nothing, if the first result is right; `Study.amend` puts it right if not.

    >>> study = recoup.Study.open("told.db", dim=1)
    >>> [trial] = study.ask()
    >>> later = study.tell(trial.id, 1.0)
    >>> study.tell(trial.id, 2.0)
    Traceback (most recent call last):
    ...
    recoup.store.errors.ToldBefore: trial 1 was told 1.0 before, and now 2.0: it stays as it was ...
    """

    def __init__(self, sentence: str, number: int, before: Told, told: Told) -> None:
        """With both results."""
        super().__init__(sentence)
        self.number, self.before, self.told = number, before, told


class Exists(InputError):
    """There is a file where a new one was to be made.

    What to do: give another name, or open the study that is there.

    >>> from pathlib import Path
    >>> study = recoup.Study.open("first.db", dim=1)
    >>> recoup.Study.create(Path("first.db"), study.settings)
    Traceback (most recent call last):
    ...
    recoup.store.errors.Exists: ...
    """


@contextmanager
def sqlite_errors(path: Path) -> Iterator[None]:
    """What SQLite has against a file, as a sentence that says what to do."""
    try:
        yield
    except sqlite3.IntegrityError as wrong:
        raise Conflict(damage(path, str(wrong))) from None
    except sqlite3.DatabaseError as wrong:
        if what := _no_room(path, wrong):
            raise NoRoom(what) from None
        words = str(wrong)
        kind = Locked if any(word in words for word in IN_USE) else InputError
        kind = Damaged if any(word in words for word in (*DAMAGE, FOREIGN_FILE)) else kind
        raise kind(_sentence(path, words)) from None


@contextmanager
def sensible(path: Path | str, damaged: Callable[[], bool] = lambda: True) -> Iterator[None]:
    """What stands in a file but makes no sense, as a sentence; RECOUP_TRACEBACK=1 shows where.

    Where more is done inside than to read the file, `damaged` says whether that is to blame. That
    a text cannot be printed is never the file's fault.
    """
    try:
        yield
    except (InputError, UnicodeEncodeError):
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as wrong:
        if os.environ.get("RECOUP_TRACEBACK") or not damaged():
            raise
        reason = f"{type(wrong).__name__}: {wrong}".partition("\n")[0]
        raise Damaged(damage(path, reason)) from None
    except (AssertionError, MemoryError, RecursionError) as wrong:
        if os.environ.get("RECOUP_TRACEBACK") or not damaged():
            raise
        raise Damaged(damage(path, type(wrong).__name__)) from None


def damage(path: Path | str, reason: str) -> str:
    """A sentence about a file that is not as it was written, and what to do."""
    return (
        f"{path} is damaged ({reason}): `recoup study check {path} --recover NEW` saves what can "
        "be read."
    )


def read_only(path: Path) -> str:
    """A sentence about a file that is to be written, and cannot be."""
    return f"{path} cannot be written to: it, or its directory, is read-only."


def opened_to_read(path: Path) -> str:
    """A sentence about a file that is to be written, and was opened to be read."""
    return (
        f"{path} was opened with read_only=True, so that nothing is written to it: open it without."
    )


def check_again(number: int, before: Told, told: Told) -> None:
    """Accepts what is told again, refuses what differs from it."""
    if same(before, told):
        return
    said = _in_words(before), _in_words(told, before)
    raise ToldBefore(
        f"trial {number} was told {said[0]} before, and now {said[1]}: it stays as it was (`amend` "
        "puts it right).",
        number,
        before,
        told,
    )


def twice(wrong: ToldBefore) -> InputError:
    """The same of two results of one trial that are told at once: neither stays."""
    said = _in_words(wrong.before), _in_words(wrong.told, wrong.before)
    return InputError(
        f"trial {wrong.number} stands twice in what is told, with {said[0]} and with {said[1]}: "
        "nothing was written. Tell one of them, or both as the episodes of one result."
    )


def _no_room(path: Path, wrong: sqlite3.DatabaseError) -> str:
    """What is the matter where SQLite could not write, for want of room; else nothing.

    A quota, or a limit of file sizes, is no full disk to it, but a fault of writing.
    """
    if "is full" in str(wrong):
        return f"the disk of {path} is full"
    if getattr(wrong, "sqlite_errorcode", None) in WRITING:
        return f"{path} takes no more (a quota or a limit of file sizes, or the disk fails)"
    return ""


def _sentence(path: Path, reason: str) -> str:
    if any(word in reason for word in IN_USE):
        return f"{path} is being written by another process for over {BUSY:.0f} s: try again."
    if FOREIGN_FILE in reason:
        return f"{path} is not a study file (not SQLite)."
    if "readonly" in reason or "read-only" in reason:
        return read_only(path)
    if "closed database" in reason:
        return f"the study in {path} was closed: open it again."
    if any(word in reason for word in DAMAGE):
        return damage(path, reason)
    return f"{path}: {reason}."


def _in_words(told: Told, other: Told | None = None) -> str:
    beside = "".join(f", {name}={value}" for name, value in (told.also or {}).items())
    if told.status == FAILED:
        return f"failed ({told.note}){beside}"
    if other is None or other.value != told.value:
        return f"{told.value}{beside}"
    if (other.also or {}) != (told.also or {}):
        return f"{told.value}{beside or ' alone'}"
    return (
        "another trajectory" if told.trajectory is not None else f"{told.value} of other episodes"
    )

"""Where a study file lies: its address, what lies beside it, and how a new one gets its name."""

import os
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from recoup.checks import InputError, check_path
from recoup.outputs import BESIDE, check_directory, check_no_link_to_nowhere, clear_unfinished
from recoup.store.errors import Exists

MEMORY = ":memory:"  # in place of a path: a study of this process alone
LOG, COUNT = "-wal", "-count"  # what lies beside a file that is open
MOUNTS = Path("/proc/mounts")  # where Linux says what lies where
NETWORK = {"nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ceph", "lustre", "gpfs", "fuse.sshfs"}
COUNTS = (0, 32)  # bytes that a count may have: begun, or written


def beside(path: Path, ending: str) -> Path:
    """The path of what lies beside a study file: its LOG or its COUNT.

    Beside the file itself, where SQLite looks, not beside a link to it.
    """
    file = path.resolve()
    return file.with_name(file.name + ending)


def settled(path: Path) -> Path:
    """Where a file lies, whatever directory is changed to afterwards, whatever link is turned."""
    return Path(os.path.realpath(path))


def is_at(place: Path, known: os.stat_result) -> bool:
    """Whether the file that lies there is the one that was `known`, and no other."""
    try:
        return os.path.samestat(place.stat(), known)
    except OSError:
        return False


def address(path: Path, mode: str) -> str:
    """A file as SQLite is told of it; `mode` is rwc (made if it is not there), rw or ro.

    A file without a log that is only read is taken as one that nobody changes: SQLite then needs
    to write nothing beside it.
    """
    still = "&immutable=1" if mode == "ro" and not beside(path, LOG).exists() else ""
    return f"file:{_quoted(path)}?mode={mode}{still}"


def is_writable(path: Path) -> bool:
    """Whether a study file can be written to, and its log beside it."""
    there = os.access(path, os.W_OK) and os.access(path.absolute().parent, os.W_OK)
    return there and on_network(path) is None


def on_network(path: Path) -> str | None:
    """A sentence about a file on a network disk, where SQLite's log is not safe; None elsewhere."""
    try:
        rows = [line.split() for line in MOUNTS.read_text(errors="replace").splitlines()]
    except OSError:  # no Linux: nothing is known
        return None
    kinds = {row[1].replace("\\040", " "): row[2] for row in rows}
    place = settled(path)
    kind = next((kinds[str(one)] for one in (place, *place.parents) if str(one) in kinds), "")
    if kind not in NETWORK:
        return None
    return (
        f"{path} lies on a network disk ({kind}), where several computers that write lose results: "
        "nothing is written there. Keep the study on a disk of one computer, and let others "
        "reach it by `recoup serve`."
    )


def check_place(path: Path) -> None:
    """Raises unless a new file can be made there; leftovers of killed processes are cleared."""
    if str(path) == MEMORY:
        raise InputError(
            f"{MEMORY} names no file, and a study needs one: name a file, or search in memory with "
            "`recoup.search`."
        )
    if check_path("the new file", path).exists():
        raise Exists(f"{path} exists already.")
    check_no_link_to_nowhere(path)
    check_directory(path, path.parent, parents=False)
    if wrong := on_network(path):
        raise InputError(wrong)
    if path.name.endswith(BESIDE):
        raise InputError(
            f"{path} is the name of what lies beside a study: name a file that does not end in "
            f"{', '.join(BESIDE)}."
        )
    if beside(path, LOG).exists():
        if path.exists():  # since we looked
            raise Exists(f"{path} exists already: another process has made it.")
        raise InputError(
            f"{beside(path, LOG)} lies there, the log of a study whose file {path} is gone: put "
            "the file back, or remove the log to start anew."
        )
    _clear_count(beside(path, COUNT))
    clear_unfinished(path)


def _clear_count(path: Path) -> None:
    """Removes the count of a study that is gone; what else has its name is left."""
    if path.exists() and not may_be_count(path):
        raise InputError(f"{path} lies where the new study keeps its count: name another file.")
    path.unlink(missing_ok=True)


def may_be_count(path: Path) -> bool:
    """Whether what has the name of a count can be one, by its size."""
    return path.is_file() and path.stat().st_size in COUNTS


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

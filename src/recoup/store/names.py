"""The names of a study file, where hard links have given it more than one.

SQLite keeps a log beside each name and sees that of its own alone: what one name is told is unseen
under another until it is closed, and two that are written to damage the file.
"""

import logging
import os
from pathlib import Path

from recoup.checks import InputError
from recoup.outputs import maker_of
from recoup.store.errors import read_only
from recoup.store.place import LOG, beside, is_writable, on_network

log = logging.getLogger(__name__)


def check_names(path: Path) -> bool:
    """Raises where results lie in the log of another name; whether a file is written under this.

    It is where it has no other name, or where it is in use under this one: then its log lies here.
    """
    file = path.resolve()
    if file.stat().st_nlink < 2:
        return True
    here, elsewhere = _others(file)
    for other in here:
        if _is_filled(beside(other, LOG)):
            raise InputError(
                f"{path} is {other.name} under another name (a hard link), and what was told to it "
                f"last lies in {other.name}{LOG}, which is not seen under this one: open "
                f"{other.parent / other.name}."
            )
    if not here and not elsewhere:
        return True
    if beside(path, LOG).exists():
        return True
    if elsewhere:
        log.warning(
            "%s has another name in another directory (a hard link): what it is told under that "
            "one is not seen here until it is closed there.",
            path,
        )
    return False


def why_only_read(path: Path) -> str:
    """A sentence about a file that is to be written, and is only read."""
    if not is_writable(path) or path.stat().st_nlink < 2:
        return on_network(path) or read_only(path)
    return (
        f"{path} has other names (hard links), so that it is only read: written to under two of "
        f"them it would be damaged. Remove the others, or go on with a copy (`recoup study copy "
        f"{path} NEW`)."
    )


def _others(file: Path) -> tuple[list[Path], int]:
    """Other names of a file in its directory, and how many it has elsewhere.

    The name that it had while it was made does not count: it goes in a moment, and has no log.
    """
    own = file.stat().st_ino
    with os.scandir(file.parent) as entries:
        names = [entry.name for entry in entries if entry.inode() == own]
    elsewhere = file.stat().st_nlink - len(names)  # asked last: names of the making only go
    others = [file.with_name(name) for name in sorted(names) if name != file.name]
    return [one for one in others if maker_of(file, one) is None], max(elsewhere, 0)


def _is_filled(log: Path) -> bool:
    return log.exists() and log.stat().st_size > 0

"""Pictures and films as files: with a mark by which one of ours is known again."""

import re
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from recoup.outputs import MARK, OURS, Kind, Over, beginning_of, end_of, written

if TYPE_CHECKING:  # matplotlib is slow to import
    from matplotlib.figure import Figure

MADE_BY = {".png": "Software", ".pdf": "Creator", ".svg": "Creator"}  # what the mark is called
MARKS = {  # as it stands in the file
    ".png": b"tEXtSoftware\0" + MARK,
    ".pdf": b"/Creator (" + MARK + b")",
    ".svg": b"<dc:title>" + MARK + b"</dc:title>",
    ".mp4": MARK,
}
SAYS = re.compile(rb"(?:tEXtDescription\0|" + MARK + rb" )([0-9a-f]{64})")  # what is shown


def _is_marked(path: Path) -> bool:
    """Whether a picture or a film says that recoup has made it."""
    mark = MARKS.get(path.suffix.lower())  # none where a link leads to another kind of file
    return mark is not None and mark in beginning_of(path) + end_of(path)


def shows(path: Path, shown: str) -> bool:
    """Whether a picture (.png) is there, and says that this is what it shows."""
    return path.is_file() and b"tEXtDescription\0" + shown.encode() in beginning_of(path)


def shown_by(path: Path) -> str | None:
    """What a picture (.png) or a film says that it shows, in a few letters; None: nothing."""
    found = SAYS.search(beginning_of(path) + end_of(path))
    return found and found[1].decode()


def film_mark(shown: str = "") -> list[str]:
    """What says of a film that it is ours, and what it shows, for ffmpeg, which puts it last."""
    return ["-metadata", f"comment={MARK.decode()} {shown}".rstrip()]


PICTURE = Kind(tuple(MADE_BY), _is_marked)
FILM = Kind((".mp4",), _is_marked)


def write_picture(
    figure: "Figure", path: Path, dpi: int, over: Over = OURS, shown: str = ""
) -> None:
    """Writes a picture, in place of an older one of ours; see `check_output`.

    A .png says what is `shown` on it, in a few letters, for `shows`.
    """
    with written(path, PICTURE, over) as unfinished:
        ending = path.suffix.lower()
        made_by = {MADE_BY[ending]: MARK.decode()}
        made_by |= {"Description": shown} if shown and ending == ".png" else {}
        with warnings.catch_warnings():  # of names in a script that the font has no letters for
            warnings.filterwarnings("ignore", "Glyph", UserWarning)
            figure.savefig(unfinished, format=ending[1:], dpi=dpi, metadata=made_by)

"""HTML from templates: everything escaped, every picture inside the page."""

import base64
import re
import warnings
from datetime import date
from io import BytesIO
from itertools import chain, repeat
from math import isfinite
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from matplotlib.figure import Figure

from recoup import __version__
from recoup.outputs import MARK, OURS, Kind, Over, beginning_of, check_output, end_of, written
from recoup.study.text.notebook import digits

KINDS = {".png": "image/png", ".mp4": "video/mp4"}
MARKS = (  # at the beginning of our pages; at the end, also of those made before
    b'<meta name="generator" content="' + MARK,
    b'<p class="soft">Made by ' + MARK,
)


def _is_page(path: Path) -> bool:
    """Whether a file is a page that recoup has made."""
    start = beginning_of(path)
    whole = start.startswith(b"<!doctype html>")
    return whole and (MARKS[0] in start or MARKS[1] in end_of(path, 400))


TABLE = re.compile(r"<table>.*?</table>", re.S)
ROW = re.compile(r"<tr>")
HEAD = re.compile(r"<th\b[^>]*>(.*?)</th>", re.S)
MARKUP = re.compile(r"(<(?:pre|code|style)\b.*?</(?:pre|code|style)>|<[^>]*>)", re.S)
BEFORE_UNIT = re.compile(r"(?<=\d) (?=%|(?:cm|s)\b)")
PAGE_KIND = Kind((".html", ".htm"), _is_page)


def page(template: str, **values: Any) -> str:
    """The page of a template; text is escaped, a missing value is an error."""
    environment = Environment(
        loader=PackageLoader("recoup.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["number"] = number
    environment.filters["measured"] = measured
    environment.filters["digits"] = digits
    made = {"version": __version__, "date": date.today().isoformat()}
    content = _unbroken(environment.get_template(template).render(**made, **values))
    return TABLE.sub(lambda found: _turning(found[0]), content)


def _unbroken(content: str) -> str:
    """A page on which no line ends between a number and its unit; what may be copied stays."""
    parts = MARKUP.split(content)
    parts[::2] = [BEFORE_UNIT.sub("\N{NO-BREAK SPACE}", text) for text in parts[::2]]
    return "".join(parts)


def _turning(table: str) -> str:
    """A table whose cells carry their heads, so that a narrow window can show each row by itself.

    One without a line of heads stays as it is.
    """
    start, head, *rows = ROW.split(table)
    heads = HEAD.findall(head)
    if not heads or "<td" in head:
        return table
    start = start.replace("<table", '<table class="turns"')
    labelled = [_labelled(row, heads) for row in rows]
    return "<tr>".join([f'{start}<tr class="heads">{head}', *labelled])


def _labelled(row: str, heads: list[str]) -> str:
    start, *cells = row.split("<td")
    pairs = zip(chain(heads, repeat("")), cells, strict=False)
    return start + "".join(f'<td data-head="{head}"{cell}' for head, cell in pairs)


def check_page(path: Path, over: Over = OURS) -> None:
    """Raises unless a page can be written to `path`: see `check_output`."""
    check_output(path, PAGE_KIND, over, parents=True)


def write_page(path: Path, content: str, over: Over = OURS) -> Path:
    """Writes a page, in place of an older one of ours; where it lies."""
    with written(path, PAGE_KIND, over, parents=True) as unfinished:
        unfinished.write_text(content, encoding="utf-8", errors="replace")
    return path


def embedded(path: Path) -> str:
    """A file as an address that holds it."""
    return _address(KINDS[path.suffix], path.read_bytes())


def drawn(figure: Figure) -> str:
    """A picture as an address that holds it."""
    file = BytesIO()
    with warnings.catch_warnings():  # of names in a script that the font has no letters for
        warnings.filterwarnings("ignore", "Glyph", UserWarning)
        figure.savefig(file, format="png", dpi=130)
    return _address("image/png", file.getvalue())


def _address(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def number(value: Any) -> str:
    """A number as people write it: three or four digits that mean something."""
    if value is None or (isinstance(value, float) and not isfinite(value)):
        return "–"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, int) or abs(value) >= 1e4 or value.is_integer():
        return f"{value:,.0f}" if abs(value) < 1e15 else f"{value:.3g}"
    digits = 2 if abs(value) >= 1 else 3 if abs(value) >= 0.01 else 5
    return f"{value:.{digits}f}"


def measured(mean: float | None, stderr: float | None) -> str:
    """A mean and its standard error, with as many digits as the error allows."""
    if mean is None or stderr is None or not isfinite(mean) or not isfinite(stderr):
        return "–"
    none = stderr < 1e-9 * abs(mean) or stderr == 0  # rounding, of episodes that are all the same
    digits = 2 if none else 0
    while not none and stderr < 2 * 10.0**-digits and digits < 6:
        digits += 1
    return f"{mean:.{digits}f} ± {stderr:.{digits}f}"

"""Tables and paragraphs at any width: lines break between words, never inside a number.

Every table of the program is printed by `show_table`. Where it is wider than the terminal, words
and names are wrapped; else it is turned, rows across and heads down, if that fits in one piece;
else columns that its caller can spare are left out, which is said; else it is turned in several
pieces. Into a pipe or a file, which have no width, it is printed as wide as it is.
"""

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from recoup.checks import printable

NARROW = 16  # characters: narrower than this, words are wrapped only where nothing else is left
USUAL_COLUMNS = 80  # columns of a terminal that does not say how many it has
GLUE = "\xa0"  # stands for a space at which no line breaks
# Behind a number its unit, or another short word; around ± and = what belongs together.
GLUED = re.compile(r"(?<=\d) (?=[^\d\s(+.-]\S{0,7}(?:\s|$))|(?<=[±=<>]) | (?=[±=<>] )")


WORDS = re.compile(" +")
PARTS = re.compile(r" +|_+ *|(?<=[^\W\d_])[-:/,](?=[^\W\d_])")  # of names: never inside a number


class Cell(NamedTuple):
    """A text of a table; where it `breaks`, between words and parts of names, it may wrap."""

    text: str
    breaks: bool = False
    style: str = ""


class Grid(NamedTuple):
    """A table before it is drawn: its heads, and rows as long as those."""

    heads: list[Cell]
    rows: list[list[Cell]]


class Laid(NamedTuple):
    """A table as a terminal can show it: its pieces, and the heads that were left out."""

    pieces: list[Grid]
    left_out: list[str]


def show_table(
    heads: Sequence[str],
    rows: Sequence[Sequence[str | Cell]],
    *,
    texts: Sequence[str] = (),
    spare: Sequence[str] = (),
    title: str = "",
    turns: bool = True,
) -> None:
    """Prints a table whose numbers are whole at any width.

    `texts` are the heads of columns of words or names, which may wrap; `spare` those of columns
    that can be left out, the least needed first. Heads that are all empty are not shown.
    """
    words = [head in texts for head in heads]
    grid = Grid(
        [Cell(printable(head), True) for head in heads],
        [[_cell(x, wraps) for x, wraps in zip(row, words, strict=True)] for row in rows],
    )
    laid = laid_out(grid, spare, terminal_width(), turns=turns)
    if title:
        show_text(title, style="italic")
    for i, piece in enumerate(laid.pieces):
        if i:
            print()
        _draw(piece)
    if laid.left_out:
        show_text(f"Left out for want of room: {', '.join(laid.left_out)}.")


def show_facts(rows: Mapping[str, str]) -> None:
    """Prints what is what, a line each, and more where the words need more."""
    pairs: list[list[str | Cell]] = [[Cell(k, True, "bold"), text] for k, text in rows.items()]
    show_table(["", ""], pairs, texts=[""], turns=False)


def show_list(rows: Mapping[str, str]) -> None:
    """Prints names with words about each, one line each where they fit."""
    width, indent = terminal_width(), max(map(cell_len, rows), default=0) + 1
    for name, words in rows.items():
        narrow = width is not None and width - indent < NARROW
        room = None if width is None else width - (2 if narrow else indent)
        first, *rest = wrapped(printable(words), room)
        print(f"{printable(name)}\n  {first}" if narrow else f"{printable(name):<{indent}}{first}")
        for line in rest:
            print(f"{' ' * (2 if narrow else indent)}{line}")


def show_text(text: str, style: str = "") -> None:
    """Prints a paragraph; on a terminal its lines break between words."""
    width = terminal_width()
    lines = wrapped(printable(text), width)
    console = Console(width=max(width or 1, *map(cell_len, lines)))
    console.print(Text("\n".join(lines), style), no_wrap=True, overflow="ignore", crop=False)


def terminal_width() -> int | None:
    """Columns of what standard output is: COLUMNS if set, a terminal's own, None if it is none."""
    said = os.environ.get("COLUMNS", "")
    if said.isdecimal() and len(said) < 10 and int(said):
        return int(said)
    if not sys.stdout.isatty():
        return None
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or USUAL_COLUMNS
    except (OSError, ValueError):
        return USUAL_COLUMNS


def wrapped(text: str, width: int | None, names: bool = False) -> list[str]:
    """The lines of a text: of at most `width` columns wherever its words are."""
    if width is None:
        return [text]
    lines = [""]
    for piece in _pieces(text, names):
        if lines[-1] and cell_len(lines[-1] + piece.rstrip(" ")) > width:
            lines.append("")
        lines[-1] += piece
    return [line.rstrip(" ").replace(GLUE, " ") for line in lines]


def laid_out(grid: Grid, spare: Sequence[str], width: int | None, *, turns: bool = True) -> Laid:
    """The table as it is shown in `width` columns: see the top of this page."""
    if width is None:
        return Laid([grid], [])
    names = [head.text for head in grid.heads]
    droppable = [name for name in spare if name in names]
    for count in range(len(droppable) + 1):
        gone = droppable[:count]
        kept = [i for i, name in enumerate(names) if name not in gone]
        piece = _in_one_piece(_columns(grid, kept), width, turns)
        if piece is not None:
            return Laid([piece], gone)
    if turns:
        return Laid(_in_pieces(turned(grid), width), [])
    return Laid([_squeezed(grid, width, True, anyway=True) or grid], [])


def turned(grid: Grid) -> Grid:
    """The table with its rows across: its first column becomes the heads."""
    corner, *rest = grid.heads
    heads = [corner, *(row[0] for row in grid.rows)]
    return Grid(heads, [[head, *(row[j] for row in grid.rows)] for j, head in enumerate(rest, 1)])


def _in_one_piece(grid: Grid, width: int, turns: bool) -> Grid | None:
    """A table in one piece, if it can be: as it is, with words wrapped, turned, heads wrapped."""
    found = _squeezed(grid, width, False)
    if found is None and turns:
        found = _squeezed(turned(grid), width, False)
    return found or _squeezed(grid, width, True)


def _in_pieces(grid: Grid, width: int) -> list[Grid]:
    """A table in pieces, its first column in each: whole or wrapped, whichever is shorter."""
    whole = _widest([row[0] for row in grid.rows])
    ways = [list(_pieces_of(grid, width, least)) for least in (whole, 0)]
    fitting = [way for way in ways if all(table_width(piece) <= width for piece in way)]
    return min(fitting or ways[1:], key=_lines)


def _pieces_of(grid: Grid, width: int, least: int) -> Iterator[Grid]:
    """As many columns as fit beside the first, one at least; then the next."""
    start, end = 1, len(grid.heads)
    while start < end:
        found, stop = None, start
        while stop < end:
            some = _columns(grid, [0, *range(start, stop + 1)])
            wider = _squeezed(some, width, False, least)
            if wider is None:
                break
            found, stop = wider, stop + 1
        if found is None:  # what does not fit by itself is as narrow as it can be
            some, stop = _columns(grid, [0, start]), start + 1
            found = _squeezed(some, width, True, least, anyway=True)
        assert found is not None
        yield found
        start = stop


def _lines(pieces: Sequence[Grid]) -> int:
    """Lines that tables take, one below the other."""
    rows = [row for piece in pieces for row in (piece.heads, *piece.rows)]
    return sum(max(cell.text.count("\n") + 1 for cell in row) for row in rows)


def _squeezed(
    grid: Grid, width: int, hard: bool, first: int = 0, anyway: bool = False
) -> Grid | None:
    """The table with its words wrapped so that it fits; None where that is not enough.

    Unless `hard`, heads break at spaces alone, and no column of words gets narrower than `NARROW`;
    the first column gets no narrower than `first`.
    """
    columns = list(zip(grid.heads, *grid.rows, strict=True))
    widths = [min(_widest(column), width) for column in columns]
    least = [_least(column, hard) for column in columns]
    least[0] = max(least[0], first)
    widths = [max(pair) for pair in zip(widths, least, strict=True)]
    while _total(widths) > width:
        loose = [i for i, room in enumerate(widths) if room > least[i]]
        if not loose:
            break
        widest = max(loose, key=lambda i: widths[i])
        widths[widest] -= 1
    if _total(widths) > width and not anyway:
        return None
    heads = [_fit(head, room, hard) for head, room in zip(grid.heads, widths, strict=True)]
    rows = [[_fit(x, n, True) for x, n in zip(row, widths, strict=True)] for row in grid.rows]
    return Grid(heads, rows)


def table_width(grid: Grid) -> int:
    """Columns that a table takes on a terminal."""
    return _total([_widest(column) for column in zip(grid.heads, *grid.rows, strict=True)])


def _total(widths: Sequence[int]) -> int:
    """Likewise: a space on both sides of each cell, lines between them."""
    return sum(widths) + 3 * len(widths) - 1


def _columns(grid: Grid, kept: Sequence[int]) -> Grid:
    return Grid([grid.heads[i] for i in kept], [[row[i] for i in kept] for row in grid.rows])


def _widest(column: Sequence[Cell]) -> int:
    return max(max(map(cell_len, cell.text.split("\n"))) for cell in column)


def _least(column: Sequence[Cell], hard: bool) -> int:
    """The least width of a column whose head stands first in it."""
    head, *cells = column
    parts = [max(map(_len, _pieces(cell.text, True)), default=0) for cell in cells if cell.breaks]
    if parts and not hard:
        parts.append(min(NARROW, max(cell_len(cell.text) for cell in cells if cell.breaks)))
    whole = [cell_len(cell.text) for cell in cells if not cell.breaks]
    top = max(map(_len, _pieces(head.text, hard)), default=0) if head.breaks else _len(head.text)
    return max(top, *parts, *whole, 1)


def _len(piece: str) -> int:
    return cell_len(piece.rstrip(" "))


def _pieces(text: str, names: bool) -> list[str]:
    """What stays together of a text: words, or the parts of names."""
    glued = GLUED.sub(GLUE, text)
    ends = [0, *(end.end() for end in (PARTS if names else WORDS).finditer(glued)), len(glued)]
    return [glued[a:b] for a, b in pairwise(ends) if a < b]


def _fit(cell: Cell, width: int, names: bool) -> Cell:
    if not cell.breaks or cell_len(cell.text) <= width:
        return cell
    return cell._replace(text="\n".join(wrapped(cell.text, width, names)))


def _cell(given: str | Cell, breaks: bool) -> Cell:
    cell = given if isinstance(given, Cell) else Cell(given, breaks)
    return cell._replace(text=printable(cell.text))


def _draw(grid: Grid) -> None:
    """Prints a table that has been laid out."""
    table = Table(show_edge=False, show_header=any(head.text for head in grid.heads))
    for head, *cells in zip(grid.heads, *grid.rows, strict=True):
        words = all(cell.breaks for cell in cells)
        table.add_column(Text(head.text), justify="left" if words else "right", no_wrap=True)
    for row in grid.rows:
        table.add_row(*(Text(cell.text, cell.style) for cell in row))
    Console(width=table_width(grid)).print(table)

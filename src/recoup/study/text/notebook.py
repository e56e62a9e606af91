"""Small tables for notebooks: HTML in which every text is escaped, with nothing from elsewhere."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from recoup.core.types import Given

SHOWN = 12  # parameters that are shown one by one
LEFT = "text-align: left"
LARGE = 1e15  # beyond, numbers are written with an exponent
RIGHT = "text-align: right; font-variant-numeric: tabular-nums"


def facts(title: str, rows: Mapping[str, str]) -> str:
    """A heading, and under it a table of what is what."""
    lines = (f"<tr>{_cell(k, LEFT, 'th')}{_cell(v, LEFT)}</tr>" for k, v in rows.items())
    return f"<div><b>{escape(title)}</b><table>{''.join(lines)}</table></div>"


def grid(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table with a line of heads; its first column is text, the others are numbers."""
    styles = (LEFT, *([RIGHT] * (len(heads) - 1)))
    top = "".join(_cell(head, style, "th") for head, style in zip(heads, styles, strict=True))
    lines = (
        "".join(_cell(cell, style) for cell, style in zip(row, styles, strict=True)) for row in rows
    )
    return f"<table><tr>{top}</tr>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def digits(value: float | str) -> str:
    """A number with five digits; a choice as it is."""
    return value if isinstance(value, str) else f"{value:.5g}"


def typed(value: float | str, varies: float | None = None) -> str:
    """A number with the digits that whoever types it needs: five, or more where fewer are too far.

    That is by more than a thousandth of what it `varies` by, or a ten-millionth of itself where
    that is not known. A choice as it is.
    """
    if isinstance(value, str):
        return value
    near = 1e-7 * abs(value) if varies is None else 1e-3 * varies
    texts = (f"{value:.{n}g}" for n in range(5, 18))
    text = next((x for x in texts if abs(float(x) - value) <= near), repr(value))
    return f"{float(text):.0f}" if "e+" in text and abs(value) < LARGE else text


def in_a_row(names: Sequence[str], values: Given) -> str:
    """Parameters `[D]` in one line, by name if they have names; of many, the first."""
    shown = [digits(value) for value in values[:SHOWN]]
    left = len(values) - len(shown)
    rest = [f"... {left} more"] if left else []
    if not names:
        return f"theta=[{', '.join(shown + rest)}]"
    return ", ".join([f"{n}={v}" for n, v in zip(names, shown, strict=False)] + rest)


def _cell(text: Given, style: str, tag: str = "td") -> str:
    return f'<{tag} style="{style}">{escape(str(text))}</{tag}>'

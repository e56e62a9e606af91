"""Small tables for notebooks: HTML in which every text is escaped, with nothing from elsewhere."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

SHOWN = 12  # parameters that are shown one by one
LEFT = "text-align: left"
RIGHT = "text-align: right; font-variant-numeric: tabular-nums"


def facts(title: str, rows: Mapping[str, str]) -> str:
    """A heading, and under it a table of what is what."""
    lines = (f"<tr>{_cell(k, LEFT, 'th')}{_cell(v, LEFT)}</tr>" for k, v in rows.items())
    return f"<div><b>{escape(title)}</b><table>{''.join(lines)}</table></div>"


def grid(heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table with a line of heads; its first column is text, the others are numbers."""
    styles = (LEFT, *([RIGHT] * (len(heads) - 1)))
    top = "".join(_cell(head, style, "th") for head, style in zip(heads, styles, strict=True))
    lines = (
        "".join(_cell(cell, style) for cell, style in zip(row, styles, strict=True)) for row in rows
    )
    return f"<table><tr>{top}</tr>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def digits(value: float) -> str:
    """A number with five digits."""
    return f"{value:.5g}"


def in_a_row(names: Sequence[str], values: Any) -> str:
    """Parameters `[D]` in one line, by name if they have names; of many, the first."""
    shown = [digits(value) for value in values[:SHOWN]]
    left = len(values) - len(shown)
    rest = [f"... {left} more"] if left else []
    if not names:
        return f"theta=[{', '.join(shown + rest)}]"
    return ", ".join([f"{n}={v}" for n, v in zip(names, shown, strict=False)] + rest)


def _cell(text: Any, style: str, tag: str = "td") -> str:
    return f'<{tag} style="{style}">{escape(str(text))}</{tag}>'

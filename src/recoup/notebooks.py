"""Small tables for notebooks: HTML in which every text is escaped, with nothing from elsewhere."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape

LEFT = "text-align: left"
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


def _cell(text: object, style: str, tag: str = "td") -> str:
    return f'<{tag} style="{style}">{escape(str(text))}</{tag}>'

"""The pages of docs/benchmarks, and docs/benchmarks.md, from templates and kept results.

python -m benchmarks.pages [--check]

Of every benchmarks/templates/NAME.md a page is made, in which these stand for what is kept:

    {{NAME}}                 a table: a file of benchmarks/results/tables
    {{bounded: NAME}}        what benchmarks/bounded.py says of all runs that it keeps; so do
                             `suite` (benchmarks/comparison.py), `voice` (voice_tables.py)
                             and `late` (benchmarks/late.py)
    {{NAME | ROW | COLUMN}}  a cell of a table; ROW is the first cell of its row, or the first ones
    {{... | COLUMN | 2}}     the second part of a cell like `a / b / c`
    {{NAME | START}}         what stands behind the start of a line that was printed

So no such number of a page can differ from what was measured.
"""

import argparse
import re
import textwrap
from functools import cache
from pathlib import Path

from benchmarks import bounded, comparison, late, tables, voice_tables

ROOT = Path(__file__).parents[1]
TEMPLATES, DOCS = ROOT / "benchmarks" / "templates", ROOT / "docs"
FIRST = "benchmarks"  # the page that leads to all others; they lie in a folder of its name
PLACE = re.compile(r"\{\{(.+?)\}\}")
WIDTH = 110
STANDS = re.compile(r"[|#<!]|.*<a id|  \[")  # a line that is no part of a paragraph
ITEM = re.compile(r"\s*- ")
MADE = "<!-- Made by `python -m benchmarks.pages` of {}: edit that. -->"
KEEPERS = {"bounded": bounded, "suite": comparison, "voice": voice_tables, "late": late}


@cache
def of_keeper(name):
    """What is said of kept results, by name."""
    return KEEPERS[name].said()


@cache
def table(name):
    """A table in Markdown, and when and where it was measured where its file says so."""
    keeper, _, what = name.partition(": ")
    if what:
        return of_keeper(keeper)[what], None
    kept = tables.read(name)
    return tables.rendered(kept), kept["about"]


def cell(words):
    """One cell of a table: its name, the first cells of its row, its column, perhaps a part."""
    name, *row, column = words
    if column.isdecimal() and len(row) > 1:
        return cell(words[:-1]).split(" / ")[int(column) - 1]
    lines = table(name)[0].splitlines()
    if lines[0] == "```":
        return _rest(lines, column)
    heads, _, *rows = ([one.strip() for one in line.strip()[1:-1].split("|")] for line in lines)
    found = [one for one in rows if one[: len(row)] == row]
    if len(found) != 1 or heads.count(column) != 1:
        raise SystemExit(f"{{{{{' | '.join(words)}}}}}: {len(found)} rows of {heads}")
    return found[0][heads.index(column)]


def _rest(lines, start):
    """What stands behind the start of a line that was printed."""
    (line,) = (line.strip() for line in lines if line.strip().startswith(start))
    return line.removeprefix(start).strip()


def inline(match):
    """What stands for a placeholder within a line."""
    words = [word.strip() for word in match[1].split("|")]
    return cell(words) if len(words) > 1 else table(*words)[0]


def wrapped(text):
    """Markdown whose paragraphs and items are as wide as a page; tables and printed lines stay."""
    parts = re.split(r"(^```.*?^```$)", text, flags=re.M | re.S)
    return "".join(part if part.startswith("```") else _wrapped(part) for part in parts)


def _wrapped(text):
    """The same of a text without printed lines: a block is one paragraph or one item."""
    blocks = []
    for line in text.split("\n"):
        goes_on = blocks and line.strip() and not STANDS.match(line) and not ITEM.match(line)
        if goes_on and blocks[-1].strip() and not STANDS.match(blocks[-1]):
            blocks[-1] += " " + line.strip()
        else:
            blocks.append(line)
    return "\n".join(line if STANDS.match(line) else filled(line) for line in blocks)


def filled(text, width=WIDTH):
    """A paragraph or an item in lines, none of which Markdown would take for an item of its own."""
    indent = " " * len(re.match(r"\s*(- )?", text)[0])
    lines = textwrap.wrap(
        text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    if any(re.match(r"\s*([-+*]|\d+[.)]) ", line) for line in lines[1:]):
        return filled(text, width - 4)
    return "\n".join(lines)


def page(path):
    """A page, made of its template."""
    lines, last = [MADE.format(path.relative_to(ROOT)), ""], None
    for line in path.read_text().splitlines():
        alone = PLACE.fullmatch(line)
        if alone is None or "|" in line:
            lines.append(PLACE.sub(inline, line))
            continue
        text, about = table(alone[1])
        lines.append(text)
        if about is not None and about != last:
            lines += ["", tables.measured(about)]
            last = about
    return wrapped("\n".join(lines)) + "\n"


def place_of(path):
    """Where the page of a template lies."""
    return DOCS / path.name if path.stem == FIRST else DOCS / FIRST / path.name


def pages():
    """All pages, by the place where they lie."""
    return {place_of(path): page(path) for path in sorted(TEMPLATES.glob("*.md"))}


def wrong():
    """What does not agree: old pages, pages without a template, tables that are on no page."""
    made = pages()
    old = [path for path, text in made.items() if not path.exists() or path.read_text() != text]
    strange = set((DOCS / FIRST).glob("*.md")) - set(made)
    used = {match[1].split("|")[0].strip() for match in PLACE.finditer(_templates())}
    unused = {path for path in tables.FOLDER.glob("*.json") if path.stem not in used}
    return [
        *(f"{path.relative_to(ROOT)} is old: python -m benchmarks.pages" for path in old),
        *(f"{path.relative_to(ROOT)} has no template" for path in sorted(strange)),
        *(f"{path.relative_to(ROOT)} is on no page" for path in sorted(unused)),
    ]


def _templates():
    return "\n".join(path.read_text() for path in sorted(TEMPLATES.glob("*.md")))


def main():
    """Writes all pages, or says which do not agree with what is kept."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="say which pages are old")
    if parser.parse_args().check:
        found = wrong()
        print("\n".join(found) or "the pages hold what is kept")
        raise SystemExit(bool(found))
    (DOCS / FIRST).mkdir(exist_ok=True)
    for path, text in pages().items():
        path.write_text(text)


if __name__ == "__main__":
    main()

"""Tables of the pages of benchmarks as data: each number as it was printed, with what it is of.

A table is one file of benchmarks/results/tables:

    about    when and where it was measured: date, machine, versions, seeds, commit, command
    columns  of each its name and how its numbers are printed: `{} ± {}` is a mean and its error
    rows     of each its cells: words, a number, or the numbers of the column's format

What a benchmark prints on a console is kept likewise: its lines, as `printed`. To keep a table or
the lines that a benchmark prints:

    python -m benchmarks.crashes 12 | python -m benchmarks.tables crashes machine="two ARM cores"
"""

import argparse
import json
import platform
import re
import subprocess
import sys
from collections import Counter
from datetime import date
from decimal import Decimal
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent / "results" / "tables"
DIGITS = r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e[+-]?\d+)?"
NUMBER = re.compile(rf"(?<![\w.,/^])[+-]?{DIGITS}(?![\w/^])")
SPEC = re.compile(r"{[^}]*}")
WORDS = "words"  # of a column that has no numbers
UNKNOWN = "not recorded"
ASKED = ("date", "machine", "versions", "seeds", "commit", "command")  # of every table
LABEL = re.compile(r"[^\W\d_]{3,}|`")  # words, which a format of numbers has none of


# -- Markdown from data --


def read(name, folder=FOLDER):
    """What is kept of a table, its numbers with the digits that they were printed with."""
    return json.loads((folder / f"{name}.json").read_text(), parse_float=Decimal)


def rendered(kept):
    """A table, or what was printed, in Markdown."""
    if "printed" in kept:
        return "\n".join(["```", *kept["printed"], "```"])
    heads = [column["name"] for column in kept["columns"]]
    formats = [column["as"] for column in kept["columns"]]
    rows = [map(text, row, formats) for row in kept["rows"]]
    head, *rest = (f"| {' | '.join(line)} |" for line in (heads, *rows))
    return "\n".join([head, "|---" * len(heads) + "|", *rest])


def text(cell, formats):
    """A cell as it is printed: of several formats of a column the first with as many numbers."""
    if isinstance(cell, str):
        return cell
    if isinstance(cell, dict):
        return cell["as"].format(*cell["numbers"])
    numbers = cell if isinstance(cell, list) else [cell]
    return next(one for one in formats if one.count("{") == len(numbers)).format(*numbers)


def measured(about):
    """When, where and how a table was measured, in words; and what of that was not recorded."""
    said = [about[key] for key in ("date", "machine", "versions")]
    said += [f"{key} {about[key]}" for key in ("seeds", "commit")]
    said.append(f"`{about['command']}`")
    known = [words for key, words in zip(ASKED, said, strict=True) if about[key] != UNKNOWN]
    lost = [key for key in ASKED if about[key] == UNKNOWN]
    if lost:
        known.append(f"not recorded: {', '.join(lost)}")
    return f"*Measured: {'; '.join(known)}.*"


# -- data from Markdown --


def parsed(lines):
    """Columns and rows of a table in Markdown; nothing of it is lost."""
    heads, _, *rows = ([cell.strip() for cell in line.strip()[1:-1].split("|")] for line in lines)
    columns = [_column(name, cells) for name, *cells in zip(heads, *rows, strict=True)]
    formats = [column["as"] for column in columns]
    return {"columns": columns, "rows": [list(map(_cell, row, formats)) for row in rows]}


def _column(name, cells):
    """How the numbers of a column are printed: of each count of numbers the usual format."""
    formats = {}
    for one, _ in Counter(filter(None, map(_format, cells))).most_common():
        formats.setdefault(one.count("{"), []).append(one)
    return {"name": name, "as": [_common(found) for found in formats.values()] or WORDS}


def _common(formats):
    """The first of some formats, with the signs and commas of those that differ in these alone."""
    same = [one for one in formats if SPEC.sub("{}", one) == SPEC.sub("{}", formats[0])]
    places = zip(*(SPEC.findall(one) for one in same), strict=True)
    specs = iter([_spec("+" in "".join(one), "," in "".join(one)) for one in places])
    return SPEC.sub(lambda match: next(specs), formats[0])


def _spec(sign, comma):
    flags = "+" * sign + "," * comma
    return f"{{:{flags}}}" if flags else "{}"


def _format(cell):
    """A cell with `{}` in place of its numbers; None of words."""
    found = NUMBER.sub(lambda match: _spec(match[0][0] == "+", "," in match[0]), cell)
    numbers = _numbers(cell)
    if not numbers or LABEL.search(found) or found.format(*numbers) != cell:
        return None
    return found


def _numbers(cell):
    return [_number(match[0].replace(",", "")) for match in NUMBER.finditer(cell)]


def _number(digits):
    return int(digits) if re.fullmatch(r"[+-]?[1-9]\d*|0", digits) else Decimal(digits)


def _cell(cell, formats):
    own, numbers = _format(cell), _numbers(cell)
    if own is None:
        return cell
    if text(numbers, formats) != cell:
        return {"as": own, "numbers": numbers}
    return numbers if len(numbers) > 1 else numbers[0]


# -- files --


def keep(name, content, about, folder=FOLDER):
    """Writes a table: a line a row, so that a change of one is seen as one."""
    about = {key: about.get(key, UNKNOWN) for key in ASKED}
    said = ",\n  ".join(f"{_json(key)}: {_json(words)}" for key, words in about.items())
    parts = [f'"about": {{\n  {said}\n }}']
    for key, value in content.items():
        lines = ",\n  ".join(_json(one) for one in value)
        parts.append(f'"{key}": [\n  {lines}\n ]')
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text("{\n " + ",\n ".join(parts) + "\n}\n")


def _json(value):
    """JSON in which a number has the digits that it was printed with."""
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_json, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_json(key)}: {_json(one)}' for key, one in value.items())}}}"
    return json.dumps(value, ensure_ascii=False)


def content_of(printed):
    """Of what a benchmark printed its one table, or all its lines where it has none."""
    lines = printed.rstrip().splitlines()
    table = [line for line in lines if line.startswith("|")]
    return parsed(table) if table else {"printed": lines}


def here():
    """Date, versions and commit of a table that is made now."""
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=True
    )
    versions = f"Python {platform.python_version()}, NumPy {np.__version__}"
    return {"date": str(date.today()), "versions": versions, "commit": commit.stdout.strip()}


def main():
    """Keeps what is read from standard input as a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("name", help="of the file in benchmarks/results/tables")
    parser.add_argument("about", nargs="*", metavar="KEY=WORDS", help=f"of {', '.join(ASKED)}")
    given = parser.parse_args()
    about = dict(words.split("=", 1) for words in given.about)
    keep(given.name, content_of(sys.stdin.read()), {**here(), **about})


if __name__ == "__main__":
    main()

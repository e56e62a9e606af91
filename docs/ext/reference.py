"""Writes the pages of docs/reference: `python docs/ext/reference.py`; with `--check` compares them.

What they say of a name comes from its docstring, what they say of commands from the program's
help, of methods and study files from the tables of the code.
"""

import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

from commands import commands_page, study_commands_page
from method_page import methods_page
from named_pages import index_page, part_page
from parts import PARTS
from study_file_page import study_file_page

FOLDER = Path(__file__).parents[1] / "reference"
OTHERS: dict[str, Callable[[], str]] = {
    "index": index_page,
    "commands": commands_page,
    "study-commands": study_commands_page,
    "methods": methods_page,
    "study-file": study_file_page,
}
HEAD = "<!-- Written by docs/ext/reference.py from the code: change it there. -->\n\n"


@cache
def pages() -> dict[str, str]:
    """The text of every page, by its file's name."""
    found = {f"{part.slug}.md": part_page(part) for part in PARTS}
    found |= {f"{slug}.md": made() for slug, made in OTHERS.items()}
    return {name: f"{HEAD}{text.rstrip()}\n" for name, text in found.items()}


def differ(folder: Path = FOLDER) -> list[str]:
    """Names of files that are not what the code says, or that it says nothing of."""
    wanted, there = pages(), {path.name: path.read_text() for path in folder.glob("*.md")}
    return sorted(name for name in {*wanted, *there} if wanted.get(name) != there.get(name))


def write(folder: Path = FOLDER) -> None:
    """Writes all pages, and removes those of names that are gone."""
    folder.mkdir(exist_ok=True)
    wanted = pages()
    for path in folder.glob("*.md"):
        if path.name not in wanted:
            path.unlink()
    for name, text in wanted.items():
        (folder / name).write_text(text)


def main(words: list[str]) -> str | None:
    """Writes, or with `--check` says what differs."""
    if words != ["--check"]:
        write()
        return None
    found = differ()
    where = ", ".join(f"docs/reference/{name}" for name in found)
    return f"{where}: not what the code says; run python docs/ext/reference.py" if found else None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Sections of docs/benchmarks.md that a script writes between its markers, and checks."""

import argparse
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"


def placed(section: str, begin: str, end: str, path: Path) -> str:
    """A page with a section between its markers."""
    before, _, rest = path.read_text().partition(begin)
    after = rest.partition(end)[2]
    return f"{before}{begin}\n\n{section}\n\n{end}{after}"


def add_options(parser: argparse.ArgumentParser) -> None:
    """What every such script can do with its page."""
    parser.add_argument("--page", action="store_true", help="write the section")
    parser.add_argument("--check", action="store_true", help="say whether it stands there")


def write_or_check(given: argparse.Namespace, section: str, page: str, path: Path) -> None:
    """Writes the page, says whether it stands there, or prints the section."""
    if given.page:
        path.write_text(page)
    elif given.check:
        stands = page == path.read_text()
        print("the page holds what the results say" if stands else "run --page: the page is old")
        raise SystemExit(not stands)
    else:
        print(section)

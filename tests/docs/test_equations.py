"""docs/equations.md against the code: every tag has one home and one test that exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LEDGER = ROOT / "docs" / "equations.md"
TAG = re.compile(r"Implements: (.+?)(?:\n\s*\n|\"\"\"|$)", re.S)


def rows():
    """(tag, home, test) of every row of the ledger's tables."""
    found = []
    for line in LEDGER.read_text().splitlines():
        cells = [
            cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line.strip()[1:-1])
        ]
        if line.startswith("|") and len(cells) == 4 and ".py" in cells[2]:
            found.append((cells[0], cells[2].strip("`"), cells[3].strip("`")))
    return found


def docstrings_with_tags():
    """{module.py:function: the text behind `Implements:`} over the whole package."""
    found = {}
    for path in sorted((ROOT / "src" / "recoup").rglob("*.py")):
        text = path.read_text()
        for match in re.finditer(r"def (\w+)\(.*?\n", text):
            body = text[match.end() : match.end() + 3000].split("\ndef ")[0]
            docstring = re.search(r'"""(.*?)"""', body, re.S)
            if docstring and "Implements:" in docstring.group(1):
                name = f"{path.relative_to(ROOT / 'src' / 'recoup')}:{match.group(1)}"
                found.setdefault(name, " ".join(docstring.group(1).split("Implements:")[1].split()))
    return found


def test_the_ledger_has_rows():
    assert len(rows()) > 30


@pytest.mark.parametrize(("tag", "home", "test"), rows())
def test_every_row_leads_to_its_home_and_its_test(tag, home, test):
    tags = docstrings_with_tags()
    assert home in tags, f"{home} carries no `Implements:`"
    assert tag in tags[home], f"{home} does not name {tag!r}"
    path, name = test.split("::")
    assert f"def {name}(" in (ROOT / "tests" / path).read_text()


def test_every_tag_has_one_home():
    tags = docstrings_with_tags()
    for tag, home, _ in rows():
        assert [name for name, text in tags.items() if tag in text] == [home]


def test_every_tagged_function_is_in_the_ledger():
    assert set(docstrings_with_tags()) == {home for _, home, _ in rows()}

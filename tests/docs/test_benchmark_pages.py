"""The pages of benchmarks are what is kept; tables as data lose nothing; no number by hand."""

import json
import re
from decimal import Decimal
from pathlib import Path

import pytest
from benchmarks import pages, tables

ROOT = Path(__file__).parents[2]
FIRST = ROOT / "docs" / "benchmarks.md"
LIST = "## Where sections went"
WORDS = 1500
BY_HAND = {  # numbers of the first page that are no results: sizes, settings, when J is taken
    *("0.2", "0.3", "10", "16", "30", "50", "100", "200", "400"),
    *("2.5", "95", "1,000", "100,000", "10,000,000"),
}
TABLE = """\
| task |  | lost | late | kept |
|---|---|---|---|---|
| cliff, 3 | `a` | +0.70 ± 0.02 | 98%, 1.20 | 1,000 |
| cliff, 3 | `b` | -1.00 ± 0.10 | 94%, 0.90 [97%] | 50 |
| disc, 2 | `a` | ran away | refused | 0 |
| disc, 2 | `b` | 0.00 ± 0.00 | 9%, 0.10 | 20 |"""


def test_the_pages_hold_what_is_kept():
    assert pages.wrong() == []


def test_a_table_as_data_is_the_table_again(tmp_path):
    about = {"date": "2026-11-19", "machine": "two cores", "command": "make bench"}
    tables.keep("lost", tables.content_of(TABLE), about, tmp_path)
    kept = tables.read("lost", tmp_path)
    assert tables.rendered(kept) == TABLE
    assert kept["rows"][0] == [
        "cliff, 3",
        "`a`",
        [Decimal("0.70"), Decimal("0.02")],
        [98, Decimal("1.20")],
        1000,
    ]
    assert kept["rows"][3][2] == {"as": "{} ± {}", "numbers": [0, 0]}
    assert json.loads((tmp_path / "lost.json").read_text())["rows"][1][2] == [-1.0, 0.1]
    said = tables.measured(kept["about"])
    assert said == (
        "*Measured: 2026-11-19; two cores; `make bench`; not recorded: versions, seeds, commit.*"
    )


def test_what_is_printed_is_kept_as_it_is(tmp_path):
    tables.keep("bench", tables.content_of("a tell: 3 ms\n\n  10 of 12\n"), {}, tmp_path)
    assert tables.rendered(tables.read("bench", tmp_path)) == "```\na tell: 3 ms\n\n  10 of 12\n```"


@pytest.mark.parametrize("path", sorted(tables.FOLDER.glob("*.json")), ids=lambda path: path.stem)
def test_a_kept_table_says_when_where_and_how(path):
    kept = tables.read(path.stem)
    assert set(kept["about"]) == set(tables.ASKED)
    assert tables.UNKNOWN not in kept["about"]["commit"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Templates, tables and pages of their own, with one page that is made."""
    for name in ("benchmarks/templates", "docs/benchmarks", "benchmarks/results/tables"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    monkeypatch.setattr(pages, "TEMPLATES", tmp_path / "benchmarks" / "templates")
    monkeypatch.setattr(pages, "DOCS", tmp_path / "docs")
    monkeypatch.setattr(tables, "FOLDER", tmp_path / "benchmarks" / "results" / "tables")
    monkeypatch.setattr(tables.read, "__defaults__", (tables.FOLDER,))
    pages.table.cache_clear()
    tables.keep("lost", tables.content_of(TABLE), {}, tables.FOLDER)
    (pages.TEMPLATES / "trials.md").write_text(
        "# Trials\n\nIt lost {{lost | cliff, 3 | `a` | lost}}.\n\n{{lost}}\n"
    )
    for path, text in pages.pages().items():
        path.write_text(text)
    yield tmp_path
    pages.table.cache_clear()


def test_a_page_is_its_template_with_what_is_kept(folder):
    text = (folder / "docs" / "benchmarks" / "trials.md").read_text()
    assert "It lost +0.70 ± 0.02.\n" in text
    assert f"{TABLE}\n\n*Measured: " in text
    assert pages.wrong() == []


def test_what_does_not_agree_is_named(folder):
    tables.keep("found", tables.content_of(TABLE), {}, tables.FOLDER)
    (folder / "docs" / "benchmarks" / "lost.md").write_text("# Lost\n")
    page = folder / "docs" / "benchmarks" / "trials.md"
    page.write_text(page.read_text().replace("0.70", "0.71"))
    assert pages.wrong() == [
        "docs/benchmarks/trials.md is old: python -m benchmarks.pages",
        "docs/benchmarks/lost.md has no template",
        "benchmarks/results/tables/found.json is on no page",
    ]


@pytest.mark.parametrize(
    "words", ["lost | cliff, 3 | lost", "lost | cliff, 4 | lost", "lost | cliff, 3 | `a` | found"]
)
def test_a_cell_that_is_not_one_is_no_number(folder, words):
    with pytest.raises(SystemExit, match="rows of"):
        pages.cell([word.strip() for word in words.split("|")])


def test_a_line_is_never_filled_into_an_item_of_its_own():
    words = " ".join(["a word and"] * 9)
    for end in ("- what follows", "1. What follows", "+ 3 of them"):
        lines = pages.filled(f"{words} {'x' * 15} {end} {words}").splitlines()
        assert len(lines) > 1
        assert not any(re.match(r"([-+*]|\d+\.) ", line) for line in lines)


def prose(text):
    """What a person reads of a page before its list of old addresses, without link targets."""
    text = re.sub(r"<!--.*?-->|\]\([^)]*\)", "", text.partition(LIST)[0])
    return [word for word in text.split() if re.search(r"\w", word)]


def test_the_first_page_is_short():
    assert len(prose(FIRST.read_text())) <= WORDS


def test_no_result_of_the_first_page_is_typed_by_hand():
    text = (pages.TEMPLATES / "benchmarks.md").read_text().partition(LIST)[0]
    text = re.sub(r"\{\{.*?\}\}|`[^`]*`|\]\([^)]*\)", "", text)
    assert set(re.findall(r"(?<![\w@])\d[\d,.]*(?<![,.])", text)) <= BY_HAND

"""The pages of docs/reference are what the code says, and nothing is missing on them."""

import re
import sqlite3
from contextlib import closing
from itertools import pairwise

import pytest

import commands
import recoup
import reference
from documented import entries
from recoup.store import schema
from study_file_page import tables

LONGEST = 60_000  # characters of a page: what the site makes of it stays below 100 kB
ANCHOR = re.compile(r"\]\((?:([\w-]+)\.md)?#([\w-]+)\)")


def test_the_pages_are_what_the_code_says():
    assert reference.differ() == [], "run python docs/ext/reference.py"


def test_a_page_that_is_older_than_the_code_is_found(tmp_path, capsys):
    reference.write(tmp_path)
    path = tmp_path / "studies.md"
    path.write_text(path.read_text().replace("A search that lives", "A search that lived"))
    (tmp_path / "gone.md").write_text("# A name that is gone\n")
    assert reference.differ(tmp_path) == ["gone.md", "studies.md"]
    reference.write(tmp_path)
    assert reference.differ(tmp_path) == []


def read(name):
    return (reference.FOLDER / f"{name}.md").read_text()


def test_every_name_has_its_place_for_the_search():
    for one in entries():
        assert re.search(
            rf"^:::\{{py:\w+\}} {re.escape(one.full_name)}(\(|$)", read(one.part.slug), re.M
        )


def test_every_link_between_pages_leads_to_a_heading():
    for path in reference.FOLDER.glob("*.md"):
        for page, anchor in ANCHOR.findall(path.read_text()):
            heads = re.findall(r"^#+ (.+)$", read(page or path.stem), re.M)
            found = [re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads]
            assert anchor in found, f"{path.name}: {page}#{anchor}"


def test_headings_are_in_order():
    for path in reference.FOLDER.glob("*.md"):
        levels = [len(found) for found in re.findall(r"^(#+) ", path.read_text(), re.M)]
        assert all(after <= before + 1 for before, after in pairwise(levels)), path.name


def test_pages_are_short():
    for path in reference.FOLDER.glob("*.md"):
        assert len(path.read_text()) < LONGEST, path.name


def test_every_command_is_there_as_it_is_printed():
    found = list(commands.commands())
    assert ("study", "tell") in found
    assert ("train",) in found
    both = read("commands") + read("study-commands")
    for words in found:
        assert f"## {' '.join(('recoup', *words))}\n" in both


def test_help_is_eighty_columns_wide():
    assert max(map(len, commands.help_of(("train",)).splitlines())) == 80


@pytest.mark.parametrize("name", recoup.METHODS)
def test_every_method_is_there(name):
    assert f"### {name}\n" in read("methods")


def test_tables_and_columns_are_those_of_a_study_file(tmp_path):
    recoup.Study.open(tmp_path / "s.db", dim=2).close()
    with closing(sqlite3.connect(tmp_path / "s.db")) as file:
        made = {
            name for (name,) in file.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        }
        assert {name for name, *_ in tables()} - set(schema.LATER) == made
        for name, words, columns in tables():
            found = [row[1:3] for row in file.execute(f"PRAGMA table_info({name})")]
            wanted = [("id", "INTEGER"), *((x, kind) for x, kind, _ in columns), ("crc", "INTEGER")]
            assert name in schema.LATER or found == wanted
            assert all([words, *(text for *_, text in columns)]), name

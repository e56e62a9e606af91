"""What the docs show on a console is what the program prints."""

from pathlib import Path

import pytest
from console import alike, run, steps, tidy, write_scripts

from recoup.core.families.table import WORDS

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_commands_print_what_is_written(tmp_path):
    text = (ROOT / "docs" / "study.md").read_text()
    found = steps(text)
    write_scripts(text, tmp_path)
    assert len(found) >= 3
    for command, output in found:
        printed = run(command, tmp_path)
        assert alike(printed, tidy(output)), f"$ {command}\n{printed}"


@pytest.mark.parametrize(
    ("page", "row"), [("recoup.md", "| `family` | by D"), ("study.md", "| `family` | the")]
)
def test_every_family_with_a_word_is_listed(page, row):
    (line,) = (x for x in (ROOT / "docs" / page).read_text().splitlines() if x.startswith(row))
    assert all(word in line for word in WORDS)

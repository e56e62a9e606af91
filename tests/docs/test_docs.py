"""What pages say of families is what the table of families holds."""

from pathlib import Path

import pytest

from recoup.core.families.table import WORDS

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("page", "row"),
    [("recoup.md", "| `family` | by D"), ("do/other-starts.md", "| `family` | the")],
)
def test_every_family_with_a_word_is_listed(page, row):
    (line,) = (x for x in (ROOT / "docs" / page).read_text().splitlines() if x.startswith(row))
    assert all(word in line for word in WORDS)

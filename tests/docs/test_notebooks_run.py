"""Each notebook runs from its first cell to its last, as a program of its own."""

import os
import re
import subprocess
import sys

import pytest
from blocks import blocks
from sites import DOCS
from waiting import LIMIT

NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.md"))


def cells(page):
    """The code of a notebook, without what a cell says of its picture."""
    found = [x.text for x in blocks(page.read_text()) if x.kind == "{code-cell} ipython3"]
    return [re.sub(r"\A---\n.*?^---\n", "", text, flags=re.S | re.M) for text in found]


@pytest.mark.slow
@pytest.mark.parametrize("page", NOTEBOOKS, ids=lambda page: page.stem)
def test_a_notebook_runs(page, tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", "\n".join(cells(page))],
        cwd=tmp_path,
        env={**os.environ, "MPLBACKEND": "agg"},
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_there_are_three_and_each_offers_itself_as_a_file():
    assert len(NOTEBOOKS) == 3
    for page in NOTEBOOKS:
        text = page.read_text()
        assert text.startswith("---\njupytext:\n")
        assert f"{{nb-download}}`{page.stem}.ipynb`" in text

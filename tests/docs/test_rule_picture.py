"""The command that draws the picture of docs/recoup.md draws it."""

import subprocess
import sys
from pathlib import Path

from waiting import LIMIT

ROOT = Path(__file__).parents[2]


def test_the_picture_of_the_method_is_drawn_by_the_command_that_the_page_names(tmp_path):
    name = "benchmarks.rule_picture"
    assert f"`python -m {name} docs/recoup.png`" in (ROOT / "docs" / "recoup.md").read_text()
    drawn = tmp_path / "p.png"
    subprocess.run([sys.executable, "-m", name, str(drawn)], cwd=ROOT, check=True, timeout=LIMIT)
    assert drawn.read_bytes().startswith(b"\x89PNG")

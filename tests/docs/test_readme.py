import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "docs/search.md", "docs/own-parts.md")
README, *OTHERS = ((ROOT / name).read_text() for name in PAGES)
EXAMPLES = re.findall(r"```python\n(.*?)```", "".join([README, *OTHERS]), re.S)
NAMES = ["study", "estimate", "search", "actions"]
NAMES += ["weighting", "baseline", "direction", "update", "family"]


def test_the_docs_have_their_examples():
    assert len(EXAMPLES) == len(NAMES)


@pytest.mark.parametrize("example", EXAMPLES, ids=NAMES)
def test_the_examples_of_the_docs_run(example, tmp_path):
    cached = "ignore:Error reading persistent compilation cache entry"  # one that is being written
    program = [sys.executable, "-W", "error", "-W", cached, "-c", example]
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_the_estimate_of_the_readme_is_the_one_it_prints(tmp_path):
    program = [sys.executable, "-c", EXAMPLES[1]]
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    objective, low, high = map(float, done.stdout.splitlines()[0].split())
    assert f"{objective:.2f}, 95 % interval {low:.2f} to {high:.2f}; exact: -1.11" in README
    assert low < -1.11 < high

import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from waiting import LIMIT

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "docs/search.md", "docs/own-parts.md")
README, *OTHERS = ((ROOT / name).read_text() for name in PAGES)
EXAMPLES = re.findall(r"```python\n(.*?)```", "".join([README, *OTHERS]), re.S)
NAMES = ["study", "estimate", "search", "actions"]
NAMES += ["weighting", "baseline", "direction", "update", "family"]


def test_the_docs_have_their_examples():
    assert len(EXAMPLES) == len(NAMES)


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """What an example does as a program of its own, each run once."""

    @cache
    def run(example):
        cached = "ignore:Error reading persistent compilation cache entry"  # one being written
        program = [sys.executable, "-W", "error", "-W", cached, "-c", example]
        how = {"cwd": tmp_path_factory.mktemp("example"), "capture_output": True, "text": True}
        return subprocess.run(program, **how, timeout=LIMIT)

    return run


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=NAMES)
def test_the_examples_of_the_docs_run(example, ran):
    done = ran(example)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_the_estimate_of_the_readme_is_the_one_it_prints(ran):
    done = ran(EXAMPLES[1])
    objective, low, high = map(float, done.stdout.splitlines()[0].split())
    assert f"{objective:.2f}, 95 % interval {low:.2f} to {high:.2f}; exact: -1.11" in README
    assert low < -1.11 < high

import re
import subprocess
import sys
from pathlib import Path

import pytest

README = (Path(__file__).parent.parent / "README.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", README, re.S)


def test_the_readme_has_its_examples():
    assert len(EXAMPLES) == 3


@pytest.mark.parametrize("example", EXAMPLES, ids=["search", "actions", "estimate"])
def test_the_examples_of_the_readme_run(example, tmp_path):
    program = [sys.executable, "-W", "error", "-c", example]
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_the_estimate_of_the_readme_is_the_one_it_prints(tmp_path):
    program = [sys.executable, "-c", EXAMPLES[2]]
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    objective, stderr = map(float, done.stdout.splitlines()[0].split())
    assert f"{objective:.2f} +- {stderr:.2f} (exact: -1.11)" in README

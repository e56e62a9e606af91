"""Sites of the documentation: small ones with our settings, and the whole."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import LIMIT

DOCS = Path(__file__).parents[2] / "docs"
MADE = re.compile(r"^(.*?\.md)(?::(\d+))?: WARNING: (.*)$", re.M)


def builder():
    """Skips where the builder is not installed; fails there with RECOUP_REQUIRE_DOCS."""
    if importlib.util.find_spec("sphinx") is None:
        what = "sphinx is not installed: pip install '.[docs]'"
        if os.environ.get("RECOUP_REQUIRE_DOCS"):
            pytest.fail(what)
        pytest.skip(what)


def built(source, out):
    """The site of a folder, built as `make docs` does it: what the program said."""
    builder()
    options = ["-b", "html", "-n", "-W", "--keep-going", "-q", "-d", str(out.parent / "doctrees")]
    command = [sys.executable, "-m", "sphinx", *options, str(source), str(out)]
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)


def tiny(folder, pages):
    """A folder of a few pages with our settings and extensions."""
    folder.mkdir()
    for name in ("ext", "_static"):
        shutil.copytree(DOCS / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(DOCS / "conf.py", folder)
    for name, text in pages.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return folder


def warnings(done):
    """(page, line, words) of every warning; the line is 0 where none is named."""
    found = MADE.findall(done.stderr)
    return [(Path(page).name, int(line or 0), words) for page, line, words in found]

"""The Makefile: what it needs is installed once, wherever and whenever the checkout was made."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PYTHON = """#!/bin/sh
[ "$1" = -c ] && exit
mkdir -p .venv/bin
printf '#!/bin/sh\\necho "$@" >> installs' > .venv/bin/pip
printf '#!/bin/sh\\necho "$@" >> runs' > .venv/bin/recoup
chmod +x .venv/bin/pip .venv/bin/recoup
"""


@pytest.fixture
def checkout(tmp_path):
    """The files that `make` looks at, with a Python that writes down what is asked of it."""
    if shutil.which("make") is None:
        pytest.skip("make is not installed")
    place = tmp_path / "a place of mine"
    place.mkdir()
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, place)
    (place / "python").write_text(PYTHON)
    (place / "python").chmod(0o755)
    return place


def made(place, what="demo"):
    """How often pip has been asked to install, once `make demo` or another command is done."""
    command = ["make", what, "PYTHON=./python"]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return len(asked(place))


def asked(place):
    """What pip was asked for, a line each."""
    return (place / "installs").read_text().splitlines()


def test_the_demo_needs_no_extra_and_the_rest_is_installed_for_what_needs_it(checkout):
    made(checkout)
    made(checkout, "reproduce")
    light, whole = asked(checkout)
    assert light.endswith("-c constraints.txt -e . --no-compile")
    assert whole.endswith("-c constraints.txt -e .[dev]")


def test_whoever_has_everything_has_what_the_demo_needs(checkout):
    assert made(checkout, "reproduce") == 1
    assert made(checkout) == 1
    text = (checkout / "constraints.txt").read_text()
    (checkout / "constraints.txt").write_text(text + "\n")
    assert made(checkout) == 2
    assert made(checkout, "reproduce") == 3


def test_what_is_needed_is_installed_once(checkout):
    assert made(checkout) == 1
    assert made(checkout) == 1
    for name in ("pyproject.toml", "constraints.txt"):  # as git does
        text = (checkout / name).read_text()
        (checkout / name).unlink()
        (checkout / name).write_text(text)
        assert made(checkout) == 1
    with (checkout / "pyproject.toml").open("a") as file:
        file.write("\n[tool.another]\nsetting = 1\n")
    assert made(checkout) == 1
    assert len((checkout / "runs").read_text().splitlines()) == 5


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [("pyproject.toml", '"rich>=14"', '"rich>=13"'), ("constraints.txt", "==", "!=")],
)
def test_another_need_is_installed(checkout, name, old, new):
    assert made(checkout) == 1
    text = (checkout / name).read_text()
    assert old in text
    (checkout / name).write_text(text.replace(old, new))
    assert made(checkout) == 2


def test_an_install_that_failed_is_tried_again(checkout):
    whole = (checkout / "python").read_text()
    (checkout / "python").write_text(whole.replace("installs'", "installs; exit 1'"))
    done = subprocess.run(["make", "demo", "PYTHON=./python"], cwd=checkout, capture_output=True)
    assert done.returncode != 0
    (checkout / "python").write_text(whole)
    assert made(checkout) == 2

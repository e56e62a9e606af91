"""Searches by hand, and runs on environments and functions of one's own, where JAX is missing."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

WITHOUT = """
import importlib.metadata
import sys

MISSING = ("jax", "jaxlib", "optax")


class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in MISSING:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name.split(".")[0])


def from_name(name, found=importlib.metadata.Distribution.from_name):
    if name in MISSING:
        raise importlib.metadata.PackageNotFoundError(name)
    return found(name)


sys.meta_path.insert(0, Missing())
importlib.metadata.Distribution.from_name = from_name
"""
MINE = """
def earned(theta):
    return -sum((x - 0.3) ** 2 for x in theta)
"""


@pytest.fixture
def recoup(tmp_path):
    """The program in a process that cannot import JAX; gives its output."""
    (tmp_path / "sitecustomize.py").write_text(WITHOUT)
    (tmp_path / "mine.py").write_text(MINE)
    known = {key: value for key, value in os.environ.items() if not key.startswith("RECOUP_")}

    def called(*words, code=0):
        done = subprocess.run(
            [sys.executable, "-m", "recoup", *words],
            cwd=tmp_path,
            env={**known, "PYTHONPATH": str(tmp_path)},
            capture_output=True,
            text=True,
        )
        assert done.returncode == code, done.stderr
        return done.stdout if code == 0 else done.stderr

    return called


def test_an_environment_is_learned_tested_resumed_and_shown(recoup, tmp_path):
    how = ["--policy", "mlp", "--episodes", "12", "--out", "run"]
    assert json.loads(recoup("train", "CartPole-v1", *how, "--json"))["episodes"] == 12
    assert "mean policy" in recoup("evaluate", "run", "--episodes", "2")
    recoup("resume", "run", "--episodes", "16")
    recoup("report", "run", "--out", "page.html")
    assert "CartPole-v1" in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize("method", ["recoup", "mis-pgpe-ob", "cem"])
def test_a_function_is_learned_by_processes(recoup, tmp_path, method):
    how = ["--dim", "2", "--method", method, "--batch", "6", "--episodes", "18"]
    recoup("train", "mine:earned", *how, "--engine", "process", "--workers", "2", "--out", "run")
    assert (tmp_path / "run" / "curve.png").exists()


def test_what_needs_it_says_so_in_a_sentence(recoup):
    said = recoup("train", "toy", "--iterations", "2", code=1)
    assert said.strip().splitlines()[-1] == (
        "recoup: this is computed by JAX, which is not installed: pip install jax optax"
    )


def test_the_same_run_is_made_where_jax_is_installed(recoup, tmp_path):
    how = ["--episodes", "12", "--seed", "3", "--out"]
    recoup("train", "CartPole-v1", *how, "without")
    words = [sys.executable, "-m", "recoup", "train", "CartPole-v1", *how, "with"]
    subprocess.run(words, cwd=tmp_path, check=True, capture_output=True)
    ends = [_end(tmp_path / name) for name in ("without", "with")]
    assert ends[0] == ends[1]


def _end(run: Path):
    import recoup

    with recoup.load(run).study as study:
        return study.mean.tolist(), [trial.value for trial in study.trials()]


def test_methods_are_compared_on_a_function(recoup, tmp_path):
    methods = ["--method", "recoup", "--method", "mis-pgpe-ob", "--method", "cma-es"]
    how = ["--dim", "2", "--runs", "2", "--episodes", "12", "--out", "compared"]
    assert "mis-pgpe-ob" in recoup("compare", "--task", "mine:earned", *methods, *how)
    assert (tmp_path / "compared" / "compare.html").exists()

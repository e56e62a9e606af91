"""`recoup evaluate` where nothing can be said."""

import json

import pytest
from program import recoup as program

import recoup


@pytest.fixture
def run(tmp_path, monkeypatch):
    (tmp_path / "own.py").write_text(
        "import os\n\ndef rollout(kp, seed):\n"
        "    return float('nan') if os.environ.get('FALLS') else -(kp - 1) ** 2\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    how = {"params": {"kp": (0, 5)}, "iterations": 2, "out": tmp_path / "run"}
    recoup.train("own:rollout", **how)
    monkeypatch.setenv("FALLS", "1")
    return tmp_path / "run"


def test_what_no_episode_has_told_is_not_known(run):
    words = ("evaluate", run, "--task", "own:rollout", "--episodes", 4)
    said = program(*words).stdout
    assert said.count("not known") == 2
    assert "nan" not in said
    found = json.loads(program(*words, "--json").stdout, parse_constant=pytest.fail)
    assert found["return_search"] == {"mean": None, "stderr": None, "episodes": 0}

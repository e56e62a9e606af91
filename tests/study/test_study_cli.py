"""A walk through `recoup study` as somebody with a robot would take it."""

import json
import subprocess
import sys

import numpy as np
import pytest

from recoup.study.study import Study


def study(cwd, *arguments, fails=None):
    command = [sys.executable, "-m", "recoup", "study", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=300)
    if fails is None:
        assert done.returncode == 0, done.stderr
        return done.stdout
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1
    assert fails in done.stderr
    return ""


def test_a_walk(tmp_path):
    """New, ask, tell in odd order, fail one, wrong results, a file of results, show, evaluate."""
    words = "new robot.db --dim 2 --std 0.3 --mean -1,0.5 --batch 3 --method iw-pgpe-ob --seed 4"
    assert study(tmp_path, *words.split()) == "robot.db\n"
    study(tmp_path, "new", "robot.db", "--dim", "2", fails="exists already")
    trials = json.loads(study(tmp_path, *["ask", "robot.db", "-n", "6", "--format", "json"]))
    assert [trial["id"] for trial in trials] == [1, 2, 3, 4, 5, 6]
    assert len(trials[0]["theta"]) == 2
    study(tmp_path, "tell", "robot.db", 3, -12.3)
    study(tmp_path, "tell", "robot.db", 3, -12.3)
    study(tmp_path, "tell", "robot.db", 3, -12.4, fails="told -12.3 before, and now -12.4")
    study(tmp_path, "tell", "robot.db", 3, "--failed", "no", fails="told -12.3 before")
    study(tmp_path, "tell", "robot.db", 9, 1, fails="there is no trial 9")
    study(tmp_path, "tell", "robot.db", 1, "nan", fails="report a failure")
    study(tmp_path, "tell", "robot.db", 1, "fast", fails="must be a number, got 'fast'")
    study(tmp_path, "tell", "robot.db", fails="takes the id of a trial, or --file")
    study(tmp_path, "tell", "robot.db", 6, "--failed", "gripper slipped")
    results = tmp_path / "results.csv"
    results.write_text("id,return,failed\n5,-1e0,\n1,,\n")
    study(tmp_path, "tell", "robot.db", "--file", results, fails="line 3 of")
    results.write_text("id,return,failed\n5,-1e0,\n1,-2.5,\n2,,fell over\n")
    assert study(tmp_path, "tell", "robot.db", "--file", results).startswith("3 results told.\n")
    shown = study(tmp_path, "show", "robot.db")
    assert "1 pending, 3 ok, 2 failed" in shown
    assert "trial 5: -1" in shown
    with Study.open(tmp_path / "robot.db") as same:
        assert [trial.id for trial in same.pending()] == [4]
        assert len(same.history()) == 1
        assert not np.allclose(same.mean, [-1, 0.5])
    assert "say nothing about it" in study(tmp_path, "evaluate", "robot.db", "--mean", "9")
    rows = study(tmp_path, *["ask", "robot.db", "-n", "2", "--format", "csv"]).splitlines()
    assert rows[0] == "id,seed,theta_0,theta_1"
    assert [row.split(",")[0] for row in rows[1:]] == ["7", "8"]


def test_wrong_use_gets_one_sentence(tmp_path):
    study(tmp_path, "ask", "robot.db", fails="there is no study in robot.db")
    study(tmp_path, "new", "robot.db", "--dim", "2", "--std", "0", fails="std must be")
    study(tmp_path, "new", "robot.db", "--dim", "2", "--method", "cma", fails="method must be one")
    study(tmp_path, "new", "no/robot.db", "--dim", "2", fails="no does not exist")
    (tmp_path / "robot.db").write_text("id,return\n" * 200)
    study(tmp_path, "show", "robot.db", fails="is not a study file (not SQLite)")


def test_an_evaluation_is_the_expected_return(tmp_path):
    """Against the exact value, within four standard errors, and the error is not empty."""
    with Study.open(tmp_path / "s.db", dim=2, batch=400, std=0.5, method="iw-pgpe-ob") as s:
        trials = s.ask(600)
        s.tell([t.id for t in trials], [float(-np.sum((t.theta - 0.3) ** 2)) for t in trials])
        mean, std = np.array([0.2, 0.1]), np.array([0.4, 0.5])
        found = s.evaluate(mean, std)
        exact = -np.sum((mean - 0.3) ** 2 + std**2)
        assert abs(found.mean - exact) < 4 * found.stderr
        assert 0 < found.stderr < 0.05
        assert found.ess > 300
        assert "can be trusted" in found.words
        away = s.evaluate(mean + 10, std)
        assert np.isnan(away.mean)
        assert "say nothing" in away.words
        with pytest.raises(ValueError, match="several trials are told with a list of ids"):
            s.tell([1, 2], 3.0)

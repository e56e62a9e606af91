"""Episodes and workers that fail: said in a sentence, counted, never taken for a return."""

import json
import queue
from types import SimpleNamespace

import numpy as np
import optuna
import pytest
from program import recoup

from recoup.compare import work
from recoup.compare.arenas import Asking, arena_of, start_of
from recoup.compare.entrants import entrant_of
from recoup.compare.peers.optuna import tpe
from recoup.compare.peers.scaled import Controlled
from recoup.compare.side_by_side import TRIED, learn, players_of
from recoup.tasks.engines.engine import Broken

TASKS = """
import os
import numpy as np

def slips(theta, seed):  # where searches start, and to the right of it; all returns are negative
    if np.sum(theta**2) < 1e-12 or theta[0] > 0.5:
        raise RuntimeError("it slips")
    return -100 - float(np.sum(theta**2))

def broken(theta, seed):
    raise RuntimeError("the arm is off")

def infinite(theta, seed):
    return float("inf")

def dies(theta, seed):
    os._exit(0)
"""


@pytest.fixture
def robot(tmp_path, monkeypatch):
    """A directory with tasks that fail."""
    (tmp_path / "failing_tasks.py").write_text(TASKS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def of(name):
    return arena_of(f"failing_tasks:{name}", Asking(dim=2, tests=5))


@pytest.mark.parametrize("name", ["cma-es", "lq-cma-es", "snes", "evosax-cma-es"])
def test_a_batch_of_failures_before_any_return_is_replaced(name, x64):
    arena = arena_of("sphere-10")
    starts = np.stack([start_of(arena, 0, run) for run in (0, 1)])
    players = players_of(arena, entrant_of(name), 0, [0, 1], 100)
    first = np.array(players.ask(1))
    returns = np.full((2, players.batch), np.nan)
    returns[1] = -np.arange(players.batch) - 100.0
    players.tell(1, first, returns)
    second = np.array(players.ask(2))
    np.testing.assert_allclose(players.mean()[0], starts[0], rtol=1e-6)
    assert not np.isclose(first[0], second[0]).all(1).any()
    if players.batch > 1:  # the other run has moved
        assert not np.allclose(players.mean()[1], starts[1])
    players.tell(2, second, returns[::-1])
    third = np.array(players.ask(3))
    assert np.isfinite(third).all()
    players.close()


def test_optuna_is_told_that_a_trial_failed():
    trials = tpe(np.zeros(2), np.ones(2), 0, {})
    trials.tell(trials.ask(), np.array([np.nan]))
    np.testing.assert_array_equal(trials.mean(), 0.0)
    theta = trials.ask()
    trials.tell(theta, np.array([-100.0]))
    np.testing.assert_allclose(trials.mean(), theta[0])
    states = [trial.state for trial in trials._study.trials]
    assert states == [optuna.trial.TrialState.FAIL, optuna.trial.TrialState.COMPLETE]


@pytest.mark.parametrize("name", ["optuna-tpe", "cma-es", "lq-cma-es"])
def test_what_is_deployed_has_succeeded(name, robot):
    (curve,) = learn(of("slips"), entrant_of(name), 0, [0], [24])
    assert np.isnan(curve.policy[0])
    assert -120 < curve.policy[1] < -100
    assert curve.failed > 0
    assert curve.failed_tests >= 5  # those of the mean policy at the start


@pytest.mark.parametrize(
    ("name", "why"), [("broken", "RuntimeError: the arm is off"), ("infinite", "it returned inf")]
)
@pytest.mark.parametrize("method", ["snes", "optuna-tpe", "pgpe:batch=4"])
def test_a_task_that_always_fails_stops_with_the_reason(name, why, method, robot):
    spent = {"snes": 12, "optuna-tpe": TRIED, "pgpe:batch=4": 12}[method]
    said = f"failing_tasks:{name} by {method}: the first {spent} episodes of a run have all failed"
    with pytest.raises(Broken, match=f"^{said}: {why}.$"):
        learn(of(name), entrant_of(method), 0, [0], [40])


def test_with_few_episodes_too(robot):
    words = "compare --task failing_tasks:broken --dim 2 --method optuna-tpe --runs 1 --episodes 3"
    done = recoup(*words.split(), "--quiet", cwd=robot)
    assert done.returncode == 1
    assert done.stderr == (
        "recoup: failing_tasks:broken by optuna-tpe: the first 3 episodes of a run have all "
        "failed: RuntimeError: the arm is off.\n"
    )


def test_failed_episodes_are_counted_and_shown(robot):
    words = "compare --task failing_tasks:slips --dim 2 --method cma-es --runs 2 --episodes 18"
    done = recoup(*words.split(), "--test-episodes", "5", cwd=robot)
    assert done.returncode == 0, done.stderr
    out = robot / "runs" / "compare"
    (task,) = json.loads((out / "compare.json").read_text())["tasks"]
    (row,) = task["methods"]
    kept = [json.loads(path.read_text()) for path in sorted((out / "results").rglob("*.json"))]
    assert row["failed"] == [one["failed"] for one in kept]
    assert row["failed_tests"] == [one["failed_tests"] for one in kept]
    lost, untested = sum(row["failed"]), sum(row["failed_tests"])
    assert 0 < lost < 36
    note = f"cma-es: {lost} learning episodes and {untested} test episodes failed; J and m leave "
    assert any(one.startswith(note) for one in task["notes"])
    for text in (done.stdout, *((out / f"compare.{kind}").read_text() for kind in ("md", "html"))):
        assert note in " ".join(text.split())


def worker(status, at):
    """A process that has ended, and where it was."""
    chunks = [work.Chunk("toy", Asking(), "snes", 0, (0,), (10,))]
    return [SimpleNamespace(exitcode=status)], queue.Queue(), chunks, [at], lambda *words: None


@pytest.mark.parametrize("status", [0, 1, -9])
def test_a_worker_that_ends_early_is_missed_whatever_its_status(status):
    said = f"a worker ended with status {status} in toy by snes before its work was done"
    with pytest.raises(RuntimeError, match=said):
        work._watch(*worker(status, 0))
    with pytest.raises(RuntimeError, match=f"status {status} before its work was done"):
        work._watch(*worker(status, work.WAITS))


def test_a_worker_that_is_done_is_not_missed():
    processes, done, chunks, at, show = worker(0, work.DONE)
    done.put(("toy snes", 0, 1))
    work._watch(processes, done, chunks, at, show)


@pytest.mark.slow
def test_a_task_that_ends_its_process(robot):
    words = "compare --task failing_tasks:dies --dim 2 --method snes --runs 5 --episodes 12"
    done = recoup(*words.split(), "--workers", "2", "--quiet", cwd=robot)
    assert done.returncode == 1
    assert "a worker ended with status 0 in failing_tasks:dies by snes" in done.stderr


def test_what_a_worker_raises_is_one_sentence(tmp_path, monkeypatch):
    def raises(chunk, results, show):
        raise SystemExit(0)

    monkeypatch.setattr(work, "compute", raises)
    monkeypatch.setattr(work.signal, "signal", lambda *words: None)
    monkeypatch.setattr(work, "_end_with", lambda parent: None)
    chunks, done, at = queue.Queue(), queue.Queue(), [work.WAITS]
    chunks.put((0, work.Chunk("toy", Asking(), "snes", 0, (0,), (10,))))
    chunks.put(None)
    work._work(chunks, done, tmp_path, at, 0)
    name, wrong, finished = done.get()
    assert (name, str(wrong), finished) == ("toy snes", "SystemExit: 0", 1)
    assert at == [work.DONE]


def test_a_method_in_a_thread_says_why_it_ended():
    def work_of(evaluate):
        evaluate([0.0])
        raise KeyError("gone")

    method = Controlled(work_of)
    method.ask()
    method.tell(np.zeros(1))
    with pytest.raises(KeyError, match="gone"):
        method.ask()

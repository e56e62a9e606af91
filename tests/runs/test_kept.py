"""Policies that a run keeps beside the newest: which, where, and after any stop the same."""

import json
import shutil
import signal
import subprocess
import sys
from contextlib import suppress

import numpy as np
import own_tasks
import pytest
from program import recoup as program

import recoup
from recoup.checks import InputError
from recoup.runs import kept
from recoup.runs.history import HistoryRow
from recoup.runs.kept import best_of, is_kept

HOW = {
    "method": "pgpe",
    "episodes": 36,
    "batch": 3,
    "horizon": 5,
    "test_episodes": 2,
    "keep_every": 4,
}
pytestmark = pytest.mark.usefixtures("sketches")
SEEN = np.array([0.4, 0.2])


def files(directory):
    """Names and bytes of all policies in a run directory."""
    places = (directory, directory / "policies")
    found = [path for place in places for path in place.iterdir() if path.suffix != ".db"]
    wanted = [path for path in found if "npz" in path.name]
    return {str(path.relative_to(directory)): path.read_bytes() for path in wanted}


@pytest.fixture(scope="module")
def calm(tmp_path_factory):
    """A run that was never stopped."""
    place = tmp_path_factory.mktemp("calm") / "r"
    return recoup.train(own_tasks.Walk, **HOW, out=place)


def test_every_kth_is_kept_and_fewer_the_longer_a_run_gets():
    found = [move for move in range(10_001) if is_kept(10, move)]
    dense, second = range(10, 1001, 10), range(1020, 2001, 20)
    rest = [*range(2040, 4001, 40), *range(4080, 8001, 80), *range(8160, 10_001, 160)]
    assert found == [*dense, *second, *rest]
    assert [move for move in range(301) if is_kept(1, move)] == [
        *range(1, 101),
        *range(102, 201, 2),
        *range(204, 301, 4),
    ]
    assert not any(is_kept(0, move) for move in range(100))


def test_a_run_keeps_the_best_and_every_kth(calm):
    assert sorted(files(calm.out)) == [
        "policies/000004.npz",
        "policies/000008.npz",
        "policies/000012.npz",
        "policies/best.npz",
        "policy.npz",
    ]
    assert [one.move for one in calm.policies()] == [4, 8, 12]
    for move, path in calm.policies():
        policy = recoup.load_policy(path)
        np.testing.assert_array_equal(policy.theta, calm.means[move])
        np.testing.assert_array_equal(policy(SEEN), calm.learned_policy(move)(SEEN))
    newest = recoup.load_policy(calm.out / "policy.npz")
    np.testing.assert_array_equal(newest.theta, calm.mean)
    best = recoup.load_policy(calm.out / "policies" / "best.npz")
    top = max(calm.history, key=lambda step: step.return_curve)
    assert calm.best == top
    np.testing.assert_array_equal(best.theta, calm.means[top.iteration])
    np.testing.assert_array_equal(calm.learned_policy("best").theta, best.theta)


def test_a_short_run_has_its_best_and_no_other(tmp_path):
    run = recoup.train(own_tasks.Walk, **{**HOW, "episodes": 9}, out=tmp_path / "r")
    assert sorted(files(run.out)) == ["policies/best.npz", "policy.npz"]


def test_the_final_test_has_its_say_about_the_best(tmp_path):
    """Every step earns more than the one before, so that the end is the best."""
    values = iter(range(10**6))

    class Rises(own_tasks.Walk):
        def step(self, action):
            seen, *_ = super().step(action)
            return seen, float(next(values)), False, False, {}

    run = recoup.train(Rises, **HOW, out=tmp_path / "r")
    assert run.best.iteration == 12
    best = recoup.load_policy(tmp_path / "r" / "policies" / "best.npz")
    np.testing.assert_array_equal(best.theta, run.mean)


def test_the_best_was_measured_and_is_the_newest_of_equals():
    curve = [(9.0, 1), (3.0, 5), (4.0, 5), (4.0, 5), (np.nan, 0), (2.0, 5)]
    steps = [
        HistoryRow(i, i, mean, 1.0, 1.0, 1.0, curve_episodes=count)
        for i, (mean, count) in enumerate(curve)
    ]
    assert best_of(steps).iteration == 3  # one trial alone says nothing
    assert best_of(steps[:1]) is None


@pytest.mark.parametrize("after", [7, 12, 25, 36])
def test_a_run_that_was_stopped_ends_with_the_same_files(after, calm, tmp_path):
    class Stop(recoup.Callback):
        def on_result(self, result):
            return result.id == after

    recoup.train(own_tasks.Walk, **HOW, callbacks=Stop(), out=tmp_path / "r")
    recoup.resume(tmp_path / "r", task=own_tasks.Walk)
    assert files(tmp_path / "r") == files(calm.out)


@pytest.mark.parametrize("how", ["callback", "error"])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_run_that_was_stopped_between_two_kept_moves_has_its_best(how, seed, tmp_path):
    """Whatever has stopped it: a callback, or Ctrl-C."""

    class Stop(recoup.Callback):
        def on_result(self, result):
            if result.id == 23 and how == "error":
                raise KeyboardInterrupt
            return result.id == 23

    words = {**HOW, "keep_every": 10, "seed": seed, "callbacks": Stop()}
    with suppress(KeyboardInterrupt):
        recoup.train(own_tasks.Walk, **words, out=tmp_path / "r")
    run = recoup.load(tmp_path / "r")
    assert (run.finished, run.history[-1].iteration) == (False, 7)
    best = recoup.load_policy(tmp_path / "r" / "policies" / "best.npz")
    np.testing.assert_array_equal(best.theta, run.means[run.best.iteration])
    newest = recoup.load_policy(tmp_path / "r" / "policy.npz")
    np.testing.assert_array_equal(newest.theta, run.mean)


@pytest.mark.parametrize("write", range(1, 8))
def test_a_run_that_died_while_it_wrote_ends_with_the_same_files(
    write, calm, tmp_path, monkeypatch
):
    """Before each file in turn, with half of it under its first name; the last are of the end."""
    whole, count = kept.save_policy, []

    def dies(path, *given, **how):
        count.append(path)
        if len(count) >= write:
            path.with_name(f"{path.name}.99999999.new").write_bytes(b"PK half")
            raise KeyboardInterrupt
        return whole(path, *given, **how)

    monkeypatch.setattr(kept, "save_policy", dies)
    try:
        recoup.train(own_tasks.Walk, **HOW, out=tmp_path / "r")
    except KeyboardInterrupt:
        monkeypatch.setattr(kept, "save_policy", whole)
        recoup.resume(tmp_path / "r", task=own_tasks.Walk)
    else:
        assert len(count) < write  # all of them were tried
        assert write > 4
    assert files(tmp_path / "r") == files(calm.out)


def test_files_that_are_torn_or_of_other_results_are_made_again(calm, tmp_path):
    class Stop(recoup.Callback):
        def on_move(self, step):
            return step.iteration == 9

    recoup.train(own_tasks.Walk, **HOW, callbacks=Stop(), out=tmp_path / "r")
    place = tmp_path / "r" / "policies"
    (place / "000004.npz").write_bytes((place / "000008.npz").read_bytes())
    (place / "000008.npz").write_bytes(b"PK half")
    (place / "best.npz").unlink()
    recoup.resume(tmp_path / "r", task=own_tasks.Walk)
    assert files(tmp_path / "r") == files(calm.out)


@pytest.mark.parametrize("task", [None, own_tasks.Walk])
def test_those_of_a_finished_run_are_put_right(task, calm, tmp_path):
    """Swapped, stale, torn or missing; the policy is known without its task."""
    out = tmp_path / "r"
    shutil.copytree(calm.out, out)
    shutil.copy(out / "policies" / "000004.npz", out / "policy.npz")
    shutil.copy(out / "policies" / "000012.npz", out / "policies" / "000008.npz")
    (out / "policies" / "000004.npz").unlink()
    (out / "policies" / "best.npz").write_bytes(b"PK half")
    recoup.resume(out, task=task)
    assert files(out) == files(calm.out)
    for name in ("policy.npz", "policies/best.npz"):
        (out / name).unlink()
    recoup.resume(out, task=task)
    assert files(out) == files(calm.out)


def spoil(path):
    """The same parameters in a file, with another policy around them."""
    with np.load(path) as packed:
        arrays = {key: packed[key] for key in packed.files}
    text = json.loads(str(arrays["policy"]))
    text["policy"]["actions"]["high"] = [9.0]
    np.savez(path, **arrays | {"policy": np.array(json.dumps(text))})


@pytest.mark.parametrize("task", [None, own_tasks.Walk])
def test_those_that_hold_another_policy_with_the_same_parameters_are_put_right(
    task, calm, tmp_path
):
    out = tmp_path / "r"
    shutil.copytree(calm.out, out)
    for name in ("policy.npz", "policies/best.npz", "policies/000004.npz"):
        spoil(out / name)
    assert files(out) != files(calm.out)
    recoup.resume(out, task=task)
    assert files(out) == files(calm.out)


def test_so_are_those_of_a_run_that_goes_on(calm, tmp_path):
    class Stop(recoup.Callback):
        def on_move(self, step):
            return step.iteration == 9

    recoup.train(own_tasks.Walk, **HOW, callbacks=Stop(), out=tmp_path / "r")
    spoil(tmp_path / "r" / "policies" / "000008.npz")
    recoup.resume(tmp_path / "r", task=own_tasks.Walk)
    assert files(tmp_path / "r") == files(calm.out)


def test_those_that_are_right_are_left_as_they_are(calm, tmp_path):
    shutil.copytree(calm.out, tmp_path / "r")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "r").rglob("*.npz")}
    recoup.resume(tmp_path / "r")
    assert {path: path.stat().st_mtime_ns for path in before} == before


@pytest.mark.parametrize("there", [True, False])
def test_a_link_is_replaced_and_not_what_it_leads_to(there, calm, tmp_path):
    out, mine = tmp_path / "r", tmp_path / "mine.npz"
    shutil.copytree(calm.out, out)
    if there:
        shutil.copy(out / "policies" / "000004.npz", mine)
        before = mine.read_bytes()
    (out / "policies" / "best.npz").unlink()
    (out / "policies" / "best.npz").symlink_to(mine)
    assert calm.best.iteration != 4
    recoup.resume(out)
    assert not (out / "policies" / "best.npz").is_symlink()
    assert files(out) == files(calm.out)
    assert mine.exists() == there
    assert not there or mine.read_bytes() == before


def test_those_of_another_run_are_named_until_they_are_put_right(calm, tmp_path):
    """Where another study was put beside them."""
    out, short = tmp_path / "r", {**HOW, "episodes": 24, "seed": 5}
    recoup.train(own_tasks.Walk, **short, out=tmp_path / "other")
    shutil.copytree(calm.out, out)
    for left in out.glob("study.db*"):
        left.unlink()
    shutil.copy(tmp_path / "other" / "study.db", out)
    run = recoup.load(out)
    assert (run.finished, [one.move for one in run.policies()]) == (True, [4, 8])
    files = "policy.npz, policies/best.npz, policies/000008.npz and 1 more in policies/ hold no"
    beyond = "policies/000012.npz is of another run: this has made no such policy."
    assert files in run.outdated
    assert beyond in run.outdated
    assert files in run.summary()["outdated"]
    assert program("report", out).returncode == 0
    assert files in (out / "report.html").read_text()
    assert recoup.resume(out).outdated == beyond
    (out / "policies" / "000012.npz").unlink()
    assert recoup.load(out).outdated is None
    recoup.train("toy", iterations=1, batch=2, out=tmp_path / "toy")
    shutil.copy(out / "policy.npz", tmp_path / "toy")
    assert recoup.load(tmp_path / "toy").outdated.startswith("policy.npz is of another run")


def test_those_of_a_run_are_looked_at_before_its_study(calm, tmp_path, monkeypatch):
    """One that makes a move meanwhile, and keeps its policy, has nothing wrong."""
    shutil.copytree(calm.out, tmp_path / "r")
    seen, moves = [], kept.history_of
    before = recoup.runs.run.policies_beside
    monkeypatch.setattr(
        recoup.runs.run, "policies_beside", lambda study: seen.append("files") or before(study)
    )
    monkeypatch.setattr(
        recoup.runs.run, "history_of", lambda study: seen.append("moves") or moves(study)
    )
    assert recoup.load(tmp_path / "r").outdated is None
    assert seen == ["files", "moves"]


def test_what_is_no_policy_is_not_replaced_by_one(calm, tmp_path, caplog):
    shutil.copytree(calm.out, tmp_path / "r")
    (tmp_path / "r" / "policy.npz").write_text("mine")
    recoup.resume(tmp_path / "r")
    (said,) = caplog.messages
    assert "policy.npz cannot be written (" in said
    assert (tmp_path / "r" / "policy.npz").read_text() == "mine"


def test_a_policy_that_only_python_can_give_is_asked_for(tmp_path, caplog):
    how = {"policy": own_tasks.Recurrent(), "episodes": 8, "batch": 4, "horizon": 5}
    run = recoup.train(own_tasks.Walk, **how, test_episodes=2, out=tmp_path / "r")
    before = files(run.out)
    (run.out / "policy.npz").unlink()
    assert recoup.resume(run.out).finished
    assert ["policy.npz cannot be written (" in said for said in caplog.messages] == [True]
    recoup.resume(run.out, task=own_tasks.Walk, policy=own_tasks.Recurrent())
    assert files(run.out) == before


def test_after_an_amendment_they_are_those_of_the_results(tmp_path):
    run = recoup.train(own_tasks.Walk, **HOW, out=tmp_path / "r")
    with run.study as study:
        study.amend(14, -1000.0, why="it fell over")
    again = recoup.resume(tmp_path / "r", task=own_tasks.Walk)
    assert again.means[8].tolist() != run.means[8].tolist()
    for move, path in [*again.policies(), (again.best.iteration, again.out / "policies/best.npz")]:
        np.testing.assert_array_equal(recoup.load_policy(path).theta, again.means[move])


DIES = """
import os, signal, sys
from recoup.cli.main import main
from recoup.runs import kept

whole, left = kept.save_policy, [None] * int(sys.argv.pop(1))

def dies(path, *given, **how):
    left.pop()
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)
    return whole(path, *given, **how)

kept.save_policy = dies
main()
"""


@pytest.mark.slow
def test_a_run_that_was_killed_again_and_again_has_the_same_files(tmp_path):
    """By -9, whenever it has written a few more policies."""
    words = "train Pendulum-v1 --method pgpe --episodes 60 --batch 3 --horizon 5 --test-episodes 2"
    words += " --keep-every 2 --quiet"
    program(*words.split(), "--out", "calm", cwd=tmp_path)
    step = [*words.split(), "--out", "r"]
    for count in (2, 3, 5):
        done = subprocess.run([sys.executable, "-c", DIES, str(count), *step], cwd=tmp_path)
        assert done.returncode == -signal.SIGKILL
        step = ["resume", "r", "--quiet"]
    done = program(*step, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert files(tmp_path / "r") == files(tmp_path / "calm")
    assert len(files(tmp_path / "r")) == 12


def test_a_run_that_is_extended_keeps_what_it_has(calm, tmp_path):
    longer = recoup.train(own_tasks.Walk, **{**HOW, "episodes": 24}, out=tmp_path / "r")
    before = {one.path: one.path.read_bytes() for one in longer.policies()}
    assert len(before) == 2
    run = recoup.resume(tmp_path / "r", task=own_tasks.Walk, iterations=12)
    assert [one.move for one in run.policies()] == [4, 8, 12]
    assert all(path.read_bytes() == old for path, old in before.items())


def test_none_is_kept_where_none_is_wanted(tmp_path):
    run = recoup.train(own_tasks.Walk, **{**HOW, "keep_every": 0}, out=tmp_path / "r")
    assert list(files_of(run)) == ["policy.npz"]
    assert run.policies() == []
    assert run.best is not None


def files_of(run):
    return [path.name for path in run.out.iterdir() if "polic" in path.name]


def test_where_there_is_nothing_to_keep_it_is_said(tmp_path):
    with pytest.raises(InputError, match="give one with out="):
        recoup.train(own_tasks.Walk, **HOW)
    with pytest.raises(InputError, match="own_tasks:quadratic has no policy of an environment to"):
        recoup.train(own_tasks.quadratic, dim=2, keep_every=3, out=tmp_path / "r")
    with pytest.raises(InputError, match="toy has no policy of an environment to keep"):
        recoup.train("toy", keep_every=3, out=tmp_path / "r")
    with pytest.raises(InputError, match="keep_every must be a whole number of at least 0"):
        recoup.train("Pendulum-v1", keep_every=-1, out=tmp_path / "r")
    assert not (tmp_path / "r").exists()


def test_the_best_can_be_judged_on_fresh_episodes(calm, tmp_path):
    """As a run would be that had ended there."""
    how = {"episodes": 4, "task": own_tasks.Walk}
    shorter = recoup.train(own_tasks.Walk, **{**HOW, "episodes": 15}, out=tmp_path / "r")
    assert recoup.evaluate(calm, **how, which=5) == recoup.evaluate(shorter, **how)
    assert recoup.evaluate(calm, **how, which=12) == recoup.evaluate(calm, **how)
    best = recoup.evaluate(calm, **how, which=calm.best.iteration)
    assert recoup.evaluate(calm.out, **how, which="best") == best
    words = ["--task", "own_tasks:Walk", "--episodes", "4", "--json", "--which"]
    done = program("evaluate", calm.out, *words, "best")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["return_mean_policy"]["mean"] == best.return_mean_policy.mean
    assert (told["iteration"], told["mean"]) == (
        calm.best.iteration,
        calm.means[told["iteration"]].tolist(),
    )
    done = program("evaluate", calm.out, *words, "13")
    assert (done.returncode, done.stdout) == (2, "")
    assert "which must be last, best or a move from 0 to 12, got 13." in done.stderr


@pytest.mark.parametrize("which", ["newest", 13, -1, True, 1.0])
def test_a_policy_that_there_is_not_is_said(which, calm):
    with pytest.raises(InputError, match="which must be last, best or a move from 0 to 12"):
        calm.learned_policy(which)


def test_a_policy_of_ours_is_read_from_a_run_without_its_task(calm):
    """Nobody's code is run for it."""
    loaded = recoup.load(calm.out)
    np.testing.assert_array_equal(loaded.learned_policy()(SEEN), calm.policy(SEEN))


def test_the_program_keeps_them_too(tmp_path):
    words = "train Pendulum-v1 --episodes 12 --batch 4 --horizon 5 --test-episodes 2 --out r"
    done = program(*words.split(), "--keep-every", "1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "r/policies" in done.stdout
    names = sorted(path.name for path in (tmp_path / "r" / "policies").iterdir())
    assert names == ["000001.npz", "000002.npz", "000003.npz", "best.npz"]

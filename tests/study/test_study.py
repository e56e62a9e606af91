"""The study: nothing lost, nothing refused that came late, and the same after any kill."""

import os
import random
import sqlite3
import threading
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import study_worker
from processes import Forked
from sentences import FULL
from studies import content, killed_at, work
from waiting import LIMIT, until

import recoup
from recoup.study.study import Study


def new(tmp_path, **settings):
    return Study.open(tmp_path / "robot.db", **{"dim": 3, "batch": 4, "seed": 5, **settings})


def value_of(trial):
    return float(-np.sum((trial.theta - 0.5) ** 2))


class TestMoves:
    @pytest.mark.parametrize("method", ["mis-pgpe-ob", "tiw-pgpe-ob", "pgpe", "iw-pgpe-ob"])
    def test_on_time_they_are_those_of_the_search(self, tmp_path, method):
        told = []
        with new(tmp_path, method=method, std=0.7) as study:
            for _ in range(4):
                trials = study.ask(4)
                for trial in trials:
                    study.tell(trial.id, value_of(trial))
                told.append((np.stack([t.theta for t in trials]), list(map(value_of, trials))))
            mean, std, history = study.mean, study.std, study.history()
        with jax.enable_x64(True):
            search = recoup.search(method, dim=3, batch=4, capacity=100)
            state = search.init(jax.random.key(0), 0.0, 0.7)
            for theta, returns in told:
                state, info = search.tell(jax.random.key(0), state, theta, jnp.asarray(returns))
            np.testing.assert_allclose(mean, state.mean, rtol=1e-12)
            np.testing.assert_allclose(std, state.std, rtol=1e-12)
            assert history[-1]["ess"] == pytest.approx(float(info.ess), rel=1e-10)
        assert [row["results"] for row in history] == [4, 8, 12, 16]

    def test_late_results_count_with_the_density_that_drew_them(self, tmp_path):
        with new(tmp_path, method="iw-pgpe-ob", std=0.7) as study:
            early, late = study.ask(4), study.ask(2)
            for trial in early:
                study.tell(trial.id, value_of(trial))
            fresh = study.ask(2)
            for trial in (fresh[1], late[1], fresh[0], late[0]):
                study.tell(trial.id, value_of(trial))
            first, second = study.history()
            means, stds = zip(*self.proposals(study), strict=True)
            trials = [*early, fresh[1], late[1], fresh[0], late[0]]
            want = recoup.estimate(
                np.stack([t.theta for t in trials]),
                np.array([value_of(t) for t in trials]),
                proposals=(np.stack(means[:2]), np.stack(stds[:2])),
                proposal=np.array([0, 0, 0, 0, 1, 0, 1, 0]),
                target=(means[1], stds[1]),
                weighting="own",
            )
        assert (first["samples"], second["samples"]) == (4, 8)
        assert second["ess"] == pytest.approx(want.ess, rel=1e-9)
        assert second["max_weight"] == pytest.approx(want.max_weight, rel=1e-9)
        gradient = np.concatenate([want.mean_gradient, want.std_gradient])
        step = np.concatenate([means[2] - means[1], stds[2] - stds[1]])
        np.testing.assert_allclose(step, 0.1 * gradient / np.linalg.norm(gradient), rtol=1e-8)

    @staticmethod
    def proposals(study):
        rows = study.store._file.rows("SELECT numbers FROM proposals ORDER BY id")
        return [np.split(np.frombuffer(numbers), 2) for (numbers,) in rows]

    def test_failed_trials_that_are_left_out_move_nothing(self, tmp_path):
        with new(tmp_path, failure="censored") as study:
            for trial in study.ask(9):
                study.tell(trial.id, failed="gripper slipped")
            assert study.history() == []
            assert study.counts() == {"pending": 0, "ok": 0, "failed": 9}


class TestAskAndTell:
    def test_a_trial_is_on_disk_before_it_is_returned(self, tmp_path):
        with new(tmp_path) as study:
            (trial,) = study.ask()
            reader = sqlite3.connect(tmp_path / "robot.db")
            theta, status = reader.execute("SELECT theta, status FROM trials").fetchone()
            assert (np.frombuffer(theta) == trial.theta).all()
            assert status == "pending"
            study.tell(trial.id, -1.5)
            assert reader.execute('SELECT status, "return" FROM trials').fetchone() == ("ok", -1.5)
            reader.close()

    def test_the_same_told_twice_is_accepted_and_something_else_refused(self, tmp_path):
        with new(tmp_path) as study:
            a, b = study.ask(2)
            study.tell(a.id, -1.5)
            study.tell(a.id, -1.5)
            with pytest.raises(ValueError, match=r"trial 1 was told -1\.5 before, and now 2\.0"):
                study.tell(a.id, 2.0)
            with pytest.raises(ValueError, match=r"told -1\.5 before, and now failed"):
                study.tell(a.id, failed="no")
            study.tell(b.id, failed="slipped")
            study.tell(b.id, failed="slipped")
            with pytest.raises(ValueError, match=r"told failed \(slipped\) before, and now 1.0"):
                study.tell(b.id, 1.0)
            assert study.counts() == {"pending": 0, "ok": 1, "failed": 1}

    def test_two_results_of_a_trial_told_at_once_are_refused_and_neither_stays(self, tmp_path):
        with new(tmp_path) as study:
            a, b = study.ask(2)
            with pytest.raises(ValueError, match=r"1 stands twice .* with 2\.0 and with 3\.0"):
                study.tell([b.id, a.id, a.id], [1.0, 2.0, 3.0])
            assert study.counts() == {"pending": 2, "ok": 0, "failed": 0}
            study.tell([a.id, b.id, a.id], [2.0, 1.0, 2.0])
            with pytest.raises(ValueError, match=r"trial 1 was told 2\.0 before, and now 3\.0"):
                study.tell([a.id], [3.0])

    def test_several_episodes_are_one_result(self, tmp_path):
        with new(tmp_path) as study:
            (trial,) = study.ask()
            study.tell(trial.id, values=[1.0, 2.0, 6.0])
            row = study.store._file.rows('SELECT "return", stderr, episodes FROM told')[0]
        assert row[0] == 3.0
        assert row[1] == pytest.approx(np.std([1, 2, 6], ddof=1) / np.sqrt(3))
        assert row[2] == 3

    @pytest.mark.parametrize("value", ["3", True, None, [1.0], b"x", float("nan"), float("inf")])
    def test_what_is_not_a_finite_number_is_refused(self, tmp_path, value):
        with new(tmp_path) as study:
            (trial,) = study.ask()
            with pytest.raises(ValueError, match=r"must be|takes one of these"):
                study.tell(trial.id, value)
            assert study.counts()["pending"] == 1

    def test_returns_that_overflow_are_refused(self, tmp_path):
        with new(tmp_path) as study:
            (trial,) = study.ask()
            with pytest.raises(ValueError, match="a return must be finite, got inf"):
                study.tell(trial.id, values=[1e308, 1e308])
            for wrong in (10**400, -(10**400)):
                with pytest.raises(ValueError, match="a whole number too large for a float"):
                    study.tell(trial.id, wrong)
            with pytest.raises(ValueError, match="must be a number"):
                study.tell(trial.id, 1 + 2j)

    def test_other_episodes_with_the_same_mean_are_something_else(self, tmp_path):
        with new(tmp_path) as study:
            (trial,) = study.ask()
            study.tell(trial.id, values=[1.0, 3.0])
            study.tell(trial.id, values=[1.0, 3.0])
            with pytest.raises(ValueError, match="of other episodes"):
                study.tell(trial.id, values=[0.0, 4.0])

    @pytest.mark.parametrize("wrong", ["1", 1.0, None, True, [1.7], [True]])
    def test_ids_are_whole_numbers(self, tmp_path, wrong):
        with new(tmp_path) as study:
            study.ask()
            value = [1.0] if isinstance(wrong, list) else 1.0
            with pytest.raises(ValueError, match="the id of a trial must be a whole number"):
                study.tell(wrong, value)
            assert study.counts()["pending"] == 1

    def test_unknown_trials_are_refused(self, tmp_path):
        with new(tmp_path) as study:
            for number in (7, 0, -1, 10**30):
                with pytest.raises(ValueError, match=f"there is no trial {number} in"):
                    study.tell(number, 1.0)


def test_ten_thousand_parameters(tmp_path):
    """Asked, told and moved, and what moves are made of read again by another process's study."""
    with new(tmp_path, dim=10_000, batch=3, std=0.1) as study:
        for _ in range(3):
            for trial in study.ask(3):
                study.tell(trial.id, value_of(trial))
        assert len(study.history()) == 3
        mean = study.mean
    with Study.open(tmp_path / "robot.db") as study:
        np.testing.assert_array_equal(study.mean, mean)
        trials = study.ask(3)
        study.tell([t.id for t in trials], [value_of(t) for t in trials])
        assert study.history()[-1]["samples"] == 12


class TestOpening:
    def test_goes_on_where_it_was(self, tmp_path):
        with new(tmp_path) as study:
            asked = study.ask(3)
            study.tell(asked[1].id, -1.0)
        with Study.open(tmp_path / "robot.db") as study:
            assert [t.id for t in study.pending()] == [1, 3]
            np.testing.assert_array_equal(study.pending()[0].theta, asked[0].theta)
            assert study.ask()[0].id == 4
        assert sorted(p.name for p in tmp_path.iterdir()) == ["robot.db"]  # one file once closed

    def test_other_settings_are_refused(self, tmp_path):
        new(tmp_path, mean=[1, 2, 3]).close()
        new(tmp_path, mean=[1, 2, 3]).close()
        with pytest.raises(ValueError, match=r"was made with batch=4, not 7: leave it out"):
            Study.open(tmp_path / "robot.db", batch=7)
        with pytest.raises(ValueError, match=r"was made with mean=\[1.0, 2.0, 3.0\]"):
            Study.open(tmp_path / "robot.db", mean=0.0)

    def test_a_new_one_is_there_whole_or_not(self, tmp_path, monkeypatch):
        """Stopped before its last step there is no study, and a new one can be started."""

        def stop(*_):
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(os, "link", stop)
            with pytest.raises(KeyboardInterrupt):
                new(tmp_path)
        assert not (tmp_path / "robot.db").exists()
        with new(tmp_path, mean=2.0) as study:
            assert content(tmp_path / "robot.db")[1][0][0] == 0  # the first proposal is in it
            assert (study.mean == 2.0).all()

    def test_a_new_one_needs_its_dimension(self, tmp_path):
        with pytest.raises(ValueError, match="give `dim` to start one"):
            Study.open(tmp_path / "robot.db")
        assert not list(tmp_path.iterdir())

    @pytest.mark.parametrize(
        ("content", "sentence"),
        [
            (b"", "is empty, so it holds no study"),
            (b"theta,return\n1,2\n" * 100, r"is not a study file \(not SQLite\)"),
        ],
    )
    def test_what_is_no_study_gets_one_sentence(self, tmp_path, content, sentence):
        (tmp_path / "robot.db").write_bytes(content)
        with pytest.raises(ValueError, match=sentence):
            Study.open(tmp_path / "robot.db", dim=3)
        assert (tmp_path / "robot.db").read_bytes() == content

    def test_foreign_and_newer_files(self, tmp_path):
        connection = sqlite3.connect(tmp_path / "other.db")
        connection.execute("CREATE TABLE t (x)")
        connection.close()
        with pytest.raises(ValueError, match="SQLite file of another program"):
            Study.open(tmp_path / "other.db", dim=3)
        new(tmp_path).close()
        connection = sqlite3.connect(tmp_path / "robot.db")
        connection.execute("PRAGMA user_version = 99")
        connection.close()
        with pytest.raises(ValueError, match=r"newer recoup \(format 99, this one reads 10\)"):
            Study.open(tmp_path / "robot.db")


@pytest.mark.slow
def test_thirty_kills_at_random_moments_change_nothing(tmp_path):
    """The undisturbed study, and one whose worker is killed thirty times on its way.

    Between two kills it may have written anything or nothing.
    """
    path, rng, left = tmp_path / "rough.db", random.Random(0), [0]
    for _ in range(30):
        process = work(path, 10**6)
        until_opened(path, process)
        time.sleep(rng.uniform(0.0, 0.05))
        left.append(killed_at(path, process, left[-1] + rng.randrange(10)))
    assert len(set(left)) > 10
    assert left[-1] > 100
    last, calm = work(path, left[-1] + 40), work(tmp_path / "calm.db", left[-1] + 40)
    for process in (last, calm):
        assert process.wait() == 0, process.said()
    assert content(path) == content(tmp_path / "calm.db")


def until_opened(path, process):
    """Until the worker has written something, or moved what another has left."""
    log, before = path.with_name(path.name + "-wal"), None
    if log.exists():
        before = log.stat().st_mtime_ns

    def written():
        return log.exists() and log.stat().st_mtime_ns != before

    until(lambda: process.poll() is not None or written())


def test_judging_while_others_tell(tmp_path):
    """A study held open sees one state of the file at a time, whatever is told meanwhile."""
    path = tmp_path / "robot.db"
    with Study.open(path, dim=2, batch=1, seed=3) as study:
        trials = study.ask(3)
        study.tell([t.id for t in trials], [float(-(t.theta**2).sum()) for t in trials])
        study.evaluate()  # compiled before the others begin
    enough = tmp_path / "enough"
    tells = (study_worker.ask_and_tell_until, str(path), str(enough))
    workers = [Forked(tmp_path / f"errors-{i}", *tells) for i in range(2)]
    with Study.open(path) as study:

        def judged():
            assert [worker.poll() for worker in workers] == [None, None], workers[0].said()
            assert np.isfinite(study.evaluate().ess)
            return study.counts()["ok"] >= 123

        until(judged)
        enough.touch()
        assert [worker.wait() for worker in workers] == [0, 0], [w.said() for w in workers]
        assert len(study.history()) == study.counts()["ok"]


class TestTrouble:
    def test_a_full_disk_changes_nothing_and_later_works(self, tmp_path):
        with new(tmp_path, dim=2000) as study:
            trials = study.ask(3)
            study.tell(trials[0].id, -1.0)
            (pages,) = study.store._file.rows("PRAGMA page_count")[0]
            study.store._file.rows(f"PRAGMA max_page_count = {pages}")
            with pytest.raises(ValueError, match=f"{FULL}; free some space"):
                study.ask(20)
            assert study.counts() == {"pending": 2, "ok": 1, "failed": 0}
            study.store._file.rows("PRAGMA max_page_count = 1000000")
            assert [trial.id for trial in study.ask(2)] == [4, 5]

    def test_a_move_without_room_leaves_the_result_told(self, tmp_path):
        """The result is on disk by then: that nothing was changed would be wrong."""
        with new(tmp_path, dim=40, batch=4) as study:
            trials = study.ask(4)
            study.tell([trial.id for trial in trials[:3]], [-1.0, -2.0, -3.0])
            (pages,) = study.store._file.rows("PRAGMA page_count")[0]
            study.store._file.rows(f"PRAGMA max_page_count = {pages}")
            with pytest.raises(ValueError, match=r"is full: what was told is kept, and the move"):
                study.tell(trials[3].id, -4.0)
            assert study.trials()[3].value == -4.0
            assert not study.history()
            study.store._file.rows("PRAGMA max_page_count = 1000000")
            study.ask()
            assert len(study.history()) == 1

    def test_a_busy_file_is_named(self, tmp_path, monkeypatch):
        monkeypatch.setattr("recoup.store.connecting.BUSY", 0.3)
        with new(tmp_path) as study:
            (trial,) = study.ask()
            other = sqlite3.connect(tmp_path / "robot.db", isolation_level=None)
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(ValueError, match="is being written by another process"):
                study.tell(trial.id, 1.0)
            assert study.counts()["pending"] == 1  # readers are not held up
            other.execute("ROLLBACK")
            other.close()
            study.tell(trial.id, 1.0)

    def test_a_busy_file_is_waited_for(self, tmp_path):
        """The other ends its work once the study has begun to wait for it."""
        how = {"isolation_level": None, "check_same_thread": False}
        with new(tmp_path) as study:
            (trial,) = study.ask()
            other = sqlite3.connect(tmp_path / "robot.db", **how)
            other.execute("BEGIN IMMEDIATE")
            waits = threading.Event()
            study.store._file.connection.set_trace_callback(lambda _: waits.set())
            ends = threading.Thread(target=lambda: waits.wait(LIMIT) and other.execute("ROLLBACK"))
            ends.start()
            study.tell(trial.id, 1.0)
            ends.join()
            other.close()
            assert study.counts() == {"pending": 0, "ok": 1, "failed": 0}

    def test_two_processes_tell_while_a_third_reads(self, tmp_path):
        """No result is lost or doubled, and the moves are those of the order of telling."""
        path = tmp_path / "robot.db"
        with Study.open(path, dim=3, batch=10, method="pgpe-ob", seed=1) as study:
            trials = study.ask(40)
        workers = [
            Forked(tmp_path / f"errors-{i}", study_worker.tell_every_other, str(path), i, 40)
            for i in (1, 2)
        ]
        seen = []

        def ended():
            seen.append(reader.counts()["ok"])
            return all(worker.poll() is not None for worker in workers)

        with Study.open(path) as reader:
            until(ended)
            assert [worker.wait() for worker in workers] == [0, 0], [w.said() for w in workers]
            assert reader.counts() == {"pending": 0, "ok": 40, "failed": 0}
            assert len(reader.history()) == 4
        assert seen == sorted(seen)
        rows, proposals, _ = content(path)
        assert sorted(row[5] for row in rows) == list(range(1, 41))
        assert [row[6] for row in rows] == [-float(trial.id) for trial in trials]
        assert [row[4] for row in proposals] == [0, 10, 20, 30, 40]

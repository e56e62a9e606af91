"""A run whose results were put right: nothing of before is shown as what it is now."""

import json
import os
import re
import time

import numpy as np
import own_tasks
import pytest
from program import recoup as program

import recoup
from recoup.pictures.picture_files import write_picture
from recoup.runs.in_jax import TaskTests
from recoup.runs.learning import _Loop
from recoup.runs.render import render_run
from recoup.store.store import Store
from recoup.study.care.verify import check
from recoup.study.study import Study
from recoup.tasks.measured import Measured

pytestmark = pytest.mark.usefixtures("sketches")

WORDS = "are of before the amendment of trial 7: `recoup resume"


@pytest.fixture
def out(tmp_path):
    """A finished run, told that trial 7 was worth a lot; it was not."""
    recoup.train("toy", "iw-pgpe-ob", iterations=4, batch=10, seed=3, out=tmp_path / "r")
    return tmp_path / "r"


def amended(out, trial=7, value=5e4, **how):
    with Study.open(out / "study.db") as study:
        return study.amend(trial, value, **how)


def walk(out, **more):
    how = {"horizon": 5, "episodes": 12, "batch": 4, "test_episodes": 3, **more}
    return recoup.train(own_tasks.Walk, **how, out=out)


def with_late_trials(out):
    """A finished run whose last two trials were drawn before its last move."""

    class Stop:
        def __init__(self):
            self.told = 0

        def on_result(self, result):
            self.told += 1
            return self.told == 7

    how = {"horizon": 5, "episodes": 10, "test_episodes": 3}
    recoup.train(own_tasks.Walk, **how, callbacks=Stop(), out=out)
    with Study.open(out / "study.db") as study:
        study.ask(10 - study.store.counters().last)
        study.tell(8, 1000.0)
    run = recoup.resume(out, task=own_tasks.Walk)
    assert (run.finished, run.episodes, run.plan.batch) == (True, 10, 4)
    return run


def final(run):
    return run.return_search, run.return_mean_policy


def told_by_hand(out):
    with Study.open(out / "study.db") as study:
        (trial,) = study.ask(1)
        study.tell(trial.id, -2.0)


class TestTheFinalTest:
    def test_of_before_is_not_that_of_the_run(self, out):
        before = recoup.load(out)
        found = amended(out)
        assert found.moves == [1, 2, 3, 4]
        run = recoup.load(out)
        assert np.abs(run.mean - before.mean).max() > 1e-3
        assert not run.finished
        assert run.return_mean_policy is None
        assert run.return_search != before.return_search
        assert WORDS in run.outdated
        assert "of before the amendment of trial 7" in repr(run)
        assert "of before the amendment of trial 7" in run._repr_html_()
        assert run.summary()["return_mean_policy"] is None
        assert WORDS in run.summary()["outdated"]

    def test_is_made_again_without_another_rollout(self, out):
        before = recoup.load(out)
        amended(out)
        run = recoup.resume(out)
        assert run.finished
        assert run.outdated is None
        assert "outdated" not in run.summary()
        assert run.episodes == before.episodes == 40
        assert run.return_mean_policy != before.return_mean_policy
        assert run.curve.episodes.tolist() == before.curve.episodes.tolist()
        assert run.curve.mean[0] == before.curve.mean[0]
        assert not set(run.curve.mean[1:]) & set(before.curve.mean[1:])
        assert recoup.load(out).summary() == run.summary()
        assert all(verdict.sound for verdict in check(out / "study.db"))
        assert run.wall_s >= before.wall_s

    def test_is_what_fresh_episodes_say(self, out):
        amended(out)
        run = recoup.resume(out)
        found = recoup.evaluate(out, episodes=400)
        for mine, fresh in zip((run.return_search, run.return_mean_policy), found, strict=False):
            assert abs(mine.mean - fresh.mean) < 4 * np.hypot(mine.stderr, fresh.stderr)

    def test_there_and_back_is_what_it_was(self, out):
        """The same distribution to rounding, and its own episodes: the same test."""
        before = recoup.load(out)
        with Study.open(out / "study.db") as study:
            value = study.store.results([7])[7].told.value
        amended(out)
        amended(out, value=value)
        run = recoup.resume(out)
        np.testing.assert_allclose(run.mean, before.mean, rtol=1e-9)
        np.testing.assert_allclose(run.return_search, before.return_search, rtol=1e-6)
        np.testing.assert_allclose(run.curve.mean, before.curve.mean, rtol=1e-6)

    def test_every_door_says_so(self, out):
        said = program("study", "amend", out / "study.db", 7, 5e4)
        assert WORDS in said.stdout
        done = program("evaluate", out, "--episodes", 4, "--json")
        assert WORDS in json.loads(done.stdout)["outdated"]
        done = program("evaluate", out, "--episodes", 4)
        assert WORDS in done.stderr
        shown = program("study", "show", out / "study.db").stdout
        assert WORDS in re.sub(r"\s+", " ", shown)
        shown = json.loads(program("study", "show", out / "study.db", "--json").stdout)
        assert any(WORDS in sentence for sentence in shown["advice"])
        page = program("report", out)
        assert page.returncode == 0, page.stderr
        text = (out / "report.html").read_text()
        assert "are of before the amendment of trial 7" in text
        assert "final test)" not in text
        done = program("resume", out, "--json", "--quiet")
        assert "outdated" not in json.loads(done.stdout)
        assert json.loads(done.stdout)["return_mean_policy"]["episodes"] == 100
        program("report", out)
        assert "of before" not in (out / "report.html").read_text()
        assert "of before" not in program("study", "show", out / "study.db").stdout

    def test_a_dry_run_says_what_would_be(self, out):
        before = recoup.load(out).summary()
        found = amended(out, dry_run=True)
        assert "The final test of the run would be of before it." in found.words
        assert recoup.load(out).summary() == before

    def test_a_result_that_no_move_was_made_of_leaves_it(self, tmp_path):
        """One that was told beyond the last whole batch."""
        run = walk(tmp_path / "r")
        told_by_hand(tmp_path / "r")
        amended(tmp_path / "r", trial=13, value=-3.0)
        assert recoup.load(tmp_path / "r").return_search == run.return_search
        assert recoup.load(tmp_path / "r").finished

    @pytest.mark.parametrize("drop", [False, True])
    def test_of_a_trial_that_failed_or_is_worth_nothing(self, out, drop):
        how = {"drop": "the sensor was loose"} if drop else {"failed": "it fell"}
        amended(out, value=None, **how)
        assert WORDS in recoup.load(out).outdated
        run = recoup.resume(out)
        assert run.finished
        assert run.episodes == 40  # it was spent all the same
        assert (run.failed, run.dropped) == (not drop, drop)
        assert ("dropped" in run.summary()) == drop
        lost = "0 trials failed, 1 dropped" if drop else "1 trial failed"
        assert f"40 of 40, {lost}" in run._repr_html_()
        assert len(run.history) == 5

    @pytest.mark.parametrize("mirrored", [False, True])
    def test_what_was_dropped_was_spent_at_every_move(self, tmp_path, mirrored):
        """Of a mirrored pair both are dropped, whichever is named."""
        how = {"iterations": 3, "batch": 4, "test_episodes": 2, "mirrored": mirrored}
        before = recoup.train("toy", "iw-pgpe-ob", **how, out=tmp_path / "r")
        for trial in (3, 8):
            amended(tmp_path / "r", trial, None, drop="the sensor was loose")
        run = recoup.load(tmp_path / "r")
        spent = [step.episodes for step in run.history]
        assert spent == [step.episodes for step in before.history]
        assert spent[-1] == run.episodes == before.episodes

    def test_moves_that_were_made_by_hand_since(self, out):
        with Study.open(out / "study.db") as study:
            trials = study.ask(10)
            study.tell([trial.id for trial in trials], [float(t.theta[0]) for t in trials])
        run = recoup.load(out)
        assert not run.finished
        assert "are of before move 5: `recoup resume" in run.outdated
        again = recoup.resume(out)
        assert again.finished
        assert again.episodes == 50
        assert again.curve.episodes.tolist() == [0, 10, 20, 30, 40, 50]

    def test_in_memory(self):
        run = recoup.train("toy", iterations=2, seed=1)
        assert "`recoup.resume` makes it again" in run.study.amend(1, 5e4).words
        again = recoup.resume(run)
        assert again.finished
        assert again.return_search != run.return_search
        np.testing.assert_array_equal(again.mean, again.study.mean)

    def test_an_extended_run_is_not_finished_and_says_nothing_of_it(self, out):
        amended(out)
        run = recoup.resume(out, iterations=5)
        assert run.finished
        assert run.history[-1].iteration == 5
        assert np.isfinite(run.curve.mean).all()
        assert len(run.curve.mean) == 6


class TestFilesBesideIt:
    def test_policy_and_curve_are_made_again(self, tmp_path):
        out = tmp_path / "r"
        before = walk(out)
        old = {name: (out / name).read_bytes() for name in ("policy.npz", "curve.png")}
        amended(out, trial=3, value=500.0)
        assert {name: (out / name).read_bytes() for name in old} == old
        named = "curve.png, policy.npz and policies/best.npz"
        assert named in recoup.load(out).outdated
        (out / "curve.png").unlink()
        run = recoup.resume(out, task=own_tasks.Walk)
        assert run.finished
        assert run.episodes == before.episodes
        np.testing.assert_array_equal(recoup.load_policy(out / "policy.npz").theta, run.mean)
        assert np.abs(run.mean - before.mean).max() > 1e-3
        assert (out / "curve.png").is_file()
        assert run.wall_s >= before.wall_s

    def test_what_a_kill_at_the_end_has_left_out_is_made_by_the_next(self, tmp_path, monkeypatch):
        """Stopped in the test, after it, and before the picture: it all comes to the same."""
        out = tmp_path / "r"

        def stopped(*given, **how):
            raise KeyboardInterrupt

        for home, name in (
            (_Loop, "finish"),
            (recoup.runs.fresh.EngineTests, "both"),
            (recoup.runs.run.Run, "plot"),
        ):
            with monkeypatch.context() as patch:
                patch.setattr(home, name, stopped)
                with pytest.raises(KeyboardInterrupt):
                    recoup.resume(out, task=own_tasks.Walk) if out.exists() else walk(out)
        assert recoup.load(out).finished
        assert not (out / "curve.png").exists()
        run = recoup.resume(out)
        assert (out / "curve.png").is_file()
        np.testing.assert_array_equal(recoup.load_policy(out / "policy.npz").theta, run.mean)

    def test_code_of_the_users_is_named_in_what_is_to_be_done(self, tmp_path):
        walk(tmp_path / "r")
        said = amended(tmp_path / "r", trial=3, value=500.0).words
        assert f"`recoup resume {tmp_path / 'r'} --task own_tasks:Walk` makes them" in said
        recoup.train("Pendulum-v1", iterations=1, batch=2, horizon=3, out=tmp_path / "p")
        assert f"`recoup resume {tmp_path / 'p'}` makes them" in amended(tmp_path / "p", 1).words

    def test_a_picture_that_does_not_say_what_it_shows_is_drawn_again(self, tmp_path):
        out = tmp_path / "r"
        write_picture(walk(out).plot(), out / "curve.png", 50)
        assert not recoup.load(out).is_drawn()
        assert recoup.resume(out).is_drawn()  # needs no task

    def test_a_picture_of_before_is_known_without_a_clock(self, out, monkeypatch):
        """One that was set back by years between the end of a run and the amendment."""
        before = (out / "curve.png").read_bytes()
        with monkeypatch.context() as back:
            back.setattr(time, "time", lambda: 1.5e9)
            amended(out)
            run = recoup.resume(out)
        assert run.finished
        assert run.is_drawn()
        assert (out / "curve.png").read_bytes() != before
        (out / "curve.png").write_bytes(before)
        assert not recoup.load(out).is_drawn()

    def test_a_picture_that_shows_it_is_left_as_it_is(self, out):
        os.utime(out / "curve.png", (1e9, 1e9))
        recoup.resume(out)
        assert (out / "curve.png").stat().st_mtime == 1e9

    def test_films_and_strips_of_before_are_marked(self, tmp_path):
        """By the policy that they show, whatever times their files have."""
        pytest.importorskip("imageio")
        out = tmp_path / "r"
        walk(out)
        render_run(out, task=own_tasks.Walk)
        film, strip = "a mean policy that is not the newest", "strip.png is of another policy than"

        def said():
            assert program("report", out).returncode == 0
            page = (out / "report.html").read_text()
            return film in page, strip in page

        for name in ("policy.mp4", "strip.png"):
            os.utime(out / name, (1e9, 1e9))
        assert said() == (False, False)
        amended(out, trial=3, value=500.0)
        recoup.resume(out, task=own_tasks.Walk)
        for name in ("policy.mp4", "strip.png"):  # as a copy has them
            os.utime(out / name)
        assert said() == (True, True)
        (out / "policy.mp4").unlink()
        assert said() == (False, True)
        render_run(out, task=own_tasks.Walk)
        assert said() == (False, False)


class TestPoliciesOfARunThatWasStopped:
    @pytest.fixture
    def stopped(self, tmp_path):
        class Stop:
            def on_result(self, result):
                return result.id == 14

        run = walk(tmp_path / "r", episodes=20, keep_every=1, callbacks=Stop())
        assert (run.finished, run.outdated) == (False, None)
        return tmp_path / "r"

    def test_are_named_by_every_door_until_they_are_made_again(self, stopped):
        would = "Policies kept beside the run would be of before it."
        assert would in amended(stopped, 5, -500.0, dry_run=True).words
        files = "are of before the amendment of trial 5: `recoup resume"
        said = program("study", "amend", stopped / "study.db", 5, -500).stdout
        assert files in said
        assert "policies/000003.npz" in said
        assert "policies/000001.npz" not in said  # made of trials 1 to 4
        run = recoup.load(stopped)
        assert (run.finished, run.was_finished) == (False, False)
        assert files in run.outdated
        assert "not finished, curve at" in repr(run)
        shown = program("study", "show", stopped / "study.db").stdout
        assert files in re.sub(r"\s+", " ", shown)
        assert program("report", stopped).returncode == 0
        page = (stopped / "report.html").read_text()
        assert files in page
        assert "· not finished" in page
        assert "its test is outdated" not in page

    def test_are_made_again_before_another_rollout(self, stopped):
        amended(stopped, 5, -500.0)

        class Stop:
            def on_result(self, result):
                return True

        run = recoup.resume(stopped, task=own_tasks.Walk, callbacks=Stop())
        assert (run.finished, run.outdated) == (False, None)
        assert [one.move for one in run.policies()] == [1, 2, 3]
        for move, path in run.policies():
            np.testing.assert_array_equal(recoup.load_policy(path).theta, run.means[move])
        best = recoup.load_policy(stopped / "policies" / "best.npz").theta
        assert best.tolist() in run.means.tolist()
        newest = recoup.load_policy(stopped / "policy.npz").theta
        np.testing.assert_array_equal(newest, run.mean)

    def test_are_of_now_where_no_move_was_made_of_what_was_amended(self, stopped):
        amended(stopped, 14, -3.0)
        assert recoup.load(stopped).outdated is None


class TestPointsOfTheCurve:
    def test_are_made_again_where_it_was_amended_before_its_end(self, tmp_path):
        out = tmp_path / "r"

        class Stop:
            def on_move(self, step):
                return step.iteration == 3

        how = {"iterations": 5, "batch": 10, "seed": 3, "out": out}
        stopped = recoup.train("toy", "iw-pgpe-ob", **how, callbacks=Stop())
        assert not stopped.finished
        assert stopped.outdated is None
        amended(out)
        assert recoup.load(out).outdated is None
        run = recoup.resume(out)
        assert run.finished
        assert run.curve.episodes.tolist() == [0, 10, 20, 30, 40, 50]
        assert np.isfinite(run.curve.mean).all()
        with run.study as study:
            for test in study.store.tests()[1:-1]:
                assert test.mean != stopped.curve.mean[min(test.move, 3)]

    def test_of_trials_are_left_out_where_no_trial_was_drawn(self, tmp_path):
        """The distributions of moves that were made again drew none; the last is tested."""
        out = tmp_path / "r"
        before = walk(out, episodes=20)
        assert amended(out, trial=9, value=-500.0).moves == [3, 4, 5]
        run = recoup.resume(out, task=own_tasks.Walk)
        measured = [step.iteration for step in run.history if step.curve_episodes]
        assert measured == [0, 1, 2, 5]
        assert run.curve.episodes.tolist() == [0, 4, 8, 20]
        assert run.curve.mean[:2].tolist() == before.curve.mean[:2].tolist()
        assert run.best.iteration in measured
        best = recoup.load_policy(out / "policies" / "best.npz")
        np.testing.assert_array_equal(best.theta, run.means[run.best.iteration])

    def test_of_trials_leave_out_a_pair_of_which_one_was_dropped(self, tmp_path):
        """The other of it has a return, which counts for nothing: in the curve as in `best`."""
        out = tmp_path / "r"
        walk(out, episodes=16, method="mis-pgpe-ob", mirrored=True)
        amended(out, trial=3, value=None, drop="the sensor was loose")
        run = recoup.load(out)
        with run.study as study:
            first = [t.value for t in study.trials() if t.id in (1, 2)]
        assert run.history[0].curve_episodes == 2
        assert run.curve.mean[0] == np.mean(first)

    def test_of_trials_change_without_a_move(self, tmp_path):
        """Those of an earlier distribution that came in last: of them no move was made."""
        out = tmp_path / "r"
        before = with_late_trials(out)
        best = before.best.iteration
        assert (before.history[-1].iteration, best) == (2, 1)
        old = (out / "policies" / "best.npz").read_bytes()
        would = "(curve.png and policies/best.npz) would be of before it."
        assert would in amended(out, trial=10, value=-3000.0, dry_run=True).words
        found = amended(out, trial=10, value=-3000.0)
        files = "(curve.png and policies/best.npz) are of before the amendment of trial 10"
        assert (found.moves, files in found.words) == ([], True)
        run = recoup.load(out)
        assert (run.finished, run.best.iteration == best) == (True, False)
        assert final(run) == final(before)
        assert f"{files}: `recoup resume {out} --task own_tasks:Walk` makes them" in run.outdated
        assert files in repr(run)
        assert files in re.sub(r"\s+", " ", program("study", "show", out / "study.db").stdout)
        assert program("report", out).returncode == 0
        assert files in (out / "report.html").read_text()
        again = recoup.resume(out)
        assert (again.finished, again.outdated, again.is_drawn()) == (True, None, True)
        assert recoup.load(out).outdated is None
        assert final(again) == final(before)
        theta = recoup.load_policy(out / "policies" / "best.npz").theta
        np.testing.assert_array_equal(theta, again.means[again.best.iteration])
        assert (out / "policies" / "best.npz").read_bytes() != old
        assert all(verdict.sound for verdict in check(out / "study.db"))

    def test_numbers_beside_a_return_leave_them(self, tmp_path):
        with_late_trials(tmp_path / "r")
        how = {"trial": 10, "value": None, "also": {"force": 3.0}}
        assert "would be of before" not in amended(tmp_path / "r", **how, dry_run=True).words
        amended(tmp_path / "r", **how)
        assert recoup.load(tmp_path / "r").outdated is None

    def test_an_amendment_beside_a_running_one(self, tmp_path):
        """Of a process of its own, while the run is made and while its end is tested."""
        out, said = tmp_path / "r", []

        class Amends:
            def on_move(self, step):
                if step.iteration == 3:
                    said.append(amended(out, trial=7))

        how = {"iterations": 5, "batch": 10, "seed": 3, "out": out}
        run = recoup.train("toy", "pgpe", **how, callbacks=Amends())
        assert said[0].moves == [1, 2, 3]
        assert run.finished
        assert run.curve.episodes.tolist() == [0, 10, 20, 30, 40, 50]

    def test_of_another_distribution_is_not_written(self, out, monkeypatch):
        """An amendment while the end is tested: the test is made once more, of what it is now."""
        amended(out)
        tests, times = TaskTests, []
        both = tests.both

        def slow(self, *given):
            found = both(self, *given)
            if not times:
                amended(out, trial=8, value=-5e4)
            times.append(found)
            return found

        monkeypatch.setattr(tests, "both", slow)
        run = recoup.resume(out)
        assert len(times) == 2
        assert run.finished
        assert run.return_search == times[1].return_search != times[0].return_search
        with run.study as study:
            (*_, last) = study.store.events("finished")
            assert last.content["proposal"] == study.store.newest().id
            assert Measured(**last.content["return_search"]) == run.return_search
            assert isinstance(study.store, Store)


def test_only_files_that_lie_there_are_named(tmp_path):
    """Of a function that has no policy, policy.npz was said to be made again."""
    recoup.train(own_tasks.quadratic, dim=2, episodes=12, batch=4, out=tmp_path / "r")
    amended(tmp_path / "r", 3, -500.0)
    said = recoup.load(tmp_path / "r").outdated
    assert "the files made with it (curve.png) are of before the amendment of trial 3" in said
    (tmp_path / "r" / "curve.png").unlink()
    said = recoup.load(tmp_path / "r").outdated
    assert said.startswith("The final test of this run is of before the amendment of trial 3: `rec")
    walk(tmp_path / "w", keep_every=0)
    amended(tmp_path / "w", 3, -500.0)
    said = recoup.load(tmp_path / "w", task=own_tasks.Walk).outdated
    assert "(curve.png and policy.npz)" in said

import io
import json
import sqlite3

import numpy as np
import pytest
from oracles import gauss_hermite
from program import recoup as program
from sentences import EXISTS, NO_RUN, NOT_STORED

import recoup
from recoup.checks import InputError
from recoup.runs.fresh import is_tested
from recoup.runs.learning import _Loop
from recoup.runs.plan import Plan
from recoup.runs.schedule import Schedule
from recoup.store.store import Store
from recoup.study.care.verify import check
from recoup.study.moves.settling import MoveMaker
from recoup.study.study import Study

pytestmark = pytest.mark.usefixtures("sketches")  # but the fixture `run` draws its curve


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "toy"
    return recoup.train("toy", method="iw-pgpe-ob", episodes=40, batch=10, seed=3, out=out)


def test_a_run_says_what_was_learned(run):
    assert run.mean.shape == run.std.shape == (1,)
    assert run.curve.episodes.tolist() == [0, 10, 20, 30, 40]
    assert np.isfinite(run.curve.mean).all()
    assert run.return_search.episodes == 100
    np.testing.assert_allclose(run.policy([2.0]), run.mean * 2.0)
    assert [step.samples for step in run.history[1:]] == [10, 20, 30, 40]


def test_a_run_is_a_function_of_its_seed(run):
    again = recoup.train("toy", method="iw-pgpe-ob", iterations=4, batch=10, seed=3)
    other = recoup.train("toy", method="iw-pgpe-ob", iterations=4, batch=10, seed=4)
    np.testing.assert_array_equal(run.mean, again.mean)
    assert run.return_search == again.return_search
    assert run.mean != other.mean


def test_the_run_directory_holds_settings_history_and_curve(run):
    config = json.loads((run.out / "config.json").read_text())
    assert config["task"] == "toy"
    assert config["settings"]["weighting"] == "own"
    assert config["settings"]["epsilon"] == 0.1
    assert "jax" in config["versions"]
    names = {path.name for path in run.out.iterdir()}
    assert names - {"tensorboard"} == {"config.json", "curve.png", "study.db"}
    assert (run.out / "curve.png").read_bytes().startswith(b"\x89PNG")


def test_a_run_that_is_loaded_is_the_same(run):
    again = recoup.load(run.out)
    assert again.finished
    assert again.summary() == run.summary()
    assert again.history == run.history
    np.testing.assert_array_equal(again.mean, run.mean)
    np.testing.assert_array_equal(again.policy([2.0]), run.policy([2.0]))
    assert recoup.resume(run.out).summary() == run.summary()


def test_a_run_is_a_study(run):
    with run.study as study:
        assert study.counts() == {"pending": 0, "ok": 40, "failed": 0}
        np.testing.assert_array_equal(study.mean, run.mean)
        assert [row["ess"] for row in study.history()] == [s.ess for s in run.history[1:]]
        assert np.isfinite(study.evaluate().mean)
    in_memory = recoup.train("toy", iterations=2)
    assert in_memory.study.counts()["ok"] == 8


def test_a_mirrored_run_is_a_study_of_pairs(tmp_path):
    run = recoup.train("toy", "mis-pgpe-ob", iterations=3, mirrored=True, out=tmp_path / "run")
    assert all(verdict.sound for verdict in check(tmp_path / "run" / "study.db"))
    with run.study as study:
        assert study.history()[0]["ess"] == pytest.approx(10)
        assert study.evaluate().samples == 30
        (row, *_) = study.replay("iw-pgpe-ob")
        np.testing.assert_allclose(row.mean, study.distributions()[1][0], rtol=1e-9)


def test_an_existing_directory_is_refused_and_left_alone(run):
    before = (run.out / "study.db").read_bytes()
    with pytest.raises(ValueError, match=f"{EXISTS}: `recoup resume"):
        recoup.train("toy", iterations=1, out=run.out)
    assert (run.out / "study.db").read_bytes() == before


def test_a_run_that_was_killed_before_it_began_can_be_started(tmp_path):
    (tmp_path / "config.json").write_text("{")
    assert recoup.train("toy", iterations=1, out=tmp_path).finished
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="is a file: name a directory"):
        recoup.train("toy", iterations=1, out=tmp_path / "file")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine")
    with pytest.raises(ValueError, match="holds other things"):
        recoup.train("toy", iterations=1, out=tmp_path / "other")


@pytest.mark.parametrize("place", [5, b"run", ["run"], 1.5], ids=repr)
def test_what_is_no_name_of_a_place_gets_one_sentence(run, place):
    words = "must be the name of a file, got"
    for use in (
        lambda: recoup.train("toy", iterations=1, out=place),
        lambda: recoup.load(place),
        lambda: run.plot(place),
    ):
        with pytest.raises(InputError, match=words):
            use()
    with pytest.raises(InputError, match="the run must be the name of a file, got None"):
        recoup.load(None)


class Stopped(Exception):
    pass


def stop_after(iteration):
    def stop(step):
        if step.iteration == iteration:
            raise Stopped

    return stop


def stopped_in(monkeypatch, home, name, after, go):
    """Calls `go`, which a kill ends in the call of `home.name` after so many whole ones."""
    whole, calls = getattr(home, name), []

    def stopped(*given):
        if len(calls) == after:
            raise Stopped
        calls.append(None)
        return whole(*given)

    with monkeypatch.context() as patch:
        patch.setattr(home, name, stopped)
        with pytest.raises(Stopped):
            go()


@pytest.mark.parametrize(
    ("task", "method", "settings"),
    [
        ("toy", "mis-pgpe-ob", {"mirrored": True}),
        ("toy", "tiw-pgpe-ob", {"update": "adam"}),
        ("mountain-car", "tiw-pgpe-ob", {}),
        ("mountain-car", "mis-pgpe-ob", {"family": "lowrank"}),
        ("mountain-car", "tiw-enac", {}),
        ("mountain-car", "mis-pgpe-ob", {"family": "full", "update": "adam"}),
        ("reach-2", "iw-pgpe-ob", {}),
        pytest.param("reach-2", "mis-pgpe-ob", {"family": "full"}, marks=pytest.mark.slow),
        pytest.param("reach-2", "r3", {}, marks=pytest.mark.slow),
    ],
)
def test_a_run_that_was_stopped_ends_as_if_it_had_not(
    task, method, settings, tmp_path, monkeypatch
):
    """To the last bit; stopped after an iteration, in the middle of one, and at every write."""
    how = {"iterations": 6, "seed": 2, "horizon": 12, **settings}
    calm = recoup.train(task, method, **how, out=tmp_path / "calm")
    out = tmp_path / "rough"
    with pytest.raises(Stopped):
        recoup.train(task, method, **how, out=out, progress=stop_after(3))
    stopped = recoup.load(out)
    assert not stopped.finished
    assert len(stopped.history) == 4
    batch = calm.plan.batch
    stopped_in(monkeypatch, Schedule, "_as_told", 1, lambda: recoup.resume(out))
    assert counts(out) == {"pending": batch, "ok": 3 * batch, "failed": 0}
    for home, name in ((Store, "add_test"), (MoveMaker, "_write"), (_Loop, "finish")):
        stopped_in(monkeypatch, home, name, 0, lambda: recoup.resume(out))
    rough = recoup.resume(out)
    np.testing.assert_array_equal(rough.mean, calm.mean)
    np.testing.assert_array_equal(rough.std, calm.std)
    assert rough.return_search == calm.return_search
    assert rough.return_mean_policy == calm.return_mean_policy
    assert content(out) == content(tmp_path / "calm")


def test_a_run_that_was_stopped_before_its_last_move_makes_it(tmp_path, monkeypatch):
    calm = recoup.train("toy", iterations=2, batch=10, out=tmp_path / "calm")
    rough = {"iterations": 2, "batch": 10, "out": tmp_path / "rough"}
    stopped_in(monkeypatch, MoveMaker, "_write", 1, lambda: recoup.train("toy", **rough))
    assert counts(tmp_path / "rough")["ok"] == 20
    assert len(recoup.load(tmp_path / "rough").history) == 2
    assert recoup.resume(tmp_path / "rough").return_search == calm.return_search
    assert content(tmp_path / "rough") == content(tmp_path / "calm")


def counts(out):
    with Study.open(out / "study.db") as study:
        return study.counts()


def content(out):
    connection = sqlite3.connect(out / "study.db")
    queries = (
        'SELECT id, kind, proposal, theta, seed, status, "return" FROM trials ORDER BY id',
        "SELECT * FROM proposals ORDER BY id",
        "SELECT id, proposal, counted, memory, info FROM moves ORDER BY id",
        "SELECT * FROM trajectories ORDER BY id",
        "SELECT * FROM own ORDER BY id",
        "SELECT * FROM mixture ORDER BY id",
        "SELECT id, mean, stderr, episodes FROM tests ORDER BY id",
        "SELECT * FROM counters",
    )
    found = [connection.execute(query).fetchall() for query in queries]
    connection.close()
    return found


def test_a_run_is_asked_and_told_by_hand_and_goes_on(tmp_path):
    """`recoup study` works on the file of a run; what it has left waiting, `resume` rolls out."""
    out = tmp_path / "run"
    how = {"batch": 10, "seed": 1, "failure": "censored", "progress": stop_after(2)}
    with pytest.raises(Stopped):
        recoup.train("toy", iterations=4, out=out, **how)
    trials = json.loads(recoup_study("ask", out, "-n", 4, "--format", "json"))
    assert [trial["id"] for trial in trials] == [21, 22, 23, 24]
    recoup_study("tell", out, 22, 1.5)
    recoup_study("tell", out, 24, "--failed", "fell over")
    shown = recoup_study("show", out)
    assert "2 pending, 21 ok, 1 failed" in shown
    run = recoup.resume(out)
    assert run.finished
    assert run.failed == 1
    assert [step.iteration for step in run.history] == [0, 1, 2, 3]  # 39 results: three batches
    assert run.history[-1].episodes == 31
    assert np.isfinite(run.curve.mean).all()
    with run.study as study:
        assert study.counts() == {"pending": 0, "ok": 39, "failed": 1}
        assert [row["samples"] for row in study.history()] == [10, 20, 30]
    assert content(out)[0][21][::6] == (22, 1.5)
    assert all(verdict.sound for verdict in check(out / "study.db"))


def test_a_run_goes_on_after_a_whole_batch_was_told_by_hand(tmp_path):
    out = tmp_path / "run"
    with pytest.raises(Stopped):
        recoup.train("toy", iterations=4, batch=10, seed=1, out=out, progress=stop_after(2))
    with recoup.load(out).study as study:
        study.tell([trial.id for trial in study.ask(10)], [0.1 * i for i in range(10)])
        assert len(study.history()) == 3
    run = recoup.resume(out)
    assert [step.iteration for step in run.history] == [0, 1, 2, 3, 4]
    assert [step.episodes for step in run.history] == [0, 10, 20, 30, 40]
    assert np.isfinite(run.curve.mean).all()


def test_a_run_and_its_evaluation_show_themselves(run, tmp_path):
    """In a line and, for notebooks, as a small table in which every text is escaped."""
    worth = f"return {run.return_search.mean:.2f} ± {run.return_search.stderr:.2f}"
    place = str(run.out)
    expected = f"Run({place!r}, toy by iw-pgpe-ob, seed 3, 40 episodes, {worth})"
    assert repr(run) == expected == repr(recoup.load(run.out))
    assert worth in run._repr_html_()
    assert f"{run.return_mean_policy.mean:.2f}" in run._repr_html_()
    found = recoup.evaluate(run, episodes=5)
    assert repr(found).startswith("Evaluated(search distribution ")
    assert f"{found.return_mean_policy.mean:.4g}" in found._repr_html_()
    out = tmp_path / "<b>"
    with pytest.raises(Stopped):
        recoup.train("toy", iterations=3, seed=1, out=out, progress=stop_after(1))
    stopped = recoup.load(out)
    assert "not finished, curve at" in repr(stopped)
    assert "&lt;b&gt;" in stopped._repr_html_()
    assert repr(recoup.train("toy", iterations=1)).startswith("Run(in memory, toy by")


class TestARunThatIsExtended:
    def test_ends_as_if_it_had_been_planned_so(self, tmp_path):
        """To the last bit: how much room results have depends on their number, not on the plan."""
        for method, more in (("tiw-pgpe-ob", {}), ("iw-pgpe-ob", {"update": "adam"})):
            out = tmp_path / method
            how = {"seed": 1, **more}
            recoup.train("toy", method, iterations=6, **how, out=out)
            run = recoup.resume(out, iterations=10)
            recoup.train("toy", method, iterations=10, **how, out=tmp_path / f"{method}-whole")
            assert run.finished
            assert run.plan.iterations == 10
            assert run.curve.episodes.tolist() == list(range(0, 101, 10))
            assert content(out) == content(tmp_path / f"{method}-whole")
            assert all(verdict.sound for verdict in check(out / "study.db"))
            assert json.loads((out / "config.json").read_text())["iterations"] == 10

    def test_goes_on_after_a_stop_to_what_was_said(self, tmp_path):
        out, calm = tmp_path / "rough", tmp_path / "calm"
        for place in (out, calm):
            recoup.train("toy", iterations=2, seed=1, out=place)
        recoup.resume(calm, iterations=6)
        with pytest.raises(Stopped):
            recoup.resume(out, iterations=6, progress=stop_after(4))
        stopped = recoup.load(out)
        assert not stopped.finished
        assert stopped.return_mean_policy is None
        assert stopped.plan.iterations == 6
        run = recoup.resume(out)
        assert run.finished
        assert content(out) == content(calm)

    def test_a_stopped_run_may_be_given_less_than_was_planned(self, tmp_path):
        with pytest.raises(Stopped):
            recoup.train("toy", iterations=9, out=tmp_path / "run", progress=stop_after(2))
        assert recoup.resume(tmp_path / "run", iterations=3).history[-1].iteration == 3

    def test_fewer_than_were_made_are_refused(self, tmp_path):
        run = recoup.train("toy", iterations=3, out=tmp_path / "run")
        before = content(tmp_path / "run")
        with pytest.raises(ValueError, match="spent 12 episodes, which are 3 iterations of 4"):
            recoup.resume(tmp_path / "run", iterations=2)
        with pytest.raises(ValueError, match="iterations must be a whole number"):
            recoup.resume(tmp_path / "run", iterations=0)
        assert content(tmp_path / "run") == before
        assert recoup.resume(tmp_path / "run", iterations=3).summary() == run.summary()

    def test_a_run_in_memory_too(self):
        run = recoup.train("toy", iterations=2, seed=1)
        with pytest.raises(ValueError, match="not cut to 1"):
            recoup.resume(run, iterations=1)
        longer = recoup.resume(run, iterations=4)
        assert longer.history[-1].iteration == 4
        assert longer.out is None

    def test_a_study_of_ones_own_has_no_iterations(self, tmp_path):
        (tmp_path / "other").mkdir()
        Study.open(tmp_path / "other" / "study.db", dim=1).close()
        with pytest.raises(ValueError, match=NO_RUN):
            recoup.resume(tmp_path / "other", iterations=4)


def test_a_point_of_the_curve_and_the_final_test_have_two_names(run):
    """They are of different episodes, and differ."""
    last = run.history[-1]
    assert not hasattr(last, "return_search")
    assert last.return_curve == run.curve.mean[-1]
    assert run.return_search.mean != last.return_curve


def recoup_study(command, out, *words):
    """`recoup study` on the study of a run."""
    done = program("study", command, out / "study.db", *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_update_given_in_python_is_needed_again(tmp_path):
    import optax

    how = {"iterations": 4, "update": optax.adam(0.1)}
    calm = recoup.train("toy", "iw-pgpe-ob", **how)
    with pytest.raises(Stopped):
        recoup.train("toy", "iw-pgpe-ob", **how, out=tmp_path / "run", progress=stop_after(2))
    with pytest.raises(ValueError, match=f"{NOT_STORED}: give it again"):
        recoup.resume(tmp_path / "run")
    run = recoup.resume(tmp_path / "run", update=optax.adam(0.1))
    np.testing.assert_array_equal(run.mean, calm.mean)
    with run.study as study:
        np.testing.assert_array_equal(study.replay()[-1].mean, run.mean)
    with recoup.load(tmp_path / "run").study as study:
        with pytest.raises(ValueError, match=f"{NOT_STORED}: give it again"):
            study.fork(tmp_path / "new.db")
        with pytest.raises(ValueError, match=f"{NOT_STORED}: give it again"):
            study.replay()
        study.fork(tmp_path / "new.db", update="natural").close()
        assert len(study.replay("pgpe")) == 4


def test_an_evaluation_agrees_with_the_runs_own_tests(run):
    found = recoup.evaluate(run, episodes=2000, seed=4)
    for name in ("return_search", "return_mean_policy"):
        mine, its = getattr(found, name), getattr(run, name)
        assert mine.episodes == 2000
        assert abs(mine.mean - its.mean) < 4 * np.hypot(mine.stderr, its.stderr)
        assert mine.mean != its.mean


def test_learning_the_toy_improves_the_return_by_four_standard_errors():
    run = recoup.train("toy", method="mis-pgpe-ob", iterations=20, seed=1, mean=-1.6)
    first, last = run.history[0], run.return_search
    error = np.hypot(first.return_curve_stderr, last.stderr)
    assert last.mean - first.return_curve > 4 * error


def test_measured_returns_are_the_expected_ones_by_quadrature():
    """One step of the toy from s ~ N(0, 1): J(theta) = 1 + 1 / sqrt(2 + theta^2)."""

    def at_theta(theta):
        return 1 + 1 / np.sqrt(2 + theta**2)

    run = recoup.train("toy", "pgpe-ob", iterations=1, horizon=1, mean=-1.0, std=0.5, seed=5)
    nodes, mass = gauss_hermite(run.mean[0], run.std[0])
    policy, search = run.return_mean_policy, run.return_search
    assert abs(policy.mean - at_theta(run.mean[0])) < 4 * policy.stderr
    assert abs(search.mean - mass @ at_theta(nodes)) < 4 * search.stderr
    assert policy.stderr < 0.05


def test_progress_gets_every_step():
    seen = []
    recoup.train("toy", iterations=3, progress=seen.append)
    assert [step.iteration for step in seen] == [0, 1, 2, 3]
    assert seen[0].ess is None
    assert seen[3].ess > 0


class TestPointsOfTheCurve:
    """Not every iteration is tested: the first ten, then ever fewer, and the last."""

    def test_are_those_of_the_rule(self):
        run = recoup.train("toy", "pgpe-ob", iterations=23, seed=1)
        tested = [step.iteration for step in run.history if step.curve_episodes]
        assert tested == [*range(11), 12, 14, 16, 18, 20, 23]
        assert run.curve.episodes.tolist() == [10 * i for i in tested]
        assert np.isfinite(run.curve.mean).all()
        assert [step.iteration for step in run.history] == list(range(24))
        whole = recoup.train("toy", "pgpe-ob", iterations=23, seed=1, test_all=True)
        assert whole.curve.episodes.tolist() == list(range(0, 231, 10))
        np.testing.assert_array_equal(whole.curve.mean[tested], run.curve.mean)
        np.testing.assert_array_equal(whole.means, run.means)
        assert whole.return_search == run.return_search

    @pytest.mark.parametrize("last", [11, 12, 13])
    def test_are_the_same_after_a_stop(self, last, tmp_path):
        """Stopped after a move that is tested, and after one that is not."""
        how = {"iterations": 15, "seed": 2}
        recoup.train("toy", "pgpe-ob", **how, out=tmp_path / "calm")
        with pytest.raises(Stopped):
            recoup.train("toy", "pgpe-ob", **how, out=tmp_path / "rough", progress=stop_after(last))
        stopped = recoup.load(tmp_path / "rough")
        assert stopped.history[-1].iteration == last
        assert np.isfinite([*stopped.return_search, stopped.wall_s]).all()
        assert "not finished, curve at" in repr(stopped)
        heard = Heard()
        recoup.resume(tmp_path / "rough", callbacks=heard)
        assert heard.moves == list(range(last + 1, 16))
        assert content(tmp_path / "rough") == content(tmp_path / "calm")

    def test_stay_where_they_are_when_a_run_is_extended(self, tmp_path):
        short = recoup.train("toy", "pgpe-ob", iterations=13, seed=2, out=tmp_path / "run")
        run = recoup.resume(tmp_path / "run", iterations=17)
        points = dict(zip(run.curve.episodes, run.curve.mean, strict=True))
        assert list(points) == [*range(0, 101, 10), 120, 130, 140, 160, 170]
        assert [points[at] for at in short.curve.episodes] == short.curve.mean.tolist()

    def test_the_last_move_has_one_where_fewer_were_made_than_planned(self, tmp_path):
        out = tmp_path / "run"
        with pytest.raises(Stopped):
            recoup.train("toy", "pgpe-ob", iterations=12, out=out, progress=stop_after(10))
        with recoup.load(out).study as study:
            study.tell(study.ask(1)[0].id, failed="fell over")
        run = recoup.resume(out)
        assert run.history[-1].iteration == 11
        assert run.curve.mean[-1] != run.return_search.mean
        assert run.history[-1].return_curve == run.curve.mean[-1]

    def test_older_files_go_on_with_all_of_them(self, run):
        told = {key: value for key, value in run.plan.plain().items() if key != "test_all"}
        older = Plan(**told, settings=run.plan.settings)
        assert all(is_tested(older, i) for i in range(40))
        assert not all(is_tested(run.plan, i) for i in range(40))

    def test_the_display_keeps_the_last_one(self, monkeypatch):
        from rich.console import Console

        from recoup.runs.progress import live

        run = recoup.train("toy", "pgpe-ob", iterations=11, seed=1)
        steps = recoup.train("toy", "pgpe-ob", iterations=12, seed=1).history
        monkeypatch.setenv("TERM", "xterm")  # a dumb one shows no progress
        console = Console(record=True, width=120, force_terminal=True, file=io.StringIO())
        with live(run.plan, console) as display:
            display.step(steps[10])
            display.step(steps[11])
        assert not steps[11].curve_episodes
        assert f"curve {steps[10].return_curve:8.2f}" in console.export_text().splitlines()[-1]

    def test_a_task_that_is_not_tested_has_no_more_of_them(self):
        with pytest.raises(ValueError, match="is made of its trials: test_all is for"):
            recoup.train(lambda theta, seed: 0.0, dim=2, iterations=1, test_all=True)
        with pytest.raises(ValueError, match="test_all must be"):
            recoup.train("toy", iterations=1, test_all="yes")


class Heard:
    """A callback that notes the moves it hears of."""

    def __init__(self):
        self.moves = []

    def on_move(self, step):
        self.moves.append(step.iteration)


def test_truncated_weights_whose_tail_is_flat_are_no_failure():
    run = recoup.train("toy", "tiw-pgpe-ob", iterations=8, seed=0, truncate=0.5)
    assert run.history[-1].max_weight == pytest.approx(0.5)
    assert run.history[-1].pareto_k == -np.inf


def test_settings_replace_those_of_the_method():
    run = recoup.train("toy", "pgpe", iterations=2, mirrored=True, update="natural", kl=0.1)
    assert run.history[-1].kl == pytest.approx(0.1, rel=1e-6)
    assert run.history[-1].ess == pytest.approx(10)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"task": "toi"}, "Did you mean 'toy'"),
        ({"method": "iwpgpe"}, "Did you mean 'iw-pgpe'"),
        ({"episodes": 10, "iterations": 1}, "give episodes or iterations, not both"),
        (
            {"method": "pgpe", "episodes": 105},
            "multiple of the batch of 10, got 105: use 100 or 110",
        ),
        ({"method": "pgpe", "episodes": 3}, "multiple of the batch of 10, got 3: use 10"),
        ({"iterations": 0}, "iterations must be a whole number of at least 1, got 0"),
        ({"iterations": -4}, "iterations must be a whole number of at least 1, got -4"),
        ({"batch": 0}, "batch must be a whole number"),
        ({"seed": -1}, "seed must be a whole number"),
        ({"seed": "0"}, "seed must be a whole number"),
        ({"std": 0}, "std must be positive standard deviations, got 0"),
        ({"mean": [1.0, 2.0]}, r"mean must be a number or have shape \[D\] = \[1\], got \[2\]"),
        ({"mean": float("nan")}, "mean must be finite"),
        ({"horizon": -1}, "horizon must be a whole number"),
        ({"discount": 2}, r"discount must be in \[0, 1\], got 2"),
        ({"window": "five"}, "window must be a whole number"),
        ({"method": "pgpe", "baselin": "mean"}, "Did you mean 'baseline'"),
        ({"baseline": "mean"}, "has it: method='mis-pgpe-ob', say"),
        (
            {"method": "pgpe", "batch": 5, "mirrored": True},
            "batch must be even for mirrored sampling, got 5",
        ),
        ({"mean": "a"}, "mean must be an array of real numbers, got 'a'"),
    ],
)
def test_bad_input_gets_one_sentence_and_writes_nothing(change, sentence, tmp_path):
    out = tmp_path / "run"
    with pytest.raises(ValueError, match=sentence) as caught:
        recoup.train(**{"task": "toy", "out": out, **change})
    assert "\n" not in str(caught.value)
    assert not out.exists()

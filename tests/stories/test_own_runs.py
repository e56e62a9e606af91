"""Runs on tasks of the user's: environments, functions, policies, faults, resumption."""

import json
import os
import signal
import subprocess
import sys
import warnings
from importlib.metadata import EntryPoint
from pathlib import Path

import gymnasium
import jax
import numpy as np
import own_tasks
import pytest
from gymnasium import spaces
from program import recoup as program
from sentences import ANOTHER_POLICY, AT_WORK, GIVE_POLICY
from waiting import Hands, until

import recoup
from recoup.checks import InputError
from recoup.runs import problem
from recoup.tasks.engines import processes
from recoup.tasks.engines.engine import Broken
from recoup.tasks.own.found import REGISTERED, registered

pytestmark = pytest.mark.usefixtures("sketches")

HELPERS = str(Path(own_tasks.__file__).parent)
QUICK = {"horizon": 10, "test_episodes": 3}
SHORT = {**QUICK, "episodes": 8, "batch": 4}


def content(run):
    """What was asked and told, and where the distribution went."""
    trials = [(t.id, t.seed, t.status, t.value, *t.theta) for t in run.study.trials()]
    return trials, run.means.tolist(), run.stds.tolist()


@pytest.mark.parametrize(
    ("task", "dim"),
    [("Pendulum-v1", 4), ("CartPole-v1", 5), ("MountainCarContinuous-v0", 3)],
)
def test_a_gymnasium_id_is_enough(task, dim, tmp_path):
    run = recoup.train(task, episodes=24, **QUICK, out=tmp_path / "run")
    assert run.finished
    assert (run.episodes, run.failed, run.mean.size) == (24, 0, dim)
    env = gymnasium.make(task)
    assert env.action_space.contains(run.policy(env.reset(seed=0)[0]))
    again = recoup.train(task, episodes=24, **QUICK)
    assert content(run) == content(again)  # to the last bit
    assert recoup.train(task, episodes=24, seed=1, **QUICK).mean.tolist() != run.mean.tolist()
    found = recoup.evaluate(tmp_path / "run", episodes=4)
    assert found.return_search.episodes == 4
    assert np.isfinite(found.return_mean_policy.mean)


def test_a_mujoco_environment_learns_in_processes():
    pytest.importorskip("mujoco")
    how = {"episodes": 20, "horizon": 20, "test_episodes": 2}
    run = recoup.train("Swimmer-v5", engine="process", workers=2, **how)
    assert (run.episodes, run.failed, run.mean.size) == (20, 0, 18)


def test_learning_on_cartpole_is_seen():
    run = recoup.train("CartPole-v1", episodes=240, seed=0, horizon=200)
    assert run.return_mean_policy.mean > 5 * run.history[0].return_curve


def test_observations_of_a_dictionary_and_several_choices():
    run = recoup.train(own_tasks.Odd, episodes=60, batch=10, **QUICK)
    assert run.mean.size == (5 + 1) * 5
    assert run.failed == 0
    assert run.return_mean_policy.mean > 10  # of at most 12


@pytest.mark.parametrize(
    "actions", [spaces.Discrete(3), spaces.MultiBinary(2), spaces.Box(-1, 1, (2, 2))]
)
def test_every_kind_of_action(actions):
    run = recoup.train(lambda: own_tasks.Odd(actions), episodes=8, **QUICK)
    assert run.failed == 0


def test_a_function_of_theta(tmp_path):
    run = recoup.train(own_tasks.quadratic, dim=2, episodes=300, batch=10, out=tmp_path / "r")
    np.testing.assert_allclose(run.mean, [1, -2], atol=0.3)
    assert run.plan.task == "own_tasks:quadratic"
    with pytest.raises(InputError, match="has no policy"):
        run.policy(np.zeros(2))
    loaded = recoup.load(tmp_path / "r")
    assert content(loaded) == content(run)
    with pytest.raises(InputError, match="name it again to run it, with --task own_tasks:quad"):
        recoup.evaluate(tmp_path / "r")
    assert recoup.evaluate(tmp_path / "r", task=own_tasks.quadratic).return_search.episodes == 20


def test_a_function_of_named_parameters():
    ranges = {"stiffness": (10, 200, "log"), "damping": (0, 1)}
    run = recoup.train(own_tasks.robot, params=ranges, episodes=200, batch=10)
    best = run.mean_policy
    assert set(best) == set(ranges)
    assert abs(np.log(best["stiffness"]) - 4) < 0.5
    assert run.summary()["params"] == dict(best)
    by_dict = recoup.train(lambda p: own_tasks.robot(**p), params=ranges, episodes=20, batch=10)
    by_name = recoup.train(own_tasks.robot, params=ranges, episodes=20, batch=10)
    assert content(by_dict) == content(by_name)


def test_tests_are_given_the_words_of_choices_as_trials_are(tmp_path):
    ranges = {"gain": (1, 9), "gripper": ["soft", "hard"], "fingers": (2, 5, "int")}
    run = recoup.train(own_tasks.grips, params=ranges, episodes=40, out=tmp_path / "r")
    best = dict(run.mean_policy)
    assert run.tests_failed == 0
    assert run.return_mean_policy.mean == pytest.approx(own_tasks.grips(**best))
    again = recoup.evaluate(tmp_path / "r", task=own_tasks.grips)
    assert again.failed == 0
    assert again.return_mean_policy.mean == pytest.approx(own_tasks.grips(**best))


def test_the_program_ends_a_run_of_choices_with_their_words(tmp_path):
    params = ["--param", "gain=1:9", "--param", "gripper=soft|hard", "--param", "fingers=2:5:int"]
    words = ["train", "own_tasks:grips", *params, "--episodes", "40", "--out", "r"]
    done = program(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "gripper=hard, fingers=3" in done.stdout


def test_the_parameters_that_evaluate_gives_are_of_the_iteration_it_was_asked_for(tmp_path):
    ranges = {"gain": (1, 9), "gripper": ["soft", "hard"], "fingers": (2, 5, "int")}
    recoup.train(own_tasks.grips, params=ranges, episodes=40, out=tmp_path / "r")
    words = ["--task", "own_tasks:grips", "--episodes", "2", "--json", "--which"]
    for which in ("0", "3", "best", "last"):
        done = program("evaluate", str(tmp_path / "r"), *words, which, cwd=tmp_path)
        said = json.loads(done.stdout)
        earned = own_tasks.grips(**said["params"])
        assert said["return_mean_policy"]["mean"] == pytest.approx(earned), which


def test_evaluate_counts_its_own_failures_not_those_of_the_final_test(tmp_path, monkeypatch):
    monkeypatch.setenv(own_tasks.LOOSE, "yes")
    run = recoup.train(own_tasks.sensed, dim=2, episodes=8, batch=4, out=tmp_path / "r")
    assert run.tests_failed
    monkeypatch.delenv(own_tasks.LOOSE)
    words = ["--task", "own_tasks:sensed", "--json"]
    said = json.loads(program("evaluate", str(tmp_path / "r"), *words, cwd=tmp_path).stdout)
    assert said["return_search"]["episodes"] == 20
    assert "tests_failed" not in said


def test_a_function_may_return_several_episodes():
    run = recoup.train(lambda theta: [1.0, 3.0], dim=1, episodes=8, batch=4)
    trial = run.study.trials()[0]
    assert (trial.value, trial.episodes) == (2.0, 2)


@pytest.mark.slow
def test_an_environment_in_jax_is_rolled_out_vectorised(tmp_path):
    from test_jax_envs import Drift

    env = Drift()
    how = {"policy": "mlp", "policy_options": {"hidden": 3, "actions": "squash"}}
    run = recoup.train(env, episodes=60, batch=10, **how, out=tmp_path / "r")
    assert run.finished
    assert run.mean.size == 3 * 3 + 4 * 2
    assert run.plan.task == "test_jax_envs:Drift"
    assert run.plan.tested  # cheap: after every move
    seen, _ = env.reset_env(jax.random.key(0), env.default_params)
    for path in (tmp_path / "r" / "policy.npz", tmp_path / "r" / "policies" / "best.npz"):
        assert recoup.load_policy(path)(np.asarray(seen)).shape == (2,)
    np.testing.assert_array_equal(recoup.load(tmp_path / "r").learned_policy().theta, run.mean)
    again = recoup.evaluate(tmp_path / "r", task=env)
    assert again == recoup.evaluate(run)
    assert recoup.resume(tmp_path / "r", task=env, iterations=8).episodes == 80
    with pytest.raises(InputError, match="test_jax_envs:Drift"):
        recoup.evaluate(tmp_path / "r")
    with pytest.raises(InputError, match="makes an environment in JAX: give the environment"):
        recoup.train(lambda: Drift(), episodes=10)
    pair = recoup.train((env, env.default_params), episodes=60, batch=10, **how)
    np.testing.assert_array_equal(pair.mean, run.mean)


def test_a_policy_of_ones_own_with_a_memory(tmp_path):
    run = recoup.train(
        own_tasks.Walk, policy=own_tasks.Recurrent(), episodes=60, **QUICK, out=tmp_path / "r"
    )
    assert run.mean.size == 3
    assert run.policy(np.zeros(2)).shape == (1,)
    with pytest.raises(InputError, match=GIVE_POLICY):
        recoup.evaluate(tmp_path / "r", task=own_tasks.Walk)
    found = recoup.evaluate(tmp_path / "r", task=own_tasks.Walk, policy=own_tasks.Recurrent())
    assert np.isfinite(found.return_search.mean)
    policy = recoup.load_policy(tmp_path / "r" / "policy.npz", own_tasks.Recurrent())
    np.testing.assert_array_equal(policy(np.ones(2)), run.learned_policy()(np.ones(2)))


def test_the_learned_policy_is_a_plain_file(tmp_path):
    run = recoup.train("Pendulum-v1", policy="mlp", episodes=12, **QUICK, out=tmp_path / "r")
    seen = np.array([0.2, -0.5, 3.0])
    for path in (tmp_path / "r" / "policy.npz", run.save_policy(tmp_path / "p.npz")):
        np.testing.assert_array_equal(recoup.load_policy(path)(seen), run.policy(seen))


class TestNormalisation:
    HOW = {"normalize": True, "warm_up": 4, **QUICK}  # noqa: RUF012

    def test_statistics_are_taken_once_and_stored(self, tmp_path):
        run = recoup.train(own_tasks.Big, episodes=40, **self.HOW, out=tmp_path / "r")
        scale = run.task.policy.scale
        assert 300 < scale.mean[0] < 700
        assert scale.seen >= 4
        again = recoup.load(tmp_path / "r", task=own_tasks.Big)
        assert again.task.policy.scale == scale
        assert again.policy(np.array([510.0, 3])) == run.policy(np.array([510.0, 3]))
        assert run.summary()["warm_up"] == 4

    def test_a_resumed_run_has_the_same(self, tmp_path):
        calm = recoup.train(own_tasks.Big, episodes=40, **self.HOW)
        stop = {"callbacks": Stop(12), "out": tmp_path / "r"}
        stopped = recoup.train(own_tasks.Big, episodes=40, **self.HOW, **stop)
        assert not stopped.finished
        assert content(recoup.resume(tmp_path / "r", task=own_tasks.Big)) == content(calm)

    def test_samples_of_another_version_are_refused(self, tmp_path):
        """The same theta is another policy there: returns differ by far more than their noise."""
        runs = [
            recoup.train(own_tasks.Big, episodes=40, **{**self.HOW, "warm_up": n}) for n in (4, 7)
        ]
        theta = runs[0].study.trials()[0].theta
        from recoup.tasks.engines.engine import Job

        values = [
            np.mean([run.task.build()(Job(1, 3 * theta, seed)).values for seed in range(60)])
            for run in runs
        ]
        assert abs(values[0] - values[1]) > 0.05  # what mixing them in silently would cost
        assert runs[0].plan.version != runs[1].plan.version
        with runs[1].study as other:
            other.export(tmp_path / "t.csv")
        from recoup.study.exchange.read import read_samples

        with pytest.raises(InputError, match=ANOTHER_POLICY):
            read_samples(runs[0].study.opened, tmp_path / "t.csv")

    def test_of_the_same_version_they_are_taken(self, tmp_path):
        one, other = (
            recoup.train(own_tasks.Big, episodes=20, batch=5, std=s, **self.HOW) for s in (1.0, 0.5)
        )
        assert one.plan.version == other.plan.version
        other.study.export(tmp_path / "t.csv")
        from recoup.study.exchange.read import read_samples

        assert len(read_samples(one.study.opened, tmp_path / "t.csv").returns) == 20

    @pytest.mark.parametrize(
        ("how", "message"),
        [
            ({"normalize": True}, "give warm_up=5"),
            ({"warm_up": 3}, "a warm-up is for normalize=True"),
        ],
    )
    def test_half_of_it_is_refused(self, how, message):
        with pytest.raises(InputError, match=message):
            recoup.train("Pendulum-v1", **how)


class Stop(recoup.Callback):
    """Stops after so many results, and notes all that it hears."""

    def __init__(self, after=10**9):
        self.after, self.results, self.steps, self.files = after, [], [], []

    def on_result(self, result):
        self.results.append(result)
        return len(self.results) >= self.after

    def on_move(self, step):
        self.steps.append(step)

    def on_checkpoint(self, step, policy):
        self.files.append(policy)


class TestCallbacks:
    def test_they_hear_of_results_moves_and_checkpoints(self, tmp_path):
        heard = Stop()
        run = recoup.train(
            own_tasks.Walk, episodes=60, batch=5, **QUICK, callbacks=heard, out=tmp_path / "r"
        )
        assert [one.id for one in heard.results] == list(range(1, 61))
        assert heard.results[0].value == run.study.trials()[0].value
        assert heard.results[0].steps >= 1
        assert [step.iteration for step in heard.steps] == list(range(1, 13))
        assert heard.files == [tmp_path / "r" / "policy.npz"] * 2  # the tenth move, and the end

    def test_they_stop_a_run_which_goes_on_later(self, tmp_path):
        calm = recoup.train(own_tasks.Walk, episodes=40, **QUICK)
        stopped = recoup.train(
            own_tasks.Walk, episodes=40, **QUICK, callbacks=[Stop(13)], out=tmp_path / "r"
        )
        assert (stopped.finished, stopped.episodes) == (False, 13)
        done = recoup.resume(stopped)
        assert done.finished
        assert content(done) == content(calm)

    def test_ours_tell_them_too(self):
        heard = Stop()
        recoup.train("toy", iterations=3, batch=4, callbacks=[heard])
        assert len(heard.results) == 12
        assert [step.iteration for step in heard.steps] == [1, 2, 3]

    def test_one_that_hears_nothing_is_refused(self):
        with pytest.raises(InputError, match="a callback has one of on_result"):
            recoup.train("toy", callbacks=[object()])

    def test_tensorboard_has_the_returns(self, tmp_path):
        pytest.importorskip("tensorboardX")
        recoup.train(own_tasks.Walk, episodes=20, batch=5, **QUICK, out=tmp_path / "r")
        (events,) = (tmp_path / "r" / "tensorboard").iterdir()
        text = events.read_bytes()
        assert text.count(b"trial/return") == 20
        assert text.count(b"move/ess") == 4


class TestFaults:
    @pytest.fixture(autouse=True)
    def _home(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)

    def test_one_that_fails_now_and_then_loses_nothing(self):
        run = recoup.train(own_tasks.flaky, dim=2, episodes=20, batch=5, test_episodes=2)
        assert (run.episodes, run.failed) == (20, 0)

    def test_returns_that_are_no_numbers_are_failures(self):
        run = recoup.train(own_tasks.not_a_number, dim=2, episodes=40, batch=5)
        failed = [trial for trial in run.study.trials() if trial.status == "failed"]
        assert failed
        assert {trial.note for trial in failed} == {"its return was not finite"}
        assert all(trial.seed % 2 for trial in failed)

    def test_a_broken_one_ends_after_a_few_and_can_be_resumed(self):
        with pytest.raises(Broken, match="the motor does not answer"):
            recoup.train(own_tasks.broken, dim=2, episodes=5000, out="r")
        stopped = recoup.load("r")
        assert (stopped.episodes, stopped.finished) == (0, False)
        with pytest.warns(UserWarning, match="task was own_tasks:broken"):
            done = recoup.resume("r", task=own_tasks.quadratic, iterations=2)
        assert done.finished
        assert done.failed == 0

    @pytest.mark.parametrize(
        ("task", "workers", "reason"),
        [(own_tasks.hangs, 1, "longer than 1 s"), (own_tasks.dies, 2, "killed")],
    )
    @pytest.mark.slow
    def test_hanging_and_killed_workers_cost_one_attempt(self, task, workers, reason, monkeypatch):
        """The engine's clock goes on for ten seconds when a trial hangs: no other is ever late."""
        hands, end = Hands(monkeypatch, processes), 0.0

        def read():
            nonlocal end
            end = end if Path("hung").exists() else hands.now + 10.0
            hands.now = min(hands.now + 0.1, end) if Path("hung").exists() else hands.now
            return hands.now

        hands.monotonic = read
        how = {"engine": "process", "workers": workers, "timeout": 1.0, "test_episodes": 2}
        run = recoup.train(task, dim=2, episodes=12, batch=4, **how)
        assert (run.episodes, run.failed) == (12, 0)
        for path in Path().iterdir():
            path.unlink()
        run = recoup.train(task, dim=2, episodes=12, batch=4, **how, retries=0)
        (failed,) = (trial for trial in run.study.trials() if trial.status == "failed")
        assert reason in failed.note

    def test_processes_roll_out_the_same_episodes(self):
        """Trial by trial; which are in a move depends on who is first."""
        runs = [
            recoup.train(own_tasks.quadratic, dim=2, episodes=6, batch=6, **how)
            for how in ({}, {"engine": "process", "workers": 2})
        ]
        serial, other = ({t.id: (t.value, *t.theta) for t in run.study.trials()} for run in runs)
        assert serial == other

    def test_a_barrier_makes_runs_of_processes_the_same(self):
        how = {"engine": "process", "workers": 2, "sync": True, "test_episodes": 2}
        run = recoup.train(own_tasks.quadratic, dim=2, episodes=12, batch=4, **how)
        serial = recoup.train(own_tasks.quadratic, dim=2, episodes=12, batch=4, test_episodes=2)
        np.testing.assert_allclose(run.mean, serial.mean, rtol=1e-12)


@pytest.mark.slow
def test_a_killed_run_goes_on_where_it_was(tmp_path, monkeypatch):
    """Killed by -9 with workers at work: what was told is there, and no worker is left."""
    calm = recoup.train(own_tasks.slow, dim=2, episodes=60, batch=60, test_episodes=2)
    words = "own_tasks:held --dim 2 --episodes 60 --batch 60 --test-episodes 2 --quiet --out r"
    command = [sys.executable, "-m", "recoup", "train", *words.split()]
    command += ["--engine", "process", "--workers", "2"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([HELPERS, *sys.path])}
    with subprocess.Popen(command, cwd=tmp_path, env=environment) as process:
        until(lambda: _told(tmp_path / "r") >= 10 or process.poll() is not None)
        process.send_signal(signal.SIGKILL)
    told = _told(tmp_path / "r")
    assert 10 <= told < 60
    (tmp_path / "go").touch()
    monkeypatch.chdir(tmp_path)
    run = recoup.resume(tmp_path / "r", task=own_tasks.held)
    assert (run.episodes, run.failed) == (60, 0)
    values = [{t.id: t.value for t in r.study.trials()} for r in (calm, run)]
    assert values[0] == values[1]


def _told(run):
    try:
        return recoup.load(run).episodes
    except (ValueError, OSError):
        return 0


class TestNames:
    @pytest.fixture(autouse=True)
    def _registry(self, monkeypatch):
        monkeypatch.setattr("recoup.tasks.own.found.REGISTERED", REGISTERED)
        before = dict(REGISTERED)
        yield
        REGISTERED.clear()
        REGISTERED.update(before)

    def test_a_registered_task_is_known_with_its_settings(self, tmp_path):
        recoup.register_task("walk", own_tasks.Walk, summary="a walk", horizon=7, batch=6)
        run = recoup.train("walk", iterations=2, test_episodes=2, out=tmp_path / "r")
        assert (run.plan.batch, run.plan.horizon, run.plan.task) == (6, 7, "walk")
        assert recoup.train("walk", iterations=2, batch=4, test_episodes=2).plan.batch == 4
        assert recoup.evaluate(tmp_path / "r").return_search.episodes == 2  # found by its name

    @pytest.mark.parametrize("name", ["toy", "recoup", "CartPole-v1", "walk"])
    def test_a_name_that_is_taken_is_refused(self, name, monkeypatch):
        recoup.register_task("walk", own_tasks.Walk, horizon=7)
        recoup.register_task("walk", own_tasks.Walk, horizon=9)  # the same, corrected
        point = EntryPoint("recoup", "their_package:robot", "recoup.tasks")
        monkeypatch.setattr("recoup.tasks.own.found.entry_points", lambda group: [point])
        before = dict(REGISTERED)
        with pytest.raises(InputError, match=f"the task '{name}' (is one of|was registered)"):
            recoup.register_task(name, own_tasks.Odd)
        assert before == REGISTERED
        assert before["walk"].defaults == {"horizon": 9}

    def test_an_entry_point_whose_name_is_taken_is_left_out_with_a_warning(self, monkeypatch):
        points = [
            EntryPoint("toy", "theirs:toy", "recoup.tasks"),
            EntryPoint("arm", "first:arm", "recoup.tasks"),
            EntryPoint("arm", "first:arm", "recoup.tasks"),
            EntryPoint("arm", "second:arm", "recoup.tasks"),
        ]
        monkeypatch.setattr("recoup.tasks.own.found.entry_points", lambda group: points)
        with pytest.warns(UserWarning, match="is left out: that name is") as said:
            found = registered()
        assert {name: row.summary for name, row in found.items()} == {"arm": "of first:arm"}
        assert ["'toy' of theirs:toy" in str(w.message) for w in said] == [True, False]

    @pytest.mark.parametrize("name", ["", "two words", "a:b", 3])
    def test_names_are_words(self, name):
        with pytest.raises(InputError, match="must be a word without a colon"):
            recoup.register_task(name, own_tasks.Walk)

    @pytest.mark.parametrize(
        ("task", "how", "message"),
        [
            ("Pendulum-v2", {}, "Did you mean 'Pendulum-v1'"),
            ("pendulum-v1", {}, "Did you mean 'Pendulum-v1'"),
            ("own_tasks:wlak", {}, "has no 'wlak'"),
            ("no_such_module:f", {}, "cannot be imported"),
            ("own_tasks:quadratic", {}, "makes no environment: TypeError.*give dim="),
            (own_tasks.Walk, {}, "has no time limit of its own: give horizon=1000"),
            ("Pendulum-v1", {"options": {"gravitas": 3}}, "cannot be made with these options"),
            ("Pendulum-v1", {"method": "r3"}, "explores in action space"),
            ("Pendulum-v1", {"timeout": 3}, "timeout is for engine='process' or 'ray'"),
            ("Pendulum-v1", {"engine": "proces"}, "Did you mean 'process'"),
            ("Pendulum-v1", {"workers": 0, "engine": "process"}, "workers must be a whole number"),
            ("toy", {"engine": "process"}, "many episodes at a time"),
            ("toy", {"policy": "mlp"}, "many at a time: leave policy"),
            (own_tasks.quadratic, {"dim": 2, "horizon": 3}, "has no policy, horizon, discount"),
            (own_tasks.quadratic, {"dim": 2, "normalize": True}, "has no policy, horizon"),
            ("Pendulum-v1", {"dim": 7}, "is an environment: its policy has parameters"),
            ("Pendulum-v1", {"horizon": 0}, "horizon must be a whole number"),
            (":x", {}, "must be written module:name"),
            ("../m:f", {}, "must be written module:name"),
            ("sys:exit", {}, "makes no environment: SystemExit"),
            ("Pendulum-v1", {"engine": "ray", "address": "nowhere"}, "address must be auto"),
            (lambda: 3, {}, "no Gymnasium environment. If it is a function of theta, give dim="),
            (7, {}, "a task is a name"),
            (
                own_tasks.robot,
                {"params": {"stiffness": None}},
                "missing a required argument: 'damping'",
            ),
        ],
    )
    def test_wrong_use_gets_one_sentence(self, task, how, message, tmp_path):
        with pytest.raises((InputError, Broken), match=message):
            recoup.train(task, episodes=10, out=tmp_path / "r", **how)
        assert not (tmp_path / "r").exists()

    def test_budgets_that_do_not_divide_are_spent(self):
        run = recoup.train("Pendulum-v1", episodes=101, horizon=3, test_episodes=2)
        assert run.episodes == 101
        assert run.plan.spare < run.plan.batch
        trials = recoup.train(own_tasks.Walk, episodes=12, episodes_per_trial=3, **QUICK)
        assert (trials.episodes, len(trials.study)) == (12, 4)
        assert trials.study.trials()[0].episodes == 3
        assert trials.history[-1].episodes == 12

    def test_the_curve_is_made_of_the_trials(self):
        run = recoup.train(own_tasks.Walk, episodes=20, batch=5, **QUICK)
        rows = run.study.trials()
        for i in range(4):
            values = [trial.value for trial in rows if trial.proposal == i]
            assert run.curve.mean[i] == pytest.approx(np.mean(values))
            error = np.std(values, ddof=1) / 5**0.5
            assert run.curve.stderr[i] == pytest.approx(error)
        assert run.curve.mean[4] == run.return_search.mean
        assert len(run.dataframe()) == 20


class TestProgram:
    @pytest.fixture
    def recoup_in(self, tmp_path):
        def call(*words):
            environment = {**os.environ, "PYTHONPATH": os.pathsep.join([HELPERS, *sys.path])}
            command = [sys.executable, "-m", "recoup", *words]
            return subprocess.run(
                command, cwd=tmp_path, env=environment, capture_output=True, text=True
            )

        return call

    def test_a_task_that_prints_leaves_standard_output_to_json(self, recoup_in):
        words = "train own_tasks:prints --dim 2 --episodes 8 --batch 4 --json --test-episodes 2"
        done = recoup_in(*words.split())
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["episodes"] == 8
        assert "another, unbuffered" in done.stderr

    def test_a_broken_task_shows_its_traceback_and_how_to_go_on(self, tmp_path):
        words = "train own_tasks:broken --dim 2 --episodes 100 --batch 10 --quiet"
        done = program(*words.split(), cwd=tmp_path)
        assert done.returncode == 1
        assert 'raise RuntimeError("the motor does not answer")' in done.stderr
        last = done.stderr.strip().splitlines()[-1]
        again = "recoup resume runs/own_tasks-broken-recoup-0 --task own_tasks:broken"
        assert f"`{again}` goes on" in last

    def test_a_strangers_run_runs_no_code(self, tmp_path):
        words = "train own_tasks:quadratic --dim 2 --episodes 8 --batch 4 --quiet --out r"
        assert program(*words.split(), cwd=tmp_path).returncode == 0
        for command in ("evaluate", "render"):
            done = program(command, "r", cwd=tmp_path)
            assert done.returncode == 2
            assert "name it again to run it, with --task own_tasks:quadratic" in done.stderr
        done = program("evaluate", "r", "--task", "own_tasks:quadratic", "--json", cwd=tmp_path)
        assert json.loads(done.stdout)["return_search"]["episodes"] == 20


def test_rollouts_spent_are_counted_in_the_order_of_telling():
    """Also where a late trial has a small number: every move has one batch more."""
    how = {"engine": "process", "workers": 3, "test_episodes": 2}
    run = recoup.train(own_tasks.slow_first, dim=2, episodes=20, batch=4, **how)
    assert [step.episodes for step in run.history] == [0, 4, 8, 12, 16, 20]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A run such as one might be given."""
    out = tmp_path_factory.mktemp("s") / "r"
    recoup.train("Pendulum-v1", episodes=8, batch=4, horizon=3, test_episodes=2, out=out)
    return out


class TestStrangers:
    """What a run directory holds is checked; it chooses no code, no cluster, no sizes."""

    def changed(self, made, tmp_path, change):
        """A copy of the run with other settings."""
        import shutil

        run = tmp_path / "r"
        shutil.copytree(made, run)
        with recoup.Study.open(run / "study.db") as study:
            settings = json.loads(json.dumps(study.settings))
        change(settings["run"])
        (run / "study.db").unlink()
        recoup.Study.create(run / "study.db", settings).close()
        return run

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda run: run.update(task="evil:go"), "name it again to run it"),
            (lambda run: run["policy"].pop("kind"), "the policy cannot be read: KeyError"),
            (lambda run: run["policy"].pop("network"), "the policy cannot be read"),
            (lambda run: run["policy"]["network"].update(inputs=10**12), "takes 1000000000001 par"),
            (lambda run: run["policy"]["network"].update(inputs="x"), "cannot be read"),
            (lambda run: run["policy"]["network"].update(inputs=5), "takes 6 parameters, but"),
            (lambda run: run.update(policy=[1]), "cannot be read"),
            (lambda run: run.update(batch=0), "the plan of the run in .* cannot be read"),
            (lambda run: run.update(iterations="4"), "the plan of the run in .* cannot be read"),
            (lambda run: run.update(extra=1), "cannot be read|damaged"),
            (lambda run: run.update(engine=[1]), "engine must be a mapping"),
            (lambda run: run.update(engine={"engine": "evil"}), "engine must be one of"),
            (
                lambda run: run.update(engine={"engine": "ray", "address": "127.0.0.1:47999"}),
                "name it again",
            ),
        ],
    )
    def test_what_was_changed_is_said(self, made, tmp_path, change, message):
        run = self.changed(made, tmp_path, change)
        with pytest.raises(ValueError, match=message):
            recoup.resume(run)

    def test_no_more_workers_than_cores(self):
        from recoup.runs.engines import cores, stored_engine

        found = stored_engine({"engine": "process", "workers": 100_000})
        assert found["workers"] == cores()

    def test_another_task_is_noticed(self, made):
        with pytest.raises(
            InputError, match=r"observations of CartPole-v1 .* shape was \[3\] and is \[4\]"
        ):
            recoup.evaluate(made, task="CartPole-v1")


def test_test_episodes_have_seeds_of_their_own():
    """None of the run's own, and others for every evaluation."""
    seeds = []

    def noting(theta, seed):
        seeds.append(seed)
        return -float(theta @ theta)

    run = recoup.train(noting, dim=2, episodes=30, batch=10)
    for seed in (0, 1, 4095, 4096):
        recoup.evaluate(run, seed=seed)
    assert len(seeds) == 30 + 40 + 4 * 40
    assert len(set(seeds)) == len(seeds)


def test_failed_test_episodes_are_counted():
    def fails(theta, seed):
        if seed % 3 == 0:
            raise ConnectionError("lost")
        return 1.0

    run = recoup.train(fails, dim=2, episodes=20, batch=10, retries=0)
    assert run.tests_failed > 0
    assert run.summary()["tests_failed"] == run.tests_failed
    both = run.return_search.episodes + run.return_mean_policy.episodes
    assert both + run.tests_failed == 40
    found = recoup.evaluate(run)
    assert found.failed == 40 - found.return_search.episodes - found.return_mean_policy.episodes


def test_two_processes_do_not_make_one_run(tmp_path):
    from recoup.runs.directory import alone_in

    recoup.train("toy", iterations=2, batch=4, out=tmp_path / "r")
    with (
        alone_in(tmp_path / "r"),
        pytest.raises(InputError, match=AT_WORK),
    ):
        recoup.resume(tmp_path / "r", iterations=4)
    assert recoup.resume(tmp_path / "r", iterations=4).episodes == 16


def test_an_environment_of_the_users_stays_open():
    class Closing(own_tasks.Big):
        def close(self):
            raise AssertionError("it is not ours to close")

    env = Closing()
    run = recoup.train(env, normalize=True, warm_up=2, episodes=8, **QUICK)
    assert run.failed == 0
    assert recoup.evaluate(run, episodes=2).failed == 0


def test_rewards_may_be_arrays_of_one():
    class Arrays(own_tasks.Walk):
        def step(self, action):
            seen, reward, *rest = super().step(action)
            return seen, np.array([reward]), *rest

    assert recoup.train(Arrays, episodes=8, **QUICK).failed == 0


def test_settings_of_a_registered_task_can_be_switched_off(monkeypatch):
    monkeypatch.setattr("recoup.tasks.own.found.REGISTERED", REGISTERED)
    how = {"horizon": 5, "discount": 0.5, "normalize": True, "warm_up": 2}
    recoup.register_task("walk-b", own_tasks.Walk, **how)
    try:
        run = recoup.train("walk-b", episodes=8, discount=0.0, normalize=False, warm_up=0)
        assert (run.plan.discount, run.task.policy.scale) == (0.0, None)
    finally:
        del REGISTERED["walk-b"]


def test_ctrl_c_is_not_lost_while_others_are_imported():
    from recoup.runs.learning import _ctrl_c_later

    reached = []

    def interrupted():
        with _ctrl_c_later():
            os.kill(os.getpid(), signal.SIGINT)
            reached.append(True)  # not here, where it could be swallowed

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert reached
    assert signal.getsignal(signal.SIGINT) is before


class TestWhatIsGivenAgain:
    def test_a_finished_run_knows_it(self, tmp_path, monkeypatch):
        monkeypatch.chdir(HELPERS)
        out = tmp_path / "r"
        recoup.train("own_tasks:Walk", **SHORT, out=out)
        run = recoup.resume(out, task="own_tasks:Walk")
        assert run.finished
        assert np.shape(run.policy(run.task.spaces[0].sample())) == run.task.spaces[1].shape
        assert recoup.resume(run).task is run.task
        done = program("resume", out, "--task", "own_tasks:Walk")
        assert (done.returncode, done.stderr) == (0, "")
        assert recoup.resume(out).finished  # nothing is given, nothing is made
        done = program("resume", out)
        assert (done.returncode, done.stderr) == (0, "")
        assert " parameters" in done.stdout

    def test_another_task_is_refused_where_a_run_is_finished(self, tmp_path):
        recoup.train(own_tasks.Walk, **SHORT, out=tmp_path / "r")
        with pytest.raises(InputError, match=r"the observations of .*Glider are not"):
            recoup.resume(tmp_path / "r", task=own_tasks.Glider)

    def test_another_policy_is_refused_where_a_run_is_finished(self, tmp_path):
        right, wrong = own_tasks.Steers(), own_tasks.Steers(-1.0)
        run = recoup.train(own_tasks.Glider, policy=right, **SHORT, out=tmp_path / "r")
        another = "is not the one that was trained"
        for how in ({}, {"iterations": 3}):
            with pytest.raises(InputError, match=another):
                recoup.resume(tmp_path / "r", task=own_tasks.Glider, policy=wrong, **how)
            with pytest.raises(InputError, match=another):
                recoup.resume(run, policy=wrong, **how)
        assert recoup.resume(run, policy=right).finished

    def test_a_task_of_ours_is_not_replaced(self, tmp_path):
        out = tmp_path / "r"
        run = recoup.train("toy", iterations=2, batch=4, test_episodes=2, out=out)
        for given in (out, run):
            for how in ({}, {"iterations": 3}):
                with pytest.raises(InputError, match="task is toy, got 'foo:bar': leave the task"):
                    recoup.resume(given, task="foo:bar", **how)
                with pytest.raises(InputError, match="has a policy of its own: give none"):
                    recoup.resume(given, policy=own_tasks.Steers(), **how)
        assert recoup.load(out).plan.iterations == 2
        assert recoup.resume(out, task="toy", iterations=3).history[-1].iteration == 3


def other(theta, seed):
    """Another function of two parameters than the one that was learned."""
    return 1e6 + float(theta[0])


def test_a_function_of_another_name_is_said_to_be_one(tmp_path):
    """Its returns were taken as the run's own, without a word."""
    run = recoup.train(own_tasks.quadratic, dim=2, episodes=12, out=tmp_path / "r")
    for use in (
        lambda: recoup.evaluate(recoup.load(run.out, task=other), episodes=2),
        lambda: recoup.resume(run.out, task=other, episodes=24),
    ):
        with pytest.warns(UserWarning, match="task was own_tasks:quadratic, and .*other is rolled"):
            use()


@pytest.mark.parametrize(
    ("before", "now", "warns"),
    [
        ("two:a", "two:a", False),
        ("two:a", "two:b", True),
        ("two:a", "three:a", True),
        ("a", "two:a", False),  # of a script, imported now
        ("a", "two:b", True),
        ("Walker2d-v5", "Hopper-v5", True),
    ],
)
def test_a_task_is_another_by_its_name_and_its_module_where_known(before, now, warns):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        problem._warn_of_another(before, now)
    assert bool(said) == warns


@pytest.mark.parametrize(
    ("learned", "how", "given", "kind"),
    [
        ("Walk", {"horizon": 3}, "quadratic", "environment"),
        ("quadratic", {"dim": 2}, "make_walk", "function"),
    ],
)
def test_a_task_of_another_kind_is_told_what_the_run_was_of(learned, how, given, kind, tmp_path):
    """The hint was of options that `resume` has not, and to go on with what cannot be."""
    run = recoup.train(f"own_tasks:{learned}", episodes=8, out=tmp_path / "r", **how)
    with pytest.raises(InputError, match=f"was of the {kind} own_tasks:{learned}: give") as raised:
        recoup.resume(run.out, task=f"own_tasks:{given}", episodes=16)
    assert "--dim" not in str(raised.value)

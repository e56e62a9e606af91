"""Runs whose environment observes a Dict of unsorted keys: at every door the policy is the same."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import own_tasks
import pytest
from gymnasium import spaces
from own_tasks import Glider, Steers, sorted_glider

import recoup
from recoup.checks import InputError
from recoup.runs import plan as plans
from recoup.runs.render import render_run

HELPERS = str(Path(own_tasks.__file__).parent)
HOW = {"episodes": 40, "batch": 5, "horizon": 10, "test_episodes": 3}
SEEN = {"pos": [1.0, -0.5], "vel": [0.3, 0.1], "att": [0.2]}
OTHER_ORDER = "order of keys, .* was 'pos', 'vel', 'att' and is 'att', 'pos', 'vel' now"


class Stop(recoup.Callback):
    """Stops a run after so many results."""

    def __init__(self, after):
        self.left = after

    def on_result(self, result):
        self.left -= 1
        return self.left <= 0


@pytest.fixture(scope="module")
def calm(tmp_path_factory):
    """A run that was never stopped."""
    return recoup.train(Glider, **HOW, out=tmp_path_factory.mktemp("calm") / "r")


def test_evaluate_gives_what_the_run_itself_gives(calm):
    assert recoup.evaluate(calm.out, task=Glider) == recoup.evaluate(calm)


def test_a_resumed_run_ends_as_if_it_had_never_stopped(calm, tmp_path):
    stopped = recoup.train(Glider, **HOW, out=tmp_path / "r", callbacks=[Stop(17)])
    assert not stopped.finished
    resumed = recoup.resume(tmp_path / "r", task=Glider)
    assert resumed.means.tolist() == calm.means.tolist()
    assert resumed.return_mean_policy == calm.return_mean_policy


def test_loaded_and_saved_policies_do_the_same(calm, tmp_path):
    want = calm.policy(SEEN).tolist()
    loaded = recoup.load(calm.out, task=Glider)
    assert loaded.policy(SEEN).tolist() == want
    for path in (calm.out / "policy.npz", loaded.save_policy(tmp_path / "p.npz")):
        assert recoup.load_policy(path, task=Glider)(SEEN).tolist() == want


@pytest.mark.slow
def test_another_process_gives_the_same(calm):
    code = (
        "import json, own_tasks, recoup\n"
        f"run, seen = {str(calm.out)!r}, {SEEN!r}\n"
        "found = recoup.evaluate(run, task=own_tasks.Glider)\n"
        "action = recoup.load_policy(run + '/policy.npz')(seen).tolist()\n"
        "print(json.dumps([found, action]))\n"
    )
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {HELPERS!r})\n{code}"]
    found, action = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    assert action == calm.policy(SEEN).tolist()
    np.testing.assert_allclose(found[0], recoup.evaluate(calm).return_search, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["process", "ray"])
def test_workers_roll_out_the_same_policy(calm, engine):
    if engine == "ray":
        pytest.importorskip("ray")
    found = recoup.train(Glider, **HOW, engine=engine, workers=1, sync=True)
    assert found.means.tolist() == calm.means.tolist()


@pytest.mark.parametrize(
    "door",
    [
        lambda run: recoup.evaluate(run, task=sorted_glider),
        lambda run: recoup.resume(run, task=sorted_glider, iterations=9),
        lambda run: recoup.load(run, task=sorted_glider).policy(SEEN),
        lambda run: render_run(run, task=sorted_glider),
        lambda run: recoup.load_policy(run / "policy.npz", task=sorted_glider),
    ],
    ids=["evaluate", "resume", "load", "render", "load_policy"],
)
def test_every_door_refuses_another_order(door, calm, tmp_path):
    shutil.copytree(calm.out, tmp_path / "r")
    with pytest.raises(InputError, match=OTHER_ORDER) as refused:
        door(tmp_path / "r")
    assert "spaces.Dict([('pos', ...), ('vel', ...), ('att', ...)])" in str(refused.value)


def test_two_orders_have_two_versions(calm):
    other = recoup.train(sorted_glider, **{**HOW, "episodes": 10})
    plain = {**other.plan.plain(), "task": calm.plan.task}
    assert plans.version_of(plain) != calm.plan.version


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A run with a policy of the user's."""
    place = tmp_path_factory.mktemp("own") / "r"
    return recoup.train(Glider, policy=Steers(), **HOW, out=place)


class TestOwnPolicies:
    def test_the_same_object_is_taken(self, made):
        found = recoup.evaluate(made.out, task=Glider, policy=Steers())
        assert found == recoup.evaluate(made)
        policy = recoup.load_policy(made.out / "policy.npz", Steers(), task=Glider)
        assert policy(SEEN).tolist() == made.learned_policy()(SEEN).tolist()

    def test_another_one_is_noticed(self, made, tmp_path):
        another = "is not the one that was trained: on a fixed observation"
        shutil.copytree(made.out, tmp_path / "r")
        for gain in (0.9, -1.0):
            with pytest.raises(InputError, match=another):
                recoup.evaluate(made.out, task=Glider, policy=Steers(gain))
            with pytest.raises(InputError, match=another):
                recoup.resume(tmp_path / "r", task=Glider, policy=Steers(gain), iterations=9)
            with pytest.raises(InputError, match=another):
                recoup.load_policy(made.out / "policy.npz", Steers(gain))

    def test_another_one_that_chooses_is_noticed(self, tmp_path):
        """Two choices are often the same by chance: every door asks more than once."""

        class Reads:
            parameters = 4

            def __init__(self, *order):
                self.order = list(order)

            def act(self, theta, observation):
                return int(np.dot(theta, observation[self.order]) > 0)

        for seed in range(2):
            how = {"iterations": 2, "batch": 4, "test_episodes": 2, "seed": seed}
            out, right = tmp_path / str(seed), Reads(0, 1, 2, 3)
            recoup.train("CartPole-v1", policy=right, **how, out=out)
            for order in ((3, 2, 1, 0), (1, 0, 2, 3)):
                with pytest.raises(InputError, match="is not the one that was trained"):
                    recoup.resume(out, policy=Reads(*order), iterations=3)
                with pytest.raises(InputError, match="is not the one that was trained"):
                    recoup.load_policy(out / "policy.npz", Reads(*order))
            assert recoup.load_policy(out / "policy.npz", right).theta.size == 4
            assert recoup.resume(out, policy=right, iterations=3).finished

    def test_another_order_is_refused(self, made):
        with pytest.raises(InputError, match=OTHER_ORDER):
            recoup.evaluate(made.out, task=sorted_glider, policy=Steers())

    def test_one_that_draws_lots_has_no_fingerprint(self, tmp_path):
        class Noisy(Steers):
            rng = np.random.default_rng(0)

            def act(self, theta, observation):
                return super().act(theta, observation) + self.rng.normal()

        how = {**HOW, "episodes": 10}
        run = recoup.train(Glider, policy=Noisy(), **how, out=tmp_path / "r")
        assert run.plan.fingerprint is None
        assert recoup.evaluate(tmp_path / "r", task=Glider, policy=Noisy()).failed == 0


def test_a_policy_that_the_file_holds_is_not_given_again(calm):
    with pytest.raises(InputError, match="its policy is linear, which the file holds: leave pol"):
        recoup.evaluate(calm.out, task=Glider, policy=Steers())
    assert recoup.load(calm.out, task=Glider, policy="linear").task.dim == calm.mean.size


def test_a_choice_of_binaries_is_known_again(tmp_path):
    """Its space came back as another one than it was, and the run was refused."""

    def make():
        return own_tasks.Odd(spaces.MultiBinary(2))

    run = recoup.train(make, **{**HOW, "episodes": 10}, out=tmp_path / "r")
    assert recoup.evaluate(tmp_path / "r", task=make) == recoup.evaluate(run)

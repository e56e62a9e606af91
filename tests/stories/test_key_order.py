"""Runs whose environment observes a Dict of unsorted keys: at every door the policy is the same."""

import hashlib
import json
import re
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import own_tasks
import pytest
from before import all_sorted, as_before
from gymnasium import spaces
from own_tasks import Glider, Steers, sorted_glider
from sentences import ANOTHER_POLICY

import recoup
from recoup.checks import InputError
from recoup.runs import plan as plans
from recoup.runs import problem as problems
from recoup.runs.render import render_run
from recoup.tasks.policies import policy_files
from recoup.tasks.policies.described import described

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


def version_of_before(run):
    parts = ("task", "options", "horizon", "discount", "policy", "episodes_per_trial")
    text = json.dumps([run[part] for part in parts], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


@pytest.fixture
def before(monkeypatch):
    """While it lasts, runs and policies are written as earlier versions did."""
    with monkeypatch.context() as patch:
        patch.setattr(problems, "policy_described", lambda task: as_before(described(task.policy)))
        patch.setattr(plans, "fingerprint_of", lambda *given: None)
        patch.setattr(plans, "version_of", version_of_before)
        patch.setattr(policy_files, "FORMAT", 1)
        patch.setattr(
            policy_files, "described", lambda policy, between: as_before(described(policy))
        )
        patch.setattr(policy_files, "_fingerprints", lambda *given: {})
        yield patch


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
    assert plans.version_of(plain) == version_of_before(
        {**plain, "policy": as_before(plain["policy"])}
    )


@pytest.mark.parametrize("own", [None, Steers()])
def test_versions_are_those_of_before_where_orders_are_sorted(own, before):
    task = sorted_glider if own is None else Glider
    old = recoup.train(task, policy=own, **{**HOW, "episodes": 10}).plan.version
    before.undo()
    assert recoup.train(task, policy=own, **{**HOW, "episodes": 10}).plan.version == old


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


class TestFilesOfBefore:
    def test_a_stopped_run_goes_on_with_its_own_policy(self, before, calm, tmp_path):
        recoup.train(Glider, **HOW, out=tmp_path / "r", callbacks=[Stop(17)])
        before.undo()
        with pytest.warns(UserWarning, match="results that were told after a resume are of ano"):
            resumed = recoup.resume(tmp_path / "r", task=Glider)
        assert resumed.means.tolist() == calm.means.tolist()
        assert resumed.plan.version == calm.plan.version

    def test_a_policy_of_a_run_in_one_go_is_right(self, before, calm, tmp_path):
        path = calm.save_policy(tmp_path / "p.npz")
        before.undo()
        for task in (None, Glider):
            assert recoup.load_policy(path, task=task)(SEEN).tolist() == calm.policy(SEEN).tolist()
        with pytest.raises(InputError, match=OTHER_ORDER):
            recoup.load_policy(path, task=sorted_glider)

    def test_a_policy_of_a_loaded_run_is_put_right(self, before, calm, tmp_path):
        """Earlier versions saved it with sorted keys, and so with another order than learned."""
        path = calm.save_policy(tmp_path / "p.npz")
        with np.load(path) as arrays:
            theta, plain = arrays["theta"], json.loads(str(arrays["policy"]))
        plain["policy"]["observations"] = all_sorted(plain["policy"]["observations"])
        np.savez(path, theta=theta, policy=np.array(json.dumps(plain)))
        before.undo()
        with pytest.warns(UserWarning, match="Give the environment to make sure"):
            recoup.load_policy(path)
        with pytest.warns(UserWarning, match="its order is used. Save it anew"):
            mended = recoup.load_policy(path, task=Glider)
        assert mended(SEEN).tolist() == calm.policy(SEEN).tolist()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            anew = recoup.load_policy(mended.save(tmp_path / "anew.npz"))
        assert anew(SEEN).tolist() == calm.policy(SEEN).tolist()

    def test_sorted_keys_are_said_to_be_sure_with_the_environment(self, before, tmp_path):
        run = recoup.train(sorted_glider, **{**HOW, "episodes": 10}, out=tmp_path / "r")
        before.undo()
        path = tmp_path / "r" / "policy.npz"
        assert (
            recoup.load_policy(path, task=sorted_glider)(SEEN).tolist() == run.policy(SEEN).tolist()
        )
        assert recoup.evaluate(tmp_path / "r", task=sorted_glider) == recoup.evaluate(run)

    def test_its_results_go_into_runs_of_its_order_alone(self, before, tmp_path):
        from recoup.study.exchange.read import read_samples

        how = {**HOW, "episodes": 10}
        recoup.train(Glider, **how, out=tmp_path / "old")
        before.undo()
        same = recoup.train(Glider, **how)
        assert read_samples(same.study.opened, tmp_path / "old" / "study.db")
        settings = json.loads(json.dumps(same.study.settings))
        other = json.loads(json.dumps(settings["run"]))
        pairs = other["policy"]["observations"]["dict"]
        other["policy"]["observations"]["dict"] = sorted(pairs)
        other["version"] = plans.version_of(other)
        settings["run"] = other
        study = recoup.Study.create(tmp_path / "other.db", settings)
        with study, pytest.raises(InputError, match=ANOTHER_POLICY):
            read_samples(study.opened, tmp_path / "old" / "study.db")


@pytest.mark.slow
def test_the_page_tells_how_to_mend_a_run_that_was_resumed(before, tmp_path, capsys):
    """Results of two policies in one study, as earlier versions made them."""
    from recoup.tasks.own import host
    from recoup.tasks.policies import described as descriptions

    how, place = {**HOW, "episodes": 20}, tmp_path / "runs" / "glider"
    calm = recoup.train(Glider, **how)
    recoup.train(Glider, **how, out=place, callbacks=[Stop(10)])
    in_order = descriptions.pairs_of
    before.setattr(descriptions, "pairs_of", lambda plain: sorted(in_order(plain)))
    before.setattr(host, "check_spaces", lambda *given: None)
    before.setattr(problems, "warn_of_before", lambda *given: None)
    mixed = recoup.resume(place, task=Glider)
    before.undo()
    values = [[t.value for t in run.study.trials()] for run in (calm, mixed)]
    assert values[0][:10] == values[1][:10]
    assert values[0][10:15] != values[1][10:15]
    page = Path(__file__).parents[2] / "docs" / "own-tasks.md"
    (script,) = re.findall(
        r"```python\n(import recoup\n.*?run.study.amend.*?)```", page.read_text(), re.S
    )
    script = script.replace(
        "from my_module import make_env", "from own_tasks import Glider as make_env"
    )
    script = script.replace('"runs/glider"', repr(str(place)))
    with pytest.warns(UserWarning, match="was begun by an earlier version"):
        exec(script, {})
    assert capsys.readouterr().out.split() == [str(n) for n in range(20, 10, -1)]
    mended = recoup.load(place)
    assert mended.study.trials()[14].value == values[0][14]  # drawn before what was wrong
    assert mended.means[3].tolist() == calm.means[3].tolist()


def test_a_choice_of_binaries_is_known_again(tmp_path):
    """Its space came back as another one than it was, and the run was refused."""

    def make():
        return own_tasks.Odd(spaces.MultiBinary(2))

    run = recoup.train(make, **{**HOW, "episodes": 10}, out=tmp_path / "r")
    assert recoup.evaluate(tmp_path / "r", task=make) == recoup.evaluate(run)

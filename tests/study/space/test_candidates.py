"""Means and deviations that are given by name: some of them, the others stay."""

import json

import numpy as np
import pytest
from program import recoup as program

import recoup
from recoup.checks import InputError
from recoup.study.space.parameters import parameter, to_latent

PARAMS = ["kp=10:400:log", "ki=0:1", "kd"]


@pytest.fixture
def study(tmp_path):
    named = [parameter(text) for text in PARAMS]
    with recoup.Study.open(tmp_path / "a.db", params=named, seed=1) as study:
        rng = np.random.default_rng(0)
        for _ in range(40):
            (trial,) = study.ask()
            study.tell(trial.id, float(-np.sum((trial.theta / [300, 1, 1]) ** 2) + rng.normal()))
        assert study.history()
        yield study


def in_order(study, **values):
    """All means in the user's units: those of the newest distribution but for some."""
    return [{**study.mean_policy, **values}[name] for name in study.names]


def test_evaluate_takes_some_of_them_by_name(study):
    got = study.evaluate(mean={"kp": 120}, std={"ki": 0.7})
    want = study.evaluate(mean=in_order(study, kp=120), std=[study.std[0], 0.7, study.std[2]])
    np.testing.assert_allclose(got[:5], want[:5], rtol=1e-6)
    both = program("study", "evaluate", study.store.path, "--mean", "kp=120", "--json")
    assert json.loads(both.stdout)["ess"] == study.evaluate(mean={"kp": 120}).ess


def test_a_fork_starts_from_them(study, tmp_path):
    words = ["--mean", "kp=300,kd=-0.5", "--std", "kd=0.2"]
    done = program("study", "fork", study.store.path, tmp_path / "b.db", *words)
    assert done.returncode == 0, done.stderr
    with recoup.Study.open(tmp_path / "b.db") as fork:
        want = to_latent(study.parameters, np.array(in_order(study, kp=300, kd=-0.5)))
        np.testing.assert_allclose(fork.mean[[0, 2]], want[[0, 2]], rtol=1e-12)
        assert fork.mean[1] == study.mean[1]  # to the last bit: nothing was said of it
        np.testing.assert_array_equal(fork.std, [study.std[0], study.std[1], 0.2])


def test_a_fork_of_other_parameters_knows_them_by_their_new_names(study, tmp_path):
    how = {"rename": {"kd": "damping"}, "freeze": ["ki"]}
    with study.fork(tmp_path / "b.db", mean={"damping": 0.25}, **how) as fork:
        assert fork.mean_policy["damping"] == 0.25
        assert fork.mean[0] == study.mean[0]
    with pytest.raises(InputError, match="the parameters are kp, damping; mean names 'kd'"):
        study.fork(tmp_path / "c.db", mean={"kd": 0.25}, **how)
    assert not (tmp_path / "c.db").exists()


def test_a_new_study_has_the_others_where_they_start(tmp_path):
    made = [word for text in PARAMS for word in ("--param", text)]
    done = program("study", "new", tmp_path / "a.db", *made, "--mean", "ki=0.2", "--std", "kd=3")
    assert done.returncode == 0, done.stderr
    with recoup.Study.open(tmp_path / "a.db") as study:
        assert study.mean_policy["ki"] == pytest.approx(0.2)
        assert study.mean[[0, 2]].tolist() == [0.0, 0.0]
        assert study.std.tolist() == [1.0, 1.0, 3.0]


def test_a_replay_has_the_others_where_the_study_began(study):
    replayed = study.replay(mean={"kd": 0.3})
    in_order = study.replay(mean=[np.sqrt(10 * 400), 0.5, 0.3])
    np.testing.assert_allclose(replayed[-1].mean, in_order[-1].mean, rtol=1e-6)


def test_samples_are_told_all_of_them_by_name(study, tmp_path):
    (tmp_path / "s.csv").write_text("kp,ki,kd,return\n100,0.3,0,1\n120,0.4,1,2\n90,0.2,0.5,0\n")
    words = ["--mean", "ki=0.5,kd=0,kp=100", "--std", "kp=1,ki=1,kd=0.5"]
    done = program("study", "import", study.store.path, tmp_path / "s.csv", *words)
    assert done.returncode == 0, done.stderr
    row = list(study.store.proposals().values())[-1]
    mean, std = study.opened.shown(row.numbers)
    np.testing.assert_allclose(study.opened.in_units(mean), [100, 0.5, 0], rtol=1e-9)
    assert std.tolist() == [1, 1, 0.5]
    words = ["--mean", "ki=0.5", "--std", "1"]
    done = program("study", "import", study.store.path, tmp_path / "s.csv", *words)
    assert done.returncode == 2


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--mean", "kq=3"], "mean names 'kq'"),
        (["--mean", "kp=x"], "mean of kp must be a number, got 'x'"),
        (["--mean", "kp=3,4"], "--mean takes values in order, or NAME=VALUE"),
        (["--mean", "kp=1"], "kp must lie in 10..400"),
        (["--std", "kp=-1"], "std must be"),
        (["--mean", "kd=nan"], "mean of kd must be"),
    ],
)
def test_what_does_not_fit_gets_a_sentence(study, words, says):
    done = program("study", "evaluate", study.store.path, *words)
    assert done.returncode == 2
    assert says in done.stderr


def test_without_names_there_is_none_to_give(tmp_path):
    with (
        pytest.raises(InputError, match="have no names: give all of mean in order"),
        recoup.Study.open(tmp_path / "a.db", dim=2, mean={"x": 1.0}),
    ):
        pass

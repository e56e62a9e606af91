import csv
import json

import numpy as np
import pytest

import recoup
from oracles import gauss_hermite


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
    rows = list(csv.DictReader((run.out / "history.csv").read_text().splitlines()))
    assert [int(row["iteration"]) for row in rows] == [0, 1, 2, 3, 4]
    assert float(rows[-1]["return_search"]) == run.history[-1].return_search
    result = json.loads((run.out / "result.json").read_text())
    assert result == run.summary()
    assert result["mean"] == run.mean.tolist()
    assert (run.out / "curve.png").read_bytes().startswith(b"\x89PNG")


def test_an_existing_directory_is_refused_and_left_alone(run):
    before = (run.out / "history.csv").read_bytes()
    with pytest.raises(ValueError, match="exists already: name another, or remove it"):
        recoup.train("toy", iterations=1, out=run.out)
    assert (run.out / "history.csv").read_bytes() == before


def test_learning_the_toy_improves_the_return_by_four_standard_errors():
    run = recoup.train("toy", method="mis-pgpe-ob", iterations=20, seed=1, mean=-1.6)
    first, last = run.history[0], run.return_search
    error = np.hypot(first.return_search_stderr, last.stderr)
    assert last.mean - first.return_search > 4 * error


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


def test_truncated_weights_whose_tail_is_flat_are_no_failure():
    run = recoup.train("toy", "tiw-pgpe-ob", iterations=8, seed=0, truncate=0.5)
    assert run.history[-1].max_weight == pytest.approx(0.5)
    assert run.history[-1].pareto_k == -np.inf


def test_settings_replace_those_of_the_method():
    run = recoup.train("toy", "pgpe", iterations=2, mirrored=True, update="natural", kl=0.1)
    assert run.history[-1].kl == pytest.approx(0.1, rel=1e-6)
    assert run.history[-1].ess == pytest.approx(5)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"task": "toi"}, "Did you mean 'toy'"),
        ({"method": "iwpgpe"}, "Did you mean 'iw-pgpe'"),
        ({"episodes": 10, "iterations": 1}, "give episodes or iterations, not both"),
        ({"episodes": 105}, "multiple of the batch of 10, got 105: use 100 or 110"),
        ({"episodes": 3}, "multiple of the batch of 10, got 3: use 10"),
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
        ({"baselin": "mean"}, "Did you mean 'baseline'"),
        ({"batch": 5, "mirrored": True}, "batch must be even for mirrored sampling, got 5"),
        ({"mean": "a"}, "mean must be an array of real numbers, got 'a'"),
        ({"std": None}, "std must be an array of real numbers, got None"),
    ],
)
def test_bad_input_gets_one_sentence_and_writes_nothing(change, sentence, tmp_path):
    out = tmp_path / "run"
    with pytest.raises(ValueError, match=sentence) as caught:
        recoup.train(**{"task": "toy", "out": out, **change})
    assert "\n" not in str(caught.value)
    assert not out.exists()

"""What is said where one result stands out from all others."""

import numpy as np
import pytest

import recoup
from recoup.study.reader.settings import resolved

TRUE = {"a": (0, 1), "b": (0, 1)}


def told(slip=None, seed=0, results=24, sign=1.0, **settings):
    """A study of returns between -0.5 and 0.1, one of which is told as something else."""
    study = recoup.Study.create(
        None, resolved({"params": TRUE, "batch": 4, "seed": seed, **settings})
    )
    rng = np.random.default_rng(seed)
    for i in range(results):
        trial = study.ask()[0]
        value = -((trial.params["a"] - 0.3) ** 2) + 0.05 * rng.normal()
        study.tell(trial.id, float(sign * (slip if slip is not None and i == 13 else value)))
    return study


@pytest.mark.parametrize("slip", [5.0, 1000.0, 1e12])
@pytest.mark.parametrize("seed", range(3))
def test_a_slip_that_makes_the_mean_policy_look_good_is_named(slip, seed):
    """And what is expected without it holds the truth."""
    study = told(slip, seed)
    found, truth = study.recommend(), -((study.mean_policy["a"] - 0.3) ** 2)
    assert found.improbable == found.plain()["improbable"] == [14]
    assert f"Trial 14: {slip:.6g} is " in found.words
    without = found.words.split("Without it the expected return would be ")[1].split(").")[0]
    low, high = (float(x) for x in without.split("(95 %: ")[1].split(" to "))
    assert low <= truth <= high
    assert "Without it the expected return would be " in study.predict(study.mean_policy).words
    assert "Trial 14" in study.predict(dict(study.trials()[13].params)).words


@pytest.mark.parametrize("candidate", [{}, {"mean": {"a": 0.4}, "std": 0.8}])
def test_a_slip_that_makes_a_distribution_look_good_is_named(candidate):
    """By every door: a draw was "105.5", without a word, where none of the others exceeds 0."""
    study = told(1000.0)
    found = study.evaluate(**candidate)
    assert found.mean > 1
    assert list(found.improbable) == [14]
    assert "Trial 14: 1000 is " in found.words
    without = found.words.split("Without it the expected return would be ")[1]
    assert -1 < float(without.split(" (95 %")[0]) < 0.1
    assert list(told().evaluate(**candidate).improbable) == []


def test_so_it_is_in_what_is_shown():
    now = told(1000.0).snapshot()
    assert "Without it the expected return would be " in now.of_a_draw


def test_an_evaluation_says_of_one_number_of_results():
    found = told(results=12).evaluate()
    assert repr(found).endswith(f"; {found.words.split(':')[0]})")


def test_costs_are_said_as_they_were_told():
    found = told(1000.0, sign=-1.0, direction="minimize").recommend()
    assert "Trial 14: -1000 is " in found.words
    assert "Without it the expected cost would be " in found.words


def test_results_that_stand_out_and_change_nothing_are_left_to_show():
    """A crash far from the mean policy, of which it is known that it was one."""
    study = told()
    study.enqueue({"a": 0.99, "b": 0.99})
    study.tell(study.ask()[0].id, -40.0)
    assert study.diagnostics()["improbable"]
    found = study.recommend()
    assert found.improbable == []
    assert "Without it" not in found.words


@pytest.mark.parametrize("seed", range(2, 6))
@pytest.mark.parametrize(
    ("slip", "said"),
    [(lambda value: -value, "another sign than"), (lambda value: -1e12, "-1e+12 is ")],
    ids=["sign", "size"],
)
def test_what_is_surely_a_slip_is_named_whatever_rests_on_it(slip, said, seed):
    """After thirty results of the other sign; or early, where a model of the near forgets it."""
    at = 31 if "sign" in said else 3
    study = recoup.Study.create(None, resolved({"params": TRUE, "seed": seed}))
    rng = np.random.default_rng(seed)
    for number in range(1, 61 if at == 3 else 32):
        trial = study.ask()[0]
        value = -4 - 20 * sum((x - 0.7) ** 2 for x in trial.params.values()) + rng.normal() / 2
        study.tell(trial.id, float(slip(value) if number == at else value))
    found = study.recommend()
    assert found.improbable == [at]
    assert f"Trial {at}: " in found.words
    assert said in found.words


def test_what_stands_out_so_often_that_returns_are_like_that_is_not_named():
    """A crash is worth -1e9 wherever it happens, far from the mean policy."""
    study = told(results=40)
    for i in range(3):
        study.enqueue({"a": 0.99, "b": 0.9 + i / 100})
        study.tell(study.ask()[0].id, -1e9)
    assert len(study.diagnostics()["improbable"]) >= 3
    assert "stands out" not in study.recommend().words


def test_nothing_is_doubted_without_a_result_that_stands_out():
    assert told().recommend().improbable == []


def test_only_what_the_value_rests_on_is_named():
    """A slip among trials of the mean, beside early results that stand out and are true."""
    study = recoup.Study.create(None, resolved({"params": {"k": (1, 200, "log")}, "seed": 3}))

    def value(trial):
        noise = 0.05 * np.random.default_rng(trial.seed).normal()
        return float(-(np.log(trial.params["k"] / 40) ** 2) + noise)

    for _ in range(16):
        trial = study.ask()[0]
        study.tell(trial.id, value(trial))
    slip = None
    for i in range(6):
        trial = study.ask(1, at="mean")[0]
        slip = trial.id if i == 2 else slip
        study.tell(trial.id, 500.0 if i == 2 else value(trial))
    found = study.recommend()
    assert len(study.diagnostics()["improbable"]) > 1
    assert found.improbable == [slip]
    assert found.words.count("amend it if it is a slip") == 1
    assert "Without it the expected return would be " in found.words

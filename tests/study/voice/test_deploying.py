"""What is the one to deploy: the newest mean, another that is better, or the start."""

import json

import numpy as np
import pytest

import recoup
from recoup.study.reader.settings import resolved
from recoup.tasks.bounded.bounded_suite import bounded_task


def bowl(theta):
    return -float(np.sum((np.asarray(theta) - 0.5) ** 2))


def searched(results, at_once=1, function=bowl, noise=0.3, path=None, **settings):
    study = recoup.Study.create(path, resolved({"dim": 3, "seed": 0, **settings}))
    rng = np.random.default_rng(5)
    for _ in range(0, results, at_once):
        told(study, study.ask(at_once), rng, function, noise)
    return study


def told(study, trials, rng, function=bowl, noise=0.3):
    study.tell([t.id for t in trials], [function(t.theta) + noise * rng.normal() for t in trials])


@pytest.fixture
def run_away(monkeypatch):
    """The same study, its newest mean so many standard deviations away: no result lies near it."""

    def made(study, far):
        newest = study.store.newest()
        numbers = newest.numbers + far * (np.arange(len(newest.numbers)) < study.dim)
        monkeypatch.setattr(study.store, "newest", lambda: newest._replace(numbers=numbers))
        study.opened.remembered.clear()
        return study

    return made


def test_after_one_result_nothing_is_the_one_to_deploy():
    found = searched(1).recommend()
    assert found.deploys == "start"
    assert found.words.startswith("Nothing is known to be better than the start yet.")
    assert "the one to deploy" not in found.words
    np.testing.assert_array_equal(found.theta, np.zeros(3))


def test_a_mean_that_is_known_is_deployed():
    study = searched(60)
    found = study.recommend()
    assert (found.deploys, found.number) == ("mean", study.store.last_move().id)
    np.testing.assert_array_equal(found.theta, study.mean_policy)
    assert found.expected == found.of_mean.value
    assert found.words.startswith("The mean policy is the one to deploy.")


def test_a_mean_far_from_all_results_is_not(run_away):
    study = run_away(searched(60), 30.0)
    found = study.recommend()
    assert found.deploys != "mean"
    assert bowl(found.theta) >= bowl(np.zeros(3)) > bowl(study.mean_policy)
    assert found.expected != found.of_mean.value
    assert "The mean policy is not known to be as good." in found.words
    said = json.loads(json.dumps(found.plain()))
    assert (said["deploys"], said["number"]) == (found.deploys, found.number)
    assert said["of_mean"]["value"] == found.of_mean.value
    now = study.snapshot()
    assert now.params == found.params
    assert list(now.mean_policy.values()) == study.mean_policy.tolist()
    assert now.plain()["mean_policy"] == now.mean_policy
    assert now.plain()["expected_return_of_mean_policy"]["mean"] == found.of_mean.value


def test_what_is_deployed_keeps_the_limits_that_the_mean_breaks(run_away):
    study = recoup.Study.create(
        None, resolved({"dim": 2, "seed": 0, "limits": ["force<50"], "within": 0.9})
    )
    rng = np.random.default_rng(5)
    for _ in range(60):
        [trial] = study.ask()
        force = 30.0 + 5.0 * float(trial.theta[0]) + rng.normal()
        study.tell(trial.id, bowl(trial.theta) + 0.3 * rng.normal(), also={"force": force})
    assert study.recommend().deploys == "mean"
    found = run_away(study, 8.0).recommend()
    assert found.deploys != "mean"
    [row] = found.limits
    assert row.chance >= 0.9


@pytest.mark.parametrize("seed", range(6))
def test_twenty_at_once_deploy_nothing_worse_than_the_start(seed):
    """Six gains of an arm, asked for in the morning and told in the evening; steps ran away."""
    task = bounded_task("bounded-arm-3", seed)
    study = recoup.Study.create(None, resolved({"params": task.params, "seed": seed}))
    start = task.true_return(study.mean_policy)
    for trial in study.ask(20):
        value = task.rollout(trial.params, trial.seed)
        if np.isfinite(value):
            study.tell(trial.id, value)
        else:
            study.tell(trial.id, failed="it fell")
    assert task.true_return(study.recommend().params) >= start


def costs(path=None, **settings):
    study = recoup.Study.create(
        path, resolved({"dim": 2, "seed": 0, "direction": "minimize", **settings})
    )
    rng = np.random.default_rng(5)
    for _ in range(16):
        [trial] = study.ask()
        study.tell(trial.id, float(np.sum((trial.theta - 0.3) ** 2)) + abs(0.3 * rng.normal()))
    return study


def test_no_interval_reaches_where_no_return_can_be():
    free, kept = costs(), costs(return_above=0)
    assert free.recommend().interval.low < 0 == kept.recommend().interval.low
    assert kept.recommend().interval.high == free.recommend().interval.high
    assert "(95 %: 0 to" in kept.recommend().words
    assert kept.predict(kept.mean_policy).low == 0 == kept.recommend().of_mean.interval.low
    assert kept.evaluate().low >= 0


def test_what_no_return_can_be_is_refused(tmp_path):
    study = costs(tmp_path / "a.db", return_above=0, return_below=90)
    [trial] = study.ask()
    for told in ({"value": -0.1}, {"values": [1.0, -0.1, 2.0]}):
        with pytest.raises(recoup.InputError, match="a cost of this study cannot be below 0, got"):
            study.tell(trial.id, **told)
    with pytest.raises(recoup.InputError, match="cannot be above 90, got 91"):
        study.amend(1, 91)
    with pytest.raises(recoup.InputError, match="cannot be below 0, got -3"):
        study.import_samples([[0.0, 0.1], [0.2, 0.3]], [2.0, -3.0])
    study.tell(trial.id, 0.0)
    with study.fork(tmp_path / "b.db") as fork:
        assert fork.settings["return_above"] == 0
    with pytest.raises(recoup.InputError, match="must be below"):
        costs(return_above=1, return_below=1)

"""Failures that depend on theta: a study avoids them, and says how often its mean fails."""

import json

import numpy as np
import pytest

import recoup
from recoup.core.plain.failure_chance import chance_at, chance_under
from recoup.core.worth import Interval, proportion
from recoup.study.care.verify import check
from recoup.study.reader.settings import resolved
from recoup.study.voice import sentences
from recoup.study.voice.deciding import VerdictBasis, decided, planned
from recoup.study.voice.failing import TOO_RISKY, failing_at
from recoup.study.voice.gained import PastGain
from recoup.study.voice.worths import MeanPolicyWorth

pytestmark = pytest.mark.usefixtures("few_rehearsals")


def cliff(theta):
    """Returns rise towards an edge behind which everything fails."""
    return None if theta[0] > 1 else -float(np.sum((theta - [3, 0, 0]) ** 2))


def searched(function, trials, seed=0, path=None, **given):
    """A study after so many trials, one at a time."""
    given = {"dim": 3, "mean": [-2, 1, -1], "seed": seed, **given}
    study = recoup.Study.create(path, resolved(given))
    for _ in range(trials):
        told(study, study.ask()[0], function)
    return study


def told(study, trial, function):
    value = function(trial.theta)
    study.tell(trial.id, value, failed=None if value is not None else "fell")


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_default_stays_before_the_edge_behind_which_all_fails(seed):
    """It walked over it: 58 of 60 failed, and no move was made after the fourth."""
    study = searched(cliff, 60, seed)
    assert study.counts()["failed"] < 20
    assert study.mean[0] < 1
    assert study.store.last_move().id == 60 // study.batch
    assert study.mean[0] > -1


def test_an_edge_is_learned_from_failures_alone_where_all_successes_are_equal():
    """What failed stands for less than what did not: the returns are not equal."""

    def passed(theta):
        return 1.0 if theta[0] > 0.3 else None

    study = searched(passed, 84, dim=2, mean=0.0, batch=6, seed=1)
    assert not any(move["notes"]["flat"] for move in study.history()[2:])
    assert study.mean[0] > 1
    assert np.mean([passed(t.theta) is None for t in study.ask(30)]) < 0.2


def test_samples_from_elsewhere_that_differ_say_where_to_go_though_all_told_are_equal():
    study = searched(lambda theta: -1.0, 0, dim=2, mean=0.0, batch=6, seed=1)
    theta = np.random.default_rng(0).normal(size=(40, 2))
    goal = -np.sum((theta - 1) ** 2, axis=1)
    study.import_samples(theta, goal, mean=np.zeros(2), std=np.ones(2))
    for trial in study.ask(study.batch):
        study.tell(trial.id, -1.0)
    assert not study.history()[-1]["notes"]["flat"]
    assert (study.mean > 0.1).all()


def test_a_start_where_all_fails_is_left():
    """Nothing is known but that: the spread grows until something does not fail."""
    study = searched(
        lambda theta: None if theta[0] < 4 else -float(theta @ theta), 60, mean=[0, 0, 0]
    )
    assert study.counts()["ok"] > 10


def test_failures_fill_a_batch_of_the_default():
    study = recoup.Study.create(None, resolved({"dim": 2, "batch": 4}))
    study.tell_all([(trial.id, study.result(failed="fell")) for trial in study.ask(8)])
    assert study.store.last_move().id == 2
    np.testing.assert_array_equal(study.mean, 0)
    assert (study.std > 1).all()


def test_what_is_said_of_returns_is_of_those_that_do_not_fail():
    study = searched(lambda theta: None if theta[0] > 0 else 10.0 + 1e-3 * theta[1], 40)
    assert study.counts()["failed"]
    for move in study.history():
        assert move["objective"] == pytest.approx(10, abs=0.1)
    assert study.history()[-1]["censored"] > 0
    assert "failed results are left out" in study.evaluate().words


def test_a_draw_and_the_mean_leave_out_the_same_failures(tmp_path):
    """Those of the mean policy too, which no distribution drew: a model says both."""
    with recoup.Study.open(tmp_path / "s.db", dim=2, seed=11) as study:
        for trial in (study.ask()[0] for _ in range(16)):
            study.tell(trial.id, -float(np.sum((trial.theta - 0.4) ** 2)))
        for _ in range(3):
            study.tell(study.ask(at="mean")[0].id, failed="slipped")
        study.tell(study.ask()[0].id, failed="slipped")
        now = study.snapshot()
    assert "4 failed results are left out of that." in now.recommendation.words
    assert "by a model of the returns" in now.of_a_draw
    assert "4 failed results are left out." in now.of_a_draw


def test_a_study_that_leaves_failures_out_goes_on_so(tmp_path):
    with searched(cliff, 40, path=tmp_path / "old.db", failure="censored") as old:
        moves, mean = old.store.last_move().id, old.mean
        assert moves < 40 // old.batch
    assert all(part.sound for part in check(tmp_path / "old.db"))
    with recoup.Study.open(tmp_path / "old.db") as old:
        assert old.method.failure == "censored"
        for name, given in (("censored", {}), ("avoid", {"failure": "avoid"})):
            with old.fork(tmp_path / f"{name}.db", **given) as fork:
                assert fork.method.failure == name
        np.testing.assert_array_equal(old.replay()[-1].mean, mean)
    assert recoup.Study.create(None, resolved({"dim": 2})).method.failure == "avoid"


def test_a_study_that_avoids_failures_is_checked_forked_and_recovered(tmp_path):
    from recoup.study.care.recover import recover

    with searched(cliff, 41, path=tmp_path / "s.db") as study:
        mean, until = study.mean, study.until_move()
        with study.fork(tmp_path / "other.db", method="mis-pgpe-ob") as fork:
            assert fork.method.failure == "censored"
        study.replay("mis-pgpe-ob")
    assert all(part.sound for part in check(tmp_path / "s.db"))
    recover(tmp_path / "s.db", tmp_path / "again.db")
    with recoup.Study.open(tmp_path / "again.db") as again:
        assert again.until_move() == until
        np.testing.assert_array_equal(again.mean, mean)


def test_only_a_rule_that_looks_at_samples_can_avoid_failures(tmp_path):
    with pytest.raises(recoup.checks.InputError, match=r"censored, worst"):
        resolved({"dim": 2, "method": "mis-pgpe-ob", "failure": "avoid"})


# -- how often what is recommended fails --


def test_recommend_says_how_often_the_mean_fails():
    study = searched(cliff, 60)
    found = study.recommend()
    assert found.failing.low == 0.0
    assert found.failing.rate < TOO_RISKY
    assert "of rollouts (95 %: 0% to" in found.words
    assert "is the one to deploy." in found.words
    assert json.loads(json.dumps(found.plain()))["failing"]["results"] == found.failing.results


def test_what_fails_too_often_is_not_recommended():
    luck = np.random.default_rng(0)
    study = searched(lambda theta: None if luck.uniform() < 0.7 else -float(theta @ theta), 60)
    study.tell(study.ask()[0].id, -1.0)
    found = study.recommend()
    assert found.failing.low < 0.7 < found.failing.high
    assert "one to deploy" not in found.words
    assert f"above the {TOO_RISKY:.0%} up to which one is recommended" in found.words


def test_after_six_failures_in_a_row_nothing_is_recommended():
    study = searched(lambda theta: -float(theta @ theta), 60)
    assert "one to deploy" in study.recommend().words
    for trial in study.ask(6):
        study.tell(trial.id, failed="fell")
    assert study.recommend().words.startswith(
        "Do not deploy the mean policy: the last 6 results all failed."
    )


def test_failures_of_ones_own_choice_elsewhere_say_nothing_of_the_mean():
    """ "It fails in 5%" and "fails too often" stood in one paragraph."""
    study = searched(lambda theta: -float(theta @ theta), 60)
    for at in range(7, 13):
        study.enqueue([float(at)] * 3)
        study.tell(study.ask()[0].id, failed="fell")
    words = study.recommend().words
    assert "one to deploy" in words
    assert "too often" not in words


def test_where_all_failed_nobody_is_sent_to_try():
    """What failed there was "nothing near it was tried. A rollout or two of it would say"."""
    study = searched(cliff, 40)
    for _ in range(3):
        study.enqueue([30.0, 5.0, 5.0])
        study.tell(study.ask()[0].id, failed="fell")
    found = study.predict([30.0, 5.0, 5.0])
    assert np.isnan(found.expected)
    assert found.words.startswith(
        "What it is worth is not known: all that was tried near it failed. It fails in"
    )
    assert "would say" not in found.words
    assert "nothing near it was tried. A rollout" in study.predict([-30.0, 25.0, 5.0]).words


def test_an_amended_result_is_not_the_last_that_was_told(tmp_path):
    """Neither does one take back that the last failed, nor do slips that were put right say so."""
    refused = "Do not deploy the mean policy: the last 6 results all failed."
    study = searched(lambda theta: -float(theta @ theta), 60, path=tmp_path / "a.db")
    for number in range(1, 7):
        study.amend(number, failed="fell")
    assert refused not in study.recommend().words
    for trial in study.ask(6):
        study.tell(trial.id, failed="fell")
    study.amend(7, -1.0)
    study.amend(7, -2.0)
    found = study.recommend(budget=9)
    assert found.words.startswith(refused)
    assert (
        "Go on until rollouts come back that did not fail. Of 9 trials, search with 9."
        in found.words
    )
    assert (found.verdict, found.tries) == ("go on", 0)
    with study.fork(tmp_path / "b.db") as fork:
        assert fork.recommend().words.startswith(refused)


def test_trials_of_a_theta_say_by_themselves_how_often_it_fails():
    study = searched(lambda theta: -float(theta @ theta), 20)
    for i, trial in enumerate(study.ask(5, at="mean")):
        study.tell(trial.id, **({"failed": "fell"} if i < 2 else {"value": 0.0}))
    found = failing_at(study.opened, study.mean)
    assert (found.rate, found.results, found.rests_on) == (0.4, 5, "5 trials of it")
    assert (found.low, found.high) == proportion(2, 5)


def tried(trials, failures):
    """A study after trials of its mean, the last of which failed."""
    study = searched(lambda theta: -float(theta @ theta), 40)
    for i in range(trials):
        came = {"failed": "fell"} if i >= trials - failures else {"value": 0.1 - i / 100}
        study.tell(study.ask(at="mean")[0].id, **came)
    return study


def test_one_failure_of_twenty_does_not_condemn_the_mean():
    """ "Tried 20 times and failed 1: do not rely on it", where a model may say 30 %."""
    study = tried(20, 1)
    found = study.recommend()
    assert found.words.startswith(
        "The mean policy is the one to deploy. It failed 1 of the 20 times that it was tried. "
    )
    assert "It fails in 5% of rollouts (95 %: 1% to 24%), from 20 trials of it." in found.words
    of_them = [0.1 - i / 100 for i in range(19)]
    assert found.expected == pytest.approx(np.mean(of_them))
    assert found.stderr == pytest.approx(np.std(of_them, ddof=1) / 19**0.5)
    assert found.rests_on == "19 trials of the mean policy that did not fail"
    assert "left out" not in found.words
    assert study.predict(study.mean_policy).expected == found.expected


def test_the_same_share_decides_for_a_policy_that_was_tried():
    study = tried(20, 7)
    study.tell(study.ask()[0].id, -1.0)
    found = study.recommend()
    assert found.words.startswith(
        f"The mean after move {found.number} is the one to deploy. Do not deploy the mean policy: "
        "it fails in 35% of rollouts, above the 30% up to which one is recommended."
    )
    assert (found.verdict, found.of_mean.rests_on[:9]) == ("go on", "13 trials")


def test_a_failure_of_the_mean_does_not_hide_that_it_breaks_a_limit():
    study = recoup.Study.create(None, resolved({"dim": 2, "limits": {"force": "<5"}}))
    for trial in (study.ask()[0] for _ in range(12)):
        study.tell(trial.id, -float(trial.theta @ trial.theta), also={"force": 9.0})
    study.tell(study.ask(at="mean")[0].id, failed="fell")
    words = study.recommend().words
    assert words.startswith("Do not deploy the mean policy: a rollout of it keeps force<5 with")
    assert "It failed the one time that it was tried." in words


def test_where_too_few_trials_of_the_mean_failed_too_often_more_are_asked_for():
    """Neither is it the one to deploy, nor do one or two trials say that it is not."""
    study = tried(2, 1)
    found = study.recommend(budget=7)
    assert found.failing.rate < TOO_RISKY
    assert found.words.startswith(
        "The mean policy failed 1 of the 2 times that it was tried: try it 3 more times before you "
        "rely on it."
    )
    assert "one to deploy" not in found.words
    assert found.verdict != "stop"
    assert "try it once more before" in sentences.deploy(4, 2, "", 1)
    assert "The mean policy is the one to deploy. It failed 1 of the 4" in sentences.deploy(4, 1)


def test_the_search_does_not_stop_before_it_is_known_whether_the_mean_fails():
    past, worth = PastGain(0.0, Interval(-0.1, 0.1), 1.0), Interval(-0.1, 0.1)
    known = VerdictBasis(
        worth=MeanPolicyWorth(0.0, 0.05, worth, "", 40),
        batches=9,
        past=past,
        coming=[],
        noise=1.0,
        climbs=[],
        rare=None,
        limits=[],
        outside=[],
        strayed=False,
    )
    assert decided(known) == ("stop", 0)
    assert decided(known._replace(untried=4)) == ("try the mean", 4)
    assert planned(known._replace(untried=4), 7) == (0, 0.0, 7)
    assert "try the mean once (ask" in sentences.try_the_mean(1)


def test_the_model_knows_an_edge_and_what_is_far_from_it():
    z = np.random.default_rng(0).normal(size=(120, 3))
    before, at, behind = (chance_at(z, z[:, 0] > edge) for edge in (1.0, 0.0, -1.0))
    assert before.high < 0.1
    assert before.low == 0.0
    assert at.low < 0.5 < at.high
    assert behind.low > 0.8
    half = chance_under(z, z[:, 0] > 0.0)
    assert half.low < 0.5 < half.high
    assert half.high - half.low < 0.4


def test_chances_are_held_by_their_intervals():
    """A chance that rises smoothly, at 100 points of two dimensions: 95 %, and at least 88 %."""
    rng, held = np.random.default_rng(1), []
    for _ in range(100):
        z, slope, level = rng.normal(size=(60, 2)), rng.normal(size=2), 1.5 * rng.normal()
        chance = 1 / (1 + np.exp(-(z @ slope + level)))
        found = chance_at(z, rng.uniform(size=60) < chance)
        held.append(found.low <= 1 / (1 + np.exp(-level)) <= found.high)
    assert np.mean(held) >= 0.88

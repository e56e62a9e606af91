"""What is said of one point, and which parameters matter, beside what is true."""

import json

import numpy as np
import pytest
from program import recoup as program

import recoup
from recoup.study.reader.settings import resolved

pytestmark = pytest.mark.usefixtures("few_rehearsals")

GAINS = {"k": (10, 200, "log"), "d": (0, 1), "idle": (0, 1)}


def robot(k, d):
    return -8 * np.log(k / 60) ** 2 - 20 * (d - 0.7) ** 2


def searched(path=None, results=60, seed=0, sign=1.0, **settings):
    given = {"params": GAINS, "seed": seed, **settings}
    study = recoup.Study.open(path, **given) if path else None
    study = study or recoup.Study.create(None, resolved(given))
    rng = np.random.default_rng(seed)
    while study.counts()["ok"] < results:
        trial = study.ask()[0]
        value = robot(trial.params["k"], trial.params["d"]) + 0.3 * rng.normal()
        study.tell(trial.id, float(sign * value))
    return study


@pytest.fixture(scope="module")
def study():
    return searched()


def test_a_point_near_results_gets_its_return(study):
    found = study.predict({"k": 55.0, "d": 0.65})
    assert found.low <= robot(55.0, 0.65) <= found.high
    assert found.high - found.low < 3
    assert found.params["k"] == pytest.approx(55.0)
    assert found.params["idle"] == pytest.approx(dict(study.mean_policy)["idle"])
    assert "(95 %:" in found.words


def test_printed_they_are_their_words(study):
    for found in (study.predict({"k": 55.0}), study.recommend()):
        assert str(found) == found.words


def test_a_point_of_all_values_in_order_is_the_same(study):
    values = [55.0, 0.65, 0.5]
    by_name = study.predict(dict(zip(GAINS, values, strict=True)))
    assert study.predict(values).expected == by_name.expected


def test_the_mean_policy_is_predicted_as_it_is_recommended(study):
    """One number for one quantity, also where its values are typed as tables show them."""
    told, mean = study.recommend(), dict(study.mean_policy)
    typed = {name: float(f"{value:.5g}") for name, value in mean.items()}
    for found in (study.predict(mean), study.predict(typed)):
        assert found.expected == told.expected
        assert (found.low, found.high) == tuple(told.interval)
        assert found.words.removeprefix("The expected return is ") in told.words


def test_trials_of_the_mean_policy_say_what_is_predicted_of_it():
    study = searched(results=20)
    for i, trial in enumerate(study.ask(6, at="mean")):
        study.tell(trial.id, -1.0 + i / 10)
    told, found = study.recommend(), study.predict(dict(study.mean_policy))
    assert found.expected == told.expected == pytest.approx(-0.75)
    assert found.results == 6
    assert "from 6 trials of the mean policy" in found.words


def test_of_few_results_in_many_dimensions_the_mean_policy_is_predicted_too():
    params = {f"p{i}": (-1, 1) for i in range(20)}
    study = recoup.Study.create(None, resolved({"params": params, "seed": 1}))
    while study.counts()["ok"] < 25:
        trial = study.ask()[0]
        study.tell(trial.id, -float(np.sum((trial.theta[:10] - 0.2) ** 2)))
    told, found = study.recommend(), study.predict(dict(study.mean_policy))
    assert np.isfinite(told.expected)
    assert found.expected == told.expected


def test_where_nothing_was_tried_nothing_is_said():
    found = searched(results=20).predict({"k": 199.9, "d": 0.001})
    assert np.isnan(found.expected)
    assert "nothing near it was tried" in found.words


def test_few_results_say_nothing():
    study = searched(results=3)
    assert "too few results" in study.predict({"k": 60.0}).words
    assert study.recommend().matters == []


def test_costs_are_predicted_as_they_were_told():
    one, other = searched(), searched(sign=-1.0, direction="minimize")
    at = {"k": 55.0, "d": 0.65}
    mine, theirs = one.predict(at), other.predict(at)
    assert theirs.expected == -mine.expected
    assert (theirs.low, theirs.high) == (-mine.high, -mine.low)
    assert "expected cost" in theirs.words
    assert one.recommend().matters == other.recommend().matters


def test_where_trials_fail_it_is_said_how_often():
    study = searched(results=30)
    for trial in study.ask(8):
        study.tell(trial.id, failed="fell")
    found = study.predict(dict(study.mean_policy))
    assert found.failing.low <= found.failing.rate <= found.failing.high
    assert "It fails in" in found.words
    assert json.loads(json.dumps(found.plain()))["failing"]["rate"] == found.failing.rate
    assert "It fails in" not in searched(results=30).predict({"k": 60.0}).words


def test_bad_names_and_values_are_one_sentence(study):
    for wrong in ({"q": 1.0}, {"k": float("nan")}, {"k": 1e9}, [1.0], {"k": "fast"}):
        with pytest.raises(recoup.checks.InputError):
            study.predict(wrong)


def test_a_gain_that_does_nothing_is_said_to(study):
    found = study.recommend()
    shares = {row.names: row.share for row in found.matters}
    assert shares[("idle",)] < 0.05
    assert shares[("k",)] + shares[("d",)] > 0.6
    late = searched(results=120, seed=4).recommend()
    assert "idle does nothing that can be seen" in late.words
    json.dumps(late.plain())


@pytest.mark.parametrize(
    ("gripper", "stood"), [((0, 1), 0.5), (["soft", "hard"], "soft")], ids=["number", "choice"]
)
def test_what_was_never_varied_is_not_said_to_do_nothing(gripper, stood):
    params = {"kd": (0, 5), "gripper": gripper}
    study = recoup.Study.create(None, resolved({"params": params, "seed": 0}))
    for kd in np.linspace(0.5, 4.5, 20):
        study.enqueue({"kd": kd, "gripper": stood})
        study.tell(study.ask()[0].id, -((kd - 2) ** 2))
    found = study.recommend()
    assert "does nothing" not in found.words
    shares = {row.names: row.share for row in found.matters}
    assert np.isnan(shares["gripper",])
    assert shares["kd",] > 0.9


def test_what_matters_is_known_of_all_that_was_tried_also_of_very_many_results():
    """The nearest 256 say nothing of the first ones, which returns vary by most."""
    study = recoup.Study.create(None, resolved({"params": {"x": (-1, 1)}, "seed": 1, "batch": 20}))
    while study.counts()["ok"] < 400:
        trials = study.ask(20)
        study.tell([t.id for t in trials], [-((t.params["x"] - 0.3) ** 2) for t in trials])
    (row,) = study.recommend().matters
    assert row.share > 0.8
    assert row.stderr < 0.2


def test_the_command_says_the_same(tmp_path):
    searched(tmp_path / "s.db").close()
    with recoup.Study.open(tmp_path / "s.db", read_only=True) as study:
        want = study.predict({"k": 55.0})
        budget = study.recommend(budget=15)
    done = program("study", "predict", "s.db", "--param", "k=55", cwd=tmp_path)
    assert done.stdout.split() == want.words.split()
    told = program("study", "predict", "s.db", "--param", "k=55", "--json", cwd=tmp_path)
    assert json.loads(told.stdout)["expected"] == want.expected
    assert json.loads(told.stdout)["params"]["k"] == 55.0  # and not exp(log(55))
    done = program("study", "recommend", "s.db", "--budget", "15", cwd=tmp_path)
    assert budget.words.split()[-8:] == done.stdout.split()[-8:]
    assert "explains" in done.stdout
    for wrong in ("k", "k=fast", "=3", "q=1"):
        done = program("study", "predict", "s.db", "--param", wrong, cwd=tmp_path)
        assert done.returncode == 2
        assert done.stderr.count("\n") == 1


def test_what_another_process_tells_or_amends_is_seen_by_what_is_remembered(tmp_path):
    """The model of the newest distribution is kept between questions, until anything changes."""
    path = tmp_path / "robot.db"
    rng = np.random.default_rng(3)
    with recoup.Study.open(path, dim=2, batch=6, seed=1) as study, recoup.Study.open(path) as other:
        for _ in range(4):
            trials = study.ask(6)
            study.tell([t.id for t in trials], list(rng.normal(size=6)))
        first = study.recommend()
        assert study.recommend().expected == first.expected
        other.amend(3, 40.0)
        assert study.recommend().expected != first.expected
        with recoup.Study.open(path, read_only=True) as anew:
            assert study.recommend().expected == anew.recommend().expected
            assert study.evaluate().mean == anew.evaluate().mean


def test_one_model_has_looked_at_one_number_of_results():
    """Near results alone where far ones make noise of shape: of the mean and of a draw alike."""
    params = {"kp": (1, 200, "log"), "kd": (0, 5)}
    study = recoup.Study.create(None, resolved({"params": params, "seed": 1}))
    while study.counts()["ok"] < 60:
        trial = study.ask()[0]
        kp, kd = trial.params.values()
        study.tell(trial.id, -(np.log(kp / 60) ** 2) - (kd - 0.7) ** 2)
    looked = study.recommend().rests_on.split(" results")[0]
    assert 8 <= int(looked) < 60
    assert study.evaluate().words.startswith(f"{looked} results, by a model")


def test_one_result_is_one_result():
    with pytest.raises(recoup.checks.InputError, match="has 1 result of its own"):
        searched(results=1).evaluate()


@pytest.mark.parametrize("results", [8, 30])
def test_what_was_tried_is_not_called_untried_where_all_is_noise(results):
    given = {"params": {"a": (0, 1), "b": (0, 1)}, "seed": 1}
    study, rng = recoup.Study.create(None, resolved(given)), np.random.default_rng(1)
    for _ in range(results):
        study.tell(study.ask()[0].id, float(rng.normal()))
    for trial in study.trials()[-3:]:
        found = study.predict(dict(trial.params))
        assert "nothing near" not in found.words
        assert found.low <= 0 <= found.high
    assert "nothing near it was tried" in study.predict({"a": 0.001, "b": 0.999}).words


def test_what_is_seen_beside_noise_is_not_said_to_do_nothing():
    """Fifteen times the noise from end to end, and a quarter of a per cent of the variance.

    It is said to explain little where two standard errors leave no more, and in most studies so.
    """
    said = 0
    for seed in range(8):
        given = {"params": {"a": (0, 1), "b": (0, 1)}, "seed": seed}
        study, rng = recoup.Study.create(None, resolved(given)), np.random.default_rng(seed)
        for _ in range(40):
            trial = study.ask()[0]
            value = 3 * trial.params["a"] + 0.15 * trial.params["b"] + 0.01 * rng.normal()
            study.tell(trial.id, float(value))
        found = study.recommend()
        (b,) = [row for row in found.matters if row.names == ("b",)]
        little = b.share + 2 * b.stderr < 0.02
        assert b.seen
        assert "nothing that can be seen" not in found.words
        assert ("b explains less than 2% of what the returns vary by, " in found.words) == little
        said += little
    assert said > 4


def test_thetas_of_ones_own_tell_the_model_and_move_nothing():
    """Nor do they change what weights say; the docs had them in no estimate at all."""
    study, there = searched(), {"k": 55.0, "d": 0.65, "idle": 0.5}
    at, wide = list(there.values()), 1.5 * study.std

    def moved_and_weighed():
        found = study.evaluate(at, wide)
        return study.store.last_move().id, study.until_move(), found.samples, found.ess

    before = moved_and_weighed()
    said, known = study.predict(there).expected, study.recommend()
    for i in range(8):
        study.enqueue(there)
        study.tell(study.ask()[0].id, 9.0 + 0.1 * i)
    assert moved_and_weighed() == before
    assert study.predict(there).expected > said + 1
    assert study.recommend().expected > known.expected
    assert study.best[0].kind == "own"

"""Numbers told beside a return, and limits on them: kept, stored, said."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from program import recoup as program

import recoup
from recoup.checks import InputError
from recoup.core.plain.limit_chance import Bound
from recoup.store.file import StudyFile
from recoup.study.care.recover import recover
from recoup.study.care.verify import check
from recoup.study.reader.settings import resolved
from recoup.study.space import limits
from recoup.study.space.limits import Limit, limit
from recoup.study.voice import sentences

pytestmark = pytest.mark.usefixtures("few_rehearsals")


def force(theta):
    return 40 + 10 * float(theta[0])


def searched(path=None, trials=40, seed=0, noise=1.0, value=None, **given):
    """Returns rise towards where the force is too large; the best within lies on the border."""
    how = {"dim": 2, "mean": [-2, 1], "seed": seed, "limits": ["force<50"], **given}
    study = recoup.Study.create(path, resolved(how))
    told(study, trials, noise, value)
    return study


def told(study, trials, noise=1.0, value=None):
    for _ in range(trials):
        trial = study.ask()[0]
        rng = np.random.default_rng(trial.id)
        theta = trial.theta
        earned = -float((theta[0] - 3) ** 2 + theta[1] ** 2) if value is None else value(theta)
        study.tell(trial.id, earned + rng.normal() / 4, also={"force": beside(theta, noise, rng)})


def beside(theta, noise, rng):
    return force(theta) + noise * rng.normal()


def share_broken(study):
    return np.mean([bool(trial.broken) for trial in study.trials() if trial.also])


# -- the search keeps them --


@pytest.mark.parametrize("seed", [0, 1])
def test_the_search_stays_within_a_limit_and_near_its_border(seed):
    study = searched(seed=seed, trials=60)
    free = searched(seed=seed, trials=60, limits=None)
    assert force(free.mean) > 60  # where returns lead to
    assert force(study.mean) < 50
    assert force(study.mean) > 35
    assert share_broken(study) < 0.15


def test_a_start_beyond_a_limit_leads_back():
    study = searched(mean=[3, 0], trials=40)
    assert force(study.mean) < 50
    assert not study.trials()[-1].broken


@pytest.mark.parametrize("level", [-1000.0, 1000.0])
def test_limits_are_kept_whatever_the_sign_of_returns(level):
    study = searched(value=lambda theta: level + 5 * float(theta[0]), trials=48)
    assert force(study.mean) < 50


def test_costs_keep_limits_too():
    returns = searched(trials=24)
    costs = recoup.Study.create(
        None,
        resolved({"dim": 2, "mean": [-2, 1], "limits": ["force<50"], "direction": "minimize"}),
    )
    for trial in returns.trials():
        assert costs.ask()[0].id == trial.id
        costs.tell(trial.id, -trial.value, also=trial.also)
    np.testing.assert_array_equal(costs.mean, returns.mean)


def test_a_limit_from_below_is_kept_as_one_from_above():
    one = searched(trials=24)
    other = recoup.Study.create(
        None, resolved({"dim": 2, "mean": [-2, 1], "limits": {"room": ">-50"}})
    )
    for trial in one.trials():
        other.ask()
        other.tell(trial.id, trial.value, also={"room": -trial.also["force"]})
    np.testing.assert_allclose(other.mean, one.mean, rtol=1e-9)


def test_a_limit_that_is_never_near_changes_no_bit():
    one, free = searched(limits=["force<1e6"]), searched(limits=None)
    np.testing.assert_array_equal(one.mean, free.mean)
    np.testing.assert_array_equal(one.std, free.std)


def test_what_is_kept_in_the_file_of_a_move_is_the_true_return():
    study = searched(trials=48)
    within = [t.value for t in study.trials() if not t.broken]
    for move in study.history():
        assert min(within) - 1 < move["objective"] < max(within) + 1


def test_moves_are_made_again_to_the_last_bit(tmp_path):
    path = tmp_path / "a.db"
    searched(path, trials=30).close()
    verdicts = check(path)
    assert all(one.sound for one in verdicts)
    assert "to the last bit" in verdicts[-1].words


def test_failed_trials_and_limits_go_together():
    study = searched(trials=0)
    for _ in range(48):
        trial = study.ask()[0]
        if trial.theta[1] > 1.5:
            study.tell(trial.id, failed="fell", also={"force": force(trial.theta)})
        else:
            study.tell(
                trial.id, -float((trial.theta[0] - 3) ** 2), also={"force": force(trial.theta)}
            )
    assert force(study.mean) < 50
    assert study.mean[1] < 1.5


def test_a_method_that_looks_at_returns_alone_takes_no_limits(tmp_path):
    with pytest.raises(InputError, match="looks at returns alone and keeps no limits"):
        recoup.Study.open(tmp_path / "a.db", dim=2, method="mis-pgpe-ob", limits=["force<50"])
    assert not (tmp_path / "a.db").exists()


# -- what is given and told --


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("force<50", Limit("force", "<", 50.0)),
        (" room >= 0.1 ", Limit("room", ">=", 0.1)),
        ("a.b_1<=-1e3", Limit("a.b_1", "<=", -1000.0)),
    ],
)
def test_a_limit_is_read_as_it_is_written(text, found):
    assert limit(text) == found
    assert limit(found.text) == found


def test_a_limit_is_broken_at_its_bound_unless_it_touches():
    assert [limit(f"x{side}1").is_broken(1.0) for side in ("<", "<=", ">", ">=")] == [1, 0, 1, 0]
    assert limit("x<1").is_broken(2)
    assert not limit("x>1").is_broken(2)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["force"], "written like force<50"),
        (["force<"], "written like force<50"),
        (["force<inf"], "written like force<50"),
        (["<50"], "needs a name"),
        (["1a<50"], "needs a name"),
        (["force<50", "force<=60"], "two limits on one side"),
        (["force<50", "force>60"], "no number is within both"),
        (7, "limits are a list"),
        ({"force": 50}, "written like force<50"),
    ],
)
def test_a_limit_that_makes_no_sense_gets_a_sentence(tmp_path, given, words):
    with pytest.raises(InputError, match=words):
        recoup.Study.open(tmp_path / "a.db", dim=2, limits=given)
    assert not (tmp_path / "a.db").exists()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [("kp<50", "kp is a parameter, which bounds keep within"), ("return>3", "itself has none")],
)
def test_what_is_asked_for_or_searched_by_has_no_limit(tmp_path, wrong, words):
    params = {"kp": (1, 200)}
    with pytest.raises(InputError, match=words):
        recoup.Study.open(tmp_path / "a.db", params=params, limits=[wrong])
    study = recoup.Study.open(tmp_path / "a.db", params=params)
    with study, pytest.raises(InputError, match=words):
        study.fork(tmp_path / "b.db", limits=[wrong])
    assert not (tmp_path / "b.db").exists()


@pytest.mark.parametrize("within", [0.2, 1.0, "much", float("nan")])
def test_within_is_a_probability(tmp_path, within):
    with pytest.raises(InputError, match="within must be"):
        recoup.Study.open(tmp_path / "a.db", dim=2, limits=["force<50"], within=within)
    for none in ({}, {"limits": {}}, {"limits": []}):
        with pytest.raises(InputError, match="there is none"):
            recoup.Study.open(tmp_path / "a.db", dim=2, within=0.9, **none)


def test_a_fork_may_have_no_limits_any_more(tmp_path):
    with searched(tmp_path / "a.db", trials=4, within=0.9) as study:
        with study.fork(tmp_path / "b.db", limits=[]) as fork:
            assert "limits" not in fork.settings
            assert "within" not in fork.settings
        with pytest.raises(InputError, match="there is none"):
            study.fork(tmp_path / "c.db", limits=[], within=0.8)


def test_all_ways_to_give_limits_mean_the_same(tmp_path):
    ways = (
        ["b>=1", "a<50"],
        ("a<50", "b>=1.0"),
        {"a": "<50", "b": [">=1"]},
    )
    for i, way in enumerate(ways):
        with recoup.Study.open(tmp_path / f"{i}.db", dim=2, limits=way) as study:
            assert study.settings["limits"] == ["a<50", "b>=1"]
            assert study.settings["within"] == 0.95
        for other in ways:
            recoup.Study.open(tmp_path / f"{i}.db", limits=other).close()
        with pytest.raises(InputError, match=r"was made with limits="):
            recoup.Study.open(tmp_path / f"{i}.db", limits=["a<51", "b>=1"])
        with pytest.raises(InputError, match=r"was made with within=0.95"):
            recoup.Study.open(tmp_path / f"{i}.db", within=0.9)


def test_a_return_without_a_number_that_has_a_limit_is_refused(tmp_path):
    with recoup.Study.open(tmp_path / "a.db", dim=2, limits=["force<50", "temp<80"]) as study:
        one, other, third = study.ask(3)
        for also in (None, {"force": 3}, {"froce": 3, "temp": 2}):
            with pytest.raises(InputError, match=r"this study keeps .* beside the result"):
                study.tell(one.id, 1.0, also=also)
        assert study.counts()["ok"] == 0
        study.tell(one.id, 1.0, also={"force": 41, "temp": None, "watts": 7})
        study.tell(other.id, failed="fell")
        study.tell(third.id, failed="fell", also={"force": 99})
        assert [dict(t.also) for t in study.trials()] == [
            {"force": 41.0, "watts": 7.0},
            {},
            {"force": 99.0},
        ]
        assert [t.broken for t in study.trials()] == [(), (), ("force<50",)]


@pytest.mark.parametrize(
    ("also", "words"),
    [
        ({"force": "hard"}, "force"),
        ({"force": float("inf")}, "finite"),
        ({"force": [1, 2]}, "one number for the whole trial"),
        ({"force": True}, "force"),
        ({"for ce": 1}, "needs a name"),
        ({3: 1}, "by name"),
        ([1], "by name"),
    ],
)
def test_a_number_that_is_none_gets_a_sentence_and_changes_nothing(tmp_path, also, words):
    with recoup.Study.open(tmp_path / "a.db", dim=2) as study:
        trial = study.ask()[0]
        with pytest.raises(InputError, match=words):
            study.tell(trial.id, 1.0, also=also)
        assert study.counts()["pending"] == 1


def test_numbers_are_kept_without_any_limit_and_move_nothing(tmp_path):
    one, other = (recoup.Study.open(tmp_path / f"{x}.db", dim=2) for x in "ab")
    for _ in range(12):
        a, b = one.ask()[0], other.ask()[0]
        one.tell(a.id, float(a.theta.sum()), also={"force": force(a.theta)})
        other.tell(b.id, float(b.theta.sum()))
    np.testing.assert_array_equal(one.mean, other.mean)
    assert one.trials()[0].also["force"] == force(one.trials()[0].theta)


def test_several_trials_are_told_with_a_list_of_numbers(tmp_path):
    with recoup.Study.open(tmp_path / "a.db", dim=2, limits=["force<50"]) as study:
        ids = [trial.id for trial in study.ask(2)]
        with pytest.raises(InputError, match="a mapping for each"):
            study.tell(ids, [1.0, 2.0], also={"force": 3})
        study.tell(ids, [1.0, 2.0], also=[{"force": 3}, {"force": 4}])
        assert [t.also["force"] for t in study.trials()] == [3, 4]


def test_the_same_told_again_is_accepted_and_another_number_is_not(tmp_path):
    with recoup.Study.open(tmp_path / "a.db", dim=2, limits=["force<50"]) as study:
        number = study.ask()[0].id
        study.tell(number, 1.0, also={"force": 41})
        study.tell(number, 1.0, also={"force": 41.0})
        with pytest.raises(InputError, match=r"force=41.0 before, and now 1.0, force=42"):
            study.tell(number, 1.0, also={"force": 42})


def test_of_a_trial_handed_out_again_the_second_number_is_kept(tmp_path):
    with recoup.Study.open(tmp_path / "a.db", dim=2, limits=["force<50"]) as study:
        trial = study.ask(lease=1e-6)[0]
        assert study.ask(lease=60)[0].id == trial.id
        study.tell(trial.id, 1.0, also={"force": 41})
        later = study.tell(trial.id, 1.0, also={"force": 60})
        assert "force 60 is kept" in later[0].words
        assert study.trials()[0].also["force"] == 41


# -- put right, carried over, saved --


def test_a_number_is_put_right_and_the_moves_are_made_again(tmp_path):
    path = tmp_path / "a.db"
    with searched(path, trials=24) as study:
        first = study.trials()[0]
        assert study.amend(1, also={"force": 90}, dry_run=True).moves
        assert study.trials()[0].also["force"] == first.also["force"]
        found = study.amend(1, also={"force": 90}, why="misread")
        assert f"force {first.also['force']:.6g} is now" in found.words
        assert (study.trials()[0].value, study.trials()[0].also["force"]) == (first.value, 90.0)
        study.amend(1, -7.0)  # its number stays
        assert (study.trials()[0].value, study.trials()[0].also["force"]) == (-7.0, 90.0)
        study.amend(2, failed="fell", also={"force": None})
        assert not study.trials()[1].also
        with pytest.raises(InputError, match="this study keeps force<50"):
            study.amend(2, 1.0)
        study.amend(3, drop="the sensor was loose")
        assert not study.trials()[2].also
        assert "became" in " ".join(entry.words for entry in study.log())
    assert all(one.sound for one in check(path))


def test_numbers_go_out_to_tables_and_come_back(tmp_path):
    with searched(tmp_path / "a.db", trials=12) as study:
        study.export(tmp_path / "a.csv")
        assert study.dataframe()["also_force"].tolist() == [t.also["force"] for t in study]
        assert "also_force" in study.dataframe(full=True)
        want = sorted((t.value, t.also["force"]) for t in study)
    for source in ("a.csv", "a.db"):
        name = source.replace(".", "-")
        with recoup.Study.open(tmp_path / f"of-{name}.db", dim=2, limits=["force<50"]) as other:
            program("study", "import", other.store.path, tmp_path / source)
            assert sorted((t.value, t.also["force"]) for t in other) == want


def test_a_table_without_numbers_and_one_from_arrays_come_in(tmp_path):
    with recoup.Study.open(tmp_path / "a.db", dim=2, limits=["force<50"]) as study:
        theta = np.random.default_rng(0).normal(size=(8, 2))
        study.import_samples(theta[:4], theta[:4, 0], 0.0, 1.0)
        assert not any(t.also for t in study)
        also = {"force": [1, 2, np.nan, 4]}
        study.import_samples(theta[4:], theta[4:, 0], 0.0, 1.0, also=also)
        assert [dict(t.also) for t in study][4:] == [
            {"force": 1.0},
            {"force": 2.0},
            {},
            {"force": 4.0},
        ]
        with pytest.raises(InputError, match="one number for each return"):
            study.import_samples(theta, theta[:, 0], 0.0, 2.0, also={"force": [1]})
        told(study, 8)


def test_a_fork_keeps_numbers_and_may_have_other_limits(tmp_path):
    with searched(tmp_path / "a.db", trials=20) as study:
        numbers = [t.also["force"] for t in study]
        for name, given, limits_then, within in (
            ("same", {}, ["force<50"], 0.95),
            ("other", {"limits": ["force<40"], "within": 0.9}, ["force<40"], 0.9),
            ("none", {"limits": ["none"]}, None, None),
        ):
            with study.fork(tmp_path / f"{name}.db", **given) as fork:
                assert fork.settings.get("limits") == limits_then
                assert fork.settings.get("within") == within
                assert [t.also["force"] for t in fork] == numbers
                told(fork, 10)
            assert all(one.sound for one in check(tmp_path / f"{name}.db"))
        with pytest.raises(InputError, match="keeps no limits"):
            study.fork(tmp_path / "pgpe.db", method="mis-pgpe-ob")


def test_a_limit_can_be_put_on_numbers_told_before(tmp_path):
    with recoup.Study.open(tmp_path / "a.db", dim=2, mean=[-2, 1]) as study:
        told(study, 16)
        with study.fork(tmp_path / "b.db", limits=["force<30"]) as fork:
            told(fork, 24)
            assert force(fork.mean) < 30


def test_a_damaged_file_gives_its_numbers_back(tmp_path):
    path = tmp_path / "a.db"
    with searched(path, trials=20) as study:
        study.amend(4, also={"force": 77})
        want = {t.id: dict(t.also) for t in study}
    content = bytearray(path.read_bytes())
    content[:100] = bytes(100)  # its header
    path.write_bytes(content)
    found = recover(path, tmp_path / "b.db")
    assert "no number for a limit" not in found.words
    with recoup.Study.open(tmp_path / "b.db") as saved:
        assert {t.id: dict(t.also) for t in saved} == want
        assert saved.opened.limits == limits.limits_of({"limits": ["force<50"], "within": 0.95})
    assert all(one.sound for one in check(tmp_path / "b.db"))


def test_a_number_that_is_lost_is_missed(tmp_path):
    path = tmp_path / "a.db"
    searched(path, trials=8).close()
    file = StudyFile.open(path)
    with file.writing():
        file.delete("also", "WHERE id = 3")
    file.close()
    assert "1 result has no number for a limit" in recover(path, tmp_path / "b.db").words


KILLED = """
import recoup, sys
study = recoup.Study.open(sys.argv[1], dim=2, limits=["force<50"])
while True:
    trial = study.ask()[0]
    study.tell(trial.id, 1.0 + trial.id, also={"force": 10.0 + trial.id})
    print(trial.id, flush=True)
"""


def test_what_was_acknowledged_is_there_after_a_kill(tmp_path):
    path = tmp_path / "a.db"
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE, text=True
    ) as process:
        last = 0
        for line in process.stdout:
            last = int(line)
            if last >= 11:
                os.kill(process.pid, signal.SIGKILL)
                break
    with recoup.Study.open(path) as study:
        kept = {t.id: dict(t.also) for t in study if t.status == "ok"}
    assert all(kept[i] == {"force": 10.0 + i} for i in range(1, last + 1))
    assert all(one.sound for one in check(path))


# -- what is said --


def test_recommend_says_how_surely_a_limit_is_kept():
    study = searched(trials=60)
    (said,) = study.recommend().limits
    assert said.limit == "force<50"
    assert said.low <= said.chance <= said.high
    assert said.chance > 0.9
    assert said.value == pytest.approx(force(study.mean), abs=2)
    assert said.value_low < said.value < said.value_high
    assert "keeps force<50 with a chance of" in study.recommend().words


def test_no_chance_is_said_to_be_certain():
    """A model of some forty results knows no chance to a thousandth."""
    said = [sentences.percent(p) for p in (0.0, 0.0004, 0.0312, 0.95, 0.9996, 1.0)]
    assert said == [*["less than 0.1%"] * 2, "3.1%", "95%", *["more than 99.9%"] * 2]
    assert "94.9%, below the 95%" in sentences.breaks_too_often("force<50", 0.94999, 0.95)


def test_nothing_is_deployed_that_breaks_a_limit_too_often():
    study = searched(trials=12, mean=[3, 0], batch=40)
    found = study.recommend()
    assert found.limits[0].chance < 0.05
    assert found.words.startswith("Do not deploy the mean policy: a rollout of it keeps force")
    assert (found.verdict, "sure enough to keep force<50" in found.words) == ("go on", True)


def test_before_enough_is_told_nothing_is_deployed():
    found = searched(trials=4).recommend()
    assert found.words.startswith("Do not deploy the mean policy yet: whether it keeps force")
    assert np.isnan(found.limits[0].chance)


def test_a_number_that_never_varies_has_a_chance_too():
    study = searched(trials=0)
    for _ in range(12):
        trial = study.ask()[0]
        study.tell(trial.id, float(trial.theta.sum()), also={"force": 41})
    (said,) = study.recommend().limits
    assert 0.6 < said.low < said.chance < 1
    assert said.value == 41


def test_predict_gives_the_number_and_the_chance():
    study = searched(trials=60)
    here = study.predict([0.0, 0.0]).limits[0]
    beyond = study.predict([1.6, 0.0])
    assert here.value == pytest.approx(40, abs=3)
    assert here.chance > 0.9
    assert beyond.limits[0].chance < 0.5
    assert json.loads(json.dumps(beyond.plain()))["limits"][0]["limit"] == "force<50"


def test_the_best_trial_is_none_that_broke_a_limit():
    study = searched(trials=0)
    for value, number in ((5.0, 60.0), (3.0, 40.0), (1.0, 10.0)):
        study.tell(study.ask()[0].id, value, also={"force": number})
    assert study.best[1] == 3.0
    alone = searched(trials=0)
    alone.tell(alone.ask()[0].id, 5.0, also={"force": 60.0})
    assert alone.best is None


def test_a_failed_trial_beyond_a_limit_is_no_return_that_is_left_out(tmp_path):
    with searched(tmp_path / "s.db", trials=0) as study:
        for value in (1.0, 2.0, 3.0):
            study.tell(study.ask()[0].id, value, also={"force": 10.0})
        study.tell(study.ask()[0].id, 9.0, also={"force": 60.0})
        study.tell(study.ask()[0].id, failed="bent", also={"force": 99.0})
        assert study.diagnostics()["broken"] == 1
        assert study.diagnostics()["limits"][0]["broken"] == 2
    want = "the best of 3 noisy returns: expect less of it (1 that broke a limit left out)"
    for command in ("best", "show"):
        printed = " ".join(program("study", command, tmp_path / "s.db").stdout.split())
        assert want in printed


def test_commands_take_and_show_numbers(tmp_path):
    path = tmp_path / "a.db"
    made = program(
        "study", "new", path, "--param", "kp=1:9", "--limit", "force<50", "--limit", "t<=8"
    )
    assert "--also force=NUMBER" in made.stdout
    program("study", "ask", path, "-n", 4)
    refused = program("study", "tell", path, 1, -3.2)
    assert refused.returncode
    assert "tell force and t beside" in " ".join(refused.stderr.split())
    said = program("study", "tell", path, 1, -3.2, "--also", "force=61", "--also", "t=8")
    assert "Trial 1 broke force<50" in said.stdout
    table = tmp_path / "results.csv"
    table.write_text("id,return,failed,also_force,also_t\n2,-1,,41,3\n3,,fell,,\n4,-2,,nan,4\n")
    assert program("study", "tell", path, "--file", table).returncode == 0
    amended = program("study", "amend", path, 1, "--also", "force=16")
    assert "force 16" in amended.stdout
    rows = json.loads(program("study", "trials", path, "--json").stdout)
    assert [row.get("also") for row in rows] == [
        {"t": 4.0},
        None,
        {"force": 41.0, "t": 3.0},
        {"force": 16.0, "t": 8.0},
    ]
    shown = program("study", "show", path).stdout
    assert "force<50 (broken by 0 of 2 results)" in " ".join(shown.split())
    forked = program("study", "fork", path, tmp_path / "b.db", "--limit", "none")
    assert forked.returncode == 0
    twice = program("study", "tell", path, 2, -1, "--also", "force=1", "--also", "force=2")
    assert "given twice" in twice.stderr


def test_a_limit_of_the_settings_is_one_of_the_rule():
    found = limits.Limits((limit("b>=1"), limit("a<2"), limit("b<9")), 0.9).kept()
    assert found.bounds == (
        Bound(0, -1.0, 1.0, True),
        Bound(1, 1.0, 2.0, False),
        Bound(0, 1.0, 9.0, False),
    )
    assert limits.Limits().kept() is None


def test_where_each_is_best_is_said_without_limits(tmp_path):
    """The best return may lie beyond a limit, and the column would point there without a word."""
    path = tmp_path / "press.db"
    searched(path, trials=40).close()
    done = program("study", "recommend", str(path))
    assert "while the others stay, for the return alone: force<50 left aside." in done.stdout
    page = tmp_path / "press.html"
    program("report", str(path), "--out", str(page))
    assert "for the return alone: force&lt;50 left aside" in page.read_text()


def test_where_nothing_ever_failed_no_chance_of_failing_is_said():
    found = searched(trials=12, mean=[3, 0], batch=40).recommend()
    assert found.words.startswith("Do not deploy the mean policy: a rollout of it keeps force")
    assert "fails" not in found.words


def test_a_chance_is_one_number_in_both_sentences_about_it():
    chance, number = (0.92789, 0.3, 0.99999), ("force", 40.0, 30.0, 55.0)
    assert "a chance of 92.8%, below" in sentences.breaks_too_often("force<50", chance[0], 0.95)
    said = sentences.within_limit("force<50", chance, number, "30 results")
    assert "a chance of 92.8% (95 %: 30% to more than 99.9%)" in said
    sure = sentences.within_limit("force<50", (0.9999, 0.9995, 1.0), number, "30 results")
    assert "more than 99.9% (95 %: more than 99.9%)" in sure

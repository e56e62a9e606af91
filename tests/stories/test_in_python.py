"""A study as people expect it in Python: how it shows itself, its trials, its mean policy."""

import csv
import json
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from html.parser import HTMLParser

import numpy as np
import pytest
from sentences import CLOSED

from recoup import Study
from recoup.checks import InputError
from recoup.study.reader.records import Trial, TrialResult
from recoup.study.voice.evaluation import Evaluation

pytestmark = pytest.mark.usefixtures("few_rehearsals")

PARAMS = {"stiffness": (50, 2000, "log"), "damping": (0, 1)}
NASTY = '<img src=x onerror="owned()">'


class Tags(HTMLParser):
    """The tags and the text of a piece of HTML."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.text = set(), ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)

    def handle_data(self, data):
        self.text += f"{data} "


def shown(thing):
    found = Tags(thing._repr_html_())
    assert found.tags <= {"div", "b", "table", "tr", "th", "td"}  # nothing that a text brought in
    return found.text


@pytest.fixture
def study(tmp_path):
    """Three ok, one of them of several episodes, one failed, one of one's own, one that waits."""
    with Study.open(tmp_path / "robot.db", params=PARAMS, batch=3) as made:
        trials = made.ask(4)
        made.tell(trials[0].id, -4.0)
        made.tell(trials[1].id, failed=f"slipped {NASTY}")
        made.tell(trials[2].id, values=[-1.0, -2.0, -3.0])
        made.tell(trials[3].id, -5.0)
        made.enqueue({"stiffness": 400, "damping": 0.7})
        made.tell(made.ask()[0].id, -0.5)
        made.ask()
        yield made


class TestHowThingsShowThemselves:
    def test_a_study_in_a_line(self, study, tmp_path):
        path = str(tmp_path / "robot.db")
        assert repr(study) == f"Study({path!r}, recoup, 2 parameters, 5 results, 1 move)"

    def test_a_closed_study_says_that_it_is(self, study, tmp_path):
        study.close()
        path = str(tmp_path / "robot.db")
        assert repr(study) == f"Study({path!r}, recoup, 2 parameters, closed)"
        assert "closed" in shown(study)

    def test_a_study_in_a_notebook(self, study):
        text = shown(study)
        assert "1 pending, 4 ok, 1 failed" in text
        assert "stiffness" in text
        assert f"{study.mean_policy['stiffness']:.5g}" in text

    def test_names_are_escaped(self, tmp_path):
        with Study.open(tmp_path / "<i>.db", params={NASTY: (0, 1), "b": None}) as made:
            (trial,) = made.ask()
            made.tell(trial.id, failed=NASTY)
            for thing in (made, trial, made.trials()[0]):
                assert NASTY in shown(thing)

    def test_a_trial_has_names_and_five_digits(self):
        trial = Trial(3, np.array([352.9234567, 0.5]), 7, names=("stiffness", "damping"))
        assert repr(trial) == "Trial(3, stiffness=352.92, damping=0.5, seed=7)"
        assert repr(Trial(4, np.arange(2.0), 7, "mean")) == "Trial(4, mean, theta=[0, 1], seed=7)"
        assert "... 88 more" in repr(Trial(5, np.zeros(100), 7))
        assert "352.92" in shown(trial)
        assert "88 more" in shown(Trial(5, np.zeros(100), 7))

    def test_a_trial_is_the_tuple_that_it_was(self):
        theta = np.zeros(1)
        was = (1, theta, 2, "drawn", None, (), ())
        assert Trial(1, theta, 2) == Trial(1, theta, 2) == (*was, ())  # and the choices there are
        assert Trial(1, theta, 2) != Trial(2, theta, 2)

    def test_a_result_says_what_came_of_it(self, study):
        ok, failed, several, *_, waits = map(repr, study.trials())
        assert ok.startswith("TrialResult(1: -4, stiffness=")
        assert failed.startswith("TrialResult(2: failed (slipped <img")
        assert several.startswith("TrialResult(3: -2, ")
        assert waits.startswith("TrialResult(6: pending, ")
        assert "-2 ± 0.58 of 3" in shown(study.trials()[2])

    def test_an_evaluation(self):
        known = Evaluation(-2.28, 0.3, 30.04, 0.2, 47, f"rests on {NASTY}", -3.03, -1.54, 0.0, 0.0)
        text = "-2.28 (95 %: -3.03 to -1.54)"
        assert repr(known) == f"Evaluation({text}; 47 results that count for 30.0)"
        assert text in shown(known)
        assert NASTY in shown(known)
        assert known.interval == (-3.03, -1.54)
        nothing = known._replace(mean=np.nan, low=np.nan, high=np.nan, pareto_k=np.nan)
        assert repr(nothing) == "Evaluation(unknown; 47 results that count for 30.0)"
        assert "k-hat" not in shown(nothing)
        assert "without an interval" in repr(known._replace(low=np.nan))


class TestItsTrials:
    def test_each_with_what_came_of_it(self, study):
        trials = study.trials()
        assert [t.id for t in trials] == [1, 2, 3, 4, 5, 6]
        assert [t.status for t in trials] == ["ok", "failed", "ok", "ok", "ok", "pending"]
        assert [t.kind for t in trials] == ["drawn"] * 4 + ["own", "drawn"]
        assert [t.value for t in trials] == [-4.0, None, -2.0, -5.0, -0.5, None]
        assert (trials[2].episodes, trials[2].stderr) == (3, pytest.approx(1 / 3**0.5))
        assert trials[1].note == f"slipped {NASTY}"
        assert [t.proposal for t in trials] == [0, 0, 0, 0, None, 1]
        assert trials[4].params == pytest.approx({"stiffness": 400, "damping": 0.7})
        np.testing.assert_array_equal(trials[5].theta, study.pending()[0].theta)
        assert trials[5].seed == study.pending()[0].seed
        assert trials[5].told_at is None
        assert trials[0].asked_at <= trials[0].told_at

    def test_a_study_is_a_collection_of_them(self, study):
        assert len(study) == 6
        assert [trial.id for trial in study] == [1, 2, 3, 4, 5, 6]
        assert all(isinstance(trial, TrialResult) for trial in study)

    def test_an_empty_one_is_no_less_a_study(self, tmp_path):
        with Study.open(tmp_path / "s.db", dim=2) as made:
            assert (len(made), made.trials(), list(made)) == (0, [], [])
            assert made

    def test_without_names_there_are_no_params(self, tmp_path):
        with Study.open(tmp_path / "s.db", dim=2) as made:
            made.ask()
            assert made.trials()[0].params == {}


class TestItsTable:
    def test_is_the_one_that_is_exported(self, study, tmp_path):
        pandas = pytest.importorskip("pandas")
        table = study.dataframe(full=True)
        study.export(tmp_path / "t.csv")
        with (tmp_path / "t.csv").open(newline="") as file:
            heads, *rows = csv.reader(file)
        assert list(table.columns) == heads
        assert len(table) == len(rows) == 6
        read = pandas.read_csv(tmp_path / "t.csv")
        for name in ("id", "return", "stderr", "stiffness", "mean_damping", "told_at"):
            np.testing.assert_array_equal(table[name].to_numpy(float), read[name].to_numpy(float))
        assert table["episodes"].dtype == table["proposal"].dtype == "Int64"
        assert table["id"].dtype == table["seed"].dtype == "int64"
        assert table["status"].tolist() == ["ok", "failed", "ok", "ok", "ok", "pending"]

    def test_of_an_empty_study_has_its_columns(self, tmp_path):
        pytest.importorskip("pandas")
        with Study.open(tmp_path / "s.db", dim=1) as made:
            assert list(made.dataframe(full=True).columns)[:2] == ["id", "kind"]
            assert list(made.dataframe().columns)[:3] == ["id", "status", "kind"]
            assert len(made.dataframe()) == 0

    def test_is_short_unless_all_of_it_is_wanted(self, study):
        pandas = pytest.importorskip("pandas")
        study.note("oil on the table", 3)
        table = study.dataframe()
        names = "id status kind return stderr episodes stiffness damping asked told note"
        assert list(table.columns) == names.split()
        assert table["return"].tolist()[:3] == pytest.approx([-4.0, np.nan, -2.0], nan_ok=True)
        assert isinstance(table["told"].dtype, pandas.DatetimeTZDtype)
        seconds = [study.trials()[0].told_at, study.trials()[0].asked_at]
        found = [table[name][0].timestamp() for name in ("told", "asked")]
        assert found == pytest.approx(seconds, abs=1e-3)
        assert pandas.isna(table["told"][5])
        assert table["note"][1] == f"slipped {NASTY}"
        assert table["note"][2] == "oil on the table"
        assert table["episodes"].dtype == "Int64"
        assert len(study.dataframe(full=True).columns) > 2 * len(table.columns)

    def test_a_parameter_may_be_called_told(self, tmp_path):
        pytest.importorskip("pandas")
        with Study.open(tmp_path / "s.db", params={"told": (0, 1)}) as made:
            made.ask()
            assert list(made.dataframe().columns)[-4:] == ["told", "asked", "told_at", "note"]

    def test_without_pandas_one_sentence_says_what_to_install(self, study, monkeypatch):
        monkeypatch.setitem(sys.modules, "pandas", None)
        with pytest.raises(InputError, match="needs pandas: pip install pandas"):
            study.dataframe()


class TestTheMeanPolicy:
    def test_is_a_mapping_of_names(self, study):
        policy = study.mean_policy
        assert isinstance(policy, dict)
        assert list(policy) == ["stiffness", "damping"]
        assert json.loads(json.dumps(policy)) == policy
        assert policy == dict(zip(study.names, study.opened.in_units(study.mean), strict=True))
        assert all(type(value) is float for value in policy.values())

    def test_and_an_array_for_numpy(self, study):
        policy, values = study.mean_policy, study.opened.in_units(study.mean)
        np.testing.assert_array_equal(policy, values)
        np.testing.assert_array_equal(np.asarray(policy, np.float32), values.astype(np.float32))
        np.testing.assert_array_equal(policy - values, [0, 0])
        assert np.shape(policy) == (2,)

    def test_is_taken_wherever_a_theta_is(self, study):
        found = study.evaluate(mean=study.mean_policy)
        assert found.ess == pytest.approx(study.evaluate().ess, rel=1e-9)
        study.ask()
        study.enqueue(study.mean_policy)
        np.testing.assert_allclose(study.ask()[0].theta, study.mean_policy)

    def test_without_names_is_an_array(self, tmp_path):
        with Study.open(tmp_path / "s.db", dim=2, mean=[1.0, 2.0]) as made:
            assert isinstance(made.mean_policy, np.ndarray)
            assert made.mean_policy.tolist() == [1, 2]


VERBS = {
    "ask": lambda study: study.ask(),
    "tell": lambda study: study.tell(1, 1.0),
    "enqueue": lambda study: study.enqueue([0.0, 1.0]),
    "amend": lambda study: study.amend(1, 2.0),
    "cancel": lambda study: study.cancel(2),
    "note": lambda study: study.note("x"),
    "notes": lambda study: study.notes(),
    "title": lambda study: study.title,
    "log": lambda study: study.log(),
    "queue": lambda study: study.queue(),
    "pending": lambda study: study.pending(),
    "waiting": lambda study: study.waiting(),
    "told_later": lambda study: study.told_later(),
    "counts": lambda study: study.counts(),
    "trials": lambda study: study.trials(),
    "mean": lambda study: study.mean,
    "best": lambda study: study.best,
    "history": lambda study: study.history(),
    "diagnostics": lambda study: study.diagnostics(),
    "evaluate": lambda study: study.evaluate(),
    "recommend": lambda study: study.recommend(),
    "replay": lambda study: study.replay("cem"),
    "fork": lambda study: study.fork(study.store.path.with_name("fork.db")),
    "export": lambda study: study.export(study.store.path.with_name("t.csv")),
    "plot": lambda study: study.plot(study.store.path.with_name("p.png")),
    "length": len,
}


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
def test_a_study_that_was_closed_says_so(tmp_path, verb):
    with Study.open(tmp_path / "s.db", dim=2, batch=4) as study:
        study.tell(study.ask(2)[0].id, 1.0)
    with pytest.raises(InputError, match=CLOSED):
        verb(study)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["s.db"]


@pytest.mark.parametrize("verb", {**VERBS, "close": Study.close}.values(), ids=[*VERBS, "close"])
def test_a_study_of_another_thread_answers_as_it_does_here(tmp_path, verb):
    def said(of):
        try:
            return str(of())
        except InputError as wrong:
            return str(wrong)

    answers = []
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        with Study.open(tmp_path / name / "s.db", dim=2, batch=4) as study:
            study.tell(study.ask(2)[0].id, 1.0)
            with ThreadPoolExecutor(1) as pool:
                ask = pool.submit(said, lambda: verb(study)).result if name == "there" else None
                found = said(lambda: verb(study)) if ask is None else ask(timeout=600)
        answers.append(re.sub(r"here|there|0x\w+|at=[0-9.]+|\d{10}\.\d+|\d+\.\d{5,}", "", found))
    assert answers[0] == answers[1]


def test_threads_that_each_open_a_study_share_it(tmp_path):
    path = tmp_path / "s.db"
    Study.open(path, dim=2, batch=4).close()

    def work(number):
        with Study.open(path) as study:
            for _ in range(3):
                (trial,) = study.ask()
                study.tell(trial.id, float(trial.theta.sum()))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4), timeout=120))
    with Study.open(path) as study:
        assert study.counts() == {"pending": 0, "ok": 12, "failed": 0}
        assert len(study.history()) == 3

"""Where parameters are best, of a study whose mean stands at a bound."""

import numpy as np
import pytest

import recoup
from recoup.core.worth import Interval
from recoup.study.voice import best
from recoup.study.voice.landscape import landscape, results_of


@pytest.fixture
def study(tmp_path):
    """A study that stands beyond the upper bound of one parameter, the lower one of the other."""
    a = {"low": 0.2, "high": 0.7, "beyond": 0.05}
    b = {"low": 1.0, "high": 100.0, "scale": "log", "beyond": 0.05}
    params, how = {"a": a, "b": b, "c": None}, {"mean": {"a": 0.7, "b": 1.0}, "std": 0.5}
    with recoup.Study.open(tmp_path / "a.db", params=params, batch=20, **how) as study:
        rng = np.random.default_rng(0)
        for trial in study.ask(19):
            study.tell(trial.id, trial.params["a"] - trial.params["b"] + rng.normal())
        yield study.opened


def found(study, monkeypatch, ranges):
    """What is said of each parameter, best in `ranges` of standard deviations from the mean."""
    monkeypatch.setattr(best, "_ranges", lambda *_: [Interval(*ends) for ends in ranges])
    with study.store.reading():
        results = results_of(study)
        return best.best_of_each(study, results, landscape(study, results))


def test_all_of_what_lies_beyond_a_bound_is_that_bound(study, monkeypatch):
    said = found(study, monkeypatch, [(0.5, np.inf), (-np.inf, -0.5), (0.5, np.inf)])
    assert said.low.tolist() == [0.7, 1.0, 0.25]
    assert said.high.tolist() == [0.7, 1.0, np.inf]
    assert said.climbs == ["c"]  # the mean stands at both bounds already


def test_farther_inside_it_may_be_better(study, monkeypatch):
    said = found(study, monkeypatch, [(-np.inf, -0.5), (0.5, 2.0), (-1.0, 1.0)])
    assert said.low[0] == -np.inf
    assert 0.2 < said.high[0] < 0.7
    assert 1.0 < said.low[1] < said.high[1]
    assert said.climbs == ["a", "b"]

"""What is suggested keeps the limits, as what is recommended does."""

import numpy as np
import pytest

import recoup
from recoup.study.reader.settings import resolved


def pushed(force, seed, results=40):
    """A study whose returns rise with x, as its force does."""
    given = {"params": {"x": (0, 1), "y": (0, 1)}, "limits": ["force<50"], "seed": seed}
    study, rng = recoup.Study.create(None, resolved(given)), np.random.default_rng(seed)
    for _ in range(results):
        (trial,) = study.ask()
        x, y = trial.params.values()
        earned = -((x - 0.9) ** 2) - (y - 0.5) ** 2 + 0.02 * rng.normal()
        study.tell(trial.id, float(earned), also={"force": force(x) + rng.normal()})
    return study


@pytest.mark.parametrize("seed", range(4))
def test_what_keeps_a_limit_less_surely_than_was_asked_for_is_not_suggested(seed):
    found = pushed(lambda x: 100 * x, seed).suggest().prediction
    assert found.params["x"] < 0.5
    (row,) = found.limits
    assert row.chance >= 0.95


@pytest.mark.parametrize("results", [9, 40])
def test_where_nothing_keeps_the_limits_nothing_is_suggested(results):
    found = pushed(lambda x: 60 + x, 0, results).suggest()
    assert found.prediction is None
    said = "nothing is known to keep force<50 with a chance of 95%."
    assert found.words == f"Nothing can be suggested: {said}"


def test_where_nothing_says_whether_a_limit_is_kept_nothing_is_suggested():
    found = pushed(lambda x: np.nan, 0, 12).suggest()
    assert "nothing is known to keep force<50" in found.words

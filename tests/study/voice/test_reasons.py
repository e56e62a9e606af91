"""Why a step was made, in words."""

import re

import numpy as np
import pytest

from recoup.study.study import Study
from recoup.study.voice.reasons import reasons

NOTES = {
    "share": 0.62,
    "bounded": False,
    "widened": False,
    "flat": False,
    "noise": 0.4,
    "signal": 0.5,
    "evident": True,
    "length": 0.8,
    "spread": -0.05,
    "gain": 1.5,
    "gain_stderr": 0.5,
    "modelled": 60,
    "old": 0.3,
    "bold": 0.0,
    "pairs": 0.0,
    "repeat": False,
}
BOLD = {"share": 0.3, "bold": 0.4, "pairs": 4.0}


@pytest.mark.parametrize(
    ("change", "ess", "words"),
    [
        ({}, 12.0, "62% on a model of the newest 60 results, and to 38% on weights, which give"),
        ({}, 12.0, "give earlier batches 30% of the say: all count for 12 fresh results."),
        ({"old": 0.05}, 5.0, "next to no say"),
        ({"old": 0.0}, 0.0, "38% on weights, for which no result is near enough: that part moves"),
        ({"share": 1.0}, 5.0, "to 100% on a model of the newest 60 results."),
        ({}, 5.0, "0.8 standard deviations: the model has its top nearby. The spread shrank by 5%"),
        ({"bounded": True}, 5.0, "as far as the model is trusted"),
        ({"bounded": True, "share": 0.1}, 5.0, "0.8 standard deviations, mostly by the weights."),
        (
            {"gain": np.nan},
            5.0,
            "The model of that step left 40% of the variance of returns unexplained, among draws "
            "of the distribution that moved.",
        ),
        ({"widened": True, "spread": 0.1}, 5.0, "grew by 11%: returns rise on beyond it"),
        ({"widened": True, "spread": 0.1, "evident": False}, 5.0, "nothing stands out from noise"),
        ({"spread": 0.001}, 5.0, "The spread stayed."),
        ({}, 5.0, "The spread shrank by 5%. The model of that step left 40% of the"),
        (
            {"evident": False, "noise": 0.02},
            5.0,
            "It is not sure yet that returns depend on theta. If they do, the model of that step "
            "left 2% of the",
        ),
        (
            {"evident": False, "noise": 0.6},
            5.0,
            "Nothing stood out from noise: returns did not depend on theta visibly; the model",
        ),
        (BOLD, 5.0, "to 30% on a model of the newest 60 results, and to 30% on weights, which"),
        (BOLD, 5.0, "results. 40% of the step is fitted to the best results alone: of what"),
        (BOLD, 5.0, "little is noise (4 candidates tried twice)."),
        ({**BOLD, "pairs": 1.0}, 5.0, "(1 candidate tried twice)."),
        (BOLD, 5.0, "0.8 standard deviations, mostly by the best results."),
        ({**BOLD, "bold": 0.2}, 5.0, "0.8 standard deviations, mostly by the weights."),
        ({"share": 0.2, "bold": 0.8}, 5.0, "newest 60 results. 80% of the step is fitted"),
        ({"repeat": True}, 5.0, "The next batch tries one candidate twice, to tell noise from"),
        ({"flat": True, "repeat": True}, 5.0, "The next batch tries one candidate twice"),
        ({"flat": True, "spread": 0.2}, 5.0, "stayed where it is and widened by 22%"),
    ],
)
def test_each_cause_has_its_words(change, ess, words):
    assert words in " ".join(reasons({**NOTES, **change}, ess))


def test_nothing_is_said_of_what_is_not_there():
    words = " ".join(reasons({**NOTES, "bold": 0.004}, 5.0))
    assert "best results" not in words
    assert "twice" not in words


def test_a_study_says_why_it_moved(tmp_path):
    rng = np.random.default_rng(0)
    with Study.open(tmp_path / "s.db", dim=2, method="recoup", seed=1) as study:
        for _ in range(5):
            for trial in study.ask(4):
                study.tell(trial.id, -float(np.sum((trial.theta - 1) ** 2)) + 0.1 * rng.normal())
        said = " ".join(study.diagnostics()["advice"])
        notes = study.history()[-1]["notes"]
    assert f"{notes['share']:.0%} on a model of the newest 20 results" in said
    assert set(notes) == set(NOTES)


def test_equal_returns_widen_and_say_so(tmp_path):
    with Study.open(tmp_path / "s.db", dim=2, method="recoup", seed=1) as study:
        before = study.std
        for trial in study.ask(4):
            study.tell(trial.id, 7.0)
        np.testing.assert_allclose(study.std, before * np.exp(0.2))
        assert "widened by 22%" in " ".join(study.diagnostics()["advice"])


@pytest.mark.parametrize("gain", [np.nan, -1.0, 0.1, 5.0])
def test_it_is_of_the_past_alone(gain):
    """What is to come is forecast once, by `recommend`: here stands no second number."""
    for evident in (True, False):
        words = " ".join(reasons({**NOTES, "gain": gain, "evident": evident}, 5.0)).lower()
        assert not re.search(r"expect|should|will|±|more there is|cannot be told", words)

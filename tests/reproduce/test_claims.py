"""The rule that judges the paper's claims, on data whose truth is known."""

import json

import numpy as np
import pytest

from recoup.reproduce.claims import FAILS, HOLDS, OPEN, Claim, Contrast, above, contrast


def runs(effect, count=400, seed=0):
    return effect + np.random.default_rng(seed).normal(size=count)


def claim(*contrasts):
    return Claim("id", "S1", "It is so.", contrasts)


@pytest.mark.parametrize(("effect", "verdict"), [(0.5, HOLDS), (-0.5, FAILS), (0.0, OPEN)])
def test_a_true_a_false_and_an_undecidable_claim(effect, verdict):
    found = contrast("difference", runs(effect))
    assert found.verdict == verdict
    assert found.effect == pytest.approx(effect, abs=4 / 20)
    assert found.stderr == pytest.approx(1 / 20, rel=0.15)
    assert claim(found).verdict == verdict


def test_the_rule_is_two_standard_errors():
    assert Contrast("", 2.1, 1.0, 10).verdict == HOLDS
    assert Contrast("", 1.9, 1.0, 10).verdict == OPEN
    assert Contrast("", -1.9, 1.0, 10).verdict == OPEN
    assert Contrast("", -2.1, 1.0, 10).verdict == FAILS


def test_few_runs_decide_nothing():
    assert contrast("", [1.0, 1.1, 1.2, 1.1]).verdict == OPEN
    assert contrast("", [1.0, 1.1, 1.2, 1.1, 1.0]).verdict == HOLDS
    assert contrast("", [1.0]).verdict == OPEN


def test_a_number_that_is_none_decides_nothing():
    assert Contrast("", float("nan"), 0.1, 10).verdict == OPEN
    assert Contrast("", 3.0, float("nan"), 10).verdict == OPEN


def test_a_claim_needs_all_its_contrasts_and_falls_with_one():
    yes, no, open_ = (contrast("", runs(effect)) for effect in (1.0, -1.0, 0.0))
    assert claim(yes, yes).verdict == HOLDS
    assert claim(yes, open_).verdict == OPEN
    assert claim(yes, open_, no).verdict == FAILS


def test_what_runs_share_cancels():
    shared = 100 * np.random.default_rng(1).normal(size=50)
    values = {"a": shared + 1.0, "b": shared + 0.1 * runs(0, 50)}
    (found,) = above(values, "a", ["b"], "return")
    assert found.what == "a minus b, return"
    assert found.verdict == HOLDS
    assert found.stderr < 0.03  # unpaired it would be 20


def test_the_record_holds_the_computed_verdicts_and_the_least_favourable_contrast():
    record = claim(contrast("wide", runs(1.0)), contrast("narrow", runs(0.0))).as_record()
    record = json.loads(json.dumps(record))
    assert record["verdict"] == OPEN
    assert [c["verdict"] for c in record["contrasts"]] == [HOLDS, OPEN]
    assert record["contrasts"][record["least"]]["what"] == "narrow"
    assert record["contrasts"][0]["runs"] == 400


def test_a_contrast_without_spread_is_judged_by_its_sign():
    bad, good = Contrast("bad", -0.5, 0.0, 20), Contrast("good", 3.0, 1.0, 20)
    assert claim(good, bad).verdict == FAILS
    assert claim(good, bad).least is bad
    assert json.dumps(contrast("", [1.0])._asdict(), allow_nan=False)

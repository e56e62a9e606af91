"""The rule that judges the paper's claims, on data whose truth is known."""

import json

import numpy as np
import pytest
from scipy import stats

from recoup.reproduce.claims import (
    FAILS,
    HOLDS,
    OPEN,
    Claim,
    Contrast,
    above,
    certain,
    contrast,
    corrected,
    holm,
)


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


def test_the_rule_is_a_t_test_at_five_percent():
    """The quantile of Student's distribution with 9 degrees of freedom is 2.262."""
    assert Contrast("", 2.27, 1.0, 10).verdict == HOLDS
    assert Contrast("", 2.25, 1.0, 10).verdict == OPEN
    assert Contrast("", -2.25, 1.0, 10).verdict == OPEN
    assert Contrast("", -2.27, 1.0, 10).verdict == FAILS
    values = runs(0.1, 30)
    assert contrast("", values).p == pytest.approx(stats.ttest_1samp(values, 0).pvalue)


def test_without_spread_a_sign_test_decides():
    for count in (5, 6, 20):
        wanted = stats.binomtest(count, count, 0.5).pvalue
        assert contrast("", np.full(count, 0.1)).p == pytest.approx(wanted)
    assert contrast("", np.full(5, 0.1)).verdict == OPEN
    assert contrast("", np.full(6, 0.1)).verdict == HOLDS
    assert contrast("", np.full(6, -0.1)).verdict == FAILS
    assert contrast("", np.zeros(20)).verdict == OPEN


def test_what_is_computed_without_chance_is_decided():
    assert certain("", 1e-9).verdict == HOLDS
    assert certain("", -1e-9).verdict == FAILS
    assert certain("", 1e-9).p == 0


def test_a_contrast_that_is_too_noisy_for_its_greatest_value_cannot_hold():
    """3.31 +- 4.4 of a number that is at most 0.01; more than two errors would not be better."""
    assert Contrast("", 3.31, 4.4, 20, most=0.01).verdict == OPEN
    loud = Contrast("", 30.0, 4.4, 20, most=0.01)
    assert loud.uninformative
    assert loud.verdict == OPEN
    assert claim(loud).p == 1
    assert Contrast("", -30.0, 4.4, 20, most=0.01).verdict == FAILS  # far from 0 is far from small
    assert Contrast("", 0.009, 0.004, 20, most=0.01).verdict == HOLDS
    assert Contrast("", 0.011, 0.005, 20, most=0.01).verdict == OPEN


def test_few_runs_decide_nothing():
    assert contrast("", [1.0, 1.1, 1.2, 1.1]).verdict == OPEN
    assert contrast("", [1.0, 1.1, 1.2, 1.1, 1.0]).verdict == HOLDS
    assert contrast("", [1.0]).verdict == OPEN
    assert contrast("", [1.0, 1.1, 1.2, 1.1]).p == 1


def test_a_number_that_is_none_decides_nothing():
    assert Contrast("", float("nan"), 0.1, 10).verdict == OPEN
    assert Contrast("", 3.0, float("nan"), 10).verdict == OPEN
    assert contrast("", []).verdict == OPEN
    assert claim(contrast("", [])).p == 1


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


def test_a_contrast_without_spread_is_the_least_favourable_if_negative():
    bad, good = Contrast("bad", -0.5, 0.0, 20), Contrast("good", 3.0, 1.0, 20)
    assert claim(good, bad).verdict == FAILS
    assert claim(good, bad).least is bad
    assert json.dumps(contrast("", [1.0])._asdict(), allow_nan=False)


def test_holm_against_a_hand():
    """Sorted 0.001, 0.01, 0.02, 0.04 times 4, 3, 2, 1; never below the one before."""
    found = holm([0.02, 0.001, 0.04, 0.01])
    np.testing.assert_allclose(found, [0.04, 0.004, 0.04, 0.03])
    np.testing.assert_allclose(holm([0.5, 0.9]), [1.0, 1.0])
    np.testing.assert_allclose(holm([0.03, 0.04]), [0.06, 0.06])


def test_the_chance_that_one_of_many_is_wrong_stays_below_the_level():
    """1,000 papers of 60 claims with nothing in them: at most 5 %, within four errors."""
    rng = np.random.default_rng(0)
    wrong = np.mean([(holm(rng.uniform(size=60)) < 0.05).any() for _ in range(1_000)])
    assert wrong <= 0.05 + 4 * np.sqrt(0.05 * 0.95 / 1_000)


def test_the_p_of_a_claim_is_that_of_its_verdict():
    sure, fair, no = Contrast("", 9.0, 1.0, 30), Contrast("", 2.5, 1.0, 30), Contrast("", -3, 1, 30)
    assert claim(sure, fair).p == fair.p
    assert claim(sure, fair, no).p == pytest.approx(3 * no.p)
    assert claim(sure, Contrast("", -0.1, 1.0, 30)).p == 1
    assert claim(sure, Contrast("", 0.1, 1.0, 30)).p > 0.9


def test_judged_together_a_weak_verdict_stays_open_and_a_strong_one_does_not():
    weak, strong, against, nothing = (
        claim(Contrast("", effect, 1.0, 100)).as_record() for effect in (2.1, 9.0, -9.0, 0.1)
    )
    alone, *_ = corrected([weak])
    assert (alone["verdict"], alone["holm_verdict"], alone["holm_of"]) == (HOLDS, HOLDS, 1)
    found = corrected([weak, strong, against, *[nothing] * 20])
    assert [r["verdict"] for r in found[:3]] == [HOLDS, HOLDS, FAILS]
    assert [r["holm_verdict"] for r in found[:3]] == [OPEN, HOLDS, FAILS]
    assert found[0]["holm_p"] == pytest.approx(21 * weak["p"])
    assert found[0]["holm_of"] == 23

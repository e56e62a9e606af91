"""Statistics over runs, each against scipy or a loop that shares no code with it."""

import math

import numpy as np
import pytest
from scipy import stats

from recoup.compare import statistics
from recoup.compare.statistics import (
    Mean,
    area,
    chance,
    discoveries,
    episodes_to,
    episodes_to_of,
    improvement,
    iqm,
    mean_of,
    paired,
    trimmed_mean,
)

RNG = np.random.default_rng(3)
X, Y = RNG.gamma(2.0, size=13) - 1, RNG.normal(size=13)


def test_mean_and_standard_error_are_scipys():
    found = mean_of(X)
    assert found.mean == pytest.approx(sum(X) / 13)
    assert found.stderr == pytest.approx(stats.sem(X))
    assert found.runs == 13
    assert math.isnan(mean_of([2.0]).stderr)


def test_a_paired_difference_is_the_t_test_of_pairs():
    found = paired(X, Y)
    assert found.mean / found.stderr == pytest.approx(stats.ttest_rel(X, Y).statistic)
    assert found.stderr != pytest.approx(np.hypot(stats.sem(X), stats.sem(Y)), rel=0.01)


def test_the_chance_of_a_difference_is_that_of_scipys_paired_test():
    assert chance(paired(X, Y)) == pytest.approx(stats.ttest_rel(X, Y).pvalue)
    assert chance(paired(Y, X)) == pytest.approx(stats.ttest_rel(X, Y).pvalue)
    alike = chance(Mean(0.3, 0.0, 6))
    assert alike == pytest.approx(stats.binomtest(6, 6).pvalue)
    assert chance(Mean(0.0, 0.0, 6)) == 1.0
    assert math.isnan(chance(Mean(0.3, math.nan, 1)))


def test_discoveries_are_scipys_and_those_of_the_rule_as_it_was_written():
    """With k the last of the sorted p up to k q / K, the first k are clear."""
    p = np.append(RNG.random(20), [0.001, 0.004, 0.004, 0.011, 0.012])
    np.testing.assert_allclose(discoveries(p), stats.false_discovery_control(p))
    for q in (0.02, 0.05, 0.3):
        ordered = sorted(p)
        last = max((k for k in range(1, 26) if ordered[k - 1] <= k * q / 25), default=0)
        assert (discoveries(p) <= q).sum() == last
    assert discoveries([]).shape == (0,)
    assert (discoveries([0.04, 0.04, 0.04]) <= 0.05).all()  # each by itself too
    assert (discoveries([0.04, 0.9, 0.8]) > 0.05).all()


@pytest.mark.parametrize("runs", [1, 3, 4, 5, 8, 13, 30])
def test_the_inter_quartile_mean_is_scipys_trimmed_mean(runs):
    values = RNG.gamma(1.0, size=runs)
    assert trimmed_mean(values) == pytest.approx(stats.trim_mean(values, 0.25))
    assert iqm(values).value == pytest.approx(stats.trim_mean(values, 0.25))


def test_its_interval_resamples_each_task_by_itself():
    """Two tasks far apart: an interval over all runs mixed would be wide, this one is not."""
    near, far = RNG.normal(0, 0.01, 20), RNG.normal(100, 0.01, 20)
    found = iqm([near, far])
    assert found.value == pytest.approx(stats.trim_mean(np.concatenate([near, far]), 0.25))
    assert found.low <= found.value <= found.high
    assert found.high - found.low < 0.1
    mixed = iqm(np.concatenate([near, far]))
    assert mixed.high - mixed.low > 10


def test_the_interval_covers_as_often_as_it_says():
    """95 % of intervals of means of normal runs; of 300 trials, 4 standard errors are 0.05."""
    rng, held = np.random.default_rng(0), 0
    for _ in range(300):
        found = iqm(rng.normal(size=24))
        held += found.low <= 0 <= found.high
    assert held / 300 == pytest.approx(0.93, abs=0.05)


def test_the_bootstrap_is_scipys_to_its_error():
    own = improvement(X, Y)
    theirs = stats.bootstrap(
        (X, Y), lambda x, y: np.mean(x[:, None] > y), paired=True, vectorized=False,
        n_resamples=2000, method="percentile", rng=np.random.default_rng(1),
    ).confidence_interval  # fmt: skip
    assert own.low == pytest.approx(theirs.low, abs=0.04)
    assert own.high == pytest.approx(theirs.high, abs=0.04)


def test_improvement_counts_pairs_and_half_of_ties():
    x, y = [1.0, 2.0, 2.0, 5.0], [2.0, 0.0, 3.0, 3.0]
    count = sum(1.0 if a > b else 0.5 if a == b else 0.0 for a in x for b in y)
    assert improvement(x, y).value == pytest.approx(count / 16)
    mann_whitney = stats.mannwhitneyu(x, y).statistic / 16
    assert improvement(x, y).value == pytest.approx(mann_whitney)
    assert improvement(x, x).value == 0.5


def test_improvement_of_runs_without_a_number_is_none():
    for pair in ([[1.0, np.nan], [0.0, 0.0]], [[1.0, 2.0], [np.nan, 0.0]]):
        assert np.isnan(improvement(*pair)).all()


def test_the_area_is_a_mean_over_episodes():
    at, curve = [50, 100, 400], [-3.0, -1.0, 0.0]
    by_hand = (50 * (-3 - 1) / 2 + 300 * (-1 + 0) / 2) / 350
    assert area(at, curve) == pytest.approx(by_hand)
    np.testing.assert_allclose(area(at, [curve, [7.0] * 3]), [by_hand, 7.0])
    assert area([400], [[2.0], [3.0]]).tolist() == [2.0, 3.0]


def test_episodes_to_a_target_lie_on_the_straight_line():
    at, curve = [0, 100, 200, 400], [-4.0, -2.0, -3.0, 1.0]
    assert episodes_to(at, curve, -3.0) == 50
    assert episodes_to(at, curve, -1.0) == 300
    assert episodes_to(at, curve, -5.0) == 0
    assert episodes_to(at, curve, 2.0) == math.inf
    assert episodes_to(at, [math.nan, 1.0, 2.0, 3.0], 1.0) == 100
    found = episodes_to_of(at, [curve, curve], -1.0)
    assert found == (300, 300, 300)
    found = episodes_to_of(at, [curve, [0.0] * 4], 0.9)
    assert found.value == math.inf


def test_the_same_data_give_the_same_numbers():
    assert iqm(X) == iqm(X)
    assert statistics.RESAMPLES_SEED is not None

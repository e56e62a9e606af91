"""Theorem 1: upper bounds of the variance of importance-weighted gradients."""

import numpy as np
import pytest
from quadrature import Case, wavy
from scipy import optimize, stats

from recoup.core import theory

NARROW, WIDE = ([0.4, -0.3], [0.5, 0.8]), ([0.1, -0.1], [0.9, 1.0])


def case(low=-1.5, high=0.7, discount=0.9, horizon=7, target=NARROW):
    return Case(target, WIDE, wavy(low, high), discount=discount, horizon=horizon, samples=13)


def bounds_of(c, beta):
    w_max = theory.weight_range(c.target, c.proposal).w_max
    return theory.variance_bound(c.target[1], beta=beta, w_max=w_max, **c.setting)


@pytest.mark.parametrize(("discount", "horizon"), [(0.9, 7), (0.0, 1), (1.0, 5)])
@pytest.mark.parametrize(("low", "high"), [(-1.5, 0.7), (1.0, 2.0), (-0.2, 0.2)])
def test_variances_stay_below_the_bounds(low, high, discount, horizon):
    c = case(low, high, discount, horizon)
    bound = bounds_of(c, beta=max(abs(low), abs(high)))
    assert 0 < c.variance("eta") <= bound.eta
    assert 0 < c.variance("tau") <= bound.tau


def test_the_bound_is_near_what_a_constant_reward_gives_on_policy():
    """With w = 1 and R = beta S the second moment meets the bound; its mean gradient is zero."""
    c = Case(WIDE, WIDE, lambda x: np.full(len(x), 1.7), discount=0.8, horizon=4, samples=3)
    bound = bounds_of(c, beta=1.7)
    assert c.variance("eta") == pytest.approx(bound.eta, rel=1e-9)
    assert c.variance("tau") == pytest.approx(bound.tau, rel=1e-9)


def test_the_bound_as_the_paper_prints_it():
    got = theory.variance_bound(
        [0.5, 2.0], beta=3.0, discount=0.9, horizon=10, samples=7, w_max=4.0
    )
    b = 0.5**-2 + 2.0**-2
    want = 9 * (1 - 0.9**10) ** 2 * b / (7 * (1 - 0.9) ** 2) * 4.0
    assert got.eta == pytest.approx(want)
    assert got.tau == pytest.approx(2 * want)


def test_the_greatest_weight_is_found_by_numerical_search():
    def negative_log_weight(x):
        return -(stats.norm.logpdf(x, *NARROW) - stats.norm.logpdf(x, *WIDE)).sum()

    found = np.exp(-optimize.minimize(negative_log_weight, [0.0, 0.0], tol=1e-12).fun)
    got = theory.weight_range(NARROW, WIDE)
    assert got.w_max == pytest.approx(found, rel=1e-8)
    assert got.w_min == 0
    turned = theory.weight_range(WIDE, NARROW)
    assert turned.w_min == pytest.approx(1 / found, rel=1e-8)
    assert turned.w_max == np.inf


@pytest.mark.parametrize(
    "target",
    [([0.4, -0.3], [0.5, 1.1]), ([0.4, -0.1], [0.9, 1.0])],
    ids=["wider in one coordinate", "equally wide, shifted"],
)
def test_where_weights_are_unbounded_the_function_says_so(target):
    w_max = theory.weight_range(target, WIDE).w_max
    assert w_max == np.inf
    with pytest.raises(ValueError, match="Theorem 1 needs weights bounded above"):
        theory.variance_bound(target[1], beta=1, discount=0.9, horizon=3, samples=5, w_max=w_max)


def test_equal_distributions_have_weight_one():
    assert theory.weight_range(WIDE, WIDE) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: theory.weight_range(NARROW, ([0.0], [1.0])), "one dimension, got 2 and 1"),
        (lambda: theory.weight_range(NARROW, WIDE, support=[[0.0]]), r"\[M, D\] = \[M, 2\]"),
        (lambda: theory.weight_range(NARROW, WIDE, support=np.empty((0, 2))), "support must have"),
        (lambda: theory.weight_range(([np.nan], [1.0]), ([0.0], [1.0])), "target eta must be"),
    ],
)
def test_ranges_of_nonsense_get_one_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"w_max": None}, "w_max must be an array of real numbers, got None"),
        ({"beta": 0.0}, "beta must be above 0"),
        ({"discount": 1.5}, r"discount must be in \[0, 1\], got 1.5"),
        ({"horizon": 0}, "horizon must be a whole number"),
        ({"samples": -1}, "samples must be a whole number"),
        ({"tau": [1.0, 0.0]}, "tau must be positive"),
    ],
)
def test_bad_input_gets_one_sentence(change, sentence):
    good = {"tau": [1.0], "beta": 1, "discount": 0.9, "horizon": 3, "samples": 5, "w_max": 2.0}
    with pytest.raises(ValueError, match=sentence):
        theory.variance_bound(**{**good, **change})

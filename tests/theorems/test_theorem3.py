"""Theorem 3 and the Corollary: what the optimal baseline removes, and what it leaves.

Weights bounded on both sides need equal distributions or a bounded support: the quadrature's nodes
are one. Both hold with each block's own optimal baseline.
"""

import numpy as np
import pytest
from quadrature import Case, wavy

from recoup.core import theory

TARGET, PROPOSAL = ([0.2, -0.3], [0.7, 0.8]), ([0.1, -0.1], [0.8, 0.7])
LOW, HIGH = 0.4, 2.1


def case(points=24, low=LOW, high=HIGH):
    return Case(
        TARGET, PROPOSAL, wavy(low, high), discount=0.9, horizon=7, samples=13, points=points
    )


def bounds_of(c):
    w = theory.weight_range(c.target, c.proposal, support=c.theta)
    tau = c.target[1]
    return (
        theory.reduction_lower_bound(tau, alpha=LOW, w_min=w.w_min, **c.setting),
        theory.reduction_upper_bound(tau, beta=HIGH, w_max=w.w_max, **c.setting),
        theory.optimal_variance_bound(
            tau, alpha=LOW, beta=HIGH, w_min=w.w_min, w_max=w.w_max, **c.setting
        ),
    )


def test_the_range_of_weights_on_a_support_is_that_of_its_points():
    c = case()
    got = theory.weight_range(c.target, c.proposal, support=c.theta)
    assert got.w_min == pytest.approx(c.w.min(), rel=1e-10)
    assert got.w_max == pytest.approx(c.w.max(), rel=1e-10)
    assert 0 < got.w_min < 1 < got.w_max < np.inf


@pytest.mark.parametrize("block", ["eta", "tau"])
@pytest.mark.parametrize("points", [16, 24, 40])
def test_reduction_and_what_remains_lie_within_the_bounds(block, points):
    c = case(points)
    lower, upper, remaining = (getattr(bound, block) for bound in bounds_of(c))
    b = c.optimal(block)
    assert lower <= c.reduction(block, b) <= upper
    assert 0 < c.variance(block, b) <= remaining


@pytest.mark.parametrize("block", ["eta", "tau"])
def test_on_policy_a_constant_reward_meets_the_lower_bound(block):
    c = Case(TARGET, TARGET, lambda x: np.full(len(x), LOW), discount=0.9, horizon=7, samples=13)
    bound = theory.reduction_lower_bound(TARGET[1], alpha=LOW, w_min=1.0, **c.setting)
    got = c.reduction(block, c.optimal(block))
    assert got == pytest.approx(getattr(bound, block), rel=1e-9)


RARE = 1000.0


def rare_reward(theta):
    """Small almost everywhere, large in the tails, where the score of tau is large."""
    return np.where(np.abs((theta[:, 0] - TARGET[0][0]) / TARGET[1][0]) > 3.0, RARE, 1.0)


def on_policy_with_rare_reward():
    return Case(TARGET, TARGET, rare_reward, discount=0.9, horizon=7, samples=13)


def test_the_joint_baseline_can_violate_the_lower_bound_of_theorem_3():
    c = on_policy_with_rare_reward()
    bound = theory.reduction_lower_bound(TARGET[1], alpha=1.0, w_min=1.0, **c.setting)
    own, joint = c.optimal("eta"), c.optimal("joint")
    assert c.reduction("eta", own) >= bound.eta
    assert c.reduction("eta", joint) < 0 < bound.eta


@pytest.mark.parametrize("block", ["eta", "tau"])
def test_the_corollary_survives_any_baseline_between_the_extreme_returns(block):
    """(beta - alpha)^2 w_max <= beta^2 w_max - alpha^2 w_min, so no such b can."""
    c = on_policy_with_rare_reward()
    bound = theory.optimal_variance_bound(
        TARGET[1], alpha=1.0, beta=RARE, w_min=1.0, w_max=1.0, **c.setting
    )
    for b in (c.optimal("joint"), *np.linspace(1.0, RARE, 9) * c.scale):
        assert c.variance(block, b) <= getattr(bound, block)


def test_where_weights_reach_zero_the_functions_say_so():
    narrow = theory.weight_range(([0.0], [0.5]), ([0.0], [1.0]))
    assert narrow.w_min == 0
    with pytest.raises(ValueError, match="Theorem 3 needs weights bounded below"):
        theory.reduction_lower_bound(
            [0.5], alpha=1, discount=0.9, horizon=3, samples=5, w_min=narrow.w_min
        )
    both = {"discount": 0.9, "horizon": 3, "samples": 5, "tau": [0.5]}
    with pytest.raises(ValueError, match="The Corollary needs weights bounded below"):
        theory.optimal_variance_bound(alpha=1, beta=2, w_min=0.0, w_max=2.0, **both)
    with pytest.raises(ValueError, match="The Corollary needs weights bounded above"):
        theory.optimal_variance_bound(alpha=1, beta=2, w_min=0.1, w_max=np.inf, **both)
    with pytest.raises(ValueError, match="0 < alpha < beta"):
        theory.optimal_variance_bound(alpha=-1, beta=2, w_min=0.1, w_max=2.0, **both)

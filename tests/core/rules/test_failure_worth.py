"""What a failed rollout is worth to the rule: a bad return, and no better."""

import numpy as np
import pytest

from recoup.core.rules.failure_worth import ByOutcome, dependence, worth_of_failing


def known(failed, level=0.0, seed=0, dim=3, n=60):
    """Samples about zero, those of `failed(z)` without a return."""
    z = np.random.default_rng(seed).normal(size=(n, dim))
    out = failed(z)
    return ByOutcome(z, np.where(out, 0.0, level + z.sum(1)), ~out, out)


def behind(z):
    return z[:, 0] > 0.3


def by_chance(z):
    return np.random.default_rng(9).uniform(size=len(z)) < 0.2


@pytest.mark.parametrize("level", [-100.0, 0.0, 100.0])
@pytest.mark.parametrize("failed", [behind, by_chance])
def test_failing_is_never_better_than_a_bad_return(failed, level):
    """Whatever the sign of returns; and never worse than the worst that was ever seen."""
    seen = known(failed, level)
    earned = seen.returns[seen.succeeded]
    worth = worth_of_failing(np, seen, np.min(earned) - 5, dependence(np, seen))
    assert np.min(earned) - 5 <= worth <= np.quantile(earned, 0.1)


def test_failures_behind_an_edge_are_worth_less_than_those_by_chance():
    edge, chance = known(behind), known(by_chance)
    assert dependence(np, edge) > 0.7
    assert dependence(np, chance) < 0.3
    lowest = np.min(edge.returns[edge.succeeded])
    bad = np.quantile(edge.returns[edge.succeeded], 0.1)
    assert worth_of_failing(np, edge, np.inf, dependence(np, edge)) < (lowest + bad) / 2


def test_by_chance_little_dependence_is_seen():
    found = [dependence(np, known(lambda z, s=s: luck(z, s), seed=s)) for s in range(200)]
    assert np.mean(found) < 0.1


def luck(z, seed):
    return np.random.default_rng(1000 + seed).uniform(size=len(z)) < 0.2


def test_before_any_return_all_failures_are_equal():
    seen = known(lambda z: np.ones(len(z), bool))
    assert dependence(np, seen) == 1.0  # so that they count
    assert worth_of_failing(np, seen, np.inf, 1.0) == 0.0
    assert worth_of_failing(np, seen, -7.0, 1.0) == -7.0


def test_two_failures_of_four_say_nothing_of_where():
    """Too few to tell: they are left out."""
    seen = ByOutcome(np.eye(4), np.array([1.0, 2.0, 0, 0]), np.arange(4) < 2, np.arange(4) > 1)
    assert dependence(np, seen) == 0.0

"""Theorem 2: the optimal scalar baseline, and what any other one costs."""

import jax.numpy as jnp
import numpy as np
import pytest
from quadrature import Case, wavy

from recoup.core import theory
from recoup.core.baselines import coordinate, optimal
from recoup.core.directions import scores_of
from recoup.core.families.gaussian import Diagonal, score
from recoup.core.gradient import Earned

pytestmark = pytest.mark.usefixtures("x64")
CASE = Case(
    ([0.4, -0.3], [0.5, 0.8]),
    ([0.1, -0.1], [0.9, 1.0]),
    wavy(-0.5, 2.0),
    discount=0.9,
    horizon=7,
    samples=13,
)


def as_samples():
    """The quadrature as one block of samples: weights sqrt(mass) w make sums expectations."""
    rho = Diagonal(*map(jnp.asarray, CASE.target))
    weights = jnp.asarray(np.sqrt(CASE.mass) * CASE.w)[None]
    returns = jnp.asarray(CASE.returns)[None]
    earned = Earned(returns, weights, jnp.ones_like(weights, bool), jnp.zeros(()))
    return earned, scores_of(score, rho, jnp.asarray(CASE.theta)[None], earned)


@pytest.mark.parametrize("b", [-1.0, 0.0, 0.7, 9.0])
def test_excess_variance_is_quadratic_around_the_optimal_baseline(b):
    b_star = float(optimal(*as_samples()))
    excess = CASE.variance("joint", b) - CASE.variance("joint", b_star)
    want = theory.excess_variance(b, b_star, CASE.curvature("joint"), 13)
    assert excess == pytest.approx(want, rel=1e-9, abs=1e-12)


def test_no_other_scalar_does_better():
    b_star = float(optimal(*as_samples()))
    best = CASE.variance("joint", b_star)
    assert all(CASE.variance("joint", b_star + d) > best for d in (-1, -1e-3, 1e-3, 1))


def test_the_per_coordinate_baseline_is_optimal_for_each_coordinate():
    b = coordinate(*as_samples())
    for block in ("eta", "tau"):
        for i in range(2):
            s = CASE.scores(block)[:, i]

            def variance(baseline, s=s):
                terms = CASE.w * (CASE.returns - baseline) * s
                return CASE.mass @ terms**2 - (CASE.mass @ terms) ** 2

            at = float(getattr(b, block)[i])
            assert all(variance(at + d) > variance(at) for d in (-1, -1e-3, 1e-3, 1))


def test_subtracting_any_constant_leaves_the_expected_gradient():
    terms = CASE.w[:, None] * CASE.scores("joint")
    np.testing.assert_allclose(CASE.mass @ terms, 0, atol=1e-10)

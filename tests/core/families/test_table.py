"""The records of search distributions: what they keep when their coordinates change."""

import numpy as np
import pytest

from recoup.core.families.full import Full
from recoup.core.families.gaussian import Diagonal
from recoup.core.families.table import FAMILIES

FACTOR = np.array([[0.5, 0.0, 0.0], [0.3, 1.2, 0.0], [-0.7, 0.4, 2.0]])
BEFORE = Full(np.array([1.0, 2.0, 3.0]), FACTOR)


def correlations(factor):
    covariance = factor @ factor.T
    std = np.sqrt(np.diag(covariance))
    return covariance / np.outer(std, std)


@pytest.mark.parametrize(
    "source", [(0, 1, 2), (2, 0, 1), (1, 2), (2,), (0, None, 2), (None, 2, 0, None)]
)
def test_coordinates_keep_their_correlations_wherever_they_go(source):
    mean, std = np.arange(len(source)) * 1.0, np.arange(len(source)) + 0.5
    found = BEFORE.rearranged(source, mean, std)
    np.testing.assert_array_equal(found.mean, mean)
    np.testing.assert_allclose(found.std, std, rtol=1e-14)
    assert (found.positive > 0).all()
    assert not np.triu(found.factor, 1).any()
    before, after = correlations(FACTOR), correlations(found.factor)
    for i, a in enumerate(source):
        for j, b in enumerate(source):
            want = 1.0 if i == j else 0.0 if None in (a, b) else before[a, b]
            assert after[i, j] == pytest.approx(want, abs=1e-14)
    plain = Diagonal(BEFORE.mean, BEFORE.std).rearranged(source, mean, std)
    np.testing.assert_array_equal(plain.packed(), [*mean, *std])


@pytest.mark.parametrize("family", FAMILIES)
def test_what_must_be_positive_is_not_where_a_density_would_have_no_scale(family):
    std = np.array([[1.0, 2.0, 0.5], [1.0, -2.0, 0.5]])
    rho = FAMILIES[family].rho.start(np.zeros((2, 3)), std)
    np.testing.assert_array_equal(rho.positive > 0, [[True] * 3, [True, False, True]])


@pytest.mark.parametrize(("kept", "fixed"), [([0, 2], [1]), ([1], [2, 0]), ([2, 1], [0])])
def test_what_is_left_given_the_others_is_the_conditional_gaussian(kept, fixed):
    """By blocks of the covariance, as every book on Gaussians has it."""
    covariance = BEFORE.factor @ BEFORE.factor.T
    values = BEFORE.mean[fixed] + np.array([0.7, -0.4])[: len(fixed)]
    across = covariance[np.ix_(kept, fixed)] @ np.linalg.inv(covariance[np.ix_(fixed, fixed)])
    found = BEFORE.given(kept, fixed, values)
    shift = across @ (values - BEFORE.mean[fixed])
    np.testing.assert_allclose(found.mean, BEFORE.mean[kept] + shift, rtol=1e-12)
    left = covariance[np.ix_(kept, kept)] - across @ covariance[np.ix_(fixed, kept)]
    np.testing.assert_allclose(found.factor @ found.factor.T, left, rtol=1e-12)
    assert (np.diagonal(found.factor) > 0).all()
    assert not np.triu(found.factor, 1).any()
    plain = Diagonal(BEFORE.mean, BEFORE.std).given(kept, fixed, values)
    np.testing.assert_array_equal(plain.mean, BEFORE.mean[kept])
    np.testing.assert_array_equal(plain.std, BEFORE.std[kept])

"""Where coordinates are best and which of them matter, beside functions whose truth is known."""

import numpy as np
import pytest

from recoup.core.plain import tops as module
from recoup.core.plain.belief import believed
from recoup.core.plain.tops import Axis, effects, places, top_of, tops


def results(n=80, dim=3, noise=0.1, seed=0):
    """Best at 0.4 along the first, at -0.8 along the second; the third does nothing."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, dim))
    y = -3 * (z[:, 0] - 0.4) ** 2 - 0.5 * (z[:, 1] + 0.8) ** 2 + noise * rng.normal(size=n)
    return z, y


def test_the_best_values_are_held():
    z, y = results()
    found = tops(believed(z, y), np.eye(3), z)
    assert found[0].low < 0.4 < found[0].high
    assert found[1].low < -0.8 < found[1].high
    assert found[0].high - found[0].low < 0.6
    widths = [high - low for low, high in found]
    assert widths[2] > 5 * widths[0]  # of what does nothing, nearly any value may be


def test_a_coordinate_is_followed_as_far_as_results_lie():
    at = places(np.array([-0.5, 1.0, 40.0]))
    assert at[0] == -2.5
    assert at[-1] == pytest.approx(40.0)
    assert (np.diff(at) > 0).all()
    assert 0.0 in at


def test_the_interval_is_that_of_the_draws():
    at = np.array([-2.0, -1.0, 0.0, 1.0, 3.0])
    inner = np.array([1] * 5 + [2] * 90 + [3] * 5)
    assert top_of(at, inner) == (-1.5, 2.0)
    assert top_of(at, np.array([0] * 5 + [2] * 95)) == (-np.inf, 0.5)
    assert top_of(at, np.array([2] * 95 + [4] * 5)) == (-0.5, np.inf)
    assert top_of(at, np.full(100, 2)) == (-0.5, 0.5)


def test_a_slope_all_along_has_its_best_at_the_end_or_beyond():
    rng = np.random.default_rng(1)
    z = rng.normal(size=(40, 1))
    found = tops(believed(z, 2 * z[:, 0] + 0.1 * rng.normal(size=40)), np.eye(1), z)
    assert found[0].low > 1.5
    assert found[0].high == np.inf


def test_shares_are_those_of_the_functions_own_variance():
    """f = 2 x + (y^2 - 1) + x y under N(0, I): 4, 2 and 1 of 7; the third does nothing."""
    rng = np.random.default_rng(2)
    z = rng.normal(size=(200, 3))
    f = 2 * z[:, 0] + (z[:, 1] ** 2 - 1) + z[:, 0] * z[:, 1]
    found = {e.which: e for e in effects(believed(z, f + 0.1 * rng.normal(size=200)), *ones(3))}
    for which, want in (((0,), 4 / 7), ((1,), 2 / 7), ((0, 1), 1 / 7), ((2,), 0.0)):
        assert found[which].share == pytest.approx(want, abs=0.06), which
    assert found[(2,)].share < 0.01
    assert found[(2,)].stderr < 0.01


@pytest.mark.parametrize("dim", [1, 2, 6])
def test_shares_of_what_only_adds_up_are_all_there_is(dim):
    """The places that are looked at have variances of their own, which are none of the function."""
    z = np.random.default_rng(4).normal(size=(80, dim))
    for f in (np.sum(z, axis=1), np.sum(z**2, axis=1), np.sum(z, axis=1) + np.sum(z**2, axis=1)):
        shares = [e.share for e in effects(believed(z, f), *ones(dim)) if len(e.which) == 1]
        assert shares == pytest.approx([1 / dim] * dim, abs=0.02)


def test_a_choice_and_a_number_share_what_there_is():
    rng = np.random.default_rng(5)
    which = np.repeat([0, 1, 2], [50, 30, 20])
    at, worth = np.eye(3), np.array([0.0, 2.0, -1.0])
    z = np.column_stack([rng.normal(size=100), at[which]])
    axes = [Axis((0,)), Axis((1, 2, 3), at, np.array([0.5, 0.3, 0.2]))]
    belief = believed(z, z[:, 0] + worth[which])
    found = effects(belief, np.mean(z, axis=0), np.std(z, axis=0), axes)
    number, choice = np.var(z[:, 0]), np.var(worth[which])
    shares = [e.share for e in found[:2]]
    assert shares == pytest.approx(np.array([number, choice]) / (number + choice), abs=0.03)


def ones(dim):
    return np.zeros(dim), np.ones(dim)


def test_pairs_are_looked_at_of_those_that_matter_most():
    rng = np.random.default_rng(3)
    z = rng.normal(size=(120, 6))
    found = effects(believed(z, z[:, 4] + 0.1 * rng.normal(size=120)), *ones(6))
    pairs = [e.which for e in found if len(e.which) == 2]
    assert len(pairs) == module.PAIRED * (module.PAIRED - 1) // 2
    assert any(4 in pair for pair in pairs)

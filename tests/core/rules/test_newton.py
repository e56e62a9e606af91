"""A step that surely rises may be longer than the trust region."""

import numpy as np
import pytest

from recoup.core.families.shapes import Axes
from recoup.core.rules.model import Local
from recoup.core.rules.newton import Outlook, newton
from recoup.core.rules.tuning import TUNED

VALUES = np.array([-0.02, -0.01, -0.03, 0.01])
SLOPE = np.array([3.0, -1.0, 0.5, 2.0])
RADIUS = TUNED.radius * (len(VALUES) + 3) ** 0.5


def stepped(stderr, leap, slope=SLOPE, grown=0.0, widest=TUNED.widest):
    axes = Axes(VALUES, 1.0, lambda x: x, lambda x: x, lambda x: x)
    local = Local(axes, slope, np.full(4, stderr**2), np.array(0.01), np.array(0.9))
    outlook = Outlook(np.array(1.0), np.array(True), np.array(True), np.array(grown), widest)
    return newton(np, 4, local, outlook, True, leap)


def test_it_is_the_best_of_a_longer_radius_where_the_rise_is_sure():
    usual, longer = stepped(0.1, 1.0), stepped(0.1, 2.0)
    assert np.linalg.norm(usual.delta) == pytest.approx(RADIUS, rel=1e-6)
    assert np.linalg.norm(longer.delta) == pytest.approx(2 * RADIUS, rel=1e-6)
    rng = np.random.default_rng(0)
    others = rng.normal(size=(20_000, 4))
    others *= 2 * RADIUS / np.linalg.norm(others, axis=1, keepdims=True)

    def worth(delta):
        return delta @ SLOPE + delta**2 @ VALUES / 2

    assert worth(longer.delta) >= np.max(worth(others))
    np.testing.assert_array_equal(usual.log, longer.log)  # the spread is that of the usual step


def test_it_is_the_usual_one_where_the_rise_is_in_doubt_or_the_top_within_reach():
    unsure = np.linalg.norm(SLOPE) / 2.9  # of a step along the slope: less than three errors
    np.testing.assert_array_equal(stepped(unsure, 2.0).delta, stepped(unsure, 1.0).delta)
    sure = np.linalg.norm(SLOPE) / 3.2
    assert np.linalg.norm(stepped(sure, 2.0).delta) > 1.5 * RADIUS
    near = np.array([0.01, 0.005, 0.01, 0.0])
    found = stepped(1e-6, 2.0, near)
    assert np.linalg.norm(found.delta) <= 2 * RADIUS


def test_the_spread_grows_no_further_than_it_may():
    assert np.max(stepped(0.1, 2.0).log) > 0.2
    assert np.max(stepped(0.1, 2.0, grown=0.25, widest=0.3).log) == pytest.approx(0.05)
    assert np.max(stepped(0.1, 2.0, grown=0.4, widest=0.3).log) <= 0

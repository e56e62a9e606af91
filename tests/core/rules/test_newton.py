"""How long a step is: as long as the rise that it promises is surely one."""

import numpy as np
import pytest

from recoup.core.families.shapes import Axes
from recoup.core.rules.model import Local
from recoup.core.rules.newton import Outlook, newton
from recoup.core.rules.tuning import TUNED

VALUES = np.array([-0.02, -0.01, -0.03, 0.01])
SLOPE = np.array([3.0, -1.0, 0.5, 2.0])
RADIUS = TUNED.radius * (len(VALUES) + 3) ** 0.5


def worth(steps):
    return steps @ SLOPE + steps**2 @ VALUES / 2


def stepped(doubt, slope=SLOPE, grown=0.0, widest=TUNED.widest, stderr=0.1):
    """A step where the standard error of the rise is `doubt` of how far it goes."""
    axes = Axes(VALUES, 1.0, lambda x: x, lambda x: x, lambda x: x)
    local = Local(axes, slope, np.full(4, stderr**2), np.array(0.01), np.array(0.9))
    outlook = Outlook(np.array(1.0), np.array(True), np.array(True), np.array(grown), widest)

    def risen(steps):
        return worth(steps), doubt(np.linalg.norm(steps, axis=1)) ** 2

    return newton(np, 4, local, outlook, risen)


@pytest.mark.parametrize("pace", TUNED.paces)
def test_it_is_the_longest_whose_rise_is_surely_one(pace):
    """The error grows with the square of the length, as what is not known of a curvature does."""
    radius = pace * RADIUS * 1.01
    steep = np.linalg.norm(SLOPE)
    found = stepped(lambda far: steep * far**2 / radius)
    assert np.linalg.norm(found.delta) == pytest.approx(pace * RADIUS, rel=1e-6)
    assert found.gain == pytest.approx(worth(found.delta))
    assert found.doubt == pytest.approx((steep * (pace * RADIUS) ** 2 / radius) ** 2, rel=1e-6)
    rng = np.random.default_rng(0)
    others = rng.normal(size=(20_000, 4))
    others *= pace * RADIUS / np.linalg.norm(others, axis=1, keepdims=True)
    assert worth(found.delta) >= np.max(worth(others)) - 1e-9


def test_it_is_the_shortest_where_none_surely_rises_and_no_longer_than_to_the_top():
    lost = stepped(lambda far: 1e3 + far)
    assert np.linalg.norm(lost.delta) == pytest.approx(TUNED.paces[0] * RADIUS, rel=1e-6)
    near = np.array([-0.01, 0.002, -0.004, 0.0])
    found = stepped(lambda far: 0 * far, near)
    assert np.linalg.norm(found.delta) <= max(TUNED.paces) * RADIUS


def test_the_spread_is_that_of_the_usual_step_and_grows_no_further_than_it_may():
    sure, unsure = stepped(lambda far: 0 * far), stepped(lambda far: 1e3 + far)
    np.testing.assert_array_equal(sure.log, unsure.log)
    assert np.max(sure.log) > 0.2
    assert np.max(stepped(abs, grown=0.25, widest=0.3).log) == pytest.approx(0.05)
    assert np.max(stepped(abs, grown=0.4, widest=0.3).log) <= 0

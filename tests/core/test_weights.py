import jax.numpy as jnp
import numpy as np
import pytest

from recoup.core import weights

pytestmark = pytest.mark.usefixtures("x64")
TARGET = np.array([0.3, -1.2, 2.0, 0.7, -400.0])
OWN = np.array([0.9, -0.2, -1.0, 0.1, 2.0])
MIXTURE = np.array([0.5, -0.4, 0.9, 0.3, 1.0])
VALID = np.ones(5, bool)


@pytest.fixture(params=[np, jnp], ids=["numpy", "jax"])
def xp(request):
    """Whose arrays are weighed: what comes back is of the same kind."""
    return request.param


@pytest.fixture
def weigh(xp):
    def weighed(ratio, *shapers, valid=VALID):
        d = weights.LogDensities(*map(xp.asarray, (TARGET, OWN, MIXTURE)))
        found = weights.weigh(ratio, shapers, d, xp.asarray(valid))
        assert isinstance(found, type(xp.zeros(1)))
        return np.asarray(found)

    return weighed


def test_ratios_are_target_over_proposal_not_the_other_way(weigh):
    np.testing.assert_allclose(weigh(weights.own_ratio), np.exp(TARGET) / np.exp(OWN))
    np.testing.assert_allclose(weigh(weights.mixture_ratio), np.exp(TARGET) / np.exp(MIXTURE))
    np.testing.assert_array_equal(weigh(weights.unit_ratio), np.ones(5))


@pytest.mark.parametrize("power", [0.0, 0.3, 1.0])
def test_power_mean_is_bounded_by_one_over_power(weigh, power):
    w = np.exp(TARGET - OWN)
    got = weigh(weights.power_mean_ratio(power))
    np.testing.assert_allclose(got, w / ((1 - power) + power * w), atol=1e-150)
    if power:
        assert got.max() <= 1 / power


def test_shapers_are_applied_in_the_order_given(weigh):
    w = np.exp(TARGET - OWN)
    got = weigh(weights.own_ratio, weights.flatten(0.5), weights.truncate(2.0))
    np.testing.assert_allclose(got, np.minimum(np.sqrt(w), 2.0))
    normal = weigh(weights.own_ratio, weights.truncate(2.0), weights.self_normalise())
    np.testing.assert_allclose(normal, np.minimum(w, 2.0) / np.minimum(w, 2.0).mean())


def test_only_valid_samples_carry_weight_or_enter_the_mean(weigh):
    valid = np.array([True, True, False, True, False])
    got = weigh(weights.own_ratio, weights.self_normalise(), valid=valid)
    w = np.exp(TARGET - OWN)[valid]
    np.testing.assert_allclose(got[valid], w / w.mean())
    assert not got[~valid].any()


def test_nothing_valid_is_no_weight_and_no_nan(xp, weigh):
    got = weigh(weights.own_ratio, weights.self_normalise(), valid=np.zeros(5, bool))
    assert not got.any()
    assert weights.effective_sample_size(xp.asarray(got)) == 0


def test_effective_sample_size(xp):
    w = np.array([0.1, 2.0, 0.0, 7.0])
    assert weights.effective_sample_size(xp.asarray(w)) == pytest.approx(
        w.sum() ** 2 / (w**2).sum()
    )
    assert weights.effective_sample_size(xp.full(6, 1e-200)) == pytest.approx(6)

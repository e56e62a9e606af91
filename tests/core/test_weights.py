import jax.numpy as jnp
import numpy as np
import pytest

from recoup.core import weights

pytestmark = pytest.mark.usefixtures("x64")
TARGET = np.array([0.3, -1.2, 2.0, 0.7, -400.0])
OWN = np.array([0.9, -0.2, -1.0, 0.1, 2.0])
MIXTURE = np.array([0.5, -0.4, 0.9, 0.3, 1.0])
VALID = np.ones(5, bool)


def weigh(ratio, *shapers, valid=VALID):
    d = weights.LogDensities(*map(jnp.asarray, (TARGET, OWN, MIXTURE)))
    return np.asarray(weights.weigh(ratio, shapers, d, jnp.asarray(valid)))


def test_ratios_are_target_over_proposal_not_the_other_way():
    np.testing.assert_allclose(weigh(weights.own_ratio), np.exp(TARGET) / np.exp(OWN))
    np.testing.assert_allclose(weigh(weights.mixture_ratio), np.exp(TARGET) / np.exp(MIXTURE))
    np.testing.assert_array_equal(weigh(weights.unit_ratio), np.ones(5))


@pytest.mark.parametrize("power", [0.0, 0.3, 1.0])
def test_power_mean_is_bounded_by_one_over_power(power):
    w = np.exp(TARGET - OWN)
    got = weigh(weights.power_mean_ratio(power))
    np.testing.assert_allclose(got, w / ((1 - power) + power * w), atol=1e-150)
    if power:
        assert got.max() <= 1 / power


def test_shapers_are_applied_in_the_order_given():
    w = np.exp(TARGET - OWN)
    got = weigh(weights.own_ratio, weights.flatten(0.5), weights.truncate(2.0))
    np.testing.assert_allclose(got, np.minimum(np.sqrt(w), 2.0))
    normal = weigh(weights.own_ratio, weights.truncate(2.0), weights.self_normalise())
    np.testing.assert_allclose(normal, np.minimum(w, 2.0) / np.minimum(w, 2.0).mean())


def test_only_valid_samples_carry_weight_or_enter_the_mean():
    valid = jnp.asarray([True, True, False, True, False])
    got = weigh(weights.own_ratio, weights.self_normalise(), valid=valid)
    w = np.exp(TARGET - OWN)[np.asarray(valid)]
    np.testing.assert_allclose(got[np.asarray(valid)], w / w.mean())
    assert not got[~np.asarray(valid)].any()


def test_nothing_valid_is_no_weight_and_no_nan():
    got = weigh(weights.own_ratio, weights.self_normalise(), valid=jnp.zeros(5, bool))
    assert not got.any()
    assert weights.effective_sample_size(jnp.asarray(got)) == 0


def test_effective_sample_size():
    w = np.array([0.1, 2.0, 0.0, 7.0])
    assert weights.effective_sample_size(jnp.asarray(w)) == pytest.approx(
        w.sum() ** 2 / (w**2).sum()
    )
    assert weights.effective_sample_size(jnp.full(6, 1e-200)) == pytest.approx(6)

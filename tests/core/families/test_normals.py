import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.random import threefry_2x32
from passes import take
from scipy import stats

from recoup.core.families.normals import standard_normal, threefry


def test_threefry_is_jaxs():
    key = jax.random.key_data(jax.random.key(7))
    counter = jnp.arange(500, dtype=jnp.uint32)
    got = jnp.concatenate(threefry(key, counter, counter + 500))
    want = threefry_2x32(key, jnp.arange(1000, dtype=jnp.uint32))
    np.testing.assert_array_equal(got, want)


def test_other_types_and_keys_are_left_to_jax():
    rbg = jax.random.key(0, impl="rbg")
    np.testing.assert_array_equal(
        standard_normal(rbg, (5,), jnp.float32), jax.random.normal(rbg, (5,), jnp.float32)
    )
    with jax.enable_x64(True):
        key = jax.random.key(0)
        np.testing.assert_array_equal(
            standard_normal(key, (5,), jnp.float64), jax.random.normal(key, (5,), jnp.float64)
        )


@pytest.mark.parametrize("make_key", [jax.random.key, jax.random.PRNGKey])
def test_standard_normals_are_standard_normal(make_key):
    """Kolmogorov-Smirnov on 400,000 float32 numbers: D sqrt(n) above 2.2 has probability 1e-4."""
    n = 400_000
    x = np.asarray(standard_normal(make_key(3), (n,), jnp.float32), np.float64)
    assert stats.kstest(x, "norm").statistic * np.sqrt(n) < 2.2
    assert abs(stats.kurtosis(x)) < 4 * np.sqrt(24 / n)
    assert abs(np.corrcoef(x[:-1], x[1:])[0, 1]) < 4 / np.sqrt(n)
    assert abs(np.corrcoef(x[: n // 2], x[n // 2 :])[0, 1]) < 4 / np.sqrt(n / 2)
    assert np.isfinite(x).all()
    other = standard_normal(make_key(4), (n,), jnp.float32)
    assert abs(np.corrcoef(x, other)[0, 1]) < 4 / np.sqrt(n)


def test_standard_normals_of_many_keys_are_those_of_each():
    keys = jax.random.split(jax.random.key(0), 3)
    together = jax.vmap(lambda key: standard_normal(key, (7,), jnp.float32))(keys)
    for key, row in zip(keys, together, strict=True):
        np.testing.assert_array_equal(row, standard_normal(key, (7,), jnp.float32))


@pytest.mark.parametrize("n", [14, 35])
def test_an_accelerator_draws_the_same_numbers(n, monkeypatch):
    def draw(key):
        return standard_normal(key, (n,), jnp.float32)

    want = draw(jax.random.key(5))
    take(monkeypatch, "accelerator")
    np.testing.assert_array_equal(draw(jax.random.key(5)), want)

"""Passes over samples by chunks, at sizes that divide badly, against plain loops."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from recoup.core import sweeps

pytestmark = pytest.mark.usefixtures("x64")
SIZES = [1, 2, 3, 7, 8, 9, 16, 17, 97, 128, 129]


@pytest.fixture(params=[1, 24, 40, 10**6])
def chunk(request, monkeypatch):
    """Chunks of at most so many numbers: samples of 3 make chunks of 1, 8, 13 and all."""
    monkeypatch.setattr(sweeps, "CHUNK", request.param)


def samples(n):
    rng = np.random.default_rng(n)
    return jnp.asarray(rng.normal(size=(n, 3)))


@pytest.mark.usefixtures("chunk")
@pytest.mark.parametrize("n", SIZES)
def test_every_sample_is_mapped_once_and_in_its_place(n):
    x = samples(n)
    got = sweeps.map_samples(lambda row: {"sum": row.sum(), "twice": 2 * row}, x)
    np.testing.assert_allclose(got["sum"], np.asarray(x).sum(1), rtol=1e-14)
    np.testing.assert_array_equal(got["twice"], 2 * np.asarray(x))


def total(x):
    def body(total, part, fresh):
        return total + jnp.sum(jnp.where(fresh[:, None], part**2, 0.0), 0), part[:, 0]

    return sweeps.scan_samples(body, jnp.zeros(3), x)


@pytest.mark.usefixtures("chunk")
@pytest.mark.parametrize("n", SIZES)
def test_totals_count_every_sample_once(n):
    x = samples(n)
    found, firsts = total(x)
    np.testing.assert_allclose(found, (np.asarray(x) ** 2).sum(0), rtol=1e-13)
    np.testing.assert_array_equal(firsts, np.asarray(x)[:, 0])


@pytest.mark.usefixtures("chunk")
def test_under_vmap_it_is_a_loop():
    many = jnp.stack([samples(17), samples(17) + 1])
    found, firsts = jax.vmap(total)(many)
    for i, x in enumerate(many):
        np.testing.assert_allclose(found[i], total(x)[0], rtol=1e-13)
        np.testing.assert_array_equal(firsts[i], x[:, 0])


@pytest.mark.parametrize("n", [100, 101, 20_011])
def test_no_size_makes_many_small_chunks(n, monkeypatch):
    """A prime used to make a chunk of each sample."""
    monkeypatch.setattr(sweeps, "CHUNK", 3 * 20)
    size, chunks = sweeps._sizes(samples(1), n)
    assert size <= 20
    assert chunks == -(-n // 20)
    assert size * chunks - n < chunks

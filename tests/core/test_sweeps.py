"""Passes over samples by chunks and at once, at sizes that divide badly, against plain loops."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from passes import PASSES, take

from recoup.core import sweeps

pytestmark = pytest.mark.usefixtures("x64")
SIZES = [1, 2, 3, 7, 8, 9, 16, 17, 97, 128, 129]
WAYS = [("processor", 1), ("processor", 24), ("processor", 40), ("processor", 10**6)]
WAYS += [("accelerator", 10**6)]


@pytest.fixture(params=WAYS, ids=lambda way: f"{way[0]}-{way[1]}")
def way(request, monkeypatch):
    """Chunks of at most so many numbers: samples of 3 make chunks of 1, 8, 13 and all."""
    name, numbers = request.param
    take(monkeypatch, name, numbers, numbers)


def samples(n):
    rng = np.random.default_rng(n)
    return jnp.asarray(rng.normal(size=(n, 3)))


@pytest.mark.usefixtures("way")
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


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("n", SIZES)
def test_totals_count_every_sample_once(n):
    x = samples(n)
    found, firsts = total(x)
    np.testing.assert_allclose(found, (np.asarray(x) ** 2).sum(0), rtol=1e-13)
    np.testing.assert_array_equal(firsts, np.asarray(x)[:, 0])


@pytest.mark.usefixtures("way")
def test_under_vmap_it_is_a_loop():
    many = jnp.stack([samples(17), samples(17) + 1])
    found, firsts = jax.vmap(total)(many)
    for i, x in enumerate(many):
        np.testing.assert_allclose(found[i], total(x)[0], rtol=1e-13)
        np.testing.assert_array_equal(firsts[i], x[:, 0])


BLOCKS = [(1, 1), (1, 7), (7, 1), (3, 5), (13, 2), (2, 13)]


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize(("blocks", "n"), BLOCKS)
def test_every_block_is_mapped_with_what_belongs_to_it(blocks, n):
    x = samples(blocks * n).reshape(blocks, n, 3)
    each = jnp.arange(1.0, blocks + 1)
    got = sweeps.map_blocks(lambda scale, row: scale * row.sum(), each, x)
    want = [[(b + 1) * float(row.sum()) for row in np.asarray(x)[b]] for b in range(blocks)]
    np.testing.assert_allclose(got, want, rtol=1e-13)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize(("blocks", "n"), BLOCKS)
def test_weighted_sums_and_squared_norms_are_those_of_a_loop(blocks, n):
    """Of a function with a vector and a matrix, as a score has with full covariance."""
    x = samples(blocks * n).reshape(blocks, n, 3)
    c = x[..., 0] + 1

    def function(row):
        return {"a": row**2, "b": jnp.outer(row, row)}

    rows, weights = np.asarray(x).reshape(-1, 3), np.asarray(c).ravel()
    want = {"a": np.zeros(3), "b": np.zeros((3, 3))}
    for row, wn in zip(rows, weights, strict=True):
        want["a"] += wn * row**2
        want["b"] += wn * np.outer(row, row)
    got = sweeps.sum_samples(function, x, c)
    for key, value in want.items():
        np.testing.assert_allclose(got[key], value, rtol=1e-12, atol=1e-13)
    norms = [(row**4).sum() + (np.outer(row, row) ** 2).sum() for row in rows]
    np.testing.assert_allclose(sweeps.squared_norms(function, x).ravel(), norms, rtol=1e-13)


@pytest.mark.parametrize("name", PASSES)
@pytest.mark.parametrize("size", [1, 127, 128, 1001])
@pytest.mark.parametrize(("dtype", "error"), [(np.float64, 1e-13), (np.float32, 1e-4)])
def test_the_sum_of_a_sample_is_that_of_numpy(size, name, dtype, error, monkeypatch):
    take(monkeypatch, name)
    terms = np.random.default_rng(size).normal(size=(3, size))
    got = jax.vmap(sweeps.total)(jnp.asarray(terms, dtype))
    assert got.dtype == dtype
    np.testing.assert_allclose(got, terms.sum(1), atol=error)


@pytest.mark.parametrize("dim", [1, 5, 8, 19])
def test_products_in_parts_are_those_of_numpy(dim, monkeypatch):
    monkeypatch.setattr(sweeps, "PRODUCT_COLUMNS", 4)
    rng = np.random.default_rng(dim)
    rows, columns = rng.normal(size=(3, dim)), rng.normal(size=(6, dim))
    got = sweeps.products(lambda a, b: a @ b.T, jnp.asarray(rows), jnp.asarray(columns))
    np.testing.assert_allclose(got, rows @ columns.T, rtol=1e-12, atol=1e-14)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("size", SIZES)
def test_rounds_take_every_wanted_index_once_and_no_other(size):
    wanted = np.random.default_rng(size).random(size) < 0.4

    def body(seen, indices, part):
        return seen.at[jnp.where(part, indices, size)].add(1, mode="drop")

    got = sweeps.in_rounds(body, jnp.zeros(size, jnp.int32), jnp.asarray(wanted), 3)
    np.testing.assert_array_equal(got, wanted)


def test_rounds_without_a_wanted_index_are_left_out(monkeypatch):
    take(monkeypatch, "processor", chunk=8)
    ran = []

    def body(total, indices, part):
        jax.debug.callback(lambda first: ran.append(int(first)), indices[0])
        return total + jnp.sum(part)

    wanted = jnp.zeros(12, bool).at[jnp.asarray([4, 7])].set(True)
    assert sweeps.in_rounds(body, 0, wanted, work=2) == 2
    jax.effects_barrier()
    assert ran == [4]


@pytest.mark.parametrize("name", PASSES)
def test_totals_by_kind_are_those_of_numpy(name, monkeypatch):
    take(monkeypatch, name)
    rng = np.random.default_rng(0)
    kind, values = rng.integers(5, size=101), rng.normal(size=101)
    got = sweeps.totals_by(jnp.asarray(kind), 7, jnp.asarray(values))
    np.testing.assert_allclose(got, np.bincount(kind, values, minlength=7), rtol=1e-13)


def test_a_processor_takes_its_own_pass():
    """Nothing is set here: this is what a program compiled for a CPU does."""
    got = jax.jit(lambda x: sweeps.by_device(lambda x: x + 1, lambda x: x + 2, x))(1)
    assert got == (2 if jax.devices()[0].platform == "cpu" else 3)


@pytest.mark.parametrize("n", [100, 101, 20_011])
def test_no_size_makes_many_small_chunks(n):
    """A prime used to make a chunk of each sample."""
    size, chunks = sweeps._sizes(n, 3, 3 * 20)
    assert size <= 20
    assert chunks == -(-n // 20)
    assert size * chunks - n < chunks


def test_an_accelerator_goes_by_chunks_where_a_sample_needs_more_than_it_has(monkeypatch):
    """A score with full covariance cannot be fused: all of them at once would need the room."""
    take(monkeypatch, "accelerator", room=30)
    seen = []

    def body(total, part, fresh):
        seen.append(fresh.size)
        return total, part[:, 0]

    sweeps.scan_samples(body, None, samples(12), work=10)
    sweeps.scan_samples(body, None, samples(12), work=3)
    assert min(seen) == 3
    assert seen[-1] == 12

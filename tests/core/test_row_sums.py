"""The kernel for log-ratios and norms, by Pallas' interpreter, beside plain loops."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from passes import ForcedKernel

import recoup
from recoup.core import kernels, row_sums
from recoup.core.families.full import Full, full_gaussian
from recoup.core.families.gaussian import Diagonal, diagonal_gaussian
from recoup.engine import search as searches

FAMILY = diagonal_gaussian()


@pytest.fixture
def kernel(monkeypatch):
    """Searches are made anew, and go by the kernel in steps of 8 coordinates."""
    searches._build.cache_clear()
    yield ForcedKernel(monkeypatch, wide=8)
    searches._build.cache_clear()


def problem(blocks, n, dim):
    rng = np.random.default_rng(dim)

    def rho(*shape):
        eta, tau = rng.normal(0, 0.1, (*shape, dim)), np.exp(rng.normal(0, 0.2, (*shape, dim)))
        return Diagonal(jnp.asarray(eta, jnp.float32), jnp.asarray(tau, jnp.float32))

    return rho(), rho(blocks), jnp.asarray(rng.normal(size=(blocks, n, dim)), jnp.float32)


def by_loops(rho, references, samples):
    """In float64, a sample and a coordinate at a time."""
    eta, tau, x = (np.asarray(v, np.float64) for v in (*rho, samples))
    ratio, norm = np.zeros(x.shape[:2]), np.zeros(x.shape[:2])
    for b, n, d in np.ndindex(x.shape):
        at = (float(references.eta[b, d]), float(references.tau[b, d])), (eta[d], tau[d])
        before, after = (-np.log(s) - ((x[b, n, d] - m) / s) ** 2 / 2 for m, s in at)
        z = (x[b, n, d] - eta[d]) / tau[d]
        ratio[b, n] += after - before
        norm[b, n] += (z**2 + (z**2 - 1) ** 2) / tau[d] ** 2
    return ratio, norm


@pytest.mark.parametrize(("n", "dim"), [(4, 8), (8, 24), (12, 29), (16, 19)])
def test_the_kernel_gives_what_loops_give(n, dim, kernel):
    args = problem(3, n, dim)
    got = row_sums.ratios_and_norms(FAMILY, *args)
    assert kernel.calls == 1
    for found, want in zip(got, by_loops(*args), strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-5 * np.abs(want).max())


def test_under_vmap_it_is_a_loop_of_calls(kernel):
    several = [problem(2, 8, 21) for _ in range(3)]
    together = jax.vmap(partial(row_sums.ratios_and_norms, FAMILY))(
        *(jax.tree.map(lambda *x: jnp.stack(x), *each) for each in zip(*several, strict=True))
    )
    assert kernel.calls == 1
    for i, args in enumerate(several):
        for found, want in zip(together, row_sums.ratios_and_norms(FAMILY, *args), strict=True):
            np.testing.assert_allclose(found[i], want, rtol=1e-6)


def test_few_rows_go_by_xla(kernel, monkeypatch):
    """However long they are: a program has several, and most of the device would be idle."""
    monkeypatch.setattr(row_sums, "BUSY_PROGRAMS", 4)
    for n, calls in ((24, 0), (32, 1)):  # 3 and 4 programs
        row_sums.ratios_and_norms(FAMILY, *problem(1, n, 8))
        assert kernel.calls == calls


@pytest.mark.parametrize(("n", "dim"), [(6, 8), (8, 7)])
def test_other_shapes_go_by_xla(n, dim, kernel):
    """Rows that come in pairs, and rows shorter than one step."""
    ratio, norms = row_sums.ratios_and_norms(FAMILY, *problem(2, n, dim))
    assert kernel.calls == 0
    assert ratio.shape == (2, n)
    assert norms is None


def test_a_family_without_terms_goes_by_xla(kernel):
    rho = Full(jnp.zeros(8), jnp.eye(8))
    references = jax.tree.map(lambda x: jnp.stack([x, x]), rho)
    assert (
        row_sums.ratios_and_norms(full_gaussian(), rho, references, jnp.ones((2, 4, 8)))[1] is None
    )
    assert kernel.calls == 0


@pytest.mark.parametrize(("name", "table"), [("iw-pgpe-ob", True), ("mis-pgpe-ob", False)])
def test_a_search_moves_the_same_by_the_kernel(name, table, kernel, monkeypatch):
    def moved():
        searches._build.cache_clear()
        search = recoup.search(name, dim=21, batch=8, capacity=32, table=table)
        state = search.init(jax.random.key(0), mean=0.3)
        for i in range(3):
            theta, state = search.ask(jax.random.key(i), state)
            state, _ = search.tell(jax.random.key(i), state, theta, -jnp.sum(theta**2, axis=1))
        return state.mean, state.std, search.estimate(state.rho, state.archive).gradient.tau

    with_it = moved()
    assert kernel.calls == 4  # rows and columns, in a tell, of which there is one trace, and in an
    # estimate
    monkeypatch.setattr(kernels, "on_cuda", lambda: False)
    for found, want in zip(with_it, moved(), strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-5)
    assert kernel.calls == 4

"""The kernel for sums over samples, by Pallas' interpreter, beside plain loops."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from passes import ForcedKernel

import recoup
from recoup.core import columns, kernels
from recoup.core.families.gaussian import Diagonal, score_terms, score_vectors
from recoup.engine import search as searches


@pytest.fixture
def kernel(monkeypatch):
    """Searches are made anew, and go by the kernel in parts of 8 coordinates."""
    searches._build.cache_clear()
    yield ForcedKernel(monkeypatch, wide=8)
    searches._build.cache_clear()


def problem(n, dim):
    rng = np.random.default_rng(dim)
    numbers = rng.normal(size=(dim,)), np.exp(rng.normal(size=dim)), rng.normal(size=(3, n, dim))
    eta, tau, samples = (jnp.asarray(x, jnp.float32) for x in numbers)
    return Diagonal(eta, tau), samples, jnp.asarray(rng.normal(size=(3, n)), jnp.float32)


def scores_added_up(rho, samples, coefficients):
    return columns.sum_columns(score_terms, score_vectors(rho), samples, coefficients)


def by_loops(rho, samples, coefficients):
    """In float64, a sample at a time."""
    eta, tau, x, c = (np.asarray(v, np.float64) for v in (*rho, samples, coefficients))
    first, second = np.zeros(eta.size), np.zeros(eta.size)
    for at in np.ndindex(c.shape):
        z = (x[at] - eta) / tau
        first += c[at] * z / tau
        second += c[at] * (z**2 - 1) / tau
    return first, second


@pytest.mark.parametrize(("n", "dim"), [(4, 8), (8, 24), (12, 29)])
def test_the_kernel_gives_what_loops_give(n, dim, kernel):
    args = problem(n, dim)
    got = scores_added_up(*args)
    assert kernel.calls == 1
    for found, want in zip(got, by_loops(*args), strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-6 * np.abs(want).max())


def test_under_vmap_each_run_has_its_own_sums(kernel):
    several = [problem(4, 21) for _ in range(3)]
    stacked = (jax.tree.map(lambda *x: jnp.stack(x), *each) for each in zip(*several, strict=True))
    together = jax.vmap(scores_added_up)(*stacked)
    for i, args in enumerate(several):
        for found, want in zip(together, scores_added_up(*args), strict=True):
            np.testing.assert_allclose(found[i], want, rtol=1e-6)


@pytest.mark.parametrize(("n", "dim"), [(5, 8), (8, 7)])
def test_other_shapes_go_by_xla(n, dim, kernel):
    """Rows that no equal shares can be made of, and rows shorter than one part."""
    args = problem(n, dim)
    for found, want in zip(scores_added_up(*args), by_loops(*args), strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-5)
    assert kernel.calls == 0


@pytest.mark.parametrize("name", ["cem", "rwr"])
def test_a_fit_moves_the_same_by_the_kernel(name, kernel, monkeypatch):
    def moved():
        searches._build.cache_clear()
        search = recoup.search(name, dim=21, batch=8, window=4)
        state = search.init(jax.random.key(0), mean=0.3)
        for i in range(3):
            theta, state = search.ask(jax.random.key(i), state)
            state, _ = search.tell(jax.random.key(i), state, theta, -jnp.sum(theta**2, axis=1))
        return state.mean, state.std

    with_it = moved()
    assert kernel.calls
    monkeypatch.setattr(kernels, "on_cuda", lambda: False)
    for found, want in zip(with_it, moved(), strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-5)

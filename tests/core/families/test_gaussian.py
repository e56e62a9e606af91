import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oracles import gauss_hermite
from scipy import stats

from recoup.core.families.family import draw
from recoup.core.families.gaussian import (
    Diagonal,
    fisher,
    kl_divergence,
    log_density,
    log_ratio,
    log_ratios,
    renyi2_divergence,
    score,
)
from recoup.core.sweeps import PRODUCT_COLUMNS

pytestmark = pytest.mark.usefixtures("x64")
P = ([0.3, -1.0, 2.0], [0.5, 1.2, 0.9])
Q = ([0.1, -0.6, 1.5], [0.8, 1.1, 1.4])
THETA = [0.7, -2.5, 3.1]


def rho(pair):
    return Diagonal(jnp.asarray(pair[0]), jnp.asarray(pair[1]))


def test_log_density_is_scipys():
    want = stats.norm.logpdf(THETA, *P).sum()
    assert log_density(rho(P), jnp.asarray(THETA)) == pytest.approx(want, rel=1e-14)


def test_log_ratio_is_the_difference_of_scipys_log_densities():
    want = (stats.norm.logpdf(THETA, *P) - stats.norm.logpdf(THETA, *Q)).sum()
    assert log_ratio(rho(P), rho(Q), jnp.asarray(THETA)) == pytest.approx(want, rel=1e-13)


def test_log_ratio_to_itself_is_exactly_zero():
    assert log_ratio(rho(P), rho(P), jnp.asarray(THETA)) == 0


def test_log_ratios_by_products_are_those_of_every_pair():
    rng, dim = np.random.default_rng(0), PRODUCT_COLUMNS + 7
    rhos = Diagonal(rng.normal(size=(4, dim)), np.exp(rng.normal(0, 0.3, (4, dim))))
    theta, reference = rng.normal(size=(5, dim)), Diagonal(rhos.eta[1], rhos.tau[2])
    got = log_ratios(rhos, reference, theta)
    want = [
        (stats.norm.logpdf(theta, *at) - stats.norm.logpdf(theta, *reference)).sum(1)
        for at in zip(*rhos, strict=True)
    ]
    np.testing.assert_allclose(got, want, rtol=1e-12)


def test_scores_are_the_gradient_of_the_log_density():
    want = jax.grad(log_density)(rho(P), jnp.asarray(THETA))
    got = score(rho(P), jnp.asarray(THETA))
    np.testing.assert_allclose(got.eta, want.eta, rtol=1e-12)
    np.testing.assert_allclose(got.tau, want.tau, rtol=1e-12)


def test_fisher_is_the_expected_square_of_the_score_by_quadrature():
    nodes, mass = gauss_hermite(0.3, 0.7)
    one = Diagonal(jnp.asarray([0.3]), jnp.asarray([0.7]))
    scores = jax.vmap(score, (None, 0))(one, jnp.asarray(nodes)[:, None])
    got = fisher(one)
    np.testing.assert_allclose(got.eta[0], mass @ np.asarray(scores.eta[:, 0]) ** 2, rtol=1e-10)
    np.testing.assert_allclose(got.tau[0], mass @ np.asarray(scores.tau[:, 0]) ** 2, rtol=1e-10)


def test_kl_divergence_is_the_expected_log_ratio_by_quadrature():
    want = 0.0
    for i in range(3):
        nodes, mass = gauss_hermite(P[0][i], P[1][i])
        logs = [stats.norm.logpdf(nodes, rho[0][i], rho[1][i]) for rho in (P, Q)]
        want += mass @ (logs[0] - logs[1])
    assert kl_divergence(rho(P), rho(Q)) == pytest.approx(want, rel=1e-12)
    assert kl_divergence(rho(P), rho(P)) == 0


def test_renyi_divergence_is_the_log_of_the_expected_squared_weight_by_quadrature():
    want = 0.0
    for i in range(3):
        grid = np.linspace(-25, 25, 400_001)
        p, q = (stats.norm.pdf(grid, rho[0][i], rho[1][i]) for rho in (P, Q))
        want += np.log(
            np.sum(np.where(q > 0, p**2 / np.where(q > 0, q, 1), 0)) * (grid[1] - grid[0])
        )
    assert renyi2_divergence(rho(P), rho(Q)) == pytest.approx(want, rel=1e-9)


@pytest.mark.parametrize("wide", [[2.0], [2.0, 2.0], [np.sqrt(2.0), 0.5]])
def test_renyi_divergence_is_infinite_wherever_a_coordinate_makes_it_so(wide):
    narrow = Diagonal(jnp.zeros(len(wide)), jnp.ones(len(wide)))
    assert renyi2_divergence(Diagonal(jnp.zeros(len(wide)), jnp.asarray(wide)), narrow) == jnp.inf


def test_draws_have_the_distribution_within_four_standard_errors():
    n = 100_000
    x = np.asarray(draw(jax.random.key(0), rho(P), n))
    eta, tau = np.array(P[0]), np.array(P[1])
    assert (np.abs(x.mean(0) - eta) < 4 * tau / np.sqrt(n)).all()
    assert (np.abs(x.std(0) - tau) < 4 * tau / np.sqrt(2 * n)).all()


def test_mirrored_draws_are_adjacent_pairs_around_the_mean():
    x = np.asarray(draw(jax.random.key(0), rho(P), 8, mirrored=True))
    np.testing.assert_allclose((x[0::2] + x[1::2]) / 2, np.tile(P[0], (4, 1)), atol=1e-15)
    assert len(np.unique(x[:, 0])) == 8


def test_float32_log_ratios_hold_at_a_hundred_thousand_dimensions():
    """KL 1 apart, by a shift and a change of scale: within 1e-4 of float64 on the same numbers."""
    dim, n = 100_000, 20
    shift, grow = np.sqrt(1 / dim), np.sqrt(0.5 / dim)
    key = jax.random.key(0)
    near = Diagonal(
        (20 + 0.3 * jax.random.normal(key, (dim,))).astype(jnp.float32),
        (3 * jnp.exp(0.5 * jax.random.normal(jax.random.key(1), (dim,)))).astype(jnp.float32),
    )
    far = Diagonal(near.eta + np.float32(shift) * near.tau, near.tau * np.float32(1 + grow))
    assert kl_divergence(far, near) == pytest.approx(1.0, rel=0.02)
    x = draw(jax.random.key(2), near, n)
    assert x.dtype == jnp.float32
    got = jax.jit(jax.vmap(log_ratio, (None, None, 0)))(far, near, x)
    wide = jax.tree.map(lambda a: np.asarray(a, np.float64), (far, near, x))
    want = stats.norm.logpdf(wide[2], *wide[0]).sum(1) - stats.norm.logpdf(wide[2], *wide[1]).sum(1)
    assert got.dtype == jnp.float32
    assert np.abs(np.asarray(got) - want).max() < 1e-4

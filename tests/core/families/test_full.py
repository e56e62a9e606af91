"""The Gaussian with full covariance, against scipy, autodiff, quadrature and the diagonal one."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oracles import gauss_hermite
from scipy import stats

from recoup.core.families import gaussian
from recoup.core.families.family import draw
from recoup.core.families.full import (
    Full,
    floored,
    full_gaussian,
    kl_divergence,
    log_density,
    moved,
    natural,
    renyi2_divergence,
    score,
)
from recoup.core.families.gaussian import Diagonal

pytestmark = pytest.mark.usefixtures("x64")
FAMILY = full_gaussian()
log_ratio = FAMILY.log_ratio
P = Full(np.array([0.3, -1.0, 2.0]), np.array([[0.5, 0, 0], [0.4, 1.2, 0], [-0.7, 0.2, 0.9]]))
Q = Full(np.array([0.1, -0.6, 1.5]), np.array([[0.8, 0, 0], [-0.3, 1.1, 0], [0.2, 0.5, 1.4]]))
THETA = np.array([0.7, -2.5, 3.1])
P2 = Full(np.array([0.3, -0.2]), np.array([[0.6, 0], [0.3, 0.7]]))
Q2 = Full(np.array([-0.1, 0.2]), np.array([[0.9, 0], [-0.2, 1.1]]))


def covariance(rho):
    return np.asarray(rho.factor @ rho.factor.T)


def as_arrays(rho):
    return jax.tree.map(jnp.asarray, rho)


def plane(rho):
    """Points and masses of a Gaussian of two dimensions, exact for polynomials."""
    nodes, mass = gauss_hermite(0.0, 1.0)
    z = np.stack(np.meshgrid(nodes, nodes, indexing="ij"), -1).reshape(-1, 2)
    return jax.vmap(as_arrays(rho).theta)(jnp.asarray(z)), np.outer(mass, mass).ravel()


def test_log_density_is_scipys():
    want = stats.multivariate_normal.logpdf(THETA, P.eta, covariance(P))
    assert log_density(as_arrays(P), jnp.asarray(THETA)) == pytest.approx(want, rel=1e-13)


def test_log_ratio_is_the_difference_of_scipys_log_densities():
    logs = [stats.multivariate_normal.logpdf(THETA, r.eta, covariance(r)) for r in (P, Q)]
    got = log_ratio(as_arrays(P), as_arrays(Q), jnp.asarray(THETA))
    assert got == pytest.approx(logs[0] - logs[1], rel=1e-12)


def test_the_score_is_the_gradient_of_the_log_density():
    """Autodiff knows nothing of the triangle: above the diagonal the factor is not there."""
    want = jax.grad(log_density)(as_arrays(P), jnp.asarray(THETA))
    got = score(as_arrays(P), jnp.asarray(THETA))
    np.testing.assert_allclose(got.eta, want.eta, rtol=1e-12)
    np.testing.assert_allclose(got.factor, np.tril(want.factor), rtol=1e-12, atol=1e-14)


def lower(rho):
    """A pytree of rho as one vector, without what lies above the diagonal."""
    return np.concatenate([rho.eta, np.asarray(rho.factor)[np.tril_indices(len(rho.eta))]])


def test_the_natural_gradient_is_the_inverse_fisher_information_times_the_gradient():
    """The Fisher information by quadrature of the scores' outer product, at d = 2."""
    theta, mass = plane(P2)
    scores = jax.device_get(jax.vmap(lambda x: score(as_arrays(P2), x))(theta))
    rows = np.stack([lower(jax.tree.map(lambda s: s[i], scores)) for i in range(len(mass))])  # noqa: B023
    fisher = rows.T @ (mass[:, None] * rows)
    gradient = Full(jnp.array([0.7, -1.3]), jnp.array([[0.4, 0.0], [-0.9, 1.1]]))
    got = natural(as_arrays(P2), gradient)
    np.testing.assert_allclose(lower(got), np.linalg.solve(fisher, lower(gradient)), rtol=1e-9)


def test_divergences_are_those_of_quadrature():
    theta, mass = plane(P2)
    ratios = jax.vmap(lambda x: log_ratio(as_arrays(P2), as_arrays(Q2), x))(theta)
    assert kl_divergence(as_arrays(P2), as_arrays(Q2)) == pytest.approx(
        float(mass @ np.asarray(ratios)), rel=1e-10
    )
    theta, mass = plane(Q2)
    ratios = jax.vmap(lambda x: log_ratio(as_arrays(P2), as_arrays(Q2), x))(theta)
    want = np.log(mass @ np.exp(2 * np.asarray(ratios)))
    assert renyi2_divergence(as_arrays(P2), as_arrays(Q2)) == pytest.approx(want, rel=1e-6)


def test_renyi_is_infinite_where_one_direction_is_too_wide():
    """Twice the covariance of q less that of p must be positive: two bad axes do not cancel."""
    turned = np.linalg.cholesky(np.array([[3.0, 0.4], [0.4, 2.5]]))
    wide = Full(jnp.zeros(2), jnp.asarray(turned))
    narrow = Full(jnp.zeros(2), jnp.eye(2))
    assert renyi2_divergence(wide, narrow) == jnp.inf
    assert np.isfinite(renyi2_divergence(narrow, wide))


@pytest.mark.parametrize("kl", [0.01, 0.5])
def test_a_natural_step_goes_as_far_as_it_says(kl):
    gradient = Full(jnp.array([0.7, -1.3]), jnp.array([[0.4, 0.0], [-0.9, 0.3]]))
    rho = as_arrays(P2)
    new = moved(rho, natural(rho, gradient), kl)
    assert kl_divergence(new, rho) == pytest.approx(kl, rel=1e-9)
    np.testing.assert_allclose(np.triu(new.factor, 1), 0.0, atol=1e-15)
    assert (np.diagonal(new.factor) > 0).all()


def test_without_correlations_it_is_the_diagonal_one():
    eta, tau = np.array([0.3, -1.0, 2.0]), np.array([0.5, 1.2, 0.9])
    d_eta, d_tau = np.array([0.2, -0.4, 1.0]), np.array([-0.3, 0.8, 0.1])
    plain = as_arrays(Diagonal(eta, tau))
    full = as_arrays(Full.start(eta, tau))
    other = as_arrays(Diagonal(eta + 0.3, tau * 1.3)), as_arrays(Full.start(eta + 0.3, tau * 1.3))
    x = jnp.asarray(THETA)
    for one, two in (
        (gaussian.log_density(plain, x), log_density(full, x)),
        (gaussian.log_ratio(plain, other[0], x), log_ratio(full, other[1], x)),
        (gaussian.kl_divergence(plain, other[0]), kl_divergence(full, other[1])),
        (gaussian.renyi2_divergence(plain, other[0]), renyi2_divergence(full, other[1])),
    ):
        assert float(one) == pytest.approx(float(two), rel=1e-12)
    gradient = as_arrays(Diagonal(d_eta, d_tau)), as_arrays(Full(d_eta, np.diag(d_tau)))
    steps = (
        gaussian.moved(plain, gaussian.natural(plain, gradient[0]), 0.3),
        moved(full, natural(full, gradient[1]), 0.3),
    )
    np.testing.assert_allclose(steps[0].eta, steps[1].eta, rtol=1e-9)
    np.testing.assert_allclose(np.diag(steps[0].tau), steps[1].factor, rtol=1e-9, atol=1e-14)
    np.testing.assert_allclose(steps[1].std, steps[0].tau, rtol=1e-9)


def test_draws_have_the_distribution_within_four_standard_errors():
    n = 100_000
    x = np.asarray(draw(jax.random.key(0), as_arrays(P), n))
    want = covariance(P)
    std = np.sqrt(np.diag(want))
    assert (np.abs(x.mean(0) - P.eta) < 4 * std / np.sqrt(n)).all()
    got = np.cov(x.T)
    error = np.sqrt((want**2 + np.outer(std**2, std**2)) / n)  # of a covariance's estimate
    assert (np.abs(got - want) < 4 * error).all()
    np.testing.assert_allclose(P.std, std, rtol=1e-12)


def test_mirrored_draws_are_pairs_around_the_mean():
    x = np.asarray(draw(jax.random.key(1), as_arrays(P), 8, mirrored=True))
    np.testing.assert_allclose((x[0::2] + x[1::2]) / 2, np.tile(P.eta, (4, 1)), atol=1e-14)


def test_the_floor_holds_every_conditional_deviation():
    low = Full(jnp.zeros(2), jnp.array([[0.01, 0.0], [0.4, -0.3]]))
    np.testing.assert_allclose(floored(low, 0.05).factor, [[0.05, 0.0], [0.4, 0.05]])


@pytest.mark.parametrize("dim", [1, 2, 7])
def test_a_block_of_numbers_holds_it_whole(dim):
    rng = np.random.default_rng(dim)
    rho = Full(rng.normal(size=dim), np.tril(rng.normal(size=(dim, dim))))
    block = rho.packed()
    assert block.shape == (dim + dim * (dim + 1) // 2,)
    np.testing.assert_array_equal(
        np.concatenate(Full.unpacked(block, dim), None), np.concatenate(rho, None)
    )
    several = Full.unpacked(np.stack([block, 2 * block]), dim)
    np.testing.assert_array_equal(several.factor[1], 2 * rho.factor)
    np.testing.assert_array_equal(FAMILY.unpacked(jnp.asarray(block), dim).factor, rho.factor)


def test_float32_log_ratios_hold_where_two_log_densities_would_not():
    """Two distributions a KL of 1 apart in 300 dimensions, beside float64 on the same numbers."""
    rng = np.random.default_rng(3)
    d = 300
    factor = np.tril(rng.normal(size=(d, d)) / d) + np.diag(rng.uniform(0.5, 1.5, d))
    near = Full(rng.normal(size=d), factor)
    far = Full(near.eta + 0.05 * rng.normal(size=d), factor + np.diag(0.02 * rng.normal(size=d)))
    theta = near.theta(rng.normal(size=(20, d)))
    small = [jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), r) for r in (near, far)]
    exact = [jax.tree.map(lambda x: jnp.asarray(x, jnp.float64), r) for r in small]
    samples = jnp.asarray(theta, jnp.float32)
    got = jax.vmap(lambda x: log_ratio(*small, x))(samples)
    want = jax.vmap(lambda x: log_ratio(*exact, x.astype(jnp.float64)))(samples)
    assert got.dtype == jnp.float32
    assert np.abs(np.asarray(got, np.float64) - np.asarray(want)).max() < 1e-4

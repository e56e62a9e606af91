"""The Gaussian of low rank beside a diagonal, against the dense one of the same covariance."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.linalg import expm

from recoup.core.families import full, lowrank
from recoup.core.families.family import draw
from recoup.core.families.full import Full
from recoup.core.families.lowrank import LOW_RANK, RANK, LowRank, Spiked, low_rank_gaussian
from recoup.core.families.spikes import waves

pytestmark = pytest.mark.usefixtures("x64")
FAMILY = low_rank_gaussian()
RNG = np.random.default_rng(7)
DIM = 11


def made(seed, rank=3, dim=DIM, wide=1.5):
    """Axes both wide and narrow, in no order."""
    rng = np.random.default_rng(seed)
    axes = np.linalg.qr(rng.normal(size=(dim, rank)))[0]
    scale = np.exp(rng.uniform(-wide, wide, rank))
    return LowRank(rng.normal(size=dim), rng.uniform(0.4, 2.0, dim), axes, scale)


def root(rho):
    return rho.tau[:, None] * (np.eye(len(rho.tau)) + (rho.axes * (rho.scale - 1)) @ rho.axes.T)


def covariance(rho):
    return root(rho) @ root(rho).T


def dense(rho):
    return Full(rho.eta, np.linalg.cholesky(covariance(rho)))


P, Q = made(1), made(2)
NEAR = made(1)._replace(eta=made(1).eta + 0.1, tau=made(1).tau * 0.95, scale=made(1).scale * 1.1)
THETA = P.eta + RNG.normal(size=(5, DIM)) @ root(P).T
BOTH = pytest.mark.parametrize("xp", [np, jnp])


def on(xp, rho):
    return type(rho)(*map(xp.asarray, rho))


@BOTH
def test_densities_are_those_of_the_dense_covariance(xp):
    want = [stats.multivariate_normal.logpdf(THETA, r.eta, covariance(r)) for r in (P, Q)]
    p, q = on(xp, P), on(xp, Q)
    for i, x in enumerate(xp.asarray(THETA)):
        assert float(lowrank.log_density(p, x)) == pytest.approx(want[0][i], rel=1e-12)
        found = float(FAMILY.log_ratio(p, q, x))
        assert found == pytest.approx(want[0][i] - want[1][i], rel=1e-11)


@BOTH
def test_divergences_are_those_of_the_dense_covariance(xp):
    for p, q in ((P, Q), (Q, P), (NEAR, P), (P, NEAR), (P, P)):
        want = full.kl_divergence(dense(p), dense(q))
        found = float(lowrank.kl_divergence(on(xp, p), on(xp, q)))
        assert found == pytest.approx(float(want), rel=1e-10, abs=1e-13)
        want = float(full.renyi2_divergence(dense(p), dense(q)))
        found = float(lowrank.renyi2_divergence(on(xp, p), on(xp, q)))
        assert found == pytest.approx(want, rel=1e-8, abs=1e-12)
    assert np.isfinite(lowrank.renyi2_divergence(P, NEAR))


def test_renyi_is_finite_exactly_where_the_dense_one_is():
    """Also where tau alone is too wide and narrow axes make up for it, and the other way round."""
    finite = 0
    for seed in range(200):
        p, q = made(seed, wide=0.5), made(seed, wide=0.5)
        rng = np.random.default_rng(seed)
        p = p._replace(tau=p.tau * np.exp(rng.normal(scale=0.3, size=DIM)), scale=p.scale * 0.7)
        want = float(full.renyi2_divergence(dense(p), dense(q)))
        found = float(lowrank.renyi2_divergence(p, q))
        assert found == pytest.approx(want, rel=1e-7)
        finite += np.isfinite(want)
    assert 20 < finite < 180


def test_scores_are_those_of_autodiff_through_the_dense_covariance():
    def log_density(rho, theta):
        m = jnp.eye(DIM) + (rho.axes * (rho.scale - 1)) @ rho.axes.T
        a = rho.tau[:, None] * m
        return jax.scipy.stats.multivariate_normal.logpdf(theta, rho.eta, a @ a.T)

    for x in THETA:
        want = jax.grad(log_density)(on(jnp, P), x)
        for found in (lowrank.score(P, x), lowrank.score(on(jnp, P), jnp.asarray(x))):
            for a, b in zip(found, want, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-10)
    many = lowrank.score(P, THETA)
    for i, x in enumerate(THETA):
        for a, b in zip(many, lowrank.score(P, x), strict=True):
            np.testing.assert_allclose(a[i], b, rtol=1e-13, atol=1e-13)


def test_draws_have_the_covariance_within_four_standard_errors():
    n, want = 100_000, covariance(P)
    x = np.asarray(draw(jax.random.key(0), on(jnp, P), n))
    std = np.sqrt(np.diag(want))
    np.testing.assert_allclose(P.std, std, rtol=1e-12)
    assert (np.abs(x.mean(0) - P.eta) < 4 * std / np.sqrt(n)).all()
    error = np.sqrt((want**2 + np.outer(std**2, std**2)) / n)
    assert (np.abs(np.cov(x.T) - want) < 4.5 * error).all()  # of 66 numbers


@BOTH
def test_whitening_undoes_the_drawing(xp):
    z = RNG.normal(size=(6, DIM))
    theta = np.stack([P.theta(one) for one in z])
    np.testing.assert_allclose(theta, P.eta + z @ root(P).T, rtol=1e-12)
    np.testing.assert_allclose(FAMILY.whitened(on(xp, P), xp.asarray(theta)), z, rtol=1e-10)
    assert float(np.sum(P.log_spread(np))) == pytest.approx(np.linalg.slogdet(root(P))[1])


@BOTH
def test_a_stretch_that_it_can_hold_is_exact(xp):
    """With as many axes as it has, of which it moves one: a matrix exponential says where to."""
    rho = on(xp, P)
    q, values = P.axes[:, :1], np.array([0.4])
    log = Spiked(xp.full(DIM, 0.1), xp.asarray(q), xp.asarray(values))
    delta = RNG.normal(size=DIM)
    found = FAMILY.stretched(rho, xp.asarray(delta), log, xp.full(DIM, 1e-9))
    factor = root(P) @ expm(0.1 * np.eye(DIM) + (q * values) @ q.T)
    np.testing.assert_allclose(covariance(on(np, found)), factor @ factor.T, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(found.mean, P.eta + root(P) @ delta, rtol=1e-12)


def test_a_stretch_that_it_cannot_hold_keeps_every_variance():
    axes = np.linalg.qr(RNG.normal(size=(DIM, 4)))[0]
    first, values = RNG.uniform(-0.5, 0.5, DIM), np.array([0.4, -0.3, 0.2, -0.5])
    new = P.stretched(np, np.zeros(DIM), Spiked(first, axes, values), np.full(DIM, 1e-9))
    factor = root(P) @ np.diag(np.exp(first)) @ expm((axes * values) @ axes.T)
    np.testing.assert_allclose(new.std**2, np.diag(factor @ factor.T), rtol=1e-10)
    np.testing.assert_allclose(new.axes.T @ new.axes, np.eye(3), atol=1e-12)


def test_the_floor_holds_the_axes_and_keeps_what_is_above():
    turned = P._replace(axes=P.axes + 0.3 * RNG.normal(size=P.axes.shape))
    same = lowrank.floored(turned, 1e-9)
    np.testing.assert_allclose(covariance(same), covariance(turned), rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(same.axes.T @ same.axes, np.eye(3), atol=1e-12)
    low = lowrank.floored(P._replace(scale=np.array([1e-9, 1.0, 2.0])), 0.05)
    assert (np.linalg.norm(low.scale * (low.tau[:, None] * low.axes), axis=0) > 0.05 - 1e-9).all()
    assert (lowrank.floored(P._replace(tau=-P.tau), 0.05).tau > 0).all()


def test_a_fit_of_many_samples_finds_the_axes_and_one_of_few_does_not():
    want = covariance(P._replace(eta=0 * P.eta))
    n = 40_000
    z = RNG.normal(size=(n, DIM)) @ root(P).T
    unit = LowRank.start(np.zeros(DIM), np.ones(DIM))
    new = unit.refitted(np, np.zeros(DIM), LOW_RANK.covariance(np, z, np.full(n, 1 / n), 1.0))
    np.testing.assert_allclose(covariance(new), want, atol=0.05 * np.abs(want).max())
    few = RNG.normal(size=(6, DIM))
    noise = LOW_RANK.covariance(np, few, np.full(6, 1 / 6), 5 / 6)
    np.testing.assert_array_equal(noise.values, 0.0)
    np.testing.assert_allclose(noise.diagonal, (few**2).mean(0) * 6 / 5, rtol=1e-12)


@BOTH
def test_leading_axes_are_those_of_the_whole_matrix(xp):
    z, c = RNG.normal(size=(30, 40)), RNG.normal(size=30)
    z[:, 0] *= 9
    matrix = (z * c[:, None]).T @ z
    values, axes = lowrank.leading(xp, lambda q: xp.asarray(matrix) @ q, xp.zeros(40))
    want = np.linalg.eigvalsh(matrix)
    want = want[np.argsort(-np.abs(want))]
    np.testing.assert_allclose(values[:3], want[:3], rtol=1e-3)
    np.testing.assert_allclose(matrix @ axes[:, 0], values[0] * axes[:, 0], rtol=1e-2, atol=1e-1)


@pytest.mark.parametrize(
    "source", [(0, 1, 2), (2, 0), (5,), (3, None, 1), (None, *range(11), None)]
)
def test_coordinates_keep_their_correlations_wherever_they_go(source):
    mean, std = np.arange(len(source)) * 1.0, np.arange(len(source)) + 0.5
    found = P.rearranged(source, mean, std)
    np.testing.assert_allclose(found.std, std, rtol=1e-12)
    assert found.scale.shape == (min(len(source), RANK),)
    before = covariance(P) / np.outer(P.std, P.std)
    after = covariance(found) / np.outer(std, std)
    for i, a in enumerate(source):
        for j, b in enumerate(source):
            want = 1.0 if i == j else 0.0 if None in (a, b) else before[a, b]
            assert after[i, j] == pytest.approx(want, abs=1e-12)


@pytest.mark.parametrize(("kept", "fixed"), [([0, 2], [1]), ([1, 4, 3], [10, 0]), ([2, 1], [])])
def test_what_is_left_given_the_others_is_the_conditional_gaussian(kept, fixed):
    values = P.mean[fixed] + RNG.normal(size=len(fixed))
    want, found = dense(P).given(kept, fixed, values), P.given(kept, fixed, values)
    np.testing.assert_allclose(found.mean, want.mean, rtol=1e-10)
    np.testing.assert_allclose(covariance(found), want.factor @ want.factor.T, rtol=1e-9)


@pytest.mark.parametrize("dim", [1, 2, 7, 20])
def test_a_start_is_uncorrelated_and_a_block_of_numbers_holds_it_whole(dim):
    start = LowRank.start(np.zeros(dim), np.arange(dim) + 0.5)
    np.testing.assert_allclose(start.std, np.arange(dim) + 0.5, rtol=1e-15)
    rank = min(dim, RANK)
    np.testing.assert_allclose(start.axes.T @ start.axes, np.eye(rank), atol=1e-14)
    np.testing.assert_allclose(waves(dim, 99).T @ waves(dim, 99), np.eye(dim), atol=1e-13)
    block = start.packed()
    assert block.shape == (2 * dim + dim * rank + rank,)
    several = LowRank.unpacked(np.stack([block, block + 1]), dim)
    for i in (0, 1):
        for a, b in zip(several, start, strict=True):
            np.testing.assert_array_equal(a[i], b + i)

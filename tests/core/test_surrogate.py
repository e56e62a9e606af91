"""The model of the returns, against quadrature, scipy, and the same with a point taken away."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
import pytest
from oracles import gauss_hermite
from scipy import stats

from recoup.core import surrogate

pytestmark = pytest.mark.usefixtures("x64")


class Hyper(NamedTuple):
    """A cell of the grid, and a noise."""

    length: float
    bowl: float
    noise: float


HYPER = Hyper(1.7, 0.4, 0.3)
BOTH = pytest.mark.parametrize("xp", [np, jnp], ids=["numpy", "jax"])


def data(dim=2, n=9, spare=0):
    rng = np.random.default_rng(dim)
    z = rng.normal(0.6, 1.1, (n, dim))
    y = np.sin(z.sum(1)) + 0.1 * rng.standard_normal(n)
    valid = np.arange(n + spare) < n
    padded = np.concatenate([z, rng.standard_normal((spare, dim))])  # what lies there is no matter
    return padded, np.concatenate([y, np.zeros(spare)]), valid


def loop_kernel(a, b, z, hyper):
    """k(a, b) of two points, with the bowl of the points z."""
    mean = (z**2).sum(1).mean()
    bowl = [((x**2).sum() - mean) / 2 for x in (a, b)]
    trend = 3 * a @ b + hyper.bowl * bowl[0] * bowl[1]
    return 3 + np.exp(-((a - b) ** 2).sum() / (2 * hyper.length)) + trend / hyper.length


def gram(z, hyper=HYPER):
    return np.array([[loop_kernel(a, b, z, hyper) for b in z] for a in z])


def product_rule(dim):
    """Nodes `[12^dim, dim]` and their masses: exact to 1e-8 for the kernel above."""
    nodes, mass = gauss_hermite(0.0, 1.0, 12)
    grid = np.stack(np.meshgrid(*[nodes] * dim, indexing="ij"), -1).reshape(-1, dim)
    weights = np.prod(np.stack(np.meshgrid(*[mass] * dim, indexing="ij"), -1), -1).ravel()
    return grid, weights


@BOTH
def test_the_kernel_is_that_of_a_plain_loop_and_zero_for_points_that_are_not_there(xp):
    z, _, valid = data(spare=3)
    points = surrogate.points_of(xp.asarray(z), xp.asarray(valid))
    bowl = HYPER.bowl / HYPER.length * np.outer(points.bowl, points.bowl)
    got = np.asarray(surrogate.kernel(points, HYPER.length)) + bowl
    np.testing.assert_allclose(got[:9, :9], gram(z[:9]), rtol=1e-12)
    assert not got[9:].any()
    assert not got[:, 9:].any()


@pytest.mark.parametrize("dim", [1, 2])
def test_expectations_of_the_kernel_are_those_of_quadrature(dim):
    z, _, valid = data(dim)
    points = surrogate.points_of(jnp.asarray(z), jnp.asarray(valid))
    each, both = surrogate.expected_kernel(points, HYPER.length, HYPER.bowl)
    grid, mass = product_rule(dim)
    table = np.array([[loop_kernel(x, a, z, HYPER) for a in z] for x in grid])
    np.testing.assert_allclose(each, mass @ table, rtol=1e-6)
    pairs = np.array([mass @ [loop_kernel(x, y, z, HYPER) for x in grid] for y in grid[::1]])
    np.testing.assert_allclose(both, mass @ pairs, rtol=1e-5)


def one(z, y, valid, hyper=HYPER, xp=jnp):
    """The posterior of one cell; that of another bowl and noise comes after it."""
    points = surrogate.points_of(xp.asarray(z), xp.asarray(valid))
    grid = {"bowls": (hyper.bowl, 3.0), "noises": (hyper.noise, 2.0)}
    found = surrogate.posterior(points, xp.asarray(y), hyper.length, **grid)
    assert len(found.mean) == 4
    return [np.asarray(x) for x in found]


@BOTH
def test_the_posterior_is_that_of_the_inverse_of_the_whole_matrix(xp):
    z, y, valid = data(spare=4)
    points = surrogate.points_of(xp.asarray(z), xp.asarray(valid))
    each, both = map(np.asarray, surrogate.expected_kernel(points, HYPER.length, HYPER.bowl))
    inverse = np.linalg.inv(gram(z[:9]) + HYPER.noise * np.eye(9))
    signal = (y[:9] @ inverse @ y[:9] + 2) / 11
    _, mean, variance, _, pulls = one(z, y, valid, xp=xp)
    np.testing.assert_allclose(mean[0], each[:9] @ inverse @ y[:9], rtol=1e-9)
    np.testing.assert_allclose(pulls[0][:9], each[:9] @ inverse, rtol=1e-8)
    want = signal * (both - each[:9] @ inverse @ each[:9])
    np.testing.assert_allclose(variance[0], want, rtol=1e-7)


def test_a_residual_is_what_the_other_points_leave_over():
    """Each point is really taken away; the bowl stays that of all."""
    z, y, valid = data()
    k = gram(z)
    _, _, _, residuals, _ = one(z, y, valid)
    for i in range(9):
        rest = np.delete(np.arange(9), i)
        inverse = np.linalg.inv(k[np.ix_(rest, rest)] + HYPER.noise * np.eye(8))
        assert residuals[0][i] == pytest.approx(y[i] - k[i, rest] @ inverse @ y[rest], rel=1e-8)


def test_the_evidence_is_that_of_a_multivariate_t_times_the_prior():
    """But for a constant, so that differences are compared."""
    z, y, valid = data(spare=2)
    others = [HYPER, Hyper(0.6, 0.4, 0.3), Hyper(1.7, 2.0, 0.3), Hyper(1.7, 0.4, 0.01)]
    found, want = [], []
    for hyper in others:
        found.append(float(one(z, y, valid, hyper)[0][0]))
        matrix = gram(z[:9], hyper) + hyper.noise * np.eye(9)
        density = stats.multivariate_t(np.zeros(9), matrix, df=2).logpdf(y[:9])
        prior = stats.norm.logpdf(np.log(hyper.length / 2))
        prior += stats.norm.logpdf(np.log(hyper.bowl / 0.25), scale=1.5)
        prior += stats.norm.logpdf(np.log(hyper.noise / 0.1), scale=3.0)
        want.append(density + prior)
    np.testing.assert_allclose(np.diff(found), np.diff(want), rtol=1e-8)


def test_a_bowl_is_known_far_beyond_its_points_and_a_wave_is_not():
    rng = np.random.default_rng(3)
    z = rng.normal(-2.0, 0.8, (40, 2))  # in coordinates where the Gaussian is N(0, I)
    valid = jnp.ones(40, bool)
    bowl = surrogate.fitted(jnp.asarray(z), jnp.asarray(-((z - 1) ** 2).sum(1)), valid)
    wave = surrogate.fitted(jnp.asarray(z), jnp.asarray(np.sin(4 * z).sum(1)), valid)
    assert abs(float(bowl.mean) + 4) < 3 * float(bowl.std)
    spread = [float(np.std(f)) for f in (-((z - 1) ** 2).sum(1), np.sin(4 * z).sum(1))]
    assert float(bowl.std) < 0.2 * spread[0]
    assert float(wave.std) > 0.8 * spread[1]


def test_equal_returns_have_a_mean_and_no_residual():
    z, _, valid = data()
    found = surrogate.fitted(jnp.asarray(z), jnp.full(9, 7.0), jnp.asarray(valid))
    assert float(found.mean) == pytest.approx(7.0)
    assert not np.asarray(found.residuals).any()


def test_points_that_are_not_there_change_nothing_by_numpy_or_jax():
    z, y, valid = data(dim=3, n=11, spare=5)
    alone = surrogate.fitted(z[:11], y[:11], valid[:11])
    for xp in (np, jnp):
        found = surrogate.fitted(xp.asarray(z), xp.asarray(y), xp.asarray(valid))
        for x, want in zip(found, alone, strict=True):
            got = np.asarray(x)[:11] if np.ndim(x) else x
            np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)
        assert not np.asarray(found.residuals)[11:].any()
        assert not np.asarray(found.pulls)[11:].any()

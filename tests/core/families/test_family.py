"""Closed forms of our families: NumPy's arrays stay so, and give what JAX's give."""

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import recoup
from recoup.core.families.family import orthogonal
from recoup.core.families.full import Full, full_gaussian
from recoup.core.families.gaussian import Diagonal, diagonal_gaussian, log_ratio
from recoup.core.families.lowrank import LowRank, low_rank_gaussian

pytestmark = pytest.mark.usefixtures("x64")
RNG = np.random.default_rng(4)
FACTORS = [np.tril(RNG.normal(size=(3, 3)), -1) + np.diag([0.5, 1.2, 0.9]) for _ in range(2)]
AXES = np.linalg.qr(RNG.normal(size=(3, 2)))[0]
RHOS = {
    "diagonal": (
        Diagonal(np.array([0.3, -1.0, 2.0]), np.array([0.5, 1.2, 0.9])),
        Diagonal(np.array([0.1, -0.6, 1.5]), np.array([0.8, 1.1, 1.4])),
    ),
    "full": (
        Full(np.array([0.3, -1.0, 2.0]), FACTORS[0]),
        Full(np.array([0.1, -0.6, 1.5]), 1.3 * FACTORS[0] + 0.2 * np.tril(FACTORS[1])),
    ),
    "lowrank": (
        LowRank(np.array([0.3, -1.0, 2.0]), np.array([0.5, 1.2, 0.9]), AXES, np.array([1.2, 0.7])),
        LowRank(np.array([0.1, -0.6, 1.5]), np.array([0.8, 1.1, 1.4]), AXES, np.array([1.4, 0.9])),
    ),
}
FAMILIES = {
    "diagonal": diagonal_gaussian(),
    "full": full_gaussian(),
    "lowrank": low_rank_gaussian(),
}
THETA = RNG.normal(size=(5, 3))
CASES = {
    "log_density": lambda f, p, q: f.log_density(p, THETA[0]),
    "ratio_of_noise": lambda f, p, q: f.ratio_of_noise(p, q, THETA[1]),
    "score": lambda f, p, q: f.score(p, THETA[2]),
    "divergence": lambda f, p, q: f.divergence(p, q, None, None),
    "renyi2": lambda f, p, q: f.renyi2(p, q),
    "no renyi2": lambda f, p, q: f.renyi2(
        q._replace(eta=p.eta), p._replace(**{p._fields[1]: p[1] / 3})
    ),
    "floored": lambda f, p, q: f.floored(p, 0.7),
    "natural": lambda f, p, q: f.natural(p, q),
    "moved": lambda f, p, q: f.moved(p, q, 0.3),
    "moved by spreads": lambda f, p, q: f.moved(p, q._replace(eta=0 * q.eta), 0.01),
}


@pytest.mark.parametrize("family", RHOS)
@pytest.mark.parametrize("form", CASES)
def test_numpy_gives_what_jax_gives(family, form):
    p, q = RHOS[family]
    if getattr(FAMILIES[family], form.split()[0], True) is None:
        pytest.skip("the family has none")
    mine = CASES[form](FAMILIES[family], p, q)
    other = CASES[form](FAMILIES[family], *jax.tree.map(jnp.asarray, (p, q)))
    for x, y in zip(jax.tree.leaves(mine), jax.tree.leaves(other), strict=True):
        assert isinstance(x, (np.ndarray, np.generic))
        assert isinstance(y, jax.Array)
        np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("family", RHOS)
def test_densities_of_many_samples_are_those_of_each(family):
    p, q = RHOS[family]
    given = FAMILIES[family]
    for form in (given.log_density, lambda rho, x: given.ratio_of_noise(rho, q, x)):
        np.testing.assert_allclose(form(p, THETA), [form(p, x) for x in THETA], rtol=1e-13)
    z = q.whitened(np, THETA)
    want = [given.log_ratio(p, q, x) for x in THETA]
    np.testing.assert_allclose(given.ratio_of_noise(p, q, z), want, rtol=1e-12)


def test_a_ratio_keeps_its_digits_where_a_search_has_narrowed():
    """Ten million times narrower than the reference, beside whole fractions."""
    rho = Diagonal(np.array([0.7]), np.array([1e-7]))
    reference, z_own = Diagonal(np.array([0.0]), np.array([1.0])), 1.25
    theta = rho.eta + rho.tau * z_own

    def squares(x, at):
        return ((Fraction(x) - Fraction(at.eta[0])) / Fraction(at.tau[0])) ** 2

    quadratic = (squares(theta[0], reference) - squares(theta[0], rho)) / 2
    want = float(quadratic) + np.log(1e7)
    got = diagonal_gaussian().ratio_of_noise(rho, reference, reference.whitened(np, theta[None]))
    assert float(got[0]) == pytest.approx(want, abs=1e-6)
    assert abs(float(log_ratio(rho, reference, theta)) - want) > 1e-6  # why there are two forms


@pytest.mark.parametrize(("rows", "dim"), [(1, 1), (3, 3), (12, 12), (12, 40), (5, 7)])
def test_a_block_has_orthogonal_directions_and_the_lengths_that_it_had(rows, dim):
    noise = np.random.default_rng(rows).standard_normal((rows, dim))
    found = orthogonal(np, noise)
    gram = found @ found.T
    lengths = np.linalg.norm(noise, axis=1)
    np.testing.assert_allclose(gram, np.diag(lengths**2), atol=1e-12 * lengths.max() ** 2)
    np.testing.assert_allclose(found[0], noise[0], rtol=1e-15)
    want = np.linalg.qr(noise.T)[0].T  # up to the sign of each
    want *= np.sign(np.sum(want * noise, axis=1, keepdims=True))
    np.testing.assert_allclose(found, want * lengths[:, None], atol=1e-11)
    np.testing.assert_allclose(orthogonal(jnp, noise), found, rtol=1e-12, atol=1e-13)


def test_each_row_of_a_block_is_standard_normal_by_itself():
    blocks = np.random.default_rng(1).standard_normal((4000, 4, 5))
    rows = np.array([orthogonal(np, one) for one in blocks])
    for row in range(4):
        for x in (rows[:, row, 2], rows[:, row] @ np.array([0.6, 0, -0.8, 0, 0])):
            assert stats.kstest(x, "norm").pvalue > 1e-4
        far = np.sum(rows[:, row] ** 2, axis=1)
        assert stats.kstest(far, "chi2", args=(5,)).pvalue > 1e-4


def test_means_of_a_block_are_no_less_sure_than_their_standard_errors_say():
    """Of independent draws the variance of a mean of n is 1/n of one; here it is that, or less."""
    blocks = np.random.default_rng(2).standard_normal((20_000, 6, 6))
    rows = np.array([orthogonal(np, one) for one in blocks])
    a = np.arange(1.0, 7.0)
    functions = {
        "slope": rows @ a,
        "bowl": rows**2 @ a,
        "across": rows[..., 0] * rows[..., 1],
        "bent": (rows @ a) ** 2,
        "peak": np.exp(-np.sum((rows - 0.5) ** 2, axis=2) / 6),
    }
    for name, values in functions.items():
        ratio = 6 * np.var(values.mean(axis=1)) / np.var(values)
        assert ratio < 1 + 4 * (2 / len(blocks)) ** 0.5, name  # four of its standard errors
        if name in ("bowl", "across", "bent"):
            assert ratio < 0.9, name


def test_a_search_draws_blocks_of_them_and_others_do_not():
    def between(**settings):
        search = recoup.search(settings.pop("method", "recoup"), dim=4, batch=10, **settings)
        state = search.init(jax.random.key(0), mean=0.0)
        theta = np.asarray(search.ask(jax.random.key(1), state)[0])
        unit = theta / np.linalg.norm(theta, axis=1, keepdims=True)
        return np.abs(unit @ unit.T - np.eye(10))

    first = np.arange(10) // 4
    same = first[:, None] == first
    assert between()[same].max() < 1e-6 < between()[~same].max()
    assert between(orthogonal=False)[same].max() > 0.1
    assert between(method="cem")[same].max() > 0.1

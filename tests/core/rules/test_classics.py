"""CEM, RWR and REPS beside plain loops, NumPy and scipy; on old samples; in search and study."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import multivariate_normal

import recoup
from recoup.core.families.full import Full
from recoup.core.families.gaussian import Diagonal
from recoup.core.families.shapes import DIAGONAL, FULL
from recoup.core.rules.classics import bounded, coefficients, elite, exponential, fitted
from recoup.engine.methods import Method, method_row
from recoup.study.study import Study

CLASSICS = ("cem", "rwr", "reps")
UTILITIES = {"elite": elite(0.25), "exponential": exponential(0.7), "kl": bounded(0.8)}
RNG = np.random.default_rng(0)
WEIGHTS = np.where(np.arange(30) % 7 == 3, 0.0, RNG.gamma(2.0, size=30))
RETURNS = np.where(WEIGHTS > 0, 40 + 3 * RNG.gumbel(size=30), 1e9)  # what takes no part may be huge
OMEGA = WEIGHTS / WEIGHTS.sum()


def given(utility, weights=WEIGHTS, returns=RETURNS):
    return coefficients(np, utility, weights, returns)


@pytest.mark.parametrize("share", [0.03, 0.25, 1.0])
def test_the_elite_is_the_best_share_of_the_weight(share):
    c, left = np.zeros(30), share
    for i in sorted(np.flatnonzero(WEIGHTS), key=lambda i: -RETURNS[i]):
        c[i] = min(OMEGA[i], left)
        left -= c[i]
    np.testing.assert_allclose(given(elite(share)), c / share, atol=1e-15)


def test_on_a_batch_it_is_the_best_of_them_and_a_tie_shares_what_is_left():
    found = given(elite(0.25), np.ones(8), np.array([5.0, 1, 9, 2, 0, 7, 3, 4]))
    np.testing.assert_allclose(found, np.isin(np.arange(8), [2, 5]) / 2, atol=1e-15)
    found = given(elite(0.5), np.ones(8), np.array([5.0, 1, 9, 5, 0, 5, 5, 4]))
    np.testing.assert_allclose(found, np.array([3, 0, 4, 3, 0, 3, 3, 0]) / 16, atol=1e-15)


def test_the_exponential_is_its_formula():
    part = WEIGHTS > 0
    r, w = RETURNS[part], OMEGA[part]
    spread = np.sqrt(np.cov(r, aweights=w, ddof=0))
    want = w * np.exp((r - r.mean()) / (0.7 * spread))
    np.testing.assert_allclose(given(exponential(0.7))[part], want / want.sum(), rtol=1e-12)


@pytest.mark.parametrize("kl", [1e-4, 0.5, 1.0])
def test_the_bounded_exponential_is_where_the_dual_is_least(kl):
    part = WEIGHTS > 0
    r, w, best = RETURNS[part], OMEGA[part], RETURNS[part].max()

    def dual(log_eta):
        eta = np.exp(log_eta)
        return eta * kl + eta * np.log(w @ np.exp((r - best) / eta))

    eta = np.exp(minimize_scalar(dual, bounds=(-5, 12), method="bounded").x)
    want = w * np.exp((r - best) / eta)
    found = given(bounded(kl))[part]
    np.testing.assert_allclose(found, want / want.sum(), rtol=2e-3)
    assert found @ np.log(found / w) == pytest.approx(kl, rel=1e-8)


def test_a_divergence_that_is_out_of_reach_leaves_the_best_alone():
    returns = np.array([0.0, 1.0, 3.0, 3.0, 2.999])
    np.testing.assert_allclose(given(bounded(5.0), np.ones(5), returns), [0, 0, 0.5, 0.5, 0])


@pytest.mark.parametrize("utility", UTILITIES.values(), ids=UTILITIES)
class TestEveryUtility:
    def test_the_scale_of_returns_changes_nothing(self, utility):
        scaled = given(utility, returns=1e-3 * RETURNS - 7)
        np.testing.assert_allclose(given(utility), scaled, rtol=1e-6, atol=1e-12)

    @pytest.mark.parametrize("value", [-1.0, 0.1, 1e200])
    def test_where_nothing_differs_or_nothing_is_known_nothing_counts(self, utility, value):
        np.testing.assert_array_equal(given(utility, returns=np.full(30, value)), 0.0)
        np.testing.assert_array_equal(given(utility, weights=np.zeros(30)), 0.0)

    def test_jax_gives_what_numpy_gives(self, utility, x64):
        found = jax.jit(lambda w, r: coefficients(jnp, utility, w, r))(WEIGHTS, RETURNS)
        np.testing.assert_allclose(found, given(utility), rtol=1e-9, atol=1e-15)

    def test_old_samples_say_what_new_ones_would(self, utility):
        """Mean and spread fitted to 150 fits on samples of two proposals, and of rho alone."""
        rng, n, runs = np.random.default_rng(1), 400, 150
        proposals = [(0.3, 1.0), (-0.2, 0.8)]  # rho is the first

        def density(x, at):
            return np.exp(-0.5 * ((x - at[0]) / at[1]) ** 2) / at[1]

        def one(drawn_by):
            mean, std = np.array(proposals)[drawn_by].T
            x = mean + std * rng.normal(size=n)
            share = np.bincount(drawn_by, minlength=2) / n
            mixture = sum(s * density(x, at) for s, at in zip(share, proposals, strict=True))
            c = given(utility, density(x, proposals[0]) / mixture, np.sin(x) - 0.3 * x**2)
            return np.ravel(fitted(np, x[:, None], c, DIAGONAL))

        fresh = np.array([one(np.zeros(n, int)) for _ in range(runs)])
        mixed = np.array([one(np.repeat([0, 1], n // 2)) for _ in range(runs)])
        error = np.sqrt((fresh.var(0) + mixed.var(0)) / runs)
        assert (np.abs(fresh.mean(0) - mixed.mean(0)) < 4 * error).all()
        assert (error < 0.02).all()


@pytest.mark.parametrize("full", [False, True])
def test_the_fit_is_numpys_weighted_mean_and_covariance(full):
    eta, tau = np.array([1.0, -2.0, 0.5]), np.array([0.5, 2.0, 1.0])
    factor = np.array([[0.5, 0, 0], [1.0, 2.0, 0], [-0.3, 0.4, 1.0]])
    rho = Full(eta, factor) if full else Diagonal(eta, tau)
    theta, c = rho.mean + RNG.normal(size=(30, 3)) @ np.diag([1, 2, 3]), given(elite(0.25))
    new = rho.refitted(np, *fitted(np, rho.whitened(np, theta), c, FULL if full else DIAGONAL))
    want = np.cov(theta.T, aweights=c, ddof=1)
    np.testing.assert_allclose(new.mean, np.average(theta, axis=0, weights=c), rtol=1e-12)
    np.testing.assert_allclose(new.std, np.sqrt(np.diag(want)), rtol=1e-12)
    if full:
        np.testing.assert_allclose(new.factor @ new.factor.T, want, rtol=1e-10)
        np.testing.assert_array_equal(np.triu(new.factor, 1), 0.0)


@pytest.mark.parametrize("full", [False, True])
def test_one_sample_alone_says_nothing_of_the_spread(full):
    rho = (Full if full else Diagonal).start(np.zeros(2), np.array([1.0, 2.0]))
    z = np.array([[1.0, 1.0], [3.0, -1.0]])
    new = rho.refitted(np, *fitted(np, z, np.array([0.0, 1.0]), FULL if full else DIAGONAL))
    np.testing.assert_allclose(new.mean, [3.0, -2.0])
    np.testing.assert_allclose(new.std, [1.0, 2.0])


def test_fewer_samples_than_dimensions_leave_the_floor(x64):
    search = recoup.search("cem", dim=4, batch=4, family="full", elite=0.5)
    state = search.init(jax.random.key(0), 0.0, 1.0)
    theta, state = search.ask(jax.random.key(1), state)
    state, info = search.tell(jax.random.key(2), state, theta, theta[:, 0])
    assert np.isfinite(info.kl)
    assert np.isfinite(state.std).all()
    assert (np.diag(state.rho.factor) >= 0.05).all()


@pytest.mark.parametrize("name", CLASSICS)
def test_a_move_on_two_batches_weighs_them_against_their_mixture(name, x64):
    """With results that failed and one that came late, beside the formulas on scipy's densities."""
    share = {"elite": 0.6} if name == "cem" else {}  # of three samples or more
    search = recoup.search(name, dim=2, batch=6, window=2, family="full", tau_floor=1e-3, **share)
    state = search.init(jax.random.key(0), 0.0, 1.0)
    rhos, theta, returns, by = [state.rho], np.zeros((0, 2)), np.zeros(0), np.zeros(0, int)
    for i, drawn_by in enumerate(([0] * 6, [0] + [1] * 5)):
        z = RNG.normal(size=(6, 2))
        fresh = np.stack([rhos[p].theta(x) for p, x in zip(drawn_by, z, strict=True)])
        earned = np.where(np.arange(6) == 2, np.nan, -np.sum((fresh - 1) ** 2, 1))
        state, _ = search.tell(
            jax.random.key(i), state, fresh, earned, proposal=np.array(drawn_by, np.int32)
        )
        rhos.append(state.rho)
        theta, returns = np.concatenate([theta, fresh]), np.concatenate([returns, earned])
        by = np.concatenate([by, drawn_by])
    log = [multivariate_normal(r.mean, r.factor @ r.factor.T).pdf(theta) for r in rhos[:2]]
    mixture = sum(n / 12 * p for n, p in zip(np.bincount(by), log, strict=True))
    weights = np.where(np.isfinite(returns), log[1] / mixture, 0.0)
    utility = {"cem": elite(0.6), "rwr": exponential(1.0), "reps": bounded(1.0)}[name]
    c = given(utility, weights, np.nan_to_num(returns))
    np.testing.assert_allclose(state.mean, c @ theta, rtol=1e-9)
    covariance = np.cov(theta.T, aweights=c, ddof=1)
    np.testing.assert_allclose(state.rho.factor @ state.rho.factor.T, covariance, rtol=1e-8)


@pytest.mark.parametrize("name", CLASSICS)
def test_it_improves_on_a_noisy_sphere_and_equal_returns_move_nothing(name):
    search = recoup.search(name, dim=4, batch=10, window=2)

    def value(theta):
        return -jnp.sum((theta - 1) ** 2, axis=-1)

    def move(state, key):
        theta, state = search.ask(key, state)
        noise = 0.3 * jax.random.normal(jax.random.fold_in(key, 1), (10,))
        returns = jnp.where(state.moves < 20, value(theta) + noise, 0.1)
        state, _ = search.tell(key, state, theta, returns)
        return state, state.rho

    @jax.jit
    @jax.vmap
    def runs(key):
        start = search.init(key, 0.0, 1.0)
        return jax.lax.scan(move, start, jax.random.split(key, 22))[1]

    rhos = runs(jax.random.split(jax.random.key(0), 16))
    found = value(rhos.mean[:, 19])
    assert found.mean() - 4 * found.std() / 4 > -1  # it begins at -4
    np.testing.assert_array_equal(rhos.mean[:, 21], rhos.mean[:, 20])  # two flat batches
    np.testing.assert_array_equal(rhos.std[:, 21], rhos.std[:, 20])


def above_the_worst(xp, omega, returns):
    """R - min R, over the range."""
    return 1 + returns


def test_a_study_moves_as_the_search_does_with_a_row_and_a_utility_of_ones_own(tmp_path):
    row = Method("mine", direction="fit", weighting="balance", update="whole")
    settings = {"dim": 3, "batch": 6, "window": 2, "family": "full", "utility": above_the_worst}
    told = []
    with Study.open(tmp_path / "s.db", method=row, std=0.7, **settings) as study:
        for _ in range(3):
            trials = study.ask(6)
            returns = [float(-np.sum((t.theta - 1) ** 2)) for t in trials]
            study.tell([t.id for t in trials], returns)
            told.append((np.stack([t.theta for t in trials]), np.array(returns)))
        mean, std = study.mean, study.std
    with Study.open(tmp_path / "s.db", utility=above_the_worst) as study:
        assert study.method.weighting == "balance"
        np.testing.assert_array_equal(study.mean, mean)
    with jax.enable_x64(True):
        search = recoup.search(row, **settings)
        state = search.init(jax.random.key(0), 0.0, 0.7)
        for theta, returns in told:
            state, _ = search.tell(jax.random.key(0), state, theta, returns)
        np.testing.assert_allclose(mean, state.mean, rtol=1e-9)
        np.testing.assert_allclose(std, state.std, rtol=1e-9)


@pytest.mark.parametrize(
    ("name", "settings", "words"),
    [
        ("cem", {"kl": 1.0}, "kl has no effect on utility='elite': it is for utility='kl'"),
        ("cem", {"temperature": 1.0}, "temperature has no effect on utility='elite'"),
        ("reps", {"elite": 0.1}, "elite has no effect on utility='kl'"),
        ("rwr", {"power": 0.1}, "power has no effect on weighting='balance'"),
        ("rwr", {"temperature": 0.0}, "temperature must be above 0"),
        ("cem", {"elite": 0.0}, "elite must be in (0, 1]"),
        ("cem", {"elite": 1.5}, "elite must be in (0, 1]"),
        ("reps", {"kl": -1.0}, "kl must be above 0"),
        ("reps", {"epsilon": 0.1}, "'epsilon' is not a setting of reps"),
        ("reps", {"baseline": "optimal"}, "'baseline' is not a setting of reps"),
        ("cem", {"normalize": True}, "'normalize' is not a setting of cem"),
        ("cem", {"utility": "best"}, "utility must be one of elite, exponential, kl"),
        ("cem", {"family": "policy"}, "family must be one of diagonal, full, lowrank, auto"),
        ("mis-pgpe-ob", {"elite": 0.5}, "'elite' is not a setting of mis-pgpe-ob"),
        ("r3", {"direction": "fit"}, "is for methods that explore in parameters"),
    ],
)
def test_settings_that_are_wrong_or_have_no_effect_are_refused(name, settings, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        method_row(name, **settings)


def test_settings_that_apply_are_taken():
    assert method_row("cem", elite=0.1, window=3, failure="worst", family="auto").elite == 0.1
    assert method_row("reps", kl=0.3, tau_floor=0.01).kl == 0.3
    assert method_row("reps").kl == 1.0
    assert method_row("rwr", temperature=2, truncate=2.0, window=None).temperature == 2.0

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from linear_quadratic import episodes, estimate, exact_natural_gradient
from scipy import optimize, stats

from recoup.core.families.action_policy import Policy
from recoup.core.families.trajectory import (
    Trajectory,
    discounted_rewards,
    discounted_score,
    log_ratio,
)
from recoup.core.regressions import em_step, ridge_solve

pytestmark = pytest.mark.usefixtures("x64")

X = np.array([-0.5, 0.2, 0.7])
OTHER = np.array([-0.4, 0.25, 0.8])


def natural(n, runs, proposal=X, **settings):
    """Natural gradients `[runs, 3]` at X, each from n trajectories of `proposal`."""

    def one(key):
        h = episodes(key, proposal, n)
        return jnp.concatenate(
            estimate(
                "tiw-enac", h, proposal[None], jnp.zeros(n, int), X, discount=1.0, **settings
            ).gradient
        )

    return np.asarray(jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(3), runs)))


@pytest.mark.slow
def test_the_regression_finds_the_exact_natural_gradient_as_n_grows():
    """Linear-quadratic task, undiscounted: F^-1 g in closed form; 100 estimates, 4 s.e."""
    exact = exact_natural_gradient(X)
    errors = []
    for n in (30, 300, 3000):
        v = natural(n, 100)
        errors.append(np.sqrt(np.mean((v - exact) ** 2)))
    assert (abs(v.mean(0) - exact) < 4 * v.std(0, ddof=1) / 10).all()
    assert errors[2] < 0.5 * errors[1] < 0.25 * errors[0]  # about 1 / sqrt(n)


@pytest.mark.slow
def test_weights_of_the_residuals_correct_for_another_policy():
    """4 s.e., allowing for the bias 1/n of least squares; without weights the answer is another."""
    exact, n, runs = exact_natural_gradient(X), 3000, 100
    weighted = natural(n, runs, OTHER, truncate=None)
    naive = natural(n, runs, OTHER, weighting="none", truncate=None)
    error = weighted.std(0, ddof=1) / np.sqrt(runs)
    assert (abs(weighted.mean(0) - exact) < 4 * error).all()
    assert (abs(naive.mean(0) - exact) > 10 * naive.std(0, ddof=1) / np.sqrt(runs)).any()


def test_the_direction_is_numpys_weighted_least_squares():
    n, discount = 40, 0.9
    h = episodes(jax.random.key(0), OTHER, n)
    got = estimate("tiw-enac", h, OTHER[None], jnp.zeros(n, int), X, discount=discount, ridge=1e-14)
    policies = [Policy(jnp.asarray(p[:2]), jnp.asarray(p[2:])) for p in (X, OTHER)]
    w = np.minimum(np.exp(jax.vmap(lambda t: log_ratio(*policies, t))(h)), 2.0)
    psi = jax.vmap(lambda t: jnp.concatenate(discounted_score(discount)(policies[0], t)))(h)
    returns = jax.vmap(lambda t: jnp.sum(discounted_rewards(discount, t)))(h)
    design = np.sqrt(w)[:, None] * np.concatenate([psi, np.ones((n, 1))], axis=1)
    want = np.linalg.lstsq(design, np.sqrt(w) * np.asarray(returns))[0]
    np.testing.assert_allclose(jnp.concatenate(got.gradient), want[:3], rtol=1e-7)
    np.testing.assert_allclose(got.baseline, want[3], rtol=1e-7)


def test_fewer_trajectories_than_unknowns_give_the_shortest_solution():
    h = episodes(jax.random.key(0), X, 3)
    got = estimate("tiw-enac", h, X[None], jnp.zeros(3, int), X, discount=1.0, ridge=1e-10)
    policy = Policy(jnp.asarray(X[:2]), jnp.asarray(X[2:]))
    psi = np.asarray(jax.vmap(lambda t: jnp.concatenate(discounted_score(1.0)(policy, t)))(h))
    returns = np.asarray(jax.vmap(lambda t: jnp.sum(t.rewards))(h))
    want = np.linalg.pinv(psi - psi.mean(0)) @ (returns - returns.mean())
    np.testing.assert_allclose(jnp.concatenate(got.gradient), want, atol=1e-6)


def some_trajectories(m=12, t=7, f=3, a=2):
    rng = np.random.default_rng(0)
    arrays = (jnp.asarray(rng.normal(size=s)) for s in ((m, t, f), (m, t, a), (m, t)))
    return Trajectory(*arrays, jnp.asarray(rng.integers(2, t + 1, m), jnp.int32))


def test_the_m_step_is_where_a_direct_search_ends():
    h, rng = some_trajectories(), np.random.default_rng(1)
    worth = rng.exponential(size=12) * (rng.uniform(size=12) < 0.8)
    old = Policy(jnp.asarray(rng.normal(size=6)), jnp.asarray([0.9, 1.4]))

    features, actions = np.asarray(h.features), np.asarray(h.actions)
    live = np.arange(7) < np.asarray(h.steps)[:, None]

    def loss(x):
        means = features @ x[:6].reshape(3, 2)
        log_p = stats.norm.logpdf(actions, means, np.exp(x[6:])).sum(-1)
        return -(worth[:, None] * np.where(live, log_p, 0.0)).sum()

    found = optimize.minimize(loss, np.zeros(8), method="BFGS", options={"gtol": 1e-8}).x
    got = em_step(old, h, jnp.asarray(worth), 1e-12)
    np.testing.assert_allclose(got.mu, found[:6], atol=1e-5)
    np.testing.assert_allclose(got.sigma, np.exp(found[6:]), rtol=1e-5)


def test_the_m_step_knows_proportions_only():
    h, worth = some_trajectories(), jnp.arange(12.0)
    old = Policy(jnp.zeros(6), jnp.ones(2))
    one, other = (em_step(old, h, c * worth, 1e-6) for c in (1.0, 1e70))
    np.testing.assert_allclose(one.mu, other.mu, rtol=1e-12)
    np.testing.assert_allclose(one.sigma, other.sigma, rtol=1e-12)


def test_a_singular_design_changes_only_what_the_data_speak_of():
    """The third feature never occurs, the first two are equal: its mu stays, theirs move alike."""
    h = some_trajectories()
    features = h.features.at[..., 1].set(h.features[..., 0]).at[..., 2].set(0.0)
    old = Policy(jnp.asarray([0.1, 0.2, 0.3, 0.4, 0.5, 0.6]), jnp.ones(2))
    new = em_step(old, h._replace(features=features), jnp.ones(12), 1e-6)
    change = np.asarray(new.mu - old.mu).reshape(3, 2)
    assert np.isfinite(change).all()
    assert change[0].any()
    np.testing.assert_allclose(change[0], change[1], rtol=1e-6)
    np.testing.assert_array_equal(change[2], 0.0)


def test_nothing_of_worth_leaves_the_policy():
    old = Policy(jnp.arange(6.0), jnp.asarray([0.3, 0.4]))
    new = em_step(old, some_trajectories(), jnp.zeros(12), 1e-6)
    np.testing.assert_array_equal(new.mu, old.mu)
    np.testing.assert_array_equal(new.sigma, old.sigma)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_the_solver_is_finite_on_a_matrix_of_zeros(dtype):
    got = ridge_solve(jnp.zeros((3, 3), dtype), jnp.zeros(3, dtype), 1e-6)
    np.testing.assert_array_equal(got, 0.0)

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from linear_quadratic import episodes, estimate
from scipy import stats

from recoup.core.estimators.reward_weighted import (
    GRID,
    choose_nu,
    shifted_rewards,
    weighted_returns,
)

pytestmark = pytest.mark.usefixtures("x64")

FAR = np.array([[0.5, -0.5, 0.8], [0.4, -1.0, 1.0]])
TARGET = np.array([-0.6, 0.3, 0.6])


def drawn(key, n):
    """n trajectories, taken from the two far policies in turn, and which drew each."""
    halves = (episodes(k, x, n // 2) for k, x in zip(jax.random.split(key), FAR, strict=True))
    turns = jax.tree.map(lambda *x: jnp.stack(x, 1).reshape(-1, *x[0].shape[1:]), *halves)
    return turns, jnp.tile(jnp.arange(2), n // 2)


def log_p(h, n, x, t):
    """log p(a_t | s_t) under the policy x of step t of trajectory n."""
    return stats.norm.logpdf(h.actions[n, t, 0], h.features[n, t] @ x[:2], x[2])


def fit_by_hand(h, worth):
    """Weighted maximum likelihood through numpy's least squares, a row a step."""
    rows = np.repeat(np.sqrt(worth), 4)
    phi, a = h.features.reshape(-1, 2), h.actions.reshape(-1)
    mu = np.linalg.lstsq(rows[:, None] * phi, rows * a)[0]
    variance = np.average((a - phi @ mu) ** 2, weights=rows**2)
    return np.array([*mu, max(np.sqrt(variance), 0.05)])


def earned_by_hand(h, drawn_by, discount, folds):
    """For every nu, the mean over folds of the self-normalised return; all in plain loops."""
    h = jax.tree.map(np.asarray, h)
    m, scale = len(h.rewards), discount ** np.arange(4)
    shifted = scale * (h.rewards - h.rewards.min())
    log_w = np.array(
        [
            np.cumsum([log_p(h, n, TARGET, t) - log_p(h, n, FAR[drawn_by[n]], t) for t in range(4)])
            for n in range(m)
        ]
    )
    earned = []
    for nu in GRID:
        worth = (np.exp(nu * log_w) * shifted).sum(1)
        by_fold = []
        for k in range(folds):
            inside = np.arange(m) % folds == k
            x = fit_by_hand(h, np.where(inside, 0.0, worth))
            w = [
                np.exp(sum(log_p(h, n, x, t) - log_p(h, n, FAR[drawn_by[n]], t) for t in range(4)))
                for n in range(m)
            ]
            by_fold.append(np.average(shifted.sum(1)[inside], weights=np.array(w)[inside]))
        earned.append(np.mean(by_fold))
    best = int(np.argmax(earned))
    worth = (np.exp(GRID[best] * log_w) * shifted).sum(1)
    return GRID[best], fit_by_hand(h, worth)


@pytest.mark.parametrize("seed", range(2))
def test_the_whole_step_is_that_of_plain_loops(seed):
    h, drawn_by = drawn(jax.random.key(seed), 20)
    got = estimate("r3", h, FAR, drawn_by, TARGET, folds=4, ridge=1e-12)
    nu, policy = earned_by_hand(h, np.asarray(drawn_by), 0.9, 4)
    assert got.flatten == nu
    np.testing.assert_allclose(TARGET + jnp.concatenate(got.gradient), policy, rtol=1e-6)


@pytest.mark.slow
def test_many_data_trust_the_weights_and_few_data_less():
    """Far proposals, 100 archives each: the mean nu with its standard error."""

    def chosen(n):
        def one(key):
            h, drawn_by = drawn(key, n)
            return estimate("r3", h, FAR, drawn_by, TARGET).flatten

        nu = np.asarray(jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(1), 100)))
        return nu.mean(), nu.std(ddof=1) / 10

    few, few_error = chosen(10)
    many, many_error = chosen(400)
    assert many > 0.95
    assert many - few > 4 * np.hypot(few_error, many_error)


def test_a_fixed_nu_is_used_as_it_is():
    h, drawn_by = drawn(jax.random.key(0), 20)
    got = [estimate("r3", h, FAR, drawn_by, TARGET, flatten=nu) for nu in (0.0, 0.5)]
    assert [float(e.flatten) for e in got] == [0.0, 0.5]
    np.testing.assert_allclose(got[0].weights, 1.0)
    assert not np.allclose(jnp.concatenate(got[0].gradient), jnp.concatenate(got[1].gradient))


def test_weighted_returns_agree_with_a_loop():
    rng = np.random.default_rng(0)
    log_w, rewards = rng.normal(size=(3, 5)), rng.uniform(size=(3, 5))
    want = [sum(np.exp(0.3 * log_w[n, t]) * rewards[n, t] for t in range(5)) for n in range(3)]
    np.testing.assert_allclose(weighted_returns(0.3, log_w, rewards), want, rtol=1e-12)


@pytest.mark.parametrize("reward", [1.0, -1.0])
def test_the_shift_is_the_same_for_every_episode_however_early_it_ends(reward):
    """A constant reward until an early end: longer is better or worse, and stays so."""
    h = episodes(jax.random.key(0), TARGET, 4)
    h = h._replace(
        rewards=jnp.full((4, 4), reward).at[0, 2:].set(-50.0).at[3].set(-90.0),  # junk
        steps=jnp.asarray([2, 3, 4, 4]),
    )
    least, shifted = shifted_rewards(0.9, h, jnp.arange(4) < 3)
    assert least == min(reward, 0.0)
    assert shifted.min() == 0.0
    assert not shifted[3].any()
    returns = [sum(reward * 0.9**t for t in range(steps)) for steps in (2, 3, 4)]
    constant = -least * (1 - 0.9**4) / 0.1
    np.testing.assert_allclose(shifted[:3].sum(1), np.array(returns) + constant, atol=1e-12)


def test_a_constant_added_to_all_rewards_changes_nothing():
    h, drawn_by = drawn(jax.random.key(0), 20)
    ends = [
        estimate("r3", h._replace(rewards=h.rewards + c), FAR, drawn_by, TARGET).gradient
        for c in (0.0, 100.0)
    ]
    np.testing.assert_allclose(ends[0].mu, ends[1].mu, rtol=1e-8)


def test_failed_trajectories_do_not_vote_in_the_cross_validation():
    """Trajectory 0 failed; with its return of 100 the votes would go to nu = 0."""
    returns, fold = jnp.asarray([100.0, 1.0, 2.0, 1.0]), jnp.asarray([0, 0, 1, 1])

    def log_weights(nu):  # nu = 0 favours trajectories 0 and 3, nu = 1 the others
        return jnp.where(jnp.asarray([1, 0, 0, 1], bool), -20.0 * nu, -20.0 * (1 - nu))

    def chosen(valid):
        valid = jnp.asarray(valid)
        return float(choose_nu(lambda nu, kept: nu, log_weights, returns, valid, fold, 2))

    assert chosen([True, True, True, True]) == 0.0
    assert chosen([False, True, True, True]) > 0.5


def test_of_equal_votes_the_smallest_nu_is_taken():
    """All earn the same whatever nu; then two values of nu share the best place."""
    fold, valid = jnp.asarray([0, 0, 1, 1]), jnp.ones(4, bool)

    def chosen(log_weights, returns):
        return float(choose_nu(lambda nu, kept: nu, log_weights, returns, valid, fold, 2))

    def favours(nu):  # exactly alike from 0.3 on, and worse below
        lower = jnp.asarray([0, -30, 0, -30]) * (nu > 0.25)
        return jnp.where(nu > 0.25, lower, -lower - jnp.asarray([30, 0, 30, 0]))

    assert chosen(lambda nu: jnp.zeros(4), jnp.full(4, 2.0)) == 0.0
    assert chosen(favours, jnp.asarray([2.0, 1.0, 2.0, 1.0])) == pytest.approx(0.3)


def test_candidates_are_held_above_the_floor_like_the_policy_itself():
    h, drawn_by = drawn(jax.random.key(0), 20)
    got = estimate("r3", h, FAR, drawn_by, TARGET, tau_floor=3.0)
    assert float(TARGET[2] + got.gradient.sigma[0]) == pytest.approx(3.0)

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from linear_quadratic import DISCOUNT, archive_of, episodes, estimate, exact_gradient
from scipy import stats

from recoup.core.estimators.per_decision import log_weights_by_step
from recoup.core.families.action_policy import Policy
from recoup.core.families.trajectory import (
    Trajectory,
    discounted_rewards,
    discounted_score,
    divergence,
    log_ratio,
    prefix_log_ratios,
    score,
)
from recoup.tasks.registry import make_task

pytestmark = pytest.mark.usefixtures("x64")

T, F, A, STEPS = 6, 3, 2, 5


def a_trajectory(seed=0, steps=STEPS):
    rng = np.random.default_rng(seed)
    shapes = (T, F), (T, A), (T,)
    return Trajectory(*(jnp.asarray(rng.normal(size=s)) for s in shapes), jnp.int32(steps))


def a_policy(seed):
    rng = np.random.default_rng(seed)
    return Policy(
        jnp.asarray(rng.normal(size=F * A)), jnp.asarray(np.exp(0.3 * rng.normal(size=A)))
    )


def step_logpdf(policy, h, t):
    """log p(a_t | s_t) of step t, with mu written out as a matrix [F, A]."""
    mu = np.asarray(policy.mu).reshape(F, A)
    means = [sum(float(h.features[t, f]) * mu[f, a] for f in range(F)) for a in range(A)]
    return stats.norm.logpdf(np.asarray(h.actions[t]), means, np.asarray(policy.sigma)).sum()


def plain_log_density(policy, h, scale):
    """The same for autodiff: sum_t scale_t log p(a_t | s_t) over the steps that happened."""
    total = 0.0
    for t in range(STEPS):
        for a in range(A):
            mean = sum(h.features[t, f] * policy.mu[f * A + a] for f in range(F))
            sigma = policy.sigma[a]
            total += scale[t] * (-((h.actions[t, a] - mean) ** 2) / (2 * sigma**2) - jnp.log(sigma))
    return total


def assert_trees_close(got, want, **tolerance):
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        np.testing.assert_allclose(a, b, **tolerance)


def test_log_ratios_are_sums_of_scipys_log_densities():
    h, new, old = a_trajectory(), a_policy(1), a_policy(2)
    steps = [step_logpdf(new, h, t) - step_logpdf(old, h, t) for t in range(STEPS)]
    np.testing.assert_allclose(log_ratio(new, old, h), sum(steps), rtol=1e-12)
    prefixes = np.cumsum([*steps, 0.0])  # the sixth step did not happen
    np.testing.assert_allclose(prefix_log_ratios(new, old, h), prefixes, rtol=1e-12)


def test_scores_are_the_gradient_of_the_log_density():
    h, policy = a_trajectory(), a_policy(1)
    want = jax.grad(plain_log_density)(policy, h, np.ones(STEPS))
    assert_trees_close(score(policy, h), want, rtol=1e-12)


def test_the_discounted_score_is_the_gradient_of_discounted_log_densities():
    h, policy = a_trajectory(), a_policy(1)
    want = jax.grad(plain_log_density)(policy, h, 0.8 ** np.arange(STEPS))
    assert_trees_close(discounted_score(0.8)(policy, h), want, rtol=1e-12)


def test_rewards_behind_an_early_end_are_not_earned():
    h = a_trajectory()
    want = [0.8**t * float(h.rewards[t]) if t < STEPS else 0.0 for t in range(T)]
    np.testing.assert_allclose(discounted_rewards(0.8, h), want, rtol=1e-14)


def test_the_divergence_is_the_mean_log_ratio_of_actions_drawn_anew():
    """On fixed states, actions drawn from the new policy: E[log new - log old], 4 s.e."""
    h, new, old = a_trajectory(), a_policy(1), a_policy(2)
    rng, draws = np.random.default_rng(0), 20_000
    means = np.asarray(h.features) @ np.asarray(new.mu).reshape(F, A)
    actions = means + np.asarray(new.sigma) * rng.normal(size=(draws, T, A))
    ratios = jax.vmap(lambda a: log_ratio(new, old, h._replace(actions=a)))(jnp.asarray(actions))
    both = jax.tree.map(lambda x: jnp.stack([x, 7 * x]), h)  # the second one is not valid
    got = divergence(new, old, both, jnp.asarray([True, False]))
    assert abs(np.mean(ratios) - got) < 4 * np.std(ratios) / np.sqrt(draws)


def test_the_cars_trajectory_holds_the_action_that_was_drawn_not_the_one_that_was_clipped():
    task = make_task("mountain-car-weak")
    policy = Policy(jnp.full((200, 12), 0.1), jnp.ones((200, 1)))
    keys = jax.random.split(jax.random.key(0), 200)
    h = task.episodes(keys, policy)
    residuals = np.asarray(h.actions[..., 0] - h.features.sum(-1) * 0.1)
    assert abs(h.actions).max() > 2.0  # far above the limit of 0.3
    assert stats.kstest(residuals.ravel(), "norm").pvalue > 1e-3
    again = task.episodes(keys, policy)
    np.testing.assert_array_equal(h.rewards, again.rewards)


def test_an_episode_without_noise_is_the_linear_policys_rollout():
    task = make_task("mountain-car")
    theta = jnp.asarray(np.random.default_rng(0).normal(size=12))
    keys = jax.random.split(jax.random.key(0), 1)
    h = task.episodes(keys, Policy(theta[None], jnp.zeros((1, 1))))
    got = jnp.sum(discounted_rewards(0.95, jax.tree.map(lambda x: x[0], h)))
    np.testing.assert_allclose(got, task.rollouts(keys, theta[None])[0], rtol=1e-12)


PROPOSALS = np.array([[-0.4, 0.3, 0.6], [-0.7, 0.1, 0.8]])
TARGET = np.array([-0.6, 0.25, 0.65])


def gradients(runs, n, **settings):
    """Estimates `[runs, 3]` at the target from n trajectories, half of each proposal."""

    def one(key):
        first, second = jax.random.split(key)
        halves = episodes(first, PROPOSALS[0], n // 2), episodes(second, PROPOSALS[1], n // 2)
        together = jax.tree.map(lambda *x: jnp.concatenate(x), *halves)
        drawn_by = jnp.repeat(jnp.arange(2), n // 2)
        g = estimate("iw-reinforce-ob", together, PROPOSALS, drawn_by, TARGET, **settings).gradient
        return jnp.concatenate(g)

    return np.asarray(jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(7), runs)))


@pytest.mark.slow
def test_the_iw_gradient_is_unbiased_in_action_space():
    """4,000 estimates against the exact gradient of a linear-quadratic task, 4 s.e."""
    runs, exact = 4000, exact_gradient(TARGET)
    spread = {}
    for per_decision in (False, True):
        g = gradients(runs, 10, baseline="none", per_decision=per_decision)
        error = g.std(0, ddof=1) / np.sqrt(runs)
        assert (abs(g.mean(0) - exact) < 4 * error).all()
        spread[per_decision] = g.var(0).sum()
        optimal = gradients(runs, 10, baseline="optimal", per_decision=per_decision)
        assert optimal.var(0).sum() < 0.5 * spread[per_decision]
    assert spread[True] < 0.6 * spread[False]  # what per-decision weights are for
    naive = gradients(runs, 10, baseline="none", weighting="none")
    error = naive.std(0, ddof=1) / np.sqrt(runs)
    assert (abs(naive.mean(0) - exact) > 10 * error).any()


@pytest.mark.parametrize("baseline", ["optimal", "coordinate"])
def test_the_per_decision_gradient_agrees_with_a_plain_loop(baseline):
    x = np.array([-0.5, 0.2, 0.7])
    h = episodes(jax.random.key(1), PROPOSALS[0], 7)
    drawn_by = jnp.zeros(7, int)
    got = estimate(
        "iw-reinforce-ob", h, PROPOSALS, drawn_by, x, baseline=baseline, per_decision=True
    )
    mu, sigma = x[:2], x[2]
    total, objective = np.zeros(3), 0.0
    for t in range(4):
        weights, scores, rewards = [], [], []
        for n in range(7):
            log_w, s = 0.0, np.zeros(3)
            for u in range(t + 1):
                phi, a = np.asarray(h.features[n, u]), float(h.actions[n, u, 0])
                own = stats.norm.logpdf(a, phi @ PROPOSALS[0, :2], PROPOSALS[0, 2])
                log_w += stats.norm.logpdf(a, phi @ mu, sigma) - own
                e = a - phi @ mu
                s += [*(e * phi / sigma**2), (e**2 - sigma**2) / sigma**3]
            weights.append(np.exp(log_w))
            scores.append(s)
            rewards.append(DISCOUNT**t * float(h.rewards[n, t]))
        w, s, r = map(np.array, (weights, scores, rewards))
        b = {
            "optimal": (w**2 * (s**2).sum(1)) @ r / (w**2 * (s**2).sum(1)).sum(),
            "coordinate": (w**2 * r) @ s**2 / (w**2 @ s**2),
        }[baseline]
        total += (w[:, None] * (r[:, None] - b) * s).sum(0) / 7
        objective += w @ r / 7
    np.testing.assert_allclose(jnp.concatenate(got.gradient), total, rtol=1e-10)
    np.testing.assert_allclose(got.objective, objective, rtol=1e-12)


def test_prefix_weights_are_against_the_policy_that_drew_each_trajectory():
    h = episodes(jax.random.key(1), PROPOSALS[0], 4)
    drawn_by = jnp.asarray([0, 1, 1, 0])
    got = jax.jit(log_weights_by_step)(
        Policy(jnp.asarray(TARGET[:2]), jnp.asarray(TARGET[2:])),
        archive_of(h, PROPOSALS, drawn_by, TARGET, DISCOUNT),
    )
    for n, slot in enumerate([0, 1, 1, 0]):
        log_w = 0.0
        for t in range(4):
            phi, a = np.asarray(h.features[n, t]), float(h.actions[n, t, 0])
            log_w += stats.norm.logpdf(a, phi @ TARGET[:2], TARGET[2])
            log_w -= stats.norm.logpdf(a, phi @ PROPOSALS[slot, :2], PROPOSALS[slot, 2])
            np.testing.assert_allclose(got[t, 0, n], log_w, rtol=1e-10)

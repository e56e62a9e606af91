"""The per-decision estimator: every reward is weighed by the actions that came before it alone.

Reward t of a trajectory is the return of its prefix, the first t steps, with the weight and the
score of that prefix. Arrays by step have leading axes `[T, B, N]`.
"""

from collections.abc import Sequence
from functools import partial

import jax
import jax.numpy as jnp
from jax import Array

from recoup.core.archive import Archive
from recoup.core.baselines import Baseline
from recoup.core.directions import likelihood_ratio
from recoup.core.estimators.whole import Estimator, censored, direction_of, drawn, earned_by
from recoup.core.families.action_policy import Policy, step_score
from recoup.core.families.trajectory import Trajectory, discounted_rewards, prefix_log_ratios
from recoup.core.objective import Estimate, mean_weight, summary
from recoup.core.weights import LogDensities, Ratio, Shaper, bounded_exp, weigh


def decision_estimator(
    *,
    baseline: Baseline,
    discount: float,
    ratio: Ratio,
    shapers: Sequence[Shaper] = (),
    normalised: bool = False,
) -> Estimator:
    """`estimate(policy, archive)` of the gradient, a baseline for every step.

    Implements: precup2000 per-decision policy gradient, (1/N') sum_n sum_t w_{n,t} (gamma^(t-1)
    r_{n,t} - b_t) sum_{t' <= t} grad log p(a_t' | s_t', theta). Not the paper's: its
    IW-REINFORCE weighs whole trajectories.
    """
    direction = likelihood_ratio(lambda rho, score: score, baseline)

    def estimate(policy: Policy, archive: Archive) -> Estimate:
        assert archive.batches is not None
        samples, _, valid, *_ = archive.batches
        rewards, own_mean = rewards_by_step(discount, archive), normalised | censored(archive)
        weights = weights_by_step(ratio, shapers, policy, archive, own_mean)
        told = drawn(archive)
        raw = jnp.where(told.each, bounded_exp(log_weights_by_step(policy, archive)[-1]), 0.0)

        def step(
            total: tuple[Policy, Policy], at: tuple[Array, ...]
        ) -> tuple[tuple[Policy, Policy], Array]:
            gradient, prefix = total
            reward, weight, features, actions, t = at
            scores = jax.vmap(jax.vmap(partial(step_score, policy)))(features, actions)
            happened = (t < samples.steps)[..., None]
            prefix = jax.tree.map(lambda p, s: p + jnp.where(happened, s, 0.0), prefix, scores)
            earned = earned_by(archive, reward, weight)
            g, b = direction_of(direction, None, prefix, earned)
            return (jax.tree.map(jnp.add, gradient, g), prefix), b

        nothing = jax.tree.map(jnp.zeros_like, policy)
        prefix = jax.tree.map(lambda x: jnp.zeros((*valid.shape, x.size), x.dtype), policy)
        features, actions = (jnp.moveaxis(x, 2, 0) for x in samples[:2])
        steps = (rewards, weights, features, actions, jnp.arange(len(rewards)))
        (gradient, _), b = jax.lax.scan(step, (nothing, prefix), steps)
        return summary(
            told,
            rewards,
            weights,
            normalised=own_mean,
            mean_weight=mean_weight(ratio, shapers, raw, told),
            gradient=gradient,
            baseline=b,
        )

    return estimate


def rewards_by_step(discount: float, archive: Archive) -> Array:
    """gamma^(t-1) r_t `[T, B, N]`, zero where not valid."""
    assert archive.batches is not None
    rewards = jax.vmap(jax.vmap(partial(discounted_rewards, discount)))(archive.batches.samples)
    return jnp.moveaxis(jnp.where(archive.batches.valid[..., None], rewards, 0.0), 2, 0)


def log_weights_by_step(policy: Policy, archive: Archive) -> Array:
    """Log-weights `[T, B, N]` of all prefixes against the policy that drew each trajectory."""
    assert archive.batches is not None

    def of(slot: Array, trajectory: Trajectory) -> Array:
        drew = jax.tree.map(lambda x: x[slot], archive.proposals)
        return prefix_log_ratios(policy, drew, trajectory)

    values = jax.vmap(jax.vmap(of))(archive.batches.proposal, archive.batches.samples)
    return jnp.moveaxis(values, 2, 0)


def weights_by_step(
    ratio: Ratio,
    shapers: Sequence[Shaper],
    policy: Policy,
    archive: Archive,
    normalised: bool | Array = False,
) -> Array:
    """Weights `[T, B, N]` of all prefixes, shaped step by step."""
    assert archive.batches is not None
    log_w = log_weights_by_step(policy, archive)
    valid = archive.batches.valid
    return jax.vmap(
        lambda d: weigh(ratio, shapers, LogDensities(d, jnp.zeros_like(d), None), valid, normalised)
    )(log_w)

"""The per-decision estimator: every reward is weighed by the actions that came before it alone.

Reward t of a trajectory is the return of its prefix, the first t steps, with the weight and the
score of that prefix. Arrays by step have leading axes `[T, B, N]`.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from recoup.archive import Archive
from recoup.baselines import Baseline
from recoup.directions import Direction, Told, likelihood_ratio
from recoup.estimators import Estimate, Estimator, expected_return, origin_of, standard_error
from recoup.families import LogDensities, Rho
from recoup.trajectories import Trajectory, discounted_rewards, prefix_log_ratios, prefix_scores
from recoup.weights import Ratio, Shaper, effective_sample_size, weigh


class Decisions(NamedTuple):
    """The trajectories of an archive, by step: what each step earned, and what that weighs."""

    rewards: Array  # [T, B, N] gamma^(t-1) r_t
    weights: Array  # [T, B, N] of the prefixes, after shaping; zero where not valid
    valid: Array  # [B, N]


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
    of_prefix = likelihood_ratio(lambda rho, score: score, baseline)

    def estimate(policy: Rho, archive: Archive) -> Estimate:
        assert archive.batches is not None
        decisions = Decisions(
            rewards=rewards_by_step(discount, archive),
            weights=weights_by_step(ratio, shapers, policy, archive),
            valid=archive.batches.valid,
        )
        scores = by_step(lambda h: prefix_scores(policy, h), archive)
        gradients, b = jax.lax.map(
            lambda step: _of_step(of_prefix, decisions.valid, *step),
            (decisions.rewards, decisions.weights, scores),
        )
        gradient = jax.tree.map(lambda g: jnp.sum(g, axis=0), gradients)
        return summary(decisions, normalised=normalised, gradient=gradient, baseline=b)

    return estimate


def by_step(function: Any, archive: Archive) -> Any:
    """`function(trajectory) -> [T, ...]` of every trajectory, with leading axes `[T, B, N]`."""
    assert archive.batches is not None
    values = jax.vmap(jax.vmap(function))(archive.batches.samples)
    return jax.tree.map(lambda x: jnp.moveaxis(x, 2, 0), values)


def rewards_by_step(discount: float, archive: Archive) -> Array:
    """gamma^(t-1) r_t `[T, B, N]`, zero where not valid."""
    assert archive.batches is not None
    rewards = by_step(lambda h: discounted_rewards(discount, h), archive)
    return jnp.where(archive.batches.valid, rewards, 0.0)


def log_weights_by_step(policy: Rho, archive: Archive) -> Array:
    """Log-weights `[T, B, N]` of all prefixes against the policy that drew each trajectory."""
    assert archive.batches is not None

    def of(slot: Array, trajectory: Trajectory) -> Array:
        drew = jax.tree.map(lambda x: x[slot], archive.proposals)
        return prefix_log_ratios(policy, drew, trajectory)

    values = jax.vmap(jax.vmap(of))(archive.batches.proposal, archive.batches.samples)
    return jnp.moveaxis(values, 2, 0)


def weights_by_step(
    ratio: Ratio, shapers: Sequence[Shaper], policy: Rho, archive: Archive
) -> Array:
    """Weights `[T, B, N]` of all prefixes, shaped step by step."""
    assert archive.batches is not None
    log_w = log_weights_by_step(policy, archive)
    valid = archive.batches.valid
    return jax.vmap(
        lambda d: weigh(ratio, shapers, LogDensities(d, jnp.zeros_like(d), None), valid)
    )(log_w)


def summary(decisions: Decisions, *, normalised: bool, **found: Any) -> Estimate:
    """An `Estimate` of a direction that was found from `decisions`."""
    rewards, weights, valid = decisions
    n = jnp.sum(valid, dtype=rewards.dtype)
    by_time = jax.vmap(expected_return, (0, 0, None))(rewards, weights, n)
    objective = jnp.sum(by_time)
    if normalised:
        residuals = jnp.sum(weights * (rewards - by_time[:, None, None]), axis=0)
    else:
        residuals = jnp.sum(weights * rewards, axis=0) - objective
    whole = weights[-1]
    return Estimate(
        objective=objective,
        objective_stderr=standard_error(jnp.where(valid, residuals, 0.0), n, n),
        weights=whole,
        ess=effective_sample_size(whole),
        max_weight=jnp.max(whole),
        samples=n,
        **found,
    )


def _of_step(
    direction: Direction, valid: Array, rewards: Array, weights: Array, scores: Any
) -> Any:
    origin = origin_of(rewards, valid)
    relative = jnp.where(valid, rewards - origin, 0.0)
    gradient, b = direction(None, scores, Told(relative, weights, valid, origin))
    return gradient, jax.tree.map(lambda x: x + origin, b)

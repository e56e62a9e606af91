"""R^3: reward-weighted regression with sample reuse, its flattening chosen by cross-validation.

EM in place of a gradient: no step size. The direction is the whole way to the M-step's solution, so
that adding it to the policy lands there. EM needs worths that are not negative: all T rewards of an
episode, those of 0 after an early end among them, are shifted by the smallest in the archive,
which adds the same constant to every return.

Even nu = 1 is biased: w_t covers the actions up to t, while R~ weighs the likelihood of them all.

Arrays are over all M = B N trajectories of the archive.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from recoup.core.archive import Archive
from recoup.core.estimators.per_decision import log_weights_by_step, rewards_by_step
from recoup.core.estimators.whole import Estimator, censored, drawn
from recoup.core.families.action_policy import Policy
from recoup.core.families.trajectory import (
    Trajectory,
    discounts,
    floored,
    live,
    log_ratio,
)
from recoup.core.objective import Estimate, mean_weight, summary
from recoup.core.regressions import em_step
from recoup.core.weights import bounded_exp, exp_weights, own_ratio

GRID = tuple(i / 10 for i in range(11))  # of nu

Fit = Callable[[Array, Array], Policy]  # nu, which trajectories [M] to learn from -> policy


def reward_weighted(
    *, discount: float, nu: float | None, ridge: float, floor: float, folds: int
) -> Estimator:
    """`estimate(policy, archive)` whose direction is the step of EM; a nu of None is chosen anew.

    A smaller nu trusts the weights less: less variance, another bias. `floor` is the least sigma.
    """

    def estimate(policy: Policy, archive: Archive) -> Estimate:
        assert archive.batches is not None
        valid = archive.batches.valid
        by_step = log_weights_by_step(policy, archive)
        data = _flat(discount, archive, by_step)

        def fit(nu: Array, kept: Array) -> Policy:
            worth = jnp.where(kept, weighted_returns(nu, data.log_w, data.rewards), 0.0)
            new = em_step(policy, data.trajectories, worth, ridge)
            return floored(new, floor)

        def log_weights(candidate: Policy) -> Array:
            over_policy = jax.vmap(partial(log_ratio, candidate, policy))(data.trajectories)
            return over_policy + data.log_w[:, -1]

        if nu is None:
            fold = told_order(archive) % folds
            returns = jnp.sum(data.rewards, axis=1)
            chosen = choose_nu(fit, log_weights, returns, data.valid, fold, folds)
        else:
            chosen = jnp.asarray(nu, data.log_w.dtype)
        new = fit(chosen, data.valid)
        own_mean, told = censored(archive), drawn(archive)
        whole = jnp.where(told.each, bounded_exp(by_step[-1]), 0.0)
        return summary(
            told,
            rewards_by_step(discount, archive),
            jax.vmap(lambda log_w: exp_weights(chosen * log_w, valid, own_mean))(by_step),
            normalised=own_mean,
            mean_weight=jnp.where(chosen == 1, mean_weight(own_ratio, (), whole, told), jnp.nan),
            gradient=jax.tree.map(jnp.subtract, new, policy),
            baseline=data.least,
            flatten=chosen,
        )

    return estimate


def told_order(archive: Archive) -> Array:
    """The place `[M]` of each trajectory in the order of telling, whatever block it lies in."""
    assert archive.batches is not None
    order = archive.batches.order
    blocks, n = order.shape
    if blocks == 1:
        return jnp.arange(n)
    told = jnp.where(order[:, 0] > 0, order[:, 0], jnp.iinfo(order.dtype).max)  # empty ones last
    rank = jnp.argsort(jnp.argsort(told, stable=True))
    return (rank[:, None] * n + jnp.arange(n)).ravel()


class _Data(NamedTuple):
    """The archive's trajectories in one row."""

    trajectories: Trajectory  # [M]
    valid: Array  # [M]
    log_w: Array  # [M, T] per-decision
    rewards: Array  # [M, T] discounted and shifted
    least: Array  # what they were shifted by


def _flat(discount: float, archive: Archive, by_step: Array) -> _Data:
    assert archive.batches is not None
    trajectories = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), archive.batches.samples)
    valid = archive.batches.valid.ravel()
    least, shifted = shifted_rewards(discount, trajectories, valid)
    log_w = by_step.reshape(by_step.shape[0], -1).T
    return _Data(trajectories, valid, log_w, shifted, least)


def weighted_returns(nu: Array, log_w: Array, rewards: Array) -> Array:
    """What each trajectory is worth `[M]`, from log-weights and rewards by step `[M, T]`.

    Implements: hachiya2009 R~ = sum_t gamma^(t-1) r_t w_t^nu, with per-decision weights w_t.
    """
    return jnp.sum(bounded_exp(nu * log_w) * rewards, axis=1)


def shifted_rewards(discount: float, trajectories: Trajectory, valid: Array) -> tuple[Array, Array]:
    """The smallest reward, and gamma^(t-1) (r_t - smallest) `[M, T]`: nowhere negative."""
    earned = jnp.where(jax.vmap(live)(trajectories), trajectories.rewards, 0.0)
    least = jnp.min(jnp.where(valid[:, None], earned, jnp.inf))
    least = jnp.where(jnp.isfinite(least), least, 0.0)
    shifted = discounts(discount, trajectories) * (earned - least)
    return least, jnp.where(valid[:, None], shifted, 0.0)


def choose_nu(
    fit: Fit,
    log_weights: Callable[[Policy], Array],
    returns: Array,
    valid: Array,
    fold: Array,
    folds: int,
) -> Array:
    """The nu of `GRID` whose policies, learned without a fold, earn most on it.

    Implements: hachiya2009 importance-weighted cross-validation, J_k(nu) = sum_{h in k} w(h) R(h) /
    sum_{h in k} w(h) with w the ratio of the policy learned without fold k to the one that drew h;
    the folds `[M]` are stratified over iterations. Of equal values the smallest nu is taken.
    """

    def on_fold(nu: Array, k: Array) -> Array:
        tested, candidate = valid & (fold == k), fit(nu, valid & (fold != k))
        log_w = jnp.where(tested, log_weights(candidate), -jnp.inf)
        top = jnp.max(log_w)
        weights = jnp.exp(log_w - jnp.where(jnp.isfinite(top), top, 0.0))
        total = jnp.sum(weights)
        return jnp.sum(weights * returns) / jnp.where(total > 0, total, 1.0)

    grid = jnp.asarray(GRID, returns.dtype)
    earned = jax.lax.map(
        lambda nu: jnp.mean(jax.lax.map(lambda k: on_fold(nu, k), jnp.arange(folds))), grid
    )
    return grid[jnp.argmax(earned)]

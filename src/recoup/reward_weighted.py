"""R^3: reward-weighted regression with sample reuse, its flattening chosen by cross-validation.

EM in place of a gradient: no step size. The direction is the whole way to the M-step's solution, so
that adding it to the policy lands there. EM needs worths that are not negative: rewards are shifted
by the smallest one in the archive, which adds the same constant to the return of every episode of T
steps. What lies behind an early end then counts like the smallest reward.

Arrays are over all M = B N trajectories of the archive.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from recoup.archive import Archive
from recoup.decisions import Decisions, log_weights_by_step, rewards_by_step, summary
from recoup.estimators import Estimate, Estimator
from recoup.families import Rho
from recoup.regressions import em_step
from recoup.trajectories import Trajectory, discounts, live, log_ratio
from recoup.weights import bounded_exp

GRID = tuple(i / 10 for i in range(11))  # of nu

Fit = Callable[[Array, Array], Rho]  # nu, which trajectories [M] to learn from -> policy


def reward_weighted(
    *, discount: float, nu: float | None, ridge: float, floor: float, folds: int
) -> Estimator:
    """`estimate(policy, archive)` whose direction is the step of EM; a nu of None is chosen anew.

    A smaller nu forgets the weights: less variance, more bias. `floor` is the least sigma.
    """

    def estimate(policy: Rho, archive: Archive) -> Estimate:
        assert archive.batches is not None
        trajectories = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), archive.batches.samples)
        valid = archive.batches.valid.ravel()
        by_step = log_weights_by_step(policy, archive)
        log_w = by_step.reshape(by_step.shape[0], -1).T  # [M, T]
        least, shifted = shifted_rewards(discount, trajectories, valid)

        def fit(nu: Array, kept: Array) -> Rho:
            worth = jnp.where(kept, weighted_returns(nu, log_w, shifted), 0.0)
            new = em_step(policy, trajectories, worth, ridge)
            return new._replace(tau=jnp.maximum(new.tau, floor))

        def log_weights(candidate: Rho) -> Array:
            over_policy = jax.vmap(partial(log_ratio, candidate, policy))(trajectories)
            return over_policy + log_w[:, -1]

        chosen = jnp.asarray(0.0 if nu is None else nu, log_w.dtype)
        if nu is None:
            fold = jnp.arange(valid.size) % folds
            chosen = choose_nu(fit, log_weights, jnp.sum(shifted, axis=1), valid, fold, folds)
        new = fit(chosen, valid)
        decisions = Decisions(
            rewards=rewards_by_step(discount, archive),
            weights=jnp.where(archive.batches.valid, bounded_exp(chosen * by_step), 0.0),
            valid=archive.batches.valid,
        )
        return summary(
            decisions,
            normalised=False,
            gradient=jax.tree.map(jnp.subtract, new, policy),
            baseline=least,
            flatten=chosen,
        )

    return estimate


def weighted_returns(nu: Any, log_w: Array, rewards: Array) -> Array:
    """What each trajectory is worth `[M]`, from log-weights and rewards by step `[M, T]`.

    Implements: hachiya2009 R~ = sum_t gamma^(t-1) r_t w_t^nu, with per-decision weights w_t.
    """
    return jnp.sum(bounded_exp(nu * log_w) * rewards, axis=1)


def shifted_rewards(discount: float, trajectories: Trajectory, valid: Array) -> tuple[Array, Array]:
    """The smallest reward, and gamma^(t-1) (r_t - smallest) `[M, T]`: nowhere negative."""
    happened = jax.vmap(live)(trajectories) & valid[:, None]
    least = jnp.min(jnp.where(happened, trajectories.rewards, jnp.inf))
    least = jnp.where(jnp.isfinite(least), least, 0.0)
    shifted = discounts(discount, trajectories) * (trajectories.rewards - least)
    return least, jnp.where(happened, shifted, 0.0)


def choose_nu(
    fit: Fit,
    log_weights: Callable[[Rho], Array],
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

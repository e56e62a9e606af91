"""The trajectory as a sample: what methods that explore in action space draw, keep and weigh.

rho is the policy's own parameter, means mu `[F A]` and standard deviations sigma `[A]`; the sample
is the trajectory, its log-density and score are sums over time, and the transitions, which no rho
changes, cancel from every ratio.
"""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from recoup.core.families.action_policy import (
    Policy,
    action_distribution,
    step_log_ratio,
    step_score,
)
from recoup.core.families.family import Family
from recoup.core.families.gaussian import kl_divergence


class Trajectory(NamedTuple):
    """One episode as the estimators need it: T (F + A + 1) numbers.

    The actions are those the policy drew, before any clipping by the environment. An episode that
    ended early has `steps` below T; what lies after is ignored, and earns nothing. `Search.tell`
    takes N of them at once, with a leading axis `[N]`, `Study.tell` one.

    >>> features, actions = jnp.zeros((5, 2)), jnp.zeros((5, 1))
    >>> episode = recoup.Trajectory(features, actions, rewards=jnp.ones(5), steps=5)
    >>> episode.features.shape, episode.rewards.shape
    ((5, 2), (5,))
    """

    features: Array  # [T, F] phi(s_t)
    actions: Array  # [T, A]
    rewards: Array  # [T], not discounted; one that is not finite marks a failed episode
    steps: Array  # how many of the T steps happened, 1..T


class Episodes(NamedTuple):
    """What `ask` gives: a policy to roll out, and a seed for each episode's randomness.

    `Search.ask` gives it for methods that explore in action space.

    >>> acting = recoup.search("iw-reinforce-ob", dim=2, batch=4, horizon=5)
    >>> episodes, _ = acting.ask(key, acting.init(key))
    >>> episodes.seeds.shape
    (4,)
    """

    policy: Policy  # that acts
    seeds: Array  # [N] uint32


@cache
def gaussian_policy() -> Family:
    """The family of trajectories of the Gaussian policy; one object."""
    return Family(
        name="policy",
        start=Policy.start,
        draw=draw,
        log_ratio=log_ratio,
        score=score,
        divergence=divergence,
        packed=Policy.packed,
        unpacked=Policy.unpacked,
        floored=floored,
    )


def draw(key: Array, policy: Policy, n: int, mirrored: bool = False) -> Episodes:
    """N episodes to roll out under `policy`; actions come in no pairs, so none are `mirrored`."""
    return Episodes(policy, jax.random.bits(key, (n,), jnp.uint32))


def log_ratio(policy: Policy, reference: Policy, trajectory: Trajectory) -> Array:
    """log p(h | policy) - log p(h | reference) of one trajectory, a scalar.

    Implements: zhao2013 S2.1 p(h | theta) = p(s_1) prod_t p(s_{t+1} | s_t, a_t) p(a_t | s_t,
    theta), as a ratio: the start and the transitions cancel.
    """
    return jnp.sum(_step_log_ratios(policy, reference, trajectory))


def prefix_log_ratios(policy: Policy, reference: Policy, trajectory: Trajectory) -> Array:
    """The log-ratio of the trajectory up to and with each step, `[T]`.

    Implements: precup2000 per-decision importance weights, w_t = prod_{t' <= t} p(a_t' | s_t',
    theta) / p(a_t' | s_t', theta'), in logs.
    """
    return jnp.cumsum(_step_log_ratios(policy, reference, trajectory))


def score(policy: Policy, trajectory: Trajectory) -> Policy:
    """Gradient of log p(h | policy) of one trajectory with respect to (mu, sigma).

    Implements: williams1992 sum_t grad log p(a_t | s_t, theta).
    """
    return jax.tree.map(lambda s: jnp.sum(s, axis=0), _step_scores(policy, trajectory))


def discounted_score(discount: float) -> Callable[[Policy, Trajectory], Policy]:
    """`psi(policy, trajectory)`: the score with its steps discounted like the rewards.

    Implements: peters2008 psi = sum_t gamma^(t-1) grad log p(a_t | s_t, theta).
    """

    def psi(policy: Policy, trajectory: Trajectory) -> Policy:
        scale = discounts(discount, trajectory)
        return jax.tree.map(lambda s: scale @ s, _step_scores(policy, trajectory))

    return psi


def discounted_rewards(discount: float, trajectory: Trajectory) -> Array:
    """gamma^(t-1) r_t `[T]`, zero after the last step; their sum is the return."""
    return jnp.where(live(trajectory), discounts(discount, trajectory) * trajectory.rewards, 0.0)


def discounts(discount: float, trajectory: Trajectory) -> Array:
    """gamma^(t-1) `[T]`, for one trajectory or for many of them."""
    dtype = trajectory.rewards.dtype
    return jnp.asarray(discount, dtype) ** jnp.arange(trajectory.rewards.shape[-1], dtype=dtype)


def live(trajectory: Trajectory) -> Array:
    """Which of the T steps happened, `[T]`."""
    return jnp.arange(trajectory.rewards.shape[-1]) < trajectory.steps


def ended(trajectory: Trajectory) -> Trajectory:
    """The trajectory with zeros after its last step, whatever was there."""
    happened = live(trajectory)
    return Trajectory(
        features=jnp.where(happened[:, None], trajectory.features, 0.0),
        actions=jnp.where(happened[:, None], trajectory.actions, 0.0),
        rewards=jnp.where(happened, trajectory.rewards, 0.0),
        steps=trajectory.steps,
    )


def floored(policy: Policy, least: float) -> Policy:
    """The policy with no standard deviation of an action below `least`."""
    return policy._replace(sigma=jnp.maximum(policy.sigma, least))


def divergence(new: Policy, old: Policy, trajectories: Trajectory, valid: Array) -> Array:
    """KL(new || old) of an episode's actions on the states of the `valid` trajectories `[N]`."""

    def at_step(features: Array) -> Array:
        return kl_divergence(action_distribution(new, features), action_distribution(old, features))

    def along(trajectory: Trajectory) -> Array:
        steps = jax.vmap(at_step)(trajectory.features)
        return jnp.sum(jnp.where(live(trajectory), steps, 0.0))

    each = jnp.where(valid, jax.vmap(along)(trajectories), 0.0)
    return jnp.sum(each) / jnp.maximum(jnp.sum(valid), 1)


def _step_log_ratios(policy: Policy, reference: Policy, trajectory: Trajectory) -> Array:
    steps = jax.vmap(step_log_ratio, (None, None, 0, 0))(
        policy, reference, trajectory.features, trajectory.actions
    )
    return jnp.where(live(trajectory), steps, 0.0)


def _step_scores(policy: Policy, trajectory: Trajectory) -> Policy:
    steps = jax.vmap(step_score, (None, 0, 0))(policy, trajectory.features, trajectory.actions)
    happened = live(trajectory)
    return jax.tree.map(lambda s: jnp.where(happened[:, None], s, 0.0), steps)

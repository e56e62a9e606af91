"""The reaching task for `recoup.train`: batches of episodes on the host."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from recoup.checks import check_shape
from recoup.core.families.action_policy import Policy, linear
from recoup.core.families.trajectory import Trajectory
from recoup.core.types import Given
from recoup.tasks.reach.batch_engine import Recorded, engine_of
from recoup.tasks.reach.rules import Reach
from recoup.tasks.task import Task


def task_of(name: str, task: Reach, horizon: int, discount: float) -> Task:
    """The task for `recoup.train`, on the host."""
    engine_of(task)  # so that a missing MuJoCo is named before anything is written
    return Task(
        name=name,
        dim=task.size * task.joints,
        actions=task.joints,
        horizon=horizon,
        discount=discount,
        rollouts=partial(rollouts, task, horizon, discount),
        episodes=partial(episodes, task, horizon),
        act=lambda theta, observation: linear(np.asarray(theta), np.asarray(observation)),
        traced=False,
    )


def rollouts(task: Reach, horizon: int, discount: float, keys: Array, theta: Given) -> np.ndarray:
    """Returns `[N]` of linear policies theta `[N, F n]`, NaN where an episode has failed."""
    noise, _ = _draws(task.joints, horizon, keys)
    gains = _gains(task, theta, len(noise))
    went = engine_of(task).run(lambda t, seen: _linear(gains, seen), task.noise * noise)
    return (went.rewards * discount ** np.arange(horizon)).sum(1)  # row by row: no BLAS


def episodes(task: Reach, horizon: int, keys: Array, policies: Policy) -> Trajectory:
    """Trajectories `[N]` of Gaussian policies, mu `[N, F n]` and sigma `[N, n]`."""
    noise, draws = _draws(task.joints, horizon, keys)
    gains, sigma = _gains(task, policies.mu, len(noise)), np.asarray(policies.sigma, np.float64)
    went = engine_of(task).run(
        lambda t, seen: _linear(gains, seen) + sigma * draws[:, t], task.noise * noise
    )
    steps = jnp.full(len(noise), horizon, jnp.int32)
    features, actions, rewards = (jnp.asarray(x) for x in went[:3])
    return Trajectory(features, actions, rewards, steps)


def trace(task: Reach, horizon: int, keys: Array, theta: Given) -> Recorded:
    """Episodes `[N]` of one linear policy in full: distance and cost at every step."""
    noise, _ = _draws(task.joints, horizon, keys)
    policy = np.asarray(theta, np.float64)
    return engine_of(task).run(lambda t, seen: linear(policy, seen), task.noise * noise)


def _gains(task: Reach, theta: Given, episodes: int) -> np.ndarray:
    """Gains `[N, F, n]` of linear policies `[N, F n]`, one for each of N episodes."""
    theta = np.asarray(theta, np.float64)
    check_shape("theta", theta, "[N, D]", (episodes, task.size * task.joints))
    return theta.reshape(len(theta), task.size, task.joints)


def _linear(gains: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """Actions `[N, n]`, each episode by its own gains, for features `[N, F]`."""
    return np.einsum("nf,nfa->na", seen, gains)


@partial(jax.jit, static_argnums=(0, 1))
def _normals(joints: int, horizon: int, keys: Array) -> tuple[Array, Array]:
    def one(key: Array) -> Array:
        return jax.random.normal(key, (horizon, joints), jnp.float64)

    key_noise, key_action = jnp.moveaxis(jax.vmap(jax.random.split)(keys), 1, 0)
    return jax.vmap(one)(key_noise), jax.vmap(one)(key_action)


def _draws(joints: int, horizon: int, keys: Array) -> tuple[np.ndarray, np.ndarray]:
    """Standard normal numbers `[N, T, n]` for the commands and for the actions, by episode."""
    with jax.enable_x64(True):
        noise, actions = _normals(joints, horizon, keys)
    return np.asarray(noise), np.asarray(actions)

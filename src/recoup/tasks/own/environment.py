"""Rolling a policy out in a Gymnasium environment, an episode at a time."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import Env

from recoup.core.types import Action, Array, Observation
from recoup.tasks.engines.attempt import closed, end_if_forked
from recoup.tasks.engines.engine import Job, Rolled
from recoup.tasks.policies.policy import Act, Policy, beginner

MOST_NUMBERS = 30  # numbers of an observation that is a context
MakeEnv = Callable[..., Env]


@dataclass(frozen=True)
class RolloutPlan:
    """How trials are rolled out: where, with what policy, how long, how often."""

    make: MakeEnv
    policy: Policy | None  # None before there is one
    horizon: int
    discount: float
    count: int = 1  # episodes a trial
    shared: bool = False  # whether the environment is the user's own object, theirs to close

    def __call__(self) -> "EnvRoller":
        """Builds the environment; once in every worker."""
        return EnvRoller(self, self.make())

    def begin(self, theta: Array) -> Callable[[], Act]:
        """What begins an episode of the policy with these parameters."""
        assert self.policy is not None
        return beginner(self.policy, theta)


class EnvRoller:
    """Rolls trials out in one environment."""

    def __init__(self, how: RolloutPlan, env: Env) -> None:
        self._how, self._env = how, env

    def __call__(self, job: Job) -> Rolled:
        """The returns of the trial's episodes."""
        how, begin = self._how, self._how.begin(job.theta)
        firsts: list[Observation] = []
        went = [
            episode(self._env, noting_first(begin(), firsts), seed, how.horizon, how.discount)
            for seed in episode_seeds(job.seed, how.count)
        ]
        values, steps = tuple(value for value, _ in went), sum(steps for _, steps in went)
        return Rolled(values, steps, known_of(firsts))

    def close(self) -> None:
        """Closes the environment, if it is ours."""
        if not self._how.shared:
            self._env.close()


def noting_first(act: Act, firsts: list[Observation]) -> Act:
    """Acts likewise, and notes what it sees first."""
    before = len(firsts)

    def noting(seen: Observation) -> Action:
        if len(firsts) == before:  # some environments fill one array again and again
            firsts.append(seen.copy() if isinstance(seen, np.ndarray) else seen)
        return act(seen)

    return noting


def known_of(firsts: Sequence[Observation]) -> tuple[float, ...] | None:
    """What was known before any action of episodes: their first observation, in the mean.

    None where that is not a row of at most so many finite numbers.
    """
    if not all(isinstance(x, np.ndarray) and x.ndim == 1 and x.dtype.kind in "fiu" for x in firsts):
        return None
    sizes = {x.size for x in firsts}
    if len(sizes) != 1 or not 0 < max(sizes) <= MOST_NUMBERS:
        return None
    rows = np.array(firsts, float)
    if not np.isfinite(rows).all():
        return None
    return tuple(rows.mean(axis=0).tolist())


def episode(env: Env, act: Act, seed: int, horizon: int, discount: float) -> tuple[float, int]:
    """Return and length of one episode: until it terminates or is truncated, or the horizon.

    The return is the sum of gamma^(t-1) r_t, as `models.rollout` has it.
    """
    process = os.getpid()
    seen, _ = env.reset(seed=seed)
    end_if_forked(process)
    total, weight = 0.0, 1.0
    for step in range(1, horizon + 1):
        seen, reward, terminated, truncated, _ = env.step(act(seen))
        end_if_forked(process)  # at once: with every step there would be twice as many
        total += weight * _number(reward)
        weight *= discount
        if terminated or truncated:
            return total, step
    return total, horizon


def _number(reward: Any) -> float:
    """A reward as a number; some environments give an array of one."""
    try:
        return float(reward)
    except TypeError:
        return float(np.asarray(reward).item())


def episode_seeds(seed: int, count: int) -> list[int]:
    """Seeds of a trial's episodes: the trial's own, then others that follow from it."""
    others = np.random.SeedSequence(seed).generate_state(count)[1:]
    return [seed, *(int(other) % 2**31 for other in others)]


def observe(
    how: RolloutPlan, flatten: Callable[[Observation], np.ndarray], jobs: list[Job]
) -> np.ndarray:
    """Observations `[n, I]` of one episode of each job, the first one of each too."""
    env, rows = how.make(), []
    try:
        for job in jobs:
            act = how.begin(job.theta)()

            def noting(seen: Observation, act: Act = act) -> Action:
                rows.append(flatten(seen))
                return act(seen)

            episode(env, noting, job.seed, how.horizon, 1.0)
    finally:
        if not how.shared:
            closed(env.close)
    return np.array(rows)

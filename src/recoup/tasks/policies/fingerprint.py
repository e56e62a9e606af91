"""What a policy gives on fixed observations: stored with it, and compared once it is loaded.

The observations follow from the space by plain arithmetic, each number from the names of the keys
that lead to it: another order of keys gives the same observation and other numbers. Whoever changes
how they are made makes every file of before look like another policy.
"""

import copy
import warnings
from collections.abc import Callable, Sequence
from hashlib import sha256
from math import prod

import numpy as np
from gymnasium import spaces

from recoup.checks import InputError
from recoup.core.types import Array, Given, Observation
from recoup.tasks.policies.environment_spaces import inputs_of
from recoup.tasks.policies.networks import MLP, Kernels, Linear
from recoup.tasks.policies.policy import Act, Policy, SpacePolicy, beginner

STORED = 5  # observations that are stored as numbers themselves, K
MOST_ASKED, LEAST_ASKED, ASKED_NUMBERS = 64, 8, 2**16  # observations, and numbers in them
THETAS = 3  # that it is asked with: two policies may do the same with one of them
MEMORY_STEPS = 8  # observations before a memory starts anew: chaos makes rounding large
TIES = 0.05  # the share of choices that may be others
NO_BOUND = 1e6  # a bound as far as this is none
UNBOUNDED_SPREAD = 4.0  # of observations without bounds
OWN_ERROR, OTHERS_ERROR = 1e-6, 1e-3  # of float64, and of modules and objects in any precision


def fixed_observations(space: spaces.Space, count: int = STORED) -> list[Observation]:
    """So many observations of a space, the same on every machine."""
    return [_fixed(space, f"{k}") for k in range(count)]


def count_for(space: spaces.Space) -> int:
    """How many observations a policy is asked about: fewer where each is many numbers."""
    return min(max(ASKED_NUMBERS // max(spaces.utils.flatdim(space), 1), LEAST_ASKED), MOST_ASKED)


def _fixed(space: spaces.Space, name: str) -> Observation:
    if isinstance(space, spaces.Dict):
        return {key: _fixed(part, f"{name}/{key}") for key, part in space.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(_fixed(part, f"{name}/{i}") for i, part in enumerate(space))
    shape = space.shape or ()
    units = _units(name, prod(shape)).reshape(shape)
    if isinstance(space, spaces.Discrete):
        return int(space.start) + int(units * int(space.n))
    if isinstance(space, spaces.MultiDiscrete):
        return (np.asarray(space.start) + np.floor(units * space.nvec)).astype(space.dtype)
    if isinstance(space, spaces.MultiBinary):
        return (units > 0.5).astype(np.int8)
    if not isinstance(space, spaces.Box):
        raise TypeError(f"no observation of a {type(space).__name__} can be made up")
    low, high = _range(space)
    found = low + units * (high - low)
    whole = np.issubdtype(space.dtype, np.integer)
    made = np.asarray(np.floor(found) if whole else found).astype(space.dtype)
    return np.asarray(np.clip(made, space.low, space.high))


def _units(name: str, count: int) -> np.ndarray:
    """Numbers in [0, 1) that a name leads to."""
    digest = sha256(name.encode()).digest()
    first, step = (int.from_bytes(part, "big") / 2**48 for part in (digest[:6], digest[6:12]))
    return (first + step * np.arange(1, count + 1)) % 1.0


def _range(space: spaces.Box) -> tuple[np.ndarray, np.ndarray]:
    """Bounds `[...]` that are no farther than observations may well be."""
    low, high = space.low.astype(float), space.high.astype(float)
    below, above = np.abs(low) < NO_BOUND, np.abs(high) < NO_BOUND
    lower = np.where(below, low, np.where(above, high - UNBOUNDED_SPREAD, -UNBOUNDED_SPREAD / 2))
    return lower, np.where(above, high, lower + UNBOUNDED_SPREAD)


def fixed_thetas(dim: int, mean: Array = 0.0, std: Array = 1.0) -> np.ndarray:
    """Parameters `[T, D]` as a search draws them, the same on every machine."""
    units = np.array([_units(f"theta/{k}", dim) for k in range(THETAS)])
    return np.broadcast_to(mean, dim) + np.broadcast_to(std, dim) * 12**0.5 * (units - 0.5)


def thetas_beside(theta: np.ndarray) -> np.ndarray:
    """Parameters `[1 + T, D]`: those that were learned, and fixed ones as large as they are."""
    largest = np.abs(theta).max(initial=0.0) or 1.0
    return np.vstack([theta, fixed_thetas(theta.size, std=largest)])


def flattened(space: spaces.Space) -> np.ndarray:
    """The fixed observations as numbers `[K, I]`."""
    flatten = inputs_of(space).flatten
    return np.array([flatten(seen) for seen in fixed_observations(space)])


def fingerprint(
    policy: Policy, thetas: np.ndarray, observations: spaces.Space
) -> np.ndarray | None:
    """What a policy gives on fixed observations `[T * K, O]`; None where that says nothing.

    Of ours the numbers before they become actions, which no tie can change. Of an object of the
    user's its actions; None where they differ from call to call, or are no numbers.
    """
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            seen = fixed_observations(observations, count_for(observations))
            begins = [_beginner(policy, theta) for theta in thetas]
            first, second = (
                np.concatenate([_given(begin, seen) for begin in begins]) for _ in range(2)
            )
    except Exception:  # of the user's: it may take none but what its environment gives
        return None
    same = first.shape == second.shape and np.array_equal(first, second)
    return first if same and first.ndim == 2 and np.isfinite(first).all() else None


def _beginner(policy: Policy, theta: Array) -> Callable[[], Act]:
    if isinstance(policy, SpacePolicy):
        numbers = policy.numbers(theta)
        return lambda: numbers
    return beginner(copy.deepcopy(policy), theta)  # the user's own stays as it is


def _given(begin: Callable[[], Act], seen: list[Observation]) -> np.ndarray:
    episodes = [seen[start : start + MEMORY_STEPS] for start in range(0, len(seen), MEMORY_STEPS)]
    acts = ((begin(), episode) for episode in episodes)
    return np.array([_numbers(act(one)) for act, episode in acts for one in episode], float)


def _numbers(action: Array) -> np.ndarray:
    """An action as numbers, whatever it is made of."""
    if isinstance(action, dict):
        action = [action[key] for key in sorted(action, key=str)]
    if isinstance(action, (list, tuple)):
        return np.concatenate([_numbers(part) for part in action])
    return np.asarray(action, float).ravel()


def check_fingerprint(
    name: str, stored: Given, policy: Policy, thetas: np.ndarray, between: Sequence[spaces.Space]
) -> None:
    """Raises where a policy gives other numbers than those stored `[T * K, O]` with it.

    `between` are the spaces of observations and actions.
    """
    was, now = np.asarray(stored, float), fingerprint(policy, thetas, between[0])
    if now is not None and gave_the_same(was, now, policy, between):
        return
    then, today = _where_apart(was, now)
    if _is_ours(policy):
        raise InputError(
            f"{name} does not give what it gave when it was saved: on a fixed observation {then}, "
            f"and {today} now. The file was changed, or written by a version of recoup that makes "
            "other numbers of it."
        )
    raise InputError(
        f"the policy given for {name} is not the one that was trained: on a fixed observation that "
        f"gave {then}, and this {today}. Give the same object with policy=..., or train anew."
    )


def gave_the_same(
    was: np.ndarray, now: np.ndarray, policy: Policy, between: Sequence[spaces.Space]
) -> bool:
    """Whether two fingerprints `[T * K, O]` are of one policy, on whatever processors."""
    network = isinstance(policy, SpacePolicy)
    choices = not network and len(between) > 1 and _is_whole(between[1])
    return is_same(was, now, OWN_ERROR if _is_ours(policy) else OTHERS_ERROR, choices)


def _is_ours(policy: Policy) -> bool:
    """Whether a policy is made of arithmetic of ours."""
    return isinstance(policy, SpacePolicy) and isinstance(policy.network, (Linear, MLP, Kernels))


def _is_whole(space: spaces.Space) -> bool:
    """Whether actions are choices; others may be whole numbers too, at their bounds."""
    if isinstance(space, (spaces.Dict, spaces.Tuple)):
        parts = space.values() if isinstance(space, spaces.Dict) else space
        return all(_is_whole(part) for part in parts)
    return space.dtype is not None and np.issubdtype(space.dtype, np.integer)


def is_same(was: np.ndarray, now: np.ndarray, error: float, choices: bool = False) -> bool:
    """Whether numbers `[K, O]` differ by no more than processors do, an `error` of the largest.

    Of `choices` a few rows may differ: ties.
    """
    if was.shape != now.shape:
        return False
    if choices:
        return int(np.any(was != now, axis=1).sum()) <= TIES * len(was)
    largest = np.abs(was).max(0, initial=0.0)
    least = 1e-3 * largest.max(initial=0.0)  # of one that is small beside the others
    return bool(np.all(np.abs(now - was) <= error * np.maximum(largest, least)))


def _where_apart(was: np.ndarray, now: np.ndarray | None) -> tuple[str, str]:
    """The numbers of the observation where two fingerprints differ most, in words."""
    if now is None:
        return _words(was[:1]), "nothing that can be compared"
    if was.shape != now.shape:
        return f"numbers of the shape {list(was.shape)}", f"of {list(now.shape)}"
    row = int(np.abs(now - was).max(1).argmax())
    return _words(was[row]), _words(now[row])


def _words(numbers: np.ndarray) -> str:
    return np.array2string(np.ravel(numbers)[:4], precision=4, separator=", ")

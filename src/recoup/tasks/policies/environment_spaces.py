"""Between an environment's spaces and numbers: observations flattened, outputs made actions."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from gymnasium import spaces

from recoup.checks import InputError
from recoup.core.types import Action, Observation

CLIP, SQUASH = "clip", "squash"  # how outputs are held to the bounds of actions


class Inputs(NamedTuple):
    """How an observation becomes numbers `[I]`."""

    size: int
    flatten: Callable[[Observation], np.ndarray]
    low: np.ndarray  # [I] bounds, infinite where there are none
    high: np.ndarray


class Outputs(NamedTuple):
    """How numbers `[O]` become an action."""

    size: int
    act: Callable[[np.ndarray], Action]


def inputs_of(space: spaces.Space) -> Inputs:
    """How observations of a space are flattened: as Gymnasium does, choices as ones and zeros."""
    if isinstance(space, spaces.Box):
        low, high = space.low.astype(float).ravel(), space.high.astype(float).ravel()
        return Inputs(low.size, lambda seen: np.asarray(seen, float).reshape(-1), low, high)
    try:
        flat = spaces.utils.flatten_space(space)
    except (NotImplementedError, ValueError, TypeError, AttributeError):
        flat = None
    if not isinstance(flat, spaces.Box) or not flat.shape:
        raise InputError(
            f"observations of the kind {type(space).__name__} cannot be made a vector of numbers: "
            "give a policy of your own (an object with `parameters` and `act`), or wrap the "
            "environment so that it observes a Box, Discrete, Dict or Tuple."
        )
    low, high = flat.low.astype(float).ravel(), flat.high.astype(float).ravel()
    utils = spaces.utils
    return Inputs(low.size, lambda seen: np.asarray(utils.flatten(space, seen), float), low, high)


def outputs_of(space: spaces.Space, bounds: str) -> Outputs:
    """How many numbers an action takes, and how they become one; the largest number chooses."""
    if isinstance(space, spaces.Box):
        return _box(space, bounds)
    if isinstance(space, spaces.Discrete):
        first, count = int(space.start), int(space.n)
        if count == 2:  # one number says which
            return Outputs(1, lambda y: first + int(y[0] > 0))
        return Outputs(count, lambda y: first + int(np.argmax(y)))
    if isinstance(space, spaces.MultiDiscrete):
        return _choices(space)
    if isinstance(space, spaces.MultiBinary):
        shape = space.shape
        return Outputs(int(np.prod(shape)), lambda y: (y > 0).astype(np.int8).reshape(shape))
    raise InputError(
        f"actions of the kind {type(space).__name__} are not supported (Box, Discrete, "
        "MultiDiscrete and MultiBinary are): give a policy of your own (an object with "
        "`parameters` and `act`), or wrap the environment."
    )


def _choices(space: spaces.MultiDiscrete) -> Outputs:
    """One block of numbers a choice."""
    counts, shape = space.nvec.ravel(), space.shape
    first, ends = np.asarray(space.start).ravel(), np.cumsum(counts)[:-1]

    def act(y: np.ndarray) -> np.ndarray:
        chosen = [int(np.argmax(part)) for part in np.split(y, ends)]
        return (first + chosen).astype(space.dtype).reshape(shape)

    return Outputs(int(counts.sum()), act)


class Scaled(NamedTuple):
    """How numbers `[O]` become an action in a box: middle + half times them, held to its bounds."""

    low: np.ndarray  # [O]
    high: np.ndarray
    bounded: np.ndarray  # on both sides; elsewhere a number is the action itself
    middle: np.ndarray
    half: np.ndarray
    whole: bool  # whether actions are whole numbers


def scaled(space: spaces.Box) -> Scaled:
    """The same of one box, for whatever computes it."""
    low, high = space.low.astype(float).ravel(), space.high.astype(float).ravel()
    bounded = np.isfinite(low) & np.isfinite(high)
    lower, upper = np.where(bounded, low, -1.0), np.where(bounded, high, 1.0)
    whole = bool(np.issubdtype(space.dtype, np.integer))
    return Scaled(low, high, bounded, (upper + lower) / 2, (upper - lower) / 2, whole)


def _box(space: spaces.Box, bounds: str) -> Outputs:
    """Between bounds, -1 is the lower and 1 the upper; without, a number is the action itself."""
    shape, kind, squash = space.shape, space.dtype, bounds == SQUASH
    low, high, bounded, middle, half, whole = scaled(space)

    def act(y: np.ndarray) -> np.ndarray:
        if squash:
            y = np.where(bounded, np.tanh(y), y)
        action = np.minimum(np.maximum(middle + half * y, low), high)
        return (np.rint(action) if whole else action).astype(kind).reshape(shape)

    return Outputs(low.size, act)

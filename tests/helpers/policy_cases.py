"""Policies of every kind, between spaces of every kind, as files for others are tested with."""

import itertools

import numpy as np
from gymnasium import spaces

from recoup.tasks.policies.policy import make_policy

BOX = spaces.Box(np.float32([-1, -5]), np.float32([3, np.inf]))
HALF = spaces.Box(-9, 9, (2,), np.float16)
OBSERVATIONS = {
    "box": BOX,
    "picture": spaces.Box(0, 255, (2, 3, 2), np.uint8),
    "discrete": spaces.Discrete(4, start=-2),
    "several": spaces.MultiDiscrete([[2, 3], [4, 1]], start=[[0, 5], [-1, 2]]),
    "binary": spaces.MultiBinary([2, 2]),
    "dict": spaces.Dict(pos=BOX, vel=spaces.Box(-9, 9, (3,)), att=spaces.Discrete(2)),
    "tuple": spaces.Tuple([spaces.Discrete(3), HALF, spaces.MultiBinary(2)]),
    "nested": spaces.Dict(
        {
            "z": spaces.Tuple([spaces.Dict(b=BOX, a=spaces.Discrete(3, start=1)), BOX]),
            "a": spaces.Box(-1.0, 1.0, (2, 2), np.float64),
        }
    ),
}
ACTIONS = {
    "box": spaces.Box(np.float32([-2, 0, 1]), np.float32([2, 1, 1.5])),
    "half": spaces.Box(
        np.array([-np.inf, 0.0, -1]), np.array([np.inf, np.inf, 3]), (3,), np.float64
    ),
    "whole": spaces.Box(np.array([[-5, 0]]), np.array([[5, 200]]), (1, 2), np.int64),
    "two": spaces.Discrete(2, start=3),
    "five": spaces.Discrete(5, start=-1),
    "several": spaces.MultiDiscrete([[2, 3], [4, 1]], start=[[0, 5], [-1, 2]]),
    "binary": spaces.MultiBinary([3, 2]),
}
KINDS = [
    ("linear", {}),
    ("linear", {"bias": False}),
    ("kernels", {"size": 7}),
    ("mlp", {"hidden": [4, 3]}),
    ("mlp", {"hidden": 5}),
]


def seen_in(space, rng, count):
    """Observations of a space, some as numbers of another type, as environments give them."""
    space.seed(int(rng.integers(2**31)))
    drawn = [space.sample() for _ in range(count)]
    if isinstance(space, spaces.Box) and space.dtype == np.float32:
        drawn += [np.asarray(one, float) * 1.234567890123 for one in drawn]
    if isinstance(space, spaces.Tuple):
        drawn += [(one, np.asarray(box, float) * 0.9876, many) for one, box, many in drawn]
    return drawn


def cases_of(seed):
    """Names, policies, thetas and observations: every pair of spaces, all settings in turn."""
    rng = np.random.default_rng(seed)
    settings = itertools.cycle(itertools.product(KINDS, ("clip", "squash"), (False, True)))
    for (seen, observations), (acts, actions) in itertools.product(
        OBSERVATIONS.items(), ACTIONS.items()
    ):
        (kind, options), bounds, normalize = next(settings)
        given = (kind, {**options, "actions": bounds}, observations, actions)
        observed = rng.normal(size=(30, spaces.utils.flatdim(observations))) * 3 + 1
        needed = normalize or kind == "kernels"
        policy = make_policy(*given, observed if needed else None, normalize)
        theta = rng.normal(size=policy.parameters) * rng.choice([0.2, 2.0])
        yield f"{seen}-{acts}", policy, theta, seen_in(observations, rng, 20)

"""An observation as files for other programs take it: its parts by name, each in its own shape."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces

from recoup.checks import InputError
from recoup.core.types import Observation

WHOLE = "observation"  # the name of one that has no parts


class ObservationLeaf(NamedTuple):
    """A part of an observation that has none itself, and how it becomes numbers.

    Row by row; or, of choices, as ones and zeros: number j is one where entry `entry[j]`, row by
    row, is `value[j]`.
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    entry: np.ndarray | None = None
    value: np.ndarray | None = None


def leaves(space: spaces.Space) -> list[ObservationLeaf]:
    """The parts of an observation, in the order in which they are flattened.

    A part of a `Dict` is named by its key, one of a `Tuple` by its place, parts of parts by both:
    `arm.0`.
    """
    found = list(_leaves(space, ()))
    names = [leaf.name for leaf in found]
    if len(set(names)) < len(names):
        raise InputError(f"two parts of an observation have the same name: {', '.join(names)}.")
    return found


def _leaves(space: spaces.Space, way: tuple[str, ...]) -> Iterator[ObservationLeaf]:
    name = ".".join(way) or WHOLE
    if isinstance(space, spaces.Dict):
        for key, part in space.items():
            yield from _leaves(part, (*way, str(key)))
    elif isinstance(space, spaces.Tuple):
        for place, part in enumerate(space):
            yield from _leaves(part, (*way, str(place)))
    elif isinstance(space, (spaces.Discrete, spaces.MultiDiscrete)):
        counts = np.ravel(space.n if isinstance(space, spaces.Discrete) else space.nvec)
        entry = np.repeat(np.arange(len(counts)), counts)
        firsts = np.broadcast_to(np.ravel(space.start), counts.shape)
        value = np.concatenate(
            [first + np.arange(n) for first, n in zip(firsts, counts, strict=True)]
        )
        yield ObservationLeaf(
            name, space.shape or (), np.dtype(space.dtype), entry, value.astype(np.int64)
        )
    else:  # a `Box` or a `MultiBinary`
        yield ObservationLeaf(name, space.shape or (), np.dtype(space.dtype))


def parts_of(space: spaces.Space, seen: Observation) -> list[np.ndarray]:
    """The parts of one observation, each as its space has it, in the same order."""
    if isinstance(space, spaces.Dict):
        return [one for key, part in space.items() for one in parts_of(part, seen[key])]
    if isinstance(space, spaces.Tuple):
        return [
            one for part, given in zip(space, seen, strict=True) for one in parts_of(part, given)
        ]
    return [np.asarray(seen, space.dtype).reshape(space.shape)]


def named(names: Sequence[str], wanted: str) -> str:
    """`wanted`, or where one of `names` is so already, something like it."""
    return named(names, f"next_{wanted}") if wanted in names else wanted

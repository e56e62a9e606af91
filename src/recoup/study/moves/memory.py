"""Memories of rules and movers as files hold them, without JAX; repeats in that of `recoup`."""

from collections.abc import Iterator

import numpy as np

from recoup.checks import InputError, shortly
from recoup.core.types import Array, Given, Pytree, Rho
from recoup.engine import plain
from recoup.engine.methods import Method
from recoup.store.rows import Leaf, Memory
from recoup.store.schema import packed_memory

CHANGED = (
    "the memory of the update rule has changed its structure, which a study cannot hold: nothing "
    "was moved, and every result is kept."
)


def flattened(memory: Pytree) -> Memory:
    """A memory as a file holds it: its arrays by the names that JAX gives to their places."""
    return tuple(Leaf(path, np.asarray(x)) for path, x in _places(memory)) or None


def _places(memory: Pytree, path: str = "") -> Iterator[tuple[str, Array]]:
    """The arrays of nested tuples, records, lists and dicts, by their places."""
    if memory is None:
        return
    if isinstance(memory, dict):
        parts = [(f"[{key!r}]", memory[key]) for key in _in_order(memory)]
    elif hasattr(memory, "_fields"):
        parts = [(f".{key}", value) for key, value in memory._asdict().items()]
    elif isinstance(memory, (tuple, list)):
        parts = [(f"[{i}]", value) for i, value in enumerate(memory)]
    else:
        yield path, memory
        return
    for place, part in parts:
        yield from _places(part, path + place)


def _in_order(memory: dict[Given, Pytree]) -> list[Given]:
    try:
        return sorted(memory)
    except TypeError:
        raise InputError(
            f"the keys of a dict in a memory must be texts, got {shortly(list(memory))}."
        ) from None


def check_first(row: Method, rho: Rho) -> None:
    """Raises unless a file can hold what the row remembers before its first move."""
    packed_memory(flattened(plain.remembered_first(row, rho)))


def kept_alike(memory: Pytree, before: Pytree) -> Memory:
    """A memory as a file holds it; raises where it has another structure than the one `before`."""
    found, known = flattened(memory), flattened(before)
    if _structure(found) != _structure(known):
        raise InputError(CHANGED)
    return found


def _structure(memory: Memory) -> dict[str, tuple[int, ...]]:
    return {leaf.path: leaf.value.shape for leaf in memory or ()}


def remembered(row: Method, rho: Rho, stored: Memory) -> Pytree:
    """What `flattened` has made leaves of, for a distribution like `rho`; None: nothing yet."""
    first = plain.remembered_first(row, rho)
    if stored is None:
        return first
    known = {leaf.path: leaf.value for leaf in stored}
    if _structure(stored) != _structure(flattened(first)):
        raise InputError(
            "the memory of this study's method has another structure than this version's: go on "
            "with the version of recoup, or of your mover, that the study was made with, or fork "
            "it with a mean or std of its own, which begins without a memory."
        )
    return _filled(first, known)


def _filled(first: Pytree, known: dict[str, np.ndarray], path: str = "") -> Pytree:
    """A structure like `first`, with the arrays that are known by their places."""
    if first is None:
        return None
    if isinstance(first, dict):
        return {key: _filled(x, known, f"{path}[{key!r}]") for key, x in first.items()}
    if hasattr(first, "_fields"):
        parts = (_filled(x, known, f"{path}.{key}") for key, x in first._asdict().items())
        return type(first)(*parts)
    if isinstance(first, (tuple, list)):
        return type(first)(_filled(x, known, f"{path}[{i}]") for i, x in enumerate(first))
    return known[path]


def wants_repeat(row: Method, rho: Rho, memory: Memory) -> bool:
    """Whether the next batch is to try its first candidate twice."""
    if row.way.repeats is None or memory is None:
        return False
    return bool(row.way.repeats(remembered(row, rho, memory)))

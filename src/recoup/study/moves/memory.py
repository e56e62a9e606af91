"""The memory of the method `recoup` in a file: what it says of repeats, and files without them."""

import numpy as np

from recoup.core.rules.rugged import no_pairs
from recoup.engine.methods import Method
from recoup.store.rows import Leaf, Memory

PAIRS = ".pairs."  # where a memory has what candidates tried twice have said
NO_PAIRS = tuple(
    Leaf(f"{PAIRS}{key}", np.asarray(x)) for key, x in no_pairs(np, np.float64)._asdict().items()
)


def wants_repeat(memory: Memory) -> bool:
    """Whether the next batch is to try its first candidate twice."""
    return any(leaf.path == f"{PAIRS}wanted" and bool(leaf.value) for leaf in memory or ())


def completed(row: Method, memory: Memory) -> Memory:
    """A memory as it is today: one that knew nothing of repeats has had none."""
    if memory is None or not _lacks_pairs(row, memory):
        return memory
    return memory + NO_PAIRS


def known_then(row: Method, made: Memory, stored: Memory) -> Memory:
    """What a move that is made again remembers, of that which was remembered when it was stored."""
    if made is None or stored is None or not _lacks_pairs(row, stored):
        return made
    return tuple(leaf for leaf in made if not leaf.path.startswith(PAIRS))


def _lacks_pairs(row: Method, memory: tuple[Leaf, ...]) -> bool:
    return row.way.repeats and not any(leaf.path.startswith(PAIRS) for leaf in memory)

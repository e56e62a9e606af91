"""The one loop of runs side by side, whatever makes their moves."""

from collections.abc import Callable, Collection
from typing import Any


def in_lock_step(
    last: int, tested: Collection[int], move: Callable[[int], None], test: Callable[[int], Any]
) -> dict[int, Any]:
    """The one loop: `last` moves of runs side by side, and what is found after those `tested`.

    Move 0 is the start.
    """
    found: dict[int, Any] = {}
    for i in range(last + 1):
        if i > 0:
            move(i)
        if i in tested:
            found[i] = test(i)
    return found

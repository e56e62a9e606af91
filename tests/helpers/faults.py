"""All faults of many files in one test, each in a sentence."""

from collections.abc import Callable, Iterable
from pathlib import Path


def faults(check: Callable[[Path], None], paths: Iterable[Path]) -> list[str]:
    """What a check of one file says of each that it refuses."""
    found = []
    for path in paths:
        try:
            check(path)
        except AssertionError as wrong:
            found.append(str(wrong))
    return found

"""Results that are improbable beside those told about the same time: slips of the keyboard, often.

They are kept and used like all others; that they stand out is said.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

import numpy as np

AROUND, LEAST = 30, 8  # results that one is compared with, and as many as that takes
LARGEST = 1e300  # larger returns are scaled
TIMES = 20.0  # so much farther from them than they are from each other


class Slip(NamedTuple):
    """A result that stands out."""

    trial: int
    value: float
    times: float  # its distance from the median of those around it, over their typical distance

    @property
    def words(self) -> str:
        """What to do about it."""
        return (
            f"Trial {self.trial}: {self.value:.6g} is {self.times:.0f} times farther from the "
            "others than they are from each other: amend it if it is a slip."
        )


def slips(returns: Mapping[int, float], among: Collection[int] | None = None) -> list[Slip]:
    """What stands out of `returns`, by trial; only `among` some of them, if said."""
    ids, values = list(returns), np.array(list(returns.values()))
    values = values / max(np.abs(values).max(initial=0.0) / LARGEST, 1.0)  # differences are finite
    found = []
    for i, trial in enumerate(ids):
        if among is not None and trial not in among:
            continue
        first = max(0, min(i - AROUND // 2, len(ids) - AROUND - 1))
        others = np.delete(values[first : first + AROUND + 1], i - first)
        if len(others) < LEAST:
            continue
        middle = np.median(others)
        typical = float(np.median(np.abs(others - middle)))
        away = abs(float(values[i] - middle))
        if typical > 0 and away > TIMES * typical:
            found.append(Slip(trial, returns[trial], away / typical))
    return found

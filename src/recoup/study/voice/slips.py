"""Results that are improbable beside those told about the same time: slips of the keyboard, often.

They are kept and used like all others; that they stand out is said. A result stands out by its size
(another power of ten, another unit), or by its sign: its negative would fit the others far better.

A sign is doubted of a result that is right in at most 0.2 % of returns, however heavy their tails,
and a first success of +10 among failures of -10 is called a slip. Nearer to zero than three
standard deviations a wrong sign cannot be told from noise (`python -m benchmarks.slips`).
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

import numpy as np

AROUND, MODEL_RESULTS = 30, 8  # results that one is compared with, and as many as that takes
UNSCALED = 1e300  # larger returns are scaled
TIMES = 20.0  # so much farther from them than they are from each other
FAR, NEAR = 8.0, 3.0  # a slip of the sign is so far, and its negative so near, likewise
BEYOND = 2.0  # and so much farther than the farthest of them on its side


class Slip(NamedTuple):
    """A result that stands out."""

    trial: int
    value: float
    times: float  # its distance from the median of those around it, over their typical distance
    sign: bool = False  # whether its negative would not stand out

    @property
    def words(self) -> str:
        """What to do about the slip."""
        if self.sign:
            return (
                f"Trial {self.trial}: {self.value:.6g} has another sign than the results around "
                f"it, and {-self.value:.6g} would fit them: amend it if the sign is a slip."
            )
        times = f"{round(self.times):.6g} times"
        return (
            f"Trial {self.trial}: {self.value:.6g} is {times} farther from the others than they "
            "are from each other: amend it if it is a slip."
        )


def slips(returns: Mapping[int, float], among: Collection[int] | None = None) -> list[Slip]:
    """What stands out of `returns`, by trial; only `among` some of them, if said."""
    ids, values = list(returns), np.array(list(returns.values()))
    values = values / max(np.abs(values).max(initial=0.0) / UNSCALED, 1.0)  # differences are finite
    asked = [i for i, trial in enumerate(ids) if among is None or trial in among]
    if min(len(ids) - 1, AROUND) < MODEL_RESULTS:
        return []
    others = values[_around(np.array(asked, int), len(ids))]
    middle = np.median(others, axis=1)
    typical = np.median(np.abs(others - middle[:, None]), axis=1)
    away = np.abs(values[asked] - middle)
    found = []
    for row in np.flatnonzero((typical > 0) & (away > min(FAR, TIMES) * typical)):
        i, size = asked[row], min(float(away[row]) / float(typical[row]), UNSCALED)
        sign = _is_of_the_sign(values[i], others[row], float(middle[row]), float(typical[row]))
        if sign or away[row] > TIMES * typical[row]:
            found.append(Slip(ids[i], returns[ids[i]], size, sign))
    return found


def _around(asked: np.ndarray, n: int) -> np.ndarray:
    """Of each of `asked [m]`, the places of those told about the same time `[m, AROUND]`, of n."""
    width = min(n - 1, AROUND)
    first = np.clip(asked - AROUND // 2, 0, n - 1 - width)
    places = first[:, None] + np.arange(width)
    return places + (places >= asked[:, None])  # but for itself


def _is_of_the_sign(value: float, others: np.ndarray, middle: float, typical: float) -> bool:
    """Whether the negative of a result would fit the others far better than it does itself.

    All of them have the other sign, it is far from them, and farther by far than the farthest on
    its side; its negative is near.
    """
    side = np.sign(value)
    if not (side and (np.sign(others) == -side).all()):
        return False
    away, farthest = abs(value - middle), float(np.max((others - middle) * side))
    return away > max(FAR * typical, BEYOND * farthest) and abs(value + middle) <= NEAR * typical

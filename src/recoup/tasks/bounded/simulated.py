"""Simulated machines whose gains are searched: the bounds lie elsewhere around the best each run.

A machine and its best gains stay the same; in every run the best is at another place of the box, on
log scales by moving both bounds. The expected return is a mean over the same episodes always.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from recoup.tasks.bounded.box import INT, LOG, Bounded, Box
from recoup.tasks.bounded.function_tasks import Placed, Rng
from recoup.tasks.bounded.placing import place

EPISODES, SEED = 256, 31  # of the expected return
PLACING_TRIES = 1000  # places for the best until the middle of the box does not crash


class Knob(NamedTuple):
    """One gain: where it is best, and how much its bounds are apart."""

    name: str
    best: float
    width: float  # high over low on a log scale, otherwise high - low
    scale: str = LOG


class Machine(NamedTuple):
    """A simulated machine: episodes of gains `[n, D]` under noise `[n, K]`, a draw each."""

    knobs: tuple[Knob, ...]
    numbers: int  # K, of standard normal noise that an episode takes
    returns: Callable[[np.ndarray, np.ndarray], np.ndarray]  # -> [n]; NaN: it crashed
    floor: float = np.nan  # what a crash is worth

    @property
    def dim(self) -> int:
        """How many gains it has, D."""
        return len(self.knobs)


def around(knob: Knob, share: float) -> Bounded:
    """The parameter of a gain whose best lies at `share` of its box."""
    if knob.scale == LOG:
        low = knob.best / knob.width**share
        return Bounded(knob.name, low, low * knob.width, LOG)
    if knob.scale == INT:
        low = max(int(knob.best) - round(share * knob.width), 1)
        return Bounded(knob.name, low, low + int(knob.width), INT)
    low = knob.best - share * knob.width
    return Bounded(knob.name, low, low + knob.width, knob.scale)


def simulated(rng: Rng, *, over: Machine, where: str) -> Placed:
    """The machine with its bounds of this run; the middle of the box does not crash."""
    machine = over
    for _ in range(PLACING_TRIES):
        shares = place(where, machine.dim, rng)
        box = Box(tuple(around(*pair) for pair in zip(machine.knobs, shares, strict=True)))
        middle = box.units(np.full((1, len(shares)), 0.5))
        if np.isfinite(machine.returns(np.repeat(middle, EPISODES, 0), _fixed(machine))).all():
            break
    best = box.unit(np.array([knob.best for knob in machine.knobs]))

    def play(x: np.ndarray, rngs: list[Rng]) -> np.ndarray:
        noise = np.array([one.standard_normal(machine.numbers) for one in rngs])
        return machine.returns(box.units(x), noise)

    def true(x: np.ndarray) -> np.ndarray:
        return expected(machine, box.units(x))

    return Placed(box, best, true, play, machine.floor)


def expected(machine: Machine, gains: np.ndarray) -> np.ndarray:
    """Mean returns `[n]` of gains `[n, D]` over the fixed episodes, a crash counted as its floor.

    Episodes are simulated all at once, for few gains at a time.
    """
    found = [machine.returns(np.repeat(one[None], EPISODES, 0), _fixed(machine)) for one in gains]
    returns = np.array(found).reshape(len(gains), EPISODES)
    return np.where(np.isfinite(returns), returns, machine.floor).mean(1)


@lru_cache(maxsize=16)
def _fixed(machine: Machine) -> np.ndarray:
    """The noise `[EPISODES, K]` that expected returns are taken over."""
    return np.random.default_rng(SEED).standard_normal((EPISODES, machine.numbers))

"""The ways in which methods make a step, as rows: what each is made with, and what it can do.

A method names its way as its `direction`. Whoever wants to know what a method can do asks its way,
never for its name. Needs no JAX.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from recoup.checks import InputError, check_choice
from recoup.core.movers import Mover, as_mover, is_mover
from recoup.core.rules.window import WindowSizes, reach_of
from recoup.core.types import Array, Chosen, Memory

_WEIGHING = ("window", "weighting", "power", "flatten", "truncate", "normalize", "tau_floor")
_WEIGHED = tuple(key for key in _WEIGHING if key != "tau_floor")
_STEPPING = ("update", "epsilon")
_GRADIENT = (*_WEIGHING, *_STEPPING, "baseline", "direction")
_EVALUATED = ("family", "failure")


class InBox(NamedTuple):
    """What a method does otherwise where every parameter lies between bounds."""

    std: float  # latent, at the start
    settings: Mapping[str, float]
    beyond: float  # share of its range that a parameter is searched beyond each bound
    batch: Callable[[int], int]  # dim -> results of a move, at first
    grows: int  # results from which on a move waits for `times` as many
    times: int
    noise: float  # share of the returns' variance that the last move called noise, from which it is


@dataclass(frozen=True)
class Way:
    """One way of making a step."""

    settings: Mapping[str, tuple[str, ...]]  # by what is searched: "parameters" or "actions"
    fixed: tuple[str, ...] = ()  # fields of a method that it leaves no choice of
    updates: tuple[str, ...] = ("normalised", "natural", "adam")  # words that it has a meaning for
    length: str = "update"  # the part that says how long a step is; empty: none does
    chains: bool = False  # whether steps, as short as they are set, follow each other on the same
    # results; else a move begins where results have come from
    moves: bool = False  # whether it asks a family for what `moving` names
    rule: bool = False  # whether it looks at the samples themselves: it takes no part, and NumPy
    # makes its moves whatever their size
    avoids: bool = False  # whether it can keep away from where trials fail
    limits: bool = False  # whether it keeps limits on numbers told beside returns
    repeats: Callable[[Memory], Array] | None = None  # memory -> whether the next batch is to try
    # its first candidate twice; None: it never is
    any_bounds: bool = False  # whether results of other bounds count that were correlated there
    batch: Callable[[int], int] | None = None  # dim -> the batch that it is made for
    reach: Callable[[int, int, int | None], WindowSizes] | None = (
        None  # dim, batch, window -> how many
    )
    # results it looks at; None: all that are kept
    box: InBox | None = None  # what it does otherwise between bounds; None: nothing
    mover: Mover | None = None  # what makes the step of the samples themselves, a part like others


def _small_batch(dim: int) -> int:
    """Half of what CMA-ES takes for so many dimensions."""
    return max(4, round((4 + 3 * float(np.log(dim))) / 2))


BOX = InBox(  # tuned on bounded tasks: docs/benchmarks/bounded.md
    std=0.7,
    settings={"most_std": 0.95},
    beyond=0.05,
    batch=lambda dim: max(5, _small_batch(dim)),
    grows=20,
    times=2,
    noise=0.25,
)


def way_of_mover(mover: Mover) -> Way:
    """The way of a method that is one mover: what weighs and what draws may be chosen."""
    return Way(
        {"parameters": (*_WEIGHED, *_EVALUATED, "mirrored", "direction")},
        fixed=("baseline", "update"),
        length="",
        chains=True,
        repeats=mover.wants_repeat,
        batch=mover.batch,
        mover=mover,
    )


WAYS = {
    # along the likelihood-ratio gradient, by an update rule
    "gradient": Way(
        {
            "parameters": (*_GRADIENT, *_EVALUATED, "kl", "mirrored"),
            "actions": (*_GRADIENT, "per_decision"),
        },
        chains=True,
    ),
    # along the natural gradient, by least squares
    "regression": Way({"actions": (*_WEIGHING, *_STEPPING, "ridge")}, chains=True),
    # the M-step of reward-weighted regression
    "em": Way(
        {"actions": ("window", "flatten", "tau_floor", "ridge", "folds")},
        fixed=("weighting", "update"),
        updates=("whole",),
        length="",
    ),
    # the rule of docs/recoup.md: a regression on the samples, and a weighted step beside it
    "blend": Way(
        {
            "parameters": (
                *("window", *_EVALUATED),
                *("share", "prior", "widens", "pulled", "most", "shrink", "repeats"),
                *("most_std", "orthogonal", "context"),
            )
        },
        fixed=("weighting", "normalize", "baseline"),
        length="",
        moves=True,
        rule=True,
        avoids=True,
        limits=True,
        repeats=lambda memory: memory.pairs.wanted,
        any_bounds=True,
        batch=_small_batch,
        reach=reach_of,
        box=BOX,
    ),
    # the whole way to the distribution fitted to samples that count by weight and `utility`
    "fit": Way(
        {
            "parameters": (
                *(key for key in _WEIGHING if key != "normalize"),  # their sum is 1 anyway
                *(*_EVALUATED, "utility", "elite", "temperature", "kl"),
            )
        },
        fixed=("update",),
        updates=("whole",),
        length="utility",
        moves=True,
    ),
}
SPACES = {"parameters": "parameters", "actions": "action space"}  # as they are called


def way_of(direction: Chosen) -> Way:
    """The way that a direction names; a function of a user's is followed as a gradient is."""
    if is_mover(direction):
        return way_of_mover(as_mover(direction))
    if callable(direction):
        return WAYS["gradient"]
    return WAYS[check_choice("direction", direction, WAYS)]


def settings_in(space: str, direction: Chosen) -> tuple[str, ...]:
    """The settings that a way has where it searches a space."""
    way = way_of(direction)
    check_choice("space", space, SPACES)
    if space not in way.settings:
        where = " and ".join(SPACES[known] for known in way.settings)
        raise InputError(f"direction={direction!r} is for methods that explore in {where}.")
    return way.settings[space]

"""The families that have a word: a row each. Needs no JAX.

A new family is its file, with its record and its closed forms, and a row here.
"""

from collections.abc import Callable
from typing import NamedTuple

from recoup.core.families.action_policy import Policy
from recoup.core.families.family import Family
from recoup.core.families.full import Full, full_gaussian
from recoup.core.families.gaussian import Diagonal, diagonal_gaussian
from recoup.core.families.lowrank import LowRank, low_rank_gaussian
from recoup.core.types import Rho


class Ours(NamedTuple):
    """A family of ours."""

    rho: Rho  # the record that holds the numbers of its distributions
    made: Callable[[], Family]
    starts_as: str | None = None  # the family whose distributions `start` makes, if not its own
    space: str = "parameters"  # that it explores; of parameters, its name is a word of `family`


def _of_trajectories() -> Family:
    from recoup.core.families.trajectory import gaussian_policy  # needs JAX

    return gaussian_policy()


FAMILIES = {
    "diagonal": Ours(Diagonal, diagonal_gaussian),
    "full": Ours(Full, full_gaussian, starts_as="diagonal"),
    "lowrank": Ours(LowRank, low_rank_gaussian, starts_as="diagonal"),
    "policy": Ours(Policy, _of_trajectories, space="actions"),
}
WORDS = tuple(name for name, ours in FAMILIES.items() if ours.space == "parameters")

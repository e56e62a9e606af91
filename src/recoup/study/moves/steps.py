"""What goes into a move and comes out of it, and what a judgement says: records. No JAX."""

from typing import NamedTuple

import numpy as np

from recoup.core.types import Plain
from recoup.core.worth import Worth
from recoup.engine.info import Info
from recoup.store.rows import Memory


class Before(NamedTuple):
    """A distribution before a move, and the update rule's memory."""

    numbers: np.ndarray  # [K] one block
    memory: Memory


class StudyMove(NamedTuple):
    """A move: where the distribution went, and what the move was made of."""

    numbers: np.ndarray  # [K] one block
    memory: Memory
    info: Plain
    own: np.ndarray  # [n] densities that the next move needs, empty for methods without
    mixture: np.ndarray  # [n] likewise


class Stepped(NamedTuple):
    """A move as it was computed."""

    numbers: np.ndarray  # [K] one block
    memory: Memory
    info: Info
    own: np.ndarray  # [n] densities that the next move needs, empty for methods without
    mixture: np.ndarray  # [n] likewise


class Judged(NamedTuple):
    """What results say about a distribution that need not have drawn any of them."""

    worth: Worth
    weights: np.ndarray  # [n] against the mixture of all proposals
    samples: int
    censored: int  # failed results that are left out
    draw: int  # results that are one draw: two where they are mirrored

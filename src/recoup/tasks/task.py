"""A task, ready to be rolled out."""

from collections.abc import Callable
from typing import NamedTuple

from recoup.core.types import Array, Rho, Samples


class Task(NamedTuple):
    """A task ready to be rolled out, N episodes a call.

    `rollouts(keys [N], theta [N, D]) -> returns [N]` of linear policies; `episodes(keys [N],
    policies) -> Trajectory` of Gaussian policies mu `[N, D]`, sigma `[N, A]`, with leading axes
    `[N]`. A failed episode has a return, or rewards, that are not a number.
    """

    name: str
    dim: int
    actions: int
    horizon: int
    discount: float
    rollouts: Callable[[Array, Array], Array]
    episodes: Callable[[Array, Rho], Samples]
    act: Callable[[Array, Array], Array]  # theta, observation -> action
    traced: bool  # whether JAX can trace the rollouts; others run on the host

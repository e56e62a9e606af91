"""A cart on a rail, to be pushed to a mark."""

from functools import partial
from math import inf
from typing import Any

from recoup.checks import check_between
from recoup.tasks.models import Model


def rail(mark: float = 1.0) -> Model:
    """The cart starts at zero and slides as far as it is pushed."""
    mark = check_between("mark", mark, -inf, inf)
    infinite = {"low": (-inf,), "high": (inf,)}
    return Model(initial, transition, partial(reward, mark), basis, features=2, **infinite)


def initial(xp: Any, noise: Any) -> Any:
    return 0 * noise


def transition(xp: Any, state: Any, action: Any, noise: Any) -> Any:
    return state + action


def reward(mark: float, xp: Any, state: Any, action: Any, after: Any) -> Any:
    return -((after[0] - mark) ** 2) - 0.1 * action[0] ** 2


def basis(xp: Any, state: Any) -> Any:
    return xp.concatenate([state, xp.ones_like(state)])

"""The shape of an episode, for methods that see inside it. Needs no JAX."""

from typing import NamedTuple

from recoup.checks import InputError, check_between, check_count
from recoup.engine.methods import Method


class Episode(NamedTuple):
    """The shape of an episode, for methods that see inside it."""

    actions: int
    horizon: int
    discount: float


def episode_of(
    row: Method, dim: int, horizon: int | None, actions: int | None, discount: float | None
) -> Episode | None:
    """The shape of an episode, checked; None for methods that see only returns."""
    given = {"horizon": horizon, "actions": actions, "discount": discount}
    if row.space == "parameters":
        for name, value in given.items():
            if value is not None:
                raise InputError(
                    f"{name} is for methods that explore in action space; {row.name} searches "
                    "parameters, and sees only returns."
                )
        return None
    if horizon is None:
        raise InputError(
            f"{row.name} explores in action space: give `horizon`, the steps of an episode."
        )
    count = check_count("actions", 1 if actions is None else actions)
    if dim % count:
        raise InputError(f"dim must be features times actions, got {dim} with {count} actions.")
    return Episode(
        actions=count,
        horizon=check_count("horizon", horizon),
        discount=check_between("discount", 1.0 if discount is None else discount, 0.0, 1.0),
    )

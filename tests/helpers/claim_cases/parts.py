"""What cases are made of."""

from collections.abc import Callable
from typing import NamedTuple

RUNS = 8
NONE = float("nan")  # where no claim should look
HAIR = 0.01  # how far beyond a threshold the true data lie, and short of it the false

Change = Callable[[dict], None]


class Case(NamedTuple):
    """How neutral data become such that a claim is just true, and from there just false."""

    true: Change
    false: tuple[Change, ...]  # one for each contrast, in order
    also: tuple[Change, ...] = ()  # other data where it is true


class FigureCases(NamedTuple):
    """The cases of one figure, by the id of the claim."""

    neutral: Callable[[], dict]
    cases: dict[str, Case]


def put(key, index, value):
    """Sets a part of an array: all runs, then `index`."""

    def change(data):
        where = index if isinstance(index, tuple) else (index,)
        data[key][(slice(None), *where)] = value

    return change


def put_all(key, value):
    """Sets a whole array."""

    def change(data):
        data[key][...] = value

    return change


def both(*changes):
    """One change after the other."""

    def change(data):
        for each in changes:
            each(data)

    return change


def level(keys, index, value=0.0):
    """Several arrays at one value, in some of their columns."""
    return both(*(put(key, index, value) for key in keys))


def level_all(keys, value=0.0):
    """Several whole arrays at one value."""
    return both(*(put_all(key, value) for key in keys))


def leads(best, others, index, keys="{}"):
    """`best` above all `others` in one column, and nowhere else."""
    behind = [keys.format(other) for other in others]
    return Case(
        both(level(behind, index), put(keys.format(best), index, HAIR)),
        tuple(put(keys.format(other), index, 2 * HAIR) for other in others),
    )


def moves(key, start, end, last=-1):
    """A curve that starts at one value and ends at another."""
    return both(put(key, 0, start), put(key, last, end))

"""What `tell` takes, checked before it is written: a return, several, a trajectory, a failure.

And such a result in words.
"""

from collections.abc import Sequence
from math import isfinite

import numpy as np

from recoup.checks import (
    LARGEST_INTEGER,
    InputError,
    check_text,
    check_whole_numbers,
    printable,
    shortly,
)
from recoup.core.types import Given
from recoup.store.layout import Layout
from recoup.store.rows import FAILED, OK, Told
from recoup.study.space.limits import Limits, check_told, known_numbers, numbers_given
from recoup.study.space.limits import in_words as beside_in_words

BEFORE = "before"  # in place of a trajectory: the one that an amendment took away


def told_of(
    value: Given = None,
    values: Sequence[float] | None = None,
    failed: str | None = None,
    trajectory: Given = None,
    also: Given = None,
    *,
    layout: Layout | None = None,
    discount: float = 1.0,
    noun: str = "return",
) -> Told:
    """A result: a return (or what `noun` calls it), several, a trajectory, or why there is none.

    With numbers beside it, if there are any.
    """
    numbers = known_numbers(numbers_given(also))
    told = _told(value, values, failed, trajectory, layout, discount, noun)
    return told._replace(also=numbers)


def told_within(limits: Limits, told: Told, also: Given) -> Told:
    """A result, once it has all numbers beside it that have limits, unless it has no return."""
    if told.status == OK:
        check_told(limits, numbers_given(also))
    return told


def _told(
    value: Given,
    values: Sequence[float] | None,
    failed: str | None,
    trajectory: Given,
    layout: Layout | None,
    discount: float,
    noun: str,
) -> Told:
    """The result without what is told beside it."""
    given = [x is not None for x in (value, values, failed, trajectory)]
    if sum(given) != 1:
        raise InputError(
            f"tell takes one of these: a {noun}, the {noun}s of several episodes, or why it failed."
        )
    if failed is not None:
        if not isinstance(failed, str) or not failed.strip():
            raise InputError(f"`failed` must say what happened, got {shortly(failed)}.")
        return Told(FAILED, note=check_text("`failed`", failed))
    in_actions = layout is not None and layout.horizon is not None
    if trajectory is not None:
        if layout is None or not in_actions:
            raise InputError("a trajectory is for methods that explore in action space.")
        return _trajectory_told(trajectory, layout, discount)
    if in_actions:
        raise InputError("this method explores in action space: tell a `trajectory=...`.")
    returns = np.array(
        [_number(x, noun) for x in _listed(values if values is not None else [value], noun)]
    )
    if not returns.size:
        raise InputError(f"`values` must hold at least one {noun}.")
    with np.errstate(over="ignore", invalid="ignore"):
        error = float(returns.std(ddof=1) / np.sqrt(returns.size)) if returns.size > 1 else None
        mean = _number(float(returns.mean()), noun)
    return Told(OK, mean + 0.0, error, returns.size)


def in_words(told: Told) -> str:
    """A result in a few words."""
    if told.status == FAILED:
        return f"failed ({printable(str(told.note))}){beside_in_words(told.also)}"
    error = "" if told.stderr is None else f" ± {told.stderr:.2g}"
    several = f" of {told.episodes} episodes" if (told.episodes or 1) > 1 else ""
    return f"{told.value:.6g}{error}{several}{beside_in_words(told.also)}"


def trial_number(value: Given, where: str) -> int:
    """The id of a trial, once it is a whole number that one of the study there can have."""
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool):
        raise InputError(f"the id of a trial must be a whole number, got {shortly(value)}.")
    if not 0 < value <= LARGEST_INTEGER:
        raise InputError(f"there is no trial {shortly(value)} in {where}.")
    return int(value)


def for_each(name: str, given: Given, n: int) -> Sequence[Given]:
    """What is told beside each of `n` results: nothing, or one thing each."""
    if given is None:
        return [None] * n
    if not isinstance(given, (list, tuple)) or len(given) != n:
        raise InputError(f"of several trials `{name}` is a list, with a mapping for each.")
    return given


def _listed(values: Given, noun: str) -> list[Given]:
    try:
        if isinstance(values, (str, bytes)):
            raise TypeError
        return list(values)
    except TypeError:
        raise InputError(f"`values` must be a list of {noun}s, got {shortly(values)}.") from None


def _number(value: Given, noun: str = "return") -> float:
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    real = isinstance(value, (int, float, np.integer, np.floating))
    if not real or isinstance(value, (bool, np.bool_)):
        raise InputError(f"a {noun} must be a number, got {shortly(value)}.")
    try:
        number = float(value)
    except OverflowError:
        raise InputError(
            f"a {noun} must be finite, got a whole number too large for a float (beyond 1.8e308)."
        ) from None
    if not isfinite(number):
        raise InputError(
            f"a {noun} must be finite, got {number}: report a failure as failed='what happened' "
            "(on the command line --failed)."
        )
    check_whole_numbers(f"a {noun}", [value])
    return number


def _trajectory_told(trajectory: Given, layout: Layout, discount: float) -> Told:
    """The return of a trajectory, and the steps that happened of it as rows `[t, F + A + 1]`."""
    features, actions, rewards, steps = _arrays(trajectory, layout)
    width = layout.dim // layout.actions
    for key, part, columns in (
        ("features", features, (width,)),
        ("actions", actions, (layout.actions,)),
        ("rewards", rewards, ()),
    ):
        if part.shape[1:] != columns or len(part) < steps:
            want = [f"T >= {steps}", *columns]
            raise InputError(
                f"{key} of a trajectory must have shape [{', '.join(map(str, want))}], got "
                f"{list(part.shape)}."
            )
        if not np.isfinite(part[:steps]).all():
            raise InputError(
                f"{key} of a trajectory must be finite: report a failure with failed='...'."
            )
    rows = np.column_stack([features[:steps], actions[:steps], rewards[:steps]])
    with np.errstate(over="ignore", invalid="ignore"):
        value = _number(float(np.sum(discount ** np.arange(steps) * rewards[:steps])))
    return Told(OK, value + 0.0, None, 1, None, rows)


def _arrays(trajectory: Given, layout: Layout) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """Features, actions and rewards of a trajectory, and how many steps of it happened."""
    fields = ("features", "actions", "rewards", "steps")
    parts = [
        trajectory.get(key) if isinstance(trajectory, dict) else getattr(trajectory, key, None)
        for key in fields
    ]
    for key, part in zip(fields[:3], parts[:3], strict=True):
        if part is None:
            raise InputError(f"a trajectory has {', '.join(fields)}; this one has no {key}.")
    try:
        features, actions, rewards = (np.asarray(part, float) for part in parts[:3])
        length = len(rewards)
        count = float(np.asarray(length if parts[3] is None else parts[3], float))
    except (OverflowError, TypeError, ValueError):
        raise InputError("a trajectory must be made of arrays of numbers.") from None
    assert layout.horizon is not None
    longest = min(layout.horizon, length)
    if count != count // 1 or not 1 <= count <= longest:
        raise InputError(f"steps of a trajectory must be a whole number in 1..{longest}.")
    return features, actions, rewards, int(count)

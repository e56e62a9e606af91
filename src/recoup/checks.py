"""What every door says to bad input: one sentence that names argument, want and got."""

import sys
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

import numpy as np


class InputError(ValueError):
    """Wrong use: what was given cannot be used, and nothing was changed."""


def is_traced(*arrays: Any) -> bool:
    """Whether any of `arrays` is being traced by JAX, so that its values cannot be looked at."""
    if "jax" not in sys.modules:  # which is slow to import
        return False
    import jax

    return any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(arrays))


def nearest(word: str, known: Iterable[str]) -> str:
    """` Did you mean ...?` where `word` is a near miss, an empty string where it is not."""
    match = get_close_matches(str(word).lower(), list(known), n=1, cutoff=0.6)
    return f" Did you mean {match[0]!r}?" if match else ""


def check_choice(what: str, value: str, known: Iterable[str]) -> str:
    """`value`, once it is one of the `known` names."""
    known = list(known)
    if value in known:
        return value
    hint = nearest(value, known) if isinstance(value, str) else ""
    raise InputError(f"{what} must be one of {', '.join(known)}; got {value!r}.{hint}")


def check_count(what: str, value: Any, least: int = 1) -> int:
    """`value` as an int, once it is a whole number of at least `least`."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or value < least:
        raise InputError(f"{what} must be a whole number of at least {least}, got {value!r}.")
    return int(value)


def check_between(
    what: str, value: Any, low: float, high: float, *, open_low: bool = False
) -> float:
    """`value` as a float, once it lies in [low, high], or in (low, high] under `open_low`."""
    number = _as_float(what, value)
    if low < number <= high or (number == low and not open_low):
        return number
    raise InputError(f"{what} must be {_interval(low, high, open_low)}, got {value!r}.")


def check_positive(what: str, value: Any) -> float:
    """`value` as a float, once it is positive and finite."""
    return check_between(what, value, 0.0, float(np.finfo(np.float64).max), open_low=True)


def check_flag(what: str, value: Any) -> bool:
    """`value`, once it is True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise InputError(f"{what} must be True or False, got {value!r}.")
    return bool(value)


def check_key(what: str, key: Any) -> None:
    """Raises unless `key` is a random key of JAX."""
    import jax

    if not isinstance(key, jax.Array):
        raise InputError(f"{what} must be a key from `jax.random.key`, got {key!r}.")


def check_numbers(what: str, array: Any) -> None:
    """Raises unless `array` is made of real numbers."""
    try:
        kind = (array if hasattr(array, "dtype") else np.asarray(array)).dtype.kind
    except (TypeError, ValueError, AttributeError):  # ragged, a key, or not an array at all
        kind = "O"
    if kind not in "fiu":
        raise InputError(f"{what} must be an array of real numbers, got {_shortly(array)}.")


def check_shape(what: str, array: Any, letters: str, shape: tuple[int, ...]) -> None:
    """Raises unless `array` holds numbers and has `shape`, written `letters` in the sentence."""
    check_numbers(what, array)
    if tuple(np.shape(array)) != shape:
        got = list(np.shape(array))
        raise InputError(f"{what} must have shape {letters} = {list(shape)}, got {got}.")


def check_finite(what: str, array: Any) -> None:
    """Raises unless every entry of `array` is finite; what is being traced passes."""
    if is_traced(array) or _all_finite(np.asarray(array)):
        return
    raise InputError(f"{what} must be finite, got {_first(array, ~np.isfinite(array))}.")


def check_stds(what: str, array: Any) -> None:
    """Raises unless every entry of `array` is finite and positive; what is being traced passes."""
    check_finite(what, array)
    if is_traced(array) or (np.asarray(array) > 0).all():
        return
    wrong = _first(array, ~(np.asarray(array) > 0))
    raise InputError(f"{what} must be positive standard deviations, got {wrong}.")


def check_vector(what: str, value: Any, dim: int, letter: str = "D") -> None:
    """Raises unless `value` is a number or an array `[dim]`, written `letter` in the sentence."""
    check_numbers(what, value)
    if np.shape(value) not in ((), (dim,)):
        got = list(np.shape(value))
        raise InputError(f"{what} must be a number or have shape [{letter}] = [{dim}], got {got}.")


def _first(array: Any, wrong: Any) -> str:
    """The first entry that is `wrong`, and where."""
    place = np.argwhere(wrong)[0].tolist()
    value = np.asarray(array)[tuple(place)]
    return f"{value} at {place}" if place else f"{value}"


def _shortly(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else text[:57] + "..."


def _all_finite(array: np.ndarray) -> bool:
    """Whether all entries are finite, by passes that allocate nothing.

    One is enough where the sum is finite, which may overflow where no entry is too large.
    """
    if not array.size or array.dtype.kind != "f":
        return True
    with np.errstate(all="ignore"):
        if np.isfinite(array.sum()):
            return True
    return bool(np.isfinite(array.min()) and np.isfinite(array.max()))


def _as_float(what: str, value: Any) -> float:
    try:
        if isinstance(value, (str, bool)):
            raise TypeError
        return float(value)
    except (TypeError, ValueError):
        raise InputError(f"{what} must be a number, got {_shortly(value)}.") from None


def _interval(low: float, high: float, open_low: bool) -> str:
    if high >= np.finfo(np.float64).max:
        return f"above {low:g} and finite" if open_low else f"at least {low:g} and finite"
    return f"in {'(' if open_low else '['}{low:g}, {high:g}]"

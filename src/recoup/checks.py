"""What every door says to bad input: one sentence that names argument, want and got."""

import errno
import os
import sys
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

LARGEST_INTEGER = 2**63 - 1  # of a whole number: what files, NumPy and JAX can hold
QUOTED = 60  # characters, at most, of what a sentence quotes
INTEGER_DIGITS = 40  # likewise, of a whole number
AT_ONCE = 1_000_000  # trials or episodes, at most, that are asked for or rolled out together
SAMPLE_NUMBERS = 10_000_000  # of a sample, at most: more would not fit a row of a file
STEPS = 2**31 - 1  # of an episode, at most: they are counted in 32 bits
SQUARABLE = 1e100  # of thetas, means and deviations: beyond, their squares are no numbers
TEXT_LENGTH = 1_000_000  # characters of a text that somebody writes into a study


class InputError(ValueError):
    """Wrong use: what was given cannot be used, and nothing was changed.

    What to do: the sentence says what is wanted, and what came.

    >>> recoup.Study.open("new.db", dim=-1)
    Traceback (most recent call last):
    ...
    recoup.checks.InputError: ...
    """

    def __init__(self, sentence: str) -> None:
        """A sentence that a terminal may show, whatever it quotes."""
        super().__init__(printable(sentence))


def not_installed(what: str, extra: str) -> InputError:
    """What to say where a package is missing that an extra brings: how to install that extra."""
    return InputError(f"{what}: pip install 'recoup[{extra}]'.")


def printable(text: str) -> str:
    """A text on one line, as a terminal may show it: what it would obey is written out."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def shortly(value: object) -> str:
    """`value` as a sentence quotes it: on one line, and the beginning of what is long."""
    if isinstance(value, int) and abs(value) > 10**INTEGER_DIGITS:
        return f"a whole number of more than {INTEGER_DIGITS} digits"
    try:
        text = " ".join(repr(value[:QUOTED] if isinstance(value, (str, bytes)) else value).split())
    except Exception:  # an object of the user's whose repr fails, or holds such a number
        text = f"an object of the kind {type(value).__name__}"
    return text if len(text) <= QUOTED else text[: QUOTED - 3] + "..."


def as_typed(text: Any, kind: type[Any] = float) -> Any:
    """The number that a text says as people write it; what Python alone reads is a ValueError.

    Digits are 0 to 9: in 1_0, or in other scripts, a slip may be a number that nobody meant.
    """
    if isinstance(text, str) and ("_" in text or not text.strip().isascii()):
        raise ValueError(f"no number: {shortly(text)}")
    return kind(text)


def is_traced(*arrays: object) -> bool:
    """Whether any of `arrays` is being traced by JAX, so that its values cannot be looked at."""
    if "jax" not in sys.modules:  # which is slow to import
        return False
    import jax

    kinds = set(map(type, jax.tree.leaves(arrays)))  # a list may have a million numbers
    return any(issubclass(kind, jax.core.Tracer) for kind in kinds)


def nearest(word: str, known: Iterable[str]) -> str:
    """` Did you mean ...?` where `word` is a near miss, an empty string where it is not."""
    match = get_close_matches(str(word)[:QUOTED].lower(), list(known), n=1, cutoff=0.6)
    return f" Did you mean {match[0]!r}?" if match else ""


def check_larger_is_better(given: Mapping[str, Any]) -> None:
    """Raises where settings say which way is better, where only returns can be told."""
    word = given.get("direction")
    if isinstance(word, str) and word in ("minimize", "maximize"):
        raise InputError(
            f"direction={word!r} is for studies (`recoup.Study.open`): everywhere else larger is "
            "better, so leave it out and give returns; that of a cost is its negative."
        )


def check_choice(what: str, value: str, known: Iterable[str]) -> str:
    """`value`, once it is one of the `known` names."""
    known = list(known)
    if isinstance(value, str) and value in known:
        return value
    hint = nearest(value, known) if isinstance(value, str) else ""
    raise InputError(f"{what} must be one of {', '.join(known)}; got {shortly(value)}.{hint}")


def check_count(what: str, value: Any, least: int = 1, most: int = LARGEST_INTEGER) -> int:
    """`value` as an int, once it is a whole number of at least `least`, and at most `most`."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or value < least:
        wanted = f"a whole number of at least {least}"
        raise InputError(f"{what} must be {wanted}, got {shortly(value)}.")
    if value > most:
        raise InputError(f"{what} must be at most {most}, got {shortly(value)}.")
    return int(value)


def check_text(what: str, value: object) -> str:
    """`value`, once it is a text that a file can hold."""
    if not isinstance(value, str):
        raise InputError(f"{what} must be a text, got {shortly(value)}.")
    if len(value) > TEXT_LENGTH:
        raise InputError(f"{what} may have {TEXT_LENGTH:,} characters, got {len(value):,}.")
    strange = next((c for c in value if c == "\0" or "\ud800" <= c <= "\udfff"), None)
    if strange is not None:
        raise InputError(f"{what} holds {strange!r}, which no text in a file can: leave it out.")
    return value


def check_path(what: str, value: Any) -> Path:
    """`value` as a path, once it can be the name of a file."""
    named = isinstance(value, (str, Path)) or (
        isinstance(value, os.PathLike) and isinstance(os.fspath(value), str)
    )
    if not named or "\0" in os.fspath(value):
        raise InputError(f"{what} must be the name of a file, got {shortly(value)}.")
    try:
        os.stat(value)
    except OSError as wrong:  # that it is not there, others say
        if wrong.errno == errno.ELOOP:
            raise InputError(
                f"{value} leads back to itself: it is, or lies behind, a symbolic link in a loop; "
                "name another."
            ) from None
    return Path(value)


def check_between(
    what: str, value: object, low: float, high: float, *, open_low: bool = False
) -> float:
    """`value` as a float, once it lies in [low, high], or in (low, high] under `open_low`."""
    number = _as_float(what, value)
    if low < number <= high or (number == low and not open_low):
        return number
    raise InputError(f"{what} must be {_interval(low, high, open_low)}, got {shortly(value)}.")


def check_positive(what: str, value: object) -> float:
    """`value` as a float, once it is positive and finite."""
    return check_between(what, value, 0.0, float(np.finfo(np.float64).max), open_low=True)


def check_number(what: str, value: object) -> float:
    """`value` as a float, once it is a finite number."""
    number = _as_float(what, value)
    if not np.isfinite(number):
        raise InputError(f"{what} must be a finite number, got {shortly(value)}.")
    return number


def check_flag(what: str, value: object) -> bool:
    """`value`, once it is True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise InputError(f"{what} must be True or False, got {shortly(value)}.")
    return bool(value)


def check_mapping(what: str, value: object) -> Mapping[str, Any]:
    """`value`, once it is a mapping of names to whatever they stand for."""
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise InputError(f"{what} must be a mapping by name, got {shortly(value)}.")
    return value


def check_key(what: str, key: object) -> None:
    """Raises unless `key` is a random key of JAX."""
    import jax

    if not isinstance(key, jax.Array):
        raise InputError(f"{what} must be a key from `jax.random.key`, got {shortly(key)}.")


def check_numbers(what: str, array: Any) -> None:
    """Raises unless `array` is made of real numbers."""
    try:
        kind = (array if hasattr(array, "dtype") else np.asarray(array)).dtype.kind
    except (TypeError, ValueError, AttributeError):  # ragged, a key, or not an array at all
        kind = "O"
    if kind not in "fiu":
        raise InputError(f"{what} must be an array of real numbers, got {shortly(array)}.")
    if np.ma.is_masked(array):
        raise InputError(f"{what} has masked values: give NaN for what failed, or leave it out.")


def check_whole_numbers(what: str, values: Any) -> None:
    """Raises where a whole number would lose digits: beyond 2^53 floating point skips some."""
    listed = values if isinstance(values, (list, tuple)) else np.ravel(values).tolist()
    for value in listed:
        if isinstance(value, (int, np.integer)) and float(value) != int(value):
            raise InputError(
                f"{what} is the whole number {shortly(value)}, which loses digits where it is "
                f"kept: give {float(value)!r}, if that is near enough."
            )


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


def check_start(mean: Any = 0.0, std: object = 1.0) -> None:
    """Raises where latent means or deviations are such that no density could be told of draws."""
    far, spread = np.abs(np.asarray(mean, float)) >= SQUARABLE, np.asarray(std, float)
    wild = (spread >= SQUARABLE) | (spread < 1 / SQUARABLE)
    if far.any():
        raise InputError(f"mean must be below {SQUARABLE:.0e} in size, got {_first(mean, far)}.")
    if wild.any():
        raise InputError(
            f"std must be at least {1 / SQUARABLE:.0e} and below {SQUARABLE:.0e}, got "
            f"{_first(std, wild)}."
        )


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
    except OverflowError:  # a whole number of more than 308 digits
        return float("inf") if value > 0 else float("-inf")
    except (TypeError, ValueError):
        raise InputError(f"{what} must be a number, got {shortly(value)}.") from None


def _interval(low: float, high: float, open_low: bool) -> str:
    if high >= np.finfo(np.float64).max:
        return f"above {low:g} and finite" if open_low else f"at least {low:g} and finite"
    return f"in {'(' if open_low else '['}{low:g}, {high:g}]"


def without_nan(found: Any) -> Any:
    """What JSON can hold: null for what is not a number."""
    if isinstance(found, dict):
        return {key: without_nan(value) for key, value in found.items()}
    if isinstance(found, list):
        return [without_nan(value) for value in found]
    return None if isinstance(found, float) and not isfinite(found) else found

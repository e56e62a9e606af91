"""What commands share: numbers, vectors and settings as people type them."""

import re
from collections.abc import Iterable
from math import inf
from pathlib import Path
from typing import Annotated, Any

import typer

from recoup.checks import InputError, as_typed, nearest, shortly
from recoup.cli.app import option
from recoup.core.types import Plain
from recoup.engine.methods import METHODS, SETTINGS
from recoup.tasks.registry import TASKS, environments


def complete_method(incomplete: str) -> list[tuple[str, str]]:
    """Methods that begin so, with what they are, for a shell."""
    return [(n, row.summary) for n, row in METHODS.items() if n.startswith(incomplete)]


def complete_task(incomplete: str) -> list[tuple[str, str]]:
    """Tasks that begin so, likewise; ours, registered ones, and Gymnasium's once some is typed."""
    from recoup.tasks.own.found import registered

    rows: Plain = {**TASKS, **registered()}
    found = [(n, row.summary) for n, row in rows.items() if n.startswith(incomplete)]
    if not incomplete:
        return found
    return found + [(n, "Gymnasium") for n in environments() if n.startswith(incomplete)]


TaskOption = Annotated[
    str | None,
    option("--task", "The run's task again, where it is code: module:name.", metavar="TASK"),
]


WhichOption = Annotated[
    str,
    option(
        "--which",
        "last; best, the highest point of the curve, which flatters; or an iteration.",
        metavar="last|best|N",
    ),
]


def which_of(text: str) -> str | int:
    """Which policy of a run is meant: a word, or the number of an iteration."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else text


def complete_setting(incomplete: str) -> list[str]:
    """Settings of methods that begin so, ready for their value."""
    return [f"{key}=" for key in SETTINGS if key.startswith(incomplete)]


SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}  # of a unit of time


def whole(text: str) -> int:
    """A whole number."""
    try:
        return int(as_typed(text, int))
    except ValueError:
        raise typer.BadParameter(f"must be a whole number, got {shortly(text)}") from None


def number(text: str) -> float:
    """A number."""
    try:
        return float(as_typed(text))
    except ValueError:
        raise typer.BadParameter(f"must be a number, got {shortly(text)}") from None


def duration(option: str, text: str) -> float:
    """A time in seconds, written 90, 90s, 15m, 1h or 2d."""
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?|\.[0-9]+)([smhd]?)", text.strip())
    seconds = float(found[1]) * SECONDS[found[2]] if found else 0.0
    if not 0 < seconds < inf:
        raise InputError(f"{option} must be a time like 90s, 15m, 1h or 2d, got {text!r}.")
    return seconds


def whole_option(text: str) -> Any:
    """An option that takes a whole number."""
    return option(text, parser=whole, metavar="N")


def number_option(text: str) -> Any:
    """An option that takes a number."""
    return option(text, parser=number, metavar="X")


def pairs(option: str, texts: list[str]) -> Plain:
    """Settings written KEY=VALUE, each value as a person means it."""
    values: Plain = {}
    for pair in texts:
        key, equals, text = pair.partition("=")
        if not equals or not key:
            raise InputError(f"{option} takes KEY=VALUE, got {pair!r}.")
        values[key.strip().replace("-", "_")] = _value(key.strip(), text.strip())
    return values


def check_once(option: str, name: str, before: Iterable[str]) -> None:
    """Raises where a name is given again, to which only one value can belong."""
    if name in before:
        raise InputError(f"{option} {name} is given twice: give one value of it.")


def names_given(option: str, how: str, texts: list[str] | None) -> dict[str, str]:
    """Texts by name, written NAME=TEXT."""
    found: dict[str, str] = {}
    for text in texts or []:
        name, equals, other = (part.strip() for part in text.partition("="))
        if not (name and equals and other):
            raise InputError(f"{option} takes {how}, got {text!r}.")
        check_once(option, name, found)
        found[name] = other
    return found


def method_settings(texts: list[str] | None) -> Plain:
    """Settings of a method, written KEY=VALUE after --set."""
    found = pairs("--set", texts or [])
    for key in found:
        if key not in SETTINGS:
            raise InputError(
                f"--set takes settings of a method: {', '.join(SETTINGS)}; got {key!r}."
                f"{nearest(key, SETTINGS)}"
            )
    return found


def _value(key: str, text: str) -> Any:
    """A number, numbers separated by commas, true, false or a word; `none` leaves one unset."""
    if text.lower() in ("none", "null") and key in ("window", "flatten", "truncate", "target"):
        return None
    if "," in text:
        return [_value(key, part.strip()) for part in text.split(",")]
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for number in (int, float):
        try:
            return as_typed(text, number)
        except ValueError:
            continue
    return text


class Typed(float):
    """A number as it was typed: of a choice it is a word, though it may look like a number."""

    def __new__(cls, text: str) -> "Typed":
        """The number that a text says."""
        found = super().__new__(cls, as_typed(text))
        found.text = text.strip()
        return found

    text: str


def typed_value(text: str) -> float | str:
    """The value of a parameter: a number, or the word of a choice."""
    try:
        return Typed(text)
    except ValueError:
        return text.strip()


def vector_or_named(option: str, text: str) -> Any:
    """Values in order, or some of a study's parameters by name: kp=300,gripper=soft."""
    values = [typed_value(part) for part in text.split(",")]
    if "=" not in text:
        return values[0] if len(values) == 1 else values
    found: dict[str, float | str] = {}
    for part in text.split(","):
        name, equals, value = (piece.strip() for piece in part.rpartition("="))
        if not (name and equals and value):
            raise InputError(f"{option} takes values in order, or NAME=VALUE,..., got {text!r}.")
        check_once(option, name, found)
        found[name] = typed_value(value)
    return found


def typed_return(text: str) -> float:
    """A return; a whole number stays one, for `tell` to see whether it can be kept."""
    return typed_number("a return", text)


def typed_number(what: str, text: str) -> float:
    """A number; a whole one stays one, for `tell` to see whether it can be kept."""
    for kind in (int, float):
        try:
            return as_typed(text, kind)
        except ValueError:
            continue
    raise InputError(f"{what} must be a number, got {shortly(text)}.")


def typed_numbers(option: str, texts: list[str] | None) -> dict[str, float] | None:
    """Numbers of a trial, written NAME=NUMBER each; None where there are none."""
    found: dict[str, float] = {}
    for text in texts or []:
        ((name, number),) = names_given(option, "NAME=NUMBER", [text]).items()
        if name in found:
            raise InputError(
                f"{option} {name} is given twice: it is one number for the whole trial."
            )
        found[name] = typed_number(f"{option} {name}", number)
    return found or None


def typed_result(
    value: list[str] | None,
    failed: str | None,
    trajectory: str | Path | None,
    also: list[str] | None = None,
    context: list[str] | None = None,
) -> Plain:
    """What was typed of a trial, as `tell` and `amend` take it."""
    returns = [typed_return(text) for text in value or []]
    episode = None
    if trajectory is not None:
        from recoup.study.exchange.read import arrays_of

        episode = arrays_of(Path(trajectory))
    several = len(returns) > 1
    return {
        "value": returns[0] if len(returns) == 1 else None,
        "values": returns if several else None,
        "failed": failed,
        "trajectory": episode,
        "also": typed_numbers("--also", also),
        "context": typed_numbers("--context", context),
    }


def vector(option: str, text: str) -> float | list[float]:
    """A number, or several separated by commas."""
    try:
        numbers = [as_typed(part) for part in text.split(",")]
    except ValueError:
        raise InputError(
            f"{option} must be a number, or numbers separated by commas, got {text!r}."
        ) from None
    return numbers[0] if len(numbers) == 1 else numbers

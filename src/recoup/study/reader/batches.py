"""How many results make a move of a study: a fixed number, or one that grows."""

from collections.abc import Sequence
from dataclasses import replace

from recoup.checks import InputError, check_between, check_count
from recoup.core.types import Chosen, Plain, Settings
from recoup.engine.methods import Method, default_batch, known_method
from recoup.engine.ways import InBox
from recoup.store.rows import Move
from recoup.study.space.parameters import Parameter

LATER = "batch_later"  # of a batch that grows: from how many results and which noise on, to what
OF_CHOICES = 10  # results of a move, at least, where some parameter is one of several choices


def in_box(method: Chosen, parameters: list[Parameter]) -> InBox | None:
    """What a method of ours does otherwise where every parameter lies between bounds, if it does.

    A row of a user's says everything itself.
    """
    bounded = bool(parameters) and all(p.low is not None for p in parameters)
    return known_method(method).way.box if bounded and isinstance(method, str) else None


def reaching_bounds(method: Chosen, parameters: list[Parameter]) -> list[Parameter]:
    """The parameters, searched beyond their bounds where the method does so.

    Unless one says how far itself; whole numbers reach their bounds anyway.
    """
    box = in_box(method, parameters)
    if box is None:
        return parameters
    return [replace(p, beyond=box.beyond) if may_reach(p) else p for p in parameters]


def as_far(parameters: list[Parameter], rows: Sequence[Plain]) -> list[Parameter]:
    """The parameters, searched as far beyond their bounds as a file's `rows`, where unsaid."""
    made = {row["name"]: row.get("beyond") for row in rows}
    return [
        replace(p, beyond=made.get(p.name)) if may_reach(p) and p.low is not None else p
        for p in parameters
    ]


def may_reach(p: Parameter) -> bool:
    """Whether a parameter can be searched beyond its bounds, and says nothing of how far."""
    return p.beyond is None and p.scale != "int"


def usual_batch(
    row: Method, dim: int, parameters: list[Parameter], box: InBox | None
) -> tuple[int, Plain | None]:
    """How many results make a move, unless said, and how many later where that grows.

    With choices not fewer than `OF_CHOICES`: after four the search turns to one of them too soon.
    """
    if box is not None:
        batch = box.batch(dim)
        return batch, {"results": box.grows, "noise": box.noise, "batch": box.times * batch}
    found = default_batch(row, dim) or 10
    return max(found, OF_CHOICES) if any(p.choices for p in parameters) else found, None


def check_not_given(settings: Settings) -> None:
    """Raises where a user gives what only the default batch has."""
    if LATER in settings:
        raise InputError(f"{LATER} is no setting: leave `batch` out, and it grows by itself.")


def check_later(settings: Settings) -> None:
    """Raises unless settings from a file say of a batch that grows how it does."""
    if LATER in settings:
        check_count(f"{LATER} results", settings[LATER]["results"])
        check_count(f"{LATER} batch", settings[LATER]["batch"])
        check_between(f"{LATER} noise", settings[LATER]["noise"], 0.0, 1.0)


def batch_after(settings: Settings, move: Move, results: int) -> int:
    """How many results a move waits for after one, once so many results were seen.

    Where returns have little noise, more of them at once say little more.
    """
    later, notes = settings.get(LATER), move.info.get("notes")
    if later is None or results < later["results"]:
        return int(settings["batch"])
    noisy = notes is None or notes["noise"] >= later["noise"]  # of a fork nothing is known yet
    return int((later if noisy else settings)["batch"])


def batch_in_words(settings: Settings) -> str:
    """How many results make a move, as people read it."""
    later = settings.get(LATER)
    then = f" ({later['batch']} after {later['results']} noisy results)" if later else ""
    return f"{settings['batch']}{then}"

"""Which of the types that a route gives a request asks for: `Accept`, as RFC 9110 has it."""

from collections.abc import Sequence
from http import HTTPStatus

from recoup.serve.problems import Problem

ANY = "*"


def accepted(said: Sequence[str], given: Sequence[str]) -> str:
    """The type of `given` that the headers want most; the first where nothing is said.

    Of two with the same q, the one that is named rather than meant by a `*`; then the earlier.
    """
    ranges = [found for text in ",".join(said).split(",") if (found := _range(text)) is not None]
    if not ranges:
        return given[0]
    best = max(given, key=lambda one: _wanted(one, ranges))
    if _wanted(best, ranges)[0] == 0:
        raise Problem(HTTPStatus.NOT_ACCEPTABLE, f"Accept must allow one of {', '.join(given)}.")
    return best


def _range(text: str) -> tuple[str, float] | None:
    """A range such as `text/*` with its q; None of what is none."""
    name, *rest = (part.strip().lower() for part in text.split(";"))
    name = f"{ANY}/{ANY}" if name == ANY else name  # as some libraries write it
    if name.count("/") != 1 or name.startswith("/") or name.endswith("/"):
        return None
    values = [part.partition("=")[2].strip() for part in rest if part.partition("=")[0] == "q"]
    try:
        q = float(values[0]) if values else 1.0
    except ValueError:
        return None
    return (name, q) if 0 <= q <= 1 else None


def _wanted(kind: str, ranges: Sequence[tuple[str, float]]) -> tuple[float, int, int]:
    """How much a type is wanted: its q by the closest range, how close that is, how early."""
    closest = (f"{ANY}/{ANY}", f"{kind.partition('/')[0]}/{ANY}", kind)
    fits = [
        (closest.index(name), -place, q)
        for place, (name, q) in enumerate(ranges)
        if name in closest
    ]
    if not fits:
        return 0.0, 0, 0
    near, place, q = max(fits)
    return q, near, place

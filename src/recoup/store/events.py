"""What events hold of results: those that were put right, and those that came after the first."""

from collections.abc import Iterable
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from recoup.store.codec import WRONG, as_kept
from recoup.store.rows import AMENDED, DROP, Event, Told


class Amendment(NamedTuple):
    """What an event says that was put right."""

    trial: int
    was: Told
    now: Told
    dropped: bool
    moves: dict[int, int]  # that were made again, with the proposals that they had made before
    at: float


def amendments(events: Iterable[Event]) -> list[Amendment]:
    """The amendments that events tell of, in order; those that make no sense are left out."""
    found = []
    for event in sorted(events, key=lambda event: event.id):
        if event.kind == AMENDED:
            with suppress(*WRONG):
                content = event.content
                was, now = (as_kept(told_in(content, key)) for key in ("was", "now"))
                was = was._replace(trajectory=_kept(content.get("trajectory")))
                moves = {int(number): int(old) for number, old in content["moves"].items()}
                drop = bool(content[DROP])
                found.append(Amendment(int(content["trial"]), was, now, drop, moves, event.at))
    return found


def told_in(content: dict[str, Any], which: str) -> Told:
    """What a result `was`, or is `now`, as the event of an amendment holds it."""
    return Told(*content[which][:5])._replace(also=content.get(f"{which}_also"))


def of_later(number: int, told: Told) -> dict[str, Any]:
    """What the event of a result holds that came after the first of its trial."""
    content: dict[str, Any] = {"trial": number, "told": list(told[:5])}
    if told.also:
        content["also"] = told.also
    if told.trajectory is not None:
        content["trajectory"] = told.trajectory.tolist()
    return content


def later_of(event: Event) -> Told:
    """The result that such an event holds."""
    status, value, stderr, episodes, note = event.content["told"]
    trajectory = _kept(event.content.get("trajectory"))
    return Told(status, value, stderr, episodes, note, trajectory, event.content.get("also"))


def _kept(trajectory: Any) -> np.ndarray | None:
    """A trajectory as an event keeps it."""
    return None if trajectory is None else np.array(trajectory, float)

"""What counts for nothing: results that were dropped, and the other of a mirrored pair.

Whoever reads results asks here: moves, curves, pictures, tables, `best`.
"""

from typing import Any

from recoup.store.places import together_in
from recoup.store.queries import Queries

AMENDED = "amended"  # the event of a result that was put right
DROP = "dropped"  # in that event: whether the result counts for nothing now
DROPPED = "dropped: "  # what the note of such a result begins with


def dropped(store: Queries) -> set[int]:
    """The trials whose results count for nothing, since they were dropped, or the other of a pair.

    An event says so, the last that amends a trial.
    """
    amended = {event.content["trial"]: event.content for event in store.events(AMENDED)}
    return {
        one
        for number, content in amended.items()
        if is_drop(content)
        for one in together(store, number)
    }


def is_drop(content: dict[str, Any]) -> bool:
    """Whether an event says that the result counts for nothing now; in older files, its note."""
    return bool(content.get(DROP, str(content["now"][4]).startswith(DROPPED)))


def together(store: Queries, number: int) -> list[int]:
    """The trials that are one draw with a trial: itself, or the two of a mirrored pair."""
    near = store.asked([number - 1, number, number + 1])
    return together_in({trial.id: trial for trial in near}, number)

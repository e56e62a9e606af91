"""What counts for nothing: results that were dropped, and the other of a mirrored pair.

Whoever reads results asks here: moves, curves, pictures, tables, `best`.
"""

from recoup.store.places import partner_of
from recoup.store.queries import Queries
from recoup.store.rows import DRAWN, MIRROR

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
        if content.get(DROP, str(content["now"][4]).startswith(DROPPED))  # else an older file
        for one in together(store, number)
    }


def together(store: Queries, number: int) -> list[int]:
    """The trials that are one draw with a trial: itself, or the two of a mirrored pair."""
    (trial,) = store.asked([number])
    partner = partner_of(number, trial.kind)
    other = store.asked([partner]) if trial.kind in (DRAWN, MIRROR) else []
    paired = trial.kind == MIRROR or bool(other and other[0].kind == MIRROR)
    return sorted([number, partner]) if paired else [number]

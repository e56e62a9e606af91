"""Trials that are lent for a time: those of a worker that died are handed out again.

A trial that was asked for without a lease has no row here. One that was told, and was handed out
once, has none any more: only of one that was handed out again can two results be expected.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from recoup.store.queries import WAITING
from recoup.store.records import as_kept, lease_of, of_lease
from recoup.store.rows import Asked, Event, Lease, Told, same
from recoup.store.store import OVER, Store

TOLD_LATER = "told_later"  # the event of a result that came after the first, which counts
OVERDUE = f"until <= ? AND {WAITING}"


def leases(store: Store, ids: Iterable[int] | None = None) -> dict[int, Lease]:
    """Leases by trial, of `ids` if said; a trial that was asked for without one is left out."""
    return {row.id: row for row in store._by_id("leases", lease_of, ids)}


def overdue(store: Store, now: float, n: int = -1) -> list[Asked]:
    """Trials without a result whose lease has run out, by number; at most `n` if said."""
    where = f"WHERE {OVERDUE} ORDER BY id LIMIT ?"
    rows = store._file.read("leases", lease_of, where, (float(now), int(n)))
    return store.asked(row.id for row in rows)


def lend(store: Store, ids: Iterable[int], until: float | None) -> None:
    """Writes that new trials are lent `until` then."""
    if until is not None:
        store._counters()
        store._file.insert("leases", [of_lease(Lease(number, until)) for number in ids])


def lend_again(store: Store, ids: Iterable[int], until: float | None) -> None:
    """Writes that trials with a lease are handed out once more; without `until` for the last time.

    The lease of before is replaced.
    """
    store._counters()
    rows = [row._replace(until=until, times=row.times + 1) for row in leases(store, ids).values()]
    if rows:
        store._file.insert("leases", map(of_lease, rows), OVER)


def end_leases(store: Store, ids: Iterable[int]) -> None:
    """Writes that trials are handed out no more; of those handed out again two results may come."""
    store._counters()
    for row in leases(store, ids).values():
        if row.times > 1:
            store._file.insert("leases", [of_lease(row._replace(until=None))], OVER)
        else:
            store._file.delete("leases", "WHERE id = ?", (row.id,))


def add_result(store: Store, number: int, told: Told, valued: bool = False) -> Event | None:
    """Writes what came of a trial as `Store.add_result` does, if it counts.

    Of a trial that was handed out again the first result counts. Another is kept as an event, once
    however often it is told; that event.
    """
    number = int(number)
    lease = leases(store, [number]).get(number)
    if lease is not None and lease.times > 1:
        before, told = store._told(number), as_kept(told)
        if before is not None and not same(before, told):
            return _kept(store, number, told)
    store.add_result(number, told, valued)
    if lease is not None and lease.times == 1:
        store._file.delete("leases", "WHERE id = ?", (number,))
    return None


def told_later(store: Store, number: int | None = None) -> list[Event]:
    """The results that came after the first, in order; of one trial if said."""
    found = store.events(TOLD_LATER)
    return [event for event in found if number is None or event.content["trial"] == number]


def later_of(event: Event) -> Told:
    """The result that such an event holds."""
    status, value, stderr, episodes, note = event.content["told"]
    rows = event.content.get("trajectory")
    trajectory = None if rows is None else np.array(rows, float)
    return Told(status, value, stderr, episodes, note, trajectory, event.content.get("also"))


def _kept(store: Store, number: int, told: Told) -> Event:
    """The event that holds such a result, written unless it is there."""
    for event in told_later(store, number):
        if same(told, later_of(event)):
            return event
    content: dict[str, Any] = {"trial": number, "told": list(told[:5])}
    if told.also:
        content["also"] = told.also
    if told.trajectory is not None:
        content["trajectory"] = told.trajectory.tolist()
    store.note(TOLD_LATER, content)
    return told_later(store, number)[-1]

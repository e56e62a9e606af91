"""Leases: a trial that a worker took and never told comes back, and its first result counts.

`ask(lease=3600)` lends trials for an hour. What has no result by then is handed out again by the
next `ask`, the same trial under the same number. Should the first worker come back after all, two
results of one trial are told: the first counts, the other is kept and is no part of any move.
"""

import time
from collections.abc import Sequence
from typing import NamedTuple

from recoup.checks import check_positive
from recoup.core.types import Plain
from recoup.store.errors import ToldBefore, twice
from recoup.store.events import amendments, later_of
from recoup.store.protocol import Storage
from recoup.store.rows import AMENDED, FAILED, TOLD_LATER, Asked, Event, Lease, Told
from recoup.study.reader.opened import Opened
from recoup.study.reader.records import Trial
from recoup.study.space.contexts import check_alike
from recoup.study.text.times import ago, span
from recoup.study.trials.results import in_words


class Waiting(NamedTuple):
    """A trial that waits for a result, and since when.

    >>> asked = study.ask(lease=3600)
    >>> [row] = study.waiting()
    >>> row.trial.id, row.handed_out
    (37, 1)
    """

    trial: Trial  # as `ask` gave it
    asked_at: float  # seconds since 1970
    lease_until: float | None  # None: it has no lease
    handed_out: int  # how often

    def plain(self) -> Plain:
        """The trial as JSON can hold it; what says nothing is left out.

        >>> asked = study.ask()
        >>> study.waiting()[0].plain()["id"]
        37
        """
        found = {**self.trial.plain(), "asked_at": self.asked_at}
        if self.lease_until is not None:
            found["lease_until"] = self.lease_until
        return found if self.handed_out == 1 else {**found, "handed_out": self.handed_out}

    @property
    def age(self) -> str:
        """Since when the trial waits, in words.

        >>> asked = study.ask()
        >>> study.waiting()[0].age
        '...'
        """
        return ago(now() - self.asked_at)

    @property
    def lease(self) -> str:
        """How long its lease still runs, in words.

        >>> asked = study.ask()
        >>> study.waiting()[0].lease
        'none'
        """
        if self.lease_until is None:
            return "none"
        left = self.lease_until - now()
        return f"ran out {ago(-left)}" if left <= 0 else f"{span(left)} left"


class ToldLater(NamedTuple):
    """A result that came after the first of its trial, which counts: kept, part of no move.

    >>> study.told_later()
    []
    """

    trial: int  # its number
    value: float | None  # None: it failed
    stderr: float | None  # of several episodes
    episodes: int | None  # of which it is the mean
    failed: str | None  # why, if it did
    told_at: float  # seconds since 1970
    words: str  # what that means
    counts: bool = False  # since it was put in place of the first


def now() -> float:
    """Seconds since 1970: the one clock that leases go by."""
    return time.time()


def check_lease(lease: object) -> float | None:
    """A lease in seconds, once it is a positive number."""
    return None if lease is None else check_positive("`ask(lease=...)`", lease)


def returned(store: Storage, n: int) -> list[Asked]:
    """At most `n` trials whose lease has run out without a result, the oldest first."""
    return store.overdue(now(), n)


def lend(store: Storage, trials: list[Asked], lease: float | None) -> None:
    """Lends trials for `lease` seconds from now: new ones, and those that are handed out again."""
    until = None if lease is None else now() + lease
    store.lend([trial.id for trial in trials], until)


def overdue(store: Storage) -> list[int]:
    """The trials whose lease has run out without a result."""
    return [trial.id for trial in store.overdue(now())]


def tell(opened: Opened, results: Sequence[tuple[int, Told]]) -> list[ToldLater]:
    """Writes results by trial; those that came after the first of a trial handed out again."""
    store, valued, kept = opened.store, opened.method.values_failures, []
    check_alike(store, (told for _, told in results))
    for row, (number, told) in enumerate(results):
        try:
            kept.append(store.add_result(number, told, valued))
        except ToldBefore as wrong:
            if any(number == other for other, _ in results[:row]):
                raise twice(wrong) from None
            raise
    return [_later(store, event) for event in kept if event is not None]


def told_later(store: Storage) -> list[ToldLater]:
    """All results that came after the first of their trial, in the order of telling."""
    with store.reading():
        return [_later(store, event) for event in store.events(TOLD_LATER)]


def waiting(opened: Opened) -> list[Waiting]:
    """The trials that wait for a result, with their ages and leases."""
    with opened.store.reading():
        trials, leases = opened.store.pending(), opened.store.leases()
        found = []
        for asked, trial in zip(trials, opened.trials(trials), strict=True):
            lease = leases.get(asked.id, Lease(asked.id, None))
            found.append(Waiting(trial, asked.asked_at, lease.until, lease.times))
        return found


def _later(store: Storage, event: Event) -> ToldLater:
    number, told = event.content["trial"], later_of(event)
    row = store.results([number]).get(number)
    now = None if row is None else row.told
    righted = [x for x in amendments(store.events(AMENDED)) if x.trial == number]
    first = righted[0].was if righted else now
    counts = bool(righted) and now is not None and now[:2] == told[:2]
    if counts:
        then = "counts, since it was put in place of the first"
    elif number in store.dropped():
        then = "does not count, nor does the first, which was dropped"
    elif righted and now is not None:
        then = f"does not count; the first was put right, to {in_words(now)}"
    else:
        then = "does not count (`amend` puts it in place of the first)"
    words = (
        f"Trial {number} was handed out again, and told "
        f"{'what is lost' if first is None else in_words(first)} first: {in_words(told)} is kept "
        f"as a further episode and {then}."
    )
    failed = told.note if told.status == FAILED else None
    said = (told.value, told.stderr, told.episodes, failed, event.at, words)
    return ToldLater(number, *said, counts)

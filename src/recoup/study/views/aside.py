"""Which returns the best trial is not taken from."""

from typing import NamedTuple

from recoup.core.types import Plain
from recoup.store.rows import OK, Result
from recoup.study.reader.opened import Opened


class Aside(NamedTuple):
    """Trials with a return that are none to have; each of them in one of the two, none dropped."""

    broken: frozenset[int]  # a limit
    outside: frozenset[int]  # of the bounds, which a fork has made narrower

    def found(self, study: Opened) -> Plain:
        """How many trials stand aside, as `diagnostics` says: where there can be any."""
        broken = {"broken": len(self.broken)} if study.limits.rows else {}
        return {**broken, "outside": len(self.outside)} if study.charts else broken


def aside(study: Opened) -> Aside:
    """The trials that are left aside; in `reading()`."""
    if not study.limits.rows and not study.charts:
        return Aside(frozenset(), frozenset())
    nothing = study.store.dropped()
    told = [
        row
        for row in study.store.results().values()
        if row.told.status == OK and row.id not in nothing
    ]
    outside = _outside(study, told)
    broken = frozenset(row.id for row in told if study.limits.broken(row.told.also))
    return Aside(broken - outside, outside)


def _outside(study: Opened, told: list[Result]) -> frozenset[int]:
    if not study.charts:
        return frozenset()
    trials = study.store.asked(row.id for row in told)
    return frozenset(trial.id for trial in trials if not study.here(trial)[1])

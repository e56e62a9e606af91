"""All results of a study as columns: read from the file once, and then what was added."""

from collections.abc import Sequence

import numpy as np

from recoup.store.errors import Damaged, damage
from recoup.store.rows import AskedColumns, ToldColumns
from recoup.study.reader.opened import Opened
from recoup.study.space.parameters import to_user


class TrialColumns:
    """All results as arrays, without an object for each, and of the trials that are shown the rest.

    Results are only added, but for those that are put right: an event says so, and they are read
    anew. They are looked through without their checksums: whatever is shown is read with them.
    """

    def __init__(self, opened: Opened) -> None:
        self.of = opened
        self.told = ToldColumns(*(np.zeros(0),) * 3)
        self.dropped = np.zeros(0, np.int64)  # trials whose results count for nothing
        self._amended = -1

    def refresh(self) -> None:
        """Reads what was added since; inside `reading()`."""
        store = self.of.store
        counters, amended = store.counters(), store.last_amended()
        if amended != self._amended:
            self.told, self._amended = ToldColumns(*(np.zeros(0),) * 3), amended
            self.dropped = np.array(sorted(store.dropped()), np.int64)
        self.told = self._told_now(counters.ok + counters.failed)

    def _told_now(self, number: int) -> ToldColumns:
        """All results, `number` of them: what is known with what was told since; or all anew.

        Clocks may be turned back: where one is missing then, all are read.
        """
        known = self.told
        if known.id.size == number:
            return known
        if not known.id.size:
            return self.of.store.told_columns()
        new = self.of.store.told_columns(float(known.told_at.max()))
        fresh = ~np.isin(new.id, known.id)
        both = [np.concatenate([a, b[fresh]]) for a, b in zip(known, new, strict=True)]
        if both[0].size != number:
            return self.of.store.told_columns()
        order = np.argsort(both[0], kind="stable")
        return ToldColumns(*(one[order] for one in both))

    def returns(self) -> tuple[np.ndarray, np.ndarray]:
        """Trials with a return `[n]` that counts, by number, and the returns `[n]`."""
        fits = np.isfinite(self.told.value) & ~np.isin(self.told.id, self.dropped)
        return self.told.id[fits].astype(np.int64), self.told.value[fits]

    def failed(self) -> np.ndarray:
        """Trials that failed `[n]`, but for those that were dropped."""
        fits = np.isnan(self.told.value) & ~np.isin(self.told.id, self.dropped)
        return self.told.id[fits].astype(np.int64)

    def shown(self, ids: np.ndarray) -> tuple[AskedColumns, np.ndarray]:
        """Trials of `ids` in their order, and their returns `[n]`, read with their checksums."""
        store, listed = self.of.store, ids.tolist()
        asked, told = store.asked_columns(listed), store.told_values(listed)
        if not asked.id.size == told.id.size == len(listed):
            raise Damaged(damage(store.where, "rows of trials are not there"))
        return asked, told.value

    def values(self, asked: AskedColumns, names: Sequence[str]) -> dict[str, np.ndarray]:
        """Values of parameters of trials in the user's units, by name; of choices their places."""
        opened, theta, drew = self.of, asked.theta, asked.proposal
        found = np.empty((len(drew), len(opened.labels)))
        if not opened.charts and len(drew):
            found[:] = opened.in_units(theta)
        for one in np.unique(drew) if opened.charts else ():
            mine = drew == one
            here = opened.parameters_of(None if one < 0 else int(one))
            found[mine] = to_user(here, theta[mine])
        return {name: found[:, list(opened.labels).index(name)] for name in names}


def thinned(x: np.ndarray, y: np.ndarray, most: int) -> np.ndarray:
    """Which of points `x [n]`, in order, with values `y [n]` are shown: `most`, about.

    Along x in pieces of as many points, of each the lowest and the highest, and the first and last
    of all: no extreme is lost.
    """
    n = len(x)
    if n <= most:
        return np.arange(n)
    pieces = np.linspace(0, n, max(most // 2, 1) + 1).astype(int)[:-1]
    place = np.repeat(np.arange(len(pieces)), np.diff([*pieces, n]))
    order = np.lexsort((y, place))  # within a piece from the lowest to the highest
    ends = np.append(pieces[1:], n) - 1
    return np.unique(np.concatenate([order[pieces], order[ends], [0, n - 1]]))

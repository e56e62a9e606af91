"""Reading rows from the bytes of a damaged study file, without SQLite.

The tree of a table is read as far as it is whole, in the pages as they were committed last: there,
what is not in it was taken out. Where it is not whole, a row is taken wherever it is found if its
checksum holds: in a page that no tree leads to any more, in an older copy of a page. Such a row may
be of before an amendment. Events say what was amended, so that it is put right, or left out.
"""

from bisect import bisect_left
from collections.abc import Callable, Container, Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np

from recoup.store.codec import Record, contents_of
from recoup.store.events import Amendment, amendments
from recoup.store.pages import LEAF, PageRow, Pages, cells, is_kind, places
from recoup.store.place import LOG, beside
from recoup.store.places import together_in
from recoup.store.rows import CANCELLED, CREATED, OK, OWN, Contents, Lease, Result
from recoup.store.schema import TABLES

EVERY = (-1, 2**63)  # ids lie in between
READ_TRIES = 20  # at a file that others write to

Tick = Callable[[int, int], None]
Rows = dict[str, dict[int, Record]]
Gap = tuple[int, int]  # ids between these two may be lost
Row = TypeVar("Row")


class SalvagedRecords(NamedTuple):
    """The records of all tables that can still be read, without their checksums."""

    rows: Rows
    strays: dict[str, set[int]]  # ids of those that the tree of their table does not lead to
    gaps: dict[str, list[Gap]]  # where there are none such, a table is whole
    unfinished: bool  # whether the log ends in what was not committed, or is damaged
    torn: bool  # whether a page in the middle of the log is lost, so that an older copy is left


class Salvaged(NamedTuple):
    """What is left of a study, and what is not certain of it."""

    rows: Contents
    counted: bool  # whether the counters are the last that were written
    events_lost: bool  # whether events may be missing, amendments among them
    unsure: list[int]  # trials whose results may be those of before an amendment that was lost
    unfinished: bool  # whether the log ends in what was not committed, or is damaged
    settings_lost: bool  # whether settings may be missing: others stand in their place
    unnumbered: list[int]  # trials whose numbers beside a return may be lost


def salvage(path: Path, tick: Tick = lambda done, of: None) -> Salvaged:
    """Every row that can still be read, by table and id; `tick` hears how much was read, of all."""
    found = salvaged_records(path, tick)
    if found.torn:  # any row may be an older one
        for table in ("told", "moves"):
            found.strays[table].update(found.rows[table])
    rows, strays = _up_to_date(contents_of(found.rows), found.strays), found.strays
    if found.gaps["own"] or found.gaps["mixture"]:  # made again with the next move
        rows = rows._replace(own={}, mixture={})
    rows = rows._replace(leases=_ended(rows))
    lost = found.torn or any(not _filled(gap, rows.events) for gap in found.gaps["events"])
    old = strays["told"] | strays["also"] | strays["trajectories"]
    unsure = sorted(old & rows.told.keys()) if lost else []
    return Salvaged(
        rows=rows,
        counted=not found.gaps["counters"],
        events_lost=lost,
        unsure=unsure,
        unfinished=found.unfinished,
        settings_lost=_settings_lost(found, rows),
        unnumbered=_unnumbered(found, rows),
    )


def _settings_lost(found: SalvagedRecords, rows: Contents) -> bool:
    """Whether settings may be missing: the event that a study begins with has them all, too."""
    if any(event.kind == CREATED for event in rows.events.values()):
        return False
    return any(not _filled(gap, found.rows["settings"]) for gap in found.gaps["settings"])


def _unnumbered(found: SalvagedRecords, rows: Contents) -> list[int]:
    """Trials whose numbers beside a return may be lost; none, where nothing says there were any."""
    gaps, told = found.gaps["also"], rows.told.items()
    return sorted(n for n, row in told if not row.told.also and _in_a_gap(n, gaps))


def _ended(rows: Contents) -> dict[int, Lease]:
    """The leases; that of a trial which was cancelled has ended."""
    ended = [e.content.get("trial") for e in rows.events.values() if e.kind == CANCELLED]
    return {n: row._replace(until=None) if n in ended else row for n, row in rows.leases.items()}


def salvaged_records(path: Path, tick: Tick = lambda done, of: None) -> SalvagedRecords:
    """The same as the tables hold them: those of the trees, and others where these have gaps."""
    pages = Pages(*_contents(path))
    of, roots = 2 * len(pages.images), pages.roots()
    trees = {table: _tree(pages, table, root) for table, root in roots.items()}
    rows = {table: trees[table][0] if table in trees else {} for table in TABLES}
    gaps = {table: sorted(trees[table][1]) if table in trees else [] for table in TABLES}
    strays: dict[str, set[int]] = {table: set() for table in TABLES}
    for table, values in _anywhere(pages, tick) if any(gaps.values()) else ():
        number = values[0]
        if number not in rows[table] and _in_a_gap(number, gaps[table]):
            rows[table][number] = values  # the newest comes first
            strays[table].add(number)
    tick(of, of)
    if not roots.get("also") and not rows["also"]:  # made with its first row, if there is one
        gaps["also"] = []
    return SalvagedRecords(rows, strays, gaps, pages.unfinished, pages.torn)


def _contents(path: Path) -> tuple[bytes, bytes]:
    """A file and its log, of one state.

    Read again where the log was begun anew meanwhile: what it held went to the file.
    """
    log = beside(path, LOG)
    for _ in range(READ_TRIES):
        before = _content(log)[:32]
        file, content = path.read_bytes(), _content(log)
        if content[:32] == before:
            break
    return file, content


def _content(log: Path) -> bytes:
    try:
        return log.read_bytes()
    except OSError:
        return b""


# -- trees, and what is found elsewhere --


def _tree(pages: Pages, table: str, root: int) -> tuple[dict[int, Record], list[Gap]]:
    """The rows of a table in the tree that begins at `root`, and where some may be lost."""
    rows: dict[int, Record] = {}
    gaps: list[Gap] = []
    seen: set[int] = set()
    waiting = [(root, *EVERY)]
    while waiting:
        number, after, last = waiting.pop()
        page = b"" if number in seen else pages.newest.get(number, b"")  # else a circle
        seen.add(number)
        below = pages.children(page, last)
        bounds = [after, *(child.last for child in below)]
        if below and all(one < other for one, other in pairwise(bounds)):
            waiting += [(one.page, low, one.last) for one, low in zip(below, bounds, strict=False)]
        else:
            gaps += _leaf(pages, table, page, after, last, rows)
    return rows, gaps


def _leaf(
    pages: Pages, table: str, page: bytes, after: int, last: int, rows: dict[int, Record]
) -> list[Gap]:
    """Where rows of a leaf may be lost, with ids after `after` up to `last`; the others to `rows`.

    Between the neighbours of one that cannot be read; all over, where it is not sure how many the
    leaf had.
    """
    offsets = cells(page, pages.size)
    gaps, before, lost = [], after, False
    for cell in (pages.row(page, offset) for offset in offsets):
        if cell is None or cell.table != table or not before < cell.values[0] <= last:
            lost = True
            continue
        rows[cell.values[0]] = cell.values
        gaps += [(before, cell.values[0])] if lost else []
        before, lost = cell.values[0], False
    gaps += [(before, last + 1)] if lost else []
    used = sum(pages.extent(page, offset) for offset in offsets)
    whole = is_kind(page, pages.size, LEAF) and pages.is_full(page, used)
    return gaps if whole else [(after, last + 1)]


def _anywhere(pages: Pages, tick: Tick) -> Iterator[PageRow]:
    """The rows in any page: of the newest copies first, then of older ones."""
    newest = list(pages.newest.values())
    images, of = pages.images, 2 * len(pages.images)
    done = 0
    for some in (newest, images[len(newest) :]):
        strange = []
        for page in some:
            done += 1
            tick(done, of)
            offsets = cells(page, pages.size)
            rows = [pages.row(page, offset) for offset in offsets]
            yield from filter(None, rows)
            used = sum(pages.extent(page, offset) for offset in offsets)
            if not rows or None in rows or not pages.is_full(page, used):
                strange.append(page)
        done += len(some) - len(strange)
        for page in strange:  # nothing says where its rows begin: look for them
            done += 1
            tick(done, of)
            if id(page) not in pages.overflowing:
                yield from filter(None, (pages.row(page, offset) for offset in places(page)))


def _in_a_gap(number: int, gaps: list[Gap]) -> bool:
    i = bisect_left(gaps, (number,)) - 1
    return i >= 0 and number < gaps[i][1]


def _filled(gap: Gap, rows: Container[int]) -> bool:
    """Whether all ids of a gap were found elsewhere; of one without an end nobody knows."""
    after, end = gap
    return end < EVERY[1] and all(number in rows for number in range(after + 1, end))


# -- what may be of before --


def _up_to_date(rows: Contents, strays: dict[str, set[int]]) -> Contents:
    """Rows without those among the `strays` that were replaced or taken out since, as far as known.

    What was amended is as its event says; a move that was made again, and what was tested after it,
    are lost. What waited in line and was asked since does not come back, nor the lease of what was
    told, nor the trajectory of what is a failure now, or that another took the place of.
    """
    amended = amendments(rows.events.values())
    replaced = {item for one in amended for item in one.moves.items()}
    again = {number for number, _ in replaced}
    told = _as_amended(rows, amended, strays["told"] | strays["also"])
    asked = {trial.theta.tobytes() for trial in rows.asked.values() if trial.kind == OWN}
    failed = {n for n, result in told.items() if result.told.status != OK}
    old = {n for n, move in rows.moves.items() if (n, move.proposal) in replaced}
    taken = {n for n, row in rows.queue.items() if row.theta.tobytes() in asked}
    over = {n for n, lease in rows.leases.items() if lease.times == 1 and n in told}
    gone = failed | {n for n, steps in rows.trajectories.items() if _is_taken(amended, n, steps)}
    return rows._replace(
        told=told,
        moves=_without(rows.moves, old & strays["moves"]),
        tests=_without(rows.tests, again & strays["tests"]),
        queue=_without(rows.queue, taken & strays["queue"]),
        leases=_without(rows.leases, over & strays["leases"]),
        trajectories=_without(rows.trajectories, gone & strays["trajectories"]),
    )


def _without(rows: dict[int, Row], ids: set[int]) -> dict[int, Row]:
    return {number: row for number, row in rows.items() if number not in ids}


def _is_taken(amended: list[Amendment], trial: int, steps: np.ndarray) -> bool:
    """Whether a trajectory is one that an amendment took away, and none has put back."""
    mine = [one for one in amended if one.trial == trial]
    return any(
        one.was.trajectory is not None
        and np.array_equal(one.was.trajectory, steps)
        and (one is mine[-1] or one.was.value != mine[-1].now.value)
        for one in mine
    )


def _as_amended(rows: Contents, amended: list[Amendment], strays: set[int]) -> dict[int, Result]:
    """All results; those of `strays` as the last event says that amended them."""
    told, old = dict(rows.told), strays & rows.told.keys()
    for one in amended:
        if one.trial in old and told[one.trial].told != one.now:
            told[one.trial] = told[one.trial]._replace(told=one.now, told_at=one.at)
        for other in old.intersection(together_in(rows.asked, one.trial) if one.dropped else ()):
            told[other] = told[other]._replace(counted=None)
    return told

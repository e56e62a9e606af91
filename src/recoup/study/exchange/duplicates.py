"""Whether samples from elsewhere are in a study already: the same rollouts, told anywhere.

Two studies of the same seed draw the same thetas, and a candidate may be tried twice: neither a
theta nor a return says which rollout it is. When its trial was asked for does, in every copy,
export, fork and import. Where that is not known (a table of one's own) the same return of the same
theta is the same rollout.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from recoup.checks import check_text
from recoup.core.types import Array, Given, Plain, Table
from recoup.store.protocol import Storage
from recoup.store.rows import AMENDED, SAMPLED
from recoup.study.exchange.tables import ASKED_AT, NOTES
from recoup.study.reader.opened import Opened

ASKED = "asked"  # in the event of an import or a fork: the trials that were asked for elsewhere
RANKS = range(5)  # from surely the same to what may be


class Rollout(NamedTuple):
    """What is known of a rollout, here or elsewhere."""

    theta: bytes  # latent
    value: float | None  # its return; None where it failed
    asked: float | None  # when its trial was asked for; None where nobody knows
    amended: bool  # so that its return may be another elsewhere
    trial: int = 0  # here
    counts: bool = True  # whether it was not dropped
    was: frozenset[float | None] = frozenset()  # its returns before it was amended here


class Duplicates(NamedTuple):
    """What a study has already of samples that come."""

    there: np.ndarray  # [n]
    alike: int  # of them, those asked for at another time: as good as the same
    anew: int  # other rollouts of thetas that the study has
    differ: tuple[int, ...]  # trials here whose result is another elsewhere
    dropped: tuple[int, ...]  # trials that count here, and were dropped elsewhere


def asked_when(store: Storage) -> set[int]:
    """The trials whose rollout was asked for when their row says, here or elsewhere."""
    own = {trial.id for trial in store.asked(kinds=SAMPLED)}
    return own.union(*(event.content.get(ASKED, ()) for event in store.events()))


def rollouts(
    theta: np.ndarray, returns: Given, asked: Array, amended: Array, counts: Array
) -> list[Rollout]:
    """Rollouts of latent thetas `[n, D]`, of arrays `[n]`; `asked` is not a number if unknown."""
    times = [None if np.isnan(at) else round(float(at), 5) for at in asked]
    columns = zip(_keys(theta), map(_earned, returns), times, amended, counts, strict=True)
    return [Rollout(key, value, at, bool(a), 0, bool(c)) for key, value, at, a, c in columns]


def already(study: Opened, coming: Sequence[Rollout]) -> Duplicates:
    """Which of the rollouts that come the study has, each of its own at most once."""
    held = _held(study)
    found, thetas = _matched(held, coming), {row.theta for row in held}
    pairs = [(coming[i], row) for i, row in found.items()]
    new = [one for i, one in enumerate(coming) if i not in found and one.counts]
    return Duplicates(
        there=np.array([i in found for i in range(len(coming))], bool),
        alike=sum(_is_timed(one, row) and one.asked != row.asked for one, row in pairs),
        anew=sum(one.theta in thetas for one in new),
        differ=tuple(row.trial for one, row in pairs if one.counts and _differs(one, row)),
        dropped=tuple(row.trial for one, row in pairs if row.counts and not one.counts),
    )


def are_as_told(study: Opened, coming: Sequence[Rollout]) -> bool:
    """Whether the study has the numbers of rollouts that come as they were told, not turned.

    So a fork that takes returns as costs: of rollouts that both have, its results are the negative
    of what comes, which was turned.
    """
    pairs = [(coming[i], row) for i, row in _matched(_held(study), coming).items()]
    same = [(a.value, b.value) for a, b in pairs if _is_timed(a, b) and a.asked == b.asked]
    both = [(a, b) for a, b in same if a and b is not None]
    return sum(a == -b for a, b in both) > sum(a == b for a, b in both)


def _held(study: Opened) -> list[Rollout]:
    """The rollouts that a study has."""
    store = study.store
    told = [(trial, result) for trial, result in store.trials() if result is not None]
    if not told:
        return []
    known, nothing = asked_when(store), store.dropped()
    was: dict[int, set[float | None]] = {}
    for content in (event.content for event in store.events(AMENDED)):
        was.setdefault(content["trial"], set()).add(_earned(content["was"][1]))
    found = rollouts(
        np.stack([trial.theta for trial, _ in told]),
        [result.told.value for _, result in told],
        [trial.asked_at if trial.id in known else np.nan for trial, _ in told],
        [trial.id in was for trial, _ in told],
        [trial.id not in nothing for trial, _ in told],
    )
    ids = [trial.id for trial, _ in told]
    return [
        row._replace(trial=number, was=frozenset(was.get(number, ())))
        for row, number in zip(found, ids, strict=True)
    ]


def _matched(held: Sequence[Rollout], coming: Sequence[Rollout]) -> dict[int, Rollout]:
    """The rollouts of a study that some of those that come are, by their number, surest first."""
    apart = _is_apart(held, coming)
    free: dict[bytes, list[Rollout]] = {}
    for row in held:
        free.setdefault(row.theta, []).append(row)
    found: dict[int, Rollout] = {}
    for rank in RANKS:
        for i, one in enumerate(coming):
            rows = free.get(one.theta, []) if i not in found else []
            near = [row for row in rows if _kinship(one, row, apart) == rank]
            for row in sorted(near, key=lambda row: row.amended)[:1]:
                found[i] = row
                rows.remove(row)
    return found


def _kinship(one: Rollout, row: Rollout, apart: bool) -> int | None:
    """How surely a rollout of the same theta is the same, 0 the most; None where it is another.

    One that was dropped has no return, as a failure has none: they are not alike.
    """
    timed, alike = _is_timed(one, row), (one.value, one.counts) == (row.value, row.counts)
    if timed and one.asked == row.asked:
        return 0 if alike else 1 if one.amended or row.amended else 2
    if alike and not (timed and apart):
        return 3
    return 4 if not timed and (one.amended or one.value in row.was) else None


def _is_timed(one: Rollout, row: Rollout) -> bool:
    return one.asked is not None and row.asked is not None


def _is_apart(held: Sequence[Rollout], coming: Sequence[Rollout]) -> bool:
    """Whether two studies drew the same thetas and were told other results: other rollouts.

    Where all of them are the same (a simulation of the same seed), they say nothing new.
    """
    asked = {(row.theta, row.asked) for row in held}
    values: dict[bytes, set[float | None]] = {}
    for row in (row for row in held if row.asked is not None and not row.amended):
        values.setdefault(row.theta, set()).add(row.value)
    return any(
        one.theta in values and one.value not in values[one.theta]
        for one in coming
        if one.asked is not None and not one.amended and (one.theta, one.asked) not in asked
    )


def _differs(one: Rollout, row: Rollout) -> bool:
    """Whether the study should know of another result: not where it was amended here alone."""
    return row.counts and one.value != row.value and (one.amended or not row.amended)


def _keys(theta: np.ndarray) -> list[bytes]:
    """Thetas `[n, D]` to ten digits: the last ones change with the user's units."""
    size = np.maximum(np.abs(theta), 1e-290)
    scale = 10.0 ** np.floor(np.log10(size))
    return [row.tobytes() for row in np.round(theta / scale, 9) * scale + 0.0]


def _earned(value: float | None) -> float | None:
    return float(f"{value:.9g}") if value is not None and np.isfinite(value) else None


def said_beside(table: Table, families: Sequence[str]) -> Plain:
    """What else an export says of its rows: when they were asked for, what was put right.

    Of how many episodes a return is the mean, with which error. And what was dropped: a proposal
    drew it, and nothing is said of that. Why they failed, and what was written down about them.
    What is no number, in a table that somebody has edited, is not known.
    """
    found: Plain = {}
    columns = {"asked": ASKED_AT, "stderr": "stderr", "episodes": "episodes"}
    for key, column in columns.items():
        if column in table:
            found[key] = np.array([_number(cell) for cell in table[column]], float)
    if AMENDED in table:
        found["amended"] = np.array([bool(cell) for cell in table[AMENDED]], bool)
    for key, column in {"why": "note", "notes": NOTES}.items():
        if column in table:
            texts = ["" if cell is None else str(cell) for cell in table[column]]
            found[key] = np.array([check_text(f"a {column} to import", x) for x in texts], object)
    if "proposal" in table and any(families):
        drew = (cell not in ("", None) for cell in table["proposal"])
        both = zip(drew, families, strict=True)
        found["dropped"] = np.array([drawn and not family for drawn, family in both], bool)
    return found


def _number(cell: Given) -> float:
    try:
        return float(cell)
    except (TypeError, ValueError):
        return np.nan

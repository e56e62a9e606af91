"""Whether a study is what it should be: its bytes, its rows, its counters, its moves."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from recoup.checks import InputError
from recoup.store.file import TABLES, checksum, understood, unpacked
from recoup.store.rows import DRAWN, FAILED, MIRROR, OK
from recoup.study.ledger import CHUNK
from recoup.study.recover import RECOVERED
from recoup.study.settings import RUN, update_of_python
from recoup.study.study import Study

CLOSE = 1e-6  # a move that differs by more does not follow from its results


class Finding(NamedTuple):
    """One thing that was looked at."""

    sound: bool
    words: str


def check(
    path: str | Path, tick: Callable[[int, int], None] = lambda done, of: None
) -> list[Finding]:
    """Everything that can be verified about the study in `path`; nothing is changed.

    The last step makes every move again from the results alone.
    """
    path = Path(path)
    if not path.exists():
        raise InputError(f"there is no study in {path}.")
    try:
        study = Study.open(path)
    except InputError as wrong:
        return [Finding(False, str(wrong))]
    found: list[Finding] = []
    steps = (_pages, _rows, _counters, _draws, partial(_moves, tick=tick))
    with study:
        for step in steps:
            try:
                with understood(path), study.file.reading():
                    found.append(step(study))
            except InputError as wrong:
                found.append(Finding(False, str(wrong)))
            if not found[-1].sound:
                break
    return found


def _pages(study: Study) -> Finding:
    """What SQLite says."""
    file = study.file
    ((answer,), *more) = file.rows("PRAGMA integrity_check")
    if answer == "ok":
        return Finding(True, "SQLite finds its pages in order.")
    first = str(answer).splitlines()[-1]
    return Finding(
        False,
        f"SQLite finds the file damaged ({first}{', and more' if more else ''}): `recoup study "
        f"check {file.path} --recover NEW` saves what can be read.",
    )


def _rows(study: Study) -> Finding:
    """Every row against its checksum."""
    file, rows, wrong = study.file, 0, []
    for table in TABLES:
        last = -1
        while True:
            some = file.rows(
                f"SELECT * FROM {table} WHERE id > ? ORDER BY id LIMIT {CHUNK}", (last,)
            )
            if not some:
                break
            rows, last = rows + len(some), some[-1][0]
            wrong += [f"{table} {r[0]}" for r in some if checksum(table, r[:-1]) != r[-1]]
    if wrong:
        several = f", and {len(wrong) - 1} more" if len(wrong) > 1 else ""
        return Finding(
            False,
            f"the row {wrong[0]}{several} of {file.path} is damaged: `recoup study check "
            f"{file.path} --recover NEW` saves the others.",
        )
    return Finding(True, f"All {rows:,} rows carry their checksums.")


def _counters(study: Study) -> Finding:
    """The counters against the rows."""
    counters, file = study.file.counters(), study.file
    ((trials,),) = file.rows("SELECT COUNT(*) FROM asked")
    statuses = dict(file.rows("SELECT status, COUNT(*) FROM told GROUP BY status"))
    ok, failed = statuses.get(OK, 0), statuses.get(FAILED, 0)
    missing = counters.ok + counters.failed - ok - failed
    if missing or trials != counters.trials:
        return Finding(
            False,
            f"{missing} results and {counters.trials - trials} trials of {file.path} are missing: "
            "its counters are higher than its rows.",
        )
    pending = trials - ok - failed
    return Finding(True, f"{trials:,} trials: {pending:,} pending, {ok:,} ok, {failed:,} failed.")


def _draws(study: Study) -> Finding:
    """Every drawn theta against the seed and the distribution that it came from."""
    if RUN in study.settings or study.method.space == "actions":
        return Finding(True, "Its draws are those of `recoup train`, and were not made again.")
    count, proposals = 0, {}
    for number, _, mean, std in study.file.read("proposals"):
        proposals[number] = (unpacked(mean), unpacked(std))
    rows = study.file.read("asked", "WHERE kind IN (?, ?)", (DRAWN, MIRROR))
    for number, kind, proposal, theta, *_ in rows:
        if not np.array_equal(study.theta(number, kind, *proposals[proposal]), unpacked(theta)):
            return Finding(False, f"theta of trial {number} is not the one that its seed draws.")
        count += 1
    return Finding(True, f"All {count:,} drawn thetas are those of the seed.")


def _is_whole(study: Study) -> bool:
    """Whether no row was lost in a recovery from a damaged file, if there was any."""
    events = study.file.read("events", "WHERE kind = ?", (RECOVERED,))
    return all(json.loads(content)["whole"] for _, _, content, _ in events)


def _moves(study: Study, tick: Callable[[int, int], None]) -> Finding:
    from recoup.study.replay import differences

    if update_of_python(study.settings) is not None:
        return Finding(True, "Its update rule was given in Python: no move was made again.")
    if not _is_whole(study):
        return Finding(True, "No move was made again: what it was recovered from was not whole.")
    found = differences(study, tick)
    if not found:
        return Finding(True, "It has not moved yet.")
    number, worst = max(found, key=lambda pair: pair[1])
    if worst > CLOSE:
        return Finding(
            False, f"move {number} does not follow from the results: it differs by {worst:.1e}."
        )
    hint = "" if RUN in study.settings else " (another machine or version?)"
    exactly = "to the last bit" if worst == 0 else f"to {worst:.0e}{hint}"
    moves = "The one move follows" if len(found) == 1 else f"All {len(found):,} moves follow"
    return Finding(True, f"{moves} from the results, {exactly}.")

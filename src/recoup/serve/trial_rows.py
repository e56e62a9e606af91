"""Trials as JSON has them, of a few numbers or page by page."""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from recoup.checks import without_nan
from recoup.core.types import Plain
from recoup.store.rows import CANCELLED, CONTEXT, FAILED, OK, PENDING, Asked, Event, Lease, Result
from recoup.study.exchange.tables import quoted
from recoup.study.study import Study
from recoup.study.trials.diary import WHY, joined_notes

PAGE, MOST_ROWS = 100, 1000  # trials of a page unless said, and at most
STATUSES = (PENDING, OK, FAILED, CANCELLED)
COLUMNS = (
    *("id", "kind", "status", "value", "stderr", "episodes", "failed", "seed", "asked_at"),
    *("told_at", "lease_until", "worker", "proposal", "note"),
)  # of a CSV, before the parameters and what was told beside


class Beside(NamedTuple):
    """What is kept of trials beside the trials themselves, by number."""

    results: dict[int, Result]
    leases: dict[int, Lease]
    workers: dict[int, str]
    notes: dict[int, str]
    cancelled: dict[int, Event]


def trials_of(study: Study, ids: Iterable[int]) -> list[Plain]:
    """Trials by number, those of `ids` that are there."""
    store, listed = study.store, list(ids)
    with store.reading():
        of = store.results(listed), store.leases(listed), store.workers(listed)
        beside = Beside(*of, joined_notes(store), store.cancelled())
        rows = store.asked(listed)
        named = values_of(study, rows)
        return [_plain(study, *row, beside) for row in zip(rows, named, strict=True)]


def values_of(study: Study, rows: Sequence[Asked]) -> list[Plain]:
    """The parameters of trials by name, in the user's units; all of them at once, if that is so."""
    return [study.opened.params(values) for values in study.opened.values(rows)]


def _plain(study: Study, asked: Asked, params: Plain, beside: Beside) -> Plain:
    """A trial, and what came of it: null where there is nothing."""
    number = asked.id
    result, lease = beside.results.get(number), beside.leases.get(number)
    cancelled, told = beside.cancelled.get(number), None if result is None else result.told
    also = (told.also if told else None) or {}
    context = {k.removeprefix(CONTEXT): v for k, v in also.items() if k.startswith(CONTEXT)}
    numbers = {k: v for k, v in also.items() if not k.startswith(CONTEXT)}
    waits = PENDING if cancelled is None else CANCELLED
    why = None if cancelled is None else cancelled.content.get(WHY)
    notes = filter(None, [why, beside.notes.get(number)])
    spread = study.opened.trials([asked])[0].std if study.method.space == "actions" else None
    return {
        "id": number,
        "kind": asked.kind,
        "status": waits if told is None else told.status,
        "params": params,
        "value": told and told.value,
        "stderr": told and told.stderr,
        "episodes": told and told.episodes,
        "failed": told and told.note,
        "also": numbers or None,
        "context": context or None,
        "seed": asked.seed,
        "asked_at": asked.asked_at,
        "told_at": result and result.told_at,
        "lease_until": lease and lease.until,
        "worker": beside.workers.get(number),
        "proposal": asked.proposal,
        "note": "; ".join(notes) or None,
        **({} if spread is None else {"std": spread.tolist()}),
    }


def page_of(study: Study, after: int, limit: int, status: str | None) -> list[Plain]:
    """The first trials after a number, of a status if said."""
    store = study.store
    with store.reading():
        cancelled = store.cancelled() if status in (PENDING, CANCELLED) else {}
        if status == CANCELLED:
            ids = [number for number in sorted(cancelled) if number > after][:limit]
        else:
            extra = len(cancelled) if status == PENDING else 0
            found = store.ids(after, limit + extra, status)
            ids = [number for number in found if number not in cancelled][:limit]
        return trials_of(study, ids)


def as_lines(rows: Sequence[Plain]) -> str:
    """Trials as NDJSON."""
    return "".join(json.dumps(without_nan(row), ensure_ascii=False) + "\n" for row in rows)


def as_csv(study: Study, rows: Sequence[Plain], head: bool) -> str:
    """Trials as CSV, in which no text is taken for a formula."""
    labels = study.opened.labels
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    if head:
        writer.writerow([*COLUMNS, *(quoted(f"param {name}") for name in labels), "also"])
    for row in rows:
        writer.writerow(_cells(row, labels))
    return text.getvalue()


def _cells(row: Plain, labels: Sequence[str]) -> Iterator[object]:
    yield from (quoted(row[key]) for key in COLUMNS)
    yield from (quoted(row["params"][name]) for name in labels)
    beside = {
        **(row["also"] or {}),
        **{f"{CONTEXT}{k}": v for k, v in (row["context"] or {}).items()},
    }
    yield json.dumps(beside) if beside else None

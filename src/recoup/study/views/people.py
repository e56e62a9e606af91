"""What somebody who comes back to a study wants to know: dates, failures, what is in line, notes.

`people` has it as JSON can hold it, and the rows below are what tables show of it.
"""

from collections import Counter
from collections.abc import Mapping

from recoup.core.types import Plain, Settings
from recoup.study.reader.opened import Opened
from recoup.study.space.frozen import in_words
from recoup.study.text.notebook import SHOWN, in_a_row
from recoup.study.text.times import ago, when
from recoup.study.trials.ask import in_line
from recoup.study.trials.diary import notes, title

REASONS = 3  # of failures, and thetas in line, that a row names


def people(study: Opened) -> Plain:
    """Title, units, dates, reasons of failures, what is in line, cancelled and written down."""
    store = study.store
    dates = store.dates()
    return {
        "title": title(store),
        "units": study.units,
        "return_unit": study.return_unit or None,
        "created_at": dates.created,
        "last_asked_at": dates.last_asked,
        "last_told_at": dates.last_told,
        "reasons": reasons(study),
        "enqueued": in_line(study),
        "cancelled": sorted(store.cancelled()),
        "remarks": [note._asdict() for note in notes(store)],
    }


def reasons(study: Opened) -> dict[str, int]:
    """How many results failed for each reason, the one that came last at the end.

    What was dropped did not fail.
    """
    nothing = study.store.dropped()
    said = [str(row.told.note) for row in study.store.failures() if row.id not in nothing]
    counted, in_order = Counter(said), dict.fromkeys(reversed(said))
    return {why: counted[why] for why in reversed(in_order)}


def people_rows(study: Opened, found: Settings, now: float) -> dict[str, str]:
    """The rows that a table about a study begins with: its title and its dates."""
    rows = {"title": found["title"]} if found["title"] else {}
    return {**rows, "created": dates_in_words(found, now)}


def dates_in_words(found: Settings, now: float) -> str:
    """When a study was made, and when it was told a result last."""
    said = when(found["created_at"], now)
    if found["last_told_at"] is None:
        return f"{said}; nothing was told yet"
    told = found["last_told_at"]
    return f"{said}; last told {when(told, now)} ({ago(now - told)})"


def further_rows(study: Opened, found: Settings) -> dict[str, str]:
    """The rows about what went wrong, what is in line, and what was written down, where any is."""
    rows = {
        "frozen": in_words(study.frozen),
        "failed": reasons_in_words(found["reasons"]),
        "in line": line_in_words(study, found["enqueued"]),
        "cancelled": _trials_in_words(found["cancelled"]),
        "notes": notes_in_words(found["remarks"]),
        study.goal.nouns: f"in {found['return_unit']}" if found["return_unit"] else "",
    }
    return {key: text for key, text in rows.items() if text}


def reasons_in_words(counted: Mapping[str, int]) -> str:
    """The last reasons of failures, each with how often; empty where nothing failed."""
    last = list(counted.items())[::-1]
    named = [f"{n} x {why}" if n > 1 else why for why, n in last[:REASONS]]
    left = sum(n for _, n in last[REASONS:])
    return "; ".join([*named, *([f"{left} for other reasons"] if left else [])])


def line_in_words(study: Opened, line: list[Plain]) -> str:
    """The thetas that the next `ask` hands out, the first of them with their values."""
    if not line:
        return ""
    named = []
    for row in line[:REASONS]:
        values = list(row["params"].values()) if "params" in row else row["theta"]
        note = f" ({row['note']})" if row["note"] else ""
        named.append(f"{in_a_row(study.names, values)}{note}")
    left = len(line) - len(named)
    return "; ".join([*named, *([f"{left} more"] if left else [])])


def notes_in_words(written: list[Plain]) -> str:
    """The last note, and how many there are."""
    if not written:
        return ""
    last = written[-1]
    on = "" if last["trial"] is None else f"trial {last['trial']}: "
    many = f"{len(written)}; the last: " if len(written) > 1 else ""
    return f"{many}{on}{last['text']}"


def _trials_in_words(numbers: list[int]) -> str:
    more = f" and {len(numbers) - SHOWN} more" if len(numbers) > SHOWN else ""
    word = "trials" if len(numbers) > 1 else "trial"
    return f"{word} {', '.join(map(str, numbers[:SHOWN]))}{more}" if numbers else ""

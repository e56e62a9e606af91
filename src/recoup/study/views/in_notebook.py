"""A study as a notebook shows it."""

from recoup.notebooks import facts, grid
from recoup.study.text.notebook import SHOWN, digits
from recoup.study.views.snapshot import Door, snapshot
from recoup.study.views.study_summary import Deployed, best_trial, in_a_line, summary_rows


def as_html(study: Door) -> str:
    """A study as a table: its state, what to deploy and what that is worth."""
    opened = study.opened
    try:
        with opened.store.reading():
            now = snapshot(study, compiling=False)
            state = summary_rows(opened, now.found, best_trial(now.best))
    except Exception:  # closed, or damaged: what shows an object must not fail
        return facts(in_a_line(opened), {})
    state["to deploy"], *rest = now.advice
    if now.recommendation is not None:
        state["a draw"] = rest[0]
    heads = ("parameter", "mean policy", "-1 std", "+1 std")
    rows = now.distribution[:SHOWN]
    cells = [(row.label, row.text, *_ends(row)) for row in rows]
    if len(opened.labels) > SHOWN:
        cells.append((f"... {len(opened.labels) - SHOWN} more", "", "", ""))
    return facts(now.path, state) + (grid(heads, cells) if cells else "")


def _ends(row: Deployed) -> tuple[str, str]:
    """One standard deviation below and above a parameter; or, of choices, their chances."""
    if row.low is None or row.high is None:
        return row.around, ""
    return digits(row.low), digits(row.high)

"""A study as a notebook shows it."""

from recoup.study.notebook import SHOWN, digits, facts, grid
from recoup.study.snapshot import Door, snapshot
from recoup.study.summary import best_trial, in_a_line, summary_rows


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
    cells = [
        (r.label, r.text, *("" if x is None else digits(x) for x in (r.low, r.high))) for r in rows
    ]
    if opened.dim > SHOWN:
        cells.append((f"... {opened.dim - SHOWN} more", "", "", ""))
    return facts(now.path, state) + grid(heads, cells)

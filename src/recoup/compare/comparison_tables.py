"""A comparison as rows of text, for the terminal, Markdown and pages."""

from collections.abc import Sequence
from math import floor, isfinite, log10
from typing import Any, NamedTuple

from recoup.core.types import Plain

DASH = "–"
LETTERS = {"search": "J", "policy": "m"}
ROUNDED_ERROR = 1e-9  # of a mean, below which it has no error
DECIMALS = 6  # beyond which numbers are written with a power of ten
TWO_DECIMALS = 0.1  # width of an interval up to which it needs no more than two decimals


class Table(NamedTuple):
    """Rows of text below heads, with what they mean."""

    title: str
    heads: list[str]
    rows: list[list[str]]


def shown(mean: float | None, stderr: float | None) -> str:
    """A mean and its standard error, with two digits of the error."""
    if mean is None:
        return DASH
    if stderr is None or not isfinite(stderr):
        return f"{mean:.4g}"
    if stderr <= ROUNDED_ERROR * abs(mean):
        return f"{mean:.6g} ± 0"
    (text, error), power = _written([mean, stderr], stderr)
    return f"({text} ± {error}){power}" if power else f"{text} ± {error}"


def _written(values: Sequence[float], size: float) -> tuple[list[str], str]:
    """Numbers with two digits of something of that size, and their power of ten, if it is small."""
    decimals = max(1 - floor(log10(size * 1.005)), 0)
    if decimals <= DECIMALS:
        return [f"{value:.{decimals}f}" for value in values], ""
    scale = floor(log10(max(size, *map(abs, values))))
    digits = decimals + scale
    return [f"{value / 10.0**scale:.{digits}f}" for value in values], f"e{scale}"


def _signed(cell: Plain) -> str:
    text = shown(cell["mean"], cell["stderr"])
    return f"+{text}" if cell["mean"] is not None and cell["mean"] > 0 else text


def _between(found: Plain) -> str:
    """A value and its interval, with at least two digits of its width."""
    value, *ends = found["value"], found["low"], found["high"]
    if value is None:
        return DASH
    known = [value, *(end for end in ends if end is not None)]
    width = max(known) - min(known)
    if width <= ROUNDED_ERROR * abs(value):
        texts, power = [f"{x:.6g}" for x in known], ""
    else:
        texts, power = _written(known, min(width, TWO_DECIMALS))
    low, high = (DASH if end is None else texts[known.index(end)] + power for end in ends)
    return f"{texts[0]}{power} [{low}, {high}]"


def reached(row: Plain, target: float | None, end: int) -> str:
    """Episodes to a target: `> end` where it was not reached, or not by all resamples.

    A dash where there is no target, or no return at the end to compare with it.
    """
    found = row["episodes_to_target"]
    if target is None or row["search"]["mean"][-1] is None:
        return DASH
    if found["value"] is None:
        return f"> {end}"
    low, high = (f"> {end}" if x is None else f"{x:.0f}" for x in (found["low"], found["high"]))
    return f"{found['value']:.0f} [{low}, {high}]"


def short_table(said: Plain, task: Plain) -> Table:
    """A task for the terminal: J at every checkpoint, m and the rest at the end.

    On bounded tasks it is the other way round: what is deployed comes first.
    """
    ends = said["checkpoints"]
    lead, other = _kinds(task)
    heads = [f"{LETTERS[lead]} @{at}" for at in ends] + [f"{LETTERS[other]} @{ends[-1]}"]
    heads = ["method", *heads, "area", "to target"]
    rows = []
    for row in task["methods"]:
        cells = [shown(*pair) for pair in _points(row[lead])]
        rows.append(
            [
                row["method"],
                *cells,
                shown(row[other]["mean"][-1], row[other]["stderr"][-1]),
                shown(row["area"]["mean"], row["area"]["stderr"]),
                reached(row, task["target"], ends[-1]).partition(" [")[0],
            ]
        )
    title = f"{task['task']}, {parameters(task['dim'])}, {runs_in_words(said['runs'])}"
    return Table(title, heads, rows)


def _kinds(task: Plain) -> tuple[str, str]:
    """What is looked at first on a task, and what second."""
    lead = task.get("lead", "search")
    return lead, "policy" if lead == "search" else "search"


def _points(curve: Plain) -> list[tuple[Any, Any]]:
    """Means and standard errors at the checkpoints, the start left out."""
    return list(zip(curve["mean"][1:], curve["stderr"][1:], strict=True))


def curve_table(said: Plain, task: Plain, kind: str) -> Table:
    """Mean returns of a task at every checkpoint, and the inter-quartile mean of the end."""
    letter = LETTERS[kind]
    heads = ["method", "batch", *(f"{letter} @{at}" for at in said["checkpoints"])]
    heads.append(f"inter-quartile mean @{said['checkpoints'][-1]}")
    rows = [
        [
            row["method"],
            str(row["batch"]),
            *(shown(*pair) for pair in _points(row[kind])),
            _between(row[kind]["iqm"][-1]),
        ]
        for row in task["methods"]
    ]
    return Table({"search": "Search distribution", "policy": "Mean policy"}[kind], heads, rows)


def difference_table(said: Plain, task: Plain, kind: str) -> Table:
    """Differences to the reference at every checkpoint, and how likely a run is the better one."""
    letter, end = LETTERS[kind], said["checkpoints"][-1]
    heads = ["method", *(f"{letter} @{at}" for at in said["checkpoints"])]
    heads += ["area"] if kind == _kinds(task)[0] else []
    heads.append(f"P(better) @{end}")
    rows = []
    for row in task["methods"]:
        if "against" not in row:
            continue
        found = row["against"]
        cells = [_signed(cell) for cell in found[kind]]
        cells += [_signed(found["area"])] if kind == _kinds(task)[0] else []
        rows.append([row["method"], *cells, _between(found[f"improvement_{kind}"])])
    name = {"search": "Search distribution", "policy": "Mean policy"}[kind]
    return Table(f"{name}, minus {said['against']}", heads, rows)


def target_table(said: Plain, task: Plain) -> Table:
    """Area, episodes to the target, and what a run takes."""
    end = said["checkpoints"][-1]
    target = DASH if task["target"] is None else f"{task['target']:.4g}"
    letter = LETTERS[_kinds(task)[0]]
    heads = ["method", "area", f"episodes to {letter} = {target}", "seconds a run"]
    rows = [
        [
            row["method"],
            shown(row["area"]["mean"], row["area"]["stderr"]),
            reached(row, task["target"], end),
            f"{row['seconds']:.2g}",
        ]
        for row in task["methods"]
    ]
    return Table("Area and target", heads, rows)


def overall_tables(said: Plain) -> list[Table]:
    """All tasks together, and both halves of the bounded ones."""
    if len(said["tasks"]) < 2:
        return []
    halves = said.get("halves", {}).items()
    named = [(f"The {name.partition('-')[2]} half", rows) for name, rows in halves]
    return [_overall(said, title, rows) for title, rows in [("All tasks", said["overall"]), *named]]


def _overall(said: Plain, title: str, overall: Sequence[Plain]) -> Table:
    heads = ["method", "tasks", "score, end", "score, area"]
    heads += [f"{letter}: + / = / - (corrected)" for letter in LETTERS.values()]
    rows = []
    for row in overall:
        cells = [row["method"], str(row["tasks"])]
        cells += [_between(row[k]) if k in row else DASH for k in ("score_end", "score_area")]
        cells += [_counts(row.get("verdicts"), kind) for kind in ("search", "policy")]
        rows.append(cells)
    return Table(f"{title}; +, =, - against {said['against']}", heads, rows)


def deployed(said: Plain) -> str:
    """What each method deploys on bounded tasks, in words; nothing where there are none."""
    if "deploys" not in said:
        return ""
    each = "; ".join(f"{method}: {words}" for method, words in said["deploys"].items())
    return f"What is deployed, and tested without noise as m: {each}."


def _counts(verdicts: Plain | None, kind: str) -> str:
    if verdicts is None:
        return DASH
    raw, corrected = verdicts[kind], verdicts[kind]["corrected"]
    unknown = f", {raw['unknown']} without a number" if raw["unknown"] else ""
    return f"{_three(raw)} ({_three(corrected)}){unknown}"


def _three(counts: Plain) -> str:
    return f"{counts['better']} / {counts['level']} / {counts['worse']}"


def markdown(said: Plain) -> str:
    """The whole comparison as Markdown."""
    versions = ", ".join(f"{name} {version}" for name, version in said["versions"].items())
    parts = [
        HEADING,
        f"{runs_in_words(said['runs']).capitalize()} of each method on each task, seed "
        f"{said['seed']}, {said['date']}; {versions}.",
        MEANING,
    ]
    parts += [deployed(said)] if deployed(said) else []
    overall = [_markdown(table) for table in overall_tables(said)]
    parts += [*overall, SCORES] if overall else []
    for task in said["tasks"]:
        parts.append(f"## {task['task']}\n\n{parameters(task['dim']).capitalize()}.")
        parts += task["notes"]
        parts += [_markdown(table) for table in tables_of(said, task)]
    return "\n\n".join(parts) + "\n"


HEADING = "# Comparison"
MEANING = (
    "J is the expected return of policies drawn from the search distribution, m that of its mean "
    "policy, after so many episodes; ± is one standard error over runs. Differences are paired: "
    "all methods share the starts, the noise and the tests of a run. Brackets are 95 % bootstrap "
    "intervals. Area is the mean of J over episodes between the first checkpoint and the last "
    "(trapezoid); on bounded tasks it is that of m, which is taken without noise there. P is the "
    "probability that a run is better than one of the reference, ties half."
)
SCORES = (
    "Score: 0 at the start, 1 at the best mean J of any method at the end of a task (m on bounded "
    "tasks); "
    "inter-quartile mean over all runs of all tasks. +, =, -: cells (task x checkpoint) in which "
    "the paired difference is above, within, below two standard errors; in parentheses the same "
    "once they are corrected for their number by Benjamini and Hochberg (paired t-tests, of the "
    "clear ones of a row at most 5 % false on average). Cells of one task share their runs: they "
    "are not independent, and their number says less than it seems to."
)


def _markdown(table: Table) -> str:
    heads, *rows = (
        [cell.replace("|", "\\|") for cell in line] for line in (table.heads, *table.rows)
    )
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *rows]
    return f"**{table.title}**\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines)


def tables_of(said: Plain, task: Plain) -> list[Table]:
    """All tables of a task."""
    kinds = _kinds(task)
    tables = [curve_table(said, task, kind) for kind in kinds]
    tables += [difference_table(said, task, kind) for kind in kinds if len(task["methods"]) > 1]
    return [*tables, target_table(said, task)]


def parameters(dim: int) -> str:
    """How many parameters there are, in words."""
    return f"{dim} parameter" if dim == 1 else f"{dim} parameters"


def runs_in_words(runs: int) -> str:
    """How many runs there are, in words."""
    return "one run" if runs == 1 else f"{runs} runs"

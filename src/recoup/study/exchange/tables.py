"""Tables out: a study's trials as CSV or Parquet. `recoup.study.exchange.read` reads them."""

import csv
import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import IO

from recoup.checks import InputError, not_installed
from recoup.core.types import Cell, Given, Module, Plain
from recoup.outputs import Kind, Over, written
from recoup.store.events import later_of, told_in
from recoup.store.rows import AMENDED, CANCELLED, PENDING, TOLD_LATER
from recoup.study.reader.opened import Opened
from recoup.study.space.frozen import FROZEN
from recoup.study.space.goals import MAXIMIZE
from recoup.study.space.parameters import RESERVED, range_text, spread_out
from recoup.study.trials.diary import joined_notes, notes_by_trial
from recoup.study.trials.results import in_words

FORMATS = ("csv", "parquet")
LATENT, BOUNDS, ALSO = "latent", "bounds", "also"  # prefixes of columns
FAMILY, RHO = "family", "rho"  # of what drew a trial: its family's name, and prefix of its numbers
VERSION = "task_version"
DIRECTION = "study_direction"  # where it is not larger that is better
PLAIN = RESERVED
TOLD = ("status", "return", "stderr", "episodes", "note", "told_at")  # columns of what came of it
ASKED_AT = "asked_at"
TIMES = (ASKED_AT, "told_at")
PARQUET = (".parquet", ".pq")
ENDINGS = {"csv": (".csv",), "parquet": PARQUET}
OLDER = "one that recoup has made of this study and nobody has changed"
NOTES = "notes"  # what was written down about a trial, beside why it failed
LATER = (
    "amended",
    TOLD_LATER,
    NOTES,
    VERSION,
    DIRECTION,
)  # columns that another table of the study may have or lack
FORMULA = re.compile(r"'*\s*[=+\-@＝＋－＠]|'*[\t\r\n]")  # how one may begin


def columns_of(study: Opened) -> list[str]:
    """The columns of an exported table: the trial, its theta, and the proposal that drew it."""
    theta = theta_columns(study)
    bare = bare_names(study)
    stds = bare if study.method.space == "parameters" else range(study.layout.stds)
    drawn = [*(f"mean_{name}" for name in bare), *(f"std_{name}" for name in stds)]
    last = [f"{ALSO}_{name}" for name in study.store.numbers()]
    last += ["amended"] if study.store.events(AMENDED) else []
    last += [TOLD_LATER] if study.store.events(TOLD_LATER) else []
    last += [NOTES] if notes_by_trial(study.store) else []
    last += [name for name, _ in _of_the_study(study)]
    beside = [FAMILY, *block_columns(study.block_size), *_latent_columns(study), *last]
    return _check_columns([*PLAIN, *TIMES, *theta, *drawn, *beside])


def _check_columns(columns: list[str]) -> list[str]:
    """The columns, once no two are called the same."""
    if len(set(columns)) < len(columns):
        twice = next(name for name in columns if columns.count(name) > 1)
        raise InputError(
            f"two columns would be called {twice!r}: fork the study with --rename {twice}=NEW."
        )
    return columns


def _of_the_study(study: Opened) -> list[tuple[str, Cell]]:
    """Columns that are the same in all rows, with what stands in them."""
    found = {VERSION: study.task_version}
    found[DIRECTION] = "" if study.goal is MAXIMIZE else study.goal.word
    stay = [(f"{FROZEN}_{row.name}", row.value) for row in study.frozen]
    return [*((name, text) for name, text in found.items() if text), *stay]


def _latent_columns(study: Opened) -> list[str]:
    """Of named parameters: latent values, and the bounds and scales that they and `std_` are of."""
    latent = [f"{LATENT}_{p.name}" for p in study.columns]
    return latent + [f"{BOUNDS}_{name}" for name in study.names]


def block_columns(size: int) -> list[str]:
    """Of a distribution's block of numbers, as the file holds it: all that its family knows."""
    return [f"{RHO}_{i}" for i in range(size)]


def theta_columns(study: Opened) -> list[str]:
    """The parameters' names, or theta_0, theta_1, ..."""
    return list(study.labels)


def export(study: Opened, path: Path, form: str | None = None, *, force: bool = False) -> int:
    """All trials as a table in `path`, whose ending fits `form`; how many there are."""
    if "family" in study.missing:  # what drew the trials cannot be read
        study.check_whole()
    endings = (*ENDINGS["csv"], *PARQUET) if form is None else ENDINGS[form]
    table = Kind(endings, lambda file: _is_table_of(study, file), ours=OLDER)
    with written(path, table, Over(force, study=study.store.path)) as unfinished:
        if path.suffix.lower() in PARQUET:
            return write_parquet(study, unfinished)
        with unfinished.open("w", newline="", encoding="utf-8", errors="backslashreplace") as file:
            return write_csv(study, file)


def _is_table_of(study: Opened, path: Path) -> bool:
    """Whether a file is an older table of this study: none of its rows is lost with it.

    There is no column of anybody's beside, and every row is a trial of the study, each once.
    """
    try:
        names, rows = _table_in(path)
    except (ValueError, csv.Error):  # what pyarrow raises is a ValueError
        return False
    columns = columns_of(study)
    if names[: len(PLAIN)] != list(PLAIN) or not {*names} <= {*columns, *LATER}:
        return False
    with study.store.reading():
        own = {str(row[0]): dict(zip(columns, row, strict=True)) for row in rows_of(study)}
        before = _before(study)
    for row in rows:
        number = str(row["id"])
        mine = own.pop(number, None)
        if mine is None or not _is_row_of(mine, before.get(number, []), row):
            return False
    return True


def _before(study: Opened) -> dict[str, list[Plain]]:
    """What a table said of results before they were put right, by trial."""
    found: dict[str, list[Plain]] = {}
    for content in (event.content for event in study.store.events(AMENDED)):
        was = told_in(content, "was")
        cells = dict(zip(TOLD, (*was[:5], content["told_at"]), strict=True))
        cells |= {f"{ALSO}_{name}": value for name, value in (was.also or {}).items()}
        found.setdefault(str(content["trial"]), []).append(cells)
    return found


def _is_row_of(mine: Plain, before: list[Plain], row: Plain) -> bool:
    """Whether a row of a table says what it said of a trial some time, and nothing beside.

    Its result is what it is now, what it was `before` it was put right, or none at all. Of one that
    was dropped since, the table no longer has what drew it.
    """
    told = [name for name in row if name in TOLD or name.startswith(f"{ALSO}_")]
    results = [mine, *before]
    if row["status"] in (PENDING, CANCELLED):
        results = [{"status": row["status"]}]
    if not any(all(_is_same(x.get(name), row[name]) for name in told) for x in results):
        return False
    longer = ("amended", TOLD_LATER, NOTES)
    rest = [name for name in row if name not in (*told, *longer)]
    grown = all(str(mine.get(x) or "").startswith(str(row.get(x) or "")) for x in longer)
    return grown and all(mine[x] is None or _is_same(mine[x], row[x]) for x in rest if x in mine)


def _is_same(value: Given, cell: Cell) -> bool:
    """Whether a cell of a table holds a value, as a text or as it is."""
    if value is None or cell is None or isinstance(value, str):
        return ("" if value is None else value) == ("" if cell is None else cell)
    try:
        return float(cell) == float(value)
    except ValueError:
        return False


def _table_in(path: Path) -> tuple[list[str], list[Plain]]:
    """The columns of a table that is there, and its rows by them."""
    if path.suffix.lower() in PARQUET:
        table = pyarrow_modules()[1].read_table(path)
        return list(table.column_names), table.to_pylist()
    with path.open(newline="", encoding="utf-8-sig") as file:
        names, *lines = ([unquoted(cell) for cell in line] for line in lines_of(file))
    return names, [dict(zip(names, line, strict=True)) for line in lines]


def lines_of(file: IO[str]) -> list[list[str]]:
    """The cells of a CSV file, of any length: a note may be long."""
    before = csv.field_size_limit(2**31 - 1)
    try:
        return list(csv.reader(file))
    finally:
        csv.field_size_limit(before)


def write_csv(study: Opened, file: IO[str]) -> int:
    """All trials as CSV, every number with all its digits; how many there are."""
    count = -1  # the first line names the columns
    # a carriage return is quoted only where lines end in one
    ended = SimpleNamespace(write=lambda line: file.write(line[:-2] + "\n"))
    writer = csv.writer(ended, lineterminator="\r\n")
    with study.store.reading():  # one state of the file, whatever others write
        heads: list[Cell] = [*columns_of(study)]
        for row in chain([heads], rows_of(study)):
            writer.writerow([quoted(cell) if isinstance(cell, str) else cell for cell in row])
            count += 1
    return count


def quoted(value: Given) -> Cell:
    """A text that a spreadsheet would take for a formula, after a quotation mark.

    One that begins with such marks gets another, so that `unquoted` gives back what it was.
    """
    return f"'{value}" if isinstance(value, str) and FORMULA.match(value) else value


def unquoted(text: str) -> str:
    """A text as it was before `quoted`."""
    return text[1:] if text.startswith("'") and FORMULA.match(text) else text


def text_columns(study: Opened) -> list[str]:
    """The columns that hold texts; the others hold numbers."""
    return [
        "kind",
        "status",
        "note",
        "amended",
        TOLD_LATER,
        NOTES,
        VERSION,
        DIRECTION,
        FAMILY,
        *(f"{BOUNDS}_{n}" for n in study.names),
        *(name for name, _ in study.choices),
        *(f"{FROZEN}_{row.name}" for row in study.frozen if isinstance(row.value, str)),
    ]


def write_parquet(study: Opened, path: Path) -> int:
    """All trials as a Parquet file; how many there are."""
    pyarrow, parquet = pyarrow_modules()
    with study.store.reading():
        names, rows = columns_of(study), list(rows_of(study))
    kinds = {
        **dict.fromkeys(text_columns(study), pyarrow.string()),
        **dict.fromkeys(("id", "episodes", "seed", "proposal"), pyarrow.int64()),
    }
    schema = pyarrow.schema([(name, kinds.get(name, pyarrow.float64())) for name in names])
    columns = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in names]
    parquet.write_table(pyarrow.table(columns, schema=schema), path)
    return len(rows)


def rows_of(study: Opened) -> Iterator[list[Cell]]:
    """The rows of an exported table, as `columns_of` names their cells."""
    drew: dict[int, list[Cell]] = {}
    without_weight = study.store.dropped()  # nor does a table say what drew it
    noted = joined_notes(study.store)
    beside = [found for found in (_amended(study), _told_later(study), noted) if found]
    cancelled, numbers = study.store.cancelled(), study.store.numbers()
    nothing = [None] * (study.dim + study.layout.stds + 1 + study.block_size)
    bounds: dict[int | None, list[Cell]] = {}
    at_the_end: list[Cell] = [text for _, text in _of_the_study(study)]
    for trial, result, theta in study.all_trials():
        number = trial.proposal
        if number is not None and number not in drew:
            drew[number] = _drew(study, number)
        if number not in bounds:
            bounds[number] = [range_text(p) for p in study.parameters_of(number)]
        told = (None,) * 5 if result is None else result.told[:5]
        waits = CANCELLED if trial.id in cancelled else PENDING
        status = waits if result is None else told[0]
        at = (trial.asked_at, None if result is None else result.told_at)
        values = study.params(theta).values()
        drawn = nothing if number is None or trial.id in without_weight else drew[number]
        also = {} if result is None or result.told.also is None else result.told.also
        last: list[Cell] = [also.get(name) for name in numbers]
        last += [found.get(trial.id) for found in beside]
        last += at_the_end
        plain = [trial.id, trial.kind, status, *told[1:], trial.seed, number, *at]
        latent = trial.theta.tolist() if study.names else []
        yield [*plain, *values, *drawn, *latent, *bounds[number], *last]


def _drew(study: Opened, number: int) -> list[Cell]:
    """What a table says of a proposal: means in the user's units, deviations, family, numbers."""
    numbers, of = study.store.proposal(number).numbers, study.parameters_of(number)
    mean, std = study.shown(numbers)
    shown = spread_out(of, mean) if of else mean
    return [*shown.tolist(), *std.tolist(), study.family, *numbers.tolist()]


def _amended(study: Opened) -> dict[int, str]:
    """What results were before they were put right, and why they were, by trial."""
    found: dict[int, str] = {}
    for event in study.store.events(AMENDED):
        was = in_words(told_in(event.content, "was"))
        why = f", {event.content['why']}" if event.content["why"] else ""
        before = found.get(event.content["trial"], "")
        found[event.content["trial"]] = f"{before}{'; ' if before else ''}was {was}{why}"
    return found


def _told_later(study: Opened) -> dict[int, str]:
    """What was told after the first result of a trial that was handed out again, by trial."""
    found: dict[int, list[str]] = {}
    for event in study.store.events(TOLD_LATER):
        found.setdefault(event.content["trial"], []).append(in_words(later_of(event)))
    return {number: "; ".join(words) for number, words in found.items()}


def bare_names(study: Opened) -> list[str]:
    """What columns about latent numbers are called after their prefix: names, or 0, 1, ..."""
    return [p.name for p in study.columns] or [str(i) for i in range(study.dim)]


def pyarrow_modules() -> tuple[Module, Module]:
    """pyarrow and its Parquet module, or a sentence where they are not installed."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise not_installed("Parquet needs pyarrow", "parquet") from None
    return pyarrow, parquet

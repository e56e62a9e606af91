"""Tables out: a study's trials as CSV or Parquet. `recoup.study.readings` reads them."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np

from recoup.checks import InputError, check_path
from recoup.store.amending import AMENDED
from recoup.store.leasing import TOLD_LATER, later_of, told_later
from recoup.store.place import put, unfinished_of
from recoup.store.rows import PENDING, Told
from recoup.study.amend import in_words
from recoup.study.opened import Opened
from recoup.study.parameters import RESERVED, range_text, spread_out
from recoup.study.trials import by_name

FORMATS = ("csv", "parquet")
LATENT, BOUNDS = "latent", "bounds"  # prefixes of columns
VERSION = "task_version"
PLAIN = RESERVED
TIMES = ("asked_at", "told_at")
PARQUET = (".parquet", ".pq")
WRITTEN = (".csv", *PARQUET)


def columns_of(study: Opened) -> list[str]:
    """The columns of an exported table: the trial, its theta, and the proposal that drew it."""
    theta = theta_columns(study)
    bare = bare_names(study)
    stds = bare if study.method.space == "parameters" else range(study.layout.stds)
    drawn = [*(f"mean_{name}" for name in bare), *(f"std_{name}" for name in stds)]
    last = ["amended"] if study.store.events(AMENDED) else []
    last += [TOLD_LATER] if told_later(study.store) else []
    last += [VERSION] if study.task_version else []
    beside = [*factor_columns(study), *_latent_columns(study), *last]
    return _check_columns([*PLAIN, *TIMES, *theta, *drawn, *beside])


def _check_columns(columns: list[str]) -> list[str]:
    """The columns, once no two are called the same."""
    if len(set(columns)) < len(columns):
        twice = next(name for name in columns if columns.count(name) > 1)
        raise InputError(
            f"two columns would be called {twice!r}: fork the study with --rename {twice}=NEW."
        )
    return columns


def _latent_columns(study: Opened) -> list[str]:
    """Of named parameters: latent values, and the bounds and scales that they and `std_` are of."""
    return [f"{what}_{name}" for what in (LATENT, BOUNDS) for name in study.names]


def factor_columns(study: Opened) -> list[str]:
    """Of the lower triangle of a full covariance's factor, row by row; none for other families."""
    if study.family != "full":
        return []
    names = bare_names(study)
    return [f"factor_{a}_{b}" for i, a in enumerate(names) for b in names[: i + 1]]


def theta_columns(study: Opened) -> list[str]:
    """The parameters' names, or theta_0, theta_1, ..."""
    return list(study.names) or _numbered(study.dim)


def export(study: Opened, path: Path, form: str | None = None) -> int:
    """All trials as a table in `path`, `form` or else by its ending; how many there are."""
    check_exportable(study, path)
    form = form or ("parquet" if path.suffix in PARQUET else "csv")
    unfinished = unfinished_of(path)  # a killed export leaves no half under the final name
    try:
        if form == "parquet":
            count = write_parquet(study, unfinished)
        else:
            with unfinished.open("w", newline="") as file:
                count = write_csv(study, file)
        put(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)
    return count


def check_exportable(study: Opened, path: Path) -> None:
    """Raises unless `path` can become a new file, and what drew the trials can be read."""
    if "family" in study.missing:
        study.check_whole()
    if path.suffix not in WRITTEN:
        raise InputError(f"{path} must end in {', '.join(WRITTEN[:-1])} or {WRITTEN[-1]}.")
    if check_path("the table", path).exists():
        raise InputError(f"{path} exists already: name another file.")
    if not path.parent.is_dir():
        raise InputError(f"{path.parent} does not exist: make it, or name another place.")


def write_csv(study: Opened, file: IO[str]) -> int:
    """All trials as CSV, every number with all its digits; how many there are."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(columns_of(study))
    count = 0
    for row in rows_of(study):
        writer.writerow("" if value is None else _no_formula(value) for value in row)
        count += 1
    return count


def _no_formula(value: Any) -> Any:
    """A text that a spreadsheet would take for a formula, behind a quotation mark."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@") else value


def text_columns(study: Opened) -> list[str]:
    """The columns that hold texts; the others hold numbers."""
    return [
        "kind",
        "status",
        "note",
        "amended",
        TOLD_LATER,
        VERSION,
        *(f"{BOUNDS}_{n}" for n in study.names),
    ]


def write_parquet(study: Opened, path: Path) -> int:
    """All trials as a Parquet file; how many there are."""
    pyarrow, parquet = pyarrow_modules()
    names, rows = columns_of(study), list(rows_of(study))
    kinds = {
        **dict.fromkeys(text_columns(study), pyarrow.string()),
        **dict.fromkeys(("id", "episodes", "seed", "proposal"), pyarrow.int64()),
    }
    schema = pyarrow.schema([(name, kinds.get(name, pyarrow.float64())) for name in names])
    columns = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in names]
    parquet.write_table(pyarrow.table(columns, schema=schema), path)
    return len(rows)


def rows_of(study: Opened) -> Iterator[list[Any]]:
    """The rows of an exported table, as `columns_of` names their cells."""
    drew: dict[int, list[float]] = {}
    beside = [found for found in (_amended(study), _told_later(study)) if found]
    width = study.dim + study.layout.stds + len(factor_columns(study))
    for trial, result in study.store.trials():
        number = trial.proposal
        if number is not None and number not in drew:
            numbers = study.store.proposal(number).numbers
            rho, of = study.rho(numbers), study.parameters_of(number)
            mean = np.asarray(rho.mean)
            both = [spread_out(of, mean) if of else mean, np.asarray(rho.std)]
            factor = numbers[study.dim :] if study.family == "full" else numbers[:0]
            drew[number] = np.concatenate([*both, factor]).tolist()
        told = (None,) * 5 if result is None else result.told[:5]
        status = PENDING if result is None else told[0]
        at = (trial.asked_at, None if result is None else result.told_at)
        values = list(by_name(theta_columns(study), study.values(trial), study.whole).values())
        drawn = [None] * width if number is None else drew[number]
        last = [found.get(trial.id) for found in beside]
        last += [study.task_version] if study.task_version else []
        plain = [trial.id, trial.kind, status, *told[1:], trial.seed, number, *at]
        latent = trial.theta.tolist() if study.names else []
        bounds = [range_text(p) for p in study.parameters_of(number)]
        yield [*plain, *values, *drawn, *latent, *bounds, *last]


def _amended(study: Opened) -> dict[int, str]:
    """What results were before they were put right, and why they were, by trial."""
    found: dict[int, str] = {}
    for event in study.store.events(AMENDED):
        was = in_words(Told(*event.content["was"]))
        why = f", {event.content['why']}" if event.content["why"] else ""
        before = found.get(event.content["trial"], "")
        found[event.content["trial"]] = f"{before}{'; ' if before else ''}was {was}{why}"
    return found


def _told_later(study: Opened) -> dict[int, str]:
    """What was told after the first result of a trial that was handed out again, by trial."""
    found: dict[int, list[str]] = {}
    for event in told_later(study.store):
        found.setdefault(event.content["trial"], []).append(in_words(later_of(event)))
    return {number: "; ".join(words) for number, words in found.items()}


def _numbered(n: int) -> list[str]:
    return [f"theta_{i}" for i in range(n)]


def bare_names(study: Opened) -> list[str]:
    """What columns about parameters are called behind their prefix: names, or 0, 1, ..."""
    return list(study.names) or [str(i) for i in range(study.dim)]


def pyarrow_modules() -> tuple[Any, Any]:
    """pyarrow and its Parquet module, or a sentence where they are not installed."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise InputError("Parquet needs pyarrow: pip install '.[parquet]', in a clone.") from None
    return pyarrow, parquet

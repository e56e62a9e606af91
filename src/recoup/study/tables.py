"""Tables in and out: a study's trials as CSV or Parquet, samples from CSV, Parquet or NumPy."""

import csv
import io
import struct
import zlib
from collections.abc import Iterator, Sequence
from math import prod
from pathlib import Path
from typing import IO, Any
from zipfile import BadZipFile, ZipFile, ZipInfo

import numpy as np

from recoup.checks import InputError, nearest
from recoup.store.amending import AMENDED
from recoup.store.leasing import TOLD_LATER, later_of, told_later
from recoup.store.place import put, unfinished_of
from recoup.store.rows import FAILED, OK, PENDING, Told
from recoup.study.amend import in_words
from recoup.study.opened import Opened
from recoup.study.parameters import RESERVED
from recoup.study.samples import Samples, samples_of, without_return

FORMATS = ("csv", "parquet")
PLAIN = RESERVED
TIMES = ("asked_at", "told_at")
PARQUET, NUMPY = (".parquet", ".pq"), (".npz",)
WRITTEN = (".csv", *PARQUET)
LARGEST_ARRAY = 1 << 32  # bytes
UNREADABLE = (
    *(AttributeError, EOFError, KeyError, IndexError, MemoryError, OSError, RuntimeError),
    *(SyntaxError, TypeError, ValueError, BadZipFile, struct.error, zlib.error),
)


def columns_of(study: Opened) -> list[str]:
    """The columns of an exported table: the trial, its theta, and the proposal that drew it."""
    theta = theta_columns(study)
    bare = _bare(study)
    stds = bare if study.method.space == "parameters" else range(study.layout.stds)
    drawn = [*(f"mean_{name}" for name in bare), *(f"std_{name}" for name in stds)]
    last = ["amended"] if study.store.events(AMENDED) else []
    last += [TOLD_LATER] if told_later(study.store) else []
    return [*PLAIN, *TIMES, *theta, *drawn, *_factor_columns(study), *last]


def _factor_columns(study: Opened) -> list[str]:
    """Of the lower triangle of a full covariance's factor, row by row; none for other families."""
    if study.family != "full":
        return []
    names = _bare(study)
    return [f"factor_{a}_{b}" for i, a in enumerate(names) for b in names[: i + 1]]


def theta_columns(study: Opened) -> list[str]:
    """The parameters' names, or theta_0, theta_1, ..."""
    return list(study.names) or _numbered(study.dim)


def export(study: Opened, path: Path) -> int:
    """All trials as a table in `path`, Parquet or CSV by its ending; how many there are."""
    check_exportable(study, path)
    unfinished = unfinished_of(path)  # a killed export leaves no half under the final name
    try:
        if path.suffix in PARQUET:
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
    if path.exists():
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


def write_parquet(study: Opened, path: Path) -> int:
    """All trials as a Parquet file; how many there are."""
    pyarrow, parquet = _pyarrow()
    names, rows = columns_of(study), list(rows_of(study))
    kinds = {
        **dict.fromkeys(("kind", "status", "note", "amended", TOLD_LATER), pyarrow.string()),
        **dict.fromkeys(("id", "episodes", "seed", "proposal"), pyarrow.int64()),
    }
    schema = pyarrow.schema([(name, kinds.get(name, pyarrow.float64())) for name in names])
    columns = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in names]
    parquet.write_table(pyarrow.table(columns, schema=schema), path)
    return len(rows)


def read_samples(study: Opened, path: Path) -> Samples:
    """Samples from a CSV, Parquet or NumPy file, or from another study, in the user's units.

    A table has a column for each parameter, `return`, and, where what drew the samples is known,
    `mean_` and `std_` columns like those of an export. NumPy files (.npz) have theta, returns and,
    if known, mean and std. Nothing in them is executed.
    """
    if not path.is_file():
        raise InputError(f"there is no file {path}.")
    if _is_sqlite(path):
        return _of_study(study, path)
    if path.suffix in NUMPY:
        return _of_numpy(path)
    table = _of_parquet(path) if path.suffix in PARQUET else _of_csv(path)
    return _of_table(study, path, table)


def rows_of(study: Opened) -> Iterator[list[Any]]:
    """The rows of an exported table, as `columns_of` names their cells."""
    drew: dict[int, list[float]] = {}
    beside = [found for found in (_amended(study), _told_later(study)) if found]
    width = study.dim + study.layout.stds + len(_factor_columns(study))
    for trial, result in study.store.trials():
        number = trial.proposal
        if number is not None and number not in drew:
            numbers = study.store.proposal(number).numbers
            rho = study.rho(numbers)
            both = [study.in_units(np.asarray(rho.mean)), np.asarray(rho.std)]
            factor = numbers[study.dim :] if study.family == "full" else numbers[:0]
            drew[number] = np.concatenate([*both, factor]).tolist()
        told = (None,) * 5 if result is None else result.told[:5]
        status = PENDING if result is None else told[0]
        at = (trial.asked_at, None if result is None else result.told_at)
        values = study.in_units(trial.theta).tolist()
        drawn = [None] * width if number is None else drew[number]
        last = [found.get(trial.id) for found in beside]
        plain = [trial.id, trial.kind, status, *told[1:], trial.seed, number, *at]
        yield [*plain, *values, *drawn, *last]


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


def _of_study(study: Opened, path: Path) -> Samples:
    other = Opened.open(path, study.parts)
    try:
        if other.dim != study.dim or _ranges(other) != _ranges(study):
            raise InputError(
                f"{path} has {_in_words(other)}, this study {_in_words(study)}: they do not match."
            )
        if other.family != study.family:
            raise InputError(
                f"{path} draws from the family {other.family}, this study from {study.family}: "
                "they do not match."
            )
        return samples_of(other)
    finally:
        other.store.close()


def _ranges(study: Opened) -> list[tuple[Any, ...]]:
    """Names, bounds and scales: what makes two latent spaces the same."""
    return [(p.name, p.low, p.high, p.scale) for p in study.parameters]


def _in_words(study: Opened) -> str:
    if not study.names:
        return f"{study.dim} parameters"
    ranges = (
        name if low is None else f"{name} ({low:g} to {high:g}, {scale})"
        for name, low, high, scale in _ranges(study)
    )
    return f"the parameters {', '.join(ranges)}"


def _is_sqlite(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(16) == b"SQLite format 3\0"


def arrays_of(path: Path) -> dict[str, np.ndarray]:
    """The arrays of a .npz file; nothing in it is executed.

    A file that is small on disk may say that it holds terabytes: sizes are looked at first.
    """
    try:
        with ZipFile(path) as packed:
            for member in packed.infolist():
                _check_array(packed, member)
        with path.open("rb") as file, np.load(file, allow_pickle=False) as content:
            return {key: content[key] for key in content.files}
    except InputError as wrong:
        raise InputError(f"{path}: {wrong}") from None
    except UNREADABLE as wrong:
        reason = str(wrong).partition("\n")[0]
        raise InputError(f"{path} cannot be read as NumPy arrays (.npz): {reason}.") from None


def _check_array(packed: ZipFile, member: ZipInfo) -> None:
    """Raises where an array is larger than it may be, or than its bytes."""
    if member.file_size > LARGEST_ARRAY:
        raise InputError(f"{member.filename} is larger than {LARGEST_ARRAY >> 30} GiB.")
    with packed.open(member) as file:
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0
        read = read if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(file)
        size = file.tell() + prod(shape) * dtype.itemsize
    if size > member.file_size:
        raise InputError(f"{member.filename} says to be larger than it is.")


def _of_numpy(path: Path) -> Samples:
    arrays = arrays_of(path)
    for key in ("theta", "returns"):
        if key not in arrays:
            raise InputError(f"{path} must hold theta and returns; it has {', '.join(arrays)}.")
    returns = arrays["returns"]
    failed = without_return(returns)
    return Samples(arrays["theta"], returns, arrays.get("mean"), arrays.get("std"), failed=failed)


def _of_csv(path: Path) -> dict[str, Sequence[Any]]:
    try:
        lines = io.StringIO(path.read_text(encoding="utf-8-sig"), newline="")
    except OSError as wrong:
        raise InputError(f"{path} cannot be read: {wrong.strerror}.") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is not a text file.") from None
    names, *rows = _cells(path, lines) or [[]]
    for line, row in enumerate(rows, 2):
        if len(row) != len(names):
            raise InputError(f"line {line} of {path} has {len(row)} cells, the first {len(names)}.")
    columns = zip(*rows, strict=True) if rows else ([] for _ in names)
    return dict(zip((name.strip() for name in names), columns, strict=True))


def _cells(path: Path, lines: IO[str]) -> list[list[str]]:
    """The cells of a CSV file, of any length: a note may be long."""
    before = csv.field_size_limit(2**31 - 1)
    try:
        return list(csv.reader(lines))
    except csv.Error as wrong:
        raise InputError(f"{path} cannot be read as CSV: {wrong}.") from None
    finally:
        csv.field_size_limit(before)


def _of_parquet(path: Path) -> dict[str, Sequence[Any]]:
    pyarrow, parquet = _pyarrow()
    try:
        table = parquet.read_table(path)
    except (pyarrow.ArrowException, OSError) as wrong:
        reason = str(wrong).partition("\n")[0]
        raise InputError(f"{path} cannot be read as Parquet: {reason}.") from None
    return {name: table.column(name).to_pylist() for name in table.column_names}


def _of_table(study: Opened, path: Path, table: dict[str, Sequence[Any]]) -> Samples:
    theta = theta_columns(study)
    for name in (*theta, "return"):
        if name not in table:
            raise InputError(f"{path} has no column {name!r}.{nearest(name, table)}")
    returns = _numbers(path, table, ["return"])[:, 0]
    failed = None
    if "status" in table:  # an export: failed and pending trials have no return
        ok, failed = (np.array([s == word for s in table["status"]], bool) for word in (OK, FAILED))
        returns = np.where(ok, returns, np.nan)
    drawn = [[f"{which}_{name}" for name in _bare(study)] for which in ("mean", "std")]
    known = [all(name in table for name in names) for names in drawn]
    if any(known) != all(known):
        raise InputError(f"{path} has {drawn[0][0]} or {drawn[1][0]}, but not both.")
    mean, std = (_numbers(path, table, names) for names in drawn) if all(known) else (None, None)
    samples = Samples(_numbers(path, table, theta), returns, mean, std, failed=failed)
    return _with_factors(study, path, table, samples)


def _with_factors(
    study: Opened, path: Path, table: dict[str, Sequence[Any]], samples: Samples
) -> Samples:
    """Samples with the correlations of what drew them, where the table has any."""
    if not any(name.startswith("factor_") for name in table):
        return samples
    names = _factor_columns(study)
    if not names or not all(name in table for name in names) or samples.mean is None:
        raise InputError(
            f"{path} has the factors of correlated distributions, which this study (of the family "
            f"{study.family}) cannot use: import it into one of family='full' with the same "
            "parameters."
        )
    return samples._replace(factor=_numbers(path, table, names))


def _numbers(path: Path, table: dict[str, Sequence[Any]], names: Sequence[str]) -> np.ndarray:
    """Columns `[n, len(names)]` of numbers, not a number where a cell is empty."""
    found = np.empty((len(table[names[0]]), len(names)))
    for i, name in enumerate(names):
        for line, cell in enumerate(table[name]):
            try:
                found[line, i] = np.nan if cell in ("", None) else float(cell)
            except (TypeError, ValueError):
                raise InputError(
                    f"line {line + 2} of {path}: {name} must be a number, got {cell!r}."
                ) from None
    return found


def _numbered(n: int) -> list[str]:
    return [f"theta_{i}" for i in range(n)]


def _bare(study: Opened) -> list[str]:
    """What columns about parameters are called behind their prefix: names, or 0, 1, ..."""
    return list(study.names) or [str(i) for i in range(study.dim)]


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise InputError("Parquet needs pyarrow: pip install '.[parquet]', in a clone.") from None
    return pyarrow, parquet

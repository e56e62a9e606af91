"""Samples from elsewhere as they are read: CSV, Parquet, NumPy, or another study."""

import csv
import io
import struct
import zlib
from collections.abc import Iterable, Sequence
from math import prod
from pathlib import Path
from typing import IO, Any
from zipfile import BadZipFile, ZipFile, ZipInfo

import numpy as np

from recoup.checks import InputError, check_path, nearest, shortly
from recoup.core.families.rho import Diagonal, Full
from recoup.store.rows import FAILED, OK
from recoup.study.opened import Opened
from recoup.study.parameters import Parameter, range_of, range_text, to_user
from recoup.study.samples import Samples, samples_of, without_return
from recoup.study.tables import (
    BOUNDS,
    LATENT,
    PARQUET,
    VERSION,
    bare_names,
    factor_columns,
    pyarrow_modules,
    theta_columns,
)

NUMPY = (".npz",)
LARGEST_ARRAY = 1 << 32  # bytes
UNREADABLE = (
    *(AttributeError, EOFError, KeyError, IndexError, MemoryError, OSError, RuntimeError),
    *(SyntaxError, TypeError, ValueError, BadZipFile, struct.error, zlib.error),
)


def read_samples(study: Opened, path: Path) -> Samples:
    """Samples from a CSV, Parquet or NumPy file, or from another study, in the user's units.

    A table has a column for each parameter, `return`, and, where what drew the samples is known,
    `mean_` and `std_` columns like those of an export. NumPy files (.npz) have theta, returns and,
    if known, mean and std. Nothing in them is executed.
    """
    if not check_path("SAMPLES", path).is_file():
        raise InputError(f"there is no file {path}.")
    if _is_sqlite(path):
        return _of_study(study, path)
    if path.suffix in NUMPY:
        return _of_numpy(path)
    table = _of_parquet(path) if path.suffix in PARQUET else _of_csv(path)
    return _of_table(study, path, table)


def _of_study(study: Opened, path: Path) -> Samples:
    other = Opened.open(path, study.parts)
    try:
        if other.dim != study.dim or _ranges(other) != _ranges(study):
            raise InputError(
                f"{path} has {_in_words(other)}, this study {_in_words(study)}: they do not match."
            )
        widened = (other.family, study.family) == ("diagonal", "full")
        if other.family != study.family and not widened:
            raise InputError(
                f"{path} draws from the family {other.family}, this study from {study.family}: "
                "they do not match."
            )
        _check_version(study, path, {other.task_version})
        samples = samples_of(other)
        if not widened:
            return samples
        return samples._replace(blocks=_uncorrelated(np.asarray(samples.blocks), study.dim))
    finally:
        other.store.close()


def _uncorrelated(blocks: np.ndarray, dim: int) -> np.ndarray:
    """Blocks of diagonal Gaussians `[n, 2 D]`, as a study of full covariances has them `[n, K]`."""
    found, index = np.unique(blocks, axis=0, return_inverse=True)
    diagonal = Diagonal.unpacked(found, dim)
    return Full.start(diagonal.mean, diagonal.std).packed()[index]


def _check_version(study: Opened, path: Path, versions: set[str]) -> None:
    """Raises where samples are of another policy, or of another task, than this study's."""
    known = {version for version in versions if version} | {study.task_version} - {""}
    if len(known) > 1:
        raise InputError(
            f"{path} has results of a task or a policy that differs (in its settings, or in the "
            "statistics that observations are normalised by): there the same theta is another "
            f"policy, and its returns say nothing about this one ({', '.join(sorted(known))})."
        )


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
    return dict(zip(heads(path, names), columns, strict=True))


def heads(path: Path, names: Iterable[str]) -> list[str]:
    """The names of a table's columns, without white space around them, once no two are the same."""
    found = [name.strip() for name in names]
    twice = next((name for name in found if name and found.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"{path} has two columns that are called {shortly(twice)}: rename one.")
    return found


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
    pyarrow, parquet = pyarrow_modules()
    try:
        table = parquet.read_table(path)
    except (pyarrow.ArrowException, OSError) as wrong:
        reason = str(wrong).partition("\n")[0]
        raise InputError(f"{path} cannot be read as Parquet: {reason}.") from None
    names = heads(path, table.column_names)
    return {name: column.to_pylist() for name, column in zip(names, table.columns, strict=True)}


def _of_table(study: Opened, path: Path, table: dict[str, Sequence[Any]]) -> Samples:
    theta = theta_columns(study)
    for name in (*theta, "return"):
        if name not in table:
            raise InputError(f"{path} has no column {name!r}.{nearest(name, table)}")
    _check_version(study, path, {str(text or "") for text in table.get(VERSION, ())})
    returns = _numbers(path, table, ["return"])[:, 0]
    failed = None
    if "status" in table:  # an export: failed and pending trials have no return
        ok, failed = (np.array([s == word for s in table["status"]], bool) for word in (OK, FAILED))
        returns = np.where(ok, returns, np.nan)
    drawn = [[f"{which}_{name}" for name in bare_names(study)] for which in ("mean", "std")]
    known = [all(name in table for name in names) for names in drawn]
    if any(known) != all(known):
        raise InputError(f"{path} has {drawn[0][0]} or {drawn[1][0]}, but not both.")
    mean, std = (_numbers(path, table, names) for names in drawn) if all(known) else (None, None)
    latent = _latent(study, path, table, latent_known=std is not None)
    samples = Samples(
        _numbers(path, table, theta), returns, mean, std, failed=failed, latent=latent
    )
    return _with_factors(study, path, table, samples)


def _latent(
    study: Opened, path: Path, table: dict[str, Sequence[Any]], latent_known: bool
) -> np.ndarray | None:
    """Latent thetas of a table, where it has them; raises where they are of other bounds.

    So are standard deviations: without the bounds that they are of, nobody could weigh by them.
    """
    transformed = [p for p in study.parameters if range_text(p) != range_text(Parameter(p.name))]
    stated = [p for p in study.parameters if f"{BOUNDS}_{p.name}" in table]
    for p in stated:
        for line, cell in enumerate(table[f"{BOUNDS}_{p.name}"], 2):
            text = "" if cell is None else str(cell).lstrip("'")
            if text and range_of(text) != (p.low, p.high, p.scale):
                raise InputError(
                    f"line {line} of {path}: {p.name} was drawn under {text[:60]}, here it is "
                    f"{range_text(p)}: fork its study with --param, or leave out the columns that "
                    f"begin with mean_, std_, factor_, {LATENT}_ and {BOUNDS}_."
                )
            if not text and latent_known and p in transformed:
                raise InputError(f"line {line} of {path}: {BOUNDS}_{p.name} is empty.")
    for p in transformed if latent_known else ():
        if p not in stated:
            raise InputError(
                f"{path} has std_{p.name}, which is latent, and does not say under which bounds: "
                f"add a column {BOUNDS}_{p.name} with {range_text(p)}, if it is those, or leave "
                "out the columns that begin with mean_, std_ and factor_."
            )
    names = [f"{LATENT}_{name}" for name in study.names]
    known = len(stated) == len(names) > 0 and all(name in table for name in names)
    if not known:
        return None
    latent = _numbers(path, table, names)
    shown, said = to_user(study.parameters, latent), _numbers(path, table, theta_columns(study))
    apart = ~np.isclose(shown, said, rtol=1e-6, atol=1e-9) & np.isfinite(latent)
    if apart.any():
        line, column = np.argwhere(apart)[0]
        raise InputError(
            f"line {line + 2} of {path}: {names[column]} is not that of {study.names[column]}."
        )
    return latent


def _with_factors(
    study: Opened, path: Path, table: dict[str, Sequence[Any]], samples: Samples
) -> Samples:
    """Samples with the correlations of what drew them, where the table has any."""
    if not any(name.startswith("factor_") for name in table):
        return samples
    names = factor_columns(study)
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

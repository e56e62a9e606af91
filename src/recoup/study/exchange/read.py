"""Samples from elsewhere as they are read: CSV, Parquet, NumPy, or another study."""

import csv
import io
import re
import struct
import zlib
from collections.abc import Iterable, Sequence
from math import prod
from pathlib import Path
from typing import IO
from zipfile import BadZipFile, ZipFile, ZipInfo

import numpy as np

from recoup.checks import InputError, check_path, nearest, shortly
from recoup.core.types import Table
from recoup.study.exchange.cells import numbers, thetas
from recoup.study.exchange.duplicates import said_beside
from recoup.study.exchange.outcomes import check_none_untold, outcomes
from recoup.study.exchange.proposals import Shown, check_family, check_told, of_family, of_rows
from recoup.study.exchange.samples import ForeignSamples, samples_of, without_return
from recoup.study.exchange.tables import (
    ALSO,
    BOUNDS,
    DIRECTION,
    FAMILY,
    LATENT,
    PARQUET,
    PLAIN,
    RHO,
    VERSION,
    bare_names,
    block_columns,
    lines_of,
    pyarrow_modules,
    theta_columns,
    unquoted,
)
from recoup.study.reader.opened import Opened
from recoup.study.space.frozen import frozen_columns
from recoup.study.space.goals import GOALS, MAXIMIZE, Goal
from recoup.study.space.limits import also_columns
from recoup.study.space.parameters import (
    Parameter,
    places_of,
    range_of,
    range_text,
    to_user,
)

NUMPY = (".npz",)
LARGEST_ARRAY = 1 << 32  # bytes
MOMENTS = ("mean", "std")
DRAWN_COLUMNS = f"mean_, std_ and {RHO}_"
UNREADABLE = (
    *(AttributeError, EOFError, KeyError, IndexError, MemoryError, OSError, RuntimeError),
    *(SyntaxError, TypeError, ValueError, BadZipFile, struct.error, zlib.error),
)


def read_samples(study: Opened, path: Path) -> ForeignSamples:
    """Samples from a CSV, Parquet or NumPy file, or from another study, in the user's units.

    A table has a column for each parameter, `return`, `failed` if some did, and, where what drew
    the samples is known, `family` and `rho_` columns like those of an export, or `mean_` and `std_`
    alone. NumPy files (.npz) have theta, returns and, if known, family and rho, or mean and std.
    Nothing in them is executed.
    """
    if not check_path("SAMPLES", path).is_file():
        raise InputError(f"there is no file {path}.")
    if _is_sqlite(path):
        return _of_study(study, path)
    if path.suffix.lower() in NUMPY:
        return _of_numpy(study, path)
    table = _of_parquet(path) if path.suffix.lower() in PARQUET else _of_csv(path)
    return _of_table(study, path, table)


def _of_study(study: Opened, path: Path) -> ForeignSamples:
    other = Opened.open(path, study.parts)
    try:
        if other.dim != study.dim or _ranges(other) != _ranges(study):
            raise InputError(
                f"{path} has {_in_words(other)}, this study {_in_words(study)}: they do not match."
            )
        family = other.store.proposal(0).family  # as it is stored, whatever was given to read it
        check_family(study, path, family)
        _check_version(study, path, {other.task_version})
        samples = samples_of(other)
        samples = samples._replace(blocks=of_family(study, path, family, samples.blocks))
        return samples.told_as(other.goal, study.goal)
    finally:
        other.store.close()


def _check_version(study: Opened, path: Path, versions: set[str]) -> None:
    """Raises where samples are of another policy, or of another task, than this study's."""
    known = {version for version in versions if version} | {study.task_version} - {""}
    if len(known) > 1:
        raise InputError(
            f"{path} has results of a task or a policy that differs (in its settings, or in the "
            "statistics that observations are normalised by): there the same theta is another "
            f"policy, and its returns say nothing about this one ({', '.join(sorted(known))})."
        )


def _ranges(study: Opened) -> list[tuple[object, ...]]:
    """Names and ranges: what makes two latent spaces the same."""
    return [(p.name, p.range) for p in study.parameters]


def _in_words(study: Opened) -> str:
    if not study.names:
        return f"{study.dim} parameters"
    return f"the parameters {', '.join(map(_with_range, study.parameters))}"


def _with_range(p: Parameter) -> str:
    """A parameter with its bounds and scale, or its choices, if it has any."""
    if p.choices is not None:
        return f"{p.name} ({', '.join(p.choices)})"
    return p.name if p.low is None else f"{p.name} ({p.low:g} to {p.high:g}, {p.scale})"


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


def _of_numpy(study: Opened, path: Path) -> ForeignSamples:
    arrays = arrays_of(path)
    for key in ("theta", "returns"):
        if key not in arrays:
            raise InputError(f"{path} must hold theta and returns; it has {', '.join(arrays)}.")
    returns = arrays["returns"]
    beside = {key.partition("_")[2]: x for key, x in arrays.items() if key.startswith(f"{ALSO}_")}
    also = also_columns(path, beside, np.shape(returns))
    samples = ForeignSamples(arrays["theta"], returns, failed=without_return(returns), also=also)
    families = np.unique(arrays.get(FAMILY, np.array([], str)).astype(str)).tolist()
    mean, std = (arrays.get(which) for which in MOMENTS)
    if RHO not in arrays:
        check_told(study, path, () if mean is None else families)
        return samples._replace(mean=mean, std=std)
    if len(families) != 1 or mean is not None or std is not None:
        raise InputError(
            f"{path} holds {RHO}, which says what drew the samples: it needs {FAMILY}, one name, "
            "beside it, and neither mean nor std."
        )
    return samples._replace(blocks=of_family(study, path, families[0], arrays[RHO]))


def _of_csv(path: Path) -> Table:
    try:
        lines = io.StringIO(path.read_bytes().decode("utf-8-sig"), newline="")
    except OSError as wrong:
        raise InputError(f"{path} cannot be read: {wrong.strerror}.") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is not a text file.") from None
    names, *rows = _cells(path, lines) or [[]]
    for line, row in enumerate(rows, 2):
        if len(row) != len(names):
            raise InputError(f"line {line} of {path} has {len(row)} cells, the first {len(names)}.")
    cells = (map(unquoted, row) for row in rows)
    columns = zip(*cells, strict=True) if rows else ([] for _ in names)
    return dict(zip(heads(path, names), columns, strict=True))


def heads(path: Path, names: Iterable[str]) -> list[str]:
    """The names of a CSV's columns, without white space or marks, once no two are the same."""
    return _each_once(path, (unquoted(n) if n.startswith("'") else n.strip() for n in names))


def _each_once(path: Path, names: Iterable[str]) -> list[str]:
    found = list(names)
    twice = next((name for name in found if name and found.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"{path} has two columns that are called {shortly(twice)}: rename one.")
    return found


def _cells(path: Path, lines: IO[str]) -> list[list[str]]:
    """The cells of a CSV file."""
    try:
        return lines_of(lines)
    except csv.Error as wrong:
        raise InputError(f"{path} cannot be read as CSV: {wrong}.") from None


def _of_parquet(path: Path) -> Table:
    pyarrow, parquet = pyarrow_modules()
    try:
        table = parquet.read_table(path)
    except (pyarrow.ArrowException, OSError) as wrong:
        reason = str(wrong).partition("\n")[0]
        raise InputError(f"{path} cannot be read as Parquet: {reason}.") from None
    names = _each_once(path, map(str.strip, table.column_names))
    return {name: column.to_pylist() for name, column in zip(names, table.columns, strict=True)}


def _of_table(study: Opened, path: Path, table: Table) -> ForeignSamples:
    theta = theta_columns(study)
    for name in (*theta, "return"):
        if name not in table:
            raise InputError(f"{path} has no column {name!r}.{nearest(name, table)}")
    if not len(table["return"]):
        raise InputError(f"{path} has no results to import.")
    versions = () if VERSION in theta else table.get(VERSION, ())
    _check_version(study, path, {str(text or "") for text in versions})
    came = outcomes(path, table)
    check_none_untold(study, path, table, came)
    families, names = _families(study, table), _block_names(study, path, table)
    for family in [name for name in families if name and names][:1]:
        check_family(study, path, family)  # of another even the columns are others
    shown, latent = _moments(study, path, table), _latent(study, path, table)
    blocks: np.ndarray | None = None
    if names:
        blocks = of_rows(study, path, families, numbers(path, table, names), shown)
    samples = ForeignSamples(
        thetas(study, path, table), came.returns, failed=came.failed, latent=latent
    )
    beside = [x for x in table if x.startswith(f"{ALSO}_") and x not in theta]
    told = {x.partition("_")[2]: numbers(path, table, [x])[:, 0] for x in beside}
    also = also_columns(path, told, came.returns.shape)
    samples = samples._replace(also=also, frozen=frozen_columns(table, theta))
    samples = samples.told_as(_goal(study, path, table), study.goal)
    if "status" in table:
        others = {name: cells for name, cells in table.items() if name not in theta}
        samples = samples._replace(**said_beside(others, families))
    samples = samples._replace(why=came.reasons(samples.why))
    if blocks is not None or shown is None:
        return samples._replace(blocks=blocks)
    check_told(study, path, families)
    return samples._replace(mean=shown[0], std=shown[1])


def _goal(study: Opened, path: Path, table: Table) -> Goal:
    """Which way is better in a table: an export says; in another it is as in the study."""
    theta = theta_columns(study)
    cells = () if DIRECTION in theta else table.get(DIRECTION, ())
    words = {str(cell) for cell in cells if cell not in ("", None)}
    if len(words) > 1 or not words <= GOALS.keys():
        known = " or ".join(GOALS)
        raise InputError(f"{path}: {DIRECTION} must be {known}, the same in all rows.")
    if words:
        return GOALS[words.pop()]
    return MAXIMIZE if all(name in table for name in PLAIN) else study.goal


def _moments(study: Opened, path: Path, table: Table) -> Shown:
    """The columns mean_, in the user's units, and std_ `[n, D]`, where a table has them."""
    drawn = [[f"{which}_{name}" for name in bare_names(study)] for which in MOMENTS]
    known = [all(name in table for name in names) for names in drawn]
    if any(known) != all(known):
        raise InputError(f"{path} has {drawn[0][0]} or {drawn[1][0]}, but not both.")
    mean, std = (numbers(path, table, names) if all(known) else None for names in drawn)
    return None if mean is None or std is None else (mean, std)


def _latent(study: Opened, path: Path, table: Table) -> np.ndarray | None:
    """Latent thetas of a table, where it has them; raises where they are of other bounds.

    So is what drew them: without the bounds that it is of, nobody could weigh by it.
    """
    drew = _drawn_columns(study, table)
    transformed = [p for p in study.parameters if range_text(p) != range_text(Parameter(p.name))]
    stated = [p for p in study.parameters if f"{BOUNDS}_{p.name}" in table]
    for p in stated:
        for line, cell in enumerate(table[f"{BOUNDS}_{p.name}"], 2):
            text = "" if cell is None else str(cell)
            if text and range_of(text) != p.range:
                raise InputError(
                    f"line {line} of {path}: {p.name} was drawn under {text[:60]}, here it is "
                    f"{range_text(p)}: fork its study with --param, or leave out the columns that "
                    f"begin with {LATENT}_, {BOUNDS}_, {DRAWN_COLUMNS}."
                )
            if not text and drew and p in transformed:
                raise InputError(f"line {line} of {path}: {BOUNDS}_{p.name} is empty.")
    for p in transformed if drew else ():
        if p not in stated:
            column = f"std_{p.name}" if f"std_{p.name}" in drew else drew[0]
            raise InputError(
                f"{path} has {column}, which is latent, and does not say under which bounds "
                f"{p.name} was drawn: add a column {BOUNDS}_{p.name} with {range_text(p)}, if it "
                f"is those, or leave out the columns that begin with {DRAWN_COLUMNS}."
            )
    names = [f"{LATENT}_{p.name}" for p in study.columns]
    known = len(stated) == len(study.names) > 0 and all(name in table for name in names)
    return _checked_latent(study, path, table, names) if known else None


def _checked_latent(study: Opened, path: Path, table: Table, names: Sequence[str]) -> np.ndarray:
    """Latent thetas `[n, D]` in columns of these names, once they are those of the thetas beside.

    A row of somebody's own says neither them nor their bounds.
    """
    latent = numbers(path, table, names)
    shown, said = to_user(study.parameters, latent), thetas(study, path, table)
    beside = [[cell not in ("", None) for cell in table[f"{BOUNDS}_{n}"]] for n in study.names]
    places = places_of(study.parameters)
    empty = np.stack([np.isnan(latent[:, place]).any(axis=1) for place in places], axis=1)
    finite = np.stack([np.isfinite(latent[:, place]).all(axis=1) for place in places], axis=1)
    near = np.isclose(shown, said, rtol=1e-6, atol=1e-9) & finite
    apart = np.where(empty, np.array(beside, bool).T, ~near)
    if apart.any():
        line, i = np.argwhere(apart)[0]
        wrong = "empty" if empty[line, i] else f"not that of {study.names[i]}"
        raise InputError(
            f"line {line + 2} of {path}: {names[places[i].start]} is {wrong}: put it back, or "
            f"leave out the columns that begin with {LATENT}_."
        )
    return latent


def _families(study: Opened, table: Table) -> list[str]:
    """The names of the families that drew the rows, empty where none did; [] without a column."""
    cells = () if FAMILY in theta_columns(study) else table.get(FAMILY, ())
    return ["" if cell is None else str(cell) for cell in cells]


def _block_names(study: Opened, path: Path, table: Table) -> list[str]:
    """The columns of a block of numbers that a table has, in order."""
    own = theta_columns(study)
    known = [name for name in table if re.fullmatch(f"{RHO}_[0-9]+", name) and name not in own]
    names = block_columns(len(known))
    for name in (*names, FAMILY) if names else ():
        if name not in table or name in own:
            raise InputError(f"{path} has {known[-1]}, but no column {name!r}.")
    return names


def _drawn_columns(study: Opened, table: Table) -> list[str]:
    """Columns of latent numbers of what drew the rows: those of standard deviations, or blocks."""
    known = (*(f"std_{name}" for name in bare_names(study)), f"{RHO}_0")
    return [name for name in known if name in table and name not in theta_columns(study)]

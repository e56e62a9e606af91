"""Named parameters in the user's units, and the unbounded latent ones that are searched.

The search, its densities and its archive live in latent space, where the distribution is Gaussian;
people read and write their own units. With bounds low and high a latent z is
low + (high - low) / (1 + exp(-z)), of the logarithms on a log scale; without bounds it is z itself,
or exp(z). A whole number is the nearest to such a value between low - 1/2 and high + 1/2: what is
searched, and has a density, is the latent value.
"""

import re
import tomllib
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from recoup.checks import InputError, check_choice, check_mapping, nearest, shortly

SCALES = ("linear", "log", "int")
KEYS = ("low", "high", "scale", "start", "std", "unit")
RESERVED = ("id", "kind", "status", "return", "stderr", "episodes", "note", "seed", "proposal")
BESIDE = (
    "family",
    "task_version",
    "notes",
    "study_direction",
)  # columns too, but parameters of before may be called so
WHOLE = 2**48  # the largest bound of whole numbers: each comes back from its latent value
LONGEST_UNIT = 24  # characters
EDGE = 40.0  # latent distance at which a bound is reached as nearly as numbers allow


@dataclass(frozen=True)
class Parameter:
    """One parameter: its name, its bounds if it has any, and whether its logarithm is searched."""

    name: str
    low: float | None = None
    high: float | None = None
    scale: str = "linear"
    start: float | None = None  # in the user's units; the middle unless given
    std: float | None = None  # latent, at the start
    unit: str | None = field(default=None, compare=False)  # shown beside the name, and no more

    def __post_init__(self) -> None:
        _check(self)

    @property
    def label(self) -> str:
        """The name as people read it, with the unit if there is one."""
        return labelled(self.name, self.unit)


def to_user(parameters: Sequence[Parameter], latent: np.ndarray) -> np.ndarray:
    """Latent values `[..., D]` in the user's units; as they are where no parameter has a name."""
    if not parameters:
        return latent
    columns = [_rounded(p, _spread(p, latent[..., i])) for i, p in enumerate(parameters)]
    return np.stack(columns, axis=-1)


def spread_out(parameters: Sequence[Parameter], latent: np.ndarray) -> np.ndarray:
    """Latent values `[..., D]` in the user's units, whole numbers before they are rounded."""
    columns = [_spread(p, latent[..., i]) for i, p in enumerate(parameters)]
    return np.stack(columns, axis=-1)


def log_slope(parameters: Sequence[Parameter], latent: np.ndarray) -> np.ndarray:
    """log du/dz `[..., D]` of `spread_out`, for densities under another choice of bounds."""
    columns = [_log_slope(p, latent[..., i]) for i, p in enumerate(parameters)]
    return np.stack(columns, axis=-1)


def to_latent(parameters: Sequence[Parameter], values: np.ndarray) -> np.ndarray:
    """The user's units `[..., D]` as latent values; out of bounds is refused."""
    if not parameters:
        return values
    columns = [_to_latent(p, values[..., i]) for i, p in enumerate(parameters)]
    return np.stack(columns, axis=-1)


def parameter(text: str) -> Parameter:
    """A parameter as it is typed: NAME, NAME=LOW:HIGH or NAME=LOW:HIGH:SCALE."""
    name, equals, rest = text.partition("=")
    if "|" in rest:
        raise InputError(no_choices(name.strip()))
    parts = rest.split(":") if equals else []
    if not name.strip() or ":" in name or len(parts) > 3 or (equals and len(parts) == 1):
        raise InputError(
            f"--param takes NAME, NAME=LOW:HIGH, NAME=LOW:HIGH:log or NAME=LOW:HIGH:int, got "
            f"{text!r}; for instance stiffness=10:200:log."
        )
    try:
        low, high = (float(part) if part.strip() else None for part in (*parts, "", "")[:2])
    except ValueError:
        raise InputError(f"the bounds of --param must be numbers, got {text!r}.") from None
    return Parameter(name.strip(), low, high, parts[2].strip() if len(parts) == 3 else "linear")


def no_choices(name: str) -> str:
    """Why a parameter cannot be one of several words."""
    return (
        f"{name} has unordered choices, which a study does not search: make one study for each, "
        "with the same other parameters, give the next trials to the one whose `recoup study "
        "recommend` promises most, and stop one when its interval is wholly worse than another's. "
        f"What has an order can be a whole number ({name}=0:3:int)."
    )


def parameters_of(path: Path) -> list[Parameter]:
    """Parameters from a TOML file: a table each, with low, high, scale, start, std and unit."""
    try:
        content = tomllib.loads(path.read_text())
    except OSError as wrong:
        raise InputError(f"{path} cannot be read: {wrong.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as wrong:
        raise InputError(f"{path} is not TOML: {wrong}.") from None
    found = []
    for name, row in content.items():
        if not isinstance(row, dict):
            raise InputError(f"{path}: {name} must be a table, [{name}], with {', '.join(KEYS)}.")
        found.append(of_table(name, row))
    return checked(found)


def of_table(name: str, row: Mapping[str, Any]) -> Parameter:
    """A parameter from what is said about it by name."""
    for key in row:
        if key not in KEYS:
            raise InputError(f"{key!r} of {name} is none of {', '.join(KEYS)}.{nearest(key, KEYS)}")
    return Parameter(name, **row)


def check_values(parameters: Sequence[Parameter], values: np.ndarray) -> None:
    """Raises where values `[..., D]` of the user's lie outside of the bounds, or are not whole."""
    for i, p in enumerate(parameters):
        column = np.atleast_1d(values[..., i])
        if p.scale == "int":
            wrong = (column % 1 != 0) | (column < p.low) | (column > p.high)
            if wrong.any():
                raise InputError(
                    f"{p.name} must be a whole number in {p.low:g}..{p.high:g}, got "
                    f"{column[wrong][0]:g}."
                )
        _to_latent(p, column)


def range_of(text: str) -> tuple[float | None, float | None, str] | None:
    """Bounds and scale of what `range_text` has written, or a user; None where it is neither."""
    try:
        p = parameter(f"x={text}") if text.strip(": ") else Parameter("x")
    except InputError:
        return None
    return p.low, p.high, p.scale


def range_text(p: Parameter) -> str:
    """Bounds and scale of a parameter as tables have them: LOW:HIGH:SCALE, or ::SCALE."""
    low, high = ("" if x is None else f"{float(x)!r}" for x in (p.low, p.high))
    return f"{low}:{high}:{p.scale}"


def checked(parameters: Sequence[Parameter]) -> list[Parameter]:
    """The parameters, once there are any and no two share a name."""
    names = [p.name for p in parameters]
    if not names:
        raise InputError("a study needs at least one parameter.")
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise InputError(f"two parameters are called {sorted(twice)[0]!r}.")
    return list(parameters)


def check_new(parameters: Sequence[Parameter]) -> None:
    """Raises where parameters of a new study could be mistaken for each other, or be inexact.

    Files made before may hold such, and are opened all the same.
    """
    alike: dict[str, str] = {}
    _check_columns([p.name for p in parameters])
    for p in parameters:
        if p.name != p.name.strip():
            raise InputError(
                f"the name {p.name!r} begins or ends with white space, which tables lose: call it "
                f"{p.name.strip()!r}."
            )
        other = alike.setdefault(unicodedata.normalize("NFKC", p.name), p.name)
        if other != p.name:
            raise InputError(
                f"the names {other!a} and {p.name!a} look the same: change one of them."
            )
        if p.scale == "int" and max(abs(p.low or 0), abs(p.high or 0)) > WHOLE:
            raise InputError(
                f"whole numbers are searched between -2^48 and 2^48, and {p.name} goes beyond: "
                "larger ones are not exact; search it on a linear or log scale and round it."
            )


def _check_columns(names: Sequence[str]) -> None:
    """Raises where a name is that of a column which tables have beside those of these names."""
    beside = {f"{what}_{name}" for what in ("latent", "bounds") for name in names}
    for name in names:
        if name in BESIDE or name in beside or re.fullmatch("rho_[0-9]+", name):
            raise InputError(f"{name!r} cannot name a parameter: tables have such a column.")


def plain(parameters: Sequence[Parameter]) -> list[dict[str, Any]]:
    """The parameters as JSON can hold them, without their units.

    Those stand beside them in a file (`units_of`), where an older recoup does not look for them.
    """
    rows = [asdict(p) for p in parameters]
    return [{key: value for key, value in row.items() if key != "unit"} for row in rows]


def units_of(parameters: Sequence[Parameter]) -> dict[str, str]:
    """The units of those parameters that have one, by name."""
    return {p.name: p.unit for p in parameters if p.unit}


def with_units(parameters: Sequence[Parameter], units: Any) -> list[Parameter]:
    """The parameters with the `units` that are given by name, beside those they have."""
    given = check_mapping("units", {} if units is None else units)
    names = [p.name for p in parameters]
    for name in given:
        if name not in names:
            raise InputError(
                f"a unit is given of {shortly(name)}, which is no parameter.{nearest(name, names)}"
            )
    return [replace(p, unit=given[p.name]) if p.name in given else p for p in parameters]


def check_unit(what: str, unit: Any) -> str:
    """A unit, once it is a short text on one line."""
    short = isinstance(unit, str) and 0 < len(unit.strip()) <= LONGEST_UNIT
    if not short or not unit.isprintable():
        raise InputError(
            f"the unit of {what} must be a text of at most {LONGEST_UNIT} characters, such as "
            f"Nm/rad, got {shortly(unit)}."
        )
    return str(unit.strip())


def labelled(name: str, unit: str | None) -> str:
    """A name with the unit of what it names, if that has one."""
    return f"{name} [{unit}]" if unit else name


def starts(parameters: Sequence[Parameter], std: float | None) -> tuple[list[float], list[float]]:
    """Latent means and standard deviations at the start."""
    means = [0.0 if p.start is None else float(_to_latent(p, p.start)) for p in parameters]
    stds = [p.std if p.std is not None else 1.0 if std is None else std for p in parameters]
    return means, stds


def _check_name(name: Any) -> None:
    """Raises unless a name can stand beside the other columns of a table."""
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise InputError(f"a parameter needs a name, got {shortly(name)}.")
    taken = (*RESERVED, "asked_at", "told_at", "failed", "amended", "told_later", "lease_until")
    if name in taken or name.startswith(("mean_", "std_", "factor_")):
        raise InputError(f"{name!r} cannot name a parameter: tables have such a column already.")


def _check(p: Parameter) -> None:
    _check_name(p.name)
    check_choice(f"the scale of {p.name}", p.scale, SCALES)
    for key in ("low", "high", "start", "std"):
        value = getattr(p, key)
        if value is not None and not _is_finite(value):
            raise InputError(f"{key} of {p.name} must be a finite number, got {shortly(value)}.")
    if (p.low is None) != (p.high is None):
        raise InputError(f"{p.name} has one bound: give both low and high, or neither.")
    if p.low is not None and p.high is not None and not p.low < p.high:
        raise InputError(f"low must lie below high, got {p.low:g} and {p.high:g} for {p.name}.")
    if p.low is not None and p.high is not None and not isfinite(p.high - p.low):
        raise InputError(f"the range of {p.name} is too wide for numbers: leave its bounds out.")
    if p.scale == "log" and p.low is not None and p.low <= 0:
        raise InputError(f"a log scale needs positive bounds, got {p.low:g} for {p.name}.")
    if p.scale == "int" and (p.low is None or p.high is None or p.low % 1 or p.high % 1):
        raise InputError(f"whole numbers need two whole bounds, such as {p.name}=0:10:int.")
    if p.std is not None and p.std <= 0:
        raise InputError(f"std of {p.name} must be positive, got {p.std:g}.")
    if p.unit is not None:
        check_unit(p.name, p.unit)
    if p.start is not None:
        check_values([p], np.array([p.start]))


def _is_finite(value: Any) -> bool:
    """Whether a value is a number, and one that floating point can hold."""
    try:
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return number and isfinite(value)
    except OverflowError:  # a whole number of more than 308 digits
        return False


def _ends(p: Parameter) -> tuple[float, float] | None:
    """The ends of the range that the logistic function covers, as numbers that it is linear in."""
    if p.low is None or p.high is None:
        return None
    if p.scale == "int":
        return p.low - 0.5, p.high + 0.5
    return (float(np.log(p.low)), float(np.log(p.high))) if p.scale == "log" else (p.low, p.high)


def _spread(p: Parameter, z: Any) -> Any:
    """The value of a latent z, before it is rounded."""
    ends = _ends(p)
    if ends is None:
        return np.exp(z) if p.scale == "log" else z
    share = 1 / (1 + np.exp(-np.clip(z, -EDGE, EDGE)))
    value = ends[0] + (ends[1] - ends[0]) * share
    if p.scale == "int":
        return value
    return np.clip(np.exp(value) if p.scale == "log" else value, p.low, p.high)


def _rounded(p: Parameter, value: Any) -> Any:
    return np.clip(np.round(value), p.low, p.high) if p.scale == "int" else value


def _log_slope(p: Parameter, z: Any) -> Any:
    """log du/dz of `_spread`."""
    ends = _ends(p)
    if ends is None:
        return z if p.scale == "log" else np.zeros_like(z)
    slope = np.log(ends[1] - ends[0]) - np.abs(z) - 2 * np.log1p(np.exp(-np.abs(z)))
    return slope + np.log(_spread(p, z)) if p.scale == "log" else slope


def _to_latent(p: Parameter, value: Any) -> Any:
    value, ends = np.asarray(value, float), _ends(p)
    if ends is None:
        if p.scale == "log" and not (value > 0).all():
            raise InputError(f"{p.name} must be positive, got {value[~(value > 0)].flat[0]:g}.")
        return np.log(value) if p.scale == "log" else value
    outside = ~inside(p, value)
    if outside.any():
        raise InputError(
            f"{p.name} must lie in {p.low:g}..{p.high:g}, got {value[outside].flat[0]:g}."
        )
    share = ((np.log(value) if p.scale == "log" else value) - ends[0]) / (ends[1] - ends[0])
    with np.errstate(divide="ignore"):
        return np.clip(np.log(share) - np.log1p(-share), -EDGE, EDGE)


def inside(p: Parameter, value: Any) -> Any:
    """Which values, before they are rounded, a parameter can have."""
    if p.low is None or p.high is None:
        return np.isfinite(value) & (value > 0) if p.scale == "log" else np.isfinite(value)
    half = 0.5 if p.scale == "int" else 0.0
    return (value >= p.low - half) & (value <= p.high + half)

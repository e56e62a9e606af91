"""Named parameters in the user's units, and the unbounded latent ones that are searched.

The search, its densities and its archive live in latent space, where the distribution is Gaussian;
people read and write their own units (`study.scales`). A whole number is the nearest to such a
value: what is searched, and has a density, is the latent value. One of several choices is where the
largest of their latent numbers stands (`study.choices`). So P parameters are searched as D latent
numbers: `columns_of` says which, each as a parameter of its own. In arrays of the user's units
`[..., P]` a choice is its place among those it is one of, from 0.
"""

import re
import tomllib
import unicodedata
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from math import isfinite
from pathlib import Path

import numpy as np

from recoup.checks import InputError, as_typed, check_choice, check_mapping, nearest, shortly
from recoup.core.types import Array, Given, Plain, Settings, Value
from recoup.study.space import choices as several
from recoup.study.space import scales

SCALES = ("linear", "log", "int")
KEYS = ("low", "high", "scale", "choices", "start", "std", "unit", "beyond")
RESERVED = ("id", "kind", "status", "return", "stderr", "episodes", "note", "seed", "proposal")
BESIDE = (
    "family",
    "task_version",
    "notes",
    "study_direction",
)  # columns too
WHOLE = 2**48  # the largest bound of whole numbers: each comes back from its latent value
LONGEST_UNIT = 24  # characters
ALWAYS = (
    "no parameter exists under a choice alone, for every distribution draws all of them: give it "
    "always, and ignore it where it does not apply."
)


@dataclass(frozen=True)
class Parameter:
    """One parameter: its name, its bounds or choices if it has any, and what of it is searched."""

    name: str
    low: float | None = None
    high: float | None = None
    scale: str = "linear"
    start: float | str | None = None  # in the user's units; the middle unless given
    std: float | None = None  # latent, at the start
    unit: str | None = field(default=None, compare=False)  # shown beside the name, and no more
    choices: tuple[str, ...] | None = None  # of which it is one
    beyond: float | None = None  # share of its range that is searched beyond each bound

    def __post_init__(self) -> None:
        if self.choices is not None:
            object.__setattr__(self, "choices", several.check_choices(self.name, self.choices))
        _check(self)

    @property
    def slots(self) -> int:
        """How many latent numbers it is searched as."""
        return 1 if self.choices is None else several.slots(len(self.choices))

    @property
    def range(self) -> tuple[object, ...]:
        """Bounds, scale and choices: what makes two latent spaces the same."""
        return self.low, self.high, self.scale, self.choices, self.beyond or 0.0

    @property
    def columns(self) -> "tuple[Parameter, ...]":
        """Its latent numbers, each as a parameter."""
        if self.choices is None:
            return (self,)
        words = self.choices[1:] if self.slots == 1 else self.choices
        return tuple(Parameter(f"{self.name}={word}") for word in words)

    @property
    def label(self) -> str:
        """The name as people read it, with the unit if there is one."""
        return labelled(self.name, self.unit)


def columns_of(parameters: Sequence[Parameter]) -> tuple[Parameter, ...]:
    """The latent numbers `[D]` of parameters `[P]`, each as a parameter."""
    return tuple(column for p in parameters for column in p.columns)


def places_of(parameters: Sequence[Parameter]) -> list[slice]:
    """Where the latent numbers of each parameter stand among all `[P]`."""
    ends = np.cumsum([0, *(p.slots for p in parameters)]).tolist()
    return [slice(*pair) for pair in pairwise(ends)]


def to_user(parameters: Sequence[Parameter], latent: np.ndarray) -> np.ndarray:
    """Latent values `[..., D]` in the user's units `[..., P]`; as they are without parameters."""
    if not parameters:
        return latent
    pairs = zip(parameters, places_of(parameters), strict=True)
    return np.stack([_shown(p, latent[..., place]) for p, place in pairs], axis=-1)


def spread_out(parameters: Sequence[Parameter], latent: np.ndarray) -> np.ndarray:
    """Latent values `[..., D]` in the user's units, whole numbers before they are rounded.

    And choices before one is made: their latent numbers.
    """
    columns = [scales.spread(p, latent[..., i]) for i, p in enumerate(columns_of(parameters))]
    return np.stack(columns, axis=-1)


def gathered(parameters: Sequence[Parameter], values: np.ndarray) -> np.ndarray:
    """The latent values `[..., D]` of what `spread_out` gave; out of bounds is refused."""
    if not parameters:
        return values
    columns = [scales.to_latent(p, values[..., i]) for i, p in enumerate(columns_of(parameters))]
    return np.stack(columns, axis=-1)


def log_slope(parameters: Sequence[Parameter], latent: np.ndarray) -> np.ndarray:
    """log du/dz `[..., D]` of `spread_out`, for densities under another choice of bounds."""
    columns = [scales.log_slope(p, latent[..., i]) for i, p in enumerate(columns_of(parameters))]
    return np.stack(columns, axis=-1)


def to_latent(parameters: Sequence[Parameter], values: np.ndarray) -> np.ndarray:
    """The user's units `[..., P]` as latent values `[..., D]`; out of bounds is refused.

    A choice is where it stands ahead of the others, one place for each.
    """
    if not parameters:
        return values
    columns = [_latent_of(p, values[..., i]) for i, p in enumerate(parameters)]
    return np.concatenate(columns, axis=-1)


def parameter(text: str) -> Parameter:
    """A parameter as it is typed: NAME, NAME=LOW:HIGH, NAME=LOW:HIGH:SCALE or NAME=ONE|OTHER.

    After the scale may stand how far it is searched beyond its bounds, as `range_text` has it.
    """
    name, equals, rest = text.partition("=")
    if "|" in rest:
        return Parameter(name.strip(), choices=tuple(rest.split("|")))
    if " if " in rest:
        raise InputError(ALWAYS)
    parts = rest.split(":") if equals else []
    far = len(parts) > 4 or (len(parts) == 4 and parts[2].strip() not in SCALES)
    if not name.strip() or ":" in name or far or (equals and len(parts) == 1):
        raise InputError(
            f"--param takes NAME, NAME=LOW:HIGH, NAME=LOW:HIGH:log, NAME=LOW:HIGH:int or "
            f"NAME=ONE|OTHER, got {text!r}; for instance stiffness=10:200:log or gripper=soft|hard."
        )
    try:
        low, high = (as_typed(part) if part.strip() else None for part in (*parts, "", "")[:2])
    except ValueError:
        raise InputError(f"the bounds of --param must be numbers, got {text!r}.") from None
    scale = parts[2].strip() if len(parts) > 2 else "linear"
    return Parameter(name.strip(), low, high, scale, beyond=scales.typed_share(*parts[3:]))


def parameters_of(path: Path) -> list[Parameter]:
    """Parameters from a TOML file: a table each, with some of `KEYS`."""
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


def of_table(name: str, row: Settings) -> Parameter:
    """A parameter from what is said about it by name."""
    for key in row:
        if key in ("if", "when"):
            raise InputError(ALWAYS)
        if key not in KEYS:
            raise InputError(f"{key!r} of {name} is none of {', '.join(KEYS)}.{nearest(key, KEYS)}")
    return Parameter(name, **row)


def check_values(parameters: Sequence[Parameter], values: np.ndarray) -> None:
    """Raises where values `[..., P]` of the user's lie outside of the bounds, or are not whole.

    Or are no place among the choices.
    """
    for i, p in enumerate(parameters):
        column = np.atleast_1d(values[..., i])
        if p.scale == "int":
            wrong = (column % 1 != 0) | (column < p.low) | (column > p.high)
            if wrong.any():
                raise InputError(
                    f"{p.name} must be a whole number in {p.low:g}..{p.high:g}, got "
                    f"{column[wrong][0]:g}."
                )
        _latent_of(p, column)


def value_of(p: Parameter, given: Given) -> Value:
    """A value as arrays of the user's units hold it: the place of a choice, others as they are."""
    return given if p.choices is None else several.place_of(p.name, p.choices, given)


def range_of(text: str) -> tuple[object, ...] | None:
    """The range of what `range_text` has written, or a user; None where it is neither."""
    try:
        p = parameter(f"x={text}") if text.strip(": ") else Parameter("x")
    except InputError:
        return None
    return p.range


def range_text(p: Parameter) -> str:
    """The range of a parameter as tables have it: LOW:HIGH:SCALE, ::SCALE, or ONE|OTHER."""
    if p.choices is not None:
        return "|".join(p.choices)
    low, high = ("" if x is None else f"{float(x)!r}" for x in (p.low, p.high))
    beyond = f":{float(p.beyond)!r}" if p.beyond else ""
    return f"{low}:{high}:{p.scale}{beyond}"


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
    """Raises where parameters of a new study could be mistaken for each other, or be inexact."""
    alike: dict[str, str] = {}
    _check_columns([p.name for p in parameters], [p.name for p in columns_of(parameters)])
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


def _check_columns(names: Sequence[str], columns: Sequence[str]) -> None:
    """Raises where a name is that of a column which tables have beside those of these names."""
    beside = {f"{what}_{name}" for what in ("latent", "bounds") for name in (*names, *columns)}
    beside |= {*columns} - {*names} | {name for name in names if columns.count(name) > 1}
    for name in names:
        if name in BESIDE or name in beside or re.fullmatch("rho_[0-9]+", name):
            raise InputError(f"{name!r} cannot name a parameter: tables have such a column.")


def plain(parameters: Sequence[Parameter]) -> list[Plain]:
    """The parameters as JSON can hold them, without their units, which stand beside them."""
    rows = [asdict(p) | {"choices": p.choices and list(p.choices)} for p in parameters]
    unsaid = ("choices", "beyond")  # where there are none
    return [
        {key: row[key] for key in row if key != "unit" and (row[key] or key not in unsaid)}
        for row in rows
    ]


def units_of(parameters: Sequence[Parameter]) -> dict[str, str]:
    """The units of those parameters that have one, by name."""
    return {p.name: p.unit for p in parameters if p.unit}


def with_units(parameters: Sequence[Parameter], units: Given) -> list[Parameter]:
    """The parameters with the `units` that are given by name, beside those they have."""
    given = check_mapping("units", {} if units is None else units)
    names = [p.name for p in parameters]
    for name in given:
        if name not in names:
            raise InputError(
                f"a unit is given of {shortly(name)}, which is no parameter.{nearest(name, names)}"
            )
    return [replace(p, unit=given[p.name]) if p.name in given else p for p in parameters]


def check_unit(what: str, unit: Given) -> str:
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


def starts(parameters: Sequence[Parameter], std: float) -> tuple[list[float], list[float]]:
    """Latent means and standard deviations `[D]` at the start, `std` unless it has its own."""
    starts_at = [
        np.zeros(p.slots) if p.start is None else _latent_of(p, value_of(p, p.start))
        for p in parameters
    ]
    stds = [std if p.std is None else p.std for p in parameters]
    each = [[value] * p.slots for p, value in zip(parameters, stds, strict=True)]
    return np.concatenate(starts_at).tolist(), [value for values in each for value in values]


def _check_name(name: Given) -> None:
    """Raises unless a name can stand beside the other columns of a table."""
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise InputError(f"a parameter needs a name, got {shortly(name)}.")
    taken = (*RESERVED, "asked_at", "told_at", "failed", "amended", "told_later", "lease_until")
    if name in taken or name.startswith(("mean_", "std_")):
        raise InputError(f"{name!r} cannot name a parameter: tables have such a column already.")


def _check(p: Parameter) -> None:
    _check_name(p.name)
    check_choice(f"the scale of {p.name}", p.scale, SCALES)
    if p.choices is not None:
        _check_alone(p)
    for key in ("low", "high", "std", *(["start"] if p.choices is None else [])):
        value = getattr(p, key)
        if value is not None and not scales.is_finite(value):
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
    if p.beyond is not None:
        scales.check_beyond(p)
    if p.std is not None and p.std <= 0:
        raise InputError(f"std of {p.name} must be positive, got {p.std:g}.")
    if p.unit is not None:
        check_unit(p.name, p.unit)
    if p.start is not None:
        check_values([p], np.array([value_of(p, p.start)]))


def _check_alone(p: Parameter) -> None:
    """Raises where a parameter with choices has what numbers have."""
    said = {"low": p.low, "high": p.high, "unit": p.unit, "scale": p.scale, "beyond": p.beyond}
    for key, value in said.items():
        if value is not None and value != "linear":
            raise InputError(f"{p.name} is one of several choices: leave out {key}.")
    if p.start is not None and not isinstance(p.start, str):
        raise InputError(f"start of {p.name} must be one of its choices, got {shortly(p.start)}.")


def _shown(p: Parameter, z: np.ndarray) -> Array:
    """The value `[...]` of a parameter whose latent numbers are `z [..., S]`."""
    if p.choices is not None:
        return several.chosen(z)
    value = scales.spread(p, z[..., 0])
    if p.scale == "int":
        return np.clip(np.round(value), p.low, p.high)
    return np.clip(value, p.low, p.high) if p.beyond else value


def _latent_of(p: Parameter, value: Given) -> np.ndarray:
    """The latent numbers `[..., S]` of a value `[...]`, or of a place among choices."""
    if p.choices is None:
        return np.asarray(scales.given_as_latent(p, value))[..., None]
    for one in np.asarray(value, float).ravel().tolist():
        several.place_of(p.name, p.choices, one)
    return several.standing(value, len(p.choices))

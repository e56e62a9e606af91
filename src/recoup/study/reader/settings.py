"""The settings of a study: all of them, checked and resolved, as a file can hold them."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from recoup.checks import (
    SAMPLE_NUMBERS,
    InputError,
    check_between,
    check_count,
    check_finite,
    check_shape,
    check_start,
    check_stds,
    shortly,
)
from recoup.core.types import Chosen, Given, Plain, Settings
from recoup.engine.episodes import episode_of
from recoup.engine.failure import AVOID, CENSORED
from recoup.engine.methods import (
    DEFAULT_METHOD,
    METHODS,
    Method,
    checked,
    known_method,
    method_row,
    own_parts,
    settings_of,
    sized,
)
from recoup.engine.parts import GIVEN
from recoup.store.layout import Layout
from recoup.study.reader.batches import (
    LATER,
    as_far,
    batch_in_words,
    check_later,
    in_box,
    reaching_bounds,
    usual_batch,
)
from recoup.study.space import goals
from recoup.study.space.candidates import means_given, stds_given
from recoup.study.space.goals import GOAL, MAXIMIZE, Goal, goal_given, goal_of, turned_row
from recoup.study.space.limits import LIMITS, WITHIN, check_no_parameters, limits_given, limits_of
from recoup.study.space.parameters import (
    Parameter,
    check_new,
    check_unit,
    columns_of,
    of_table,
    parameter,
    plain,
    starts,
    units_of,
    with_units,
)
from recoup.study.space.parameters import checked as checked_parameters

RUN = "run"  # the plan, in the study of a run of `recoup train`
CHARTS = "charts"  # earlier bounds of the parameters, of a fork
UNITS, RETURN_UNIT = "units", "return_unit"  # of parameters by name, and of returns: for people
OF_RESULTS = (RETURN_UNIT, *goals.ENDS, LIMITS, WITHIN)  # settings, which a fork has too
ROW = "row"  # of a method that is not in our table
DEFAULTS = "defaults"  # settings that may have no effect on the method
STEPPING = ("update", "epsilon", "kl")  # settings of an update rule, whose memory is its own


def method_of(settings: Settings, parts: Settings | None = None) -> Method:
    """The method's row as the study was made with it, whatever its defaults are today.

    `parts` are functions and objects that only Python can give; where one is missing, the row has
    the method's own in its place, and `missing_parts` names it. What failing costs is as it is
    computed with: larger is better.
    """
    row = _row_of(settings)
    own = {key: settings[key] for key in settings_of(row) if key in settings}
    for key in [key for key, value in own.items() if _is_python(value)]:
        del own[key]
        if parts and key in parts:
            own[key] = parts[key]
    return turned_row(checked(replace(row, **own)), goal_of(settings).sign)


def _row_of(settings: Settings) -> Method:
    """The row that a study was made of, before its settings."""
    return known_method(settings["method"]) if ROW not in settings else Method(**settings[ROW])


def of_the_problem(row: Method) -> Plain:
    """What another method takes over, for the same results: what drew them, what failing costs.

    Where nobody has said what it costs, a method has its own way with failures.
    """
    said = row.failure not in (AVOID, CENSORED)
    return {"family": row.family, **({"failure": row.failure} if said else {})}


def missing_parts(settings: Settings, parts: Settings) -> dict[str, str]:
    """The parts that only Python can give and that were not given, by the text of each.

    A mover is the whole method, and is given as that.
    """
    found = {
        key: value["python"]
        for key, value in settings.items()
        if _is_python(value) and key not in parts
    }
    if found.get("direction") == settings["method"]:
        found["method"] = found.pop("direction")
    return found


def without_other_families(settings: Settings, parts: Settings) -> Plain:
    """The parts, but for a family of another name than the study's: it would misread its file."""
    mine: Chosen = settings.get("family")
    other = "family" in parts and _is_python(mine) and mine["python"] != _text(parts["family"])
    return {key: value for key, value in parts.items() if not (other and key == "family")}


def is_part(key: str, value: Given) -> bool:
    """Whether a setting is a part of a method that only Python can give."""
    return key in GIVEN and not isinstance(value, (str, type(None)))


def parts_given(given: Settings) -> Plain:
    """The parts of a method that a user gives, one by one or with a row of their own."""
    row = given.get("method")
    own = {} if row is None or isinstance(row, str) else own_parts(known_method(row))
    return {**own, **{key: value for key, value in given.items() if is_part(key, value)}}


def plain_method(row: Method) -> Plain:
    """The settings of a method's row, as JSON can hold them: an object by its text."""
    own = {key: getattr(row, key) for key in settings_of(row)}
    plain = {key: {"python": _text(v)} if is_part(key, v) else v for key, v in own.items()}
    ours = METHODS.get(row.name)
    if ours is None or (ours.space, ours.direction) != (row.space, row.direction):  # the user's own
        words = {"name": row.name, "summary": row.summary, "space": row.space}
        kept = row.direction if isinstance(row.direction, str) else "gradient"
        plain[ROW] = {
            **words,
            "direction": kept,
            "update": "whole" if kept in ("em", "fit") else "normalised",
        }
    return plain


def layout_of(settings: Settings, row: Method) -> Layout:
    """What a sample of the study is made of."""
    horizon = settings["horizon"] if row.space == "actions" else None
    actions = settings.get("actions", 1)
    return Layout(settings["dim"], len(settings["std"]), horizon, actions)


def parameters_in(settings: Settings) -> tuple[Parameter, ...]:
    """The named parameters of a study, with their units; none where they have no names."""
    found = [Parameter(**row) for row in settings.get("params", ())]
    return tuple(with_units(found, settings.get(UNITS)))


def charts_of(settings: Settings) -> list[tuple[Parameter, ...]]:
    """The bounds and scales, other than its own, under which results of the study were drawn."""
    found = [tuple(Parameter(**row) for row in rows) for rows in settings.get(CHARTS, ())]
    if any(len(columns_of(parameters)) != settings["dim"] for parameters in found):
        raise ValueError("earlier bounds of another number of parameters")
    return found


def check_settings(settings: Settings, row: Method) -> None:
    """Raises unless settings from a file are such as a study of a row can have been made with."""
    dim = check_count("dim", settings["dim"])
    check_count("batch", settings["batch"])
    check_later(settings)
    check_count("seed", settings["seed"], least=0)
    stds = check_count("actions", settings["actions"]) if row.space == "actions" else dim
    for key, length in (("mean", dim), ("std", stds)):
        check_shape(key, settings[key], "[D]", (length,))
        check_finite(key, settings[key])
    check_stds("std", settings["std"])
    limits_of(settings)
    parameters = parameters_in(settings)
    if parameters and len(columns_of(parameters)) != dim:
        raise ValueError(f"{len(columns_of(parameters))} named numbers of {dim}")
    if not isinstance(settings.get(RUN, {}), Mapping):
        raise ValueError("the plan of its run is none")
    if RETURN_UNIT in settings:
        check_unit("returns", settings[RETURN_UNIT])
    if row.space == "actions":
        check_count("horizon", settings["horizon"])
        check_between("discount", settings["discount"], 0.0, 1.0)


def resolved(given: Settings, goal: Goal = MAXIMIZE) -> Plain:
    """All settings of a new study, every one checked, as plain values; `goal` unless they say."""
    method = given.get("method", DEFAULT_METHOD)
    found = reaching_bounds(method, parameters_given(given.get("params")))
    return as_said({**given, "params": found} if found else given, goal)


def as_said(given: Settings, goal: Goal = MAXIMIZE) -> Plain:
    """The same, its parameters searched as far beyond their bounds as they say."""
    check_new(parameters_given(given.get("params")))
    found = _completed(given, goal)
    check_start(found["mean"], found["std"])
    check_no_parameters(limits_of(found), parameters_given(found.get("params")))
    return found


def _completed(given: Settings, goal: Goal) -> Plain:
    """All settings as they are said, their start unchecked."""
    said, given = goal_given(given)
    parameters = with_units(parameters_given(given.pop("params", None)), given.pop(UNITS, None))
    return_unit, ends = given.pop(RETURN_UNIT, None), goals.ends_given(given)
    limits = given.pop(LIMITS, None), given.pop(WITHIN, None)
    dim = _dim(given.pop("dim", None), parameters)
    method = given.pop("method", DEFAULT_METHOD)
    batch, later = given.pop("batch", None), given.pop(LATER, None)
    seed = check_count("seed", given.pop("seed", 0), least=0)
    mean, std = given.pop("mean", None), given.pop("std", None)
    shape = [given.pop(key, None) for key in ("horizon", "actions", "discount")]
    box = in_box(method, parameters)
    defaults = {**(box.settings if box else {}), **(given.pop(DEFAULTS, None) or {})}
    row = sized(method_row(method, defaults, **given), dim)
    if batch is None:
        batch, later = usual_batch(row, dim, parameters, box)
    batch = check_count("batch", batch)
    if row.mirrored and batch % 2:
        raise InputError(f"batch must be even for mirrored sampling, got {batch}.")
    episode = episode_of(row, dim, *shape)
    if episode is not None and parameters:
        raise InputError(f"{row.name} searches a linear policy: its parameters have no names.")
    if episode is not None:
        check_count("horizon", episode.horizon, most=SAMPLE_NUMBERS // (dim // episode.actions + 2))
    found: Plain = {"method": row.name, "dim": dim, "batch": batch, "seed": seed}
    found |= {} if episode is None else episode._asdict()
    stds = found.get("actions", dim)
    found |= {} if later is None else {LATER: later}
    start = (mean, std, 1.0 if box is None else box.std)
    found["mean"], found["std"] = _start(parameters, dim, stds, *start)
    if parameters:
        found["params"] = plain(parameters)
    if units := units_of(parameters):
        found[UNITS] = units
    found |= {} if return_unit is None else {RETURN_UNIT: check_unit("returns", return_unit)}
    found |= ends | limits_given(*limits, row)
    if (said or goal) != MAXIMIZE:
        found[GOAL] = (said or goal).word
    return found | plain_method(row)


def check_same(path: Path, settings: Settings, given: Settings) -> None:
    """Raises where settings differ from those that the study in `path` was made with."""
    said, given = goal_given(given)
    goal = goal_of(settings)
    if said is not None and said != goal:
        raise InputError(
            f"the study in {path} holds {goal.nouns}: {goal.better} (direction={goal.word!r}, not "
            f"{said.word!r}). `fork` it with the other direction to take what was told the other "
            "way, into a new file."
        )
    if not given:
        return
    keys = ("dim", "method", "batch", "seed", "params", "horizon", "actions", "discount")
    made = {key: settings[key] for key in (*keys, *OF_RESULTS) if key in settings}
    if "params" in given:  # which say how many there are
        made.pop("dim")
    if ROW in settings:
        made["method"] = Method(**settings[ROW])
    asked = as_said({**made, **_as_made(settings, given)}, goal)
    if UNITS in asked:  # what has one must have the same; where none is said, the file's stays
        asked[UNITS] = {**settings.get(UNITS, {}), **asked[UNITS]}
    if LATER in settings and "batch" in given:
        raise InputError(
            f"the study in {path} was made with a batch that grows, {batch_in_words(settings)}: "
            "leave batch out to go on, or start another study in another file."
        )
    for key in (*given, *asked.keys() & {UNITS}, *_said_by(given.get("method"))):
        mine, other = settings.get(key), asked.get(key)
        if mine != other:
            shown = other if key == "method" or _is_python(other) else given.get(key, other)
            by_row = key not in given and isinstance(given.get("method"), Method)
            raise InputError(
                f"the study in {path} was made with {key}={_short(mine)}, not {_short(shown)}: "
                f"{f'give {key} beside your row' if by_row else 'leave it out'} to go on, or start "
                "another study in another file."
            )


def _as_made(settings: Settings, given: Settings) -> Settings:
    """What is given, its parameters searched as far beyond their bounds as the file's, unsaid."""
    asked = as_far(parameters_given(given.get("params")), settings.get("params", ()))
    return {**given, "params": asked} if asked else given


def _said_by(method: Chosen) -> tuple[str, ...]:
    """The settings that a row of a user's says; a mover is the whole step, and says no more."""
    if isinstance(method, Method):
        return settings_of(method)
    return () if method is None or isinstance(method, str) else ("direction",)


def _short(value: Given) -> str:
    text = value["python"] if _is_python(value) else repr(value)
    return text if len(text) < 80 else text[:77] + "..."


def _is_python(value: Given) -> bool:
    return isinstance(value, dict) and set(value) == {"python"}


def _text(part: Chosen) -> str:
    """A function or object of Python, as a person would name it."""
    name = getattr(part, "__qualname__", None) or getattr(part, "name", None)
    return name.rpartition(".")[2] if isinstance(name, str) else type(part).__name__


def parameters_given(given: Given) -> list[Parameter]:
    """Parameters as a user gives them: a mapping of names to bounds, or a list."""
    if given is None:
        return []
    if isinstance(given, Mapping):
        return checked_parameters([_one(name, how) for name, how in given.items()])
    listed = hasattr(given, "__iter__") and getattr(given, "shape", None) != ()
    if isinstance(given, str) or not listed:
        raise InputError(f"params must be a mapping of names to bounds, got {shortly(given)}.")
    return checked_parameters([_listed(row) for row in given])


def _listed(row: Given) -> Parameter:
    if isinstance(row, Parameter):
        return row
    if isinstance(row, str):
        return parameter(row)
    if not isinstance(row, Mapping) or "name" not in row:
        raise InputError(f"a parameter is a name, or a mapping with one, got {shortly(row)}.")
    return of_table(row["name"], {key: value for key, value in row.items() if key != "name"})


def _one(name: str, how: Given) -> Parameter:
    if how is None:
        return Parameter(name)
    if isinstance(how, Mapping):
        return of_table(name, how)
    if isinstance(how, (tuple, list)) and how and all(isinstance(x, str) for x in how):
        return Parameter(name, choices=tuple(how))
    if not isinstance(how, (tuple, list)) or len(how) not in (2, 3):
        raise InputError(
            f"the parameter {shortly(name)} takes None, (low, high), (low, high, scale) or a list "
            f"of choices, got {shortly(how)}."
        )
    return Parameter(name, *how)


def _dim(dim: Given, parameters: list[Parameter]) -> int:
    if not parameters:
        return check_count("dim", dim, most=SAMPLE_NUMBERS)
    numbers = len(columns_of(parameters))
    if dim is not None and check_count("dim", dim) not in (len(parameters), numbers):
        raise InputError(f"dim is {dim}, but {len(parameters)} parameters are named.")
    return numbers


def _start(
    parameters: list[Parameter], dim: int, stds: int, mean: Given, std: Given, usual: float
) -> tuple[list[float], list[float]]:
    """Latent means `[D]` and standard deviations at the start, `usual` ones unless given."""
    alike = std is not None and not isinstance(std, Mapping) and np.ndim(std) == 0
    means, spread = [0.0] * dim, [usual] * stds
    if parameters:
        means, spread = starts(parameters, std if alike else usual)
    if mean is not None:
        means = means_given(parameters, mean, means).tolist()
    if std is not None:
        found = stds_given(parameters, std, spread, "D" if stds == dim else "A")
        spread = spread if parameters and alike else found.tolist()
    return list(map(float, means)), list(map(float, spread))

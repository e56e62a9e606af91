"""The settings of a study: all of them, checked and resolved, as a file can hold them."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from recoup.checks import (
    InputError,
    check_between,
    check_count,
    check_finite,
    check_shape,
    check_stds,
    check_vector,
)
from recoup.engine.methods import DEFAULT_METHOD, Method, method_row, settings_of
from recoup.store.layout import Shape
from recoup.study.parameters import (
    Parameter,
    checked,
    of_table,
    parameter,
    plain,
    starts,
    to_latent,
)

RUN = "run"  # the plan, in the study of a run of `recoup train`
LARGEST_SEED = 2**63 - 1


def method_of(settings: Mapping[str, Any]) -> Method:
    """The method's row as the study was made with it, whatever its defaults are today."""
    own = {key: settings[key] for key in settings_of(settings["method"])}
    if isinstance(own.get("update"), dict):  # given in Python: see `update_of_python`
        own["update"] = "normalised"
    return method_row(settings["method"], **own)


def shape_of(settings: Mapping[str, Any]) -> Shape:
    """What a sample of the study is made of."""
    horizon = settings["horizon"] if method_of(settings).space == "actions" else None
    actions = settings.get("actions", 1)
    return Shape(settings["dim"], len(settings["std"]), horizon, actions)


def check_settings(settings: Mapping[str, Any]) -> None:
    """Raises unless settings from a file are such as a study can have been made with."""
    dim = check_count("dim", settings["dim"])
    check_count("batch", settings["batch"])
    check_count("seed", settings["seed"], least=0)
    row = method_of(settings)
    stds = check_count("actions", settings["actions"]) if row.space == "actions" else dim
    for key, length in (("mean", dim), ("std", stds)):
        check_shape(key, settings[key], "[D]", (length,))
        check_finite(key, settings[key])
    check_stds("std", settings["std"])
    if row.space == "actions":
        check_count("horizon", settings["horizon"])
        check_between("discount", settings["discount"], 0.0, 1.0)


def update_of_python(settings: Mapping[str, Any]) -> str | None:
    """The text of an update rule that only Python can make again, if the study has one."""
    update = settings.get("update")
    return update["python"] if isinstance(update, dict) else None


def check_named_update(settings: Mapping[str, Any], changes: Mapping[str, Any]) -> None:
    """Raises where an update rule that only Python can make would be needed again."""
    if update_of_python(settings) is not None and "update" not in changes:
        raise InputError(
            "the update rule of this study was given in Python: name another, update='normalised' "
            "or update='natural'."
        )


def plain_method(row: Method) -> dict[str, Any]:
    """The settings of a method's row, as JSON can hold them."""
    own = {key: getattr(row, key) for key in settings_of(row.name)}
    if "update" in own and not isinstance(own["update"], str):
        own["update"] = {"python": repr(own["update"])}
    return own


def resolved(given: Mapping[str, Any]) -> dict[str, Any]:
    """All settings of a new study, every one checked, as plain values."""
    given = dict(given)
    parameters = _parameters(given.pop("params", None))
    dim = _dim(given.pop("dim", None), parameters)
    name = given.pop("method", DEFAULT_METHOD)
    batch = check_count("batch", given.pop("batch", 10))
    seed = check_count("seed", given.pop("seed", 0), least=0)
    if seed > LARGEST_SEED:
        raise InputError(f"seed must be at most {LARGEST_SEED}, got {seed}.")
    mean, std = given.pop("mean", None), given.pop("std", None)
    episode = {key: given.pop(key, None) for key in ("horizon", "actions", "discount")}
    row = method_row(name, **given)
    if not isinstance(row.update, str):
        raise InputError(
            "the update of a study must be 'normalised' or 'natural': a file cannot hold another."
        )
    if row.mirrored and batch % 2:
        raise InputError(f"batch must be even for mirrored sampling, got {batch}.")
    found: dict[str, Any] = {"method": name, "dim": dim, "batch": batch, "seed": seed}
    if row.space == "actions":
        found |= _episode(row, dim, parameters, **episode)
    elif any(value is not None for value in episode.values()):
        raise InputError(
            f"horizon, actions and discount are for methods that explore in action space; {name} "
            "searches parameters, and sees only returns."
        )
    stds = found.get("actions", dim)
    found["mean"], found["std"] = _start(parameters, dim, stds, mean, std)
    if parameters:
        found["params"] = plain(parameters)
    return found | plain_method(row)


def _parameters(given: Any) -> list[Parameter]:
    if given is None:
        return []
    if isinstance(given, Mapping):
        return checked([_one(name, how) for name, how in given.items()])
    if isinstance(given, str) or not hasattr(given, "__iter__"):
        raise InputError(f"params must be a mapping of names to bounds, got {given!r}.")
    return checked([_listed(row) for row in given])


def _listed(row: Any) -> Parameter:
    if isinstance(row, Parameter):
        return row
    if isinstance(row, str):
        return parameter(row)
    if not isinstance(row, Mapping) or "name" not in row:
        raise InputError(f"a parameter is a name, or a mapping with one, got {row!r}.")
    return of_table(row["name"], {key: value for key, value in row.items() if key != "name"})


def _one(name: str, how: Any) -> Parameter:
    if how is None:
        return Parameter(name)
    if isinstance(how, Mapping):
        return of_table(name, how)
    if not isinstance(how, (tuple, list)) or len(how) not in (2, 3):
        raise InputError(
            f"the parameter {name!r} takes None, (low, high) or (low, high, scale), got {how!r}."
        )
    return Parameter(name, *how)


def _dim(dim: Any, parameters: list[Parameter]) -> int:
    if not parameters:
        return check_count("dim", dim)
    if dim not in (None, len(parameters)):
        raise InputError(f"dim is {dim}, but {len(parameters)} parameters are named.")
    return len(parameters)


def _episode(
    row: Method, dim: int, parameters: list[Parameter], horizon: Any, actions: Any, discount: Any
) -> dict[str, Any]:
    if horizon is None:
        raise InputError(
            f"{row.name} explores in action space: give `horizon`, the steps of an episode."
        )
    if parameters:
        raise InputError(f"{row.name} searches a linear policy: its parameters have no names.")
    count = check_count("actions", 1 if actions is None else actions)
    if dim % count:
        raise InputError(f"dim must be features times actions, got {dim} with {count} actions.")
    return {
        "horizon": check_count("horizon", horizon),
        "actions": count,
        "discount": check_between("discount", 1.0 if discount is None else discount, 0.0, 1.0),
    }


def _start(
    parameters: list[Parameter], dim: int, stds: int, mean: Any, std: Any
) -> tuple[list[float], list[float]]:
    """Latent means `[D]` and standard deviations at the start."""
    first: tuple[Any, Any] = (0.0, 1.0)
    if parameters:
        first = starts(parameters, std if np.ndim(std) == 0 else None)
    if isinstance(mean, Mapping):
        mean = [mean.get(p.name) for p in parameters]
    if mean is not None:
        check_vector("mean", mean, dim)
        check_finite("mean", mean)
        mean = to_latent(parameters, np.broadcast_to(np.asarray(mean, float), (dim,)))
    if std is not None:
        check_vector("std", std, stds, "D" if stds == dim else "A")
        check_stds("std", std)
    means = first[0] if mean is None else mean
    spread = first[1] if std is None or (parameters and np.ndim(std) == 0) else std
    return (
        np.broadcast_to(np.asarray(means, float), (dim,)).tolist(),
        np.broadcast_to(np.asarray(spread, float), (stds,)).tolist(),
    )

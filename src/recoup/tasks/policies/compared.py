"""What a file says about a policy beside the environment of now: every door asks here.

A theta means something for one order of numbers only: where observations or actions are others than
those a policy was learned with, it is another policy.
"""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from recoup.checks import InputError
from recoup.core.types import Given, Plain, Settings
from recoup.tasks.policies.described import is_before, pairs_of, readable, space_described

ROLES = ("observations", "actions")
KINDS = {  # how a space is called, by what its description begins with
    "box": "Box",
    "discrete": "Discrete",
    "multi_discrete": "MultiDiscrete",
    "multi_binary": "MultiBinary",
    "dict": "Dict",
    "tuple": "Tuple",
}
PAGE = "docs/own-tasks.md, 'Files of before'"


def check_spaces(name: str, stored: Settings, now: Sequence[spaces.Space]) -> None:
    """Raises where the task `name` has other spaces `now` than a policy was learned with."""
    for role, space in zip(ROLES, now, strict=True):
        if role not in stored:  # a policy of the user's between spaces that no file can hold
            continue
        with readable():
            wrong = difference(stored[role], _described(space))
        if wrong is not None:
            raise InputError(
                f"the {role} of {name} are not those that the policy was learned with: {wrong}. "
                "Give the environment as it was then (task=..., --task), or train anew."
            )


def _described(space: spaces.Space) -> Plain:
    """A space as JSON can hold it, by its kind alone where it cannot."""
    try:
        return space_described(space)
    except InputError:
        return {type(space).__name__: None}


def difference(was: Given, now: Any, where: str = "") -> str | None:
    """What differs between two spaces that were described, in words; None where nothing does."""
    kinds = [
        next((word for key, word in KINDS.items() if key in one), next(iter(one)))
        for one in (was, now)
    ]
    if kinds[0] != kinds[1]:
        return _changed(where, "kind", *kinds)
    if "dict" in now:
        return _between_dicts(dict(pairs_of(was)), dict(pairs_of(now)), where)
    if "tuple" in now:
        return _between_tuples(was["tuple"], now["tuple"], where)
    facts = _facts(was), _facts(now)
    found = (_between_facts(facts[0][what], facts[1][what], what, where) for what in facts[1])
    return next(filter(None, found), None)


def _between_dicts(was: dict[Any, Any], now: dict[Any, Any], where: str) -> str | None:
    keys = [", ".join(map(repr, one)) for one in (was, now)]
    if was.keys() != now.keys():
        return _changed(where, "keys", *keys)
    if list(was) != list(now):
        order = ", ".join(f"({key!r}, ...)" for key in was)
        words = "order of keys, which says which parameter is whose,"
        return f"{_changed(where, words, *keys)} (spaces.Dict([{order}]) keeps the order of then)"
    found = (difference(was[key], now[key], f"{where}[{key!r}]") for key in now)
    return next(filter(None, found), None)


def _between_tuples(was: list[Any], now: list[Any], where: str) -> str | None:
    if len(was) != len(now):
        return _changed(where, "number of parts", len(was), len(now))
    parts = enumerate(zip(was, now, strict=True))
    return next(filter(None, (difference(*pair, f"{where}[{i}]") for i, pair in parts)), None)


def _facts(plain: Settings) -> Plain:
    """What there is to say about a space without parts."""
    kind = {"dtype": plain.get("dtype", "int64")}
    if "box" in plain:
        bounds = {f"{k} bound": [float(x) for x in plain["box"][k]] for k in ("low", "high")}
        return {"shape": f"{plain['shape']}", **kind, **bounds}
    if "discrete" in plain:
        return {"number of choices": plain["discrete"], "start": plain["start"], **kind}
    if "multi_discrete" in plain:
        counts = plain["multi_discrete"]
        return {"numbers of choices": counts["nvec"], "start": counts["start"], **kind}
    return {"shape": f"{plain['multi_binary']}"}


def _between_facts(was: Given, now: Any, what: str, where: str) -> str | None:
    if isinstance(now, str) or np.shape(was) != np.shape(now):
        return None if was == now else _changed(where, what, was, now)
    old, new = np.ravel(was).astype(float), np.ravel(now).astype(float)
    apart = np.flatnonzero(~np.isclose(old, new, rtol=1e-6, atol=1e-12))  # bounds are computed
    if not len(apart):
        return None
    i = int(apart[0])
    return _changed(where, what if len(new) == 1 else f"{what} {i}", f"{old[i]:g}", f"{new[i]:g}")


def _changed(where: str, what: str, was: Given, now: Any) -> str:
    place = f" of {where}" if where else ""
    then, today = ("were", "are") if what == "keys" else ("was", "is")
    return f"the {what}{place} {then} {was} and {today} {now} now"


def warn_of_before(name: str, stored: Settings) -> None:
    """Warns of a run that an earlier version may have gone on with by another policy."""
    space = stored.get("observations")
    if space is not None and any(not is_sorted(one) for one in _dicts_of_before(space)):
        warnings.warn(
            f"{name} was begun by an earlier version of recoup, which after a stop took what is "
            "observed in another order: its order of then is used now, but results that were told "
            f"after a resume are of another policy. {PAGE}, says how to find and mend them.",
            stacklevel=2,
        )


def order_of_now(path: Any, stored: Settings, now: Sequence[spaces.Space] | None) -> Settings:
    """The description in a policy's file of before, in the order of the environment where there is.

    A policy of a run that had been loaded was saved with all keys sorted, whatever their order. So
    sorted keys may be wrong, and are the environment's if these differ; others are as in training.
    """
    space = stored.get("observations")
    before = [] if space is None else _dicts_of_before(space)
    if not before or not all(map(is_sorted, before)):
        return stored
    if now is None:
        warnings.warn(
            f"{path} is of an earlier version of recoup, and the keys of its Dict are sorted: if "
            "those of the environment are not, and it was saved by a run that had been loaded or "
            "resumed, it is another policy. Give the environment to make sure: "
            f"load_policy(..., task=...). {PAGE}, says more.",
            stacklevel=3,
        )
        return stored
    mended = _reordered(space, _described(now[0]))
    if difference(space, mended) is not None:
        warnings.warn(
            f"{path} is of an earlier version of recoup and has the keys of what is observed "
            "sorted, which those of the environment are not: its order is used. Save it anew; if "
            f"its run had been resumed, see {PAGE}.",
            stacklevel=3,
        )
    return {**stored, "observations": mended}


def _dicts_of_before(plain: Settings) -> list[list[Any]]:
    """Keys of every `Dict` in a space that an earlier version has described, two or more each."""
    if "tuple" in plain:
        return [keys for part in plain["tuple"] for keys in _dicts_of_before(part)]
    if "dict" not in plain:
        return []
    pairs = pairs_of(plain)
    mine = [[key for key, _ in pairs]] if is_before(plain) and len(pairs) > 1 else []
    return [*mine, *(keys for _, part in pairs for keys in _dicts_of_before(part))]


def is_sorted(keys: Sequence[Any]) -> bool:
    """Whether keys stand in the order that Gymnasium gives those of a plain mapping."""
    return list(keys) == sorted(keys)


def _reordered(was: Given, now: Any) -> Any:
    """A space of before with keys that were sorted in the order of another, where they agree."""
    if "tuple" in was and len(was["tuple"]) == len(now.get("tuple", ())):
        pairs = zip(was["tuple"], now["tuple"], strict=True)
        return {"tuple": [_reordered(*pair) for pair in pairs]}
    if "dict" not in was or "dict" not in now:
        return was
    old, new = dict(pairs_of(was)), dict(pairs_of(now))
    if old.keys() != new.keys():
        return was
    order = new if is_before(was) and is_sorted(list(old)) else old
    return {"dict": [[key, _reordered(old[key], new[key])] for key in order]}

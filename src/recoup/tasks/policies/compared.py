"""What a file says about a policy beside the environment of now: every door asks here.

A theta means something for one order of numbers only: where observations or actions are others than
those a policy was learned with, it is another policy.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from recoup.checks import InputError
from recoup.core.types import Given, Plain, Settings
from recoup.tasks.policies.described import pairs_of, readable, space_described

ROLES = ("observations", "actions")
KINDS = {  # how a space is called, by what its description begins with
    "box": "Box",
    "discrete": "Discrete",
    "multi_discrete": "MultiDiscrete",
    "multi_binary": "MultiBinary",
    "dict": "Dict",
    "tuple": "Tuple",
}


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

"""The version of a run's task and policy: where it differs, a theta earns another return."""

import hashlib
import json
from collections.abc import Mapping

from recoup.core.types import Given, Plain, Settings

PARTS = ("task", "options", "horizon", "discount", "policy", "episodes_per_trial")  # of a plan
SPACES = ("observations", "actions")  # of a policy


def version_of(run: Settings) -> str:
    """A short text that differs where a theta would be another policy, or earn another return."""
    policy = None if run["policy"] is None else _as_ever(run["policy"])
    text = json.dumps([{**run, "policy": policy}[part] for part in PARTS], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def stored_version(run: Settings) -> str:
    """The version of a run, as it would be today.

    That of a run of before did not tell orders of keys apart: it is made anew where they are not
    sorted, for the file has them in their order all the same.
    """
    version, policy = run.get("version", ""), run.get("policy")
    try:
        if version and policy and any(_is_unsorted_object(policy.get(key)) for key in SPACES):
            return version_of(run)
    except (
        AttributeError,
        KeyError,
        RecursionError,
        TypeError,
        ValueError,
    ):  # a file may hold anything
        pass
    return version


def _as_ever(policy: Settings) -> Plain:
    """A policy's description as it was written from the first version on, so that old runs match.

    An order of keys that is not sorted is told apart since.
    """
    if "bounds" not in policy:  # of the user's, by its name alone
        return {key: value for key, value in policy.items() if key not in SPACES}
    return {**policy, **{key: _space(policy[key]) for key in SPACES}}


def _space(plain: Settings) -> Settings:
    if "tuple" in plain:
        return {"tuple": [_space(part) for part in plain["tuple"]]}
    if "discrete" in plain:
        return {key: plain[key] for key in ("discrete", "start")}
    if "dict" not in plain:
        return plain
    pairs = [[key, _space(part)] for key, part in _pairs(plain)]
    return {"dict": dict(pairs) if _is_sorted([key for key, _ in pairs]) else pairs}


def _is_unsorted_object(plain: Settings | None) -> bool:
    """Whether a space has a `Dict` of before, an object of JSON, whose keys are not sorted."""
    if not plain or not ("dict" in plain or "tuple" in plain):
        return False
    parts = plain["tuple"] if "tuple" in plain else [part for _, part in _pairs(plain)]
    unsorted = "dict" in plain and not _is_sorted([key for key, _ in _pairs(plain)])
    mine = unsorted and isinstance(plain["dict"], Mapping)
    return mine or any(map(_is_unsorted_object, parts))


def _pairs(plain: Settings) -> list[Given]:
    parts = plain["dict"]
    return list(parts.items() if isinstance(parts, Mapping) else parts)


def _is_sorted(keys: list[Given]) -> bool:
    try:
        return keys == sorted(keys)
    except TypeError:  # of several kinds
        return False

"""The version of a run's task and policy: where it differs, a theta earns another return."""

import hashlib
import json

from recoup.core.types import Given, Plain, Settings

PARTS = ("task", "options", "horizon", "discount", "policy", "episodes_per_trial")  # of a plan
SPACES = ("observations", "actions")  # of a policy


def version_of(run: Settings) -> str:
    """A short text that differs where a theta would be another policy, or earn another return."""
    policy = None if run["policy"] is None else _as_counted(run["policy"])
    text = json.dumps([{**run, "policy": policy}[part] for part in PARTS], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _as_counted(policy: Settings) -> Plain:
    """What of a policy's description makes its version; sorted keys are an object of JSON."""
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
    pairs = [[key, _space(part)] for key, part in plain["dict"]]
    return {"dict": dict(pairs) if _is_sorted([key for key, _ in pairs]) else pairs}


def _is_sorted(keys: list[Given]) -> bool:
    try:
        return keys == sorted(keys)
    except TypeError:  # of several kinds
        return False

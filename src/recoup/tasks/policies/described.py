"""A policy of ours as plain JSON, and back: nothing of it is ever pickled."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces

from recoup.checks import InputError, check_count, shortly
from recoup.tasks.policies.adapters import adapted
from recoup.tasks.policies.networks import MLP, Kernels, Linear, Network
from recoup.tasks.policies.policy import Scale, SpacePolicy
from recoup.tasks.policies.spaces import inputs_of

NETWORKS = {"linear": Linear, "kernels": Kernels, "mlp": MLP}
ELSEWHERE = "elsewhere"  # the kind of one that only Python can give


def described(policy: Any) -> dict[str, Any]:
    """A policy as JSON can hold it; one of the user's by its name alone."""
    kinds = {network: kind for kind, network in NETWORKS.items()}
    if not isinstance(policy, SpacePolicy) or type(policy.network) not in kinds:
        network = policy.network if isinstance(policy, SpacePolicy) else policy
        return {"kind": ELSEWHERE, "name": type(network).__name__, **_frame(policy)}
    return {
        "kind": kinds[type(policy.network)],
        "network": dict(vars(policy.network)),
        **_frame(policy),
    }


def _frame(policy: Any) -> dict[str, Any]:
    """What lies around the network."""
    if not isinstance(policy, SpacePolicy):
        return {}
    return {
        "observations": space_described(policy.observations),
        "actions": space_described(policy.actions),
        "bounds": policy.bounds,
        "scale": None if policy.scale is None else policy.scale._asdict(),
    }


def restored(plain: Mapping[str, Any], given: Any = None) -> Any:
    """The policy that was described; `given` is the network or policy that only Python can give."""
    try:
        return _restored(plain, given)
    except InputError:
        raise
    except Exception as wrong:  # whatever a file may hold
        raise InputError(
            f"the description of the policy cannot be read: {type(wrong).__name__}: {wrong}."
        ) from None


def _restored(plain: Mapping[str, Any], given: Any) -> Any:
    if plain["kind"] == ELSEWHERE and given is None:
        raise InputError(
            f"its policy is {plain['name']}, an object of Python: give it again with policy=..."
        )
    observations = space_restored(plain["observations"]) if "bounds" in plain else None
    if plain["kind"] == ELSEWHERE and observations is not None:
        given = adapted(given, inputs_of(observations).size)
    if not isinstance(getattr(given, "parameters", 1), (int, np.integer)) or isinstance(given, str):
        raise InputError(
            f"its policy is {plain['name']}, an object of Python; got {shortly(given)}."
        )
    if observations is None:
        return given
    network = given if plain["kind"] == ELSEWHERE else _network(plain)
    scale = plain["scale"]
    return SpacePolicy(
        network,
        observations,
        space_restored(plain["actions"]),
        plain["bounds"],
        None if scale is None else Scale(tuple(scale["mean"]), tuple(scale["std"]), scale["seen"]),
    )


def _network(plain: Mapping[str, Any]) -> Network:
    made = NETWORKS[plain["kind"]](**{k: _tuples(v) for k, v in plain["network"].items()})
    check_count("its number of parameters", made.parameters)
    return made


def _tuples(value: Any) -> Any:
    return tuple(_tuples(part) for part in value) if isinstance(value, (list, tuple)) else value


def space_described(space: spaces.Space) -> dict[str, Any]:
    """A space as JSON can hold it; infinite bounds are words."""
    if isinstance(space, spaces.Box):
        bounds = {k: _words(getattr(space, k)) for k in ("low", "high")}
        return {"box": bounds, "shape": list(space.shape), "dtype": str(space.dtype)}
    if isinstance(space, spaces.Discrete):
        return {"discrete": int(space.n), "start": int(space.start)}
    if isinstance(space, spaces.MultiDiscrete):
        counts = {"nvec": space.nvec.tolist(), "start": np.asarray(space.start).tolist()}
        return {"multi_discrete": counts, "dtype": str(space.dtype)}
    if isinstance(space, spaces.MultiBinary):
        return {"multi_binary": list(space.shape)}
    if isinstance(space, spaces.Dict):
        return {"dict": {key: space_described(part) for key, part in space.items()}}
    if isinstance(space, spaces.Tuple):
        return {"tuple": [space_described(part) for part in space]}
    raise InputError(f"a space of the kind {type(space).__name__} cannot be written to a file.")


def space_restored(plain: Mapping[str, Any]) -> spaces.Space:
    """The space that was described."""
    if "box" in plain:
        shape, dtype = tuple(plain["shape"]), np.dtype(plain["dtype"])
        low, high = (
            np.array([float(x) for x in plain["box"][k]]).reshape(shape) for k in ("low", "high")
        )
        return spaces.Box(low.astype(dtype), high.astype(dtype), shape, dtype.type)
    if "discrete" in plain:
        return spaces.Discrete(plain["discrete"], start=plain["start"])
    if "multi_discrete" in plain:
        counts, dtype = plain["multi_discrete"], np.dtype(plain["dtype"])
        return spaces.MultiDiscrete(
            np.array(counts["nvec"]), dtype=dtype.type, start=np.array(counts["start"])
        )
    if "multi_binary" in plain:
        return spaces.MultiBinary(plain["multi_binary"])
    if "dict" in plain:
        return spaces.Dict({key: space_restored(part) for key, part in plain["dict"].items()})
    return spaces.Tuple([space_restored(part) for part in plain["tuple"]])


def _words(bounds: np.ndarray) -> list[Any]:
    return [x if np.isfinite(x) else str(x) for x in bounds.astype(float).ravel().tolist()]

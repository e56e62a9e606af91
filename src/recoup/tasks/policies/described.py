"""A policy of ours as plain JSON, and back: nothing of it is ever pickled.

A `Dict` is a list of pairs, for its order says which number of an observation is which.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from gymnasium import spaces

from recoup.checks import InputError, check_count, shortly
from recoup.core.types import Array, Given, Plain, Settings
from recoup.tasks.policies.adapters import adapted
from recoup.tasks.policies.environment_spaces import inputs_of
from recoup.tasks.policies.networks import MLP, Kernels, Linear, Network
from recoup.tasks.policies.policy import Policy, Scale, SpacePolicy

NETWORKS = {"linear": Linear, "kernels": Kernels, "mlp": MLP}
ELSEWHERE = "elsewhere"  # the kind of one that only Python can give


def described(policy: Policy, between: Sequence[spaces.Space] = ()) -> Plain:
    """A policy as JSON can hold it; one of the user's by its name, and the spaces it acts between.

    `between` are the spaces of observations and actions, where the policy does not hold them.
    """
    kinds = {network: kind for kind, network in NETWORKS.items()}
    if not isinstance(policy, SpacePolicy) or type(policy.network) not in kinds:
        network = policy.network if isinstance(policy, SpacePolicy) else policy
        frame = _frame(policy) or _seen(between)
        return {"kind": ELSEWHERE, "name": type(network).__name__, **frame}
    return {
        "kind": kinds[type(policy.network)],
        "network": dict(vars(policy.network)),
        **_frame(policy),
    }


def _frame(policy: Policy) -> Plain:
    """What lies around the network."""
    if not isinstance(policy, SpacePolicy):
        return {}
    return {
        "observations": space_described(policy.observations),
        "actions": space_described(policy.actions),
        "bounds": policy.bounds,
        "scale": None if policy.scale is None else policy.scale._asdict(),
    }


def _seen(between: Sequence[spaces.Space]) -> Plain:
    """The spaces around a policy of the user's, where files can hold them."""
    try:
        return {
            role: space_described(space)
            for role, space in zip(("observations", "actions"), between, strict=False)
        }
    except InputError:
        return {}


def restored(plain: Settings, given: Given = None) -> Policy:
    """The policy that was described; `given` is the network or policy that only Python can give."""
    with readable():
        return _restored(plain, given)


@contextmanager
def readable() -> Iterator[None]:
    """What goes wrong when the description of a policy is read, in a sentence."""
    try:
        yield
    except InputError:
        raise
    except Exception as wrong:  # whatever a file may hold
        raise InputError(
            f"the description of the policy cannot be read: {type(wrong).__name__}: {wrong}."
        ) from None


def _restored(plain: Settings, given: Given) -> Policy:
    observations = space_restored(plain["observations"]) if "bounds" in plain else None
    if plain["kind"] == ELSEWHERE:
        network: Given = _given_again(plain, given, observations)
    else:
        network = _network(plain, given)
    if observations is None:
        return network
    scale = plain["scale"]
    return SpacePolicy(
        network,
        observations,
        space_restored(plain["actions"]),
        plain["bounds"],
        None if scale is None else Scale(tuple(scale["mean"]), tuple(scale["std"]), scale["seen"]),
    )


def _given_again(plain: Settings, given: Given, observations: spaces.Space | None) -> Given:
    """The network or policy that only Python can give."""
    if given is None:
        raise InputError(
            f"its policy is {plain['name']}, an object of Python: give it again with policy=..."
        )
    if observations is not None:
        given = adapted(given, inputs_of(observations).size)
    if not isinstance(getattr(given, "parameters", 1), (int, np.integer)) or isinstance(given, str):
        raise InputError(
            f"its policy is {plain['name']}, an object of Python; got {shortly(given)}."
        )
    return given


def _network(plain: Settings, given: Given) -> Network:
    """The network that the file holds; the user may name its kind, and give no other."""
    kind = plain["kind"]
    if given is not None and not (isinstance(given, str) and given == kind):
        raise InputError(f"its policy is {kind}, which the file holds: leave policy= out.")
    made = NETWORKS[kind](**{k: _tuples(v) for k, v in plain["network"].items()})
    check_count("its number of parameters", made.parameters)
    return made


def _tuples(value: Given) -> Given:
    return tuple(_tuples(part) for part in value) if isinstance(value, (list, tuple)) else value


def space_described(space: spaces.Space) -> Plain:
    """A space as JSON can hold it; infinite bounds are words."""
    if isinstance(space, spaces.Box):
        bounds = {k: _words(getattr(space, k)) for k in ("low", "high")}
        return {"box": bounds, "shape": list(space.shape), "dtype": str(space.dtype)}
    if isinstance(space, spaces.Discrete):
        kind = {} if space.dtype == np.int64 else {"dtype": str(space.dtype)}
        return {"discrete": int(space.n), "start": int(space.start), **kind}
    if isinstance(space, spaces.MultiDiscrete):
        counts = {"nvec": space.nvec.tolist(), "start": np.asarray(space.start).tolist()}
        return {"multi_discrete": counts, "dtype": str(space.dtype)}
    if isinstance(space, spaces.MultiBinary):
        return {"multi_binary": list(space.shape)}
    if isinstance(space, spaces.Dict):
        return {"dict": [[_key(key), space_described(part)] for key, part in space.items()]}
    if isinstance(space, spaces.Tuple):
        return {"tuple": [space_described(part) for part in space]}
    raise InputError(f"a space of the kind {type(space).__name__} cannot be written to a file.")


def space_restored(plain: Settings) -> spaces.Space:
    """The space that was described."""
    if "box" in plain:
        shape, dtype = tuple(plain["shape"]), np.dtype(plain["dtype"])
        low, high = (_bounds(plain["box"][k], dtype).reshape(shape) for k in ("low", "high"))
        return spaces.Box(low, high, shape, dtype.type)
    if "discrete" in plain:
        dtype = np.dtype(plain.get("dtype", "int64"))
        return spaces.Discrete(plain["discrete"], start=plain["start"], dtype=dtype.type)
    if "multi_discrete" in plain:
        counts, dtype = plain["multi_discrete"], np.dtype(plain["dtype"])
        return spaces.MultiDiscrete(
            np.array(counts["nvec"]), dtype=dtype.type, start=np.array(counts["start"])
        )
    if "multi_binary" in plain:
        shape = tuple(plain["multi_binary"])
        return spaces.MultiBinary(shape[0] if len(shape) == 1 else shape)
    if "dict" in plain:  # from pairs: the keys of a plain mapping would be sorted
        return spaces.Dict([(key, space_restored(part)) for key, part in pairs_of(plain)])
    return spaces.Tuple([space_restored(part) for part in plain["tuple"]])


def pairs_of(plain: Settings) -> list[tuple[Given, Plain]]:
    """Keys and parts of a `Dict` that was described, in its order."""
    pairs = [(key, part) for key, part in plain["dict"]]
    if len(dict(pairs)) != len(pairs):
        raise InputError(f"the space of its policy has a key twice: {[key for key, _ in pairs]}.")
    return pairs


def _key(key: Any) -> Any:
    """A key of a `Dict`, once JSON gives it back as it was."""
    if not isinstance(key, (str, int, float, bool, type(None))):
        raise InputError(
            f"the key {key!r} of a Dict space cannot be written to a file: use a text or a number."
        )
    return key


def _words(bounds: np.ndarray) -> list[Any]:
    return [_word(x) for x in bounds.ravel().tolist()]


def _word(x: Array) -> Any:
    """A bound: a float, a word where it is infinite, a whole number where a float is not exact."""
    if isinstance(x, int) and int(float(x)) != x:
        return x
    return float(x) if np.isfinite(x) else str(float(x))


def _bounds(words: Any, dtype: np.dtype[Any]) -> np.ndarray:
    number = int if np.issubdtype(dtype, np.integer) else float
    return np.array([number(x) for x in words], dtype)

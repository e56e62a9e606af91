"""The learned policy as one plain file: a NumPy archive of arrays and a text, never a pickle.

`theta [D]`, the parameters; `policy`, a text in JSON; and what the policy gives on fixed
observations, which is compared once it is loaded: `fingerprint_outputs [T * K, O]`, and of one of
ours `fingerprint_inputs [5, I]`, the first of these observations as numbers. Of a module of another
library also its arrays, `weights/NAME`. docs/policy-file.md says it all, for those who read it
without Recoup.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

import numpy as np
from gymnasium import Space

from recoup.checks import InputError, check_path
from recoup.core.types import Array, Given, Plain, Settings
from recoup.outputs import Kind, Over, written
from recoup.tasks.own.host import spaces_of
from recoup.tasks.policies.adapters import is_module
from recoup.tasks.policies.compared import ROLES, check_spaces
from recoup.tasks.policies.described import described, readable, restored, space_restored
from recoup.tasks.policies.fingerprint import (
    OWN_ERROR,
    check_fingerprint,
    fingerprint,
    flattened,
    gave_the_same,
    is_same,
    thetas_beside,
)
from recoup.tasks.policies.policy import Act, Policy, SpacePolicy, beginner, words_of

FORMAT = 2
INPUTS, OUTPUTS = "fingerprint_inputs", "fingerprint_outputs"
WEIGHTS = "weights/"  # how the names of a module's arrays begin


def _is_policy(path: Path) -> bool:
    """Whether a file is a policy that was saved."""
    try:
        with ZipFile(path) as packed:
            return {"theta.npy", "policy.npy"} <= set(packed.namelist())
    except (BadZipFile, ValueError):
        return False


POLICY_KIND = Kind((".npz",), _is_policy)


class SavedPolicy:
    """A policy and its parameters: call it with an observation, and it gives the action.

    One with a memory carries it from call to call: `begin()` starts an episode anew.
    `Run.learned_policy` and `recoup.load_policy` give it.

    >>> policy = recoup.load_policy("pole.npz")
    >>> int(policy([0.0, 0.0, 0.0, 0.0])) in (0, 1)
    True
    """

    def __init__(self, policy: Policy, theta: np.ndarray, between: Sequence[Space] = ()) -> None:
        self.policy, self.theta, self._between = policy, theta, between
        self._begin = beginner(policy, theta)
        self._act: Act = self._begin()

    def begin(self) -> "SavedPolicy":
        """Starts an episode anew.

        >>> policy = recoup.load_policy("pole.npz").begin()
        """
        self._act = self._begin()
        return self

    def __call__(self, observation: Array) -> Array:
        """The action for an observation."""
        return self._act(observation)

    def save(self, path: str | Path, *, force: bool = False) -> Path:
        """Writes it to a plain file (.npz), which `recoup.load_policy` reads.

        An older policy at `path` is replaced; with `force` any other file but a study.

        Raises `InputError` where a file is in the way.

        >>> recoup.load_policy("pole.npz").save("again.npz").name
        'again.npz'
        """
        return save_policy(path, self.policy, self.theta, self._between, force=force)

    def network(self) -> Any:
        """The user's own kind of module with the learned weights in it, a copy.

        Of PyTorch, `flax.nnx` and Equinox a module of the same class, set to be used, not trained;
        of `flax.linen` the variables: `module.apply(policy.network(), x)`.

        Raises `InputError` where the policy is no such module.

        >>> recoup.load_policy("pole.npz").network()
        Traceback (most recent call last):
        ...
        recoup.checks.InputError: ...
        """
        network: Any = getattr(self.policy, "network", None)
        if not is_module(network):
            raise InputError(
                f"{words_of(self.policy)}: no module of PyTorch, Flax or Equinox; its weights are "
                "`theta`."
            )
        return network.holding(self.theta)

    def __repr__(self) -> str:
        return f"SavedPolicy({words_of(self.policy)})"


def save_policy(
    path: str | Path,
    policy: Policy,
    theta: np.ndarray,
    between: Sequence[Space] = (),
    *,
    force: bool = False,
) -> Path:
    """Writes a policy and its parameters; an older policy is replaced as a whole.

    `between` are the spaces of observations and actions, of a policy of the user's. With `force`
    any other file but a study is replaced too.
    """
    path = check_path("the policy's file", path)
    arrays = _arrays(policy, theta, between)
    with written(path, POLICY_KIND, Over(force)) as unfinished, unfinished.open("wb") as file:
        np.savez(file, **arrays)
    return path


def _arrays(policy: Policy, theta: np.ndarray, between: Sequence[Space]) -> Plain:
    """What the file of a policy holds."""
    theta, plain = np.asarray(theta, float), described(policy, between)
    text = json.dumps({"format": FORMAT, "policy": plain})
    arrays = {"theta": theta, "policy": np.array(text), **_weights(policy, theta)}
    return {key: np.asarray(x) for key, x in (arrays | _fingerprints(policy, theta, plain)).items()}


def is_saved(path: Path, policy: Policy, theta: np.ndarray, between: Sequence[Space]) -> bool:
    """Whether a file holds what `save_policy` would write: fingerprints as near as they need be."""
    try:
        with np.load(path, allow_pickle=False) as packed:
            found = {key: packed[key] for key in packed.files}
    except Exception:  # whatever a file may hold
        return False
    wanted = _arrays(policy, theta, between)
    gave, gives = found.pop(OUTPUTS, None), wanted.pop(OUTPUTS, None)
    if gave is None or gives is None:
        near = gave is gives
    else:
        near = gave_the_same(gave, gives, policy, between)
    same = found.keys() == wanted.keys()
    return near and same and all(np.array_equal(found[key], x) for key, x in wanted.items())


def _weights(policy: Policy, theta: np.ndarray) -> Plain:
    """The arrays of a module of the user's by name: it can be filled again without Recoup."""
    network: Any = getattr(policy, "network", None)
    if not is_module(network):
        return {}
    state = network.state(theta)
    return {f"{WEIGHTS}{name}": array for name, array in state.items()}


def _fingerprints(policy: Policy, theta: np.ndarray, plain: Settings) -> Plain:
    """What is compared after loading, as arrays."""
    if "observations" not in plain:
        return {}
    space = space_restored(plain["observations"])  # as it will be
    gave = fingerprint(policy, thetas_beside(theta), space)
    if gave is None:
        return {}
    inputs = {INPUTS: flattened(space)} if isinstance(policy, SpacePolicy) else {}
    return {**inputs, OUTPUTS: gave}


def load_policy(path: str | Path, policy: Given = None, *, task: Given = None) -> SavedPolicy:
    """The policy in a file, as a `SavedPolicy`.

    `path` is its file; `policy` is the object of Python that it was, if it was one.
    With `task`, the environment, what it observes and how it acts are compared with those that the
    policy was learned with.

    Raises `InputError` where the file cannot be read, was changed, or is of another environment.

    >>> policy = recoup.load_policy("pole.npz", task="CartPole-v1")
    >>> policy.theta.shape == (policy.policy.parameters,)
    True
    """
    path = check_path("the policy's file", path)
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            theta, plain = arrays["theta"], json.loads(str(arrays["policy"]))
            stored = {key: arrays[key] for key in (INPUTS, OUTPUTS) if key in arrays}
        version, description = plain.get("format"), plain.get("policy")
    except Exception as wrong:  # whatever a file may hold
        words = f"{type(wrong).__name__}: {wrong}"
        raise InputError(f"{path} cannot be read as a policy: {words}.") from None
    if version != FORMAT:
        raise InputError(f"{path} was written by another version of recoup.")
    name, now = (None, None) if task is None else spaces_of(task)
    if name is not None and now is not None:
        with readable():
            check_spaces(name, description, now)
    found = restored(description, policy)
    if theta.shape != (found.parameters,) or not np.isfinite(theta).all():
        raise InputError(
            f"{path} must hold {found.parameters} finite numbers for its policy, got the shape "
            f"{list(theta.shape)}."
        )
    with readable():
        between = [space_restored(description[role]) for role in ROLES if role in description]
        if between:
            _check_loaded(path, stored, found, theta, between)
    return SavedPolicy(found, theta, between)


def _check_loaded(
    path: Path, stored: Settings, policy: Policy, theta: np.ndarray, between: Sequence[Space]
) -> None:
    """Raises unless a policy is the one that was saved, as far as its fingerprint tells."""
    if INPUTS in stored:
        inputs = flattened(between[0])
        if not is_same(stored[INPUTS], inputs, OWN_ERROR):
            raise InputError(
                f"{path} cannot be trusted: a fixed observation becomes other numbers than when it "
                "was saved. It was changed, or this version of Gymnasium flattens in another way."
            )
    if OUTPUTS in stored:
        check_fingerprint(str(path), stored[OUTPUTS], policy, thetas_beside(theta), between)

"""The learned policy as one plain file: a NumPy archive of arrays and a text, never a pickle."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from recoup.checks import InputError, check_path
from recoup.tasks.policies.described import described, restored
from recoup.tasks.policies.policy import Act, beginner, words_of

FORMAT = 1


class SavedPolicy:
    """A policy and its parameters: call it with an observation, and it gives the action.

    One with a memory carries it from call to call: `begin()` starts an episode anew.
    """

    def __init__(self, policy: Any, theta: np.ndarray) -> None:
        self.policy, self.theta = policy, theta
        self._begin = beginner(policy, theta)
        self._act: Act = self._begin()

    def begin(self) -> "SavedPolicy":
        """Starts an episode anew."""
        self._act = self._begin()
        return self

    def __call__(self, observation: Any) -> Any:
        """The action for an observation."""
        return self._act(observation)

    def __repr__(self) -> str:
        return f"SavedPolicy({words_of(self.policy)})"


def save_policy(path: str | Path, policy: Any, theta: np.ndarray) -> Path:
    """Writes a policy and its parameters; a file that is there is replaced as a whole."""
    path = check_path("the policy's file", path)
    text = json.dumps({"format": FORMAT, "policy": described(policy)})
    unfinished = path.with_name(f".{path.name}.new")
    with unfinished.open("wb") as file:
        np.savez(file, theta=np.asarray(theta, float), policy=np.array(text))
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)
    return path


def load_policy(path: str | Path, policy: Any = None) -> SavedPolicy:
    """The policy in a file; `policy` is the object of Python that it was, if it was one."""
    path = check_path("the policy's file", path)
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            theta, plain = arrays["theta"], json.loads(str(arrays["policy"]))
        version, description = plain.get("format"), plain.get("policy")
    except Exception as wrong:  # whatever a file may hold
        words = f"{type(wrong).__name__}: {wrong}"
        raise InputError(f"{path} cannot be read as a policy: {words}.") from None
    if version != FORMAT:
        raise InputError(f"{path} was written by another version of recoup.")
    found = restored(description, policy)
    if theta.shape != (found.parameters,) or not np.isfinite(theta).all():
        raise InputError(
            f"{path} must hold {found.parameters} finite numbers for its policy, got the shape "
            f"{list(theta.shape)}."
        )
    return SavedPolicy(found, theta)

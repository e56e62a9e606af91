"""A policy as a file for other programs: of NumPy, ONNX or TorchScript, told by its ending."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from recoup.checks import InputError
from recoup.tasks.policies.files import SavedPolicy
from recoup.tasks.policies.onnx_file import onnx_bytes
from recoup.tasks.policies.torch_file import torchscript_bytes

NPZ, ONNX, TORCHSCRIPT = ".npz", ".onnx", ".pt"
FORMS: dict[str, Callable[[Any, np.ndarray], bytes] | None] = {
    NPZ: None,  # which `SavedPolicy` writes itself
    ONNX: onnx_bytes,
    TORCHSCRIPT: torchscript_bytes,
}


def export_policy(policy: SavedPolicy, path: str | Path, *, force: bool = False) -> Path:
    """Writes a policy to a new file, in the form of its ending: .npz, .onnx or .pt.

    Nothing is written over, unless by `force`; what is there stays whole until the new one is.
    """
    path = Path(path)
    _check_place(path, force)
    form = FORMS[path.suffix]
    if form is None:
        return policy.save(path)
    content = form(policy.policy, policy.theta)
    unfinished = path.with_name(f".{path.name}.new")
    with unfinished.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)
    return path


def _check_place(path: Path, force: bool) -> None:
    """Raises unless a file of a form that we know can be written there."""
    if path.suffix not in FORMS:
        raise InputError(f"{path} must end in {', '.join(FORMS)}: that says what is written.")
    if path.is_dir():
        raise InputError(f"{path} is a directory: name a file in it.")
    if not path.absolute().parent.is_dir():
        raise InputError(f"{path.parent} does not exist: make it, or name another place.")
    if not force and (path.exists() or path.is_symlink()):
        raise InputError(
            f"{path} exists already: name another, or write over it with --force (in Python "
            "force=True)."
        )

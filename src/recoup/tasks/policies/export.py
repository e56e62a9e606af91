"""A policy as a file for other programs: of NumPy, ONNX or TorchScript, told by its ending."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from recoup.checks import check_path
from recoup.outputs import Kind, Over, check_output, written
from recoup.tasks.policies.onnx_file import onnx_bytes
from recoup.tasks.policies.policy import Policy
from recoup.tasks.policies.policy_files import SavedPolicy
from recoup.tasks.policies.torch_file import torchscript_bytes

NPZ, ONNX, TORCHSCRIPT = ".npz", ".onnx", ".pt"
FORMS: dict[str, Callable[[Policy, np.ndarray], bytes] | None] = {
    NPZ: None,  # which `SavedPolicy` writes itself
    ONNX: onnx_bytes,
    TORCHSCRIPT: torchscript_bytes,
}


KIND = Kind(tuple(FORMS), lambda path: False, once=True)  # somebody may have deployed it


def export_policy(policy: SavedPolicy, path: str | Path, *, force: bool = False) -> Path:
    """Writes a policy to a new file, in the form of its ending: .npz, .onnx or .pt.

    Nothing is written over, unless by `force`; what is there stays whole until the new one is.
    """
    path = check_path("the file of the policy", path)
    check_output(path, KIND, Over(force))
    form = FORMS[path.suffix.lower()]
    if form is None:
        return policy.save(path, force=force)
    content = form(policy.policy, policy.theta)
    with written(path, KIND, Over(force)) as unfinished:
        unfinished.write_bytes(content)
    return path

"""`recoup export-policy`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from recoup.checks import InputError, printable
from recoup.cli.app import JsonOption, app, argument, examples, option, print_json
from recoup.cli.parsing import WhichOption, which_of

if TYPE_CHECKING:
    from recoup.tasks.policies.policy_files import SavedPolicy

EXPORT_EXAMPLES = examples(
    "export-policy runs/CartPole-v1-recoup-0",
    "export-policy runs/CartPole-v1-recoup-0 --onnx",
    "export-policy runs/CartPole-v1-recoup-0 --torchscript robot.pt --which best",
    "export-policy runs/mine --torchscript --policy my_module:Net",
)
TAKEN = """
[bold]What they take[/]

The observation as the environment gives it, one at a time: with ONNX Runtime \
session.run(None, {"observation": x}), which gives a list with the action. Of a Dict every part is \
an input by its key, of a Tuple by its place, of parts of parts by both (arm.0), each in the type \
of its space. TorchScript takes the same as tensors, in the order of the space. Scaling, bounds \
and choices are inside. A policy.npz runs in NumPy: docs/policy-file.md.
"""


@app.command("export-policy", epilog=EXPORT_EXAMPLES + TAKEN)
def export_policy(
    run: Annotated[Path, argument("A run directory.", "RUN")],
    file: Annotated[
        Path | None, argument("A new file (policy.npz, .onnx or .pt here unless said).", "FILE")
    ] = None,
    onnx: Annotated[bool, option("--onnx", "For ONNX Runtime; needs the package onnx.")] = False,
    torchscript: Annotated[bool, option("--torchscript", "For libtorch; needs PyTorch.")] = False,
    which: WhichOption = "last",
    policy: Annotated[
        str | None,
        option(
            "The run's policy or network again, where it is code: module:name, itself or "
            "what makes it.",
            metavar="POLICY",
        ),
    ] = None,
    force: Annotated[bool, option("--force", "Write over a file.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Write a learned policy for other programs: plain NumPy, ONNX or TorchScript."""
    ending = _ending(onnx, torchscript)
    path = file or Path(f"policy{ending}")
    if path.suffix != ending:
        option = {".onnx": " with --onnx", ".pt": " with --torchscript"}.get(ending, "")
        raise InputError(f"{path} must end in {ending}{option}.{_hint(path)}")
    from recoup.runs.kept import chosen_move
    from recoup.runs.run import load
    from recoup.tasks.own.found import imported_policy

    loaded = load(run, policy=None if policy is None else imported_policy(policy))
    number = which_of(which)
    written = loaded.export_policy(path, number, force=force)
    move, moves = chosen_move(loaded.history, number), loaded.history[-1].iteration
    if as_json:
        print_json({"policy": written, "iteration": move, "iterations": moves})
        return
    print(written)
    words = f"the mean policy after iteration {move} of {moves}"
    print(printable(f"{words}{_takes(loaded.learned_policy(number))}"), file=sys.stderr)


def _ending(onnx: bool, torchscript: bool) -> str:
    if onnx and torchscript:
        raise InputError("give --onnx or --torchscript, not both.")
    return ".onnx" if onnx else ".pt" if torchscript else ".npz"


def _hint(path: Path) -> str:
    known = {".onnx": "--onnx", ".pt": "--torchscript"}
    return f" For {path.suffix} give {known[path.suffix]}." if path.suffix in known else ""


def _takes(saved: "SavedPolicy") -> str:
    """What a policy takes and gives, by the names of its parts."""
    from recoup.tasks.policies.leaves import leaves

    policy: Any = saved.policy
    if not hasattr(policy, "observations"):
        return ""
    parts = [f"{one.name} {one.dtype}{list(one.shape)}" for one in leaves(policy.observations)]
    return f": {', '.join(parts)} -> {policy.actions}"

"""The run directory: `study.db`, the truth; what lies beside it, for people.

`config.json` (settings), `curve.png`, of an environment `policy.npz` (the policy to deploy), and
`tensorboard/` where tensorboardX is installed.
"""

import json
import os
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from recoup.checks import InputError, check_path
from recoup.runs.plan import Plan
from recoup.tasks.registry import task_row

try:
    import fcntl
except ImportError:  # not everywhere
    fcntl = None  # type: ignore[assignment]

STUDY, CONFIG, CURVE = "study.db", "config.json", "curve.png"
POLICY, TENSORBOARD = "policy.npz", "tensorboard"
RECORDED = ("recoup", "jax", "jaxlib", "optax", "numpy", "gymnasium")


def refuse_existing(directory: Path) -> None:
    """Raises unless a new run can be written there; one killed before it began is none."""
    if not directory.exists():
        return
    if not directory.is_dir():
        raise InputError(f"{directory} is a file: name a directory for the run.")
    if (directory / STUDY).exists():
        raise InputError(
            f"the run directory {directory} exists already: `recoup resume {directory}` goes "
            "on with it; or name another, or remove it."
        )
    begun = {path.name for path in directory.iterdir()} - {CONFIG}
    if any(not name.startswith(STUDY) for name in begun):
        raise InputError(f"{directory} exists already and holds other things: name another.")


def make_directory(directory: Path, plan: Plan) -> Path:
    """A directory with the run's settings in it; where its study belongs."""
    config = json.dumps(_config(plan), indent=2)  # first: nothing is made if it fails
    directory.mkdir(parents=True, exist_ok=True)
    (directory / CONFIG).write_text(config + "\n")
    return directory / STUDY


@contextmanager
def alone_in(directory: Path | None) -> Iterator[None]:
    """Raises if another process makes the run in a directory; while it lasts, no other can."""
    if directory is None or fcntl is None:
        yield
        return
    handle = os.open(directory, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(f"another process is at work on the run in {directory}.") from None
        except OSError:  # a file system that cannot lock
            pass
        yield
    finally:
        os.close(handle)


def note_iterations(directory: Path, iterations: int) -> None:
    """Puts another budget into the settings of a run, where they can be read."""
    path = directory / CONFIG
    try:
        config = json.loads(path.read_text())
        config["iterations"] = iterations
    except (OSError, ValueError, TypeError):  # for people only: the study has it
        return
    unfinished = path.with_name(f"{CONFIG}.new")
    unfinished.write_text(json.dumps(config, indent=2) + "\n")
    unfinished.replace(path)


def study_in(directory: str | Path) -> Path:
    """Where the study of an existing run lies."""
    path = check_path("the run", directory) / STUDY
    if not path.is_file():
        raise InputError(f"{directory} is not a run directory: it has no {STUDY}.")
    return path


def _config(plan: Plan) -> dict[str, Any]:
    packages = RECORDED if plan.own else RECORDED + task_row(plan.task).packages
    return {
        **plan.plain(),
        "settings": _texts(vars(plan.settings)),
        "versions": {"python": platform.python_version(), **{p: version(p) for p in packages}},
        "command": sys.argv,
    }


def _texts(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings as JSON can hold them: an optax transformation by its text."""
    simple = (str, int, float, bool, type(None))
    return {k: v if isinstance(v, simple) else repr(v) for k, v in settings.items()}

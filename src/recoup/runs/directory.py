"""The run directory: `study.db`, the truth; what lies beside it, for people.

`config.json` (settings), `curve.png`, of an environment `policy.npz` (the policy to deploy) and
`policies/` (earlier ones, and the best), and `tensorboard/` where tensorboardX is installed.
"""

import json
import logging
import os
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from recoup.checks import InputError, check_path
from recoup.core.types import Plain
from recoup.outputs import check_directory, check_no_link_to_nowhere
from recoup.runs.plan import Plan
from recoup.store.place import is_at
from recoup.study.run.beside import STUDY
from recoup.tasks.registry import task_row

try:
    import fcntl
except ImportError:  # not everywhere
    fcntl = None  # type: ignore[assignment]

log = logging.getLogger(__name__)
CONFIG, CURVE, TENSORBOARD = "config.json", "curve.png", "tensorboard"
UNFINISHED = f"{CONFIG}.new"
BEGINNING = '{\n  "task": '  # of the settings of a run
DIRECTORY_TRIES = 100  # to make a directory that others make and remove
RECORDED = ("recoup", "jax", "jaxlib", "optax", "numpy", "gymnasium")


def current_directory() -> str | None:
    """The directory that this process is in; None where it was removed."""
    try:
        return os.getcwd()
    except OSError:
        return None


def refuse_existing(directory: Path) -> None:
    """Raises unless a new run can be written there; one killed before it began is none."""
    check_no_link_to_nowhere(directory)
    if not directory.exists():
        check_directory(directory, directory.parent, parents=True)
        return
    if not directory.is_dir():
        raise InputError(f"{directory} is a file: name a directory for the run.")
    if (directory / STUDY).exists():
        raise InputError(
            f"the run directory {directory} exists already: `recoup resume {directory}` goes "
            "on with it; or name another, or remove it."
        )
    begun, config = {path.name for path in directory.iterdir()}, directory / CONFIG
    foreign = config.exists() and not _is_config(config)
    if foreign or any(not name.startswith((STUDY, CONFIG)) for name in begun):
        raise InputError(f"{directory} exists already and holds other things: name another.")


def _is_config(path: Path) -> bool:
    """Whether a file holds the settings of a run, or as much as a killed process has written."""
    try:
        text = path.read_text()
    except (OSError, ValueError):
        return False
    return text.startswith(BEGINNING) or BEGINNING.startswith(text)


@contextmanager
def new_run_in(directory: Path | None, plan: Plan) -> Iterator[Path | None]:
    """Where the study of a new run belongs: in a directory with its settings, and of this process.

    While it lasts, no other can write there. Where no study was made in it nothing is left behind,
    neither the settings nor directories that were not there before.
    """
    if directory is None:
        yield None
        return
    config = _config(plan)  # first: nothing is made if it fails
    made: list[Path] = []
    with alone_in(directory, made):
        refuse_existing(directory)  # another process may have begun one meanwhile
        try:
            _write_config(directory, config)
            yield directory / STUDY
        finally:
            if not (directory / STUDY).exists():
                _remove_begun(directory, made)


def _remove_begun(directory: Path, made: list[Path]) -> None:
    """Removes what was written for a run that did not begin, with the directories `made` for it."""
    for name in (CONFIG, UNFINISHED):
        with suppress(OSError):
            (directory / name).unlink()
    for path in reversed(made):
        with suppress(OSError):  # another process has put something there
            path.rmdir()


@contextmanager
def alone_in(directory: Path | None, made: list[Path] | None = None) -> Iterator[None]:
    """Raises if another process makes the run in a directory; while it lasts, no other can.

    With `made`, a directory that is not there is made, and noted there with those above it.
    """
    if directory is None:
        yield
        return
    handle = _locked(directory, made)
    try:
        yield
    finally:
        if handle is not None:
            os.close(handle)


def _locked(directory: Path, made: list[Path] | None) -> int | None:
    """The directory, open and locked; None where there are no locks.

    One that was made and removed by another process since it was looked for is made again.
    """
    for _ in range(DIRECTORY_TRIES):
        if made is not None:
            _make(directory, made)
        if fcntl is None:
            return None
        with suppress(FileNotFoundError):
            handle = os.open(directory, os.O_RDONLY)
            _lock(handle, directory)
            if is_at(directory, os.fstat(handle)):
                return handle
            os.close(handle)
    raise InputError(f"{directory} is not there, and cannot be made: name another.")


def _lock(handle: int, directory: Path) -> None:
    """Locks an open directory, which is closed where another process has it."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise InputError(f"another process is at work on the run in {directory}.") from None
    except OSError:  # a file system that cannot lock
        pass


def _make(directory: Path, made: list[Path]) -> None:
    """Makes a directory and those above it, and notes which were not there."""
    missing = [path for path in (directory, *directory.parents) if not path.exists()]
    for path in reversed(missing):
        with suppress(FileExistsError, FileNotFoundError):  # others make and remove them too
            path.mkdir()
            made.append(path)


def note_budget(directory: Path, iterations: int, spare: int) -> None:
    """Puts another budget into the settings of a run, where they can be read."""
    budget = {"iterations": iterations, "spare": spare}
    try:
        config = json.loads((directory / CONFIG).read_text())
        if config == {**config, **budget}:
            return
        config |= budget
    except (OSError, ValueError, LookupError, TypeError):  # for people only: the study has it
        return
    with spared(directory / CONFIG):
        _write_config(directory, config)


def _write_config(directory: Path, config: Plain) -> None:
    """Writes the settings of a run; a file that is there is replaced as a whole."""
    unfinished = directory / UNFINISHED
    unfinished.write_text(json.dumps(config, indent=2) + "\n")
    unfinished.replace(directory / CONFIG)


@contextmanager
def spared(path: Path, said: set[Path] | None = None) -> Iterator[None]:
    """What is written inside can be made again from the study: where it cannot be, that is said.

    Once, where `said` keeps what was.
    """
    try:
        yield
    except (OSError, InputError) as wrong:
        why = wrong.strerror if isinstance(wrong, OSError) else None
        if said is None or path not in said:
            log.warning(
                "%s cannot be written (%s): the run goes on, for %s has all that is in it.",
                path,
                (why or str(wrong)).rstrip("."),
                STUDY,
            )
        if said is not None:
            said.add(path)


def study_in(directory: str | Path) -> Path:
    """Where the study of an existing run lies."""
    path = check_path("the run", directory) / STUDY
    if not path.is_file():
        begun = (path.parent / CONFIG).is_file()
        hint = " (one that was stopped before it began is trained anew)" if begun else ""
        raise InputError(f"{directory} is not a run directory: it has no {STUDY}{hint}.")
    return path


def _config(plan: Plan) -> Plain:
    packages = RECORDED if plan.own else RECORDED + task_row(plan.task).packages
    return {
        **plan.plain(),
        "settings": texts(vars(plan.settings)),
        "versions": {"python": platform.python_version(), **versions(packages)},
        "command": sys.argv,
    }


def versions(packages: tuple[str, ...]) -> dict[str, str]:
    """The versions of those of the packages that are installed."""
    found = {}
    for package in packages:
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    return found


def texts(settings: Plain) -> Plain:
    """Settings as JSON can hold them: an optax transformation by its text."""
    simple = (str, int, float, bool, type(None))
    return {k: v if isinstance(v, simple) else repr(v) for k, v in settings.items()}

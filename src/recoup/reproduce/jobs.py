"""Work that is done once: a job's arrays are kept, and what was computed is never done again."""

import hashlib
import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from recoup import __version__
from recoup.checks import InputError
from recoup.core.types import Plain
from recoup.engine.compilation_cache import kept_compilations

CHECKSUM = "checksum"
Arrays = dict[str, np.ndarray]
Tick = Callable[[float], None]  # the share of the job that has been done since the last call


class FigureJob(NamedTuple):
    """One piece of a figure's measurements, and everything that its result depends on."""

    name: str
    settings: Plain  # plain values
    seconds: float  # roughly, on two cores; only for the time left
    compute: Callable[[Tick], Arrays]


class JobFiles:
    """Results of jobs, one file each, named after what they depend on."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def path(self, job: FigureJob) -> Path:
        """Where the arrays of `job` are kept; other settings have another place."""
        depends = json.dumps([__version__, job.name, job.settings], sort_keys=True)
        digest = hashlib.sha256(depends.encode()).hexdigest()[:12]
        return self.directory / f"{job.name.replace('/', '_')}-{digest}.npz"

    def load(self, job: FigureJob) -> Arrays | None:
        """The arrays of `job`, None where they have not been computed or cannot be read."""
        try:
            with self.path(job).open("rb") as file, np.load(file, allow_pickle=False) as arrays:
                found = dict(arrays)
        except Exception:  # whatever a file may hold
            return None
        kept = found.pop(CHECKSUM, None)  # files of before have none but those of their arrays
        return found if kept is None or str(kept) == _checksum(found) else None

    def prepare(self) -> None:
        """Makes the directory, so that a place that cannot be written to is known at once."""
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            (self.directory / ".writable").touch()
            (self.directory / ".writable").unlink()
        except OSError as wrong:
            raise InputError(
                f"{self.directory} cannot be written to ({wrong.strerror}): name another --out."
            ) from None

    def save(self, job: FigureJob, arrays: Arrays) -> None:
        """Keeps the arrays of `job`: all of them, or none if the process ends before."""
        self.directory.mkdir(parents=True, exist_ok=True)
        path = self.path(job)
        unfinished = path.with_suffix(f".{os.getpid()}.part")
        with unfinished.open("wb") as file:
            sealed = {CHECKSUM: np.array(_checksum(arrays)), **arrays}  # first: the last gets lost
            np.savez(file, allow_pickle=False, **sealed)
        unfinished.replace(path)


def _checksum(arrays: Arrays) -> str:
    """Of all arrays and their names: the file itself has one of each array alone."""
    found = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        found.update(f"{name} {array.dtype} {array.shape}\n".encode() + array.tobytes())
    return found.hexdigest()


def run_jobs(
    jobs: Iterable[FigureJob],
    store: JobFiles,
    show: Callable[[str, float], None] = lambda name, seconds: None,
) -> dict[str, Arrays]:
    """The arrays of every job by its name; only what `store` does not hold is computed.

    `show` is told of progress: the job, and how many of its seconds have been done.
    """
    done: dict[str, Arrays] = {}
    for job in jobs:
        done[job.name] = store.load(job) or _computed(job, store, show)
    return done


def _computed(job: FigureJob, store: JobFiles, show: Callable[[str, float], None]) -> Arrays:
    left = job.seconds
    show(job.name, 0.0)

    def tick(share: float) -> None:
        nonlocal left
        spent = min(left, share * job.seconds)
        left -= spent
        show(job.name, spent)

    with kept_compilations():
        arrays = job.compute(tick)
    store.save(job, arrays)
    show(job.name, left)
    return arrays

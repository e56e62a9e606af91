"""The protocol between what schedules trials and what rolls them out."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from recoup.core.types import Given

Known = Sequence[float] | Mapping[str, float] | None  # what was known before a trial began


class Job(NamedTuple):
    """A trial as a worker gets it."""

    id: int
    theta: np.ndarray  # [D] in the user's units
    seed: int  # of the episode's randomness
    params: Mapping[str, float] | None = None  # the same by name, where parameters have names
    std: np.ndarray | None = None  # [A] of the actions, where the policy explores in them


class Outcome(NamedTuple):
    """What came of a trial: returns of its episodes, or a trajectory, or why there is none."""

    id: int
    values: tuple[float, ...] = ()
    trajectory: Given = None
    failed: str | None = None
    trace: str = ""  # the traceback, where it raised
    steps: int = 0
    seconds: float = 0.0
    context: Known = None


class Rolled(NamedTuple):
    """What rolling out a trial gives: the return of each episode, and steps taken in all."""

    values: tuple[float, ...]
    steps: int = 0
    context: Known = None


class Roller(Protocol):
    """Rolls trials out, one at a time; built once in every worker."""

    def __call__(self, job: Job) -> Rolled:
        """The returns of a trial's episodes."""

    def close(self) -> None:
        """Frees what it holds."""


Build = Callable[[], Roller]


class Broken(RuntimeError):
    """The task cannot be rolled out at all: what was tried, and the traceback of the last."""

    def __init__(self, sentence: str, trace: str = "") -> None:
        super().__init__(sentence)
        self.trace = trace


class Engine(Protocol):
    """Where trials are rolled out."""

    @property
    def slots(self) -> int:
        """How many trials may be out at a time."""

    def submit(self, job: Job) -> None:
        """Takes a trial; at most `slots` may be out."""

    def wait(self, seconds: float | None = None) -> list[Outcome]:
        """What has finished: something, unless `seconds` have passed or nothing is out."""

    def close(self) -> None:
        """Stops what is running and leaves no process behind."""

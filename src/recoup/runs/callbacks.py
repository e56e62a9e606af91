"""What others hear of a run: every result, every move, every checkpoint; and they may stop it."""

import logging
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from socket import gethostname
from typing import Any

import numpy as np

from recoup.checks import not_installed
from recoup.core.types import Given, Plain
from recoup.runs.history import HistoryRow
from recoup.runs.schedule import Heard
from recoup.tasks.engines.attempt import end_if_forked

log = logging.getLogger(__name__)
OFTEN = 60.0  # seconds, at most, that TensorBoard waits for what is there
HEARS = ("on_result", "on_move", "on_checkpoint")


@dataclass(frozen=True)
class TrialDone:
    """A trial that was told: what `on_result` is given.

    >>> class Worst(recoup.Callback):
    ...     value = 0.0
    ...     def on_result(self, result):
    ...         self.value = min(self.value, result.value)
    >>> worst = Worst()
    >>> run = recoup.train(throw, dim=2, iterations=1, callbacks=[worst])
    >>> worst.value < 10
    True
    """

    id: int  # its number
    theta: np.ndarray  # [D] in the user's units
    params: dict[str, float]  # the same by name, where parameters have names
    seed: int  # of the episode's randomness
    value: float | None  # its return, the mean of its episodes; None where it failed
    failed: str | None  # why
    steps: int  # of all its episodes
    seconds: float  # that it took


class Callback:
    """What a run tells its listeners; one is any object with some of these methods.

    A method that returns True stops the run once what came with it is told: it can be resumed.

    Given to `recoup.train(callbacks=[...])`.

    >>> class Patience(recoup.Callback):
    ...     def on_result(self, result):
    ...         return result.failed is not None  # stop at the first failure
    >>> run = recoup.train(throw, dim=2, iterations=1, callbacks=[Patience()])
    """

    def on_result(self, result: TrialDone) -> bool | None:
        """After every trial: `result` is a `TrialDone`."""

    def on_move(self, step: HistoryRow) -> bool | None:
        """After every move of the distribution: `step` is a `HistoryRow`.

        Not every one is tested for the curve.
        """

    def on_checkpoint(self, step: HistoryRow, policy: Path | None) -> bool | None:
        """After every tenth move and at the end.

        `step` is the last `HistoryRow`, `policy` the file of the mean policy, None where there is
        none.
        """


def check_callbacks(given: Given) -> list[Any]:
    """Callbacks, once each of them would hear something."""
    from recoup.checks import InputError, shortly

    callbacks = list(given) if isinstance(given, Sequence) else [given]
    for one in callbacks:
        if not any(callable(getattr(one, name, None)) for name in HEARS):
            raise InputError(f"a callback has one of {', '.join(HEARS)}; {shortly(one)} has none.")
    return callbacks


def say(callbacks: Sequence[Any], what: str, *news: Any) -> bool:
    """Tells all of them; whether one wants to stop."""
    hears = [getattr(one, what, None) for one in callbacks]
    process = os.getpid()
    try:
        wishes = [bool(hear(*news)) for hear in hears if hear is not None]
    finally:
        end_if_forked(process)
    return any(wishes)


def done_of(heard: Heard) -> TrialDone:
    """What came back, as a callback gets it."""
    trial, outcome, told = heard
    return TrialDone(
        trial.id,
        trial.theta,
        trial.params,
        trial.seed,
        told.value,
        told.note,
        outcome.steps,
        outcome.seconds,
    )


class TensorBoard:
    """Writes what TensorBoard shows; in a run directory it is there where tensorboardX is.

    Where it cannot be written, that is said once, and a run goes on without it.

    >>> board = recoup.TensorBoard("events")
    >>> run = recoup.train(throw, dim=2, iterations=1, callbacks=[board])
    >>> board.close()
    """

    def __init__(self, directory: str | Path) -> None:
        # not its SummaryWriter: that one writes in a thread, which ends where a disk is full, and
        # whoever gives it more then waits for ever
        try:
            from tensorboardX.record_writer import RecordWriter
        except ImportError:
            raise not_installed("events for TensorBoard need tensorboardX", "tensorboard") from None
        self._directory = Path(directory)
        self._file: Any = None
        with self._spared():
            self._directory.mkdir(parents=True, exist_ok=True)
            name = f"events.out.tfevents.{time.time_ns()}.{gethostname()}"
            self._file = RecordWriter(str(self._directory / name))
        self._synced = time.monotonic()
        self._write([{"file_version": "brain.Event:2"}])

    def on_result(self, result: TrialDone) -> None:
        """Writes the return of a trial by its number; `result` is a `TrialDone`.

        Raises nothing: what cannot be written is said once.

        >>> board = recoup.TensorBoard("events")
        >>> run = recoup.train(throw, dim=2, iterations=1, callbacks=[board])  # which calls it
        >>> board.close()
        """
        if result.value is not None:
            rows = {"trial/return": result.value, "trial/seconds": result.seconds}
            self._write(_scalars(rows, result.id))

    def on_move(self, step: HistoryRow) -> None:
        """Writes the numbers of a move by rollouts spent; `step` is a `HistoryRow`.

        Raises nothing: what cannot be written is said once.

        >>> board = recoup.TensorBoard("events")
        >>> board.on_move(run.history[-1])
        >>> board.close()
        """
        keys = ("return_curve", "ess", "max_weight", "kl", "std_min", "std_max")
        found = {f"move/{key}": getattr(step, key) for key in keys}
        known = {key: value for key, value in found.items() if value is not None}
        finite = {key: value for key, value in known.items() if np.isfinite(value)}
        self._write(_scalars(finite, step.episodes))

    def on_checkpoint(self, step: HistoryRow, policy: Path | None) -> None:
        """Everything so far is on disk.

        `step` and `policy` are what `Callback.on_checkpoint` is given.

        Raises nothing: what cannot be written is said once.

        >>> board = recoup.TensorBoard("events")
        >>> board.on_checkpoint(run.history[-1], None)
        >>> board.close()
        """
        self._sync()

    def close(self) -> None:
        """Closes the file.

        >>> board = recoup.TensorBoard("events")
        >>> board.close()
        """
        if self._file is not None:
            with self._spared():
                self._file.close()
            self._file = None

    def _write(self, contents: list[Plain]) -> None:
        """Writes events; they are on disk within a minute, if there is more to come."""
        from tensorboardX.proto.event_pb2 import Event

        events = [Event(wall_time=time.time(), **content) for content in contents]
        with self._spared():
            for event in events if self._file is not None else ():
                self._file.write(event.SerializeToString())
        if time.monotonic() - self._synced > OFTEN:
            self._sync()

    def _sync(self) -> None:
        with self._spared():
            if self._file is not None:
                self._file.flush()
            self._synced = time.monotonic()

    @contextmanager
    def _spared(self) -> Iterator[None]:
        """Says what cannot be written, and writes no more."""
        try:
            yield
        except OSError as wrong:
            file, self._file = self._file, None
            with suppress(OSError):
                if file is not None:
                    file.close()
            log.warning(
                "%s cannot be written (%s): the run goes on without what TensorBoard would show.",
                self._directory,
                wrong.strerror or wrong,
            )


def _scalars(rows: dict[str, float], at: int) -> list[Plain]:
    """Numbers by name, as the contents of events."""
    from tensorboardX.summary import scalar

    return [{"summary": scalar(name, value), "step": int(at)} for name, value in rows.items()]

"""What others hear of a run: every result, every move, every checkpoint; and they may stop it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from recoup.runs.history import Step
from recoup.runs.schedule import Heard

HEARS = ("on_result", "on_move", "on_checkpoint")


@dataclass(frozen=True)
class TrialDone:
    """A trial that was told: what `on_result` is given."""

    id: int
    theta: np.ndarray  # [D] in the user's units
    params: dict[str, float]  # the same by name, where parameters have names
    seed: int
    value: float | None  # its return, the mean of its episodes; None where it failed
    failed: str | None  # why
    steps: int  # of all its episodes
    seconds: float


class Callback:
    """What a run tells its listeners; one is any object with some of these methods.

    A method that returns True stops the run once what came with it is told: it can be resumed.
    """

    def on_result(self, result: TrialDone) -> bool | None:
        """After every trial."""

    def on_move(self, step: Step) -> bool | None:
        """After every move of the distribution; not every one is tested for the curve."""

    def on_checkpoint(self, step: Step, policy: Path | None) -> bool | None:
        """After every tenth move and at the end; `policy` is the file of the mean policy."""


def check_callbacks(given: Any) -> list[Any]:
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
    wishes = [bool(hear(*news)) for hear in hears if hear is not None]
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
    """Writes what TensorBoard shows; in a run directory it is there where tensorboardX is."""

    def __init__(self, directory: str | Path) -> None:
        from tensorboardX import SummaryWriter

        self._writer = SummaryWriter(str(directory))

    def on_result(self, result: TrialDone) -> None:
        """The return of a trial, by its number."""
        if result.value is not None:
            self._writer.add_scalar("trial/return", result.value, result.id)
            self._writer.add_scalar("trial/seconds", result.seconds, result.id)

    def on_move(self, step: Step) -> None:
        """Numbers of a move, by rollouts spent."""
        for key in ("return_curve", "ess", "max_weight", "kl", "std_min", "std_max"):
            value = getattr(step, key)
            if value is not None and np.isfinite(value):
                self._writer.add_scalar(f"move/{key}", value, step.episodes)

    def on_checkpoint(self, step: Step, policy: Path | None) -> None:
        """Everything so far is on disk."""
        self._writer.flush()

    def close(self) -> None:
        """Closes the file."""
        self._writer.close()

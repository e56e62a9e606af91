"""A method of the user's, held to what it has to give: one sentence where it does not."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from recoup.checks import InputError, check_count, check_finite, check_shape
from recoup.core.types import Settings
from recoup.tasks.engines.attempt import Raised, theirs

PARTS = ("batch", "ask", "tell", "mean", "draw")


class Failed(RuntimeError):
    """A method of the user's has raised something."""


def check_same_batch(name: str, batches: Sequence[int]) -> None:
    """Raises unless all runs of a method on a task have batches of one size."""
    if len(set(batches)) > 1:
        raise InputError(f"batch of {name} must be the same in all runs, got {list(batches)}.")


class Checked:
    """One run of a method of the user's; `name` says which on which task."""

    def __init__(
        self,
        name: str,
        make: Callable[..., Any],
        mean: np.ndarray,
        std: np.ndarray,
        seed: int,
        settings: Settings,
    ) -> None:
        self._name, self._dim = name, len(mean)
        self._peer = self._called(name, make, mean.copy(), std.copy(), seed, dict(settings))
        for part in PARTS:
            if not hasattr(self._peer, part):
                raise InputError(
                    f"{name} must give an object with {', '.join(PARTS)}; "
                    f"{type(self._peer).__name__} has no {part}."
                )
        self.batch = check_count(f"batch of {name}", self._peer.batch)
        self.failures = bool(getattr(self._peer, "failures", False))

    def ask(self) -> np.ndarray:
        """Parameters `[N, D]`."""
        return self._array("ask", "[batch, D]", (self.batch, self._dim))

    def tell(self, theta: np.ndarray, returns: np.ndarray) -> None:
        """Their returns."""
        self._called(f"tell of {self._name}", self._peer.tell, theta, returns)

    def mean(self) -> np.ndarray:
        """The policy to deploy `[D]`."""
        return self._array("mean", "[D]", (self._dim,))

    def draw(self, noise: np.ndarray) -> np.ndarray:
        """What it would try now `[n, D]`."""
        return self._array("draw", "[n, D]", noise.shape, noise.copy())

    def close(self) -> None:
        """Ends it, where it can be ended."""
        if hasattr(self._peer, "close"):
            self._called(f"close of {self._name}", self._peer.close)

    def _array(self, part: str, letters: str, shape: tuple[int, ...], *given: Any) -> np.ndarray:
        what = f"{part} of {self._name}"
        found = self._called(what, getattr(self._peer, part), *given)
        check_shape(what, found, letters, shape)
        check_finite(what, found)
        return np.array(found, float)

    def _called(self, what: str, function: Callable[..., Any], *given: Any) -> Any:
        try:
            with theirs():
                return function(*given)
        except Raised as wrong:
            raise Failed(f"{what} failed: {wrong.words}.") from wrong.__cause__

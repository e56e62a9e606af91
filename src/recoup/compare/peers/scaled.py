"""What the adapters share: the coordinates they search in, and methods that keep control."""

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, NamedTuple

import numpy as np

from recoup.core.types import Array, Settings


class Start(NamedTuple):
    """Where a run starts: theta = mean + std x."""

    mean: np.ndarray  # [D]
    std: np.ndarray  # [D]
    seed: int
    settings: Settings

    @property
    def dim(self) -> int:
        """How many parameters there are, D."""
        return len(self.mean)

    @property
    def sigma(self) -> float:
        """The standard deviation of x at the start."""
        return float(self.settings.get("sigma", 1.0))

    def theta(self, x: Array) -> np.ndarray:
        """Parameters `[..., D]` of coordinates `[..., D]`."""
        return self.mean + self.std * np.asarray(x, float)


class Stopped(Exception):
    """Ends a method that keeps control, when its run is over."""


class Again(Exception):
    """Says to a method that keeps control that what it asked for is not told, to ask for others."""


class Controlled:
    """A method that calls a function and cannot be asked: it runs in a thread of its own.

    `work(evaluate)` runs it; `evaluate(x [N, D]) -> returns [N]` waits until they are told. It
    raises `Again` where the next ones are asked for before that.
    """

    def __init__(self, work: Callable[[Callable[[Any], np.ndarray]], None]) -> None:
        self._asked: SimpleQueue[Any] = SimpleQueue()
        self._told: SimpleQueue[Any] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, args=(work,), daemon=True)
        self._next: Any = None
        self._open = False  # whether what was asked for has not been told

    def ask(self) -> np.ndarray:
        """Coordinates `[N, D]` that it waits for."""
        if self._next is None:
            self._thread.start()
            self._next = self._asked.get()
        elif self._open:
            self.tell(Again())
        self._open = True
        if isinstance(self._next, BaseException):
            raise self._next
        return self._next

    def tell(self, returns: Array) -> None:
        """Lets it go on, until it asks again."""
        self._told.put(returns)
        self._next, self._open = self._asked.get(), False

    def _run(self, work: Callable[[Callable[[Any], np.ndarray]], None]) -> None:
        try:
            work(self._evaluate)
            raise RuntimeError("the method has stopped by itself.")
        except Stopped:
            return
        except BaseException as wrong:
            self._asked.put(wrong)

    def _evaluate(self, x: Array) -> np.ndarray:
        self._asked.put(np.atleast_2d(np.asarray(x, float)))
        returns = self._told.get()
        if returns is None:
            raise Stopped
        if isinstance(returns, Again):
            raise returns
        return returns

    def close(self) -> None:
        """Ends it."""
        self._told.put(None)

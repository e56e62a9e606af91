"""Threads of one process that share a study: one at a time is at it, the others wait."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Turn:
    """A lock among the threads of this process; whoever has it may take it again.

    A forked process begins with a free one: the threads that had it are not there.
    """

    def __init__(self) -> None:
        self._lock, self._process = threading.RLock(), os.getpid()

    @contextmanager
    def taken(self, wait: float = -1) -> Iterator[bool]:
        """Whether it is this thread's turn, after so many seconds at most; unless said, it waits
        for as long as it takes.
        """
        lock = self._mine()
        mine = lock.acquire(timeout=wait)
        try:
            yield mine
        finally:
            if mine:
                lock.release()

    def _mine(self) -> Any:
        if os.getpid() != self._process:
            self._lock, self._process = threading.RLock(), os.getpid()
        return self._lock

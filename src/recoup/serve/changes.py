"""What happened to a study, for those who wait for it: an event each time its file has changed."""

import asyncio
import time
from collections import deque
from typing import NamedTuple

from recoup.core.types import Plain

EVENTS_KEPT = 1000  # for those whose stream broke


class Change(NamedTuple):
    """A change: the version that it made, and what is told of the study then."""

    version: int
    line: Plain


class Changes:
    """The last changes of one study, in order. Everything here is done on the event loop."""

    def __init__(self) -> None:
        self._kept: deque[Change] = deque(maxlen=EVENTS_KEPT)
        self._waiting: set[asyncio.Event] = set()
        self.ended = False

    def add(self, change: Change) -> None:
        """Tells everybody who waits."""
        self._kept.append(change)
        self._wake()

    def end(self) -> None:
        """Nothing comes any more: those who wait are let go."""
        self.ended = True
        self._wake()

    def after(self, version: int, now: Change) -> list[Change]:
        """What happened after a version, if that is kept; else how it is `now`, if it is another.

        What `now` knows already and nobody was told of yet comes by itself.
        """
        known = [one.version for one in self._kept]
        if version in known:
            return list(self._kept)[known.index(version) + 1 :]
        return [] if version == now.version else [now]

    def since(self, version: int) -> list[Change]:
        """What came after a version, as far as it is kept."""
        return [one for one in self._kept if one.version > version]

    async def wait(self, seconds: float) -> bool:
        """Whether there is another change, or the end, within so many seconds."""
        event = asyncio.Event()
        self._waiting.add(event)
        try:
            await asyncio.wait_for(event.wait(), seconds)
        except TimeoutError:
            return False
        finally:
            self._waiting.discard(event)
        return True

    def _wake(self) -> None:
        for event in self._waiting:
            event.set()


def next_version(before: int) -> int:
    """A number that is higher than those before, also than those of a server that was stopped."""
    return max(before + 1, time.time_ns() // 1000)

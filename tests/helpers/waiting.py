"""Waiting for something to happen, however slow or busy the machine is.

The one place of the tests that looks at a clock, and it does so only to give up in the end;
`tests/test_no_clocks.py` holds the others to it. What depends on time in the package goes by a
clock that a test can set (`Hands`).
"""

import subprocess
import time
from types import SimpleNamespace

LIMIT = 600.0  # seconds after which nothing will happen any more


def until(what, words=lambda: "it has not happened"):
    """Waits until something is so, and gives it; `words()` say what was there if it never is."""
    end = time.monotonic() + LIMIT
    while not (found := what()):
        assert time.monotonic() < end, words()
        time.sleep(0.01)
    return found


def ticks(seconds, times):
    """So many ticks, one every so many seconds: what is done between two is no time of its own."""
    due = time.monotonic()
    for tick in range(times):
        due = max(due + seconds, time.monotonic())
        time.sleep(max(due - time.monotonic(), 0.0))
        yield tick


def lives(pid):
    """Whether a process runs; one that has ended and was not asked about yet does not."""
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True)
    return bool(state.stdout.strip()) and not state.stdout.startswith("Z")


def until_gone(pids):
    """Waits until none of these processes runs."""
    until(lambda: not any(map(lives, pids)), lambda: f"of {pids} some are left")


class Hands(SimpleNamespace):
    """In the place of a module's `time`: its clock goes on when it is told to, and only then."""

    def __init__(self, monkeypatch, module):
        super().__init__(now=0.0, sleep=time.sleep)
        monkeypatch.setattr(module, "time", self)

    def monotonic(self):
        return self.now

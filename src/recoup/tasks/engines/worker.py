"""A worker process, started by `processes.py`.

It is told what to build, then one trial after the other, through a pipe of its own: whatever the
task prints goes to standard error. It leads a process group, so that whoever started it can end it
with all that it has started; if that process is gone, it ends itself.
"""

import ctypes
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path

import cloudpickle

from recoup.tasks.engines.attempt import Raised, attempt, closed, theirs

READY, BROKEN, DONE = "ready", "broken", "done"  # what it says
PR_SET_PDEATHSIG = 1
WATCH = 1.0  # seconds between two looks at whether the parent lives


def main() -> None:
    """Builds, says that it is ready, and rolls out until the pipe is closed."""
    pipe, parent, build = sys.argv[1:4]
    _die_with_parent()
    threading.Thread(target=_end_with, args=(int(parent),), daemon=True).start()
    link = Connection(int(pipe))
    try:
        with theirs():
            roller = cloudpickle.loads(Path(build).read_bytes())()
    except Raised as wrong:
        link.send((BROKEN, wrong.words, wrong.trace))
        return
    link.send((READY,))
    while True:
        try:
            job = link.recv()
        except (EOFError, OSError):
            break
        link.send((DONE, attempt(roller, job)))
    closed(roller.close)


def _die_with_parent() -> None:
    """On Linux the system itself ends a worker whose parent dies, whatever it is doing."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _end_with(parent: int) -> None:
    """Ends the whole group once the process that started it is gone."""
    while os.getppid() == parent:
        time.sleep(WATCH)
    os.killpg(os.getpgrp(), signal.SIGKILL)

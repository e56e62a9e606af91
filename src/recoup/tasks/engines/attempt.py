"""One attempt at a trial, wherever it is made: an outcome comes back, whatever is raised."""

import logging
import os
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from mmap import mmap
from typing import Any

from recoup.tasks.engines.engine import Job, Outcome, Roller

log = logging.getLogger(__name__)
LINES = 20  # of a traceback that are kept
CAME_BACK = (
    b"recoup: a process that the task had forked came back from it, and was ended: the trial goes "
    b"on in the one that began it. What a task forks has to end itself, by os._exit.\n"
)
_said = mmap(-1, 1)  # shared with what is forked: whether this process has heard it


class Raised(Exception):
    """What code of the user's has raised: in one line, and the end of its traceback."""

    def __init__(self, words: str, trace: str) -> None:
        super().__init__(words)
        self.words, self.trace = words, trace


def attempt(roller: Roller, job: Job) -> Outcome:
    """What came of a trial."""
    began = time.perf_counter()
    try:
        with theirs():
            rolled = roller(job)
    except Raised as wrong:
        seconds = time.perf_counter() - began
        return Outcome(job.id, failed=wrong.words, trace=wrong.trace, seconds=seconds)
    seconds = time.perf_counter() - began
    return Outcome(
        job.id, rolled.values, steps=rolled.steps, seconds=seconds, context=rolled.context
    )


@contextmanager
def theirs() -> Iterator[None]:
    """Code of the user's: whatever it raises inside comes out as `Raised`, but Ctrl-C.

    What it forks does not come out: two processes would go on with one run.
    """
    process = os.getpid()
    try:
        yield
    except KeyboardInterrupt:
        end_if_forked(process)
        raise
    except BaseException as wrong:  # SystemExit, and whatever others derive from it
        end_if_forked(process, wrong)
        raise Raised(reason(wrong), trace_of()) from wrong
    end_if_forked(process)


def end_if_forked(process: int, leaves: BaseException | None = None) -> None:
    """Ends this process, and nothing else, if it was forked from `process` and comes back.

    By `sys.exit` it `leaves` as it wanted to. Nothing is flushed: that is the other's to do.
    """
    if os.getpid() == process:
        return
    if isinstance(leaves, SystemExit):
        code = leaves.code
        os._exit(code & 255 if isinstance(code, int) else code is not None)
    if not _said[0]:
        _said[0] = 1
        os.write(2, CAME_BACK)
    os._exit(1)


def closed(close: Callable[[], Any]) -> None:
    """Closes what is the user's; what goes wrong then is said, and has no other consequence."""
    try:
        with theirs():
            close()
    except Raised as wrong:
        log.warning("the task could not be closed: %s", wrong.words)


def reason(wrong: BaseException) -> str:
    """An exception in one line, of characters that a file can hold."""
    name = type(wrong).__name__
    try:
        text = " ".join(str(wrong).split())[:300]
    except KeyboardInterrupt:
        raise
    except BaseException:  # its words are code of the user's too
        return f"{name}, which cannot be put into words"
    text = text.encode(errors="backslashreplace").decode()
    return f"{name}: {text}" if text else name


def trace_of() -> str:
    """The end of the traceback that is being handled."""
    try:
        return "\n".join(traceback.format_exc().splitlines()[-LINES:])
    except Exception:  # notes of an exception are code of the user's
        return ""

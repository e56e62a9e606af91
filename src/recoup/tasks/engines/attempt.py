"""One attempt at a trial, wherever it is made: an outcome comes back, whatever is raised."""

import time
import traceback

from recoup.tasks.engines.engine import Job, Outcome, Roller

LINES = 20  # of a traceback that are kept


def attempt(roller: Roller, job: Job) -> Outcome:
    """What came of a trial."""
    began = time.perf_counter()
    try:
        rolled = roller(job)
    except (Exception, SystemExit) as wrong:
        seconds = time.perf_counter() - began
        return Outcome(job.id, failed=reason(wrong), trace=trace_of(), seconds=seconds)
    return Outcome(job.id, rolled.values, steps=rolled.steps, seconds=time.perf_counter() - began)


def reason(wrong: BaseException) -> str:
    """An exception in one line."""
    text = " ".join(str(wrong).split())
    return f"{type(wrong).__name__}: {text[:300]}" if text else type(wrong).__name__


def trace_of() -> str:
    """The end of the traceback that is being handled."""
    return "\n".join(traceback.format_exc().splitlines()[-LINES:])

"""Trials in other processes of this machine, each of which builds the task once."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from pathlib import Path
from tempfile import TemporaryDirectory

from recoup.checks import InputError, check_count
from recoup.tasks.engines.engine import Broken, Build, Job, Outcome
from recoup.tasks.engines.worker import BROKEN, READY

PROGRAM = (  # finds what this process finds, and runs none of its main module
    "import sys; sys.path[:] = sys.argv[4:]; from recoup.tasks.engines.worker import main; main()"
)
LOOK = 0.1  # seconds between two looks at workers that say nothing
BUILD = 60.0  # seconds that building the task may take where trials have a limit, at least
PAUSE = 0.5  # seconds before one that could not build the task is replaced
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")  # one each: cores are few


class Processes:
    """So many workers; one that hangs or dies is replaced, and its trial comes back as failed."""

    def __init__(
        self, build: Build, workers: int, timeout: float | None = None, here: str | None = None
    ) -> None:
        """`timeout` is how many seconds a trial may take.

        `here` is the directory that workers start in, wherever this process has gone by then.
        """
        self.slots, self.timeout = check_count("workers", workers), timeout
        sent = pickled(build)
        self._home = TemporaryDirectory(prefix="recoup-")
        self._build = Path(self._home.name) / "build"  # what workers build; ours alone to read
        self._build.write_bytes(sent)
        self._ever_ready, self._here = False, here
        self._workers = [_Worker(self._build, self._here) for _ in range(self.slots)]

    def submit(self, job: Job) -> None:
        """Gives a trial to a worker that has none."""
        free = [worker for worker in self._workers if worker.job is None]
        free[0].take(job)

    def wait(self, seconds: float | None = None) -> list[Outcome]:
        """What has finished, failed or was given up."""
        until = None if seconds is None else time.monotonic() + seconds
        while any(worker.job for worker in self._workers):
            left = LOOK if until is None else min(LOOK, max(until - time.monotonic(), 0.0))
            links: list[Connection] = [worker.link for worker in self._workers]
            spoke = wait(links, left)
            found = [self._heard(i) for i, link in enumerate(links) if link in spoke]
            found += [self._looked_at(i) for i in range(self.slots)]
            outcomes = [outcome for outcome in found if outcome is not None]
            if outcomes or (until is not None and time.monotonic() >= until):
                return outcomes
        return []

    def close(self) -> None:
        """Ends every worker with all that it has started."""
        for worker in self._workers:
            worker.end()
        self._home.cleanup()

    def _heard(self, i: int) -> Outcome | None:
        """What a worker has said."""
        worker = self._workers[i]
        try:
            said = worker.link.recv()
        except (EOFError, OSError):
            return self._lost(i, worker.death())
        if said[0] == READY:
            self._ever_ready = worker.ready = True
            worker.since = time.monotonic()
            return None
        if said[0] == BROKEN:
            if not self._ever_ready:
                raise Broken(f"the task cannot be built: {said[1]}", said[2])
            time.sleep(PAUSE)
            return self._lost(i, f"its worker could not build the task: {said[1]}")
        worker.job = None
        return said[1]

    def _looked_at(self, i: int) -> Outcome | None:
        """What has become of a worker that says nothing: it may be dead, or hang."""
        worker = self._workers[i]
        if worker.process.poll() is not None and not worker.link.poll():
            return self._lost(i, worker.death())
        if self.timeout is None or worker.job is None:
            return None
        if not worker.ready:
            most = max(self.timeout, BUILD)
            if time.monotonic() - worker.born <= most:
                return None
            return self._lost(i, f"its worker took longer than {most:g} s to start")
        if time.monotonic() - worker.since > self.timeout and not worker.link.poll():
            return self._lost(i, f"it took longer than {self.timeout:g} s")
        return None

    def _lost(self, i: int, why: str) -> Outcome | None:
        """Replaces a worker; the trial that it had has failed."""
        worker = self._workers[i]
        worker.end()
        self._workers[i] = _Worker(self._build, self._here)
        if worker.job is None:
            return None
        return Outcome(worker.job.id, failed=why, seconds=time.monotonic() - worker.since)


class _Worker:
    """One process and the trial that it has."""

    def __init__(self, build: Path, here: str | None) -> None:
        self.link, theirs = Pipe()
        self.job: Job | None = None
        self.ready = False
        self.since = self.born = time.monotonic()
        command = [sys.executable, "-c", PROGRAM]
        environment = {**dict.fromkeys(THREADS, "1"), **os.environ}
        self.process = subprocess.Popen(
            [*command, str(theirs.fileno()), str(os.getpid()), str(build), *sys.path],
            stdin=subprocess.DEVNULL,
            stdout=2,
            pass_fds=[theirs.fileno()],
            start_new_session=True,
            env=environment,
            cwd=here,
        )
        theirs.close()

    def take(self, job: Job) -> None:
        """Gives it a trial; a worker that is dead is found out when it is waited for."""
        self.job, self.since = job, time.monotonic()
        try:
            self.link.send(job)
        except OSError:
            return

    def death(self) -> str:
        """Why it is gone."""
        try:
            status = self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            return "its worker closed its pipe"
        if status == -signal.SIGKILL:
            return "its worker was killed (signal 9; out of memory?)"
        how = f"by signal {-status}" if status < 0 else f"with status {status}"
        return f"its worker ended {how}"

    def end(self) -> None:
        """Kills it, and its children with it."""
        self.link.close()
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def pickled(build: Build) -> bytes:
    """What workers build, as bytes that are sent to them and never stored."""
    import cloudpickle

    try:
        return cloudpickle.dumps(build)
    except Exception as wrong:
        raise InputError(
            f"the task cannot be sent to other processes ({wrong}): give a function that makes it, "
            "or use engine='serial'."
        ) from None

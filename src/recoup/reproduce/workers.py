"""Jobs in several processes: each takes a group of jobs that share what is compiled."""

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from recoup.reproduce.jobs import FigureJob, JobFiles, run_jobs

JOB_POLL = 0.2  # seconds between looks at what has been done
FLAGS = "--xla_backend_optimization_level=1"  # compiles in two thirds of the time, runs as fast


def run_in_processes(
    jobs: Sequence[FigureJob], store: JobFiles, workers: int, show: Callable[[str, float], None]
) -> None:
    """Computes what `store` does not hold of `jobs`; on any exception all workers are ended."""
    left = [job for job in jobs if store.load(job) is None]
    os.environ.setdefault("XLA_FLAGS", FLAGS)  # for the workers: JAX runs here already
    context = multiprocessing.get_context("spawn")
    queue = context.SimpleQueue()
    shared = groups(left, workers)
    for group in shared:
        queue.put(group)
    processes = [
        context.Process(target=_work, args=(queue, store.directory), daemon=True)
        for _ in range(min(workers, len(shared)))
    ]
    for process in processes:
        queue.put(None)
        process.start()
    try:
        _watch(processes, left, store, show)
    finally:
        for process in processes:
            process.terminate()
            process.join()


def groups(jobs: Sequence[FigureJob], workers: int = 1) -> list[list[FigureJob]]:
    """Jobs that differ only in their seeds together, those that take longest first.

    A group that would keep one worker busy for longer than an even share of all is taken apart.
    """
    together = [list(group) for _, group in groupby(jobs, lambda job: job.name.rpartition("/")[0])]
    share = sum(job.seconds for job in jobs) / workers
    shared = [
        part
        for group in together
        for part in ([group] if _seconds(group) <= share else [[job] for job in group])
    ]
    return sorted(shared, key=lambda group: -_seconds(group))


def _seconds(group: Sequence[FigureJob]) -> float:
    return sum(job.seconds for job in group)


def _watch(
    processes: Sequence[Any],
    left: list[FigureJob],
    store: JobFiles,
    show: Callable[[str, float], None],
) -> None:
    """Tells `show` of every job that has been done, until all are."""
    while left:
        for job in [job for job in left if store.load(job) is not None]:
            left.remove(job)
            show(job.name, job.seconds)
        failed = [process.exitcode for process in processes if process.exitcode not in (None, 0)]
        if failed:
            raise RuntimeError(f"a worker ended with status {failed[0]}; see what it said above.")
        if left and all(process.exitcode is not None for process in processes):
            raise RuntimeError(f"{left[0].name} was not computed.")
        time.sleep(JOB_POLL if left else 0)


def _work(queue: Any, directory: Path) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends its workers itself
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    store = JobFiles(directory)
    while (group := queue.get()) is not None:
        run_jobs(group, store)


def _end_with(parent: int) -> None:
    """Ends this process when its parent has ended, however that was."""
    while os.getppid() == parent:
        time.sleep(JOB_POLL)
    os._exit(1)

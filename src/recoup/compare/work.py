"""What is missing is computed: here, or in several processes; every run is kept once it is done."""

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from recoup.checks import InputError
from recoup.compare.arenas import Arena, Asking, arena_of
from recoup.compare.checked import Failed
from recoup.compare.entrants import Entrant, entrant_of
from recoup.compare.run_results import CurveFiles, key_of
from recoup.compare.side_by_side import RunCurve, Tick, learn
from recoup.tasks.engines.attempt import reason
from recoup.tasks.engines.engine import Broken

RUNS_TOGETHER = 32  # runs at most that go side by side: what is lost when the process is killed
FEW_CHUNKS = 4  # chunks up to which starting processes takes longer than it saves
WORK_POLL = 0.1  # seconds between looks at what processes have done
THREADS = {  # of each process, for its workers: they share the machine
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
}
WAITS, DONE = -1, -2  # what a worker is at, in place of the number of a chunk

Show = Callable[[str, int], None]  # what is being done, and episodes that were done of it


class Chunk(NamedTuple):
    """Runs of one method on one task that go side by side."""

    task: str  # as it is written
    asking: Asking
    method: str
    seed: int
    runs: tuple[int, ...]
    checkpoints: tuple[int, ...]

    @property
    def name(self) -> str:
        """What is shown while it is computed."""
        return f"{self.task} {self.method}"

    @property
    def episodes(self) -> int:
        """Episodes that it is going to spend, those of tests aside."""
        return len(self.runs) * self.checkpoints[-1]


def chunks_of(chunk: Chunk, arena: Arena, entrant: Entrant, results: CurveFiles) -> list[Chunk]:
    """The parts of `chunk` whose results are missing."""
    left = [
        run
        for run in chunk.runs
        if results.load(key_of(arena, entrant, chunk.seed, run, chunk.checkpoints)) is None
    ]
    size = RUNS_TOGETHER if arena.traced else 1
    parts = [tuple(left[i : i + size]) for i in range(0, len(left), size)]
    return [chunk._replace(runs=part) for part in parts]


def compute(chunk: Chunk, results: CurveFiles, show: Show) -> None:
    """Computes and keeps the runs of a chunk."""
    arena, entrant = arena_of(chunk.task, chunk.asking), entrant_of(chunk.method)
    keys = {  # of the code as it is now
        run: key_of(arena, entrant, chunk.seed, run, chunk.checkpoints) for run in chunk.runs
    }
    show(chunk.name, 0)
    spent = 0

    def tick(episodes: int) -> None:
        nonlocal spent
        spent += episodes
        show(chunk.name, episodes)

    for curve in _learned(chunk, arena, entrant, tick):
        results.save(keys[curve.run], curve)
    show(chunk.name, chunk.episodes - spent)  # what no whole batch was left for


def _learned(chunk: Chunk, arena: Arena, entrant: Entrant, tick: Tick) -> list[RunCurve]:
    """The curves of a chunk; whatever goes wrong is one sentence that names task and method."""
    try:
        return learn(arena, entrant, chunk.seed, chunk.runs, chunk.checkpoints, tick)
    except (InputError, Broken, Failed):
        raise
    except (Exception, SystemExit) as wrong:
        raise RuntimeError(f"{arena.name} by {entrant.label} failed: {reason(wrong)}.") from wrong


def compute_all(chunks: Sequence[Chunk], results: CurveFiles, workers: int, show: Show) -> None:
    """Computes all chunks; in processes where there are enough of them."""
    if workers == 1 or len(chunks) <= FEW_CHUNKS:
        for chunk in chunks:
            compute(chunk, results, show)
        return
    _in_processes(sorted(chunks, key=lambda chunk: -chunk.episodes), results, workers, show)


def _in_processes(chunks: Sequence[Chunk], results: CurveFiles, workers: int, show: Show) -> None:
    for name, value in THREADS.items():
        os.environ.setdefault(name, value)
    context = multiprocessing.get_context("spawn")
    queue, done = context.Queue(), context.Queue()  # of any length: none waits to be read
    for number, chunk in enumerate(chunks):
        queue.put((number, chunk))
    workers = min(workers, len(chunks))
    at = context.RawArray("i", [WAITS] * workers)  # the chunk that each worker is at
    processes = [
        context.Process(target=_work, args=(queue, done, results.directory, at, i), daemon=True)
        for i in range(workers)
    ]
    for process in processes:
        queue.put(None)
        process.start()
    try:
        _watch(processes, done, chunks, at, show)
    finally:
        for process in processes:
            process.terminate()
            process.join()


def _watch(
    processes: Sequence[Any], done: Any, chunks: Sequence[Chunk], at: Sequence[int], show: Show
) -> None:
    """Tells `show` what processes have done, until all is; raises what one of them has raised."""
    left = len(chunks)
    while left:
        ended = [i for i, process in enumerate(processes) if process.exitcode is not None]
        if done.empty():
            lost = [i for i in ended if at[i] != DONE]
            if lost:
                raise RuntimeError(_ended(processes[lost[0]].exitcode, chunks, at[lost[0]]))
            time.sleep(WORK_POLL)
            continue
        name, episodes, finished = done.get()
        if isinstance(episodes, BaseException):
            raise episodes
        show(name, episodes)
        left -= finished


def _ended(status: int, chunks: Sequence[Chunk], number: int) -> str:
    """What is said of a worker that has ended before its work was done."""
    where = f" in {chunks[number].task} by {chunks[number].method}" if number >= 0 else ""
    return f"a worker ended with status {status}{where} before its work was done."


def _work(queue: Any, done: Any, directory: Path, at: Any, i: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends its workers itself
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    results = CurveFiles(directory)
    while (got := queue.get()) is not None:
        at[i], chunk = got
        try:
            compute(chunk, results, lambda name, episodes: done.put((name, episodes, 0)))
            done.put((chunk.name, 0, 1))
        except (Exception, SystemExit) as wrong:
            done.put((chunk.name, _plain(wrong), 1))
        at[i] = WAITS
    at[i] = DONE


def _plain(wrong: BaseException) -> Exception:
    """An exception as another process can take it."""
    if isinstance(wrong, (InputError, Broken)):
        return type(wrong)(str(wrong))
    return RuntimeError(str(wrong) if isinstance(wrong, RuntimeError) else reason(wrong))


def _end_with(parent: int) -> None:
    """Ends this process when its parent has ended, however that was."""
    while os.getppid() == parent:
        time.sleep(WORK_POLL)
    os._exit(1)

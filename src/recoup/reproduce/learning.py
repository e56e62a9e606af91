"""Learning curves: many runs of many methods on one task, with common starts."""

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from recoup.lockstep import Runs, learn
from recoup.reproduce.jobs import Arrays, Job, Tick
from recoup.tasks import Task, make_task, task_row
from recoup.training import search_of, task_settings

STEPS_PER_SECOND = {
    "toy": 2e6,
    "mountain-car": 1e6,
    "reach-2": 29e3,
    "reach-4": 24e3,
    "reach-9": 19e3,
}
COMPILATION = 6.0  # seconds a method


def learning_jobs(
    task: str,
    methods: Sequence[str],
    runs: int,
    iterations: int,
    checkpoints: Sequence[int],
    tests: int,
    *,
    chunk: int,
    **start: Any,
) -> list[Job]:
    """A job for every method and every `chunk` of runs; `start` may hold batch, mean and std."""
    return [
        _job(
            task,
            method,
            range(first, min(first + chunk, runs)),
            iterations,
            checkpoints,
            tests,
            start,
        )
        for method in methods
        for first in range(0, runs, chunk)
    ]


def joined(results: dict[str, Arrays], task: str, method: str, **start: Any) -> Runs:
    """All runs of a method from one start, in the order of their seeds."""
    group = f"{task}/{method}{_suffix(start)}/"
    parts = [
        Runs(**arrays)
        for name, arrays in results.items()
        if name.startswith(group) and "=" not in name.removeprefix(group)
    ]
    together = zip(*(part[1:] for part in parts), strict=True)
    return Runs(parts[0].checkpoints, *(np.concatenate(each) for each in together))


def _job(
    task: str,
    method: str,
    seeds: range,
    iterations: int,
    checkpoints: Sequence[int],
    tests: int,
    start: dict[str, Any],
) -> Job:
    row = task_row(task)
    settings = {
        "task": task,
        "method": method,
        "seeds": [seeds.start, seeds.stop],
        "iterations": iterations,
        "checkpoints": list(checkpoints),
        "tests": tests,
        **start,
    }
    episodes = len(seeds) * (iterations * start.get("batch", row.batch) + len(checkpoints) * tests)
    speed = STEPS_PER_SECOND[task.removesuffix("-weak")]
    return Job(
        name=f"{task}/{method}{_suffix(start)}/{seeds.start}-{seeds.stop - 1}",
        settings=settings,
        seconds=COMPILATION + episodes * row.horizon / speed,
        compute=partial(_learn, task, method, seeds, iterations, checkpoints, tests, start),
    )


def _suffix(start: dict[str, Any]) -> str:
    return "".join(f"/{key}={value}" for key, value in start.items())


def _learn(
    task: str,
    method: str,
    seeds: range,
    iterations: int,
    checkpoints: Sequence[int],
    tests: int,
    start: dict[str, Any],
    tick: Tick,
) -> Arrays:
    row, problem = task_row(task), _problem(task)
    batch = start.get("batch", row.batch)
    search = search_of(problem, method, batch, iterations, task_settings(row, method))
    runs = learn(
        problem,
        search,
        seeds,
        iterations,
        checkpoints=checkpoints,
        tests=tests,
        mean=start.get("mean"),
        tick=lambda: tick(1 / iterations),
    )
    return runs._asdict()


@lru_cache
def _problem(task: str) -> Task:
    """One task object a name, so that what was compiled for it is found again."""
    return make_task(task)

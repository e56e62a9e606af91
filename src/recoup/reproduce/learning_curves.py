"""Learning curves: many runs of many methods on one task, with common starts."""

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from recoup.core.types import Plain
from recoup.reproduce.jobs import Arrays, FigureJob, Tick
from recoup.runs.lockstep import Runs, learn, search_of
from recoup.runs.plan import task_settings
from recoup.tasks.registry import make_task, task_row
from recoup.tasks.task import Task

STEPS_PER_SECOND = {
    "toy": 2e6,
    "mountain-car": 1e6,
    "mountain-car-weak": 1e6,
    "reach-2": 29e3,
    "reach-4": 24e3,
    "reach-9": 19e3,
}
MARKS = ("mean", "batch", "longer")  # what tells apart runs of one method, in a job's name
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
) -> list[FigureJob]:
    """A job for every method and every `chunk` of runs; `start` may hold some of `MARKS`."""
    parts = [[first, min(first + chunk, runs)] for first in range(0, runs, chunk)]
    common = {"iterations": iterations, "checkpoints": list(checkpoints), "tests": tests, **start}
    return [
        _job({"task": task, "method": method, "seeds": seeds, **common})
        for method in methods
        for seeds in parts
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


def _job(settings: Plain) -> FigureJob:
    """The job of one method and some seeds; the settings say everything about it."""
    row, (first, last) = task_row(settings["task"]), settings["seeds"]
    batch = settings.get("batch", row.batch)
    tested = len(settings["checkpoints"]) * settings["tests"]
    episodes = (last - first) * (settings["iterations"] * batch + tested)
    return FigureJob(
        name=f"{row.name}/{settings['method']}{_suffix(settings)}/{first}-{last - 1}",
        settings=settings,
        seconds=COMPILATION + episodes * row.horizon / STEPS_PER_SECOND[row.name],
        compute=partial(_learn, settings),
    )


def _suffix(settings: Plain) -> str:
    """What tells apart runs of one method from different starts, or of another length."""
    return "".join(f"/{key}={settings[key]}" for key in MARKS if key in settings)


def _learn(settings: Plain, tick: Tick) -> Arrays:
    row, problem = task_row(settings["task"]), _problem(settings["task"])
    method, iterations = settings["method"], settings["iterations"]
    batch = settings.get("batch", row.batch)
    runs = learn(
        problem,
        search_of(problem, method, batch, iterations, task_settings(row, method)),
        range(*settings["seeds"]),
        iterations,
        checkpoints=settings["checkpoints"],
        tests=settings["tests"],
        start=(settings.get("mean"), 1.0),
        tick=lambda: tick(1 / iterations),
    )
    return runs._asdict()


@lru_cache
def _problem(task: str) -> Task:
    """One task object a name, so that what was compiled for it is found again."""
    return make_task(task)

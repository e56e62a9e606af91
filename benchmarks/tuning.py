"""What half and twice of each constant of the default method does: `python -m benchmarks.tuning`.

[STUDIES] [PROCESSES]: studies of each task (8), at once (2). Every variant searches the same tasks
with the same candidates' randomness and the same noise. What the mean policy is truly worth after
50 and after 100 results is put beside that of the constants as they are, in standard deviations
over the studies of a task; a row has the mean of that over the tasks, and its standard error.
"""

import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import fields, replace
from multiprocessing import get_context

import numpy as np

from benchmarks import known
from recoup.core.rules.tuning import TUNED, Tuning
from recoup.study.reader.settings import resolved
from recoup.study.study import Study

COUNTS = (50, 100)
STUDIES = 8
TASKS = (
    *("robot", "ridge", "ellipse", "sphere 8", "peaked", "cusp 3", "banana", "smooth 20"),
    *("pid", "arm", "waves", "ellipsoid 10", "success 2", "held up", "correlated 7", "ackley 3"),
    *("far start", "heavy arm", "still gains", "rippled 4"),
)
KNOWN = {**known.MADE_WITH, **known.HELD_OUT, **known.FRESH, **known.STILL}
AS_IS = ("", 1.0)


def variants() -> Iterator[tuple[str, float]]:
    """The constants as they are, then half and twice of each."""
    yield AS_IS
    for one in fields(Tuning):
        yield one.name, 0.5
        yield one.name, 2.0


def varied(name: str, factor: float) -> Tuning:
    """The constants with one of them times a factor; counts stay whole, and at least 1."""
    if not name:
        return TUNED
    value = getattr(TUNED, name)
    if isinstance(value, tuple):
        value = tuple(factor * x for x in value)
    elif isinstance(value, int):
        value = max(round(factor * value), 1)
    else:
        value = factor * value
    return replace(TUNED, **{name: value})


def put(tuning: Tuning) -> None:
    """Sets the constants of this process."""
    for name, module in list(sys.modules.items()):
        if name.startswith("recoup.") and hasattr(module, "TUNED"):
            module.TUNED = tuning


def worth(job: tuple[str, float, str, int]) -> list[float]:
    """What the mean policy of one study is worth after so many results."""
    name, factor, of, seed = job
    put(varied(name, factor))
    task, found = KNOWN[of], []
    study = Study.create(None, resolved({**task.settings, "seed": seed}))
    rng = np.random.default_rng([seed, 78])
    for count in COUNTS:
        while study.counts()["ok"] < count:
            trials = study.ask(study.until_move() or study.batch)
            study.tell([t.id for t in trials], [task.told(t.theta, rng) for t in trials])
        found.append(float(task.value(study.opened.in_units(study.mean))))
    return found


def differences(worths: np.ndarray, as_is: np.ndarray) -> tuple[float, float]:
    """The mean over tasks of `[T, S, C]` beside another, in its deviations; and standard error."""
    spread = np.maximum(as_is.std(axis=1, ddof=1, keepdims=True), 1e-12)
    apart = ((worths - as_is) / spread).mean(axis=2)  # [T, S]
    error = apart.std(axis=1, ddof=1) / apart.shape[1] ** 0.5
    return float(apart.mean()), float(np.sqrt(np.sum(error**2)) / len(apart))


def main(studies: int = STUDIES, processes: int = 2) -> None:
    """Prints the table."""
    each = list(variants())
    jobs = [(*one, task, seed) for one in each for task in TASKS for seed in range(studies)]
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        found = np.array(list(pool.map(worth, jobs, chunksize=len(TASKS))))
    worths = found.reshape(len(each), len(TASKS), studies, len(COUNTS))
    said = {one: differences(at, worths[0]) for one, at in zip(each, worths, strict=True)}
    print(f"{len(TASKS)} tasks, {studies} studies of each, after {COUNTS} results:\n")
    print("| constant | value | what it is | from | half | twice |\n|---|---|---|---|---|---|")
    for one in fields(Tuning):
        value = getattr(TUNED, one.name)
        shown = value if isinstance(value, (int, tuple)) else f"{value:.3g}"
        half, twice = (
            f"{mean:+.2f} ± {error:.2f}" for mean, error in (said[one.name, x] for x in (0.5, 2.0))
        )
        about = f"{one.metadata['unit']} | {one.metadata['origin']}"
        print(f"| `{one.name}` | {shown} | {about} | {half} | {twice} |", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

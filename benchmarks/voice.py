"""What a study says, held to the truth: `python -m benchmarks.voice [STUDIES] [PROCESSES]`.

Studies of the default method with its own batch and start, on the tasks of `benchmarks.known`. When
a study has made the first move behind 15, 30, 60, 100 and 150 results, what it says is put beside
what is true: the expected return of the mean policy (`recommend`) and of a draw (`evaluate`), where
each parameter is best, what the next move gains for both, and what it advises.
"""

import os
import pickle
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from benchmarks import known
from benchmarks.voice_tables import SETS, tasks_table, told_of
from recoup.study.reader.settings import resolved
from recoup.study.study import Study

COUNTS = (15, 30, 60, 100, 150)
STUDIES = 40
FIRST = 9000  # seed: others than those that anything was chosen with
DRAWS = 2000
TASKS = {name: task for found in SETS for name, task in getattr(known, found).items()}


def searched(name: str, seed: int) -> Iterator[Study]:
    """A study of a task after every move."""
    task = TASKS[name]
    study = Study.create(None, resolved({**task.settings, "seed": seed}))
    rng = np.random.default_rng([seed, 77])
    while True:
        trials = study.ask(study.until_move() or study.batch)
        study.tell([t.id for t in trials], [task.told(t.theta, rng) for t in trials])
        yield study


def rows(job: tuple[str, int]) -> list[dict]:
    """What one study said, and what was true, a row at a time."""
    name, seed = job
    task, due, found, open_row = TASKS[name], list(COUNTS), [], None
    for study in searched(name, seed):
        truth = (
            float(task.value(study.opened.in_units(study.mean))),
            task.over(study),
        )
        if open_row is not None:
            open_row |= {
                "gain": truth[0] - open_row["true"],
                "gain_draw": truth[1] - open_row["true_draw"],
            }
            found.append(open_row)
            open_row = None
        results = study.counts()["ok"]
        if not due:
            break
        if results >= due[0]:
            due = [count for count in due if count > results]
            open_row = {
                "task": name,
                "seed": seed,
                "n": results,
                **said(study, task, truth, 60 <= results < 100),
            }
    return found


def said(study: Study, task: known.Known, truth: tuple[float, float], often: bool) -> dict:
    """One row, but for what the next move gains."""
    r, e = study.recommend(), study.evaluate()
    return {
        "true": truth[0],
        "true_draw": truth[1],
        "top": task.top,
        "expected": (r.of_mean.value, *r.of_mean.interval),
        "evaluated": (e.mean, e.low, e.high),
        "forecast": (r.next_gain, *r.next_gain_interval),
        "forecast_draw": (r.next_draw_gain, *r.next_draw_gain_interval),
        "stderr": r.of_mean.stderr,
        "spread": float(np.std([t.value for t in study.trials()])),
        "verdict": r.verdict,
        "past": (r.gain, *r.gain_interval),
        "best": best_held(study, task, r),
        "dim": study.dim,
        "others": candidates(study, task, np.random.default_rng(len(study))) if often else [],
    }


def best_held(study: Study, task: known.Known, found) -> list[tuple[bool, bool]]:
    """For each of the first parameters, whether its best value is held, and both ends are known."""
    inside, width, here = [], 200.0, study.opened.in_units(study.mean)
    steps = np.sinh(np.linspace(-np.arcsinh(width), np.arcsinh(width), 4001))
    for i in range(min(study.dim, 6)):
        along = study.opened.in_units(
            study.mean + steps[:, None] * study.std * np.eye(study.dim)[i]
        )
        values = task.value(along)
        best = along[values >= np.max(values) - 1e-9 * np.ptp(values), i]
        low, high = found.low[i], found.high[i]
        slack = 0.02 * abs(study.opened.in_units(study.mean + study.std)[i] - here[i])
        held = bool(np.any((best >= low - slack) & (best <= high + slack)))
        inside.append((held, bool(np.isfinite(low) and np.isfinite(high))))
    return inside


def candidates(study: Study, task: known.Known, rng: np.random.Generator) -> list[tuple]:
    """Distributions and points of no result's choice: what is said of them, and the truth.

    Shifted by up to two standard deviations in any direction, as wide as the newest or half.
    """
    found = []
    z = rng.standard_normal((DRAWS, study.dim))
    for shift in (0.5, 1.0, 2.0):
        way = rng.standard_normal(study.dim)
        mean = study.mean + shift * study.std * way / np.linalg.norm(way)
        shown = study.opened.in_units(mean)
        for narrow in (1.0, 0.5):
            e = study.evaluate(mean=shown, std=narrow * study.std)
            theta = mean + narrow * study.std * np.concatenate([z, -z])
            truth = float(np.mean(task.value(study.opened.in_units(theta))))
            found.append(("distribution", shift, narrow, e.mean, e.low, e.high, truth))
        p = study.predict(shown)
        found.append(("point", shift, 0.0, p.expected, p.low, p.high, float(task.value(shown))))
    return found


def made(names, studies: int, processes: int) -> list[dict]:
    """The rows of so many studies of each task."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small matrices: nine times faster so
    jobs = [(name, FIRST + seed) for seed in range(studies) for name in names]
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        return [row for several in pool.map(rows, jobs) for row in several]


def main(studies: int = STUDIES, processes: int = 2, which: str = "", keep: str = "") -> None:
    """Prints a table for each set of tasks.

    `which` is one of the sets of `benchmarks.known`, or a task; a file to `keep` the rows in, which
    `benchmarks.voice_tables` makes a page of.
    """
    for name in [which] if which else SETS:
        found = made([which] if which in TASKS else [*getattr(known, name)], studies, processes)
        if keep:
            Path(keep).write_bytes(pickle.dumps(found))
        tasks = dict.fromkeys(row["task"] for row in found)
        print(f"\n{name.replace('_', ' ').lower()}, shares in per cent with binomial errors:\n")
        print(tasks_table({t: told_of("", [r for r in found if r["task"] == t]) for t in tasks}))


if __name__ == "__main__":
    numbers = [int(x) for x in sys.argv[1:3]]
    main(*numbers, *sys.argv[3:])

"""Which parameters matter, held to the truth: `python -m benchmarks.matters [STUDIES] [PROCESSES]`.

Studies of the default method on tasks of `benchmarks.known` of at most ten parameters, each with
one parameter more that does nothing. After 60 and after 120 results, what `recommend` says that
each parameter explains of what returns vary by is put beside the share that it does explain over
what was tried, and those that are said to do nothing beside those that do.
"""

import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np

from benchmarks import known
from recoup.study.reader.settings import resolved
from recoup.study.study import Study

COUNTS = (60, 120)
STUDIES = 32
DRAWS = 2**14
MOST = 10  # parameters of a task
FEW = 0.05  # a share from which on a parameter has an effect that should be seen
SETS = ("MADE_WITH", "HELD_OUT", "FRESH")
NOTHING = ("flat", "success 5", "grasp")  # where there is nothing to explain
TASKS = {
    name: task
    for found in SETS
    for name, task in getattr(known, found).items()
    if (task.settings.get("dim") or len(task.settings.get("params", ()))) <= MOST
    and not np.ndim(task.settings.get("mean", 0.0))
    and name not in NOTHING
}


def with_idle(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings of a task with one parameter more, which does nothing."""
    if "params" in settings:
        return {**settings, "params": {**settings["params"], "idle": (0.0, 1.0)}}
    return {**settings, "dim": settings["dim"] + 1}


def true_shares(study: Study, task: known.Known) -> np.ndarray:
    """The share `[D]` that each explains by itself under a Gaussian as wide as what was tried.

    Each is drawn twice while all others stay apart: the covariance of both returns.
    """
    tried = np.array([study.opened.here(trial)[0] for trial, _ in study.store.trials()])
    mean, std = tried.mean(axis=0), tried.std(axis=0)
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, DRAWS, study.dim))

    def earned(z: np.ndarray) -> np.ndarray:
        return np.asarray(task.value(study.opened.in_units(mean + std * z)[:, :-1]))

    one = earned(a)
    found = []
    for i in range(study.dim):
        other = np.where(np.arange(study.dim) == i, a, b)
        found.append(np.cov(one, earned(other))[0, 1] / max(np.var(one), 1e-300))
    return np.array(found)


def rows(job: tuple[str, int]) -> list[tuple]:
    """Of one study: the task, results, said share, its error, the true one, idle, said to be."""
    name, seed = job
    task, due, found = TASKS[name], list(COUNTS), []
    study = Study.create(None, resolved({**with_idle(task.settings), "seed": seed}))
    rng = np.random.default_rng([seed, 78])
    while due:
        trials = study.ask(study.until_move() or study.batch)
        study.tell([t.id for t in trials], [task.told(t.theta[:-1], rng) for t in trials])
        if study.counts()["ok"] < due[0]:
            continue
        due.pop(0)
        said = study.recommend()
        alone = {row.names[0]: row for row in said.matters if len(row.names) == 1}
        nothing = said.words.partition(" nothing that can be seen")[0].rpartition(". ")[2]
        named = nothing.removesuffix(" does").removesuffix(" do").split(", ")
        idle = "nothing that can be seen" in said.words
        for label, share in zip(study.opened.labels, true_shares(study, task), strict=True):
            if label in alone:
                row = alone[label]
                last = label == study.opened.labels[-1]
                numbers = (row.share, row.stderr, float(share))
                found.append((name, study.counts()["ok"], *numbers, last, idle and label in named))
    return found


def main(studies: int = STUDIES, processes: int = 2) -> None:
    """Prints a row for each task, of both counts together, and one for all."""
    jobs = [(name, 7000 + seed) for seed in range(studies) for name in TASKS]
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        found = [row for several in pool.map(rows, jobs) for row in several]
    columns = ("said - true", "root mean square", "within one error", "within two errors")
    print(f"\n| task | {' | '.join(columns)} | idle named | wrongly |")
    print("|---|---|---|---|---|---|---|")
    for name in TASKS:
        print_row(name, [row for row in found if row[0] == name])
    for count in COUNTS:
        print_row(f"**all, {count} results**", [row for row in found if _at(row[1]) == count])


def _at(results: int) -> int:
    return max(count for count in COUNTS if count <= results)


def print_row(name: str, some: list[tuple]) -> None:
    """One line of the table."""
    apart = np.array([said - true for _, _, said, _, true, _, _ in some])
    error = np.array([max(stderr, 0.01) for _, _, _, stderr, _, _, _ in some])
    idle = [named for *_, last, named in some if last]
    wrong = [named for _, _, _, _, true, last, named in some if not last and true > FEW]
    within = [_percent(list(np.abs(apart) <= times * error)) for times in (1, 2)]
    numbers = [f"{apart.mean():+.3f}", f"{np.mean(apart**2) ** 0.5:.3f}", *within]
    print(f"| {name} | {' | '.join([*numbers, _percent(idle), _percent(wrong)])} |")


def _percent(held: list[bool]) -> str:
    """A share in per cent, with its binomial standard error."""
    p = float(np.mean(held)) if held else np.nan
    return f"{100 * p:.0f} ± {100 * (p * (1 - p) / max(len(held), 1)) ** 0.5:.0f}"


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))

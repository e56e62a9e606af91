"""Up to 10,000 workers: the scheduler's own code, with a virtual clock in place of a cluster.

A run is a real `Schedule` that asks and tells a real `Study` in memory. Only the engine is
simulated: episodes take virtual time, workers lose trials, nodes fail and come back.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.many_workers_tables import picture, tables
from benchmarks.simulated_cluster import (
    EPISODES,
    LARGE,
    METHOD,
    PROBLEMS,
    SETTINGS,
    SMALLEST,
    TIMES,
    TROUBLE,
    WORKERS,
    Cluster,
    Losses,
    Problem,
)
from recoup.runs.schedule import Rules, Schedule
from recoup.study.reader.settings import resolved
from recoup.study.study import Study
from recoup.tasks.engines.engine import Job

MOVES, ROUNDS = 40, 4  # a run has so many batches, and so many trials for each worker, at least
HELD = 5  # distributions in a row that must be worth the target
RATIOS = (1, 4, 16, 64)  # workers for each trial of a batch
SAVE = 20.0  # seconds between two savings
ONE_THREAD = {  # for each process
    "JAX_PLATFORMS": "cpu",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}


class Point(NamedTuple):
    """A run: all that it depends on."""

    workers: int
    batch: int
    sync: bool = False
    setting: str = "natural"
    problem: str = "toy"
    tie: float = 0.0  # correlation of an episode's log time with its return, at the start
    episodes: int = 0  # 0: as `MOVES` and `ROUNDS` say
    losses: Losses = TROUBLE
    retries: int = 5
    seed: int = 0

    @property
    def budget(self) -> int:
        if self.episodes:
            return self.episodes
        moves = MOVES if self.batch <= LARGE else MOVES // 2
        return max(moves * self.batch, 0 if self.sync else ROUNDS * self.workers)


def length_of(problem: Problem, tie: float, job: Job, value: float) -> float:
    """How long an episode takes: log-normal, median 1 at the start; by its seed and its return."""
    noise = np.random.default_rng([job.seed, 1]).standard_normal()
    z = (value - problem.centre) / problem.spread
    return float(np.exp(tie * z + (1 - tie**2) ** 0.5 * noise))


def simulate(point: Point) -> tuple[Study, Cluster, np.ndarray]:
    """The study of a run, its cluster, and when each result was told `[n]`."""
    problem = PROBLEMS[point.problem]
    mean, std = problem.start
    settings = {"dim": len(mean), "mean": mean, "std": std}
    settings |= {"batch": point.batch, "seed": point.seed, "method": METHOD}
    study = Study.create(None, resolved({**settings, **SETTINGS[point.setting]}))
    cluster = Cluster(
        point.workers,
        lambda job: problem.roll(job.theta, job.seed),
        partial(length_of, problem, point.tie),
        point.losses,
        point.seed,
    )
    told: list[float] = []

    def listen(heard: list[Any], load: Any) -> bool:
        told.extend([cluster.now] * len(heard))
        return False

    rules = Rules(point.sync, retries=point.retries)
    assert Schedule(study, cluster, rules).spend(point.budget, 0, [], listen)
    return study, cluster, np.array(told)


def lateness(study: Study) -> np.ndarray:
    """For each result that moves used `[n]`: moves made between its draw and its first use."""
    marks = np.array([row["results"] for row in study.history()])
    trials = [trial for trial in study.trials() if trial.status == "ok"]
    kept = study.store.results([trial.id for trial in trials])
    places = np.array([kept[trial.id].counted for trial in trials])
    drew = np.array([trial.proposal for trial in trials])
    used = places <= marks[-1]
    return np.searchsorted(marks, places[used]) - drew[used]


def measured(point: Point) -> dict[str, Any]:
    """A run in numbers."""
    began = time.process_time()
    study, cluster, told = simulate(point)
    spent = time.process_time() - began
    steady, whole = cluster.handed_out, cluster.meter
    found = {
        "told": len(told),
        "failed": study.counts()["failed"],
        "lost": cluster.lost_trials,
        "nodes": cluster.lost_nodes,
        "end": whole.now,
        "busy": steady.busy / steady.up if steady.up else 1.0,
        "there": whole.up / (point.workers * whole.now),
        "wasted": whole.wasted / whole.busy,
        "tail": whole.now - steady.now,
        "cpu_ms": 1e3 * spent / len(told),
    }
    found |= reuse(study, point.batch) | learning(study, PROBLEMS[point.problem], told)
    study.close()
    plain = {key: value.item() if hasattr(value, "item") else value for key, value in found.items()}
    return {**point._asdict(), "losses": list(point.losses), **plain}


def reuse(study: Study, batch: int) -> dict[str, Any]:
    """How late results were, and for how many samples of the newest distribution they count."""
    late, history = lateness(study), study.history()
    return {
        "moves": len(history),
        "late": late.mean(),
        "late95": np.quantile(late, 0.95),
        "ess": np.mean([row["ess"] / row["samples"] for row in history]),
        "ess_batches": np.mean([row["ess"] for row in history]) / batch,
    }


def learning(study: Study, problem: Problem, told: np.ndarray) -> dict[str, Any]:
    """What the distributions were worth, exactly, by results and by time; and as estimated."""
    history, rhos = study.history(), study.distributions()
    marks = np.array([row["results"] for row in history])
    worth = np.array([problem.worth(*rhos[i]) for i in range(len(rhos))])
    middle = np.array([problem.worth(rhos[i][0], 0 * rhos[i][1]) for i in range(len(rhos))])
    ends, results = np.append(0.0, told[marks - 1]), np.append(0, marks)
    held = np.convolve(worth >= problem.target, np.ones(HELD), "valid") == HELD
    at = int(np.argmax(held)) if held.any() else None
    errors = np.array([row["objective"] for row in history]) - worth[:-1]
    return {
        "final": worth[-1],
        "final_mean": middle[-1],
        "reached": None if at is None else ends[at],
        "reached_after": None if at is None else results[at],
        "by_episodes": _curve(results, worth, EPISODES, len(told)),
        "mean_by_episodes": _curve(results, middle, EPISODES, len(told)),
        "by_time": _curve(ends, worth, TIMES, told[-1]),
        "error_by_episodes": _errors(marks, errors),
    }


def _curve(at: np.ndarray, worth: np.ndarray, marks: Any, end: float) -> list[float | None]:
    """What the distribution was worth at these marks, as far as the run went."""
    places = np.searchsorted(at, marks, "right") - 1
    return [float(worth[i]) if m <= end else None for i, m in zip(places, marks, strict=True)]


def _errors(marks: np.ndarray, errors: np.ndarray) -> list[float | None]:
    """The mean error of the moves made up to each of `EPISODES`, since the one before."""
    edges = [0, *EPISODES]
    parts = [errors[(marks > low) & (marks <= high)] for low, high in pairwise(edges)]
    return [float(part.mean()) if len(part) else None for part in parts]


# -- many runs --


def batches(workers: int) -> list[int]:
    """The batches that are tried with so many workers: the smallest, and by `RATIOS`."""
    found = {max(workers // ratio, SMALLEST) for ratio in RATIOS}
    return sorted(found | ({SMALLEST} if workers <= LARGE else set()))


def sweep(workers: Sequence[int], seeds: int) -> list[Point]:
    """Workers and batches, with the barrier and without; of large clusters fewer seeds."""
    found = []
    for w in workers:
        few = seeds if w < LARGE else max(seeds // 2, 2) if w == LARGE else max(seeds // 5, 2)
        cases = [(b, False) for b in batches(w)]
        cases += [(b, True) for b in sorted({SMALLEST, max(w // 4, SMALLEST), max(w, SMALLEST)})]
        kinds = [("natural", "toy"), ("normalised", "toy"), ("natural", "quadratic")]
        for seed in range(few):
            found += [Point(w, *case, *kind, seed=seed) for case in cases for kind in kinds]
    return found


def asides(seeds: int) -> list[Point]:
    """The same without losses, with one retry, with long steps; and late results as if new."""
    base = Point(LARGE, LARGE // 4)
    cases = [base, base._replace(losses=Losses()), base._replace(retries=1)]
    for batch in (LARGE // 16, LARGE // 4):
        wide = Point(LARGE, batch, problem="quadratic")
        cases += [wide, wide._replace(setting="long")]
    small = Point(SMALLEST, SMALLEST, problem="quadratic", losses=Losses(), episodes=1000)
    for ratio in (1, 4, 16):
        one = small._replace(workers=ratio * SMALLEST)
        cases += [one, one._replace(setting="unweighted")]
    cases += [small._replace(sync=True, setting=word) for word in ("natural", "unweighted")]
    return [case._replace(seed=seed) for seed in range(seeds // 2 or 1) for case in cases]


def ties(seeds: int) -> list[Point]:
    """Episodes whose time falls with their return, has nothing to do with it, or grows with it.

    With the barrier, times do not matter to what so many results teach, only to when.
    """
    cases = [
        Point(SMALLEST * ratio, SMALLEST, sync, setting, tie=tie, episodes=500, losses=Losses())
        for tie in (-0.8, 0.0, 0.8)
        for setting in ("still", "normalised", "natural")
        for ratio, sync in ((1, True), (1, False), (4, False), (16, False))
        if not (sync and tie and setting == "still")
    ]
    return [case._replace(seed=seed) for seed in range(seeds) for case in cases]


def spent(points: Sequence[Point], jobs: int, out: Path | None) -> list[dict[str, Any]]:
    """The records of all points, each once; those that `out` has are not made again."""
    records = json.loads(out.read_text()) if out is not None and out.exists() else []
    made = {_key(record) for record in records}
    todo = [point for point in dict.fromkeys(points) if _key(_plain(point)) not in made]
    todo.sort(key=lambda point: -point.budget)
    began = saved = time.perf_counter()
    with _pool(jobs) as each:
        for i, record in enumerate(each(measured, todo), 1):
            records.append(record)
            now = time.perf_counter()
            if out is not None and (now - saved > SAVE or i == len(todo)):
                _write(out, records)
                saved = now
                print(f"{i} of {len(todo)} runs, {now - began:.0f} s", file=sys.stderr, flush=True)
    return records


@contextmanager
def _pool(jobs: int) -> Iterator[Any]:
    if jobs == 1:
        yield map
        return
    os.environ |= ONE_THREAD
    with get_context("spawn").Pool(jobs) as pool:
        yield partial(pool.imap_unordered, chunksize=1)


def _write(out: Path, records: list[dict[str, Any]]) -> None:
    beside = out.with_suffix(".part")
    beside.write_text(json.dumps(records))
    beside.replace(out)


def _plain(point: Point) -> dict[str, Any]:
    return {**point._asdict(), "losses": list(point.losses)}


def _key(record: Mapping[str, Any]) -> str:
    return json.dumps([record[name] for name in Point._fields])


def main(arguments: Sequence[str] | None = None) -> None:
    """Makes the runs, prints the tables, draws the picture if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a minute on one core")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--workers", type=int, nargs="+", default=WORKERS)
    parser.add_argument("--only", choices=("sweep", "asides", "ties"))
    parser.add_argument("--out", type=Path, help="a JSON file, which is gone on with")
    parser.add_argument("--show", type=Path, help="no runs: the tables of this JSON file")
    parser.add_argument("--picture", type=Path)
    given = parser.parse_args(arguments)
    if given.show:
        records = json.loads(given.show.read_text())
    else:
        records = spent(_points(given), given.jobs, given.out)
    print("\n".join(tables(records)))
    if given.picture:
        picture(records, given.picture)


def _points(given: argparse.Namespace) -> list[Point]:
    """What is asked for; of ties three times as many seeds."""
    if given.quick:
        few = [p for p in sweep((1, 16, 64), 2) if (p.problem, p.setting) == ("toy", "natural")]
        return few + [p for p in ties(4) if p.setting == "still"]
    parts = {
        "sweep": partial(sweep, given.workers, given.seeds),
        "asides": partial(asides, given.seeds),
        "ties": partial(ties, 3 * given.seeds),
    }
    return [point for name, made in parts.items() if given.only in (None, name) for point in made()]


if __name__ == "__main__":  # processes that are started import this module too
    main()

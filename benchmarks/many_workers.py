"""Up to 10,000 workers: the scheduler's own code, with a virtual clock in place of a cluster.

A run is a real `Schedule` that asks and tells a real `Study` in memory. Only the engine is
simulated: episodes take virtual time, workers lose trials, nodes fail and come back.
"""

import argparse
import heapq
import json
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from recoup.runs.schedule import Rules, Schedule
from recoup.study.reader.settings import resolved
from recoup.study.study import Study
from recoup.tasks.engines.engine import Job, Outcome

WORKERS = (1, 4, 16, 64, 256, 1000, 4000, 10_000)
MOVES, ROUNDS = 40, 4  # a run has so many batches, and so many trials for each worker, at least
LARGE = 1000  # batches of more, half as many; clusters from here on, fewer seeds
HELD = 5  # distributions in a row that must be worth the target
ARRIVE = 0.8  # share of runs that must reach the target
SMALLEST = 10  # batch
RATIOS = (1, 4, 16, 64)  # workers for each trial of a batch
EPISODES = (100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000)
TIMES = (5.0, 10.0, 20.0, 40.0, 80.0, 160.0)  # virtual
SAVE = 20.0  # seconds between two savings
ONE_THREAD = {  # for each process
    "JAX_PLATFORMS": "cpu",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}
METHOD = "mis-pgpe-ob"
SETTINGS: dict[str, dict[str, Any]] = {
    "normalised": {},  # the step that the method has unless said
    "natural": {"update": "natural", "kl": 0.3},
    "long": {"update": "natural", "kl": 1.0},
    "unweighted": {"method": "pgpe-ob", "update": "natural", "kl": 0.3},  # late ones as if new
    "still": {"epsilon": 1e-9},  # the distribution stays where it is: what is left is the bias
}


# -- the tasks: a return, and the expected return of a Gaussian, exactly --


class Problem(NamedTuple):
    """What is learned."""

    start: tuple[list[float], list[float]]  # mean and std
    roll: Callable[[np.ndarray, int], float]  # theta, seed -> return
    worth: Callable[[np.ndarray, np.ndarray], float]  # mean, std -> expected return
    centre: float  # mean and deviation of returns at the start, which episode times may follow
    spread: float
    target: float  # an expected return of the distribution that counts as learned


HORIZON, DISCOUNT, NOISE = 10, 0.9, 0.5  # of the toy
ROUGH, OPTIMUM = 1.0, 1.0  # of the quadratic: noise of a return, and where it is highest


def toy_return(theta: np.ndarray, seed: int) -> float:
    """One episode of the toy, by the equations of `recoup.tasks.toy`."""
    model = _toy_model()
    noise = np.random.default_rng(seed).standard_normal((HORIZON + 1, 1))
    state, total = model.initial(np, noise[0]), 0.0
    for t in range(HORIZON):
        action = theta * model.basis(np, state)
        after = model.transition(np, state, action, noise[t + 1])
        total += DISCOUNT**t * float(model.reward(np, state, action, after))
        state = after
    return total


@lru_cache
def _toy_model() -> Any:
    from recoup.tasks.toy import toy

    return toy()


def toy_policy_worth(theta: Any) -> np.ndarray:
    """The expected return of the policy a = theta s: its states are normal with mean zero.

    s_t ~ N(0, v_t) with v' = (1 + theta)^2 v + 0.5^2, so that
    E exp(-s^2 (1 + theta^2) / 2) = 1 / sqrt(1 + v (1 + theta^2)).
    """
    theta = np.asarray(theta, float)
    variance, total = np.ones_like(theta), np.zeros_like(theta)
    for t in range(HORIZON):
        total += DISCOUNT**t * (1 + 1 / np.sqrt(1 + variance * (1 + theta**2)))
        variance = (1 + theta) ** 2 * variance + NOISE**2
    return total


def toy_worth(mean: np.ndarray, std: np.ndarray) -> float:
    """The expected return of theta ~ N(mean, std^2), by quadrature."""
    z = np.linspace(-8, 8, 801)
    mass = np.exp(-(z**2) / 2)
    return float(np.sum(mass * toy_policy_worth(mean[0] + std[0] * z)) / mass.sum())


def quadratic_return(theta: np.ndarray, seed: int) -> float:
    noise = np.random.default_rng(seed).standard_normal()
    return float(ROUGH * noise - np.sum((theta - OPTIMUM) ** 2))


def quadratic_worth(mean: np.ndarray, std: np.ndarray) -> float:
    return -float(np.sum((mean - OPTIMUM) ** 2 + std**2))


PROBLEMS = {  # both start three standard deviations away from the best parameters
    "toy": Problem(([1.0], [0.5]), toy_return, toy_worth, 7.85, 1.39, 11.5),
    "quadratic": Problem(
        ([0.0] * 10, [1.0] * 10), quadratic_return, quadratic_worth, -20.0, 7.9, -2.0
    ),
}


# -- the cluster --


class Losses(NamedTuple):
    """What goes wrong: trials that a worker loses, and nodes that fail with all their trials."""

    trials: float = 0.0  # share of attempts that are lost, at a uniform moment
    rate: float = 0.0  # failures of a node in a unit of time
    away: float = 20.0  # units of time until it is back
    size: int = 50  # workers on a node


TROUBLE = Losses(trials=0.01, rate=0.001)


class Attempt(NamedTuple):
    """A trial at a worker."""

    job: Job
    worker: int
    began: float
    outcome: Outcome


class Meter(NamedTuple):
    """Worker time up to a moment."""

    now: float = 0.0
    up: float = 0.0  # of workers whose node is there
    busy: float = 0.0  # of those that have a trial
    wasted: float = 0.0  # of attempts that were lost


class Cluster:
    """An engine with a virtual clock: what happens next is on top of a heap."""

    def __init__(
        self,
        workers: int,
        roll: Callable[[Job], float],
        length: Callable[[Job, float], float],
        losses: Losses | None = None,
        seed: int = 0,
    ) -> None:
        """`length` says how long the episode of a trial with this return takes."""
        self.workers, self.slots, self.losses = workers, workers, losses or Losses()
        self._roll, self._length = roll, length
        self._free = deque(range(workers))
        self._running: dict[int, Attempt] = {}  # by worker
        self._tries: dict[int, int] = {}
        self._events: list[tuple[float, int, Callable[[Any], list[Outcome] | None], Any]] = []
        self._count = 0
        self.meter = self.handed_out = Meter()  # now, and when the last trial was handed out
        self.lost_trials = self.lost_nodes = 0
        self._rng = np.random.default_rng([seed, 7])
        if self.losses.rate:
            for node in range(-(-workers // self.losses.size)):
                self._later(self._rng.exponential(1 / self.losses.rate), self._falls, node)

    @property
    def now(self) -> float:
        return self.meter.now

    def submit(self, job: Job) -> None:
        """Takes a trial: its end, or its loss, is known from here on."""
        worker = self._free.popleft()
        value = self._roll(job)
        length, outcome = self._length(job, value), Outcome(job.id, (value,))
        tries = self._tries[job.id] = self._tries.get(job.id, 0) + 1
        if self.losses.trials:
            lost, moment = np.random.default_rng([job.seed, 3, tries]).random(2)
            if lost < self.losses.trials:
                length, outcome = moment * length, Outcome(job.id, failed="its worker was lost")
        attempt = Attempt(job, worker, self.now, outcome)
        self._running[worker] = attempt
        self._later(length, self._ends, attempt)
        if tries == 1:
            self.handed_out = self.meter

    def wait(self, seconds: float | None = None) -> list[Outcome]:
        """What happens next; nothing where only the number of workers has changed."""
        while self._events:
            moment, _, happens, what = heapq.heappop(self._events)
            self._pass(moment)
            found = happens(what)
            if found is not None:
                return found
        return []

    def close(self) -> None:
        pass

    def _later(self, wait: float, happens: Callable[[Any], Any], what: Any) -> None:
        self._count += 1
        heapq.heappush(self._events, (self.now + wait, self._count, happens, what))

    def _pass(self, moment: float) -> None:
        passed, (_, up, busy, wasted) = moment - self.now, self.meter
        running = len(self._running)
        self.meter = Meter(moment, up + self.slots * passed, busy + running * passed, wasted)

    def _ends(self, attempt: Attempt) -> list[Outcome] | None:
        if self._running.get(attempt.worker) is not attempt:
            return None  # it went with its node
        del self._running[attempt.worker]
        self._free.append(attempt.worker)
        if attempt.outcome.failed is not None:
            self._wastes([attempt])
        return [attempt.outcome]

    def _wastes(self, attempts: list[Attempt]) -> None:
        wasted = self.meter.wasted + sum(self.now - attempt.began for attempt in attempts)
        self.meter = self.meter._replace(wasted=wasted)
        self.lost_trials += len(attempts)

    def _falls(self, node: int) -> list[Outcome]:
        """A node fails: every trial on it is lost at this moment."""
        on_it = self._workers_of(node)
        gone = [self._running.pop(worker) for worker in on_it if worker in self._running]
        self._free = deque(worker for worker in self._free if worker not in on_it)
        self.slots -= len(on_it)
        self.lost_nodes += 1
        self._wastes(gone)
        self._later(self.losses.away, self._returns, node)
        return [Outcome(one.job.id, failed="its node was lost") for one in gone]

    def _returns(self, node: int) -> list[Outcome]:
        self._free.extend(self._workers_of(node))
        self.slots += len(self._workers_of(node))
        self._later(self._rng.exponential(1 / self.losses.rate), self._falls, node)
        return []

    def _workers_of(self, node: int) -> range:
        size = self.losses.size
        return range(node * size, min((node + 1) * size, self.workers))


# -- one run --


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


# -- what is said of them --

GROUP = ("problem", "setting", "tie", "losses", "retries", "episodes", "workers", "batch", "sync")


Records = Sequence[Mapping[str, Any]]


def grouped(records: Records, **wanted: Any) -> dict[tuple[int, int, bool], Any]:
    """Records that differ in their seeds alone, by workers, batch and barrier."""
    wanted = {"tie": 0.0, "losses": list(TROUBLE), "retries": 5, "episodes": 0, **wanted}
    found: dict[tuple[int, int, bool], list[Any]] = {}
    for record in sorted(records, key=lambda r: (r["workers"], r["sync"], r["batch"], r["seed"])):
        if all(record[key] == value for key, value in wanted.items()):
            key = (record["workers"], record["batch"], record["sync"])
            found.setdefault(key, []).append(record)
    return found


def mean_of(rows: Records, key: str) -> tuple[float, float, int]:
    """Mean of what there is, its standard error, and of how many."""
    values = np.array([row[key] for row in rows if row[key] is not None], float)
    if not len(values):
        return float("nan"), float("nan"), 0
    error = values.std(ddof=1) / len(values) ** 0.5 if len(values) > 1 else float("nan")
    return float(values.mean()), float(error), len(values)


def at_mark(rows: Records, key: str, i: int) -> tuple[float, float, int]:
    """The same of one place of a curve."""
    return mean_of([{key: row[key][i]} for row in rows], key)


def shown(found: tuple[float, float, int], digits: int = 2) -> str:
    """A mean and its standard error."""
    mean, error, n = found
    if not n:
        return "-"
    return f"{mean:.{digits}f}" + (f" ± {error:.{digits}f}" if np.isfinite(error) else "")


def sweep_table(records: Records, problem: str, setting: str) -> list[str]:
    """Every point of the sweep."""
    lines = [
        f"{problem}, {setting} (target {PROBLEMS[problem].target:g}):",
        "",
        "| workers | batch | barrier | busy | late, mean | late, 95 % | ESS a sample "
        "| ESS in batches | reached | episodes to it | time to it |",
        "|" + "---|" * 11,
    ]
    for (workers, batch, sync), rows in grouped(records, problem=problem, setting=setting).items():
        after, reached = mean_of(rows, "reached_after"), mean_of(rows, "reached")
        cells = [f"{workers:,}", f"{batch:,}", "yes" if sync else "no"]
        cells += [f"{mean_of(rows, 'busy')[0]:.1%}"]
        cells += [f"{mean_of(rows, key)[0]:.1f}" for key in ("late", "late95")]
        cells += [shown(mean_of(rows, "ess")), f"{mean_of(rows, 'ess_batches')[0]:.1f}"]
        cells += [f"{reached[2]} of {len(rows)}", shown(after, 0), shown(reached)]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def curve_table(records: Records, problem: str, setting: str) -> list[str]:
    """What the distributions were worth after so many results, and at moments of the clock."""
    after, at = (0, 1, 2, 3, 5, 7), range(4)
    heads = [f"after {EPISODES[i]:,}" for i in after] + [f"at time {TIMES[i]:g}" for i in at]
    heads += ["at the end", "its mean policy"]
    lines = [f"{problem}, {setting}: expected return of the distribution", ""]
    lines += [f"| workers | batch | barrier | {' | '.join(heads)} |", "|" + "---|" * 15]
    for (workers, batch, sync), rows in grouped(records, problem=problem, setting=setting).items():
        cells = [f"{workers:,}", f"{batch:,}", "yes" if sync else "no"]
        cells += [shown(at_mark(rows, "by_episodes", i)) for i in after]
        cells += [shown(at_mark(rows, "by_time", i)) for i in at]
        cells += [shown(mean_of(rows, key)) for key in ("final", "final_mean")]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def arrived(rows: Records) -> bool:
    """Whether so many runs reached the target that a mean of theirs says something."""
    return mean_of(rows, "reached")[2] >= ARRIVE * len(rows)


class Best(NamedTuple):
    """The batch with which the target was reached first."""

    workers: int
    batch: int
    time: tuple[float, float, int]
    speed_up: float  # over one worker
    error: float


def best(records: Records, problem: str, setting: str, sync: bool) -> list[Best]:
    """For each number of workers, among the batches with which most runs reached the target."""
    groups = grouped(records, problem=problem, setting=setting)
    whole = {
        key[:2]: mean_of(rows, "reached")
        for key, rows in groups.items()
        if key[2] == sync and arrived(rows)
    }
    one = mean_of(groups.get((1, SMALLEST, False), []), "reached")
    found = []
    for workers in sorted({w for w, _ in whole}):
        batch = min((b for w, b in whole if w == workers), key=lambda b: whole[workers, b][0])
        spent_there = whole[workers, batch]
        gain = one[0] / spent_there[0]
        relative = np.hypot(one[1] / one[0], spent_there[1] / spent_there[0])
        found.append(Best(workers, batch, spent_there, gain, gain * relative))
    return found


def best_table(records: Records, problem: str, setting: str) -> list[str]:
    """What is gained by more workers, each with its best batch."""
    lines = [
        f"{problem}, {setting}: the best of the batches that arrive:",
        "",
    ]
    lines += ["| workers | barrier | batch | time | speed-up |", "|---|---|---|---|---|"]
    for sync in (False, True):
        for row in best(records, problem, setting, sync):
            gain = shown((row.speed_up, row.error, 1), 1)
            cells = [f"{row.workers:,}", "yes" if sync else "no", f"{row.batch:,}"]
            lines.append(f"| {' | '.join([*cells, shown(row.time), gain])} |")
    return lines


def tie_table(records: Records, setting: str) -> list[str]:
    """The error of the estimated objective, and what was learned, by the law of episode times."""
    how = {"setting": setting, "problem": "toy", "losses": list(Losses()), "episodes": 500}
    learns, marks = setting != "still", range(3)
    heads = [f"error, to {high} results" for high in EPISODES[:3]]
    if learns:
        heads += [f"worth after {EPISODES[i]}" for i in marks]
        heads += [f"minus the barrier's, {EPISODES[i]}" for i in marks]
    lines = [f"toy, {setting}; times by returns:", ""]
    lines += [f"| correlation | workers | barrier | {' | '.join(heads)} |"]
    lines += ["|" + "---|" * (3 + len(heads))]
    barrier = grouped(records, tie=0.0, **how).get((SMALLEST, SMALLEST, True), [])
    rows_of = [((0.0, SMALLEST, True), barrier)] if barrier else []
    for tie in (0.0, -0.8, 0.8):
        found = grouped(records, tie=tie, **how).items()
        rows_of += [((tie, w, sync), rows) for (w, _, sync), rows in found if not sync]
    for (tie, workers, sync), rows in rows_of:
        cells = ["any" if sync else f"{tie:+g}", _in_batches(workers), "yes" if sync else "no"]
        cells += [shown(at_mark(rows, "error_by_episodes", i)) for i in marks]
        if learns:
            cells += [shown(at_mark(rows, "by_episodes", i)) for i in marks]
            cells += [shown(paired(rows, barrier, "by_episodes", i)) for i in marks]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def tie_time_table(records: Records, setting: str) -> list[str]:
    """What the distribution was worth at moments of the clock; a run that has ended stays there."""
    how = {"setting": setting, "problem": "toy", "losses": list(Losses()), "episodes": 500}
    lines = [f"toy, {setting}; times by returns, by the clock:", ""]
    heads = [f"worth at time {moment:g}" for moment in TIMES]
    lines += [f"| correlation | workers | barrier | {' | '.join(heads)} |"]
    lines += ["|" + "---|" * (3 + len(heads))]
    for tie in (0.0, -0.8, 0.8):
        for (workers, _, sync), rows in grouped(records, tie=tie, **how).items():
            cells = [f"{tie:+g}", _in_batches(workers), "yes" if sync else "no"]
            for i in range(len(TIMES)):
                there = [row["by_time"][i] for row in rows]
                ended = [row["final"] for row in rows]
                worth = [b if a is None else a for a, b in zip(there, ended, strict=True)]
                cells.append(shown(mean_of([{"worth": x} for x in worth], "worth")))
            lines.append(f"| {' | '.join(cells)} |")
    return lines


def paired(rows: Records, others: Records, key: str, i: int) -> tuple[float, float, int]:
    """The mean difference of runs with the same seeds, at one place of a curve."""
    theirs = {row["seed"]: row[key][i] for row in others}
    both = [row for row in rows if theirs.get(row["seed"]) is not None and row[key][i] is not None]
    return mean_of([{key: row[key][i] - theirs[row["seed"]]} for row in both], key)


def _in_batches(workers: int) -> str:
    return "1 batch" if workers == SMALLEST else f"{workers // SMALLEST} batches"


def aside_tables(records: Records) -> list[str]:
    """Losses and retries; longer steps; late results without reuse."""
    lines = ["losses (toy, natural, 1,000 workers, batch 250):", ""]
    lines += ["| losses | retries | wasted | lost | failed | time |", "|---|---|---|---|---|---|"]
    for losses, retries in ((Losses(), 5), (TROUBLE, 5), (TROUBLE, 1)):
        how = {"problem": "toy", "setting": "natural", "losses": list(losses), "retries": retries}
        rows = grouped(records, **how).get((LARGE, LARGE // 4, False), [])
        cells = ["yes" if losses.trials else "no", str(retries)]
        cells += [f"{mean_of(rows, 'wasted')[0]:.1%}"]
        cells += [shown(mean_of(rows, key), 1) for key in ("lost", "failed")]
        lines.append(f"| {' | '.join([*cells, shown(mean_of(rows, 'reached'))])} |")
    lines += ["", "longer steps (quadratic, 1,000 workers):", ""]
    lines += ["| batch | kl | reached | time |", "|---|---|---|---|"]
    for setting in ("natural", "long"):
        groups = grouped(records, problem="quadratic", setting=setting)
        for batch in (LARGE // 16, LARGE // 4):
            rows = groups.get((LARGE, batch, False), [])
            reached = mean_of(rows, "reached")
            cells = [str(batch), str(SETTINGS[setting]["kl"]), f"{reached[2]} of {len(rows)}"]
            lines.append(f"| {' | '.join([*cells, shown(reached)])} |")
    return [*lines, "", *weights_table(records)]


def weights_table(records: Records) -> list[str]:
    """Late results weighed by what drew them and reused, and used once as if they were new."""
    lines = ["quadratic, batch 10, with reuse and without:", ""]
    lines += ["| workers | barrier | method | worth after 200 | after 500 | after 1,000 |"]
    lines += ["|---|---|---|---|---|---|"]
    for setting in ("natural", "unweighted"):
        how = {"problem": "quadratic", "setting": setting, "losses": list(Losses())}
        for (workers, _, sync), rows in grouped(records, episodes=1000, **how).items():
            method = SETTINGS[setting].get("method", METHOD)
            cells = [f"{workers}", "yes" if sync else "no", f"`{method}`"]
            cells += [shown(at_mark(rows, "by_episodes", i)) for i in (1, 2, 3)]
            lines.append(f"| {' | '.join(cells)} |")
    return lines


def tables(records: Records) -> list[str]:
    """All tables, as Markdown."""
    lines: list[str] = []
    for problem, setting in (("toy", "natural"), ("toy", "normalised"), ("quadratic", "natural")):
        if grouped(records, problem=problem, setting=setting):
            lines += [*sweep_table(records, problem, setting), ""]
            lines += [*best_table(records, problem, setting), ""]
            lines += [*curve_table(records, problem, setting), ""]
    if grouped(records, setting="unweighted", losses=list(Losses()), episodes=1000):
        lines += [*aside_tables(records), ""]
    for setting in ("still", "normalised", "natural"):
        if any(record["setting"] == setting and record["tie"] for record in records):
            lines += [*tie_table(records, setting), ""]
            lines += [*tie_time_table(records, setting), ""] if setting != "still" else []
    costs = [record["cpu_ms"] for record in records if record["workers"] >= LARGE]
    if costs:
        lines += [f"The loop and the study cost {np.median(costs):.2f} ms of a core a result."]
    return lines


# -- the picture --


def picture(records: Records, path: Path) -> None:
    """Utilisation, lateness, effective sample size and time to a return against workers."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.5, 6.8), layout="constrained")
    panels = figure.subplots(2, 3)
    how = {"problem": "quadratic", "setting": "natural"}
    _lines(panels[0, 0], records, "busy", "workers at work", **how)
    _lines(panels[0, 1], records, "late", "moves late, mean", **how)
    _lines(panels[0, 2], records, "ess", "effective sample size a sample", **how)
    _lines(panels[1, 0], records, "reached", "time to 11.5, toy", problem="toy", setting="natural")
    _lines(panels[1, 1], records, "reached", "time to -2, quadratic", **how)
    _bias(panels[1, 2], records)
    panels[0, 0].set_ylim(0, 1.05)
    panels[0, 1].set_yscale("symlog", linthresh=1)
    panels[0, 1].set_ylim(bottom=0)
    panels[0, 2].set_ylim(bottom=0)
    for axes in panels[1, :2]:
        axes.set_yscale("log" if any(line.get_xdata().size for line in axes.lines) else "linear")
    for axes in panels.flat:
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25, linewidth=0.6)
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=7, frameon=False)
    figure.savefig(path, dpi=110)


RULES = (  # name, workers for each trial of a batch (None: a batch of `SMALLEST`), barrier
    ("batch 10", None, False),
    ("batch W", 1, False),
    ("batch W/4", 4, False),
    ("batch W/16", 16, False),
    ("batch W/64", 64, False),
    ("barrier, batch 10", None, True),
    ("barrier, batch W", 1, True),
)


def _lines(axes: Any, records: Records, key: str, title: str, **how: Any) -> None:
    """One line for each rule that gives the batch; no point where too few runs arrived."""
    from recoup.pictures.curves import COLOURS

    groups = grouped(records, **how)
    for (name, ratio, sync), colour in zip(RULES, COLOURS, strict=False):
        points = []
        for workers in WORKERS:
            batch = SMALLEST if ratio is None else workers // ratio
            rows = groups.get((workers, batch, sync), [])
            mean, error, n = mean_of(rows, key)
            if n and (key != "reached" or arrived(rows)):
                points.append((workers, mean, error))
        x, y, bar = np.array(points).reshape(-1, 3).T
        style = {"color": colour, "linestyle": "--" if sync else "-", "marker": "o"}
        axes.errorbar(x, y, np.nan_to_num(bar), label=name, markersize=3.5, linewidth=1.4, **style)
    axes.set_xscale("log")
    axes.set_title(title, loc="left", fontsize=10)
    axes.set_xlabel("workers")


def _bias(axes: Any, records: Records) -> None:
    """The error of the objective of a distribution that stands still."""
    from recoup.pictures.curves import COLOURS, STYLES

    how = {"setting": "still", "problem": "toy", "losses": list(Losses()), "episodes": 500}
    for tie, style in ((0.0, STYLES[2]), (-0.8, STYLES[1]), (0.8, STYLES[0])):
        for (workers, batch, sync), rows in grouped(records, tie=tie, **how).items():
            if not (sync or tie):
                continue
            colour = COLOURS[6] if sync else COLOURS[(1, 4, 16).index(workers // batch)]
            errors = [at_mark(rows, "error_by_episodes", i) for i in range(3)]
            label = "barrier" if sync else f"W = {workers}" if tie > 0 else None
            mean, error, _ = zip(*errors, strict=True)
            look = {"color": colour, "linestyle": style, "marker": "o", "markersize": 3.5}
            axes.errorbar(EPISODES[:3], mean, error, label=label, **look)
    axes.set_xscale("log")
    axes.set_xticks(EPISODES[:3], [str(mark) for mark in EPISODES[:3]])
    axes.minorticks_off()
    axes.axhline(0, color="#222222", linewidth=0.6)
    title = "error of the estimate, batch 10: times grow\nwith returns (full), or fall (dashed)"
    axes.set_title(title, loc="left", fontsize=10)
    axes.set_xlabel("results")
    axes.legend(frameon=False, fontsize=8)


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

"""What it costs to ask for many trials at once, and to have many on their way.

python -m benchmarks.late --take recoup --about "date; machine; versions" --processes 2
python -m benchmarks.late --take mis-pgpe-ob --settings '{"method": "mis-pgpe-ob"}'
python -m benchmarks.pages

Every study of a task and a seed has the same noise, trial by trial, whichever way it is asked. What
counts is the true return of the mean policy after so many results. `--take` puts the runs in place
of what benchmarks/results/late.json.gz has of that name; `benchmarks.pages` writes the page.
"""

import argparse
import gzip
import json
import zlib
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from recoup.study.reader.settings import resolved
from recoup.study.study import Study
from recoup.tasks.bounded.bounded_suite import BOUNDED, HALVES, TUNING, UNTOUCHED, bounded_task

RESULT = Path(__file__).parent / "results" / "late.json.gz"
COUNTS = (0, 5, 10, 20, 50, 100, 200)
SHOWN = (20, 50, 100, 200)
FIRST, SEEDS, DIGITS = 9000, 16, 5
EPISODES = 256  # of a true return that is not known exactly
HALF_NAMES = (TUNING, UNTOUCHED)
ALONE = "one by one"
BESIDE = {  # ways to ask, and what they are held to: batches of as many
    **{f"{n} at once": f"batches of {n}" for n in (5, 10, 20, 40)},
    **{f"{n} on their way": f"batches of {n}" for n in (4, 8, 16, 32, 64)},
}
MODES = (ALONE, *BESIDE, *sorted(set(BESIDE.values()), key=lambda mode: int(mode.split()[-1])))


class Problem(NamedTuple):
    """A task of one seed."""

    settings: dict[str, Any]  # of its study
    told: Callable[[np.ndarray, int], float]  # theta in units, seed -> a return; NaN: it failed
    true: Callable[[np.ndarray], float]


def _bounded(name: str, seed: int) -> Problem:
    task = bounded_task(name, seed)
    return Problem({"params": task.params}, task.rollout, task.true_return)


def _function(f: Callable, dim: int, mean: float, std: float, seed: int) -> Problem:
    start = mean * np.random.default_rng([seed, 5]).standard_normal(dim)

    def told(theta: np.ndarray, number: int) -> float:
        return f(theta) + float(np.random.default_rng(number).standard_normal())

    return Problem({"dim": dim, "mean": start.tolist(), "std": std}, told, f)


def _sphere(x: np.ndarray) -> float:
    return -float(np.sum(x**2))


def _ellipsoid(x: np.ndarray) -> float:
    return -float(np.sum(np.logspace(0, 3, len(x)) * x**2))


def _rosenbrock(x: np.ndarray) -> float:
    return -float(np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2))


def _rastrigin(x: np.ndarray) -> float:
    return -float(np.sum(x**2 + 10 * (1 - np.cos(2 * np.pi * x))))


def _lqr(states: int, actions: int, seed: int) -> Problem:
    """Linear-quadratic control; the same first states make every true return."""
    from recoup.tasks.lqr import system_of

    a, b = system_of(states, actions, 0)
    fixed = np.random.default_rng(31).standard_normal((EPISODES, 26, states))

    def played(theta: np.ndarray, noise: np.ndarray) -> np.ndarray:
        x, cost = noise[:, 0], 0.0
        gains = np.asarray(theta).reshape(actions, states)
        for t in range(25):
            u = x @ gains.T
            x = np.clip(x @ a.T + u @ b.T + 0.1 * noise[:, t + 1], -1e6, 1e6)
            each = np.sum(x**2, axis=1) + 0.1 * np.sum(u**2, axis=1)
            cost = cost + 100.0 * each / (100.0 + each)
        return -cost / 25 * 4

    def told(theta: np.ndarray, number: int) -> float:
        noise = np.random.default_rng(number).standard_normal((1, 26, states))
        return float(played(theta, noise)[0])

    settings = {"dim": states * actions, "std": 0.4}
    return Problem(settings, told, lambda theta: float(np.mean(played(theta, fixed))))


def _cart_pole(seed: int) -> Problem:
    import gymnasium

    env = gymnasium.make("CartPole-v1")

    def told(theta: np.ndarray, number: int) -> float:
        seen, total, ended = env.reset(seed=number % 2**31)[0], 0.0, False
        while not ended:
            seen, reward, stopped, late, _ = env.step(int(theta[:4] @ seen + theta[4] > 0))
            total, ended = total + reward, stopped or late
        return total

    def true(theta: np.ndarray) -> float:
        return float(np.mean([told(theta, 10**6 + i) for i in range(20)]))

    return Problem({"dim": 5}, told, true)


OTHERS = {
    "sphere-10": partial(_function, _sphere, 10, 1.0, 0.5),
    "ellipsoid-10": partial(_function, _ellipsoid, 10, 1.0, 0.5),
    "rosenbrock-10": partial(_function, _rosenbrock, 10, 1.0, 0.5),
    "rastrigin-10": partial(_function, _rastrigin, 10, 1.0, 0.5),
    "sphere-40": partial(_function, _sphere, 40, 1.0, 0.5),
    "lqr-12": partial(_lqr, 4, 3),
    "cart-pole": _cart_pole,
}
TASKS = {**{name: partial(_bounded, name) for name in BOUNDED}, **OTHERS}


def values(task: str, mode: str, seed: int, **settings: Any) -> list[float]:
    """True returns of the mean policy after `COUNTS` results, asked in one way."""
    problem, words = TASKS[task](seed), mode.split()
    size = int(words[-1]) if mode in BESIDE.values() else 0
    many, steady = size or (1 if mode == ALONE else int(words[0])), words[-1] == "way"
    given = {**problem.settings, **settings, **({"batch": size} if size else {}), "seed": seed}
    study = Study.create(None, resolved(given))
    rng, where, waiting = np.random.default_rng([seed, 77]), zlib.crc32(task.encode()), []
    found = [problem.true(study.opened.in_units(study.mean))]
    for told in range(1, COUNTS[-1] + 1):
        if steady or not waiting:
            waiting += study.ask(many - len(waiting))
        trial = waiting.pop(int(rng.integers(len(waiting))) if steady else 0)
        value = problem.told(trial.theta, where + 10007 * seed + trial.id)
        if np.isfinite(value):
            study.tell(trial.id, value)
        else:
            study.tell(trial.id, failed="failed")
        if told in COUNTS:
            found.append(problem.true(study.opened.in_units(study.mean)))
    study.close()
    return [float(f"{x:.{DIGITS}g}") for x in found]


def _job(job: tuple[str, str, int, dict]) -> list[float]:
    task, mode, seed, settings = job
    with np.errstate(all="ignore"):
        return values(task, mode, seed, **settings)


def taken(tasks, modes, seeds, processes, settings):
    """`{mode: {task: [[value at each count] of each seed]}}`."""
    jobs = [(t, m, FIRST + s, settings) for s in range(seeds) for m in modes for t in tasks]
    found = {mode: {task: [] for task in tasks} for mode in modes}
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        for (task, mode, _, _), row in zip(jobs, pool.map(_job, jobs, chunksize=4), strict=True):
            found[mode][task].append(row)
    return found


def read(path=RESULT):
    """What is kept: `{"about": {NAME: words}, "runs": {NAME: taken}}`."""
    return json.loads(gzip.decompress(path.read_bytes()))


def keep(name, runs, about, path=RESULT):
    """Puts runs in place of those of a name, task by task; the same content has the same bytes."""
    kept = read(path) if path.exists() else {"about": {}, "runs": {}}
    for mode, tasks in runs.items():
        kept["runs"].setdefault(name, {}).setdefault(mode, {}).update(tasks)
    kept["about"][name] = about
    text = json.dumps(kept, sort_keys=True, separators=(",", ":"))
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


def differences(one, other, counts=COUNTS[1:]):
    """`{(task, count): difference in standard errors}` of runs of the same seeds, paired."""
    found = {}
    for task in [task for task in one if task in other]:
        apart = np.array(one[task]) - np.array(other[task])
        error = apart.std(0, ddof=1) / len(apart) ** 0.5
        each = np.where(error > 0, apart.mean(0) / np.where(error > 0, error, 1.0), 0.0)
        found |= {(task, n): float(each[COUNTS.index(n)]) for n in counts}
    return found


def counted(found):
    """`above / level / below` at two standard errors, and the worst."""
    words = Counter("above" if z > 2 else "below" if z < -2 else "level" for z in found.values())
    (task, at), worst = min(found.items(), key=lambda pair: pair[1])
    most = f"{task.removeprefix('bounded-')} at {at}, {-worst:.1f}" if worst < -2 else "–"
    return f"{words['above']} / {words['level']} / {words['below']}", most


def held_table(runs):
    """Each way to ask beside batches of as many, and beside asking one by one."""
    lines = ["| asked | beside batches of as many | worst | beside one by one | below the start |"]
    lines.append("|---" * 5 + "|")
    for mode, batches in BESIDE.items():
        if mode in runs and batches in runs:
            cells, worst = counted(differences(runs[mode], runs[batches]))
            lines.append(f"| {mode} | {cells} | {worst} | {_rest(runs, mode)} |")
    lines.append(f"| {ALONE} | – | – | {_rest(runs, ALONE)} |")
    return "\n".join(lines)


def _rest(runs, mode):
    alone = "–" if mode == ALONE else counted(differences(runs[mode], runs[ALONE]))[0]
    start = {task: [[row[0]] * len(COUNTS) for row in rows] for task, rows in runs[mode].items()}
    below = [key for key, z in differences(runs[mode], start, SHOWN).items() if z < -2]
    tasks = ", ".join(dict.fromkeys(task.removeprefix("bounded-") for task, _ in below))
    return f"{alone} | {tasks or 'none'}"


def before_table(kept):
    """The default beside what it was, asked in the same way."""
    now, was = kept["runs"]["recoup"], kept["runs"]["before"]
    lines = ["| asked | all | tuning half | untouched half | others | worst |", "|---" * 6 + "|"]
    for mode in was:
        found = differences(now[mode], was[mode])
        halves = (
            *(lambda task, half=half: task in HALVES[f"bounded-{half}"] for half in HALF_NAMES),
            lambda task: task in OTHERS,
        )
        parts = [{key: z for key, z in found.items() if part(key[0])} for part in halves]
        cells = [counted(part)[0] for part in (found, *parts)]
        lines.append(f"| {mode} | {' | '.join(cells)} | {counted(found)[1]} |")
    return "\n".join(lines)


def values_table(runs, modes=(ALONE, "20 at once", "16 on their way")):
    """Means with standard errors at `SHOWN`."""
    lines = [f"| task | start | {' | '.join(modes)} |", "|---" * (2 + len(modes)) + "|"]
    for task, rows in runs[ALONE].items():
        cells = [f"{np.mean(np.array(rows)[:, 0]):.3g}"]
        for mode in modes:
            seen = np.array(runs[mode][task])[:, [COUNTS.index(n) for n in SHOWN]]
            error = seen.std(0, ddof=1) / len(seen) ** 0.5
            pairs = zip(seen.mean(0), error, strict=True)
            cells.append(" / ".join(f"{m:.3g} ± {e:.2g}" for m, e in pairs))
        lines.append(f"| {task.removeprefix('bounded-')} | {' | '.join(cells)} |")
    return "\n".join(lines)


def said(path=RESULT):
    """What the page says of kept runs, by name."""
    kept = read(path)
    return {
        "held": held_table(kept["runs"]["recoup"]),
        "gradient": held_table(kept["runs"]["mis-pgpe-ob"]),
        "before": before_table(kept),
        "values": values_table(kept["runs"]["recoup"]),
        "about": "*Measured: " + "; ".join(dict.fromkeys(kept["about"].values())) + ".*",
    }


def main() -> None:
    """Takes runs, and keeps them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--take", required=True, help="the name to keep them by")
    parser.add_argument("--about", default="")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--tasks", default=",".join(TASKS))
    parser.add_argument("--modes", default=",".join(MODES))
    parser.add_argument("--settings", default="{}", help="of the study, as JSON")
    parser.add_argument("--file", type=Path, default=RESULT)
    given = parser.parse_args()
    tasks, modes = given.tasks.split(","), given.modes.split(",")
    settings = json.loads(given.settings)
    runs = taken(tasks, modes, given.seeds, given.processes, settings)
    keep(given.take, runs, given.about, given.file)


if __name__ == "__main__":
    main()

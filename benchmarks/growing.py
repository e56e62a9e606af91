"""What a batch that grows buys where parameters have no bounds: `python -m benchmarks.growing`.

[RUNS] [TASK...]. Each task is searched by studies in memory from the same starts, with the default
batch all along, or with twice as many results from 20, 50 or 100 on where the last move called a
quarter of the returns' variance noise, as between bounds. J is the expected return of the newest
distribution, m that of its mean, over 200 episodes that all share; no context is told. A difference
to the default is paired, and stands with its standard error.
"""

import datetime
import os
import sys

import numpy as np

from benchmarks.__main__ import processor
from benchmarks.context import EPISODES, FRESH, TASKS, Task
from recoup.engine.ways import BOX
from recoup.study.reader.batches import LATER
from recoup.study.reader.settings import resolved
from recoup.study.study import Study

RUNS = 12
FROM = (None, 20, 50, 100)  # results from which on the batch is twice as large
UNBOUNDED = (
    *("lqr-8", "lqr-18", "pendulum", "sphere-10 and noise, unrelated", "sphere-10, unrelated"),
    *("Rosenbrock-6, unrelated", "Rastrigin-10, unrelated", "rare success-4, unrelated"),
)


def searched(task: Task, seed: int, grows: int | None) -> np.ndarray:
    """J and m after each number of episodes `[E, 2]`."""
    rng, fresh = np.random.default_rng([1, seed]), np.random.default_rng([2, seed])
    starts, noise = task.begin(fresh, FRESH), fresh.standard_normal((FRESH, task.dim))
    settings = resolved({"dim": task.dim, "std": task.std, "seed": seed})
    if grows:
        batch = BOX.times * settings["batch"]
        settings[LATER] = {"results": grows, "noise": BOX.noise, "batch": batch}
    study, found, spent = Study.create(None, settings), [], 0
    for episodes in EPISODES:
        while spent < episodes:
            trials = study.ask(min(study.until_move(), episodes - spent))
            returns = task.earns(
                np.stack([x.theta for x in trials]), task.begin(rng, len(trials)), rng
            )
            study.tell([x.id for x in trials], returns.tolist())
            spent += len(trials)
        rho = study.opened.rho(study.store.newest().numbers)
        policies = np.asarray(rho.theta(noise)), np.tile(np.asarray(rho.mean), (FRESH, 1))
        worlds = [np.random.default_rng([3, seed]) for _ in policies]
        pairs = zip(policies, worlds, strict=True)
        found.append([task.earns(x, starts, world).mean() for x, world in pairs])
    study.close()
    return np.array(found)


def table(name: str, runs: int) -> None:
    """One task: the default, and what each other way adds."""
    found = np.array(
        [[searched(TASKS[name](seed), seed, grows) for grows in FROM] for seed in range(runs)]
    )
    print(f"{name.removesuffix(', unrelated')} ({runs} runs)")
    for i, which in enumerate("Jm"):
        usual = found[:, 0, :, i].mean(axis=0)
        print(f"  {which} default  " + "  ".join(f"{x:.4g}" for x in usual))
        for k, grows in enumerate(FROM[1:], 1):
            apart = found[:, k, :, i] - found[:, 0, :, i]
            errors = apart.std(axis=0, ddof=1) / runs**0.5
            cells = [f"{x:+.2g} ± {e:.1g}" for x, e in zip(apart.mean(axis=0), errors, strict=True)]
            print(f"    from {grows}  " + "  ".join(cells), flush=True)


def main() -> None:
    """Prints a table of each task."""
    given = sys.argv[1:]
    runs = int(given.pop(0)) if given and given[0].isdigit() else RUNS
    print(f"{datetime.date.today()}, {processor()}, {os.cpu_count()} cores")
    print(f"after {', '.join(map(str, EPISODES))} episodes\n")
    for name in given or UNBOUNDED:
        table(name, runs)


if __name__ == "__main__":
    main()

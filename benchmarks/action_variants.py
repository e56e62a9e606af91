"""What the competitors in action space depend on: expected returns at 300 episodes, 300 runs.

python -m benchmarks.action_variants [PROCESSES]
"""

import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np

from benchmarks.curves import ITERATIONS, RUNS, TESTS
from recoup.runs.lockstep import learn, search_of
from recoup.runs.plan import task_settings
from recoup.tasks.registry import make_task, task_row

VARIANTS = (
    ("mountain-car", "tiw-enac", {"ridge": 1e-9}),
    ("mountain-car", "tiw-enac", {"ridge": 1e-6}),
    ("mountain-car", "tiw-enac", {"ridge": 1e-3}),
    ("mountain-car", "r3", {"flatten": 0.0}),
    ("mountain-car", "r3", {"flatten": 1.0}),
    ("mountain-car", "iw-reinforce-ob", {"per_decision": True}),
    ("mountain-car-weak", "iw-reinforce-ob", {"per_decision": True}),
)


def ends(task_name, method, settings):
    """Expected returns `[runs]` of the search distribution at the end."""
    row, task = task_row(task_name), make_task(task_name)
    settings = {**task_settings(row, method), **settings}
    search = search_of(task, method, row.batch, ITERATIONS, settings)
    how = {"checkpoints": [ITERATIONS], "tests": TESTS}
    return learn(task, search, range(RUNS), ITERATIONS, **how).returns[:, -1]


def main(processes=1):
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        found = pool.map(ends, *zip(*VARIANTS, strict=True))
        for (task, method, settings), values in zip(VARIANTS, found, strict=True):
            error = values.std(ddof=1) / np.sqrt(RUNS)
            print(f"{task} {method} {settings}: {values.mean():.2f} ± {error:.2f}", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))

"""Learning curves of the paper's methods on a task, many runs at once: docs/TASK.png, its numbers.

python -m benchmarks.curves mountain-car mountain-car-weak toy

What `recoup reproduce` has measured on the cars is not measured again: same runs, same numbers.
"""

import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from recoup.engine.methods import METHODS
from recoup.reproduce.jobs import JobFiles, run_jobs
from recoup.reproduce.learning_curves import joined, learning_jobs
from recoup.reproduce.reproduce import directory_of
from recoup.reproduce.workers import run_in_processes
from recoup.runs.engines import default_workers
from recoup.tasks.registry import task_row

RUNS, ITERATIONS, TESTS, CHUNK = 300, 30, 100, 100
REFERENCE = "iw-pgpe-ob"
DOCS = Path(__file__).parent.parent / "docs"
COLOURS = {
    "pgpe": "0.65",
    "niw": "#b07aa1",
    "iw": "#0b6e99",
    "tiw": "#59a14f",
    "mis": "#c4622d",
    "iw-reinforce-ob": "#1b1b1b",
    "tiw-enac": "#8c6d31",
    "r3": "#d62f6b",
}
SHOWN = [name for name in METHODS if name in COLOURS or name.split("-")[0] in COLOURS]


def curves_of(task):
    """Expected returns `[runs, iterations + 1]` of the search distribution, by method."""
    tested = range(ITERATIONS + 1)
    jobs = learning_jobs(task, SHOWN, RUNS, ITERATIONS, tested, TESTS, chunk=CHUNK)
    store = JobFiles(directory_of("default") / "jobs")
    store.prepare()
    run_in_processes(jobs, store, default_workers(), lambda name, seconds: _say(name))
    results = run_jobs(jobs, store)
    return {method: joined(results, task, method).returns for method in SHOWN}


def _say(name):
    print(name, file=sys.stderr, flush=True)


def draw(task_name, curves):
    row = task_row(task_name)
    figure = Figure(figsize=(7.5, 4.4), layout="constrained")
    axes = figure.subplots()
    episodes = np.arange(ITERATIONS + 1) * row.batch
    for method, values in curves.items():
        mean, error = values.mean(0), values.std(0, ddof=1) / np.sqrt(len(values))
        colour = COLOURS[method if method in COLOURS else method.split("-")[0]]
        dashed = "-" if METHODS[method].baseline == "optimal" else (0, (4, 2))
        if METHODS[method].space == "actions":
            dashed = (0, (1, 1.2))
        axes.fill_between(episodes, mean - error, mean + error, color=colour, alpha=0.2, lw=0)
        axes.plot(episodes, mean, color=colour, ls=dashed, lw=1.8, label=method)
    axes.set(xlabel="episodes", ylabel="expected return")
    axes.set_title(
        f"{task_name}: {RUNS} runs a method, ± 1 standard error", loc="left", fontsize=11
    )
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25, lw=0.6)
    axes.margins(x=0.01)
    figure.legend(loc="outside right center", frameon=False, fontsize=9)
    figure.savefig(DOCS / f"{task_name}.png", dpi=130)


def main(names):
    for name in names:
        print(f"\n{name}: expected return of the search distribution, {RUNS} runs, ± 1 s.e.\n")
        print(
            "| method | start | 100 episodes | 200 episodes | 300 episodes | median at 300 "
            f"| minus `{REFERENCE}` at 300 |\n|---|---|---|---|---|---|---|"
        )
        curves = curves_of(name)
        for method in (REFERENCE, *(m for m in SHOWN if m != REFERENCE)):
            values = curves[method]
            errors = values.std(0, ddof=1) / np.sqrt(RUNS)
            cells = [f"{values[:, i].mean():.2f} ± {errors[i]:.2f}" for i in (0, 10, 20, 30)]
            cells.append(f"{np.median(values[:, 30]):.2f}")
            gap = values[:, 30] - curves[REFERENCE][:, 30]  # paired: runs share their starts
            cells.append(f"{gap.mean():.2f} ± {gap.std(ddof=1) / np.sqrt(RUNS):.2f}")
            print(f"| `{method}` | {' | '.join(cells)} |", flush=True)
        gap = (curves["iw-reinforce-ob"] - curves["tiw-enac"])[:, 30]
        error = gap.std(ddof=1) / np.sqrt(RUNS)
        print(f"\niw-reinforce-ob minus tiw-enac at 300: {gap.mean():.2f} ± {error:.2f}")
        draw(name, curves)


if __name__ == "__main__":
    main(sys.argv[1:] or ["mountain-car"])

"""A study of 20,000 results x 100 parameters grown through the API: what a tell and a move cost."""

import tempfile
import time
from itertools import pairwise
from pathlib import Path

import numpy as np

RESULTS, DIM, BATCH = 20_000, 100, 100
MARKS = 5
METHOD = "mis-pgpe-ob"


def main(results=RESULTS):
    """Prints one table: times against the number of results."""
    from recoup.study.study import Study

    rng = np.random.default_rng(0)
    rows = []
    with (
        tempfile.TemporaryDirectory() as folder,
        Study.open(Path(folder) / "study.db", dim=DIM, batch=BATCH, method=METHOD) as study,
    ):
        for _ in range(results // BATCH):
            trials = study.ask(BATCH)
            for i, trial in enumerate(trials, 1):
                value = -float(np.sum((trial.theta - 1) ** 2)) + rng.normal()
                start = time.perf_counter()
                study.tell(trial.id, value)
                rows.append((trial.id, i == BATCH, time.perf_counter() - start))
    print(f"a study grown to {results} results x {DIM} parameters, batch {BATCH}, {METHOD}:")
    counts, _, times = (np.array(x) for x in zip(*rows, strict=True))
    moved = np.array([row[1] for row in rows])
    edges = np.linspace(0, results, MARKS + 1)
    first = None
    for low, high in pairwise(edges):
        part = (counts > low) & (counts <= high)
        tell, move = np.median(times[part & ~moved]), np.median(times[part & moved])
        first = first or (tell, move, (low + high) / 2)
        growth = (move / first[1]) / ((low + high) / 2 / first[2])
        print(
            f"  {low:6.0f} to {high:6.0f} results: a tell {1e3 * tell:.2f} ms, one that moves "
            f"{1e3 * move:.0f} ms; {growth:.2f} of what linear growth would be (target at most 1)"
        )
    print(f"  longest tell that moves (it compiles): {times.max():.1f} s")


if __name__ == "__main__":
    main()

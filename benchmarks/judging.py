"""What `Study.evaluate` of new candidates costs: `python -m benchmarks.judging`.

CPU seconds of the first of eight candidates in a fresh process, and of each of the seven after it,
with one thread of BLAS. *Near* lie half a standard deviation from the newest distribution, *far*
three; *drawn once* are all of N(0, I), *searched* the moves of the default method.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.serve import large
from recoup.study.study import Study

SIZES = ((1000, 6), (10_000, 20))  # results, parameters
SEARCHED = (1000, 20)  # at most so many results are searched for, so many a move: more take long
CANDIDATES = 8
DISTANCES = {"near": 0.5, "far": 3.0}  # in standard deviations


def searched(path, n, dim, batch):
    """A study whose results the default method has asked for."""
    with Study.open(path, dim=dim, batch=batch, seed=0) as study:
        while len(study) < n:
            asked = study.ask(batch)
            values = [-float(np.sum((trial.theta - 0.5) ** 2)) for trial in asked]
            study.tell([trial.id for trial in asked], values)


def costs(path, distance):
    """CPU seconds of candidates, one after the other."""
    rng, found = np.random.default_rng(0), []
    with Study.open(path, read_only=True) as study:
        mean, std = study.mean, study.std
        for _ in range(CANDIDATES):
            way = rng.normal(size=len(mean))
            shift = distance * std * way / np.linalg.norm(way)
            begun = time.process_time()
            study.evaluate(mean + shift, std)
            found.append(time.process_time() - begun)
    return found


def apart(path, distance):
    """The same in a fresh process with one thread of BLAS."""
    words = [sys.executable, "-m", "benchmarks.judging", str(path), str(distance)]
    one = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(words, env={**os.environ, **one}, capture_output=True, check=True)
    return [float(x) for x in done.stdout.split()]


def row(name, seconds):
    """A row of the table."""
    first, *again = seconds
    return f"| {name} | {first:.2g} | {min(again):.2g} to {max(again):.2g} |"


def measure(path, name):
    """Prints the rows of a study."""
    for near, distance in DISTANCES.items():
        print(row(f"{name}, {near}", apart(path, distance)), flush=True)


def main():
    """Prints the table."""
    print("| study, candidates | first | again |\n|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for n, dim in SIZES:
            once, moved = (Path(folder) / f"{word}-{n}.db" for word in ("once", "searched"))
            large(once, n, dim)
            measure(once, f"{n:,} x {dim}, drawn once")
            if n <= SEARCHED[0]:
                searched(moved, n, dim, SEARCHED[1])
                measure(moved, f"{n:,} x {dim}, searched")


if __name__ == "__main__":
    if sys.argv[1:]:
        print(*costs(sys.argv[1], float(sys.argv[2])))
    else:
        main()

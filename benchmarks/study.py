"""The study: what a durable `tell` costs beside a bare commit, and a study of 100,000 trials."""

import json
import resource
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from recoup.store.rows import DRAWN, OK, Asked, Made, Told
from recoup.study.study import Study

TRIALS, DIM, BATCH = 100_000, 100, 10
TELLS = 400


def main():
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        tell_beside_commit(Path(folder))
        large_study(Path(folder) / "large.db")
        many_parameters(Path(folder) / "wide.db")
        what_is_said(Path(folder) / "said.db")


def tell_beside_commit(folder):
    """In turn: a trial told, and the same row committed by SQLite alone."""
    with Study.open(folder / "tell.db", dim=DIM, batch=10**6, method="iw-pgpe-ob") as study:
        trials = study.ask(TELLS)
        bare = sqlite3.connect(folder / "bare.db", isolation_level=None)
        bare.execute("PRAGMA journal_mode = WAL")
        bare.execute("PRAGMA synchronous = FULL")
        bare.execute("CREATE TABLE told (id INTEGER PRIMARY KEY, theta BLOB, value REAL, at REAL)")
        times = {"tell": [], "commit": []}
        for trial in trials:
            began = time.perf_counter()
            study.tell(trial.id, -1.5)
            times["tell"].append(time.perf_counter() - began)
            began = time.perf_counter()
            row = (trial.id, trial.theta.tobytes(), -1.5, time.time())
            bare.execute("INSERT INTO told VALUES (?, ?, ?, ?)", row)
            times["commit"].append(time.perf_counter() - began)
        bare.close()
    tell, commit = (statistics.median(values) for values in times.values())
    print(f"a durable tell, median of {TELLS}: {1e6 * tell:.0f} us")
    print(f"  beside a bare SQLite commit of the same row: {tell / commit:.2f} (target: under 3)")


def large_study(path):
    write_large(path)
    code = "import sys; from benchmarks.study import reopened; reopened(sys.argv[1])"
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    found = json.loads(done.stdout.splitlines()[-1])
    data = TRIALS * DIM * 8 / 2**20
    print(f"a study of {TRIALS:,} trials x {DIM} parameters, batch {BATCH} ({data:.0f} MiB):")
    print(f"  opened in {found['open']:.3f} s (target: under 5 s)")
    print(f"  ask(1): {1e3 * found['ask']:.1f} ms (target: under 50 ms)")
    print(f"  the first move: {found['first']:.1f} s; the next: {found['next']:.2f} s")
    opened, moved = found["opened"] / data, found["moved"] / data
    print(f"  memory: {opened:.2f} times the data once opened; once a move has read all of it,")
    print(f"    {moved:.2f} times (target: under 3)")


def write_large(path):
    """A study that has come so far; its mixture is made up, which costs a move nothing."""
    rng = np.random.default_rng(0)
    with Study.open(path, dim=DIM, batch=BATCH, method="mis-pgpe-ob") as study:
        store = study.store
        mean, std = np.zeros(DIM), np.ones(DIM)
        with store.writing():
            for move in range(TRIALS // BATCH):
                ids = range(1 + move * BATCH, 1 + (move + 1) * BATCH)
                theta = mean + std * rng.standard_normal((BATCH, DIM))
                rows = list(zip(ids, theta, strict=True))
                store.add_trials([Asked(i, DRAWN, move, t, 1) for i, t in rows])
                for i, t in rows:
                    store.add_result(i, Told(OK, float(-np.sum(t**2)), None, 1))
                mean = mean + 0.01 * rng.standard_normal(DIM)
                numbers = np.concatenate([mean, std])
                made = Made(move + 1, ids[-1], numbers, None, {"ess": 50.0})
                store.add_move("diagonal", made, used=BATCH)
            log_mixture = np.log(TRIALS) + rng.standard_normal(TRIALS)
            store.add_densities(TRIALS // BATCH, np.zeros(0), log_mixture)


def reopened(path):
    """In a process of its own: open, ask, move twice; times and the memory it holds."""
    load_libraries()
    before = held()
    began = time.perf_counter()
    study = Study.open(path)
    opened, after_opening = time.perf_counter(), held()
    study.ask(1)
    asked = time.perf_counter()
    moves = []
    for _ in range(2):
        ids = [trial.id for trial in study.ask(BATCH)]
        start = time.perf_counter()
        study.tell(ids, [-1.0] * BATCH)
        moves.append(time.perf_counter() - start)
    after_moves = held()
    study.close()
    found = {"open": opened - began, "ask": asked - opened, "first": moves[0], "next": moves[1]}
    memory = {"opened": after_opening - before, "moved": after_moves - before}
    print(json.dumps({**found, **memory}))


def load_libraries():
    """JAX and its compiler, which are no part of a study's memory: Adam's moves are made by it."""
    settings = {"dim": DIM, "batch": BATCH, "method": "mis-pgpe-ob", "update": "adam"}
    with (
        tempfile.TemporaryDirectory() as folder,
        Study.open(Path(folder) / "small.db", **settings) as study,
    ):
        for _ in range(7):
            ids = [trial.id for trial in study.ask(BATCH)]
            study.tell(ids, [float(i) for i in ids])
    assert "jax" in sys.modules


def held():
    """Memory of this process in MiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def many_parameters(path):
    dim = 10_000
    with Study.open(path, dim=dim, batch=10, method="mis-pgpe-ob") as study:
        times = []
        for _ in range(3):
            began = time.perf_counter()
            trials = study.ask(10)
            study.tell([t.id for t in trials], [-float(np.sum(t.theta**2)) for t in trials])
            times.append(time.perf_counter() - began)
    print(f"{dim:,} parameters: a batch of 10 asked, told and moved in {times[-1]:.2f} s")


def what_is_said(path, results=1000, dim=20):
    """What `show`, `recommend`, `evaluate` and `predict` compute, after their imports."""
    names = [f"gain {i}" for i in range(dim)]
    rng = np.random.default_rng(0)
    with Study.open(path, params=dict.fromkeys(names, (-1.0, 1.0)), seed=1) as study:
        while len(study) < results:
            trials = study.ask(study.until_move())
            returns = [0.1 * rng.normal() - np.sum((t.theta - 0.3) ** 2) for t in trials]
            study.tell([t.id for t in trials], returns)
    doors = {
        "show": lambda study: study.snapshot(),
        "recommend": lambda study: study.recommend(),
        "evaluate": lambda study: study.evaluate(),
        "predict": lambda study: study.predict({names[0]: 0.3}),
    }
    print(f"{results:,} results x {dim} parameters, CPU time (target: under 1 s each):")
    for name, ask in doors.items():
        times = []
        for _ in range(3):
            with Study.open(path, read_only=True) as study:
                began = time.process_time()
                ask(study)
                times.append(time.process_time() - began)
        print(f"  {name}: {min(times):.2f} s")


if __name__ == "__main__":
    main()

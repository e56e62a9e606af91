"""Eight processes on one study file, one killed every three seconds, beside Optuna's storage."""

import json
import multiprocessing
import os
import random
import tempfile
import time
from pathlib import Path

import numpy as np

WORKERS, DIM, BATCH = 8, 5, 10
ROLLOUT, EVERY, FIRST = 0.02, 3.0, 6.0  # seconds: a rollout, between kills, before the first
TARGET = 1.0  # seconds, p99 of ask and of tell


def value_of(theta):
    return -float(np.sum((np.asarray(theta) - 1) ** 2))


def with_recoup(path, out, ends):
    """Asks, rolls out and tells until the end; writes down what was acknowledged, and how late."""
    from recoup.study.study import Study

    with Study.open(path) as study, open(out, "a") as log:
        study.ask()  # what is imported and compiled is not timed
        while time.time() < ends:
            (trial,), asked = timed(study.ask)
            time.sleep(ROLLOUT)
            _, told = timed(study.tell, trial.id, value_of(trial.theta))
            print(json.dumps([trial.id, asked, told]), file=log, flush=True)


def with_optuna(path, out, ends):
    """The same with Optuna: random draws, so that it is the storage that is timed."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.load_study(
        study_name="bench",
        storage=f"sqlite:///{path}?timeout=60",
        sampler=optuna.samplers.RandomSampler(),
    )
    with open(out, "a") as log:
        while time.time() < ends:
            (trial, theta), asked = timed(_asked, study)
            time.sleep(ROLLOUT)
            _, told = timed(study.tell, trial, value_of(theta))
            print(json.dumps([trial.number, asked, told]), file=log, flush=True)


def _asked(study):
    trial = study.ask()
    return trial, [trial.suggest_float(f"x{i}", -3, 3) for i in range(DIM)]


def timed(call, *arguments):
    start = time.perf_counter()
    found = call(*arguments)
    return found, time.perf_counter() - start


def minute(work, path, seconds):
    """Eight workers for so long, one killed now and then; all rows that they wrote, and kills."""
    context = multiprocessing.get_context("spawn")
    folder, ends = Path(path).parent, time.time() + seconds
    outs, running = [], []

    def start():
        outs.append(folder / f"{work.__name__}-{len(outs)}")
        process = context.Process(target=work, args=(str(path), str(outs[-1]), ends))
        process.start()
        running.append(process)

    for _ in range(WORKERS):
        start()
    kills, following = 0, time.time() + FIRST
    while time.time() < ends:
        time.sleep(0.1)
        if time.time() > following:
            victim = running.pop(random.randrange(len(running)))
            victim.kill()
            victim.join()
            start()
            kills, following = kills + 1, following + EVERY
    for process in running:
        process.join()
    return [row for out in outs if out.exists() for row in _rows(out)], kills


def _rows(path):
    """What a worker wrote; a killed one may have left half a line."""
    found = []
    for line in path.read_text().splitlines():
        try:
            found.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return found


def said(name, rows):
    asks, tells = (np.array(column) for column in list(zip(*rows, strict=True))[1:])
    parts = [
        f"{what} median {1e3 * np.median(x):.1f} ms, p99 {1e3 * np.quantile(x, 0.99):.0f} ms, "
        f"longest {x.max():.2f} s"
        for what, x in (("ask", asks), ("tell", tells))
    ]
    print(f"  {name:8} {len(rows):6} results; {'; '.join(parts)}")
    return max(np.quantile(asks, 0.99), np.quantile(tells, 0.99))


def main(seconds=60.0):
    """Prints one table."""
    from recoup.study.care.verify import check
    from recoup.study.study import Study

    print(f"{WORKERS} processes on one file, {seconds:.0f} s, batch {BATCH}, {DIM} parameters:")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "study.db"
        Study.open(path, dim=DIM, batch=BATCH, method="mis-pgpe-ob").close()
        rows, kills = minute(with_recoup, path, seconds)
        late = said("recoup", rows)
        with Study.open(path) as study:
            kept, moves = set(study.store.results()), len(study.history())
        lost = len({row[0] for row in rows} - kept)
        print(f"  {kills} kills, {moves} moves, {lost} acknowledged results lost (target 0)")
        print(f"  check: {check(path, lambda done, of: None)[-1].words}")
        print(f"  p99 {late:.3f} s (target {TARGET:.0f} s)")
        try:
            import optuna
        except ImportError:
            print("  optuna is not installed: pip install '.[bench]', in a clone")
            return
        other = Path(folder) / "optuna.db"
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        optuna.create_study(study_name="bench", storage=f"sqlite:///{other}", direction="maximize")
        said("optuna", minute(with_optuna, other, seconds)[0])


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    main()

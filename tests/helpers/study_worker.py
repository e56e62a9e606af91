"""What processes do to a study that they share with others, or are killed over."""

import time
from pathlib import Path

import numpy as np

from recoup.study.study import Study


def value_of(trial):
    return float(-np.sum((trial.theta - 0.5) ** 2)) + (trial.seed % 1000) / 1e4


def work(path, results, settings):
    """Works on a study until it has so many results.

    Asks for two trials at a time and tells them in a fixed odd order; every fifth trial fails.
    """
    how = {"dim": 3, "method": "mis-pgpe-ob", "batch": 4, "seed": 5, "std": 0.7, **settings}
    with Study.open(path, **how) as study:
        while True:
            waiting = study.pending()
            if not waiting:
                if study.counts()["ok"] + study.counts()["failed"] >= results:
                    return
                waiting = study.ask(2)
            trial = waiting[-1]
            time.sleep(0.003)
            if trial.id % 5 == 0:
                study.tell(trial.id, failed="slipped")
            else:
                study.tell(trial.id, value_of(trial))


def ask_and_tell(path, times):
    with Study.open(path) as study:
        for _ in range(times):
            (trial,) = study.ask()
            study.tell(trial.id, float(-(trial.theta**2).sum()))


def ask_and_tell_until(path, stop):
    """Works on a study without a pause until a file `stop` is there."""
    with Study.open(path) as study:
        while not Path(stop).exists():
            (trial,) = study.ask()
            study.tell(trial.id, value_of(trial))


def wait_for(holds, limit=300.0):
    """Waits until something holds; a limit that no machine needs says that it never will."""
    until = time.monotonic() + limit
    while not holds():
        assert time.monotonic() < until, "what was waited for has not happened"
        time.sleep(0.01)


def tell_every_other(path, first, last):
    with Study.open(path) as study:
        for number in range(first, last + 1, 2):
            study.tell(number, float(-number))


def ask_with_lease(path, times, out):
    """Asks for trials one by one, and writes down which it got."""
    with Study.open(path) as study, open(out, "w") as file:
        for _ in range(times):
            (trial,) = study.ask(lease=3600)
            file.write(f"{trial.id}\n")

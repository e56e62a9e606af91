"""What processes do to a study that they share with others, or are killed over."""

import os
import time

import numpy as np

from recoup.study.study import Study


def value_of(trial):
    return float(-np.sum((trial.theta - 0.5) ** 2)) + (trial.seed % 1000) / 1e4


def work(path, results, settings, hold=None):
    """Works on a study until it has so many results.

    Asks for two trials at a time and tells them in a fixed odd order; every fifth trial fails. One
    that is to be killed does no more than `hold` and waits for it: who kills it may be late.
    """
    how = {"dim": 3, "method": "mis-pgpe-ob", "batch": 4, "seed": 5, "std": 0.7, **settings}
    with Study.open(path, **how) as study:
        while True:
            while hold is not None and study.counts()["ok"] + study.counts()["failed"] >= hold:
                time.sleep(1)
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
            _ask_and_tell_one(study)


def ask_and_tell_until(path, enough):
    """Until the file `enough` is there."""
    with Study.open(path) as study:
        while not os.path.exists(enough):
            _ask_and_tell_one(study)


def _ask_and_tell_one(study):
    (trial,) = study.ask()
    study.tell(trial.id, float(-(trial.theta**2).sum()))


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

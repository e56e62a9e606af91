"""What the processes of a stress test do to one study, and to one run, until they are stopped.

Whatever a study has acknowledged is written down in a journal before anything else is done: what
stands there must be in the file at the end, however many of them were killed.
"""

import json
import os
import time
from pathlib import Path

import numpy as np

import recoup
from recoup.checks import InputError
from recoup.runs.train import resume
from recoup.study.care.verify import check
from recoup.study.study import Study

PAUSE = 0.3  # seconds that a rollout of a worker takes, on average
SHORT = 0.02  # and one of the run
NEAR = 40  # results back that are put right: older ones take long to make moves of again


def value_of(trial):
    """What a trial earns: by its theta and its seed alone."""
    return float(-np.sum((np.asarray(trial.theta) - 0.5) ** 2)) + (trial.seed % 1000) / 1e4


def earned(theta, seed):
    """The task of the run."""
    time.sleep(SHORT)
    return float(-np.sum((theta - 0.3) ** 2)) + (seed % 1000) / 1e4


def lines(journal):
    """What a journal says; a line that a kill has cut off says nothing."""
    path = Path(journal)
    text = path.read_text() if path.exists() else ""
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


class Journal:
    """Lines that are on disk when they are written."""

    def __init__(self, path):
        self.file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def note(self, *content):
        os.write(self.file, (json.dumps(content) + "\n").encode())


def worker(path, stop, journal, number):
    """Asks and tells, some of it late, some of it failed."""
    rng, noted = np.random.default_rng([number, os.getpid()]), Journal(journal)
    with Study.open(path) as study:
        held = []
        while not Path(stop).exists():
            held += study.ask(lease=3600.0)
            time.sleep(PAUSE * float(rng.exponential()))
            if len(held) > rng.integers(4):  # some are told late, and never where it is killed
                trial = held.pop(rng.integers(len(held)))
                if trial.id % 11 == 0:
                    study.tell(trial.id, failed="slipped")
                    noted.note(trial.id, None)
                else:
                    study.tell(trial.id, value_of(trial))
                    noted.note(trial.id, value_of(trial))


def amender(path, stop, journal, number):
    """Puts results right, and drops some."""
    rng, noted = np.random.default_rng([number, os.getpid()]), Journal(journal)
    with Study.open(path) as study:
        while not Path(stop).exists():
            time.sleep(PAUSE)
            known = list(study.store.returns().items())[-NEAR:]
            if not known:
                continue
            trial, value = known[rng.integers(len(known))]
            try:
                if rng.random() < 0.3:
                    study.amend(trial, drop="a loose sensor")
                    noted.note(trial, "dropped")
                else:
                    study.amend(trial, value - 1.0)
                    noted.note(trial, value - 1.0)
            except InputError as refused:  # another amender was faster
                if "as it should be" not in str(refused) and "dropped" not in str(refused):
                    raise


def forker(path, stop, journal, number):
    """Forks the study, goes on with the fork by itself, and looks whether that is sound."""
    noted, made = Journal(journal), 0
    while not Path(stop).exists():
        time.sleep(2 * PAUSE)
        new = Path(path).with_name(f"fork-{os.getpid()}-{made}.db")
        made += 1
        with Study.open(path) as study, study.fork(new) as child:
            for trial in child.ask(2 * child.batch):
                child.tell(trial.id, value_of(trial))
        verdicts = check(new)
        assert all(part.sound for part in verdicts), verdicts
        for left in new.parent.glob(f"{new.name}*"):
            left.unlink()
        noted.note(made)


def runner(directory, stop, journal, number):
    """Begins a run, or goes on with it, until it is finished."""
    out = Path(directory)
    if (out / "study.db").exists():
        resume(out, task=earned)
    else:
        begin(out)
    Journal(journal).note("finished")


def begin(out):
    """The run, from the start."""
    return recoup.train(earned, dim=3, method="recoup", iterations=60, batch=4, seed=3, out=out)

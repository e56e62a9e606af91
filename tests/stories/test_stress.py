"""Eight workers, a shell that amends and drops, forks, a run; any of them is killed, often.

What was acknowledged is there at the end, and every move follows from the results, to the last bit.
"""

import os
import random
from pathlib import Path

import pytest
import stress
from processes import Forked
from studies import content
from waiting import ticks, until

from recoup.study.care.verify import check
from recoup.study.study import Study

KILLS = int(os.environ.get("RECOUP_STRESS_KILLS", "100"))  # in all, five minutes of them
EVERY = 3.0  # seconds between two
METHODS = [
    {"method": "recoup"},
    {"method": "mis-pgpe-ob"},
    {"method": "recoup", "failure": -20.0},
    {"method": "mis-pgpe-ob", "window": 5},
    {"method": "iw-pgpe-ob"},
    {"method": "pgpe-ob"},
]
WORKERS = 8


class Crowd:
    """Processes that are begun again whenever one was killed."""

    def __init__(self, directory, path, run):
        self.directory, self.path, self.run = directory, path, run
        self.stop = directory / "stop"
        self.roles = [(stress.worker, path)] * WORKERS
        self.roles += [(stress.amender, path), (stress.forker, path), (stress.runner, run)]
        self.kills = 0
        self.alive = [self._begun(i) for i in range(len(self.roles))]

    def journal(self, i):
        return self.directory / f"{self.roles[i][0].__name__}-{i}.journal"

    def _begun(self, i):
        role, on = self.roles[i]
        errors = self.directory / f"{i}-{self.kills}.errors"
        return Forked(errors, role, str(on), str(self.stop), str(self.journal(i)), i)

    def kill_one(self, rng):
        """Kills any of them, and begins it again; one that has ended by itself has ended well."""
        i = rng.randrange(len(self.alive))
        if self.alive[i].poll() is None:
            self.alive[i].kill()
            self.kills += 1
            self.alive[i] = self._begun(i)

    def check_well(self):
        for i, process in enumerate(self.alive):
            assert process.poll() in (None, 0), (self.roles[i][0].__name__, process.said())

    def end(self):
        self.stop.touch()
        for process in self.alive:
            process.wait()
        self.check_well()

    def noted(self, role):
        """All that processes of one role have written down."""
        which = [i for i, (mine, _) in enumerate(self.roles) if mine is role]
        return [line for i in which for line in stress.lines(self.journal(i))]


def assert_nothing_lost(path, crowd):
    """Every acknowledged result is there, as it was told or as it was last put right."""
    with Study.open(path) as study:
        results = study.store.results()
        amended = [event.content for event in study.store.events("amended")]
    last = {one["trial"]: one["now"][1] for one in amended}
    told = crowd.noted(stress.worker)
    assert told
    for number, value in told:
        want = last.get(number, value)
        assert number in results, f"trial {number} was acknowledged and is lost"
        assert results[number].told.value == want, (number, value, want)
    written = {(one["trial"], one["now"][1]) for one in amended}
    for number, value in crowd.noted(stress.amender):
        assert (number, None if value == "dropped" else value) in written


def assert_exact(path):
    verdicts = check(path)
    assert all(part.sound for part in verdicts), verdicts
    assert verdicts[-1].words.endswith(("to the last bit.", "has not moved yet.")), verdicts


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """Everything that the run decides where nobody kills it."""
    out = tmp_path_factory.mktemp("runs") / "undisturbed"
    stress.begin(out)
    return content(out / "study.db")


@pytest.mark.slow
@pytest.mark.parametrize("settings", METHODS, ids=lambda how: "-".join(map(str, how.values())))
def test_what_was_acknowledged_is_there_and_every_move_is_exact(tmp_path, settings, undisturbed):
    path, run = tmp_path / "robot.db", tmp_path / "run"
    Study.open(path, dim=3, batch=4, seed=5, std=0.7, **settings).close()
    crowd, rng = Crowd(tmp_path, path, run), random.Random(7)
    try:
        for _ in ticks(EVERY, -(-KILLS // len(METHODS))):
            crowd.check_well()
            crowd.kill_one(rng)
            assert_exact(path)
        for role in (stress.worker, stress.amender, stress.forker):
            until(lambda role=role: crowd.noted(role))
    finally:
        crowd.end()
    assert_exact(path)
    assert_nothing_lost(path, crowd)
    assert crowd.kills
    assert content(run / "study.db") == undisturbed
    assert_exact(run / "study.db")
    with Study.open(path) as study:
        assert study.store.last_move().id > 1
    assert [left.name for left in Path(tmp_path).glob("robot.db-*")] == []

"""What waits to be written is written together: one transaction, and each hears of its own."""

import concurrent.futures
import contextlib
import sqlite3
import threading
from collections import Counter

import pytest

from recoup.serve import lane
from recoup.serve.lane import Lane
from recoup.store.errors import Locked
from recoup.store.rows import Told
from recoup.study.study import Study
from recoup.study.trials.leases import tell


class Watched:
    """A lane that is held at its first job until others wait for it."""

    def __init__(self, path):
        self.path, self.hold, self.looked = path, threading.Event(), 0
        self.lane = Lane(path, True, lambda: None)
        self.first = self.lane.run(self._held)

    def _held(self, study):
        self.commits = Counter()
        study.store._file.connection.set_trace_callback(lambda sql: self.commits.update([sql]))
        study.store._file.connection.execute("PRAGMA busy_timeout = 0")  # none waits for another
        assert self.hold.wait(60)

    def seen(self):
        self.looked += 1

    def tells(self, number, value):
        return self.lane.together(lambda study: told(study, number, value), self.seen)

    def goes_on(self):
        self.hold.set()
        self.first.result()

    def close(self):
        self.lane.close().result()


def told(study, number, value):
    with study.store.writing():
        tell(study.opened, [(number, Told("ok", value, None, 1))])
    return number


@pytest.fixture
def watched(tmp_path):
    with Study.open(tmp_path / "s.db", dim=2, batch=1000) as study:
        study.ask(200)
    found = Watched(tmp_path / "s.db")
    yield found
    found.close()


def values(path):
    with Study.open(path, read_only=True) as study:
        return {t.id: t.value for t in study.trials() if t.value is not None}


def test_those_that_wait_share_a_transaction(watched):
    answers = [watched.tells(i, float(i)) for i in range(1, 11)]
    watched.goes_on()
    assert [one.result() for one in answers] == list(range(1, 11))
    assert (watched.commits["COMMIT"], watched.looked) == (1, 1)
    assert values(watched.path) == {i: float(i) for i in range(1, 11)}


def test_what_is_at_fault_is_told_so_alone(watched):
    answers = [watched.tells(i, float(i)) for i in (1, 2, 999, 3)]
    watched.goes_on()
    for one, number in zip(answers, (1, 2, None, 3), strict=True):
        if number:
            assert one.result() == number
        else:
            assert "there is no trial 999" in str(one.exception())
    assert watched.commits["ROLLBACK"] == 2  # of all, then of the one at fault
    assert values(watched.path) == {1: 1.0, 2: 2.0, 3: 3.0}


def test_where_another_writes_all_hear_of_it_at_once(watched):
    """To try each would wait for the other as often as there are jobs."""
    with contextlib.closing(sqlite3.connect(watched.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        answers = [watched.tells(i, 1.0) for i in (1, 2, 3)]
        watched.goes_on()
        assert {type(one.exception()) for one in answers} == {Locked}
    assert (watched.commits["BEGIN IMMEDIATE"], watched.looked) == (1, 1)
    assert watched.tells(1, 1.0).result() == 1
    assert values(watched.path) == {1: 1.0}


def test_a_transaction_has_an_end(watched, monkeypatch):
    monkeypatch.setattr(lane, "TOGETHER", 4)
    answers = [watched.tells(i, 1.0) for i in range(1, 11)]
    watched.goes_on()
    assert [one.result() for one in answers] == list(range(1, 11))
    assert watched.commits["COMMIT"] == 3


def test_nothing_is_acknowledged_before_it_is_on_disk(watched):
    """Another connection sees a result as soon as its answer is there."""
    seen = []
    answers = [watched.tells(i, 1.0) for i in (1, 2, 3)]
    for one in answers:
        one.add_done_callback(lambda _: seen.append(set(values(watched.path))))
    watched.goes_on()
    concurrent.futures.wait(answers)
    watched.close()  # callbacks come after the answers
    assert seen == [{1, 2, 3}] * 3


def test_a_job_of_transactions_of_its_own_is_not_among_them(watched):
    """One that writes by another connection would wait for the transaction that it is in."""
    open_now = []
    first = watched.tells(1, 1.0)
    own = watched.lane.run(
        lambda study: open_now.append(study.store._file.connection.in_transaction)
    )
    last = watched.tells(2, 1.0)
    watched.goes_on()
    assert (first.result(), own.result(), last.result()) == (1, None, 2)
    assert open_now == [False]

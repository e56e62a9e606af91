"""One study, used by several threads of one process at once."""

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from waiting import LIMIT

from recoup import Study
from recoup.store.rows import OWN, Asked
from recoup.study.care.verify import check
from recoup.study.moves import settling

THREADS = 8


def together(n, work):
    """What `work(i)` gave in each of `n` threads, which begin together."""
    begin = threading.Barrier(n)

    def begun(i):
        begin.wait(LIMIT)
        return work(i)

    with ThreadPoolExecutor(n) as pool:
        return list(pool.map(begun, range(n), timeout=LIMIT))


def worth(theta):
    return -float(theta @ theta)


METHODS = {"recoup": {}, "balance": {"method": "mis-pgpe-ob", "failure": -20.0}}


@pytest.mark.parametrize("settings", METHODS.values(), ids=METHODS)
def test_eight_threads_ask_and_tell_one_study(tmp_path, settings):
    """Every result is there once, every move follows from the results, to the last bit."""
    path = tmp_path / "s.db"
    with Study.open(path, dim=3, batch=6, **settings) as study:

        def work(i):
            mine = []
            for n in range(6):
                for trial in study.ask(1 + n % 2):
                    how = (
                        {"failed": "slipped"}
                        if trial.id % 7 == 0
                        else {"value": worth(trial.theta)}
                    )
                    study.tell(trial.id, **how)
                    mine.append(trial.id)
                if i == 0 and n == 3:
                    study.amend(mine[0], -1.5)
                elif n % 3 == 2:
                    _ = study.evaluate() if i % 2 else study.snapshot()
            return mine

        told = together(THREADS, work)
        study.ask()  # whatever move is due is made
        numbers = [number for mine in told for number in mine]
        assert sorted(numbers) == list(range(1, THREADS * 9 + 1))
        assert study.counts()["pending"] == 1
        counts = study.counts()
        filling = counts["ok"] + counts["failed"] * study.method.values_failures
        assert len(study.history()) == filling // 6
    assert [verdict.words for verdict in check(path) if not verdict.sound] == []
    assert [file.name for file in tmp_path.iterdir()] == ["s.db"]


def test_threads_share_a_study_that_is_in_memory():
    from recoup.study.reader.settings import resolved

    study = Study.create(None, resolved({"dim": 2, "batch": 4}))

    def work(i):
        for _ in range(6):
            (trial,) = study.ask()
            study.tell(trial.id, worth(trial.theta))

    together(4, work)
    study.ask()
    assert study.counts()["ok"] == 24
    assert len(study.history()) == 6


def test_reads_do_not_wait_for_a_move_that_another_thread_makes(tmp_path, monkeypatch):
    """What is read while a move is in the making is of before it."""
    from recoup.study.moves import study_move as moves

    making, go_on = threading.Event(), threading.Event()
    make = moves.make_move

    def slowly(*how):
        making.set()
        assert go_on.wait(LIMIT)
        return make(*how)

    with Study.open(tmp_path / "s.db", dim=2, batch=8, method="mis-pgpe-ob") as study:
        trials = study.ask(8)
        for trial in trials[:-1]:
            study.tell(trial.id, worth(trial.theta))
        before = study.evaluate()
        monkeypatch.setattr(moves, "make_move", slowly)
        with ThreadPoolExecutor(1) as pool:
            told = pool.submit(study.tell, trials[-1].id, worth(trials[-1].theta))
            assert making.wait(LIMIT)
            assert study.counts() == {"pending": 0, "ok": 8, "failed": 0}
            assert study.history() == []
            assert study.evaluate().samples == before.samples + 1
            assert study.recommend().theta.shape == (2,)
            assert study.diagnostics()["moves"] == 0
            assert not told.done()
            go_on.set()
            told.result(LIMIT)
        assert len(study.history()) == 1


def test_a_thread_that_tells_while_another_moves_waits_a_little_and_goes_on(tmp_path, monkeypatch):
    from recoup.study.moves import study_move as moves

    monkeypatch.setattr(settling, "MOVE_WAIT", 0.0)
    making, go_on = threading.Event(), threading.Event()
    make = moves.make_move

    def slowly(*how):
        making.set()
        assert go_on.wait(LIMIT)
        return make(*how)

    monkeypatch.setattr(moves, "make_move", slowly)
    with Study.open(tmp_path / "s.db", dim=2, batch=4) as study:
        trials = study.ask(6)
        for trial in trials[:3]:
            study.tell(trial.id, worth(trial.theta))
        with ThreadPoolExecutor(1) as pool:
            told = pool.submit(study.tell, trials[3].id, worth(trials[3].theta))
            assert making.wait(LIMIT)
            study.tell(trials[4].id, worth(trials[4].theta))  # a move is due, and being made
            assert study.counts()["ok"] == 5
            go_on.set()
            told.result(LIMIT)
        assert len(study.history()) == 1
    assert all(verdict.sound for verdict in check(tmp_path / "s.db"))


def test_what_one_thread_writes_is_not_seen_by_another_before_it_is_there(tmp_path):
    """Nor are the counters of a transaction that is called back."""
    with Study.open(tmp_path / "s.db", dim=2, batch=4) as study:
        inside, seen = threading.Event(), []
        with ThreadPoolExecutor(1) as pool:

            def look():
                assert inside.wait(LIMIT)
                seen.append(study.counts()["pending"])

            looked = pool.submit(look)

            def write():
                with study.store.writing():
                    study.store.add_trials([Asked(1, OWN, None, np.zeros(2), 1)])
                    assert study.counts()["pending"] == 1
                    inside.set()
                    raise KeyError

            with pytest.raises(KeyError):
                write()
            looked.result(LIMIT)
        assert seen == [0]


FORKED = """
import os, sys, threading
from recoup.study.study import Study

study = Study.open(sys.argv[1], dim=2, batch=1000)
trials, stop = study.ask(40), threading.Event()
inside, go_on = threading.Event(), threading.Event()

def writes():
    with study.store.writing():
        inside.set()
        go_on.wait(600)
        study.store.enqueue([0.0, 0.0])

writer = threading.Thread(target=writes)
writer.start()
inside.wait(600)
child = os.fork()  # while another thread writes
if not child:
    assert study.counts() == {"pending": 40, "ok": 0, "failed": 0}
    assert study.recommend is not None and study.pending()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
go_on.set()
writer.join()
child = os.fork()
for trial in trials[:20] if child else trials[20:]:
    study.tell(trial.id, 1.0)
if not child:
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
assert study.counts()["ok"] == 40, study.counts()
study.close()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_process_that_is_forked_while_another_thread_writes_goes_on(tmp_path):
    command = [sys.executable, "-W", "ignore", "-c", FORKED, str(tmp_path / "s.db")]
    subprocess.run(command, check=True, timeout=LIMIT)
    with Study.open(tmp_path / "s.db") as again:
        assert again.counts()["ok"] == 40
        assert again.store.integrity() is None


MOVING = """
import os, sys, threading
from recoup.study.moves import study_move as moves
from recoup.study.study import Study

study = Study.open(sys.argv[1], dim=2, batch=4, seed=1)
make_move, at_it, go_on = moves.make_move, threading.Event(), threading.Event()


def waiting(*how):
    at_it.set()
    assert go_on.wait(100)
    return make_move(*how)


def tell():
    for trial in study.ask(4):
        study.tell(trial.id, -float(trial.theta @ trial.theta))


moves.make_move = waiting
mover = threading.Thread(target=tell)
mover.start()
assert at_it.wait(100)
moves.make_move = make_move
stay, leave = os.pipe()
child = os.fork()
if not child:
    os.close(leave)
    os.read(stay, 1)  # for as long as the parent is there
    os._exit(0)
go_on.set()
mover.join()
for _ in range(3):
    tell()
print(len(study.history()))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_process_that_is_forked_in_the_middle_of_a_move_holds_up_none_that_follow(tmp_path):
    """The lock that moves are made under is not the child's to keep."""
    command = [sys.executable, "-W", "ignore", "-c", MOVING, str(tmp_path / "s.db")]
    done = subprocess.run(command, check=True, timeout=LIMIT, capture_output=True, text=True)
    assert done.stdout == "4\n"

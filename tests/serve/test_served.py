"""A study with its lanes: what is told while something takes long, and how its file changes."""

import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from calls import Calls
from serving import PROGRAM, Server
from waiting import LIMIT, until

import recoup
from recoup.serve import writing_trials
from recoup.serve.problems import Problem
from recoup.serve.served import Place, Served
from recoup.store.rows import Told
from recoup.study.care import amend as amending
from recoup.study.study import Study
from recoup.study.trials.leases import tell

BATCH = 4
STUBBORN = f"""from recoup.store import connecting
connecting.BUSY = 600
{PROGRAM}"""


def told(study, number, value):
    with study.store.writing():
        tell(study.opened, [(number, Told("ok", value, None, 1))])


@pytest.fixture
def path(tmp_path):
    with Study.open(tmp_path / "robot.db", dim=2, batch=BATCH) as study:
        for trial in study.ask(10):
            if trial.id <= 6:
                study.tell(trial.id, float(trial.id))
    return tmp_path / "robot.db"


@pytest.fixture
def served(path):
    found = Served(Place("robot", path), True, lambda changes, change: None)
    yield found
    found.close()


def amendment(served, value, key="one"):
    """A call that puts the first result right."""
    body = {"return": value, "why": "misread", "dry_run": False}
    url = SimpleNamespace(path="/v1/studies/robot/trials/1/amend")
    return SimpleNamespace(
        served=served,
        trial=1,
        body=body,
        request=SimpleNamespace(url=url),
        header=lambda name: key,
    )


def amended(served, call):
    return served.puts_right(lambda study: writing_trials._amended_once(study, call)).result(LIMIT)


def value(path, number=1):
    with Study.open(path, read_only=True) as study:
        return study.trials()[number - 1].value


class TestAmending:
    def test_results_are_told_while_moves_are_made_again(self, served, path, monkeypatch):
        begun, goes_on, remade = threading.Event(), threading.Event(), amending._remade

        def held(*given):
            begun.set()
            assert goes_on.wait(LIMIT)
            return remade(*given)

        monkeypatch.setattr(amending, "_remade", held)
        with ThreadPoolExecutor(1) as pool:
            putting = pool.submit(amended, served, amendment(served, 0.5))
            until(lambda: begun.is_set() or putting.done())
            served.writes(lambda study: told(study, 7, 7.0)).result(LIMIT)
            assert not putting.done()
            goes_on.set()
            assert putting.result(LIMIT)["done"] is True
        assert [value(path, number) for number in (1, 7)] == [0.5, 7.0]

    def test_the_key_is_written_with_it_or_neither_is(self, served, path, monkeypatch):
        def fails(study, call):
            raise OSError("the power is cut")

        with monkeypatch.context() as patched:
            patched.setattr(writing_trials, "note_done", fails)
            with pytest.raises(OSError, match="the power is cut"):
                amended(served, amendment(served, 0.5))
        assert value(path) == 1.0
        first, again = (amended(served, amendment(served, 0.5)) for _ in range(2))
        assert (first["done"], first["moves"]) == (True, [1])
        assert (again["done"], again["changes"]) == (True, [writing_trials.DONE_BEFORE])

    def test_the_same_key_at_another_server_amends_once(self, served, path, monkeypatch):
        other = Served(Place("robot", path), True, lambda changes, change: None)
        was_done, first = writing_trials.was_done, []

        def meanwhile(study, call):
            found = was_done(study, call)
            if call.served is served and not first:
                first.append(amended(other, amendment(other, 0.5)))
            return found

        monkeypatch.setattr(writing_trials, "was_done", meanwhile)
        again = amended(served, amendment(served, 0.5))
        other.close()
        assert first[0]["moves"] == [1]
        assert again["changes"] == [writing_trials.DONE_BEFORE]

    def test_moves_that_it_makes_due_are_made(self, served, path):
        served.writes(lambda study: told(study, 7, 7.0)).result(LIMIT)
        with Study.open(path) as study:  # a result that filled no batch now does
            study.settle()
        assert amended(served, amendment(served, 0.5))["done"] is True
        with Study.open(path, read_only=True) as study:
            assert len(study.history()) == 1


class TestRuns:
    @pytest.mark.parametrize("lane", ["writes", "puts_right"])
    def test_nothing_is_written_to_the_study_of_one(self, tmp_path, lane):
        recoup.train("toy", "pgpe", iterations=1, batch=2, seed=0, out=tmp_path / "run")
        one = Served(Place("run", tmp_path / "run" / "study.db"), True, lambda *given: None)
        with pytest.raises(Problem, match="is the study of a run, which asks and tells by itself"):
            getattr(one, lane)(lambda study: study.note("written")).result(LIMIT)
        one.close()


class TestMoves:
    def test_one_that_a_stop_has_left_due_is_made_once_it_is_looked_at(self, served, path):
        with Study.open(path) as study:
            for number in (7, 8):
                told(study, number, 1.0)
            assert len(study.history()) == 1
        served.look()
        until(lambda: served.look().line["moves"] == 2)

    def test_why_one_is_not_made_is_kept_until_it_is(self, served, monkeypatch):
        def fails(study, writing):
            raise recoup.InputError("the matrix is sick.")

        with monkeypatch.context() as patched:
            patched.setattr(Study, "settle", fails)
            with pytest.raises(recoup.InputError):
                served.settles().result(LIMIT)
        assert served.stuck == "the matrix is sick."
        served.settles().result(LIMIT)
        assert served.stuck is None


def test_a_file_that_is_locked_holds_up_no_other(tmp_path):
    for name in "ab":
        Study.open(tmp_path / f"{name}.db", dim=1).close()
    locking = sqlite3.connect(tmp_path / "a.db")
    locking.execute("PRAGMA locking_mode = EXCLUSIVE")
    locking.execute("BEGIN EXCLUSIVE")
    with Server(tmp_path, tmp_path, program=STUBBORN) as server, ThreadPoolExecutor(2) as pool:
        calls = Calls(server)
        waiting = [pool.submit(calls.get, "/v1/studies/a") for _ in range(2)]
        for _ in range(20):
            assert calls.get("/v1/studies/b").status == 200
        asked = calls.post("/v1/studies/b/ask", {})
        assert asked.status == 200
        assert not any(one.done() for one in waiting)
        locking.close()
        assert {one.result(LIMIT).status for one in waiting} == {200}


def test_trials_that_are_handed_out_again_are_nobodys(tmp_path, monkeypatch):
    with Study.open(tmp_path / "robot.db", dim=1) as study:
        (trial,) = study.ask(lease=0.001)
        with study.store.writing():
            study.store.hand_to([trial.id], "arm A")
        assert study.store.workers() == {trial.id: "arm A"}
        until(lambda: study.snapshot().overdue == [trial.id])
        assert [again.id for again in study.ask(lease=600)] == [trial.id]
        assert study.store.workers() == {}


class TestLost:
    ONE = "/v1/studies/robot"

    @pytest.mark.parametrize("endings", [("-wal",), ("-wal", "-shm")])
    def test_a_log_that_was_removed_is_no_refusal_for_good(self, path, tmp_path, endings):
        with Server(tmp_path, path) as server:
            calls = Calls(server)
            assert calls.post(f"{self.ONE}/trials/7/tell", {"return": 7.0}).status == 200
            assert calls.post(f"{self.ONE}/recommend", {}).status == 200  # has the file open too
            for ending in endings:
                (tmp_path / f"robot.db{ending}").unlink()
            answered = [calls.post(f"{self.ONE}/trials/8/tell", {"return": 8.0})]
            until(
                lambda: (
                    answered.append(calls.post(f"{self.ONE}/trials/8/tell", {"return": 8.0}))
                    or answered[-1].status == 200
                )
            )
            assert {one.status for one in answered[:-1]} == {410}
        with Study.open(path) as study:
            assert [trial.value for trial in study][:8] == [float(n) for n in range(1, 9)]

    def test_nor_are_results_that_are_missing(self, path, tmp_path):
        older = path.read_bytes()
        with Study.open(path) as study:
            study.tell(7, 7.0)
            count = (tmp_path / "robot.db-count").read_bytes()
        path.write_bytes(older)
        (tmp_path / "robot.db-count").write_bytes(count)
        with Server(tmp_path, path) as server:
            answered = Calls(server).post(f"{self.ONE}/trials/8/tell", {"return": 8.0})
            assert answered.status == 410
            assert "1 of the 7 results told to" in answered.said["detail"]

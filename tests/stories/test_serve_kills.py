"""A served study survives what happens in a laboratory: kills, lost answers, workers that die."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from processes import Forked
from program import recoup
from serving import PROGRAM, Server
from waiting import LIMIT, until

from recoup.serve.client import connect
from recoup.study.study import Study

ROOT = Path(__file__).parents[2]
GAINS = {"kp": (1, 200, "log"), "kd": (0, 5)}
ROLLOUT = """
import json, sys, time
def rollout(kp, kd, seed=0):
    time.sleep(0.01)
    if seed % 10 == 0:
        raise ValueError('it said "no"\\n\\\\ and \\x07')
    return -abs(kp - 60) / 20 - (kd - 0.7) ** 2
if __name__ == "__main__":
    params = json.load(sys.stdin)
    if params["kd"] > 4:
        sys.exit('it said "no"\\n\\\\ and \\x07')
    print(rollout(**params))
"""


@pytest.fixture
def folder(tmp_path):
    """A study that is new, and a rollout for Python and for any program that calls it."""
    Study.open(tmp_path / "robot.db", params=GAINS, batch=5).close()
    (tmp_path / "robot.py").write_text(ROLLOUT)
    program = tmp_path / "rollout"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{tmp_path}/robot.py"\n')
    program.chmod(0o755)
    return tmp_path


class Started:
    """A program that runs, with what it says."""

    def __init__(self, folder, name, command, **env):
        self.log = folder / f"{name}.log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                command, cwd=folder, stdout=log, stderr=log, env={**os.environ, **env}
            )

    def ended(self):
        """Its status, once it has ended by itself."""
        status = self.process.wait(LIMIT)
        assert status == 0, self.log.read_text()
        return self.log.read_text()

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(LIMIT)


def bash_client(folder, server, rollouts):
    client = ROOT / "examples" / "clients" / "worker.sh"
    command = ["bash", str(client), server.study("robot"), str(rollouts), str(folder / "rollout")]
    return Started(folder, "bash", command, RECOUP_TOKEN=server.token)


def work(folder, server, *words, name="work"):
    command = [sys.executable, "-c", PROGRAM, "work", server.url, "robot:rollout", *words]
    return Started(folder, name, command, RECOUP_TOKEN=server.token)


def results(study):
    counts = study.counts()
    return counts["ok"] + counts["failed"]


def check(folder, trials):
    """Every row and every move is what it must be, each trial told once and none more.

    Opening it makes the moves that were due when the server was killed.
    """
    with Study.open(folder / "robot.db") as study:
        found = study.trials()
        assert [trial.id for trial in found] == list(range(1, trials + 1))
        assert {trial.status for trial in found} <= {"ok", "failed"}
        assert not study.told_later()
        assert study.history()[-1]["results"] > trials - study.batch
        assert study.until_move() > 0
    checked = recoup("study", "check", folder / "robot.db", "--json")
    assert checked.returncode == 0, checked.stdout
    assert json.loads(checked.stdout)["sound"]


def needs(*tools):
    missing = [tool for tool in tools if shutil.which(tool) is None]
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")


@needs("bash", "curl", "jq")
def test_bash_and_a_worker_finish_forty_trials_while_the_server_is_killed_twice(folder):
    with Server(folder, "robot.db") as server:
        clients = [
            bash_client(folder, server, 16),
            work(folder, server, "--workers", "2", "--episodes", "24"),
        ]
        try:
            with Study.open(folder / "robot.db", read_only=True) as study:
                for enough in (10, 25):
                    until(lambda enough=enough: results(study) >= enough, clients[1].log.read_text)
                    server.kill()
                    server.start()
            said = [client.ended() for client in clients]
        finally:
            for client in clients:
                client.kill()
    assert "24 results told" in said[1]
    check(folder, 40)
    with Study.open(folder / "robot.db", read_only=True) as study:
        reasons = {trial.note for trial in study.trials() if trial.status == "failed"}
    assert all('said "no"' in reason for reason in reasons)


def test_what_a_worker_had_when_it_was_killed_another_gets(folder):
    """Its lease has run out by then, or is ended as here: a test waits for no clock."""
    (folder / "hangs.py").write_text("import time\ndef rollout(kp, kd):\n    time.sleep(1e6)\n")
    with Server(folder, "robot.db") as server, connect(server.address) as study:
        command = [sys.executable, "-c", PROGRAM, "work", server.address, "hangs:rollout"]
        hanging = Started(folder, "hangs", [*command, "--workers", "3"])
        until(lambda: len(study.waiting()) == 3, hanging.log.read_text)
        hanging.kill()
        for trial in study.waiting():
            study.give_back(trial.id)
        work(folder, server, "--episodes", "5").ended()
        assert study.counts()["pending"] == 0
    check(folder, 5)


WAITS = (
    "import os, time\ndef rollout(kp, kd):\n    open(f'runs-{os.getpid()}', 'w').close()\n"
    "    while not os.path.exists('go'):\n        time.sleep(0.01)\n    return 1.0\n"
)


def test_ctrl_c_finishes_what_runs_and_a_second_one_gives_it_back(folder):
    (folder / "waits.py").write_text(WAITS)
    with Server(folder, "robot.db") as server, connect(server.address) as study:
        command = [sys.executable, "-c", PROGRAM, "work", server.address, "waits:rollout"]
        one = Started(folder, "one", [*command, "--workers", "2"])
        until(lambda: len(list(folder.glob("runs-*"))) == 2, one.log.read_text)
        first = study.waiting()[0].worker
        one.process.send_signal(signal.SIGINT)
        until(lambda: "finishing what runs" in one.log.read_text())
        one.process.send_signal(signal.SIGINT)
        assert one.process.wait(LIMIT) == 130
        assert "given back" in one.log.read_text()
        two = Started(folder, "two", [*command, "--workers", "2"])
        until(lambda: len(list(folder.glob("runs-*"))) == 4, two.log.read_text)
        assert [trial.worker == first for trial in study.waiting()] == [False, False]
        two.process.send_signal(signal.SIGINT)
        until(lambda: "finishing what runs" in two.log.read_text())
        (folder / "go").touch()
        assert "2 results told" in two.ended()
        assert study.counts() == {"pending": 0, "ok": 2, "failed": 0}


@pytest.mark.parametrize("way", ["tokens", "robot.db"])
def test_a_result_waits_for_the_tokens_and_the_file_that_were_there(way, folder):
    """The server begins anew with other tokens, or the file is moved away, while it is made."""
    (folder / "waits.py").write_text(WAITS)
    with Server(folder, "robot.db") as server:
        command = [sys.executable, "-c", PROGRAM, "work", server.address, "waits:rollout"]
        worker = Started(folder, "one", [*command, "--episodes", "1"])
        try:
            until(lambda: list(folder.glob("runs-*")), worker.log.read_text)
            (folder / way).rename(folder / "away")
            if way == "tokens":
                server.kill()
                server.start()
            (folder / "go").touch()
            until(lambda: "the result of trial 1 waits: " in worker.log.read_text())
            (folder / "away").replace(folder / way)
            if way == "tokens":
                server.kill()
                server.start()
            assert "1 result told." in worker.ended()
        finally:
            worker.kill()
    with Study.open(folder / "robot.db", read_only=True) as study:
        assert [(trial.id, trial.value) for trial in study.trials()] == [(1, 1.0)]


def test_who_ends_without_a_server_is_shown_what_it_has(folder):
    """One result waits for the server, another rollout goes on: neither is given back."""
    two = "import os\ndef rollout(kp, kd, seed):\n    from waits import rollout as waits\n"
    one_is_done = (
        "    try:\n        os.close(os.open('first', os.O_CREAT | os.O_EXCL))\n"
        "    except FileExistsError:\n        waits(kp, kd)\n"
        "    while not os.path.exists('away'):\n        pass\n    return -2.5\n"
    )
    (folder / "waits.py").write_text(WAITS)
    (folder / "two.py").write_text(two + one_is_done)
    with Server(folder, "robot.db") as server:
        command = [sys.executable, "-c", PROGRAM, "work", server.address, "two:rollout"]
        worker = Started(folder, "one", [*command, "--workers", "2"])
        try:
            until(lambda: list(folder.glob("runs-*")), worker.log.read_text)
            server.kill()
            (folder / "away").touch()
            until(lambda: "no answer" in worker.log.read_text(), worker.log.read_text)
            worker.process.send_signal(signal.SIGINT)
            until(lambda: "Ctrl-C again gives up" in worker.log.read_text(), worker.log.read_text)
            worker.process.send_signal(signal.SIGINT)
            assert worker.process.wait(LIMIT) == 130
        finally:
            worker.kill()
    said = worker.log.read_text()
    assert "its result: -2.5; by hand" in said
    assert "robot.db 1 -2.5" in said or "robot.db 2 -2.5" in said
    assert "1 trial that was running could not be given back" in said
    assert "is given back" not in said


# -- many workers --

WORKERS, DIE, TRIALS = 200, 20, 600


def one_of_many(address, number, dies, folder):
    """Asks and tells until so many results are there; one that dies waits for it with a trial.

    The others wait halfway until that has happened, and go on with what the dead had.
    """
    folder = Path(folder)
    with connect(address, patience=LIMIT) as study:
        while (so_far := results(study)) < TRIALS:
            if not dies and so_far >= TRIALS // 2:
                until((folder / "killed").exists)
            (trial,) = study.ask(lease=3600, worker=f"worker {number}")
            if dies:
                (folder / f"has-{number}").write_text(str(trial.id))
                signal.pause()
            study.tell(trial.id, -float(((trial.theta - 1) ** 2).sum()))


@pytest.mark.slow
def test_of_two_hundred_workers_a_tenth_is_killed_and_every_trial_is_told_once(folder):
    with Server(folder, "robot.db") as server:
        workers = [
            Forked(folder / f"{n}.log", one_of_many, server.address, n, n < DIE, str(folder))
            for n in range(WORKERS)
        ]
        held = [folder / f"has-{n}" for n in range(DIE)]
        until(lambda: all(path.exists() and path.read_text() for path in held))
        for worker in workers[:DIE]:
            worker.kill()
        lost = [int(path.read_text()) for path in held]
        with connect(server.address) as study:
            for id in lost:  # as if their leases had run out
                study.give_back(id)
            (folder / "killed").touch()
            for worker in workers[DIE:]:
                assert worker.wait() == 0, worker.said()
            found = study.trials()
    assert not [trial.id for trial in found if trial.status == "pending"]
    assert len(found) >= TRIALS
    assert {trial.worker for trial in found if trial.id in lost}.isdisjoint(
        {f"worker {n}" for n in range(DIE)}
    )
    check(folder, len(found))

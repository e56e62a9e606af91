"""The clients in other languages, those whose tools are installed, beside a real server."""

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest
from calls import Calls
from losing import losing
from serving import Server
from waiting import LIMIT, until

from recoup.study.study import Study

CLIENTS = Path(__file__).parents[2] / "examples" / "clients"
GAINS = {"kp": (1, 200, "log"), "kd": (0, 5)}
NASTY = "it said \"no\"\n\\ and \t é 'x' $(id) %s"


@cache
def has_libcurl():
    """Whether a C++ program with libcurl can be built here."""
    if shutil.which("g++") is None:
        return False
    program = "#include <curl/curl.h>\nint main() { return !curl_easy_init(); }"
    command = ["g++", "-x", "c++", "-", "-o", os.devnull, "-lcurl"]
    return subprocess.run(command, input=program, text=True, capture_output=True).returncode == 0


@cache
def has_julia():
    if shutil.which("julia") is None:
        return False
    return subprocess.run(["julia", "-e", "using HTTP, JSON"], capture_output=True).returncode == 0


def bash(folder):
    for tool in ("bash", "curl", "jq"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    program = folder / "rollout"
    square = "-((.kp / 60 - 1) | . * .) - ((.kd - 0.7) | . * .)"
    program.write_text(f"#!/bin/sh\nexec jq '{square}'\n")
    program.chmod(0o755)
    return lambda url, n: ["bash", str(CLIENTS / "worker.sh"), url, str(n), str(program)]


def cpp(folder):
    if not has_libcurl():
        pytest.skip("g++ with the headers of libcurl is not installed")
    program = folder / "worker"
    build = ["g++", "-std=c++17", "-Wall", "-Wextra", "-o", str(program)]
    subprocess.run([*build, str(CLIENTS / "worker.cpp"), "-lcurl"], check=True, timeout=LIMIT)
    return lambda url, n: [str(program), url, str(n)]


def julia(folder):
    if not has_julia():
        pytest.skip("Julia with HTTP and JSON is not installed")
    return lambda url, n: ["julia", str(CLIENTS / "worker.jl"), url, str(n)]


@pytest.fixture
def server(tmp_path):
    Study.open(tmp_path / "my robot.db", params=GAINS).close()
    with Server(tmp_path, "my robot.db") as server:
        yield server


def ran(command, server):
    how = {"cwd": server.folder, "capture_output": True, "text": True, "timeout": LIMIT}
    return subprocess.run(command, **how, env={**os.environ, "RECOUP_TOKEN": server.token})


@pytest.mark.parametrize("client", [bash, cpp, julia])
def test_it_works_though_of_three_answers_two_are_lost(client, server, tmp_path):
    command = client(tmp_path)
    with losing(server.port, every=3) as port:
        done = ran(command(f"http://127.0.0.1:{port}/v1/studies/my%20robot", 4), server)
    assert done.returncode == 0, done.stderr
    with Study.open(tmp_path / "my robot.db", read_only=True) as study:
        found = study.trials()
        assert [trial.id for trial in found] == [1, 2, 3, 4]
        for trial in found:
            kp, kd = trial.params["kp"], trial.params["kd"]
            assert trial.value == pytest.approx(-((kp / 60 - 1) ** 2) - (kd - 0.7) ** 2)
        assert not study.told_later()


@pytest.mark.parametrize("client", [bash, cpp, julia])
def test_a_refusal_ends_it_with_the_reason(client, server, tmp_path):
    command = client(tmp_path)
    server.token = "wrong"
    done = ran(command(server.study("my%20robot"), 1), server)
    assert done.returncode != 0
    assert "token" in done.stderr


@pytest.mark.parametrize(
    ("does", "reason"),
    [
        ("""cat why >&2; exit 3""", NASTY),
        ("""echo '"text"'""", "no number"),
        ("""true""", "no number"),
        ("""echo nothing""", None),
        ("""echo nan""", None),
    ],
    ids=["fails", "a text", "nothing", "a word", "no number"],
)
def test_what_the_shell_cannot_roll_out_is_told_as_failed(does, reason, server, tmp_path):
    command = bash(tmp_path)
    (tmp_path / "why").write_text(NASTY)
    (tmp_path / "rollout").write_text(f"#!/bin/sh\n{does}\n")
    done = ran(command(server.study("my%20robot"), 1), server)
    assert done.returncode == 0, done.stderr
    with Study.open(tmp_path / "my robot.db", read_only=True) as study:
        (trial,) = study.trials()
    assert trial.status == "failed"
    assert reason is None or trial.note == reason  # of the others jq says why


@pytest.mark.parametrize(
    ("does", "value"),
    [("echo 5", 5.0), ("cat >/dev/null; echo working; echo -2.5", -2.5), ("echo 1 2", None)],
    ids=["it reads nothing", "the last line counts", "two numbers are none"],
)
def test_the_return_is_one_number_on_the_last_line(does, value, server, tmp_path):
    command = bash(tmp_path)
    (tmp_path / "rollout").write_text(f"#!/bin/sh\n{does}\n")
    for _ in range(3):
        done = ran(command(server.study("my%20robot"), 1), server)
        assert done.returncode == 0, done.stderr
    with Study.open(tmp_path / "my robot.db", read_only=True) as study:
        assert [trial.value for trial in study.trials()] == [value] * 3


def test_a_program_that_is_not_there_takes_no_trial(server, tmp_path):
    command = bash(tmp_path)
    (tmp_path / "rollout").unlink()
    done = ran(command(server.study("my%20robot"), 3), server)
    assert (done.returncode, "cannot be run" in done.stderr) == (2, True)
    with Study.open(tmp_path / "my robot.db", read_only=True) as study:
        assert study.counts()["pending"] == 0


def test_the_shell_waits_while_the_study_is_paused(server, tmp_path):
    calls, command, statuses = Calls(server), bash(tmp_path), []
    asked = "/v1/studies/my%20robot"
    calls.post(f"{asked}/pause", {})
    with losing(server.port, every=1, heard=statuses.append) as port:
        url = f"http://127.0.0.1:{port}/v1/studies/my%20robot"
        how = {**os.environ, "RECOUP_TOKEN": server.token}
        with subprocess.Popen(command(url, 1), env=how, cwd=tmp_path) as working:
            until(lambda: 409 in statuses)
            calls.post(f"{asked}/resume", {})
            assert working.wait(LIMIT) == 0
    assert calls.get(asked).said["counts"]["ok"] == 1

"""`recoup serve` at the terminal: what it prints, and what it refuses before it listens."""

import json
import subprocess
import sys
from contextlib import closing
from urllib.parse import unquote

import pytest
from program import recoup
from serving import PROGRAM

import recoup as library


@pytest.fixture
def robot(tmp_path):
    library.Study.open(tmp_path / "robot.db", params={"kp": (1, 200, "log")}).close()
    return tmp_path


def test_programs_are_told_where_it_listens_in_one_line_of_json(robot):
    words = [sys.executable, "-c", PROGRAM, "serve", "robot.db", "--port", "0", "--json"]
    with subprocess.Popen(words, cwd=robot, stdout=subprocess.PIPE, text=True) as process:
        where = json.loads(process.stdout.readline())
        assert sorted(where) == ["address", "reading_token", "token"]
        with closing(library.connect(where["address"], token=where["token"])) as study:
            assert len(study.ask(2)) == 2
        with closing(library.connect(where["address"], token=where["reading_token"])) as reader:
            assert reader.counts()["pending"] == 2
            with pytest.raises(library.InputError, match="this token may only read"):
                reader.ask()
        process.send_signal(2)
        assert process.stdout.read() == ""
        assert process.wait(60) == 130  # as every command that Ctrl-C has stopped


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nothing.db"], "there is no study or run in nothing.db."),
        (["robot.db", "--keyfile", "robot.db"], "--keyfile needs --certfile."),
        (["robot.db", "--certfile", "robot.db"], "robot.db cannot be used"),
        (["robot.db", "--port", "-1"], "--port takes a number from 0 to 65535, got -1."),
        (["robot.db", "--port", "65536"], "--port takes a number from 0 to 65535, got 65536."),
        (["robot.db", "--host", "192.0.2.1"], "no such address: give another --host."),
        (["robot.db", "--host", "no.such.name.invalid"], "give another --host."),
    ],
)
def test_what_cannot_be_served_is_refused_in_a_sentence(robot, monkeypatch, words, sentence):
    monkeypatch.chdir(robot)
    found = recoup("serve", *words)
    assert found.returncode == 1 or found.returncode == 2
    assert sentence in found.stderr
    assert found.stdout == ""


def test_tokens_of_ones_own_work_as_they_are_printed(robot):
    tokens = ["a+b/c=d%41e&f#g?h" + "x" * 10, "r" * 20]
    (robot / "tokens").write_text("\n".join(tokens))
    (robot / "tokens").chmod(0o600)
    words = [sys.executable, "-c", PROGRAM, "serve", "robot.db", "--port", "0"]
    words += ["--token-file", "tokens"]
    with subprocess.Popen(words, cwd=robot, stdout=subprocess.PIPE, text=True) as process:
        fragment = process.stdout.readline().strip().partition("#token=")[2]
        process.send_signal(2)
    assert unquote(fragment) == tokens[0]
    assert not set("+/=&#? ") & set(fragment)

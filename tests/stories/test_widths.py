"""Every command that prints a table: twelve gains with long names, at any width, in a pipe."""

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from types import SimpleNamespace

import numpy as np
import pytest
from long_names import GAINS
from program import recoup
from rich.cells import cell_len
from waiting import LIMIT

from recoup.cli.reproduce_command import _show_claims
from recoup.study.study import Study

pytestmark = pytest.mark.usefixtures("few_rehearsals")

WIDTHS = (40, 80, None)
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[+-]\d+)?(?![\w.])")
TOP = np.linspace(-3, 3, 12)


def worth(trial):
    return -float(np.sum((np.asarray(trial.theta) - TOP) ** 2))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A study of twelve gains with three moves, and a few trials that wait."""
    path = tmp_path_factory.mktemp("wide") / "arm.db"
    with Study.open(path, params=dict.fromkeys(GAINS), batch=8, std=0.01, seed=3) as study:
        for _ in range(3):
            for trial in study.ask(8):
                study.tell(trial.id, worth(trial))
        study.ask(3)
    return path


@pytest.fixture
def place(made, tmp_path):
    (tmp_path / "arm.db").write_bytes(made.read_bytes())
    return tmp_path


@pytest.fixture(params=WIDTHS, ids=["40", "80", "pipe"])
def columns(request, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    if request.param is not None:
        monkeypatch.setenv("COLUMNS", str(request.param))
    return request.param


def printed(*words, cwd, columns, wide=False):
    """What a command prints: whole, and within the terminal."""
    done = recoup(*words, cwd=cwd)
    assert done.returncode == 0, done.stderr
    assert "…" not in done.stdout
    if columns is not None and not wide:
        assert max(cell_len(line.rstrip()) for line in done.stdout.splitlines()) <= columns
    return done.stdout


def numbers(text):
    """The numbers that stand in a text, each on one line."""
    return np.array([float(x) for x in NUMBER.findall(text)])


def assert_whole(text, values, within):
    found = numbers(text)
    for value in values:
        near = np.min(np.abs(found - value))
        assert near <= within, f"{value!r} is not there"


def assert_to_four_digits(text, values):
    """Each value stands there to four digits or more."""
    found = {float(f"{x:.4g}") for x in numbers(text)}
    assert {float(f"{value:.4g}") for value in values} <= found


def test_trials_are_whole(place, columns):
    asked = printed("study", "ask", "arm.db", "-n", "5", cwd=place, columns=columns)
    waiting = printed("study", "pending", "arm.db", cwd=place, columns=columns)
    with Study.open(place / "arm.db") as study:
        trials, spread = study.pending(), float(np.min(study.std))
    for text, shown in ((asked, trials[3:]), (waiting, trials)):
        for trial in shown:
            assert_whole(text, [trial.id, trial.seed], 0)
            assert_whole(text, trial.theta, 1e-3 * spread)


def test_what_to_deploy_is_whole_and_enough_to_be_typed(place, columns):
    text = printed("study", "recommend", "arm.db", cwd=place, columns=columns)
    shown = printed("study", "show", "arm.db", cwd=place, columns=columns)
    found = json.loads(recoup("study", "recommend", "arm.db", "--json", cwd=place).stdout)
    with Study.open(place / "arm.db") as study:
        spread = float(np.min(study.std))
    for output in (text, shown):
        assert_whole(output, found["params"].values(), 1e-3 * spread)
    ends = [end for pair in found["best_between"].values() for end in pair if end is not None]
    assert_to_four_digits(text, ends)
    assert_to_four_digits(text, [batch["mean"] for batch in found["batches"]])


def test_a_replay_is_whole(place, columns):
    words = ("study", "replay", "arm.db", "--method", "iw-pgpe-ob")
    text = printed(*words, cwd=place, columns=columns)
    for row in json.loads(recoup(*words, "--json", cwd=place).stdout):
        assert_whole(text, [row["move"], row["results"]], 0)
        assert_whole(text, [float(f"{row['objective']:.3g}")], 0)


def test_sentences_break_between_words(place, columns):
    with Study.open(place / "arm.db") as study:
        mean = ",".join(map(str, study.mean))
    for words in (
        ("evaluate", "arm.db", "--mean", mean, "--std", "0.02"),
        ("fork", "arm.db", "other.db", "--method", "pgpe"),
        ("tell", "arm.db", "25", "-123456.789"),
        ("amend", "arm.db", "1", "-12.75", "--why", "a slip of the keyboard, seen a week later"),
    ):
        text = printed("study", *words, cwd=place, columns=columns)
        assert text.strip()
    assert "-12.75" in text.split()[-1] or "-12.75" in text


@pytest.mark.parametrize("command", ["methods", "tasks"])
def test_lists_wrap_their_words(command, columns, tmp_path):
    text = printed(command, cwd=tmp_path, columns=columns)
    whole = recoup(command, cwd=tmp_path).stdout if columns is None else ""
    assert text.split()[:1] == [{"methods": "pgpe", "tasks": "toy"}[command]]
    assert whole in ("", text)


def test_a_run_and_its_evaluation_are_whole(tmp_path, columns):
    run = ("train", "toy", "--iterations", "2", "--batch", "4", "--out", "run")
    text = printed(*run, cwd=tmp_path, columns=columns)
    again = printed("evaluate", "run", cwd=tmp_path, columns=columns)
    found = json.loads(recoup("resume", "run", "--json", "--quiet", cwd=tmp_path).stdout)
    for key in ("return_search", "return_mean_policy"):
        assert f"{found[key]['mean']:.2f} ± {found[key]['stderr']:.2f}" in text
    assert again.count("±") == 2


@pytest.mark.slow
def test_a_comparison_is_whole(tmp_path, columns):
    words = ("compare", "--task", "sphere-10", "--method", "pgpe:epsilon=0.25")
    words += ("--method", "iw-pgpe-ob", "--runs", "2", "--episodes", "40", "--out", "c")
    words += ("--checkpoints", "10,20,30,40", "--workers", "1")
    text = printed(*words, cwd=tmp_path, columns=columns)
    found = json.loads(recoup(*words, "--json", cwd=tmp_path).stdout)
    last = [row["search"]["mean"][-1] for row in found["tasks"][0]["methods"]]
    for value in last:
        assert np.min(np.abs(numbers(text) - value)) < 0.01 * abs(value)
    if columns is None:
        assert "Left out" not in text


def test_the_claims_of_the_paper_are_whole(columns, capsys):
    contrast = {"effect": -1234.5, "stderr": 0.0123, "what": "PGPE minus PGPE-OB, mean of 10 runs"}
    claim = {"verdict": "holds", "holm_verdict": "open", "least": 0, "contrasts": [contrast]}
    claims = [{**claim, "id": f"toy-variance-of-the-gradient-falls-{i}"} for i in range(3)]
    _show_claims([SimpleNamespace(judged=claims)])
    text = capsys.readouterr().out
    assert text.count("-1.23e+03 ± 0.012") == 3
    assert columns is None or max(cell_len(line.rstrip()) for line in text.splitlines()) <= columns


@pytest.mark.parametrize("spread", [1e-7, 1e-3, 10.0])
def test_typed_gains_give_the_return_of_those_recommended(tmp_path, spread):
    """However near to each other the candidates are: what is printed tells them apart."""
    centre = np.array([412.34567891234, 0.00987654321, -123456.789])
    path = tmp_path / "s.db"
    with Study.open(path, dim=3, mean=centre, std=spread, batch=6, method="pgpe", seed=1) as study:
        for trial in study.ask(6):
            study.tell(trial.id, float(trial.theta[0]))
        mean, std = study.mean, study.std
    for verb in ("recommend", "show", "ask"):
        text = recoup("study", verb, "s.db", cwd=tmp_path).stdout
        if verb == "ask":
            with Study.open(path) as study:
                mean = study.pending()[-1].theta
        for value, varies in zip(mean, std, strict=True):
            assert np.min(np.abs(numbers(text) - value)) <= 1e-3 * varies, verb


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_a_real_terminal_is_measured(made, columns):
    """Nothing but the terminal itself says how wide it is."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    env = {key: x for key, x in os.environ.items() if key not in ("COLUMNS", "LINES")}
    program = [sys.executable, "-m", "recoup", "study", "pending", str(made)]
    with subprocess.Popen(program, stdout=theirs, stdin=subprocess.DEVNULL, env=env) as process:
        os.close(theirs)
        text = b""
        while True:
            try:
                chunk = os.read(ours, 1 << 16)
            except OSError:  # the other end is closed
                break
            if not chunk:
                break
            text += chunk
        assert process.wait(LIMIT) == 0
    os.close(ours)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text.decode())
    assert max(cell_len(line.rstrip()) for line in plain.splitlines()) <= columns
    assert "…" not in plain
    with Study.open(made) as study:
        for trial in study.pending():
            assert_whole(plain, trial.theta, 1e-3 * float(np.min(study.std)))


@pytest.mark.parametrize("command", ["show", "recommend"])
def test_choices_with_long_names_wrap(command, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    words = [f"{word} fingers with a groove for cables" for word in ("soft", "hard", "steel")]
    with Study.open(tmp_path / "grip.db", params={"kp": (1, 200), "gripper": words}) as study:
        for trial in study.ask(20):
            study.tell(trial.id, -trial.params["kp"])
    shown = recoup("study", command, "grip.db", cwd=tmp_path).stdout
    assert max(map(cell_len, shown.splitlines())) <= 80
    assert re.search(r"^ kp +│ +[\d.]+ │", shown, re.MULTILINE)  # one table, in one piece

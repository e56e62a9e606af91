"""The program as a user runs it: its streams, its exit status; where they matter, as a process."""

import json
import os
import subprocess
import sys

import pytest
from program import recoup
from waiting import LIMIT, until

from recoup.engine.methods import METHODS
from recoup.tasks.registry import TASKS


def process(*words, cwd=None):
    """The program as a process of its own."""
    program = [sys.executable, "-m", "recoup", *words]
    return subprocess.run(program, cwd=cwd, capture_output=True, text=True, timeout=LIMIT)


KEYS = "task method seed episodes iterations batch return_search return_mean_policy wall_s run"


def test_train_prints_one_json_object_and_nothing_else(tmp_path):
    words = "train mountain-car --method iw-pgpe-ob --iterations 3 --batch 10 --seed 0 --json"
    done = process(*words.split(), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert set(KEYS.split()) <= set(answer)
    assert answer["episodes"] == 30
    assert set(answer["return_search"]) == {"mean", "stderr", "episodes"}
    assert answer["run"] == "runs/mountain-car-iw-pgpe-ob-0"
    names = set(os.listdir(tmp_path / answer["run"])) - {"tensorboard"}
    assert names == {"config.json", "curve.png", "study.db"}
    again = recoup(*words.split(), cwd=tmp_path)
    assert again.returncode == 2
    assert "exists already: `recoup resume runs/mountain-car-iw-pgpe-ob-0`" in again.stderr
    assert again.stdout == ""


def test_train_ends_with_a_table_and_where_things_lie(tmp_path):
    done = recoup(
        "train", "toy", "--iterations", "2", "--out", "here", "--mean", "-1.6", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert "mean policy" in done.stdout
    assert "here/curve.png" in done.stdout
    assert "ess" in done.stderr
    assert (tmp_path / "here" / "curve.png").exists()


@pytest.mark.slow
def test_quiet_says_nothing(tmp_path):
    done = process("train", "toy", "--iterations", "1", "--quiet", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.usefixtures("sketches")
def test_settings_reach_the_run(tmp_path):
    words = "train toy --method mis-pgpe-ob --iterations 1 --json --quiet --set update=natural"
    words += " --set kl=0.25 --set window=2 --set truncate=none --set mirrored=true"
    done = recoup(*words.split(), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    config = json.loads((tmp_path / "runs/toy-mis-pgpe-ob-0/config.json").read_text())
    settings = config["settings"]
    assert (settings["update"], settings["kl"], settings["window"]) == ("natural", 0.25, 2)
    assert settings["mirrored"] is True


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("train mountain-cra", "Did you mean 'mountain-car'?"),
        ("train toy --method iw-pgpe-op", "Did you mean 'iw-pgpe-ob'?"),
        ("train toy --iterations 0", "iterations must be a whole number of at least 1, got 0."),
        ("train toy --iterations -3", "got -3."),
        ("train toy --iterations ten", "must be a whole number, got 'ten'"),
        ("train toy --discount high", "must be a number, got 'high'"),
        ("train toy --batch -1", "batch must be a whole number"),
        ("train toy --std 0", "std must be positive standard deviations, got 0.0."),
        ("train toy --std -1", "std must be positive standard deviations, got -1.0."),
        ("train toy --mean a,b", "--mean must be a number"),
        ("train toy --mean 1,2", "must be a number or have shape [D] = [1], got [2]."),
        ("train toy --mean nan", "mean must be finite, got nan"),
        ("train toy --method mis-pgpe-ob --set baseline=optimul", "Did you mean 'optimal'?"),
        ("train toy --method iw-pgpe --set weighting=balence", "Did you mean 'balance'?"),
        ("train toy --set epsilon", "--set takes KEY=VALUE, got 'epsilon'."),
        ("train toy --set epsilon=0.3", "has it: method='mis-pgpe-ob', say."),
        ("train toy --method pgpe --set epsilon=-1", "epsilon must be above 0 and finite, got -1."),
        ("train toy --method pgpe --batch 5 --set mirrored=true", "batch must be even"),
        ("train toy --methd pgpe", "No such option: --methd"),
        ("study new --dim 2 --nonsense", "No such option: --nonsense"),
        ("study new -x --dim 2", "No such option: -x"),
        ("study tell robot.db 3 --faild slipped", "No such option: --faild"),
        ("study tell robot.db 3 --faild -- -1", "No such option: --faild"),
        ("train", "Missing argument 'TASK'"),
        ("trian toy", "No such command 'trian'"),
    ],
)
def test_wrong_use_is_one_sentence_and_status_2(words, sentence, tmp_path):
    done = recoup(*words.split(), cwd=tmp_path)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert done.stderr.startswith("recoup: ")
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert os.listdir(tmp_path) == []


@pytest.mark.usefixtures("sketches")
@pytest.mark.parametrize("number", [".5", "1.", "+1", "1e-1"])
def test_settings_are_numbers_however_they_are_written(number, tmp_path):
    words = ["train", "toy", "--iterations", "1", "--quiet", "--set", f"prior={number}"]
    done = recoup(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    config = json.loads((tmp_path / "runs/toy-recoup-0/config.json").read_text())
    assert config["settings"]["prior"] == float(number)


def test_the_version_is_printed():
    done = process("--version")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("recoup 0.")


def test_a_return_that_is_not_finite_is_a_failure(tmp_path):
    done = recoup("train", "toy", "--iterations", "1", "--mean", "-9e99", "--json", cwd=tmp_path)
    assert done.returncode == 1
    assert "not finite" in done.stderr
    assert done.stdout == ""


def test_a_place_below_a_file_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    done = process("train", "toy", "--iterations", "1", "--out", "file/run", cwd=tmp_path)
    assert done.returncode == 2
    assert "file/run cannot be written to: " in done.stderr
    assert "file is not a directory" in done.stderr
    assert "Traceback" not in done.stderr


def test_methods_and_tasks_are_listed_one_a_line():
    listed = recoup("methods").stdout.splitlines()
    assert [line.split()[0] for line in listed] == list(METHODS)
    listed = recoup("tasks").stdout.splitlines()
    assert [line.split()[0] for line in listed] == [*TASKS, "a", "module:callable"]


@pytest.mark.parametrize("words", [["--help"], ["train", "--help"], ["methods", "--help"]])
def test_help_helps(words):
    done = recoup(*words)
    assert done.returncode == 0
    assert "Usage" in done.stdout
    if "train" in words:
        assert "recoup train mountain-car --method iw-pgpe-ob --iterations 30" in done.stdout


def test_help_and_import_leave_jax_alone():
    """JAX is what would make them slow; the seconds are `make bench`'s to measure."""
    loaded = "import sys, recoup, recoup.cli; print('jax' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True)
    assert done.stdout.strip() == "False"


def test_a_study_by_hand_needs_no_environments():
    code = "import sys; sys.argv = ['recoup', 'study', 'show']; import recoup.cli.main; "
    code += "print(*sorted({'jax', 'gymnasium', 'matplotlib'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("\n", "")


@pytest.mark.slow
@pytest.mark.usefixtures("sketches")
def test_an_interrupted_run_says_how_to_go_on_and_does(tmp_path):
    program = [sys.executable, "-m", "recoup"]
    words = ["train", "toy", "--iterations", "300", "--out", "run", "--method", "pgpe-ob"]
    running = subprocess.Popen([*program, *words], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    until((tmp_path / "run/study.db").exists)
    running.send_signal(2)
    _, said = running.communicate(timeout=LIMIT)
    assert running.returncode == 130
    assert "Traceback" not in said
    assert "recoup: stopped; `recoup resume run` goes on where it was." in said
    done = recoup("resume", "run", "--json", "--quiet", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["iterations"] == 300
    again = recoup("resume", "run", "--json", cwd=tmp_path)  # finished: as it is
    assert again.stdout == done.stdout
    found = recoup("evaluate", "run", "--episodes", "20", "--json", cwd=tmp_path)
    assert found.returncode == 0, found.stderr
    answer = json.loads(found.stdout)
    assert set(KEYS.split()) <= set(answer)
    assert answer["return_mean_policy"]["episodes"] == 20
    assert "mean policy" in recoup("evaluate", "run", "--episodes", "20", cwd=tmp_path).stdout


def test_a_page_of_nothing_names_runs_and_studies(tmp_path):
    done = recoup("report", "nothing.db", cwd=tmp_path)
    assert done.returncode == 2
    assert "there is no run and no study in nothing.db." in done.stderr


@pytest.mark.parametrize("command", ["resume", "evaluate", "report", "render"])
def test_what_is_no_run_gets_one_sentence(command, tmp_path):
    done = recoup(command, str(tmp_path))
    assert done.returncode == 2
    assert "is not a run directory: it has no" in done.stderr
    assert done.stderr.count("\n") == 1

"""`recoup study plot`, `recoup report` of a study, `recoup resume --iterations`, completion."""

import json
import os
import subprocess
import sys

import pytest
from program import recoup
from waiting import LIMIT

from recoup.engine.methods import METHODS
from recoup.study.study import Study
from recoup.tasks.registry import TASKS


@pytest.fixture
def robot(tmp_path):
    """A directory with a study of five results in it."""
    with Study.open(tmp_path / "robot.db", params={"gain": (1, 100, "log")}, batch=4) as study:
        for trial in study.ask(5):
            study.tell(trial.id, -trial.params["gain"])
    return tmp_path


def refused(*words, cwd, saying):
    done = recoup(*words, cwd=cwd)
    assert done.returncode == 2
    assert saying in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


class TestThePicture:
    def test_is_written_where_it_was_said(self, robot):
        done = recoup("study", "plot", "robot.db", "--out", "x.svg", cwd=robot)
        assert (done.returncode, done.stdout, done.stderr) == (0, "x.svg\n", "")
        assert b"<svg" in (robot / "x.svg").read_bytes()
        assert sorted(os.listdir(robot)) == ["robot.db", "x.svg"]

    def test_other_kinds_and_places_are_refused(self, robot):
        plot = ("study", "plot", "robot.db", "--out")
        refused(*plot, "x.jpg", cwd=robot, saying="x.jpg must end in .png, .pdf or .svg.")
        refused(*plot, "no/x.png", cwd=robot, saying="no does not exist")
        refused("study", "plot", "robot.db", cwd=robot, saying="--out")
        refused("study", "plot", "n.db", "--out", "x.png", cwd=robot, saying="no study in n.db")


class TestThePage:
    def test_of_a_study(self, robot):
        done = recoup("report", "robot.db", cwd=robot)
        assert (done.returncode, done.stdout) == (0, "robot-report.html\n"), done.stderr
        assert "To deploy" in (robot / "robot-report.html").read_text()

    def test_of_several_studies(self, robot):
        recoup("study", "fork", "robot.db", "other.db", "--method", "pgpe", cwd=robot)
        done = recoup("report", "robot.db", "other.db", cwd=robot)
        assert (done.returncode, done.stdout) == (0, "studies-report.html\n"), done.stderr
        done = recoup("report", "robot.db", "other.db", "--out", "both.html", cwd=robot)
        assert (done.returncode, done.stdout) == (0, "both.html\n")

    def test_is_of_runs_or_of_studies(self, robot):
        words = ("report", "robot.db", "robot.db")
        refused(*words, cwd=robot, saying="robot.db is named twice: name each study once.")
        (robot / "run").mkdir()
        refused("report", "robot.db", "run", cwd=robot, saying="a page is of runs or of studies")
        refused("report", "robot.db", "no.db", cwd=robot, saying="there is no study in no.db")
        (robot / "t.csv").write_text("a,b\n" * 100)
        refused("report", "t.csv", cwd=robot, saying="is not a study file")
        refused("report", "robot.db", "t.csv", cwd=robot, saying="t.csv is not a study file")
        assert not (robot / "studies-report.html").exists()


def test_a_finished_run_goes_on(tmp_path):
    recoup("train", "toy", "--iterations", "2", "--quiet", "--out", "run", cwd=tmp_path)
    done = recoup("resume", "run", "--iterations", "3", "--json", "--quiet", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["iterations"] == 3
    assert json.loads(done.stdout)["episodes"] == 12
    shorter = ("resume", "run", "--iterations", "1", "--quiet")
    refused(*shorter, cwd=tmp_path, saying="which are 3 iterations of 4")


def test_terminal_json_and_page_have_one_number(tmp_path):
    """The final test stands in the table, in JSON and on the page; the bar shows the curve."""
    shown = recoup("train", "toy", "--iterations", "2", "--out", "run", cwd=tmp_path)
    answer = json.loads(recoup("resume", "run", "--json", "--quiet", cwd=tmp_path).stdout)
    both = (answer["return_search"], answer["return_mean_policy"])
    for found in both:
        assert f"{found['mean']:.2f} ± {found['stderr']:.2f}" in shown.stdout
    assert "toy by recoup: final test" in shown.stdout
    assert "curve " in shown.stderr
    recoup("report", "run", cwd=tmp_path)
    page = (tmp_path / "run" / "report.html").read_text()
    for found in both:
        assert f"<b>{found['mean']:.2f} ± {found['stderr']:.2f}</b>" in page


def completed(shell, line):
    """What the shell is offered at the end of a line."""
    program = "import sys; sys.argv[0] = 'recoup'; from recoup.cli.main import main; main()"
    words = {"COMP_WORDS": line, "COMP_CWORD": str(line.count(" ")), "_TYPER_COMPLETE_ARGS": line}
    env = {**os.environ, **words, "_RECOUP_COMPLETE": f"complete_{shell}"}
    env["_TYPER_COMPLETE_FISH_ACTION"] = "get-args"
    done = subprocess.run(
        [sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=LIMIT
    )
    assert done.stderr == ""
    return done.stdout


@pytest.mark.slow
class TestCompletion:
    def test_of_tasks_methods_settings_and_commands(self):
        assert completed("bash", "recoup train ").split() == list(TASKS)
        assert completed("bash", "recoup train mo").split() == ["mountain-car", "mountain-car-weak"]
        found = completed("bash", "recoup train toy --method iw").split()
        assert found == [name for name in METHODS if name.startswith("iw")]
        assert completed("bash", "recoup study new x.db --method re").split() == ["recoup", "reps"]
        assert completed("bash", "recoup study new x.db --set eps").split() == ["epsilon="]
        assert completed("bash", "recoup study pl").split() == ["plot"]
        found = completed("bash", "recoup compare --task hopper --method op").split()
        assert found == ["optuna-tpe", "optuna-cma-es", "optuna-gp"]
        assert completed("bash", "recoup compare --task ha").split() == ["half-cheetah"]
        assert completed("bash", "recoup compare --task q").split() == ["quick"]

    @pytest.mark.parametrize("shell", ["zsh", "fish"])
    def test_with_words_about_each(self, shell):
        found = completed(shell, "recoup train toy")
        assert "toy" in found
        assert TASKS["toy"].summary.split()[0] in found

    def test_a_shell_is_told_how(self):
        env = {**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
        program = "import sys; sys.argv[0] = 'recoup'; from recoup.cli.main import main; main()"
        command = [sys.executable, "-c", program, "--show-completion", "bash"]
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=LIMIT)
        assert done.returncode == 0
        assert "complete -o default -F _recoup_completion recoup" in done.stdout

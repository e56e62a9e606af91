"""One way to ask for JSON: every command has --json, and prints JSON then and nothing else."""

import json
import re
from importlib import import_module

import pytest
from program import recoup
from typer.main import get_command

from recoup.cli.app import app
from recoup.cli.main import BY_HAND, OTHERS
from recoup.study.study import Study

pytestmark = pytest.mark.usefixtures("few_rehearsals")

LONG = {  # commands that learn or measure for longer: they are tested where they are, with --json
    "train",
    "resume",
    "evaluate",
    "compare",
    "reproduce",
    "render",
    "export-policy",
    "serve",
    "work",
}
WITHOUT: dict[str, str] = {}  # commands without it, and why


def commands():
    """Every command of the program by its words."""
    for name in (*OTHERS, *BY_HAND):
        import_module(f"recoup.cli.{name}")

    def below(command, words):
        if hasattr(command, "commands"):
            for name, one in command.commands.items():
                yield from below(one, (*words, name))
        else:
            yield " ".join(words), command

    return dict(below(get_command(app), ()))


COMMANDS = commands()
NEW = ["new", "made.db", "--dim", "2", "--title", "Left arm"]
STUDY = {  # of a study with a move, a failure, a cancelled trial and one that waits
    "new": NEW,
    "ask": ["ask", "s.db", "-n", "2"],
    "pending": ["pending", "s.db"],
    "enqueue": ["enqueue", "s.db", "0.5", "-1"],
    "tell": ["tell", "s.db", "7", "-1.5"],
    "amend": ["amend", "s.db", "2", "-2.5", "--why", "a slip"],
    "cancel": ["cancel", "s.db", "7", "--why", "late"],
    "show": ["show", "s.db"],
    "trials": ["trials", "s.db", "--status", "ok"],
    "log": ["log", "s.db"],
    "best": ["best", "s.db"],
    "note": ["note", "s.db", "2", "slipped"],
    "title": ["title", "s.db", "Left arm"],
    "plot": ["plot", "s.db", "--out", "s.png"],
    "recommend": ["recommend", "s.db"],
    "predict": ["predict", "s.db", "--param", "theta_0=0.5"],
    "evaluate": ["evaluate", "s.db"],
    "check": ["check", "s.db"],
    "export": ["export", "s.db"],
    "import": ["import", "s.db", "other.csv"],
    "replay": ["replay", "s.db", "--method", "cem"],
    "fork": ["fork", "s.db", "f.db"],
    "copy": ["copy", "s.db", "c.db"],
}
OTHER = {"methods": ["methods"], "tasks": ["tasks"], "report": ["report", "s.db"]}


@pytest.fixture
def place(tmp_path):
    with Study.open(tmp_path / "s.db", dim=2, batch=4) as study:
        for trial in study.ask(5):
            study.tell(trial.id, -float(trial.theta @ trial.theta))
        study.tell(study.ask()[0].id, failed="slipped")
        study.ask(2)
        study.cancel(8)
    with Study.open(tmp_path / "other.db", dim=2, batch=4, seed=3) as other:
        for trial in other.ask(5):
            other.tell(trial.id, -float(trial.theta @ trial.theta))
        other.export(tmp_path / "other.csv")
    return tmp_path


def test_every_command_has_it():
    has = {
        name: any("--json" in option.opts for option in command.params)
        for name, command in COMMANDS.items()
    }
    assert len(has) > 25
    assert [name for name, found in has.items() if not found] == sorted(WITHOUT)


def test_every_command_is_tried_here_or_where_it_is():
    tried = {*OTHER, *LONG, *(f"study {name}" for name in STUDY)}
    assert set(COMMANDS) - tried == set()


@pytest.mark.parametrize("name", [n for n in STUDY if f"study {n}" in COMMANDS])
def test_what_a_command_of_a_study_prints_parses(place, name):
    done = recoup("study", *STUDY[name], "--json", cwd=place)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found, f"{name} says nothing"
    assert done.stdout.count("\n") == 1
    assert not re.search(r"\b(NaN|Infinity)\b", done.stdout)


@pytest.mark.parametrize("name", OTHER)
def test_what_another_command_prints_parses(place, name):
    done = recoup(*OTHER[name], "--json", cwd=place)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)


class TestWhatItSays:
    def test_ask_says_the_same_in_both_ways(self, place):
        one = json.loads(recoup("study", "pending", "s.db", "--json", cwd=place).stdout)
        other = recoup("study", "pending", "s.db", "--format", "json", cwd=place)
        assert json.loads(other.stdout) == one
        assert [trial["id"] for trial in one] == [7]
        both = recoup("study", "ask", "s.db", "--json", "--format", "csv", cwd=place)
        assert both.returncode == 2
        assert "--json or --format csv, not both" in both.stderr

    def test_tell_says_what_followed(self, place):
        done = recoup("study", "tell", "s.db", "8", "-1.5", "--json", cwd=place)
        found = json.loads(done.stdout)
        assert found["told"] == [{"id": 8, "status": "ok", "return": -1.5, "failed": None}]
        assert "was cancelled: its result counts all the same" in found["words"][0]
        with Study.open(place / "s.db") as study:
            assert found["until_move"] == study.until_move() > 0

    def test_show_has_what_somebody_comes_back_to(self, place):
        found = json.loads(recoup("study", "show", "s.db", "--json", cwd=place).stdout)
        assert found["reasons"] == {"slipped": 1}
        assert found["cancelled"] == [8]
        assert found["created_at"] < found["last_told_at"]

    def test_export_has_every_column(self, place):
        rows = json.loads(recoup("study", "export", "s.db", "--json", cwd=place).stdout)
        with Study.open(place / "s.db") as study:
            assert len(rows) == len(study)
        assert {"id", "return", "theta_0", "rho_0"} <= set(rows[0])

    def test_check_says_what_is_wrong(self, place):
        found = json.loads(recoup("study", "check", "s.db", "--json", cwd=place).stdout)
        assert found["sound"]
        with (place / "s.db").open("r+b") as file:
            file.seek(4096)
            file.write(b"coffee" * 700)
        done = recoup("study", "check", "s.db", "--json", cwd=place)
        assert done.returncode == 1
        assert not json.loads(done.stdout)["sound"]


class TestTrialsAndLog:
    def test_the_newest_come_first_and_twenty_are_enough(self, tmp_path):
        with Study.open(tmp_path / "s.db", dim=1, batch=30) as study:
            for trial in study.ask(25):
                study.tell(trial.id, -1.0 * trial.id)

        def ids(*words):
            said = recoup("study", "trials", "s.db", *words, cwd=tmp_path).stdout
            return [int(x) for x in re.findall(r"^ +(\d+) │", said, re.M)], said

        found, said = ids()
        assert found == list(range(25, 5, -1))
        assert "The newest 20 of 25 trials: --all shows all of them." in said
        assert ids("--all")[0] == list(range(25, 0, -1))
        assert ids("--last", "3")[0] == [25, 24, 23]
        both = recoup("study", "trials", "s.db", "--last", 3, "--all", cwd=tmp_path)
        assert "give --last or --all, not both" in both.stderr
        said = json.loads(recoup("study", "trials", "s.db", "--json", cwd=tmp_path).stdout)
        assert len(said) == 25
        rows = recoup("study", "trials", "s.db", "--format", "csv", cwd=tmp_path).stdout
        assert rows.splitlines()[0].startswith("id,theta_0,kind,status,return,")
        assert len(rows.splitlines()) == 26

    def test_filters(self, place):
        def ids(*words):
            done = recoup("study", "trials", "s.db", "--json", *words, cwd=place)
            return [trial["id"] for trial in json.loads(done.stdout)]

        assert ids("--status", "failed") == [6]
        assert ids("--status", "pending") == [7]
        assert ids("--status", "cancelled") == [8]
        assert ids("--kind", "own") == []
        done = recoup("study", "trials", "s.db", "--status", "good", cwd=place)
        assert done.returncode == 2
        assert "--status must be one of ok, failed, pending, cancelled" in done.stderr
        done = recoup("study", "trials", "s.db", "--kind", "own", cwd=place)
        assert done.stdout == "There is no such trial.\n"

    def test_the_log_ends_with_the_newest(self, place):
        said = recoup("study", "log", "s.db", "--last", "2", cwd=place).stdout
        assert said.index("asked") < said.index("cancelled")
        assert "Earlier entries are left out" in said
        found = json.loads(recoup("study", "log", "s.db", "--json", cwd=place).stdout)
        assert (found[0]["what"], found[-1]["what"]) == ("created", "cancelled")

    def test_a_table_of_trials_says_why_they_failed_and_what_was_noted(self, place):
        recoup("study", "note", "s.db", "3", "a little late", cwd=place)
        said = recoup("study", "trials", "s.db", cwd=place).stdout
        assert re.search(r" 6 │ .* failed .* slipped", said)
        assert re.search(r" 3 │ .* a little late", said)


class TestNotesOnTheCommandLine:
    def test_a_text_of_several_words_is_in_quotation_marks(self, place):
        done = recoup("study", "note", "s.db", "3", "screws", "replaced", cwd=place)
        assert done.returncode == 2
        assert "put it in quotation marks" in done.stderr
        done = recoup("study", "note", "s.db", "screws", "replaced", cwd=place)
        assert "must be a whole number, got 'screws'" in done.stderr
        assert recoup("study", "note", "s.db", "3 screws replaced", cwd=place).stdout == "Noted.\n"
        assert recoup("study", "note", "s.db", "3", "late", cwd=place).stdout == "Trial 3: noted.\n"
        with Study.open(place / "s.db") as study:
            assert [(n.trial, n.text) for n in study.notes()] == (
                [(None, "3 screws replaced"), (3, "late")]
            )

    def test_units_and_a_title_are_given_with_new(self, tmp_path):
        words = "new u.db --param kp=1:200:log --unit kp=Nm/rad --return-unit m --title Arm"
        assert recoup("study", *words.split(), cwd=tmp_path).returncode == 0
        said = recoup("study", "ask", "u.db", cwd=tmp_path).stdout
        assert "kp [Nm/rad]" in said
        recoup("study", "tell", "u.db", "1", "-2", cwd=tmp_path)
        assert "return [m]" in recoup("study", "trials", "u.db", cwd=tmp_path).stdout
        for name in ("show", "recommend", "best"):
            assert "kp [Nm/rad]" in recoup("study", name, "u.db", cwd=tmp_path).stdout
        assert recoup("study", "title", "u.db", cwd=tmp_path).stdout == "Arm\n"
        forked = recoup("study", "fork", "u.db", "f.db", "--unit", "kp=Nmm/rad", cwd=tmp_path)
        assert forked.returncode == 0, forked.stderr
        now = json.loads(recoup("study", "show", "f.db", "--json", cwd=tmp_path).stdout)
        assert now["units"] == {"kp": "Nmm/rad"}
        wrong = recoup("study", "fork", "u.db", "g.db", "--unit", "speed=m/s", cwd=tmp_path)
        assert (wrong.returncode, "speed" in wrong.stderr) == (2, True)
        assert not (tmp_path / "g.db").exists()
        wrong = recoup("study", *["new", "v.db", "--param", "kp", "--unit", "kp"], cwd=tmp_path)
        assert "--unit takes NAME=UNIT, got 'kp'" in wrong.stderr
        (tmp_path / "p.toml").write_text('[kp]\nlow = 1\nhigh = 2\nunit = "s"\n')
        assert recoup("study", "new", "w.db", "--params", "p.toml", cwd=tmp_path).returncode == 0
        with Study.open(tmp_path / "w.db") as study:
            assert study.opened.units == {"kp": "s"}
        page = recoup("report", "u.db", cwd=tmp_path)
        assert page.returncode == 0, page.stderr
        text = (tmp_path / "u-report.html").read_text()
        assert "kp [Nm/rad]" in text
        assert "Arm (u.db)" in text

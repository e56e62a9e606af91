"""Whatever a study quotes, a terminal obeys none of it, and a row of a table stays one row."""

import io
import os
import subprocess
import sys

import pytest
from program import recoup
from waiting import LIMIT

from recoup.cli.app import for_tables
from recoup.study.study import Study

pytestmark = pytest.mark.usefixtures("few_rehearsals")

EVIL = "fell\x1b[2J\x1b]0;owned\x07\rover\nrecoup: all is well\t\x9b31m\u202e[red]\\"
FILE = "s\x1b[31m\n[bold].db"
COMMANDS = (
    ("show",),
    ("show", "--json"),
    ("ask", "-n", "2"),
    ("ask", "--format", "json"),
    ("pending",),
    ("pending", "--format", "csv"),
    ("enqueue", "0.2", "1.0", "--note", EVIL),
    ("tell", "5", "--failed", EVIL),
    ("tell", "5", "3.0"),
    ("tell", "1", "--failed", EVIL),
    ("tell", "--file", FILE),
    ("amend", "2", "--failed", EVIL, "--why", EVIL, "--dry-run"),
    ("amend", "3", "0.5", "--why", EVIL),
    ("amend", "4", "--drop", EVIL),
    ("evaluate",),
    ("recommend",),
    ("recommend", "--json"),
    ("check", "--quiet"),
    ("replay", "--method", "iw-pgpe-ob"),
    ("plot", "--out", "p\x1b[2J.png"),
    ("plot", "--out", "p\x1b[2J.odd"),
    ("export", "--out", "t\x1b[2J.csv"),
    ("import", "no\x1b[2J.csv"),
    ("fork", "f\x1b[2J.db"),
    ("fork", FILE),
    ("copy", "c\x1b[2J.db"),
    ("new", "--dim", "2"),
)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A study full of such texts, under such a name."""
    place = tmp_path_factory.mktemp("evil")
    with Study.open(place / FILE, params={"a[b]": (0, 1), "c": None}, batch=4) as study:
        trials = study.ask(7)
        for trial in trials[:4]:
            study.tell(trial.id, float(trial.theta[0]))
        study.enqueue([0.5, 1.0], note=EVIL)
        study.amend(1, 0.75, why=EVIL)
        study.tell(6, failed=EVIL)
    return place


@pytest.fixture
def place(made, tmp_path):
    (tmp_path / FILE).write_bytes((made / FILE).read_bytes())
    return tmp_path


def harmless(printed):
    return printed.replace("\n", "").isprintable()


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: ascii(" ".join(words))[:40])
def test_no_command_prints_what_a_terminal_obeys(place, words, sketches):
    verb, *rest = words
    done = recoup("study", verb, FILE, *rest, cwd=place)
    assert harmless(done.stdout)
    assert harmless(done.stderr)
    assert done.stderr.count("\n") <= 1
    assert "\nrecoup: all is well" not in done.stdout + done.stderr


def test_a_failure_stays_on_its_line_and_is_kept_as_it_was_told(place):
    done = recoup("study", "tell", FILE, 5, "--failed", EVIL, cwd=place)
    first, *_ = done.stdout.splitlines()
    assert first.startswith("Trial 5: failed (fell\\x1b[2J")
    with Study.open(place / FILE) as study:
        trial = study.trials()[4]
    assert trial.note == EVIL
    assert harmless(repr(trial))


def test_rows_of_the_summary_are_one_each(place, monkeypatch):
    monkeypatch.setenv("COLUMNS", "400")
    done = recoup("study", "show", FILE, cwd=place)
    rows = [line for line in done.stdout.splitlines() if line.startswith(" amended")]
    assert len(rows) == 1
    assert "all is well" in rows[0]
    assert "[red]" in rows[0]


def test_a_table_is_made_printable_on_a_terminal_alone(place):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    from recoup.study.exchange.tables import write_csv

    file, terminal = io.StringIO(), Terminal()
    with Study.open(place / FILE) as study:
        write_csv(study.opened, for_tables(file))
        rows = write_csv(study.opened, for_tables(terminal))
    assert "\x1b" in file.getvalue()
    assert harmless(terminal.getvalue())
    assert len(terminal.getvalue().splitlines()) == rows + 1


def test_pages_and_runs_with_such_names_print_none_of_them(place):
    done = recoup("report", FILE, "--out", "r\x1b[2J.html", cwd=place)
    assert done.returncode == 0, done.stderr
    assert harmless(done.stdout)
    for words in (("evaluate",), ("render",), ("resume",), ("report",)):
        done = recoup(*words, "no\x1b[2J\nrun", cwd=place)
        assert done.returncode == 2
        assert harmless(done.stderr)
        assert done.stderr.count("\n") == 1


def test_a_file_name_that_is_no_text_is_printed_all_the_same(place):
    name = os.fsdecode(b"\x80.db")
    done = recoup("study", "new", name, "--dim", 2, cwd=place)
    assert (done.returncode, done.stdout) == (0, "\\udc80.db\nTell returns: larger is better.\n")
    assert recoup("study", "show", name, cwd=place).returncode == 0
    with Study.open(place / name) as study:
        for trial in study.ask(3):
            study.tell(trial.id, float(trial.id))
    for words in (("study", "plot", name, "--out", "p.png"), ("report", name)):
        done = recoup(*words, cwd=place)
        assert done.returncode == 0, done.stderr
    done = recoup("report", name, FILE, "--out", "both.html", cwd=place)
    assert done.returncode == 0, done.stderr
    assert "\\udc80.db" in (place / "both.html").read_text()


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_a_letter_that_a_stream_has_not_is_written_out(tmp_path, encoding):
    """Nothing is asked for or told unseen, and the file is not to blame."""
    with Study.open(tmp_path / "k.db", params={"k\u03b1": (1, 200), "g": (0, 1)}) as study:
        study.tell(study.ask(1)[0].id, 1.0)
    for words in (
        ("ask", "k.db"),
        ("tell", "k.db", "2", "--failed", "slip \u4e2d"),
        ("show", "k.db"),
        ("trials", "k.db"),
    ):
        done = in_encoding(encoding, tmp_path, *words)
        assert (b"\\u4e2d" if "tell" in words else b"k\\u03b1") in done


def in_encoding(encoding, place, *words):
    """What `recoup study` prints where standard output has an encoding, as bytes."""
    done = subprocess.run(
        [sys.executable, "-m", "recoup", "study", *words],
        cwd=place,
        env={**os.environ, "PYTHONIOENCODING": encoding},
        capture_output=True,
        timeout=LIMIT,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout


def test_a_csv_is_in_utf_8_whatever_the_stream_has(tmp_path):
    """Columns were named k\\u03b1, which no study has."""
    how = {"params": {"k\u03b1": (1, 200), "g": (0, 1)}}
    with Study.open(tmp_path / "k.db", **how) as study:
        for trial in study.ask(4):
            study.tell(trial.id, 1.0)
    for words in (("ask", "--format", "csv"), ("trials", "--format", "csv"), ("export",)):
        printed = in_encoding("ascii", tmp_path, words[0], "k.db", *words[1:])
        assert "k\u03b1" in printed.decode("utf-8").splitlines()[0].split(",")
    (tmp_path / "k.csv").write_bytes(printed)
    Study.open(tmp_path / "again.db", **how).close()
    done = recoup("study", "import", "again.db", "k.csv", cwd=tmp_path)
    assert done.stdout.startswith("4 samples imported"), done.stderr

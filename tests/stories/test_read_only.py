"""A study that is opened to be read: also while others write, also where nothing can be written."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from another_user import as_another_user
from sentences import NO_STUDY_IN

from recoup import Study
from recoup.checks import InputError

PARAMS = {"gain": (0.1, 10, "log"), "steps": (1, 50, "int")}


def filled(path, results=8):
    with Study.open(path, params=PARAMS, batch=4) as study:
        for trial in study.ask(results):
            study.tell(trial.id, -float(np.log(trial.theta[0]) ** 2))
        study.ask(2)
    return path


@pytest.fixture
def path(tmp_path):
    return filled(tmp_path / "robot.db")


READS = {
    "counts": lambda study: study.counts(),
    "pending": lambda study: [trial.id for trial in study.pending()],
    "trials": lambda study: [trial.value for trial in study.trials()],
    "mean policy": lambda study: dict(study.mean_policy),
    "history": lambda study: study.history(),
    "diagnostics": lambda study: study.diagnostics()["advice"],
    "best": lambda study: study.best[1],
    "evaluate": lambda study: study.evaluate().mean,
    "recommend": lambda study: study.recommend().words,
    "amend, dry": lambda study: study.amend(1, -9.0, dry_run=True).moves,
    "replay": lambda study: len(study.replay("mis-pgpe-ob")),
    "notebook": lambda study: study._repr_html_(),
    "picture": lambda study: len(study.plot().axes),
}
WRITES = {
    "ask": lambda study: study.ask(),
    "tell": lambda study: study.tell(9, 1.0),
    "amend": lambda study: study.amend(1, 2.0),
    "enqueue": lambda study: study.enqueue([1.0, 2.0]),
    "import": lambda study: study.import_samples([[1.0, 2.0]] * 3, [1.0, 2.0, 3.0], 0.0, 1.0),
}


@pytest.mark.parametrize("verb", READS.values(), ids=READS)
def test_what_reads_answers_as_it_does_otherwise(path, verb):
    before = path.read_bytes()
    with Study.open(path, read_only=True) as study:
        found = verb(study)
    assert [file.name for file in path.parent.iterdir()] == ["robot.db"]
    assert path.read_bytes() == before
    with Study.open(path) as study:
        assert str(verb(study)) == str(found)


@pytest.mark.parametrize("verb", WRITES.values(), ids=WRITES)
def test_what_writes_is_refused_and_changes_nothing(path, verb):
    before = path.read_bytes()
    with Study.open(path, read_only=True) as study:
        with pytest.raises(InputError, match="was opened with read_only=True, so that nothing"):
            verb(study)
        assert study.counts() == {"pending": 2, "ok": 8, "failed": 0}
    assert path.read_bytes() == before


def test_it_sees_what_others_write_and_makes_no_move(path):
    with Study.open(path, read_only=True) as reader, Study.open(path) as writer:
        writer.tell(9, -1.0)
        assert reader.counts()["ok"] == 9
        with reader.store.reading():
            assert reader.counts()["ok"] == 9
            writer.tell(10, -1.0)
            assert reader.counts()["ok"] == 9
        assert reader.counts()["ok"] == 10
    assert [file.name for file in path.parent.iterdir()] == ["robot.db"]


def test_a_move_that_is_due_stays_due(path, monkeypatch):
    with Study.open(path) as writer:
        monkeypatch.setattr(writer._mover, "settle", lambda: None)
        for number in (9, 10):
            writer.tell(number, -1.0)
        for trial in writer.ask(2):
            writer.tell(trial.id, -2.0)
        assert writer.until_move() == 0
    with Study.open(path, read_only=True) as reader:
        reader.evaluate(), reader.recommend(), reader.diagnostics()
        assert len(reader.history()) == 2
        assert reader.until_move() == 0


def test_the_last_to_close_leaves_one_file(path):
    reader, writer = Study.open(path, read_only=True), Study.open(path)
    writer.tell(9, -1.0)
    writer.close()
    assert reader.counts()["ok"] == 9
    reader.close()
    assert [file.name for file in path.parent.iterdir()] == ["robot.db"]
    with Study.open(path, read_only=True) as again:
        assert again.counts()["ok"] == 9


def test_there_must_be_a_study(tmp_path):
    with pytest.raises(InputError, match=NO_STUDY_IN):
        Study.open(tmp_path / "none.db", dim=2, read_only=True)
    assert list(tmp_path.iterdir()) == []


def test_settings_must_agree_all_the_same(path):
    with pytest.raises(InputError):
        Study.open(path, batch=5, read_only=True)


ELSEWHERE = """
import json, os, sys
from recoup import Study
if os.getuid() == 0: os.setuid(65534)
study = Study.open(sys.argv[1], read_only=True)
found = [study.counts(), study.recommend().words, study.evaluate().samples, study.store.changes()]
try:
    study.ask()
except ValueError as wrong:
    found.append(str(wrong))
print(json.dumps(found), flush=True)
sys.stdin.readline()
later = study.store.changes()
print(json.dumps([study.counts(), len(study.trials()), study.recommend().theta.tolist(), later]))
study.close()
"""


@as_another_user
def test_a_study_on_a_medium_that_cannot_be_written_to(path):
    """As another user, for root writes anywhere; one who may write comes, writes and goes."""
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / path.name
        shutil.copy(path, file)
        file.chmod(0o644)
        Path(place).chmod(0o555)
        mine = os.environ.copy()
        reader = subprocess.Popen(
            [sys.executable, "-c", ELSEWHERE, str(file)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=mine,
        )
        counts, words, samples, seen, refused = json.loads(reader.stdout.readline())
        assert counts == {"pending": 2, "ok": 8, "failed": 0}
        assert "mean policy" in words
        assert samples == 8
        assert "opened with read_only=True" in refused
        assert [one.name for one in Path(place).iterdir()] == [path.name]
        if os.getuid() == 0:  # who else may write there?
            with Study.open(file) as writer:
                writer.tell(9, -1.0)
                for trial in writer.ask(40):
                    writer.tell(trial.id, -1.0)
                told = writer.counts()["ok"]
        out, _ = reader.communicate("\n", timeout=600)
        assert reader.returncode == 0
        if os.getuid() == 0:
            after = json.loads(out)
            assert after[0]["ok"] == told == 49
            assert after[-1] != seen
        Path(place).chmod(0o755)

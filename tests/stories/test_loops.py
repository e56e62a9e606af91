"""A symbolic link that leads to itself: one sentence from every command that takes a path."""

import pytest
from program import recoup

from recoup.study.study import Study

COMMANDS = (
    "study new LOOP --dim 2",
    "study new new.db --params LOOP",
    "study new DIR/new.db --dim 2",
    "study show LOOP",
    "study ask LOOP",
    "study pending LOOP",
    "study tell LOOP 1 1.0",
    "study tell s.db --file LOOP",
    "study amend LOOP 1 1.0",
    "study enqueue LOOP 1 1",
    "study evaluate LOOP",
    "study recommend LOOP",
    "study check LOOP",
    "study check LOOP --recover new.db",
    "study check s.db --recover LOOP",
    "study export LOOP",
    "study export s.db --out LOOP.csv",
    "study import s.db LOOP",
    "study replay LOOP",
    "study fork LOOP new.db",
    "study fork s.db LOOP",
    "study fork s.db DIR/new.db",
    "study plot LOOP --out p.png",
    "study plot s.db --out LOOP.png",
    "study plot s.db --out DIR/p.png",
    "report LOOP",
    "report DIR",
    "report s.db --out LOOP.html",
    "report s.db --out DIR/r.html",
    "evaluate DIR",
    "resume DIR",
    "render DIR",
    "train toy --iterations 1 --out DIR",
    "train toy --iterations 1 --out DIR/run",
)


@pytest.mark.parametrize("words", COMMANDS)
def test_a_loop_is_one_sentence_and_nothing_is_written(tmp_path, words):
    Study.open(tmp_path / "s.db", dim=2).close()
    for name in ("LOOP", "DIR", "LOOP.csv", "LOOP.png", "LOOP.html"):
        (tmp_path / name).symlink_to(name)
    before = {path: path.is_symlink() or path.read_bytes() for path in tmp_path.iterdir()}
    done = recoup(*words.split(), cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "leads back to itself" in done.stderr or "symbolic links" in done.stderr
    assert done.stderr.count("\n") == 1
    after = {path: path.is_symlink() or path.read_bytes() for path in tmp_path.iterdir()}
    assert after == before

"""Files that recoup 0.1 wrote: carried over, their moves are the ones that are made today."""

from pathlib import Path

import numpy as np
import pytest

import recoup
from recoup.store.format1 import carry_over
from recoup.study.care.verify import check
from recoup.study.exchange.replay import differences
from recoup.study.reader.opened import Opened

DATA = Path(__file__).parents[1] / "store" / "data"


@pytest.mark.parametrize("name", ["run-format1.db", "hand-format1.db"])
def test_every_move_comes_out_as_it_was_stored(name, tmp_path):
    carry_over(DATA / name, tmp_path / "new.db")
    study = Opened.open(tmp_path / "new.db")
    found = differences(study)
    study.store.close()
    assert len(found) >= 2
    assert max(gap for _, gap in found) < 1e-12
    assert all(verdict.sound for verdict in check(tmp_path / "new.db"))


def test_a_run_that_was_carried_over_is_loaded_and_goes_on_by_hand(tmp_path):
    carry_over(DATA / "run-format1.db", tmp_path / "study.db")
    run = recoup.load(tmp_path)
    assert run.finished
    assert np.isfinite(run.curve.mean).all()
    assert recoup.resume(tmp_path).summary() == run.summary()
    with run.study as study:
        before = len(study.history())
        for trial in study.ask(study.batch):
            study.tell(trial.id, 1.0 + trial.id % 3)
        assert len(study.history()) == before + 1
    verdicts = check(tmp_path / "study.db")
    assert all(verdict.sound for verdict in verdicts)
    assert "were drawn by recoup 0.1" in verdicts[3].words

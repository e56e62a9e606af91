"""Trials as columns: the same as the library lists, and thinned without losing extremes."""

import numpy as np
import pytest

from recoup.store.errors import Damaged
from recoup.store.file import StudyFile
from recoup.study.study import Study
from recoup.study.views.trial_columns import TrialColumns, thinned


def read(columns, study):
    with study.store.reading():
        columns.refresh()
    return columns


def same(columns, study):
    """Whether they hold what the study lists."""
    told = [t for t in study.trials() if t.value is not None]
    ids, values = columns.returns()
    assert ids.tolist() == [t.id for t in told]
    assert values.tolist() == [t.value for t in told]
    failed = [t.id for t in study.trials() if t.status == "failed" and "loose" not in t.note]
    assert columns.failed().tolist() == failed
    asked, shown = columns.shown(ids)
    assert (asked.id.tolist(), shown.tolist()) == (ids.tolist(), values.tolist())
    by_name = columns.values(asked, study.opened.labels)
    for i, t in enumerate(told):
        assert [column[i] for column in by_name.values()] == pytest.approx(t.theta.tolist())


@pytest.mark.parametrize("how", [{"dim": 3}, {"params": {"a": (1, 9, "log"), "b": ("x", "y")}}])
def test_what_is_added_is_added_and_what_is_put_right_is_put_right(tmp_path, how):
    with Study.open(tmp_path / "s.db", batch=5, **how) as study:
        columns = read(TrialColumns(study.opened), study)
        same(columns, study)
        trials = study.ask(12)
        for trial in trials[::-2]:  # told in another order than asked
            study.tell(trial.id, float(trial.id))
            same(read(columns, study), study)
        study.tell(trials[0].id, failed="it fell")
        same(read(columns, study), study)
        study.amend(trials[1].id, 7.5)
        study.amend(trials[3].id, drop="loose")
        same(read(columns, study), study)
        study.tell(study.ask(3)[0].id, 2.0)
        same(read(columns, study), study)


def test_a_fork_with_other_bounds(tmp_path):
    with Study.open(tmp_path / "a.db", params={"a": (0, 1)}, batch=4) as study:
        for trial in study.ask(8):
            study.tell(trial.id, float(trial.theta[0]))
        with study.fork(tmp_path / "b.db", params={"a": (0, 2)}) as other:
            other.tell(other.ask()[0].id, 1.0)
            same(read(TrialColumns(other.opened), other), other)


def test_no_trial_is_read_that_is_not_shown(tmp_path, monkeypatch):
    checked, sound = [], StudyFile._sound
    with Study.open(tmp_path / "s.db", dim=3, batch=1000) as study:
        study.tell([trial.id for trial in study.ask(300)], [float(i % 7) for i in range(300)])
        monkeypatch.setattr(
            StudyFile, "_sound", lambda self, *row: checked.append(row[0]) or sound(self, *row)
        )
        columns = read(TrialColumns(study.opened), study)
        ids, values = columns.returns()
        some = thinned(ids, values, 20)
        assert {"asked", "told"}.isdisjoint(checked)
        columns.shown(ids[some])
        assert (checked.count("asked"), checked.count("told")) == (len(some), len(some))


@pytest.mark.parametrize("table", ["asked", "told"])
def test_what_is_shown_was_written_so(tmp_path, table):
    with Study.open(tmp_path / "s.db", dim=3, batch=1000) as study:
        study.tell([trial.id for trial in study.ask(9)], [float(i) for i in range(9)])
        change = {"asked": "seed = seed + 1", "told": '"return" = 70.0'}[table]
        study.store._file.connection.execute(f"UPDATE {table} SET {change} WHERE id = 4")
        columns = read(TrialColumns(study.opened), study)
        ids, _ = columns.returns()
        with pytest.raises(Damaged, match=f"row 4 of {table} is not as written"):
            columns.shown(ids)


@pytest.mark.parametrize("n", [0, 1, 5, 1000, 12_345])
@pytest.mark.parametrize("most", [2, 10, 1600])
def test_no_extreme_is_lost(n, most):
    y = np.random.default_rng(n).standard_cauchy(n)
    some = thinned(np.arange(n), y, most)
    assert np.all(np.diff(some) > 0)
    assert len(some) <= max(most + 2, n if n <= most else 0)
    if n:
        assert y[some].max() == y.max()
        assert y[some].min() == y.min()
        assert {0, n - 1} <= set(some.tolist())

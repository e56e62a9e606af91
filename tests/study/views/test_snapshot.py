"""One record of a study: of one moment, with a version that is another when the study is."""

import json
import shutil
import subprocess
import sys
from datetime import datetime

import numpy as np
import pytest
from waiting import LIMIT

from recoup import Study
from recoup.study.views import snapshot as snapshots

pytestmark = pytest.mark.usefixtures("few_rehearsals")

PARAMS = {"gain": (0.1, 10, "log"), "steps": (1, 50, "int")}


def worth(trial):
    return -float(np.log(trial.theta[0]) ** 2)


@pytest.fixture
def study(tmp_path):
    with Study.open(tmp_path / "robot.db", params=PARAMS, batch=4) as made:
        for trial in made.ask(9):
            made.tell(trial.id, worth(trial))
        made.ask(2, lease=1e-6)
        yield made


CHANGES = {
    "ask": lambda study: study.ask(),
    "ask again": lambda study: study.ask(2, lease=3600),
    "tell": lambda study: study.tell(10, -1.0),
    "tell a failure": lambda study: study.tell(10, failed="slipped"),
    "tell and move": lambda study: study.tell_all(
        [(t.id, study.result(-1.0)) for t in study.ask(3)]
    ),
    "amend": lambda study: study.amend(9, -2.0),
    "amend what a move was made of": lambda study: study.amend(1, -2.0),
    "drop": lambda study: study.amend(9, drop="loose"),
    "enqueue": lambda study: study.enqueue([1.0, 3]),
    "import": lambda study: study.import_samples([[1.0, 3]] * 4, [1.0, 2.0, 3.0, 4.0], 1.0, 1.0),
    "note": lambda study: study.note("a new gripper"),
}


def _results(study):
    return [(trial.id, study.result(-1.0)) for trial in study.ask(3)]


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_the_version_is_another_once_the_study_is(study, change):
    before = study.snapshot().version
    change(study)
    after = study.snapshot().version
    assert after != before
    assert study.snapshot().version == after


def test_the_version_tells_apart_what_was_put_in_line(study):
    versions = set()
    for theta in ([1.0, 3], [2.0, 3], [1.0, 3]):
        study.enqueue(theta)
        versions.add(study.snapshot().version)
    assert len(versions) == 3


def test_nothing_that_reads_changes_it(study, tmp_path):
    before = study.snapshot().version
    study.recommend(), study.evaluate(), study.diagnostics(), study.trials(), study.pending()
    study.amend(1, -9.0, dry_run=True)
    study.export(tmp_path / "t.csv")
    study.tell(1, study.trials()[0].value)  # the same again
    assert study.snapshot().version == before


def test_it_is_the_same_in_every_process_that_sees_the_same(study, tmp_path):
    code = "import sys; from recoup import Study\n"
    code += "with Study.open(sys.argv[1], read_only=True) as s: print(s.snapshot().version)"
    path = tmp_path / "robot.db"
    done = subprocess.run(
        [sys.executable, "-c", code, path], capture_output=True, text=True, timeout=LIMIT
    )
    assert done.stdout.strip() == study.snapshot().version, done.stderr
    study.close()
    shutil.copy(path, tmp_path / "copy.db")
    with Study.open(path) as same, Study.open(tmp_path / "copy.db") as copy:
        assert same.snapshot().version == copy.snapshot().version
        copy.tell(10, -1.0)
        same.tell(10, -1.5)
        assert same.snapshot().version != copy.snapshot().version


def test_all_of_it_is_of_one_moment(study, tmp_path, monkeypatch):
    """Another process tells while it is taken: what it told is all there, or not at all."""
    with Study.open(tmp_path / "robot.db") as other:
        real, before = snapshots.diagnostics, study.snapshot()

        def and_others_tell(opened):
            found = real(opened)
            other.tell_all(_results(other))
            return found

        monkeypatch.setattr(snapshots, "diagnostics", and_others_tell)
        now = study.snapshot()
        monkeypatch.undo()
        after = study.snapshot()
    assert now.version == before.version != after.version
    assert now.plain() == before.plain()
    assert after.moves == now.moves + 1
    assert after.recommendation.theta.tolist() == [row.value for row in after.distribution]
    assert after.evaluation.samples == now.evaluation.samples + 3


def test_it_is_of_the_study(study):
    now = study.snapshot()
    assert now.counts._asdict() == {
        "pending": 2, "ok": 9, "failed": 0, "dropped": 0, "imported": 0, "enqueued": 0,
    }  # fmt: skip
    assert (now.method, now.batch, now.dim, now.moves, now.until_move) == ("recoup", 4, 2, 2, 3)
    assert now.overdue == now.waiting == [10, 11]
    assert now.params == dict(study.mean_policy)
    assert isinstance(now.params["steps"], int)
    assert [row.move for row in now.last_moves] == [1, 2]
    assert now.last_moves[-1].info["objective"] == study.history()[-1]["objective"]
    dates = [datetime.fromisoformat(x) for x in now.dates]
    assert dates[0] <= dates[1] <= dates[2]
    assert dates[1] <= dates[3]
    assert all(x.tzinfo is not None for x in dates)
    with pytest.raises(AttributeError):
        now.version = "another"


def test_failures_are_told_with_their_last_reasons(study):
    for trial, why in zip(study.ask(5), "abcde", strict=True):
        study.tell(trial.id, failed=why)
    study.amend(14, drop="loose")
    now = study.snapshot()
    assert now.failures.number == 4
    assert now.failures.share == pytest.approx(4 / 13)
    assert now.failures.reasons == ["d", "c", "b"]
    assert (now.counts.failed, now.counts.dropped) == (5, 1)


def test_before_the_first_result_it_says_that_nothing_is_known(tmp_path):
    with Study.open(tmp_path / "s.db", dim=2) as study:
        now = study.snapshot()
    assert now.recommendation is None is now.evaluation is now.verdict is now.best
    assert "is not known" in now.of_mean_policy
    plain = json.loads(json.dumps(now.plain(), allow_nan=False))
    assert plain == now.plain()
    assert plain["expected_return_of_mean_policy"]["mean"] is None
    assert plain["dates"]["last_told"] is None


def test_a_study_in_actions_is_shown_without_compiling(tmp_path, monkeypatch):
    """What takes long is left to `evaluate`, and that is said."""
    from recoup import Trajectory

    rng = np.random.default_rng(0)
    with Study.open(
        tmp_path / "s.db", dim=2, method="iw-reinforce-ob", horizon=3, batch=50
    ) as study:
        for trial in study.ask(6):
            episode = Trajectory(rng.normal(size=(3, 2)), rng.normal(size=(3, 1)), np.ones(3), 3)
            study.tell(trial.id, trajectory=episode)
        monkeypatch.setattr(study, "evaluate", lambda: pytest.fail("it was judged"))
        shown = study._repr_html_()
    assert "evaluate` says it" in shown

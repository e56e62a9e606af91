"""The page of several studies: curves laid over each other, and numbers side by side."""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from recoup.checks import InputError
from recoup.pictures.studies_picture import laid_over
from recoup.report.studies_page import _course, _labels, write_studies_report
from recoup.study.study import Study

pytestmark = pytest.mark.usefixtures("few_rehearsals")


def made(path, names, sign=1.0, rounds=3, **how):
    with Study.open(path, params=dict.fromkeys(names), batch=4, seed=5, **how) as study:
        for _ in range(rounds):
            for i, trial in enumerate(study.ask(4)):
                if i == 3 and trial.id < 5:
                    study.tell(trial.id, failed="slipped")
                else:
                    study.tell(trial.id, -sign * float(np.sum((trial.theta - 1) ** 2)))
    return path


@pytest.fixture
def two(tmp_path):
    return made(tmp_path / "a.db", ["kp", "ki"]), made(tmp_path / "b.db", ["kp"], method="pgpe")


def cells(page, head):
    """The cells of the row that begins with `head`."""
    row = re.search(rf'<td data-head="[^"]*">{re.escape(head)}</td>(.*?)</tr>', page)[1]
    return re.findall(r">([^<]*)</td>", row)


@pytest.mark.usefixtures("sketches")
def test_numbers_stand_side_by_side_and_are_those_of_each_study(two, tmp_path):
    path = write_studies_report(two)
    assert path == tmp_path / "studies-report.html"
    page = path.read_text()
    assert "<h1>2 studies</h1>" in page
    assert cells(page, "method") == ["recoup, batch 4", "pgpe, batch 4"]
    assert cells(page, "of them failed") == ["1", "1"]
    assert ">dropped<" not in page
    now = []
    for file in two:
        with Study.open(file, read_only=True) as study:
            now.append(study.snapshot())
    assert cells(page, "results") == [str(x.counts.ok + 1) for x in now]
    assert cells(page, "moves") == [str(x.moves) for x in now]
    assert cells(page, "best") == [f"{x.best[1]:.6g}, trial {x.best[0].id}" for x in now]
    for text, x in zip(cells(page, "expected, of the mean policy"), now, strict=True):
        worth = x.recommendation.of_mean.value
        assert f"{worth:.4g}" in text if np.isfinite(worth) else text == "not known"
    assert cells(page, "what to do") == [x.verdict for x in now]
    assert cells(page, "kp") == [x.distribution[0].text for x in now]
    assert cells(page, "ki") == [now[0].distribution[1].text, "–"]


@pytest.mark.usefixtures("sketches")
def test_a_dropped_result_is_none_in_every_door(tmp_path):
    path = tmp_path / "a.db"
    with Study.open(path, params={"kp": (0, 1)}) as study:
        trials = study.ask(6)
        study.tell([t.id for t in trials[:5]], [float(t.id) for t in trials[:5]])
        study.tell(trials[5].id, failed="slipped")
        study.amend(trials[2].id, drop="loose")
        now = study.snapshot()
        assert now.results == 5
        assert "1 parameter, 5 results," in repr(study)
        assert "5 results" in study.plot().get_suptitle()
        assert now.failures.number == 1
    page = write_studies_report([path, Path(shutil.copy(path, tmp_path / "b.db"))]).read_text()
    found = [cells(page, head) for head in ("results", "of them failed", "dropped")]
    assert found == [["5", "5"], ["1", "1"], ["1", "1"]]


def test_the_best_so_far_ends_at_the_best_and_never_falls(two):
    for file in two:
        with Study.open(file, read_only=True) as study:
            course = _course("x", study)
            assert course.best[-1] == study.best[1]
            assert (np.diff(course.best) >= 0).all()
            assert len(course.best) == 12  # the failed one too: the best stays
            history = study.history()
            assert course.estimate.tolist() == [move["objective"] for move in history]


def test_of_costs_the_best_is_the_lowest(tmp_path):
    file = made(tmp_path / "c.db", ["kp"], -1.0, direction="minimize")
    with Study.open(file, read_only=True) as study:
        course = _course("x", study)
        assert course.best[-1] == study.best[1] == min(t.value for t in study.trials() if t.value)
    assert (np.diff(course.best) <= 0).all()
    assert course.noun == "cost"


def test_returns_and_costs_are_drawn_apart(two, tmp_path):
    costs = made(tmp_path / "c.db", ["kp"], -1.0, direction="minimize")
    courses = []
    for file in (*two, costs):
        with Study.open(file, read_only=True) as study:
            courses.append(_course(file.name, study))
    figure = laid_over(courses)
    titles = [axes.get_title("left") for axes in figure.axes]
    assert titles[0] == "Best return so far"
    assert titles[2] == "Best cost so far"
    said = [[text.get_text() for text in axes.get_legend().texts] for axes in figure.axes]
    assert said == [["a.db", "b.db"], ["a.db", "b.db"], ["c.db"], ["c.db"]]


@pytest.mark.usefixtures("sketches")
def test_studies_without_results_or_moves_have_a_page_too(tmp_path):
    files = [tmp_path / name for name in ("x.db", "y.db")]
    for file in files:
        Study.open(file, dim=2).close()
    page = write_studies_report(files).read_text()
    assert cells(page, "best") == ["–", "–"]
    assert cells(page, "expected, of the mean policy") == ["not known", "not known"]


def test_equal_names_are_told_apart_by_their_directories(tmp_path):
    files = [tmp_path / name / "arm.db" for name in ("monday", "tuesday")]
    assert _labels(files) == ["monday/arm.db", "tuesday/arm.db"]


@pytest.mark.usefixtures("sketches")
def test_a_study_is_named_once_and_none_is_written_over(two, tmp_path):
    with pytest.raises(InputError, match="is named twice"):
        write_studies_report([two[0], two[0]])
    (tmp_path / "link.db").symlink_to(two[0])
    with pytest.raises(InputError, match="is named twice"):
        write_studies_report([two[0], tmp_path / "link.db"])
    for file in two:
        before = file.read_bytes()
        with pytest.raises(InputError):
            write_studies_report(two, file, force=True)
        assert file.read_bytes() == before


def test_the_best_so_far_is_one_that_broke_no_limit(tmp_path):
    with Study.open(tmp_path / "a.db", params={"kp": (0, 1)}, limits=["force<50"]) as study:
        for trial, (value, force) in zip(study.ask(3), [(1, 40), (9, 60), (2, 40)], strict=True):
            study.tell(trial.id, value, also={"force": force})
        assert _course("a", study).best.tolist() == [1, 1, 2]
        assert study.best[1] == 2


def test_the_best_so_far_of_a_fork_is_one_within_its_bounds(tmp_path):
    with Study.open(tmp_path / "a.db", params={"kp": (0, 1)}) as study:
        trials = study.ask(6)
        study.tell([t.id for t in trials], [float(t.theta[0]) for t in trials])
        study.fork(tmp_path / "b.db", params={"kp": (0, 0.5)}).close()
    with Study.open(tmp_path / "b.db") as fork:
        inside = [t.theta[0] for t in trials if t.theta[0] <= 0.5]
        assert 0 < len(inside) < len(trials)
        assert _course("b", fork).best[-1] == fork.best[1] == max(inside)


@pytest.mark.usefixtures("sketches")
def test_where_nothing_was_told_nothing_is_drawn(two, tmp_path):
    Study.open(tmp_path / "new.db", params={"kp": (0, 1)}, direction="minimize").close()
    page = write_studies_report([*two, tmp_path / "new.db"]).read_text()
    assert cells(page, "results")[2] == "0"
    with Study.open(tmp_path / "new.db", read_only=True) as study:
        assert not len(_course("new", study).best)

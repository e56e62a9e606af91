"""What the page of a run says: of what its curve is, how much was spent, where weight came from."""

import json
import re
import shutil

import numpy as np
import pytest

import recoup
from recoup.report import run_page as pages
from recoup.report.run_page import _ages_in_words, _mixed, write_report

pytestmark = pytest.mark.usefixtures("sketches")


def slope(theta, seed):
    """A function of one's own, every fifth rollout of which fails."""
    if seed % 5 == 0:
        raise RuntimeError("slipped")
    return float(np.sum(theta))


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """A run on a function, that ended between two moves."""
    out = tmp_path_factory.mktemp("own") / "mine"
    recoup.train(slope, "pgpe", dim=2, episodes=25, batch=5, seed=1, out=out)
    return out


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """A run without reuse on a task of ours."""
    out = tmp_path_factory.mktemp("plain") / "toy"
    recoup.train("toy", "pgpe", iterations=3, batch=4, seed=0, out=out)
    return out


def test_a_page_opens_the_study_of_a_run_once_and_closes_it(own, tmp_path, monkeypatch):
    """While the run is still at hand: what only goes with it leaves a log beside the study."""
    kept = []
    monkeypatch.setattr(pages, "load", lambda path: kept.append(recoup.load(path)) or kept[-1])
    write_report([own], tmp_path / "p.html")
    assert len(kept) == 1
    assert not [path.name for path in own.iterdir() if path.name.startswith("study.db-")]


def tiles(page):
    found = re.findall(r'<div class="tile"><b>(.*?)</b><span>(.*?)</span>', page)
    return {words: number for number, words in found}


def test_episodes_are_those_that_were_spent_wherever_they_are_counted(own, plain, tmp_path):
    run = recoup.load(own)
    assert run.history[-1].episodes < run.episodes == 25  # the last were told after the last move
    page = write_report([own]).read_text()
    assert tiles(page)["episodes"] == "25"
    both = write_report([own, plain], tmp_path / "both.html").read_text()
    counts = re.findall(r'<td data-head="episodes" class="number">(\d+)</td>', both)
    assert sorted(counts) == ["12", "12", "25", "25"]  # in the table of runs and in that of lines


def test_what_failed_are_trials_and_what_was_dropped_is_none_of_them(tmp_path):
    """Nor do trials count that are none of the run's own."""
    out = tmp_path / "mine"
    run = recoup.train(slope, "pgpe", dim=2, episodes=25, batch=5, retries=0, seed=1, out=out)
    failed = [trial.id for trial in run.study.trials() if trial.status == "failed"]
    assert run.failed == len(failed) > 1
    with run.study as study:
        study.amend(next(t.id for t in study.trials() if t.status == "ok"), drop="a loose sensor")
        study.amend(failed[0], drop="a loose sensor")
        (mine,) = study.ask(1, at="mean")
        study.tell(mine.id, failed="it slipped")
    run = recoup.load(out)
    assert (run.failed, run.dropped) == (len(failed) - 1, 2)
    page = write_report([out]).read_text()
    assert tiles(page)["failed trials, and 2 dropped"] == str(len(failed) - 1)


def test_the_curve_is_said_to_be_of_fresh_episodes_only_where_it_is(own, plain, tmp_path):
    captions = {run: write_report([run]).read_text() for run in (own, plain)}
    curve = {run: re.search(r"The curve: (.*?)</figcaption>", x)[1] for run, x in captions.items()}
    assert curve[plain].startswith("expected return on fresh episodes, wherever it was measured")
    assert curve[own].startswith("mean return of the trials that each distribution drew")
    assert "(the final test is on fresh episodes)" in curve[own]
    alone = write_report([own, _again(own, tmp_path)], tmp_path / "owns.html").read_text()
    assert "on fresh episodes, wherever" not in alone
    mixed = write_report([own, plain], tmp_path / "mixed.html").read_text()
    assert "Expected return on fresh episodes, wherever it was measured. On tasks of your" in mixed


def _again(own, tmp_path):
    out = tmp_path / "again"
    recoup.train(slope, "pgpe", dim=2, episodes=25, batch=5, seed=2, out=out)
    return out


def test_what_a_run_was_made_with_is_what_its_study_says(plain, tmp_path):
    """And not what somebody has written into a file for people."""
    out = tmp_path / "edited"
    shutil.copytree(plain, out)
    config = json.loads((out / "config.json").read_text())
    config |= {"task": "mountain-car", "method": "reps", "seed": 777, "batch": 99}
    config["settings"]["window"] = 4321
    config["versions"]["jax"] = "0.0.123"
    (out / "config.json").write_text(json.dumps(config))
    page = write_report([out]).read_text()
    assert "<code>toy</code> by <code>pgpe</code>, batch 4, seed 0" in page
    assert not any(word in page for word in ("mountain-car", "777", "4321"))
    assert "0.0.123" in page  # no study holds that


def test_a_copy_of_a_run_is_no_other_seed(plain, tmp_path):
    """Wherever it lies, and also where one of the two has gone on since."""
    other, copy = tmp_path / "other", tmp_path / "backup"
    recoup.train("toy", "pgpe", iterations=3, batch=4, seed=1, out=other)
    shutil.copytree(plain, copy)
    page = tmp_path / "page.html"
    counts = r'<td data-head="runs" class="number">(\d+)</td>'
    said = "backup: a copy of another run here, which counts once: 1 copy is left out of the curves"
    two = write_report([plain, other], page).read_text()
    three = write_report([plain, other, copy], page).read_text()
    assert re.findall(counts, two) == re.findall(counts, three) == ["2"]
    assert said not in two
    assert said in three
    recoup.resume(copy, iterations=4)
    farther = write_report([plain, other, copy], page).read_text()
    assert re.findall(counts, farther) == ["2"]
    assert "toy: a copy of another run here" in farther
    again = tmp_path / "again"
    recoup.train("toy", "pgpe", iterations=3, batch=4, seed=0, out=again)  # no copy: made anew
    both = write_report([plain, again], page).read_text()
    assert re.findall(counts, both) == ["2"]


def test_a_run_without_reuse_gets_a_sentence_in_place_of_one_colour(plain):
    page = write_report([plain]).read_text()
    assert "Shares of the weight by age" not in page
    assert "Every estimate rests on the samples of its own iteration alone" in page


def test_a_run_with_reuse_gets_the_picture_and_no_sentence(tmp_path):
    recoup.train("toy", "mis-pgpe-ob", iterations=3, batch=4, seed=0, out=tmp_path / "toy")
    page = write_report([tmp_path / "toy"]).read_text()
    assert "Shares of the weight by age" in page
    assert "of its own iteration alone" not in page


@pytest.mark.parametrize(
    ("shares", "mixed", "words"),
    [
        ([], False, ""),
        ([[np.nan] * 5] * 3, False, ""),  # of moves that say nothing of it
        ([[1.0, 0, 0, 0, 0]], False, "own iteration alone"),
        ([[1.0, 0, 0, 0, 0], [0.4, 0.6, 0, 0, 0]], True, ""),
        ([[0, 1.0, 0, 0, 0]] * 2, False, "of one age"),
    ],
)
def test_ages_in_words(shares, mixed, words):
    shares = np.array(shares, float).reshape(-1, 5)
    assert _mixed(shares) is mixed
    found = _ages_in_words(shares)
    assert words in found
    assert bool(words) == bool(found)

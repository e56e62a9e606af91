"""Pages in a window as wide as a phone: nothing scrolls sideways, every number is whole."""

import re

import numpy as np
import pytest
from browser import visit

import recoup
from recoup.report.run_page import write_report
from recoup.report.studies_page import write_studies_report
from recoup.report.study_page import write_study_report
from recoup.study.study import Study
from recoup.study.views.study_summary import deployed

PHONE = 375
GAINS = [f"{joint}_pitch_stiffness_gain_{side}" for joint in "abcdef" for side in ("left", "right")]


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    path = tmp_path_factory.mktemp("phone") / "a_rather_long_name_of_a_study_of_an_arm.db"
    names = [f"shoulder_{gain}" for gain in GAINS]
    with Study.open(path, params=dict.fromkeys(names), batch=8, seed=3) as made:
        for _ in range(3):
            for trial in made.ask(8):
                made.tell(trial.id, -1234.5 * float(np.sum((np.asarray(trial.theta) - 1) ** 2)))
    return path


def assert_fits(found):
    """No element is wider than the window or its box, and so no number is cut."""
    assert found["width"] <= found["window"] == PHONE
    assert found["cut"] == []
    assert found["complaints"] == found["broken"] == []


def test_a_study_of_twelve_gains_fits_a_phone(study):
    path = write_study_report(study)
    found = visit(path, width=PHONE)
    assert_fits(found)
    with Study.open(study) as opened:
        for row in deployed(opened.opened):
            assert row.name in found["text"]
            assert row.text in found["text"]


@pytest.mark.slow
def test_it_is_a_table_in_a_wide_window(study):
    found = visit(write_study_report(study), width=1200)
    first = next(line for line in found["text"].splitlines() if line.startswith("shoulder_a_"))
    assert first.count("\t") >= 3  # its numbers stand beside the name
    assert found["cut"] == []


@pytest.mark.slow
def test_pages_of_runs_fit_a_phone(tmp_path):
    for seed, method in enumerate(("pgpe", "mis-pgpe-ob", "recoup")):
        recoup.train("toy", method, iterations=3, batch=4, seed=seed, out=tmp_path / method)
    runs = [tmp_path / method for method in ("pgpe", "mis-pgpe-ob", "recoup")]
    found = visit(write_report(runs, tmp_path / "page.html"), width=PHONE)
    assert_fits(found)
    assert found["text"].count("one run") == 3


@pytest.mark.slow
def test_pages_of_comparisons_fit_a_phone(tmp_path):
    from program import recoup as program

    words = ("compare", "--task", "sphere-10", "--method", "pgpe:epsilon=0.25,window=1")
    words += ("--method", "iw-pgpe-ob", "--runs", "2", "--episodes", "40", "--out", "c")
    words += ("--checkpoints", "10,20,30,40", "--workers", "1", "--quiet")
    assert program(*words, cwd=tmp_path).returncode == 0
    (html,) = (tmp_path / "c").glob("*.html")
    assert_fits(visit(html, width=PHONE))


@pytest.mark.usefixtures("sketches")
def test_cells_carry_their_heads_and_tables_without_heads_stay(study):
    text = write_study_report(study).read_text()
    tables = re.findall(r"<table.*?</table>", text, re.S)
    turning = [table for table in tables if table.startswith('<table class="turns">')]
    assert len(turning) == 2  # what to deploy, and the moves
    for table in turning:
        heads = re.findall(r"<th[^>]*>(.*?)</th>", table)
        labels = re.findall(r'<td data-head="(.*?)"', table)
        assert labels == heads * (len(labels) // len(heads))
        assert table.count("<td") == len(labels)
    assert '<td data-head="parameter">shoulder_a_pitch_stiffness_gain_left</td>' in text
    assert "<tr><th>trials</th><td>" in text


@pytest.mark.slow
def test_several_studies_fit_a_phone(study, tmp_path):
    with Study.open(tmp_path / "other.db", dim=3, batch=4) as other:
        for trial in other.ask(8):
            other.tell(trial.id, float(trial.theta[0]))
    assert_fits(visit(write_studies_report([study, tmp_path / "other.db"]), width=PHONE))

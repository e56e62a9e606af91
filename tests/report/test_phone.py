"""Pages in a window as wide as a phone: nothing scrolls sideways, every number is whole."""

import re

import numpy as np
import pytest
from browser import visit

import recoup
from recoup.report.html import page
from recoup.report.runs import write_report
from recoup.report.study import Top, write_study_report
from recoup.study.study import Study
from recoup.study.summary import Deployed, deployed

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


def test_cells_carry_their_heads_and_tables_without_heads_stay():
    rows = [{"move": i, "results": 8 * i, "estimate": "-1.5", **_none()} for i in (1, 2)]
    top = Top("", [(Deployed("gain", 0.5, 0.25, 0.75), "1 to 2")], 0, "[]")
    text = page(
        "study.html", name="s.db", summary={"trials": "7 ok"}, advice=[], picture="data:,",
        settings={"batch": 8}, top=top, moves=rows, count=2,
    )  # fmt: skip
    assert text.count('<tr class="heads">') == 2  # what to deploy, and the moves
    assert '<td data-head="parameter">gain</td>' in text
    assert '<td data-head="best between" class="number">1 to 2</td>' in text
    assert '<td data-head="results" class="number">16</td>' in text
    assert "<tr><th>trials</th><td>7 ok</td></tr>" in text
    assert len(re.findall("<td data-head", text)) == 5 + 2 * 7


def _none():
    return dict.fromkeys(("samples", "ess", "max_weight", "pareto_k"))

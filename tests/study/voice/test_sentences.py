"""What the program says about the future, a failure or an interval stands in one module."""

import ast
import re
from pathlib import Path

import numpy as np
import pytest
from program import recoup as program

import recoup
from recoup.report.study_page import write_study_report
from recoup.study.space.goals import MAXIMIZE, MINIMIZE
from recoup.study.voice import sentences

BOTH = (MAXIMIZE, MINIMIZE)
ROOT = Path(__file__).parents[3]
SAYS = [
    node
    for node in ast.parse(Path(sentences.__file__).read_text()).body
    if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
]
TITLES = dict(re.findall(r'\*(\w+)\* (?:is )?"([^"]+)"', " ".join(sentences.__doc__.split())))


@pytest.mark.parametrize("function", SAYS, ids=lambda node: node.name)
def test_what_speaks_of_an_interval_names_the_measurement_that_backs_it(function):
    words = ast.get_docstring(function)
    assert words
    texts = [node.value for node in ast.walk(function) if isinstance(node, ast.Constant)]
    if any("95 %" in str(text) for text in texts) and "past alone" not in words:
        assert re.search(r"Backed\s+by:", words), function.name
    for section in re.findall(r"Backed\s+by:\s+\*(\w+)\*", words):
        assert section in TITLES


@pytest.mark.parametrize("function", SAYS, ids=lambda node: node.name)
def test_an_interval_is_said_to_hold_as_often_as_it_is_printed_to(function):
    """What prints "95 %" claimed nine times in ten."""
    words = " ".join(ast.get_docstring(function).split())
    assert "interval holds" not in words or "95 times in a hundred" in words


def test_the_sections_that_back_sentences_are_in_the_docs():
    assert {"coverage", "voice"} <= set(TITLES)
    heads = [line for line in measured().splitlines() if line.startswith("## ")]
    for title in TITLES.values():
        assert any(title in head for head in heads), title


def measured() -> str:
    """All pages of the benchmarks."""
    return "\n".join(p.read_text() for p in sorted((ROOT / "docs" / "benchmarks").glob("*.md")))


def section(title: str) -> str:
    """The text of a section of the benchmarks."""
    parts = re.split(r"^## ", measured(), flags=re.M)
    (found,) = (part for part in parts if part.startswith(title))
    return found


@pytest.mark.parametrize("function", SAYS, ids=lambda node: node.name)
def test_the_columns_that_back_a_sentence_are_in_their_section(function):
    words = " ".join(ast.get_docstring(function).split())
    for name, rest in re.findall(r"Backed by: \*(\w+)\*, columns?((?: and|,? \"[^\"]+\")+)", words):
        for column in re.findall(r'"([^"]+)"', rest):
            assert column in section(TITLES[name]), f"{function.name}: {name} has no {column}"


SOURCE = Path(sentences.__file__).parents[2]
SPEAKERS = [
    path
    for where in ("study/**/*.py", "cli/study*.py", "report/stud*.py")
    for path in sorted(SOURCE.glob(where))
    if path.name != "sentences.py"
]
CLAIM = re.compile(
    r"95 %|\b(should|would|may|might) (gain|earn|lose|bring|lower)|next batch|"
    r"expected (return|cost)|failed results? .*left out|do not rely"
)


@pytest.mark.parametrize("path", SPEAKERS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_nothing_else_claims_what_will_come_or_how_sure_it_is(path):
    tree = ast.parse(path.read_text())
    nodes = [
        n for n in ast.walk(tree) if isinstance(n, (ast.Module, ast.ClassDef, ast.FunctionDef))
    ]
    docs = {id(n.body[0].value) for n in nodes if n.body and isinstance(n.body[0], ast.Expr)}
    asks = [n for n in ast.walk(tree) if isinstance(n, ast.keyword) and n.arg == "help"]
    docs |= {id(n) for helps in asks for n in ast.walk(helps)}  # of no study
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            assert not CLAIM.search(node.value), f"{path}:{node.lineno}: {node.value}"


@pytest.mark.parametrize(
    "path", sorted(SOURCE.glob("report/templates/stud*")), ids=lambda p: p.name
)
def test_a_page_takes_what_it_claims_from_there(path):
    words = re.sub(r'alt="[^"]*"', "", path.read_text())
    assert not (found := CLAIM.search(words)), found


LOST = [(each, goal) for goal in BOTH for each in (0.04, -0.04)]


def test_a_gain_that_is_said_lies_within_its_interval():
    said = [
        sentences.coming(3, -0.4, -0.5, high, "it", goal) for high in (-0.2, 0.1) for goal in BOTH
    ]
    assert said == [
        "the next 3 results should lose about 0.4 for it (95 %: 0.2 to 0.5).",
        "the next 3 results should raise the cost by about 0.4 for it (95 %: 0.2 to 0.5).",
        "the next 3 results should gain nothing for it (95 %: -0.5 to 0.1).",
        "the next 3 results should lower the cost by nothing for it (95 %: -0.5 to 0.1).",
    ]


def test_what_batches_lost_is_no_gain_below_zero():
    said = [sentences.gained(3, each, each - 0.2, each + 0.1, goal)[30:-1] for each, goal in LOST]
    assert said == [
        "a batch gained 0.04 (95 %: -0.16 to 0.14)",
        "a batch lost 0.04 (95 %: -0.06 to 0.24)",
        "a batch lowered the cost by 0.04 (95 %: -0.16 to 0.14)",
        "a batch raised the cost by 0.04 (95 %: -0.06 to 0.24)",
    ]


def test_the_best_is_of_those_that_broke_no_limit():
    assert "trial 3: -1, the best of 34 noisy returns: expect less of it (12 that" in (
        sentences.best_trial(3, -1.0, 46, broken=12)
    )
    assert sentences.best_trial(3, -1.0, 2, broken=1) == (
        "trial 3: -1 (1 that broke a limit left out)"
    )


def test_an_interval_has_the_digits_that_tell_its_ends_apart():
    assert (
        sentences.with_ends(10234.56, 10234.52, 10234.6) == "10234.56 (95 %: 10234.52 to 10234.6)"
    )
    assert sentences.with_ends(1e9 + 3, 1e9 - 40, 1e9 + 50) == (
        "1000000003 (95 %: 999999960 to 1000000050)"
    )
    assert sentences.with_ends(-0.0975, -0.21006, 0.0156) == "-0.0975 (95 %: -0.2101 to 0.0156)"
    assert sentences.with_ends(12.3456, float("nan"), float("nan")) == "12.35"
    assert sentences.between(4999.96, 5000.04) == "4999.96 to 5000.04"
    assert sentences.apart(3.0, 3.0) == ["3", "3"]
    assert sentences.apart(1e16, 1e16 + 4) == ["1e+16", "1e+16"]


def test_numbers_are_written_as_people_do():
    """Beside a gain of 8126.6 stood that it is best up to 1.439e+04."""
    assert sentences.between(1012.3, 14389.6) == "1012 to 14390"
    assert sentences.between(14389.6, np.nan) == "14390 or more"
    assert sentences.between(np.nan, -9999.7) == "-10000 or less"
    assert sentences.with_ends(-33811.2, -47990.0, -17910.0) == "-33810 (95 %: -47990 to -17910)"
    assert sentences.written(1.5e7) == "1.5e+07"
    assert sentences.written(1.5e-7) == "1.5e-07"


def test_one_trial_is_no_several():
    assert sentences.plan(0, 0.0, 1).startswith("With 1 trial, try the mean:")
    assert sentences.plan(0, 0.0, 2).startswith("Of 2 trials, try the mean with all:")
    assert sentences.first_move(1) == "The distribution moves after 1 more result."
    assert sentences.first_move(2) == "The distribution moves after 2 more results."
    assert sentences.late_unweighted("pgpe", 1).startswith("1 result of the last move was drawn")
    assert sentences.late_unweighted("pgpe", 1).endswith("uses it as if it was new.")
    assert sentences.late_unweighted("pgpe", 2).endswith("uses them as if they were new.")
    assert sentences.plan_too_few(1, 4).startswith("With 1 trial, try the mean:")
    assert sentences.plan_too_few(2, 4).endswith("with all: the next move needs 4 results.")
    assert sentences.plan_after_loss(1).startswith("With 1 trial, try the mean once")


def test_a_share_that_is_explained_names_its_model_and_what_it_is_over():
    """Beside "left 81% unexplained", which is of a move's model about one distribution."""
    of = "costs vary by, over all that was tried"
    assert sentences.share_explained(MINIMIZE) == (
        f"the share of what the {of} and beside noise, by a model of all results"
    )
    rows = [
        (("a",), 0.001, 0.001, True),
        (("b",), 0.002, 0.001, True),
        (("a", "b"), 0.4, 0.1, True),
    ]
    said = sentences.what_matters(rows, goal=MINIMIZE)
    assert f"a, b explain less than 2% each of what the {of}. a and b together" in said
    assert f"explain 40% ± 10% of what the {of} and beside what each explains alone: tune" in said


def test_a_share_that_may_be_any_is_not_known():
    """Of numbers from 0 to 1 that are all as likely the standard deviation is 0.29."""
    assert sentences.explains(0.4, 0.28) == "40% ± 28%"
    assert sentences.explains(1.0, 0.58) == "not known"
    assert sentences.explains(0.8, float("nan")) == "not known"
    assert sentences.what_matters([(("a", "b"), 0.9, 0.3, True)]) == ""


def test_an_estimate_that_is_no_number_is_not_known(tmp_path):
    """Where nothing but failures was told tables had "nan, without an interval that ..."."""
    how = {"dim": 1, "seed": 0, "failure": "avoid"}
    with recoup.Study.open(tmp_path / "fell.db", **how) as study:
        for _ in range(study.batch):
            study.tell(study.ask()[0].id, failed="fell")
        assert np.isnan(study.history()[0]["objective"])
    page = write_study_report(tmp_path / "fell.db", tmp_path / "fell.html").read_text()
    replayed = program("study", "replay", "fell.db", "--method", "cem", cwd=tmp_path).stdout
    for said in (" ".join(re.findall("estimate before it.>([^<]*)", page)), replayed):
        assert "nan" not in said
        assert "not known" in said


def test_of_costs_the_words_are_those_of_costs():
    assert "for the cost alone: force<50 left aside" in sentences.best_between(
        ["force<50"], MINIMIZE
    )

"""What the program says about the future, a failure or an interval stands in one module."""

import ast
import re
from pathlib import Path

import pytest

from recoup.study import sentences

ROOT = Path(__file__).parents[2]
SAYS = [
    node
    for node in ast.parse(Path(sentences.__file__).read_text()).body
    if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
]
TITLES = {
    "coverage": "How often intervals hold the truth",
    "voice": "What a study says, held to the truth",
}


@pytest.mark.parametrize("function", SAYS, ids=lambda node: node.name)
def test_what_speaks_of_an_interval_names_the_measurement_that_backs_it(function):
    words = ast.get_docstring(function)
    assert words
    texts = [node.value for node in ast.walk(function) if isinstance(node, ast.Constant)]
    if any("95 %" in str(text) for text in texts) and "past alone" not in words:
        assert re.search(r"Backed\s+by:", words), function.name
    for section in re.findall(r"Backed\s+by:\s+\*(\w+)\*", words):
        assert section in TITLES


def test_the_sections_that_back_sentences_are_in_the_docs():
    heads = [
        line
        for line in (ROOT / "docs" / "benchmarks.md").read_text().splitlines()
        if line.startswith("## ")
    ]
    for title in TITLES.values():
        assert any(title in head for head in heads), title


SOURCE = Path(sentences.__file__).parents[1]
SPEAKERS = [
    path
    for path in sorted(
        [*SOURCE.glob("study/*.py"), *SOURCE.glob("cli/study*.py"), SOURCE / "report/study.py"]
    )
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
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            assert not CLAIM.search(node.value), f"{path}:{node.lineno}: {node.value}"

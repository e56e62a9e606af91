"""The tests as an index: those of a module lie where it lies, a sentence stands in one place."""

import ast
from collections import defaultdict
from pathlib import Path

from faults import faults

TESTS = Path(__file__).parent
SOURCE = TESTS.parent / "src" / "recoup"
WALKS = ("stories", "helpers", "docs")  # through several rooms, of no module, of the pages
OTHERS = {  # file or folder -> of what it is
    "theorems": "the paper's theorems, a file each, in `core/theory`",
    "test_house.py": "the whole package",
    "test_import.py": "the whole package",
    "test_index.py": "these tests",
    "test_makefile.py": "the checkout",
    "test_names.py": "the whole package",
    "test_package.py": "the checkout",
    "test_extras.py": "the whole package",
    "test_no_clocks.py": "these tests",
}
LEAST = 100  # modules that have a file of their name: it grows, and does not shrink


def files() -> list[Path]:
    return sorted(path.relative_to(TESTS) for path in TESTS.rglob("test_*.py"))


def module_of(path: Path) -> Path:
    return SOURCE / path.parent / path.name.removeprefix("test_")


def check_place(path):
    if path.parts[0] not in (*WALKS, *OTHERS):
        here = f"there is no {module_of(path).relative_to(SOURCE.parent)}"
        assert module_of(path).is_file(), f"tests/{path}: {here}; walks belong in tests/stories"


def test_a_file_lies_where_the_module_lies_that_it_is_about():
    assert faults(check_place, files()) == []


def test_modules_keep_their_files():
    found = [path for path in files() if path.parts[0] not in WALKS and module_of(path).is_file()]
    assert len(found) >= LEAST


def test_every_exception_is_there():
    assert {*WALKS, *OTHERS} <= {path.name for path in TESTS.iterdir()}


def expected(path: Path) -> set[str]:
    """The sentences, and no single words, that a file writes out for `pytest.raises`."""
    return {
        node.value.value
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.keyword)
        and node.arg == "match"
        and isinstance(node.value, ast.Constant)
        and " " in node.value.value
    }


def test_a_sentence_that_several_files_wait_for_stands_in_one_place():
    found = defaultdict(list)
    for path in files():
        for sentence in expected(TESTS / path):
            found[sentence].append(str(path))
    twice = {sentence: paths for sentence, paths in found.items() if len(paths) > 1}
    assert not twice, f"take it from helpers/sentences.py: {twice}"

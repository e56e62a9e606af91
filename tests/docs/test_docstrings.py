"""Every public name says what it is, with an example that runs; nothing else is documented."""

import inspect

import pytest
from examples import Page
from serving import Server

import documented
import recoup
from documented import ELSEWHERE, PARTS, entries, faults

QUICK = [part for part in PARTS if part.slug != "served"]


def labels(part):
    return [one.label for one in entries() if one.part is part]


def check(page, part, folder):
    """Raises with what differs in the examples of a page."""
    found = [page.failures(one.label, one.text, folder) for one in entries() if one.part is part]
    assert "".join(found) == ""


@pytest.mark.parametrize("part", QUICK, ids=lambda part: part.slug)
def test_the_examples_of_a_page_run(part, tmp_path):
    check(Page(part, tmp_path), part, tmp_path)


def test_the_examples_of_served_studies_run(tmp_path):
    (studies,), (served,) = ([p for p in PARTS if p.slug == s] for s in ("studies", "served"))
    server = Server(Page(studies, tmp_path / "study").start, "robot.db")
    page = None
    try:
        page = Page(served, tmp_path, address=server.address)
        check(page, served, tmp_path)
    finally:
        if page is not None:
            page.names["study"].close()
        server.kill()


def test_an_example_that_is_wrong_is_found(tmp_path):
    page = Page(PARTS[0], tmp_path)
    said = page.failures("wrong", ">>> study.until_move()\n13\n", tmp_path)
    assert "Expected:\n    13\nGot:\n    12\n" in said


def test_every_docstring_is_whole():
    assert [fault for one in entries() for fault in faults(one)] == []


def test_every_public_name_has_its_place_and_no_other_is_there():
    found = {one.name for one in entries() if one.public and one.owner is None}
    assert found | set(ELSEWHERE) == set(recoup.__all__)


def test_no_name_stands_twice():
    found = [one.full_name for one in entries()]
    assert sorted(found) == sorted(set(found))


def nothing(x):
    return x


def test_a_name_without_words_is_found():
    bare = documented.Entry(PARTS[0], f"{__name__}.nothing")
    assert faults(bare) == ["nothing has no docstring"]
    nothing.__doc__ = "What it is given."
    wanted = ["has no example", "does not say what `x` is", "does not say what it raises"]
    assert faults(bare) == [f"nothing {words}" for words in wanted]


def test_what_a_method_gives_is_documented_too():
    """A record that a public method gives has its place on the site."""
    known = {one.name for one in entries()} | {"Array", "Figure", "DataFrame", "Path", "Shape"}
    lost = []
    for one in entries():
        if one.kind in ("function", "method", "classmethod"):
            answer = inspect.signature(one.function).return_annotation
            lost += [(one.label, x) for x in documented.records_in(answer) if x not in known]
    assert lost == []

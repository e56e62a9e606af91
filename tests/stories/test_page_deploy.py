"""Values to deploy at the live page: every digit whole, copied and saved wherever that can be."""

import re

import pytest
from browser import complaints, expect
from long_names import GAINS
from pages import PHONE, assert_fits, card, opened, turn
from serving import Server

from recoup.study.study import Study
from recoup.study.voice.sentences import best_at

LINES = """cell => { const range = document.createRange(); range.selectNodeContents(cell);
  return new Set([...range.getClientRects()].map(one => Math.round(one.top))).size; }"""
UNSAFE = "Object.defineProperty(navigator, 'clipboard', { value: undefined })"  # over plain HTTP


@pytest.fixture(scope="module")
def gains(tmp_path_factory):
    """A study of twelve long names."""
    path = tmp_path_factory.mktemp("gains") / "robot.db"
    with Study.open(path, params=dict.fromkeys(GAINS, (1, 500, "log")), seed=0) as study:
        for trial in study.ask(14):
            study.tell(trial.id, 10 - sum(abs(x) for x in trial.theta) / 1000)
        study.ask(1)
    with Server(path.parent, path) as server:
        yield server


@pytest.mark.parametrize("width", [320, PHONE, 700, 1280])
def test_names_and_values_are_read_however_narrow_the_window(browser, gains, width):
    with opened(browser, gains, width=width, height=844) as page:
        card(page, 15).wait_for()
        assert_fits(page)
        rows = page.locator(".params")
        assert rows.locator("td").count() == len(GAINS)
        assert {one.evaluate(LINES) for one in rows.locator("td").all()} == {1}
        assert max(one.evaluate(LINES) for one in rows.locator("th").all()) <= 1 + (width == 320)
        turn(page, gains, "deploy")
        page.get_by_text("Copy as JSON").wait_for()
        assert_fits(page)
        assert {one.evaluate(LINES) for one in page.locator(".deployed td.digits").all()} == {1}
        assert {one.evaluate(LINES) for one in page.locator(".deployed tbody th").all()} <= {1, 2}
        assert page.get_by_role("cell").count() == 2 * len(GAINS)  # a table still, to all readers
        seen = page.locator(".scroll")
        assert seen.evaluate("one => one.scrollWidth <= one.clientWidth")  # nothing is beside it


def test_what_is_not_known_is_called_so_here_too(browser, tmp_path):
    """The page called a cell "beyond what was tried" that every other table calls "not known"."""
    path = tmp_path / "robot.db"
    with Study.open(path, params=dict.fromkeys(GAINS, (1, 500, "log")), seed=0) as study:
        for trial in study.ask(13):  # too few for a model of so many
            study.tell(trial.id, 10 - sum(abs(x) for x in trial.theta) / 1000)
        said = [best_at(where) for where in study.recommend().best]
    assert "not known" in said
    with Server(tmp_path, path) as server, opened(browser, server, "deploy") as page:
        page.get_by_text("Copy as JSON").wait_for()
        shown = page.locator(".deployed tbody td:last-child").all_inner_texts()
    same = zip(said, shown, strict=True)
    assert all((words == "not known") == (cell == "not known") for words, cell in same)


def test_values_are_marked_where_the_browser_lets_no_page_copy(browser, server):
    with opened(browser, server, "deploy") as page:
        page.get_by_text("Copy as JSON").wait_for()
        page.evaluate(UNSAFE)
        page.get_by_text("Copy as JSON").click()
        field = page.get_by_role("dialog").get_by_label("The values")
        expect(field).to_be_focused()
        with Study.open(server.path, read_only=True) as study:
            assert repr(study.mean_policy["damping"]) in field.input_value()
        marked = "one => one.value.slice(one.selectionStart, one.selectionEnd) === one.value"
        assert field.evaluate(marked)
        assert complaints(page) == ""


def test_a_report_that_does_not_come_is_said(browser, server):
    with opened(browser, server, "deploy") as page:
        page.get_by_text("Copy as JSON").wait_for()
        server.kill()
        page.get_by_role("button", name="Save the report").click()
        page.locator("main").get_by_role("alert").get_by_text("does not answer").last.wait_for()


def test_no_field_has_keys_for_numbers_without_a_point(browser, server):
    with opened(browser, server, "deploy") as page:
        page.get_by_text("Copy as JSON").wait_for()
        worth = page.get_by_label(re.compile("A difference in return"))
        expect(worth).to_have_attribute("inputmode", "text")
        turn(page, server, "work")
        page.get_by_role("button", name="Try my own").click()
        for field in page.get_by_role("dialog").locator(".values input").all():
            expect(field).to_have_attribute("inputmode", "text")

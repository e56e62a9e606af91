"""The page of a study of 100,000 trials of twenty parameters: it opens, and no extreme is lost."""

import re
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest
from benchmarks.serve import large
from browser import expect
from pages import PHONE, assert_fits, assert_quiet, opened
from serving import Server

from recoup.study.study import Study

N, PARAMETERS = 100_000, 20
LEAST, MOST, FAILED = 31_417, 70_003, 50_021  # trials that stand out among all others
PAINTED = (
    "c => c.width > 0 && c.getContext('2d').getImageData(0, 0, c.width, c.height).data.some(x => x)"
)


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    folder = tmp_path_factory.mktemp("many")
    large(folder / "many.db", N, PARAMETERS)
    with Study.open(folder / "many.db") as study:
        study.amend(LEAST, -123.25)
        study.amend(MOST, 7.5)
        study.amend(FAILED, failed="the belt tore")
    with Server(folder, folder / "many.db") as server:
        yield SimpleNamespace(server=server, path=folder / "many.db")


def see(page, many):
    """Its plots and its table, and not what takes long."""
    page.goto(f"{many.server.url}#/study/many/see")
    page.locator(".plot canvas").first.wait_for()
    page.locator(".trials tbody tr").first.wait_for()


def test_plots_and_table_are_there_and_extremes_are_kept(browser, many):
    with opened(browser, many.server, study=None) as page:
        see(page, many)
        page.get_by_text("99 999 results").first.wait_for()
        said = page.locator(".plot").first.get_attribute("aria-label")
        assert said.endswith("returns from -123.25 to 7.5.")
        for canvas in page.locator(".plot canvas").all():
            assert canvas.evaluate(PAINTED)
        rows = page.locator(".trials tbody tr td:first-child").all_inner_texts()
        assert [int(text) for text in rows] == list(range(N, N - len(rows), -1))
        page.get_by_text(
            re.compile("the newest 1.000 of about 100.000 trials were read")
        ).wait_for()
        page.get_by_label("Which").select_option("failed")
        page.get_by_text("the belt tore").wait_for()
        assert_quiet(page, many.server)


def test_what_is_shown_is_a_small_part_of_it_with_both_ends(browser, many):
    with opened(browser, many.server, study=None, width=PHONE, height=844) as page:
        with (
            page.expect_response("**/points?*") as points,
            page.expect_response("**/pairs?*") as two,
        ):
            see(page, many)
        for found in (points.value.json(), two.value.json()):
            assert found["total"] == N - 1
            assert len(found["id"]) <= 2500
            assert {LEAST, MOST} <= set(found["id"])
            assert (np.min(found["value"]), np.max(found["value"])) == (-123.25, 7.5)
        assert points.value.json()["failed"] == [FAILED]
        assert_fits(page)


class Long:
    """A study of 1,106 trials, of which one waits, that is served; and what is done to it."""

    def __init__(self, folder):
        self.path, self.late = folder / "long.db", 1101
        large(self.path, 1100, 3)
        self.tell(6, but=[self.late])
        self.server = Server(folder, self.path)

    def tell(self, n, but=()):
        with Study.open(self.path) as study:
            new = [trial.id for trial in study.ask(n)]
            study.tell([number for number in new if number not in but], [1.0] * (n - len(but)))


@pytest.fixture
def long(tmp_path):
    found = Long(tmp_path)
    with found.server:
        yield found


@contextmanager
def table_of(browser, long):
    with opened(browser, long.server, study=None) as page:
        page.goto(f"{long.server.url}#/study/long/see")
        page.locator(".trials tbody tr").first.wait_for()
        yield page


def row(page, number):
    """The row of a trial, the table filtered for it."""
    page.get_by_label("That say").fill(str(number))
    found = page.get_by_role("button", name=f"Trial {number}", exact=True)
    return page.locator(".trials tbody tr").filter(has=found)


def test_a_table_of_many_shows_what_became_of_early_trials(browser, long):
    with table_of(browser, long) as page:
        page.get_by_role("button", name="Read 106 earlier ones").click()
        page.get_by_text(re.compile(r"^1.106 trials\.$")).wait_for()
        page.get_by_role("columnheader", name="trial").get_by_role("button").click()
        expect(row(page, long.late)).to_contain_text("pending")
        expect(row(page, 3)).to_contain_text("ok")
        long.tell(1100)  # what was asked for is far back then
        with Study.open(long.path) as study:
            study.tell(long.late, 7.75)
            study.amend(3, failed="a slip of the pen")
        expect(row(page, 3)).to_contain_text("a slip of the pen")
        expect(row(page, long.late)).to_contain_text("7.75")


def test_a_table_of_many_keeps_the_newest_thousand(browser, long):
    with table_of(browser, long) as page:
        page.get_by_text(re.compile("the newest 1.000 of about 1.106 trials")).wait_for()
        long.tell(1100)
        page.get_by_text(re.compile("the newest 1.000 of about 2.206 trials")).wait_for()
        expect(row(page, 2206)).to_contain_text("ok")
        expect(row(page, 1150)).to_have_count(0)


def test_many_changes_are_a_few_looks_that_read_what_is_new(browser, long):
    with table_of(browser, long) as page, Study.open(long.path) as study:
        page.locator("h2:has-text('What it says') + ul li").first.wait_for()
        expect(row(page, long.late)).to_contain_text("pending")
        page.asked.clear()
        for i in range(40):
            study.tell(study.ask(1)[0].id, 2.0 + i)
            page.evaluate("() => new Promise(requestAnimationFrame)")
        expect(row(page, 1106 + 40)).to_contain_text("41")
        moves = [url for url in page.asked if url.endswith("/moves")]
        points = [url for url in page.asked if "/points" in url]
        trials = [url for url in page.asked if "/trials" in url]
        assert 1 <= len(points) == len(moves) < 40
        assert all(int(re.search(r"after=(\d+)", url)[1]) >= 1100 for url in trials)

"""The page of a study of 100,000 trials of twenty parameters: it opens, and no extreme is lost."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
from benchmarks.serve import large
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

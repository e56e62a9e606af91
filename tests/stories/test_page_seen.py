"""See: what its plots, tiles and table say is of the trials and in the digits that they are of."""

import csv
import io
import re
from contextlib import contextmanager

import numpy as np
import pytest
from browser import expect
from pages import PHONE, opened
from serving import Server

from recoup.study.study import Study

PARAMS = {"kp": (1, 200, "log"), "kd": (0, 5)}
OWN, FAR = 30, -52_000.0
MARK = 'a slip, \n"half" seen'
SHOWN = """async ([low, high, values]) => {
  const { apart, between, fromTo, ticks } = await import('/static/numbers.js');
  return [between(...values), apart(low, high), fromTo(low, high),
    ticks([low, (low + high) / 2, high])];
}"""


def earned(params, noise):
    return -abs(params["kp"] - 60) / 20 - (params["kd"] - 0.7) ** 2 + noise


def told(study, n, off=0.0, scale=1.0):
    for noise in np.random.default_rng(0).normal(0, 0.1, n):
        (trial,) = study.ask(1)
        also = {"force": round(40 + 30 * float(noise), 3)}
        study.tell(trial.id, off + scale * earned(trial.params, noise), also=also)


CROSSES = """() => {
  const canvas = document.querySelector('.plot canvas'), { width, height } = canvas;
  const fails = getComputedStyle(document.documentElement).getPropertyValue('--fails');
  const colour = fails.match(/[0-9a-f]{2}/gi).map(one => parseInt(one, 16));
  const { data } = canvas.getContext('2d').getImageData(0, 0, width, height);
  const all = [...Array(width * height).keys()];
  const drawn = all.filter(at => colour.every((one, i) => data[4 * at + i] === one));
  return drawn.map(at => at / width / height);
}"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("seen")
    draws = np.random.default_rng(1)
    with Study.open(found / "own.db", params=PARAMS, seed=0, limits=["force<50"]) as study:
        for _ in range(OWN):
            study.enqueue({"kp": float(draws.uniform(5, 150)), "kd": float(draws.uniform(0, 4))})
        told(study, OWN + 25)
        study.note(MARK, trial=50)
    with Study.open(found / "far.db", params=PARAMS, seed=0) as study:
        told(study, 40, FAR, 0.1)
    return found


@pytest.fixture(scope="module")
def server(folder):
    with Server(folder, folder) as started:
        yield started


@contextmanager
def seeing(browser, server, name, **how):
    with opened(browser, server, "see", name, **how) as page:
        page.locator(".trials tbody tr").first.wait_for()
        page.locator(".plot canvas").first.wait_for()
        yield page


def at_trial(page, number, first, last):
    """The first plot, and where in it a trial is, if it shows those from first to last."""
    over = page.locator(".u-over").first
    over.scroll_into_view_if_needed()
    box = over.bounding_box()
    return over, {"x": box["width"] * (number - first) / (last - first), "y": box["height"] / 2}


def readout(page):
    return page.locator(".readout").first.inner_text()


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_failures_are_drawn_where_the_worst_lie(browser, server, folder, direction):
    """Of costs at the top: at the foot the best would be."""
    with Study.open(folder / f"{direction}.db", dim=1, direction=direction, seed=0) as study:
        for trial in study.ask(8):
            study.tell(
                trial.id, **({"failed": "fell"} if trial.id % 2 else {"value": 1.0 * trial.id})
            )
    with seeing(browser, server, direction) as page:
        side = "top" if direction == "minimize" else "foot"
        page.get_by_text(f"Marks at the {side} failed.").wait_for()
        drawn = page.evaluate(CROSSES)
    assert drawn
    assert all((height < 0.5) == (direction == "minimize") for height in drawn)


def test_the_line_of_estimates_stands_over_the_trials_of_its_moves(browser, server):
    with seeing(browser, server, "own") as page:
        with page.expect_response("**/moves") as found:
            page.reload()
        page.locator(".plot canvas").first.wait_for()
        moves = found.value.json()
        last = moves["trial"][-2]
        assert moves["results"][-2] < OWN < last == OWN + moves["results"][-2]
        over, place = at_trial(page, last, 1, OWN + 25)
        over.hover(position=place)
        page.locator(".readout").first.get_by_text(f"trial {last} ").wait_for()
        assert "estimate" in readout(page)
        over.click(position=place)
        page.get_by_role("dialog").get_by_role("heading", name=f"Trial {last}").wait_for()


def test_a_zoom_stays_when_results_come(browser, server, folder):
    with seeing(browser, server, "own") as page:
        over, start = at_trial(page, 11, 1, 55)
        end = at_trial(page, 21, 1, 55)[1]
        box = over.bounding_box()
        page.mouse.move(box["x"] + start["x"], box["y"] + 100)
        page.mouse.down()
        page.mouse.move(box["x"] + end["x"], box["y"] + 120)
        page.mouse.up()
        middle = {"x": box["width"] / 2, "y": 40}
        over.hover(position=middle)
        page.locator(".readout").first.get_by_text("trial 16 ").wait_for()
        with Study.open(folder / "own.db") as study:
            told(study, 1)
        page.get_by_role("button", name="Trial 56", exact=True).wait_for()
        page.get_by_role("img", name="56 results; returns").wait_for()
        over.hover(position={**middle, "y": 50})
        page.locator(".readout").first.get_by_text("trial 16 ").wait_for()
        over.dblclick(position=middle)
        page.mouse.move(box["x"] + 5, box["y"] + 60)
        page.locator(".readout").first.get_by_text("trial 1 ").wait_for()


def test_on_touch_buttons_zoom(browser, server):
    with seeing(browser, server, "far", width=PHONE, height=844) as page:
        page.get_by_text("Each point is a trial: choose one to see it. ").wait_for()
        for _ in range(2):
            page.get_by_role("button", name="Zoom in on the newest").tap()
        over, middle = at_trial(page, 1, 0, 2)
        over.hover(position=middle)
        page.locator(".readout").first.get_by_text("trial 35 ").wait_for()  # 30.25 to 40
        page.get_by_role("button", name="Show all").tap()
        over, middle = at_trial(page, 1, 0, 2)
        over.hover(position={**middle, "y": 50})
        page.locator(".readout").first.get_by_text("trial 2").wait_for()


def test_digits_go_by_the_width_of_what_is_told_apart(browser, server, folder):
    with Study.open(folder / "far.db", read_only=True) as study:
        words = study.recommend().words
        worth = study.snapshot().plain()["expected_return_of_mean_policy"]
        ends = [worth["mean"], *worth["interval"]]
    with seeing(browser, server, "far") as page:
        page.get_by_text("expected return of the mean policy", exact=True).wait_for()
        said, own, named, axis = page.evaluate(SHOWN, [-52000.02, -52000.01, ends])
        assert said.replace("\u00a0%", " %") in words
        assert page.locator(".tiles b").first.inner_text() == said
        assert own == ["-52000.02", "-52000.01"]
        assert named == "from -52000.02 to -52000.01"
        assert axis == ["-52000.02", "-52000.015", "-52000.01"]
        label = page.locator(".plot").first.get_attribute("aria-label")
        assert len(set(re.findall(r"-5[12]\d{3}\.\d+", label))) == 2


def test_the_focus_comes_back_from_a_window_over_what_was_drawn_anew(browser, server, folder):
    with seeing(browser, server, "far") as page, Study.open(folder / "far.db") as study:
        page.locator(".tiles button").wait_for()
        row = page.get_by_role("button", name="Trial 30", exact=True)
        for button in (row, page.locator(".tiles button")):
            button.press("Enter")
            page.get_by_role("dialog").get_by_text("Put it right").wait_for()
            drawn = button.element_handle()
            told(study, 1, FAR, 0.1)
            page.wait_for_function("node => !node.isConnected", arg=drawn)
            page.keyboard.press("Escape")
            expect(button).to_be_focused()


def test_what_is_looked_for_is_what_is_saved(browser, server):
    with seeing(browser, server, "own") as page:
        page.get_by_label("That say").fill("a slip")
        with page.expect_download() as download:
            page.get_by_role("button", name="Save these 1 as CSV").click()
        (row,) = csv.DictReader(io.StringIO(download.value.path().read_bytes().decode()))
        assert (row["id"], row["note"]) == ("50", MARK)
        page.get_by_label("That say").fill("")
        with page.expect_download() as download:
            page.get_by_role("button", name="Save as CSV").click()
        rows = list(csv.DictReader(io.StringIO(download.value.path().read_bytes().decode())))
        assert len(rows) >= OWN + 25


def test_a_chance_to_keep_a_limit_has_its_interval(browser, server):
    with seeing(browser, server, "own") as page:
        words = page.locator("p", has_text="force<50: broken ").filter(has_text="asked for 0.95")
        words.wait_for()
        assert "(95\u00a0%: 0." in words.inner_text()

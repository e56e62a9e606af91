"""Every view of the live page, in light, dark and on a phone: nothing is left to mend."""

import json
from types import SimpleNamespace

import pytest
from browser import complaints, window
from pages import PHONE, VIEWS, assert_fits, assert_quiet, gripper, opened, turn
from serving import Server

import recoup
from recoup.study.study import Study
from recoup.study.voice.sentences import explains

HEADS = {
    **VIEWS,
    "overview": "What is served here",
    "run": "Expected return over episodes",
    "runs": "Runs side by side",
}
PAINTED = (
    "c => c.width > 0 && c.getContext('2d').getImageData(0, 0, c.width, c.height).data.some(x => x)"
)


@pytest.fixture(scope="module")
def robot(tmp_path_factory):
    folder = tmp_path_factory.mktemp("views")
    path = gripper(folder / "robot.db", results=40)
    recoup.train("toy", "pgpe", iterations=3, batch=4, seed=0, out=folder / "toy-run")
    with Server(folder, path, folder / "toy-run") as server:
        yield SimpleNamespace(server=server, path=path)


def go(page, robot, view):
    """To any view, and until all of it is there."""
    if view in VIEWS:
        turn(page, robot.server, view)
    elif view == "run":
        page.goto(f"{robot.server.url}#/run/toy-run")
    elif view == "runs":
        page.goto(f"{robot.server.url}#/runs")
    page.get_by_role("heading", name=HEADS[view]).wait_for()
    settled = {"see": ".trials tbody tr", "data": "text=At rest", "work": ".trial"}
    settled |= {
        "deploy": "text=Copy as JSON",
        "run": ".plot canvas",
        "runs": ".plot canvas",
        "overview": "li.card",
    }
    page.locator(settled[view]).first.wait_for()


@pytest.mark.parametrize("view", HEADS)
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_nothing(browser, robot, view, dark):
    with opened(browser, robot.server, study=None, dark=dark) as page:
        go(page, robot, view)
        assert complaints(page) == ""
        assert_quiet(page, robot.server)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_nothing_in_the_windows_over_the_page(browser, robot, dark):
    with opened(browser, robot.server, dark=dark) as page:
        page.get_by_role("button", name="Try my own").click()
        page.get_by_role("dialog").wait_for()
        assert complaints(page) == ""
        page.keyboard.press("Escape")
        go(page, robot, "see")
        page.get_by_role("button", name="Trial 30", exact=True).first.click()
        page.get_by_role("dialog").get_by_text("Put it right").wait_for()
        assert complaints(page) == ""


def test_axe_finds_nothing_where_the_token_is_asked_for(browser, robot):
    with window(browser) as page:
        page.goto(robot.server.url)
        page.get_by_label("Token").wait_for()
        assert complaints(page) == ""


@pytest.mark.parametrize("view", HEADS)
def test_nothing_is_wider_than_a_phone(browser, robot, view):
    with opened(browser, robot.server, study=None, width=PHONE, height=844) as page:
        go(page, robot, view)
        assert_fits(page)


@pytest.mark.parametrize("view", HEADS)
def test_what_is_pressed_is_large_enough_for_gloves(browser, robot, view):
    small = """() => ['main button', 'main input', 'main select', 'main summary', 'nav a']
      .flatMap(kind => [...document.querySelectorAll(kind)])
      .filter(e => e.getClientRects().length && !['radio', 'checkbox'].includes(e.type))
      .map(e => [e.getBoundingClientRect(), e.innerText || e.name || e.type])
      .filter(([box]) => box.height < 44 || box.width < 44).map(([, text]) => text)"""
    with opened(browser, robot.server, study=None, width=PHONE, height=844) as page:
        go(page, robot, view)
        assert page.evaluate(small) == []


def test_every_view_is_reached_by_the_keyboard_alone(browser, robot):
    with opened(browser, robot.server) as page:
        page.locator("body").press("Tab")
        assert page.evaluate("document.activeElement.innerText") == "To the content"
        seen = []
        for _ in range(5):
            page.keyboard.press("Tab")
            seen.append(page.evaluate("document.activeElement.innerText"))
        assert seen == ["All studies", "Work", "See", "Ask the data", "Deploy"]
        page.keyboard.press("Enter")
        page.get_by_role("heading", name=HEADS["deploy"]).wait_for()


def test_at_rest_the_data_say_what_evaluate_says(browser, robot):
    with opened(browser, robot.server, "data") as page:
        page.get_by_text("At rest").wait_for()
        with Study.open(robot.path, read_only=True) as study:
            newest = study.evaluate()
        assert newest.words in page.locator(".answer").inner_text()
        asked = []
        page.on(
            "request", lambda r: asked.append(r.post_data_json) if "evaluate" in r.url else None
        )
        field = page.get_by_role("textbox", name="damping")
        field.fill("0.6")
        with page.expect_response(
            lambda r: "evaluate" in r.url and not r.request.post_data_json.get("quick")
        ):
            field.press("Enter")
        page.locator(".answer:not(.moving)").wait_for()
        with Study.open(robot.path, read_only=True) as study:
            found = study.evaluate({"damping": 0.6})
        page.locator(".answer").get_by_text(found.words, exact=False).wait_for()
        assert any(body.get("quick") for body in asked)  # and on the way, by weights alone
        assert asked[-1] == {"mean": {"damping": 0.6}, "std": None}


@pytest.mark.parametrize("width", [390, 1280])
def test_every_digit_of_a_mean_is_seen_in_its_field(browser, robot, width):
    with opened(browser, robot.server, "data") as page:
        page.set_viewport_size({"width": width, "height": 900})
        page.get_by_text("At rest").wait_for()
        field = page.get_by_role("textbox", name="approach")
        field.fill("-0.02561832832278524")
        assert field.evaluate("field => field.scrollWidth <= field.clientWidth")


def test_where_the_data_say_nothing_the_page_says_nothing(browser, robot):
    with opened(browser, robot.server, "data") as page:
        page.get_by_text("At rest").wait_for()
        for name, far in (("stiffness", "55"), ("damping", "0.01"), ("approach", "0.099")):
            page.get_by_role("textbox", name=name).fill(far)
            page.get_by_role("textbox", name=name).press("Enter")
        page.get_by_text("is not known").wait_for()
        assert page.locator(".answer-value").inner_text() == ""


def test_plots_are_drawn_and_lead_to_their_trials(browser, robot):
    with opened(browser, robot.server, "see") as page:
        page.locator(".trials tbody tr").first.wait_for()
        for canvas in page.locator("canvas").all():
            assert canvas.evaluate(PAINTED)
        assert page.locator("canvas").count() == 1 + 3 + 1  # returns, parameters, pairs
        words = page.locator(".plot").first.get_attribute("aria-label")
        assert words.startswith("37 results; returns from ")
        page.locator(".u-over").first.click()
        page.get_by_role("dialog").get_by_text("asked for").wait_for()


def test_the_table_is_filtered_sorted_and_saved(browser, robot):
    with opened(browser, robot.server, "see") as page:
        row = page.locator(".trials tbody tr")
        row.first.wait_for()
        page.get_by_label("Which").select_option("failed")
        page.get_by_text("3 trials.", exact=True).wait_for()
        assert row.count() == 3
        page.get_by_label("Which").select_option("with a result")
        page.get_by_text("37 trials.", exact=True).wait_for()
        page.get_by_role("columnheader", name="return").get_by_role("button").click()
        with Study.open(robot.path, read_only=True) as study:
            best = study.best[0].id
        assert row.first.locator("td").first.inner_text() == str(best)
        with page.expect_download() as download:
            page.get_by_role("button", name="Save as CSV").click()
        lines = download.value.path().read_text().splitlines()
        assert lines[0].startswith("id,kind,status")
        assert len(lines) == 1 + 37
        page.get_by_label("That say").fill("no trial says so")
        page.get_by_text("0 of 37 trials.").wait_for()
        assert page.get_by_role("button", name="Save these 0 as CSV").is_disabled()


def test_the_report_is_saved(browser, robot):
    with opened(browser, robot.server, "deploy") as page:
        page.get_by_text("Copy as JSON").wait_for()
        with Study.open(robot.path, read_only=True) as study:
            assert study.recommend().words in page.locator("main").inner_text()
        with page.expect_download() as download:
            page.get_by_role("button", name="Save the report").click()
        assert download.value.path().read_text().startswith("<!doctype html>")


def test_what_matters_is_said_with_its_error_as_elsewhere(browser, robot):
    with Study.open(robot.path, read_only=True) as study:
        seen = [row for row in study.recommend().matters if row.seen and len(row.names) == 1]
    assert seen
    with opened(browser, robot.server, "deploy") as page:
        page.get_by_text("Copy as JSON").wait_for()
        items = page.locator("h2:has-text('What matters') ~ ul li").all_inner_texts()
    said = [item.replace("\u00a0%", "%") for item in items]
    for row in seen:
        words = explains(row.share, row.stderr)
        assert any(row.names[0] in item and item.endswith(f" {words}") for item in said)


def test_a_budget_is_planned(browser, robot):
    with opened(browser, robot.server, "deploy") as page:
        page.get_by_text("Copy as JSON").wait_for()
        page.get_by_label("Trials that are left").fill("many")
        page.get_by_role("button", name="Say it again").click()
        page.get_by_text("is no number").wait_for()
        page.get_by_label("Trials that are left").fill("40")
        with page.expect_request("**/recommend") as asked:
            page.get_by_role("button", name="Say it again").click()
        assert json.loads(asked.value.post_data) == {"budget": 40, "worth": None}

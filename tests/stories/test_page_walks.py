"""From view to view by links, by the keyboard and by the Back button of the browser."""

import pytest
from browser import expect
from pages import VIEWS, card, opened, robot_served, turn

IN_MAIN = "document.getElementById('main').contains(document.activeElement)"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with robot_served(tmp_path_factory.mktemp("walks")) as started:
        yield started


@pytest.mark.parametrize("view", ["see", "deploy"])
def test_the_first_link_leads_to_the_content_of_the_same_view(browser, server, view):
    with opened(browser, server, view) as page:
        page.get_by_role("link", name="To the content").focus()
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "main"
        page.keyboard.press("Tab")
        assert page.evaluate(IN_MAIN)
        page.get_by_role("heading", name=VIEWS[view]).wait_for()
        assert page.url.endswith(f"#/study/robot/{view}")


def test_back_leads_through_the_views_and_closes_what_lies_over_them(browser, server):
    with opened(browser, server) as page:
        turn(page, server, "see")
        page.get_by_role("button", name="Trial 30", exact=True).click()
        page.get_by_role("dialog").get_by_text("What was tried").wait_for()
        page.go_back()
        page.get_by_role("heading", name=VIEWS["work"]).wait_for()
        expect(page.get_by_role("dialog")).to_have_count(0)
        page.go_back()
        page.get_by_role("heading", name="What is served here").wait_for()
        page.go_forward()
        page.get_by_role("heading", name=VIEWS["work"]).wait_for()
        page.go_forward()
        page.get_by_role("heading", name=VIEWS["see"]).wait_for()
        assert "token" not in page.url


def test_what_is_typed_is_there_when_one_comes_back(browser, server):
    with opened(browser, server) as page:
        card(page, 31).get_by_label("Return").fill("9.25 9.5")
        card(page, 32).get_by_text("It failed, or will not be tried").click()
        card(page, 32).get_by_label("What happened").fill("slipped")
        turn(page, server, "see")
        page.go_back()
        expect(card(page, 31).get_by_label("Return")).to_have_value("9.25 9.5")
        card(page, 31).get_by_text("2 episodes").wait_for()
        expect(card(page, 32).get_by_label("What happened")).to_have_value("slipped")
        page.go_back()
        page.get_by_role("heading", name="What is served here").wait_for()
        page.go_forward()
        expect(card(page, 31).get_by_label("Return")).to_have_value("9.25 9.5")
        expect(card(page, 33).get_by_label("Return")).to_have_value("")

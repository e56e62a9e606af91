"""From view to view by links, by the keyboard and by the Back button of the browser."""

import pytest
from browser import browsing
from pages import VIEWS, opened, robot_served

IN_MAIN = "document.getElementById('main').contains(document.activeElement)"


@pytest.fixture(scope="module")
def browser():
    with browsing() as found:
        yield found


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

"""A page that is left over night: its clock moved by hours, the server started anew meanwhile."""

import pytest
from browser import expect
from pages import card, opened, trials, turn

from recoup.study.study import Study

HIDE = """to => { Object.defineProperty(document, 'hidden', { value: to, configurable: true });
  document.dispatchEvent(new Event('visibilitychange')); }"""
NIGHT = "11:00:00"


@pytest.fixture
def page(browser, server):
    """The page at work, with a clock that is moved by hand, and something typed."""
    with opened(browser, server, study=None) as found:
        found.clock.install()
        found.goto(server.url)
        turn(found, server, "work")
        card(found, 31).get_by_label("Return").fill("9.25")
        yield found


def test_it_goes_on_in_the_morning(page, server):
    page.evaluate(HIDE, True)  # the lid is closed
    with Study.open(server.path) as study:
        study.tell(33, 9.0)
        study.ask(2)
    page.asked.clear()
    page.clock.fast_forward(NIGHT)
    assert [url for url in page.asked if "/v1/" in url] == []  # hidden, it asks nothing
    page.evaluate(HIDE, False)
    card(page, 33).wait_for(state="detached")
    card(page, 35).wait_for()
    expect(card(page, 31).get_by_label("Return")).to_have_value("9.25")
    card(page, 31).get_by_label("Return").press("Enter")  # the session is good still
    card(page, 31).wait_for(state="detached")
    assert trials(server.path)[31].value == 9.25


def test_the_server_was_started_anew_in_the_night(page, server):
    server.kill()
    page.get_by_text("The server does not answer.").wait_for()
    page.clock.fast_forward(NIGHT)
    with Study.open(server.path) as study:
        study.tell(33, 9.0)
    server.start()
    page.clock.fast_forward("00:10")
    card(page, 33).wait_for(state="detached")
    page.get_by_text("The server does not answer.").wait_for(state="hidden")
    expect(card(page, 31).get_by_label("Return")).to_have_value("9.25")


def test_with_a_new_token_it_asks_for_that_and_nothing_typed_is_lost(page, server):
    page.evaluate(HIDE, True)
    server.kill()
    (server.folder / "tokens").unlink()
    server.start()
    page.clock.fast_forward(NIGHT)
    page.evaluate(HIDE, False)
    page.get_by_label("Token").fill(server.address)
    page.get_by_role("button", name="Open").click()
    page.get_by_label("Token").wait_for(state="detached")
    expect(card(page, 31).get_by_label("Return")).to_have_value("9.25")
    card(page, 31).get_by_label("Return").press("Enter")
    card(page, 31).wait_for(state="detached")


def test_with_a_token_that_may_only_read_nothing_can_be_told_any_more(page, server):
    server.kill()
    (server.folder / "tokens").unlink()
    server.start()
    page.clock.fast_forward("00:10")
    page.get_by_label("Token").fill(server.read_address)
    page.get_by_role("button", name="Open").click()
    page.get_by_text("This token may only read").wait_for()
    assert page.locator("main input").count() == 0


def test_a_lease_that_has_run_out_is_said_on_its_card(browser, server):
    with Study.open(server.path) as study:
        study.ask(1, lease=0.001)
        (late,) = (one for one in study.waiting() if one.trial.id == 34)
    with opened(browser, server, study=None) as page:
        page.clock.install()
        page.goto(server.url)
        turn(page, server, "work")
        card(page, 34).get_by_text(f"lent: {late.lease}").wait_for()
        with Study.open(server.path) as study:
            assert [one.id for one in study.ask(1, lease=3600)] == [34]  # handed out again
        card(page, 34).get_by_text("handed out 2 times").wait_for()
        page.clock.fast_forward("01:01")  # ages are looked up every minute
        card(page, 34).get_by_text("min left").wait_for()

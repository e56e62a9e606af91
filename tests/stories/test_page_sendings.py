"""What is on its way when its view is left, or the page loaded anew: not lost, nor done twice."""

import pytest
from browser import expect
from pages import Held, card, opened, trials
from waiting import until

from recoup.study.study import Study

NOTHING = "Nothing waits for a result"
SLIP = "amend it if it is a slip"


def tell(page, number, value):
    card(page, number).get_by_label("Return").fill(value)
    card(page, number).get_by_role("button", name="Tell", exact=True).click()


def away_and_back(page, between=lambda: None):
    """To another view, and back again."""
    page.get_by_role("link", name="See", exact=True).click()
    page.get_by_role("heading", name="What it says").wait_for()
    between()
    page.get_by_role("link", name="Work", exact=True).click()
    page.get_by_role("heading", name="Waiting for results").wait_for()


def test_a_result_on_its_way_is_shown_wherever_one_was_meanwhile(browser, server):
    with opened(browser, server) as page:
        card(page, 33).wait_for()
        server.kill()
        tell(page, 31, "-7750")
        card(page, 31).get_by_text("It is sent as soon as it does.").wait_for()
        away_and_back(page)
        card(page, 31).get_by_role("button", name="Do not send it").wait_for()
        expect(card(page, 31).get_by_label("Return")).to_be_disabled()
        expect(card(page, 31).get_by_label("Return")).to_have_value("-7750")
        expect(page.get_by_text(NOTHING)).to_be_hidden()
        server.start()
        page.locator("li.slip").get_by_text("Trial 31: -7750 told.").wait_for()
        page.get_by_role("alert").get_by_text(SLIP).wait_for()
        card(page, 31).wait_for(state="detached")
        until(lambda: trials(server.path)[31].value == -7750)


def test_it_is_taken_back_on_the_card_that_took_its_place(browser, server):
    with opened(browser, server) as page:
        card(page, 33).wait_for()
        server.kill()
        tell(page, 31, "9.5")
        away_and_back(page)
        card(page, 31).get_by_role("button", name="Do not send it").click()
        expect(card(page, 31).get_by_label("Return")).to_be_enabled()
        expect(card(page, 31).get_by_label("Return")).to_have_value("9.5")
        server.start()
        page.get_by_text("What is typed stays").wait_for(state="hidden")
        assert trials(server.path)[31].status == "pending"


def test_what_came_of_it_elsewhere_is_said_there_and_stands_on_its_view(browser, server):
    with opened(browser, server) as page:
        held = Held(page, "**/tell")
        tell(page, 31, "-7750")
        held.wait()

        def let_go():
            held.go()
            page.locator("#said").get_by_text(SLIP).wait_for()

        away_and_back(page, let_go)
        page.locator("li.slip").get_by_text("Trial 31: -7750 told.").wait_for()
        away_and_back(page)
        page.locator("li.slip").get_by_role("button", name="It is right").click()
        away_and_back(page)
        card(page, 32).wait_for()
        assert page.locator("li.slip").count() == 0


def test_what_was_refused_elsewhere_is_said_there_and_stands_on_its_card(browser, server):
    with opened(browser, server) as page:
        held = Held(page, "**/tell")
        tell(page, 31, "9.5")
        held.wait()
        with Study.open(server.path) as study:
            study.tell(31, 8.5)

        def let_go():
            held.go()
            page.locator("#said").get_by_text("Trial 31 is as it was").wait_for()

        away_and_back(page, let_go)
        card(page, 31).get_by_role("alert").get_by_text("8.5").wait_for()
        card(page, 31).get_by_role("button", name="Put the card away").click()
        card(page, 31).wait_for(state="detached")


def test_trials_are_asked_for_once_wherever_one_was_meanwhile(browser, server):
    with opened(browser, server) as page:
        card(page, 33).wait_for()
        server.kill()
        page.get_by_role("button", name="Ask for trials").click()
        page.locator("form.asking").get_by_text("It is sent as soon as it does.").wait_for()
        away_and_back(page)
        page.locator("form.asking").get_by_text("It is sent as soon as it does.").wait_for()
        page.get_by_role("button", name="Ask for trials").click()
        server.start()
        card(page, 34).wait_for()
        page.locator("form.asking").get_by_role("alert").wait_for(state="hidden")
        assert max(trials(server.path)) == 34


@pytest.fixture
def page(browser, server):
    """The page at work; `asked_to_stay` says how often the browser asked before it left."""
    with opened(browser, server) as found:
        found.asked_to_stay = []
        found.on("dialog", lambda one: (found.asked_to_stay.append(one.type), one.accept()))
        card(found, 33).wait_for()
        yield found


def test_what_is_typed_is_there_when_the_page_is_loaded_anew(page):
    page.reload()
    card(page, 31).wait_for()
    assert page.asked_to_stay == []  # nothing is typed
    card(page, 31).get_by_label("Return").fill("9.25")
    card(page, 32).get_by_text("It failed, or will not").click()
    card(page, 32).get_by_label("What happened").fill("a cable came off")
    page.reload()
    expect(card(page, 31).get_by_label("Return")).to_have_value("9.25")
    expect(card(page, 32).get_by_label("What happened")).to_be_visible()
    expect(card(page, 32).get_by_label("What happened")).to_have_value("a cable came off")
    assert page.asked_to_stay == ["beforeunload"]
    card(page, 31).get_by_label("Return").press("Enter")
    card(page, 31).wait_for(state="detached")
    card(page, 32).get_by_label("What happened").fill("")
    page.reload()
    card(page, 32).wait_for()
    assert page.asked_to_stay == ["beforeunload"]


def test_what_was_not_sent_before_the_page_was_loaded_anew_is_said(page, server):
    page.route("**/tell", lambda route: route.abort())
    tell(page, 31, "9.25")
    card(page, 31).get_by_role("button", name="Do not send it").wait_for()
    page.reload()
    assert page.asked_to_stay == ["beforeunload"]
    card(page, 31).get_by_role("alert").get_by_text("This was not sent").wait_for()
    expect(card(page, 31).get_by_label("Return")).to_have_value("9.25")
    assert trials(server.path)[31].status == "pending"
    page.unroute("**/tell")
    card(page, 31).get_by_label("Return").press("Enter")
    card(page, 31).wait_for(state="detached")
    until(lambda: trials(server.path)[31].value == 9.25)


def test_what_was_told_when_the_page_was_loaded_anew_is_said(page, server):
    def swallow(route):
        if not trials(server.path)[31].value:
            route.fetch()
        route.abort()

    page.route("**/tell", swallow)
    tell(page, 31, "9.25")
    card(page, 31).get_by_role("button", name="Do not send it").wait_for()
    page.reload()
    page.locator("li.slip").get_by_text("was on its way when the page was loaded anew").wait_for()
    page.locator("li.slip").get_by_role("button", name="Put right").click()
    page.get_by_role("dialog").locator("dd", has_text="9.25").wait_for()


def test_what_was_typed_for_a_trial_of_another_study_is_not_given_to_this_one(page, server):
    card(page, 31).get_by_label("Return").fill("9.25")
    other = """() => { const kept = JSON.parse(sessionStorage.getItem('recoup-drafts'));
      Object.values(kept).forEach(one => one.seed = 7);
      const keep = () => sessionStorage.setItem('recoup-drafts', JSON.stringify(kept));
      addEventListener('pagehide', keep); }"""
    page.evaluate(other)
    page.reload()
    card(page, 31).wait_for()
    expect(card(page, 31).get_by_label("Return")).to_have_value("")

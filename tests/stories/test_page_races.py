"""Answers that come late or out of order, clicks that come twice, a focus that must not jump."""

from browser import expect
from pages import Held, card, opened, trials, turn

from recoup.study.study import Study

FOCUSED = "() => document.activeElement.innerText || document.activeElement.id"
NUMBERS = """async () => {
  const { percent, short } = await import('/static/numbers.js');
  return [[0.996, 1, 0.0995, 0.0994, 0.004, 0, -0.5].map(percent),
    [[123456.7, 5], [99999.7, 5], [12345.67, 4], [1234.56, 5], [1e12 + 0.5, 4], [-98765.4, 4],
     [0.00001234, 3], [3, 2], [-0, 4]].map(([x, digits]) => short(x, digits))];
}"""


def test_a_quick_answer_that_comes_late_does_not_take_the_place_of_the_whole_one(browser, server):
    with opened(browser, server, "data") as page:
        page.get_by_text("At rest").wait_for()
        quick = Held(page, "**/evaluate", lambda request: request.post_data_json.get("quick"))
        field = page.get_by_role("textbox", name="damping")
        field.fill("0.6")
        with page.expect_response("**/evaluate"):
            field.press("Enter")
        expect(page.locator(".answer-value")).to_contain_text("95")
        before = page.locator(".answer").inner_text()
        quick.go()
        page.evaluate("() => new Promise(requestAnimationFrame)")
        assert page.locator(".answer").inner_text() == before
        assert page.locator(".answer.moving").count() == 0


def test_what_others_tell_does_not_move_the_focus_to_a_field_that_holds_no_number(browser, server):
    with opened(browser, server, "data") as page:
        page.get_by_text("At rest").wait_for()
        page.get_by_role("textbox", name="damping").fill("0.6")
        page.get_by_role("textbox", name="damping").press("Enter")
        page.get_by_role("textbox", name="approach").fill("much")
        page.get_by_role("textbox", name="approach").press("Enter")
        page.get_by_text("is no number").first.wait_for()
        page.get_by_label("Spread of damping").focus()
        with Study.open(server.path) as study:
            study.tell(31, 9.0)
        page.locator("#top").get_by_text("28 results").wait_for()
        assert page.evaluate("document.activeElement.ariaLabel") == "Spread of damping"


def test_two_clicks_ask_once(browser, server):
    with opened(browser, server) as page:
        held = Held(page, "**/ask")
        page.get_by_role("button", name="Ask for trials").dblclick()
        page.get_by_role("button", name="Try the mean").click()
        held.go()
        card(page, 34).wait_for()
        page.get_by_text("1 trial asked for.").wait_for()
        assert len(held.routes) == 1
        assert max(trials(server.path)) == 34


def test_while_the_server_is_away_the_form_says_that_it_is_still_asking(browser, server):
    with opened(browser, server) as page:
        card(page, 31).wait_for()
        server.kill()
        page.get_by_role("button", name="Ask for trials").click()
        form = page.locator("form.asking")
        form.get_by_role("alert").get_by_text("It is sent as soon as it does.").wait_for()
        page.get_by_role("button", name="Ask for trials").click()
        server.start()
        card(page, 34).wait_for()
        form.get_by_role("alert").first.wait_for(state="hidden")
        assert max(trials(server.path)) == 34


def test_values_of_ones_own_are_not_sent_after_their_window_was_closed(browser, server):
    with opened(browser, server) as page:
        card(page, 31).wait_for()
        page.get_by_role("button", name="Try my own").click()
        server.kill()
        page.get_by_role("dialog").get_by_role("button", name="Ask for it now").click()
        page.get_by_role("dialog").get_by_text("It is sent as soon as it does.").wait_for()
        page.keyboard.press("Escape")
        server.start()
        page.get_by_text("What is typed stays").wait_for(state="hidden")
        page.get_by_role("button", name="Ask for trials").click()
        card(page, 34).wait_for()
        assert max(trials(server.path)) == 34
        assert trials(server.path)[34].kind != "own"


def test_the_focus_stays_on_the_view_that_was_chosen_and_goes_on_to_the_next_card(browser, server):
    with opened(browser, server) as page:
        card(page, 31).get_by_label("Return").fill("9.25")
        card(page, 31).get_by_label("Return").press("Enter")
        card(page, 31).wait_for(state="detached")
        expect(card(page, 32).get_by_label("Return")).to_be_focused()
        page.get_by_role("link", name="Deploy").focus()
        page.keyboard.press("Enter")
        page.get_by_text("Copy as JSON").wait_for()
        assert page.evaluate(FOCUSED) == "Deploy"
        assert page.get_by_role("link", name="Deploy").get_attribute("aria-current") == "page"
        assert page.locator("nav [aria-current]").count() == 1


def test_a_table_shows_those_that_were_chosen_last(browser, server):
    with opened(browser, server) as page:
        card(page, 31).wait_for()
        all_ = Held(page, "**/trials?*", lambda request: "status" not in request.url)
        turn(page, server, "see")
        page.get_by_label("Which").wait_for()
        page.get_by_label("Which").select_option("failed")
        page.get_by_text("3 trials.", exact=True).wait_for()
        all_.go()
        page.evaluate("() => new Promise(requestAnimationFrame)")
        page.get_by_text("3 trials.", exact=True).wait_for()
        assert page.locator(".trials tbody tr").count() == 3


def test_pages_of_the_table_are_turned_by_the_keyboard(browser, server):
    with opened(browser, server, "see") as page:
        page.get_by_role("button", name="On", exact=True).focus()
        page.keyboard.press("Enter")
        page.get_by_text("page 2 of 2").wait_for()
        page.get_by_role("button", name="Back", exact=True).focus()
        with Study.open(server.path) as study:
            study.tell(31, 9.0)
        page.locator("#top").get_by_text("28 results").wait_for()
        expect(page.get_by_role("button", name="Back", exact=True)).to_be_focused()


def test_an_overview_that_comes_late_does_not_take_the_place_of_a_study(browser, server):
    with opened(browser, server, study=None) as page:
        page.clock.install()
        page.goto(server.url)
        page.get_by_role("heading", name="What is served here").wait_for()
        first = Held(page, "**/v1")
        with page.expect_request("**/v1"):
            page.clock.fast_forward("00:06")
        first.chosen = lambda request: False
        with Study.open(server.path) as study:
            study.title = "Left arm"  # so that it would be drawn anew
        turn(page, server, "work")
        card(page, 31).wait_for()
        first.go()
        page.evaluate("() => new Promise(done => queueMicrotask(done))")
        assert card(page, 31).count() == 1


def test_a_budget_that_is_half_typed_is_not_asked_about(browser, server):
    with opened(browser, server, "deploy") as page:
        page.get_by_text("Copy as JSON").wait_for()
        page.get_by_label("Trials that are left").fill("4")
        with page.expect_request("**/recommend") as asked, Study.open(server.path) as study:
            study.tell(31, 9.0)
        assert asked.value.post_data_json == {"budget": None, "worth": None}


def test_a_token_is_asked_for_in_front_of_an_open_window(browser, server):
    with opened(browser, server) as page:
        card(page, 31).wait_for()
        page.get_by_role("button", name="Try my own").click()
        server.kill()
        (server.folder / "tokens").unlink()
        server.start()
        page.get_by_label("Token").fill(server.token)
        page.get_by_role("button", name="Open", exact=True).click()
        page.get_by_label("Token").wait_for(state="detached")
        page.get_by_role("dialog").get_by_role("button", name="Ask for it now").click()
        card(page, 34).wait_for()


def test_an_answer_that_was_lost_is_asked_for_again_when_the_server_is_back(browser, server):
    with opened(browser, server, "data") as page:
        page.get_by_text("At rest").wait_for()
        server.kill()
        page.get_by_role("textbox", name="damping").fill("0.6")
        page.get_by_role("textbox", name="damping").press("Enter")
        page.locator(".answer").get_by_text("The server does not answer.").wait_for()
        server.start()
        page.get_by_text("At rest").wait_for()
        expect(page.locator(".answer-value")).to_contain_text("95")


def test_numbers_are_whole_where_digits_of_them_would_be_noughts(browser, server):
    with opened(browser, server, study=None) as page:
        shares, values = page.evaluate(NUMBERS)
    said = [one.replace("\u00a0%", "") for one in shares]
    assert said == ["100", "100", "10", "9.9", "0.4", "0", "-50"]
    assert values == [
        *("123457", "100000", "12346", "1234.6", "1e12", "-98765"),
        *("0.0000123", "3", "0"),
    ]

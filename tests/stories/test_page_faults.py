"""The live page where something goes wrong: the server dies, files and names are hostile."""

import json
import re

import numpy as np
from browser import expect, window
from pages import (
    VIEWS,
    assert_fits,
    assert_quiet,
    card,
    gripper,
    opened,
    trials,
    turn,
)
from serving import Server
from waiting import until

from recoup.study.study import Study

EVIL = '<script>document.title="owned"</script><img src=x onerror=alert(1)>'
LONG = "a_gain_" * 72  # 504 characters
ARABIC = "\u0627\u0644\u0635\u0644\u0627\u0628\u0629"  # runs from right to left
OPEN = "The server does not answer."
STREAMS = """() => {
  const real = window.fetch; window.streams = new Set();
  window.fetch = (path, how) => {
    if (!path.endsWith("/events")) return real(path, how);
    window.streams.add(how.signal);
    how.signal.addEventListener("abort", () => window.streams.delete(how.signal));
    return real(path, how);
  };
}"""


def test_the_server_dies_and_comes_back_under_the_open_page(browser, server):
    with opened(browser, server) as page:
        card(page, 31).get_by_label("Return").fill("9.7")
        card(page, 32).get_by_label("Return").fill("8.8")
        server.kill()
        card(page, 32).get_by_label("Return").press("Enter")
        page.get_by_text(f"{OPEN} What is typed stays").wait_for()
        card(page, 32).get_by_text("It is sent as soon as it does.").wait_for()
        server.start()
        page.get_by_text(f"{OPEN} What is typed stays").wait_for(state="hidden")
        card(page, 32).wait_for(state="detached")  # sent by itself, once
        until(lambda: trials(server.path)[32].status == "ok")
        assert trials(server.path)[32].value == 8.8
        expect(card(page, 31).get_by_label("Return")).to_have_value("9.7")
        with Study.open(server.path) as study:
            study.tell(33, 9.0)
        card(page, 33).wait_for(state="detached")  # the stream is open again


def test_a_result_that_was_kept_before_its_answer_was_lost_is_told_once(browser, server):
    with opened(browser, server) as page:
        lost = []

        def swallow(route):
            route.fetch()
            lost.append(route.request.headers)
            route.abort()
            page.unroute("**/tell")

        page.route("**/tell", swallow)
        card(page, 31).get_by_label("Return").fill("9.7")
        card(page, 31).get_by_label("Return").press("Enter")
        card(page, 31).wait_for(state="detached")
        assert len(lost) == 1
        with Study.open(server.path, read_only=True) as study:
            assert study.told_later() == []
            assert {trial.id: trial.value for trial in study}[31] == 9.7


def test_trials_that_were_asked_for_before_the_answer_was_lost_are_given_once(browser, server):
    with opened(browser, server) as page:
        keys = []

        def swallow(route):
            keys.append(route.request.headers["idempotency-key"])
            if len(keys) == 1:
                route.fetch()
                route.abort()
            else:
                route.continue_()

        page.route("**/ask", swallow)
        page.get_by_role("button", name="Ask for trials").click()
        page.get_by_text("1 trial asked for.").wait_for()
        card(page, 34).wait_for()
        assert len(keys) == 2
        assert keys[0] == keys[1]
        assert max(trials(server.path)) == 34


def test_what_waits_to_be_sent_can_be_taken_back(browser, server):
    with opened(browser, server) as page:
        card(page, 31).wait_for()
        server.kill()
        card(page, 31).get_by_label("Return").fill("9.7")
        card(page, 31).get_by_label("Return").press("Enter")
        page.get_by_role("button", name="Do not send it").click()
        expect(card(page, 31).get_by_label("Return")).to_be_enabled()
        expect(card(page, 31).get_by_label("Return")).to_have_value("9.7")
        server.start()
        page.get_by_text(f"{OPEN} What is typed stays").wait_for(state="hidden")
        assert trials(server.path)[31].status == "pending"


def test_a_server_with_another_token_asks_for_it_and_what_is_typed_stays(browser, server):
    with opened(browser, server) as page:
        card(page, 31).get_by_label("Return").fill("9.7")
        server.kill()
        (server.folder / "tokens").unlink()
        server.start()
        page.get_by_label("Token").fill(server.token)
        page.get_by_role("button", name="Open").click()
        page.get_by_label("Token").wait_for(state="detached")
        expect(card(page, 31).get_by_label("Return")).to_have_value("9.7")
        card(page, 31).get_by_label("Return").press("Enter")
        card(page, 31).wait_for(state="detached")


def test_one_stream_a_page_and_none_while_it_is_hidden(browser, server):
    with window(browser) as page:
        page.add_init_script(f"({STREAMS})()")
        page.goto(server.address)
        page.get_by_role("heading", name="What is served here").wait_for()
        assert page.evaluate("streams.size") == 0
        for view in VIEWS:
            turn(page, server, view)
            assert page.evaluate("streams.size") == 1
        hide = (
            "to => { Object.defineProperty(document, 'hidden', { value: to, configurable: true });"
        )
        hide += " document.dispatchEvent(new Event('visibilitychange')); }"
        page.evaluate(hide, True)
        assert page.evaluate("streams.size") == 0
        turn(page, server, "work")
        with Study.open(server.path) as study:
            study.tell(31, 9.0)
        page.evaluate(hide, False)
        assert page.evaluate("streams.size") == 1
        card(page, 31).wait_for(state="detached")  # what was missed is made up for


def test_names_of_all_kinds_are_text(browser, tmp_path):
    names = [EVIL, LONG, ARABIC]
    path = tmp_path / "robot.db"
    with Study.open(path, params=dict.fromkeys(names, (0, 1)), batch=4, seed=2) as study:
        study.title = EVIL
        for i, trial in enumerate(study.ask(12)):
            study.tell(
                trial.id,
                float(np.sum(trial.theta)) if i % 5 else None,
                failed=None if i % 5 else EVIL,
            )
        study.ask(2)
        study.note(EVIL)
    with Server(tmp_path, path) as server, opened(browser, server, width=390) as page:
        for view in VIEWS:
            turn(page, server, view)
            page.get_by_text(EVIL).first.wait_for()
            page.wait_for_load_state("load")
            assert_fits(page)
            assert "owned" not in page.title() or EVIL[:60] in page.title()
            assert page.locator("img[src=x], main script").count() == 0
        turn(page, server, "see")
        page.get_by_role("button", name="Trial 1", exact=True).click()
        page.get_by_role("dialog").get_by_text(EVIL).first.wait_for()
        assert_fits(page)
        assert_quiet(page, server)


def test_two_hundred_parameters(browser, tmp_path):
    path = tmp_path / "robot.db"
    with Study.open(path, params={f"gain_{i:03}": (-1, 1) for i in range(200)}, seed=3) as study:
        for trial in study.ask(20):
            study.tell(trial.id, -float(np.sum(np.square(trial.theta))))
        study.ask(1)
    with Server(tmp_path, path) as server, opened(browser, server) as page:
        card(page, 21).get_by_text("188 more parameters").click()
        card(page, 21).get_by_text("gain_199").wait_for()
        turn(page, server, "data")
        page.get_by_text("At rest").wait_for()
        page.get_by_label("Find one of 200 parameters").fill("gain_17")
        assert page.locator(".slider-row:visible").count() == 10
        turn(page, server, "see")
        page.get_by_label("Find one of 200 parameters").fill("gain_042")
        page.locator(".parameter:visible canvas").wait_for()


def test_a_file_that_is_none_of_ours_is_said_and_the_others_are_served(browser, tmp_path):
    gripper(tmp_path / "robot.db", results=3)
    (tmp_path / "foreign.db").write_bytes(b"coffee" * 1000)
    with Server(tmp_path, tmp_path) as server, opened(browser, server, study=None) as page:
        line = page.locator("li.card", has_text="foreign")
        line.locator(".wrong").wait_for()
        page.goto(f"{server.url}#/study/foreign/work")
        page.get_by_role("heading", name="This study cannot be shown").wait_for()
        turn(page, server, "work")


def test_a_study_that_is_not_there(browser, server):
    with opened(browser, server, study=None) as page:
        page.goto(f"{server.url}#/study/nobody/work")
        page.get_by_role("heading", name="This study cannot be shown").wait_for()
        page.get_by_role("link", name="All studies").click()
        page.get_by_role("heading", name="What is served here").wait_for()


def test_numbers_that_javascript_would_round_are_kept(browser, server):
    """Seeds of other programs may have twenty digits."""

    def large(route):
        found = route.fetch().text()
        route.fulfill(
            body=re.sub(r'"seed": ?\d+', '"seed": 18446744073709551557', found),
            content_type="application/json",
        )

    with opened(browser, server, study=None) as page:
        page.route("**/waiting", large)
        turn(page, server, "work")
        card(page, 31).get_by_text("seed 18446744073709551557").wait_for()
        texts = ['[12345678901234567890, 0.12345678901234567, 1e300, "1234567890123456789"]']
        script = "async text => (await import('/static/api.js')).parsed(text)"
        assert page.evaluate(script, texts[0]) == [
            "12345678901234567890",
            *json.loads(texts[0])[1:],
        ]


def test_with_a_new_token_the_view_of_the_address_is_shown(browser, server):
    with opened(browser, server) as page:
        card(page, 31).wait_for()
        server.kill()
        (server.folder / "tokens").unlink()
        server.start()
        page.get_by_label("Token").wait_for()
        page.get_by_role("link", name="All studies").click()
        page.get_by_label("Token").fill(server.address)
        page.get_by_role("button", name="Open").click()
        page.get_by_role("heading", name="What is served here").wait_for()
        assert card(page, 31).count() == 0


def test_why_a_move_that_is_due_is_not_made_stands_over_the_study(browser, server):
    stuck = "No move is made: a part of the study fails."

    def facts(route):
        answer = route.fetch()
        if answer.status == 304:
            return route.fulfill(response=answer)
        return route.fulfill(response=answer, json={**answer.json(), "stuck": stuck})

    with opened(browser, server, study=None) as page:
        page.route("**/v1/studies/robot", facts)
        for view in ("work", "deploy"):
            turn(page, server, view)
            page.locator("#top").get_by_role("alert").get_by_text(stuck).wait_for()

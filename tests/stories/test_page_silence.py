"""A network that goes silent under the open page: nothing is closed, and nothing comes any more.

A server that is stopped in its tracks does the same: connections to it stay, and nobody answers.
"""

import os
import signal
from contextlib import contextmanager

import pytest
from browser import expect
from pages import card, opened, trials, turn
from waiting import until

AWAY = "The server does not answer. What is typed stays"
HEADS = {"work": "Waiting for results", "data": "What would another", "": "What is served here"}


@contextmanager
def silence(server, page):
    """The server is silent, until the page has said so and all that follows is done."""
    os.kill(server.process.pid, signal.SIGSTOP)
    try:
        for _ in range(4):
            page.clock.fast_forward("00:10")
        page.get_by_text(AWAY).wait_for()
        yield
    finally:
        os.kill(server.process.pid, signal.SIGCONT)


@pytest.mark.parametrize("view", HEADS)
def test_it_is_said_on_every_view_and_the_page_goes_on_by_itself(browser, server, view):
    with opened(browser, server, study=None) as page:
        page.clock.install()
        page.goto(f"{server.url}#/study/robot/{view}" if view else server.url)
        page.get_by_role("heading", name=HEADS[view]).wait_for()
        with silence(server, page):
            pass
        page.get_by_text(AWAY).wait_for(state="hidden")


def test_what_is_sent_meanwhile_is_sent_again_and_told_once(browser, server):
    with opened(browser, server, study=None) as page:
        page.clock.install()
        turn(page, server, "work")
        field = card(page, 31).get_by_label("Return")
        field.fill("9.25")
        os.kill(server.process.pid, signal.SIGSTOP)
        field.press("Enter")
        with silence(server, page):
            card(page, 31).get_by_text("It is sent as soon as it does.").wait_for()
            expect(field).to_have_value("9.25")
        card(page, 31).wait_for(state="detached")
        page.get_by_text(AWAY).wait_for(state="hidden")
        until(lambda: trials(server.path)[31].status == "ok")
        card(page, 32).get_by_label("Return").fill("9.5")  # and the stream is there again
        card(page, 32).get_by_label("Return").press("Enter")
        card(page, 32).wait_for(state="detached")
    assert trials(server.path)[31].value == 9.25


def test_a_clock_that_is_set_back_hides_no_silence(browser, server):
    with opened(browser, server, study=None) as page:
        page.clock.install()
        page.goto(server.url)
        page.get_by_role("heading", name="What is served here").wait_for()
        page.evaluate("() => { const now = Date.now; Date.now = () => now() - 86400e3; }")
        with silence(server, page):
            pass
        page.get_by_text(AWAY).wait_for(state="hidden")

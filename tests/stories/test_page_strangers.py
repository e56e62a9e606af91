"""What happens to a file under the open page, in a real browser: moved, replaced, damaged, forked.

And who else comes to the server: pages of other origins, names that lead here, very many streams.
"""

import http.client
import os
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from browser import browsing, expect, window
from calls import Calls
from pages import card, gripper, opened, trials, turn
from program import recoup
from serving import Server
from waiting import LIMIT, until

from recoup.study.study import Study

GONE = "or another file lies in the place of it: put it back"
ASK = """url => fetch(url, {method: 'POST', mode: 'no-cors', credentials: 'include', body: '{}'})
  .then(() => 'sent', wrong => String(wrong))"""


@pytest.fixture(scope="module")
def browser():
    with browsing("--host-resolver-rules=MAP evil.example 127.0.0.1") as found:
        yield found


def test_a_file_that_is_replaced_is_said_and_what_is_typed_stays(browser, server, tmp_path):
    other = gripper(tmp_path / "other.db", results=3)
    with opened(browser, server) as page:
        field = card(page, 31).get_by_label("Return")
        field.fill("9.25")
        os.replace(server.path, tmp_path / "aside.db")
        os.replace(other, server.path)
        field.press("Enter")
        card(page, 31).get_by_role("alert").get_by_text(GONE).wait_for()
        page.reload()
        page.get_by_role("heading", name="This study cannot be shown").wait_for()
        os.replace(server.path, other)
        os.replace(tmp_path / "aside.db", server.path)
        card(page, 31).get_by_label("Return").fill("9.5")  # it comes back by itself
        card(page, 31).get_by_label("Return").press("Enter")
        card(page, 31).wait_for(state="detached")
    server.stop()
    assert trials(server.path)[31].value == 9.5
    assert set(trials(other)) == set(range(1, 7))


def test_the_reason_stands_on_the_page_until_the_file_is_back(browser, server, tmp_path):
    with opened(browser, server) as page:
        card(page, 31).get_by_label("Return").fill("9.25")
        os.replace(server.path, tmp_path / "aside.db")  # nobody touches the page
        page.locator("#top").get_by_role("alert").get_by_text(GONE).wait_for()
        os.replace(tmp_path / "aside.db", server.path)
        page.locator("#top").get_by_text(GONE).wait_for(state="hidden")
        expect(card(page, 31).get_by_label("Return")).to_have_value("9.25")
        page.get_by_role("button", name="Ask for trials").click()
        card(page, 34).wait_for()


def test_a_file_that_is_damaged_meanwhile_is_said_in_words(browser, tmp_path):
    path = gripper(tmp_path / "robot.db")
    gripper(tmp_path / "good.db", results=3)
    with Server(tmp_path, tmp_path) as server, opened(browser, server, study=None) as page:
        page.get_by_text("27 results").wait_for()
        size = path.stat().st_size
        with path.open("r+b") as file:
            for place in range(4096, size, 4096):
                file.seek(place)
                file.write(b"\xa5" * 4096)
        page.goto(f"{server.url}#/study/robot/work")
        page.get_by_role("alert").get_by_text("damaged").first.wait_for()
        turn(page, server, "work", "good")  # the others are served
        card(page, 4).wait_for()


def test_a_study_that_is_forked_meanwhile_goes_on_and_its_fork_is_served_too(browser, tmp_path):
    path = gripper(tmp_path / "robot.db")
    with Server(tmp_path, tmp_path) as server, opened(browser, server) as page:
        card(page, 31).get_by_label("Return").fill("9.25")
        assert recoup("study", "fork", path, tmp_path / "fork.db").returncode == 0
        card(page, 31).get_by_label("Return").press("Enter")
        card(page, 31).wait_for(state="detached")
        page.get_by_role("link", name="All studies").click()
        page.get_by_role("link", name="fork").click()
        page.get_by_role("heading", name="Waiting for results").wait_for()
        page.get_by_role("button", name="Ask for trials").click()
        page.get_by_text("1 trial asked for.").wait_for()
    assert trials(path)[31].value == 9.25
    assert 31 not in {one for one, told in trials(tmp_path / "fork.db").items() if told.value}


def test_what_the_command_line_does_meanwhile_is_seen(browser, server):
    with opened(browser, server) as page:
        card(page, 31).wait_for()
        assert recoup("study", "tell", server.path, "31", "9.5").returncode == 0
        card(page, 31).wait_for(state="detached")
        turn(page, server, "see")
        page.get_by_role("button", name="Trial 31", exact=True).wait_for()
        why = ["--why", "misread"]
        assert recoup("study", "amend", server.path, "31", "8.125", *why).returncode == 0
        page.locator("tr", has_text="8.125").get_by_role("button", name="Trial 31").wait_for()
        drop = ["--drop", "the wrong pad"]
        assert recoup("study", "amend", server.path, "31", *drop).returncode == 0
        page.locator("tr", has_text="8.125").wait_for(state="detached")


def test_a_page_of_another_origin_changes_nothing(browser, server):
    with opened(browser, server) as page:
        page.route(
            "http://evil.example/*",
            lambda route: route.fulfill(body="<h1>evil</h1>", content_type="text/html"),
        )
        answers = []
        page.goto("http://evil.example/")
        page.on("response", lambda answer: answers.append((answer.url, answer.status)))
        page.evaluate(ASK, f"{server.study('robot')}/ask")
        page.evaluate(ASK, f"{server.study('robot')}/pause")
        assert {status for url, status in answers if "/v1/" in url} <= {403}
        turn(page, server, "work")
        card(page, 31).wait_for()
        assert max(trials(server.path)) == 33
        assert page.get_by_text("Paused: nobody").count() == 0


@contextmanager
def neighbour():
    """Somebody's server at another port of this computer: its address, and what it was sent."""
    came = []

    class Keeps(BaseHTTPRequestHandler):
        def do_GET(self):
            came.append(dict(self.headers))
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<h1>next door</h1>")

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Keeps) as found:
        threading.Thread(target=found.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{found.server_port}/", came
        found.shutdown()


def test_a_page_at_another_port_of_this_computer_gets_nothing_to_read_or_write_with(
    browser, server
):
    with opened(browser, server) as page, neighbour() as (address, came):
        page.goto(address)
        page.get_by_role("heading", name="next door").wait_for()
        assert page.evaluate("[localStorage.length, sessionStorage.length]") == [0, 0]
        for verb in ("ask", "pause"):
            page.evaluate(ASK, f"{server.study('robot')}/{verb}")
        for said in came:
            kept = {name: said[name] for name in ("Cookie", "Authorization") if name in said}
            calls = Calls(server, token="")
            assert calls("GET", "/v1/studies/robot", headers=kept).status == 401
            assert calls("POST", "/v1/studies/robot/pause", {}, headers=kept).status == 401
        turn(page, server, "work")  # the session is there still
        card(page, 31).wait_for()
        assert max(trials(server.path)) == 33
        assert page.get_by_text("Paused: nobody").count() == 0


def test_another_tab_is_open_too_until_the_session_ends(browser, server):
    with opened(browser, server) as page:
        other = page.context.new_page()
        other.goto(f"{server.url}#/study/robot/work")
        card(other, 31).get_by_label("Return").fill("9.25")
        session = page.evaluate("localStorage.getItem('recoup-session')")
        assert Calls(server)("DELETE", "/v1/session", token=session).status == 204
        other.get_by_label("Token").wait_for()  # its stream has ended
        other.get_by_label("Token").fill(server.token)
        other.get_by_role("button", name="Open").click()
        other.get_by_label("Token").wait_for(state="detached")
        expect(card(other, 31).get_by_label("Return")).to_have_value("9.25")


def test_a_name_that_somebody_has_pointed_here_is_refused(browser, server):
    with window(browser) as page:
        answered = page.goto(f"http://evil.example:{server.port}/#token={server.token}")
        assert answered.status == 403
        page.get_by_text("the Host of the request is not this server").wait_for()


def test_a_page_works_while_somebody_holds_two_hundred_streams(browser, server):
    held = []
    for _ in range(200):
        one = http.client.HTTPConnection("127.0.0.1", server.port, timeout=LIMIT)
        one.request(
            *("GET", "/v1/studies/robot/events"),
            headers={"Authorization": f"Bearer {server.token}"},
        )
        held.append((one, one.getresponse()))
    assert [answer.status for _, answer in held].count(200) == 100
    with opened(browser, server) as page:
        card(page, 31).get_by_label("Return").fill("9.25")
        card(page, 31).get_by_label("Return").press("Enter")
        card(page, 31).wait_for(state="detached")
        with Study.open(server.path) as study:
            study.tell(32, 9.0)
        card(page, 32).wait_for(state="detached")  # it looks again without a stream
        for connection, answer in held:
            answer.close()
            connection.close()
        with page.expect_response(lambda answer: "events" in answer.url and answer.status == 200):
            pass  # and has one as soon as there is room
        with Study.open(server.path) as study:
            study.tell(33, 9.0)
        card(page, 33).wait_for(state="detached")
    until(lambda: trials(server.path)[31].value == 9.25)


def test_the_server_is_killed_between_a_commit_and_its_answer(browser, server):
    with opened(browser, server) as page:
        statuses = []

        def killed(route):
            if statuses:
                return route.continue_()
            statuses.append(route.fetch().status)
            server.kill()
            return route.abort()

        page.route("**/tell", killed)
        card(page, 31).get_by_label("Return").fill("9.25")
        card(page, 31).get_by_label("Return").press("Enter")
        page.get_by_text("The server does not answer. What is typed stays").wait_for()
        assert statuses == [200]  # it is on disk
        assert trials(server.path)[31].value == 9.25
        server.start()
        card(page, 31).wait_for(state="detached")
        page.get_by_text("The server does not answer. What is typed").wait_for(state="hidden")
        with Study.open(server.path, read_only=True) as study:
            assert study.told_later() == []
            assert [one.value for one in study if one.id == 31] == [9.25]
        assert recoup("study", "check", server.path).returncode == 0

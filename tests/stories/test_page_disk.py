"""A real full disk under a served study: 507, nothing changed, and on once there is room."""

import pytest
from browser import browsing, expect
from calls import Calls
from pages import card, gripper, opened, trials
from serving import Server
from small_disk import full, small_disk
from waiting import until

from recoup.study.study import Study

ONE = "/v1/studies/robot"


@pytest.fixture
def server(tmp_path):
    with small_disk(tmp_path / "disk") as disk:
        path = gripper(disk / "robot.db")
        with Server(tmp_path, path) as started:
            started.disk, started.path = disk, path
            yield started


POSTS = {
    "trials/31/tell": {"return": 9.0},
    "tell": [{"id": 31, "return": 9.0}, {"id": 32, "failed": "it slipped"}],
    "ask": {"n": 50},
    "enqueue": {"params": {"damping": 0.5, "stiffness": 100, "approach": 0}},
    "note": {"text": "x" * 9000},
    "trials/1/amend": {"return": 2.0},
    "trials/33/cancel": {},
    "pause": {},
}


def test_nothing_is_changed_on_a_full_disk_and_it_goes_on_once_there_is_room(server):
    calls = Calls(server)
    before = calls.get(ONE).said
    keyed = {"Idempotency-Key": "the-key-of-an-ask"}
    with full(server.disk):
        for path, body in POSTS.items():
            answered = calls.post(f"{ONE}/{path}", body)
            assert answered.status == 507, (path, answered)
            assert answered.headers["Content-Type"] == "application/problem+json"
            assert "is full: nothing was changed; free some space" in answered.said["detail"]
        assert calls.post(f"{ONE}/ask", {"n": 50}, **keyed).status == 507
        for path in ("", "/snapshot", "/waiting", "/trials", "/points", "/moves"):
            assert calls.get(f"{ONE}{path}").status == 200  # it is still shown
        now = calls.get(ONE).said
    assert now["counts"] == before["counts"]
    assert trials(server.path)[31].status == "pending"
    asked = calls.post(f"{ONE}/ask", {"n": 50}, **keyed).said["trials"]
    assert [one["id"] for one in asked] == list(range(34, 84))
    assert calls.post(f"{ONE}/trials/31/tell", {"return": 9.0}).status == 200
    assert server.stop() == 130
    with Study.open(server.path) as study:
        assert [one.value for one in study if one.id == 31] == [9.0]
        assert len(study.pending()) == 2 + 50


def test_what_was_typed_stays_on_the_page_until_there_is_room(server):
    with browsing() as browser, opened(browser, server) as page:
        field = card(page, 31).get_by_label("Return")
        field.fill("9.25")
        with full(server.disk):
            field.press("Enter")
            card(page, 31).get_by_role("alert").get_by_text(
                "is full: nothing was changed"
            ).wait_for()
            page.get_by_role("button", name="Ask for trials").click()
            page.locator("form").get_by_role("alert").get_by_text("is full").first.wait_for()
        expect(field).to_have_value("9.25")
        expect(field).to_be_enabled()
        field.press("Enter")
        card(page, 31).wait_for(state="detached")
        until(lambda: trials(server.path)[31].value == 9.25)

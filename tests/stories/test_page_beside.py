"""What is told beside a return at the live page, told after all, and put right."""

from types import SimpleNamespace

import pytest
from browser import complaints, expect
from pages import assert_fits, card, opened, trials, turn
from serving import Server
from waiting import until

from recoup.study.study import Study


@pytest.fixture
def arm(tmp_path):
    """A study that keeps a force and a clearance, and is told a payload; two trials wait."""
    path = tmp_path / "robot.db"
    limits = ["force<50", "force>-5", "clearance>=0.1"]
    with Study.open(path, params={"kp": (1, 200, "log")}, limits=limits, seed=0) as study:
        for i in range(4):
            (trial,) = study.ask(1)
            beside = {"force": 30.0 + i, "clearance": 0.5}
            study.tell(trial.id, 1000.0 + i, also=beside, context={"payload": 1.5})
        study.ask(2)
    with Server(tmp_path, path) as server:
        yield SimpleNamespace(server=server, path=path)


@pytest.fixture
def pair(tmp_path):
    """A study whose trials come in mirrored pairs; one pair waits."""
    path = tmp_path / "robot.db"
    how = {"method": "pgpe", "mirrored": True, "seed": 0}
    with Study.open(path, params={"kp": (1, 200, "log")}, **how) as study:
        for trial in study.ask(4):
            study.tell(trial.id, float(trial.id))
        study.ask(2)
    with Server(tmp_path, path) as server:
        yield SimpleNamespace(server=server, path=path)


def beside(arm, number):
    """A result in the file, and what stands beside it, the context by its prefix."""
    with Study.open(arm.path, read_only=True) as study:
        told = study.store.results([number])[number].told
        return told.value, told.also


def window_of(page, number):
    """The window of a trial, opened from the table."""
    page.get_by_role("button", name=f"Trial {number}", exact=True).first.click()
    page.get_by_role("dialog").get_by_text("What was tried").wait_for()
    return page.get_by_role("dialog")


def change(window):
    window.get_by_role("button", name="What would change?").click()
    window.get_by_role("button", name="Change it").click()
    window.wait_for(state="detached")


def test_a_number_that_has_a_limit_is_told_or_said_not_to_be_known(browser, arm):
    with opened(browser, arm.server, width=390, height=844) as page:
        one = card(page, 5)
        one.get_by_text("To stay above -5 and below 50.").wait_for()
        one.get_by_text("To stay at or above 0.1.").wait_for()
        assert complaints(page) == ""
        assert_fits(page)
        one.get_by_label("Return").fill("1004")
        one.get_by_label("clearance", exact=True).fill("0.25")
        one.get_by_label("Return").press("Enter")
        one.get_by_text("force: type the number, or say that it is not known.").wait_for()
        expect(one.get_by_label("force", exact=True)).to_be_focused()
        one.get_by_label("force is not known").check()
        expect(one.get_by_label("force", exact=True)).to_be_disabled()
        turn(page, arm.server, "deploy")
        turn(page, arm.server, "work")
        expect(one.get_by_label("force is not known")).to_be_checked()  # it is kept
        one.get_by_label("Return").press("Enter")
        one.wait_for(state="detached")
        assert beside(arm, 5) == (1004.0, {"clearance": 0.25})


def test_cards_get_the_fields_of_a_context_that_is_told_for_the_first_time(browser, server):
    with opened(browser, server) as page:
        card(page, 31).get_by_label("Return").fill("9.25")
        assert card(page, 31).get_by_label("payload").count() == 0
        with Study.open(server.path) as study:
            study.tell(33, 9.0, context={"payload": 2.0, "wind": 0.5})
        card(page, 31).get_by_label("payload").fill("1.5")
        expect(card(page, 31).get_by_label("Return")).to_have_value("9.25")
        card(page, 31).get_by_label("Return").press("Enter")
        card(page, 31).get_by_text("wind: fill in all that was known before").wait_for()
        card(page, 31).get_by_label("wind").fill("0.25")
        card(page, 31).get_by_label("Return").press("Enter")
        card(page, 31).wait_for(state="detached")
        assert beside(server, 31) == (9.25, {"context.payload": 1.5, "context.wind": 0.25})


def test_what_stands_beside_a_return_is_shown_and_put_right(browser, arm):
    with opened(browser, arm.server, "see") as page:
        right = window_of(page, 2)
        right.get_by_text("payload, known before").wait_for()
        expect(right.get_by_label("force", exact=True)).to_have_value("31")
        assert complaints(page) == ""
        right.get_by_label("force", exact=True).fill("")
        right.get_by_role("button", name="What would change?").click()
        right.get_by_text("force: type the number, or say that it is not known.").wait_for()
        right.get_by_label("force", exact=True).fill("13")
        right.get_by_label("payload").fill("2.5")
        change(right)
        until(lambda: beside(arm, 2)[1]["force"] == 13)
        also = {"clearance": 0.5, "force": 13.0, "context.payload": 2.5}
        assert beside(arm, 2) == (1001.0, also)
        right = window_of(page, 2)
        expect(right.get_by_label("force", exact=True)).to_have_value("13")
        right.get_by_label("clearance is not known").check()
        right.get_by_label("The right number").fill("1003 1004 1001")
        change(right)
        until(lambda: trials(arm.path)[2].episodes == 3)
        value, also = beside(arm, 2)
        assert (round(value, 3), sorted(also)) == (1002.667, ["context.payload", "force"])


def test_who_takes_back_one_of_a_pair_is_told_that_the_other_goes_too(browser, pair):
    words = "Trials 5 and 6, a mirrored pair, are cancelled"
    with opened(browser, pair.server) as page:
        card(page, 5).get_by_text("It failed, or will not be tried").click()
        card(page, 5).get_by_role("button", name="It will not be tried").click()
        page.locator("#said").get_by_text(words).wait_for()
        page.locator(".told li").get_by_text(words).wait_for()
        card(page, 6).wait_for(state="detached")


def test_a_trial_that_was_taken_back_is_told_after_all(browser, pair):
    with opened(browser, pair.server) as page:
        card(page, 5).get_by_text("It failed, or will not be tried").click()
        card(page, 5).get_by_role("button", name="It will not be tried").click()
        page.locator(".told li").get_by_role("button", name="Put right").click()
        after = page.get_by_role("dialog")
        after.get_by_role("heading", name="Tell its result after all").wait_for()
        assert complaints(page) == ""
        after.get_by_label("What came of it").fill("5.5")
        after.get_by_role("button", name="Tell it after all").click()
        after.wait_for(state="detached")
        page.locator(".told li").get_by_text("Trial 5 was told after all.").wait_for()
        assert trials(pair.path)[5].value == 5.5
        turn(page, pair.server, "see")
        after = window_of(page, 6)
        after.get_by_label("It failed").check()
        after.get_by_role("button", name="Tell it after all").click()
        after.get_by_text("Say in a few words what happened.").wait_for()
        after.get_by_label("What happened").fill("a cable came off")
        after.get_by_role("button", name="Tell it after all").click()
        after.wait_for(state="detached")
        assert trials(pair.path)[6].note == "a cable came off"

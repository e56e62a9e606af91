"""Work at the live page, in a real browser: what waits, told, told wrongly, told twice."""

import re
from types import SimpleNamespace

import pytest
from browser import expect, window
from pages import Held, card, gripper, opened, trials, turn
from serving import Server
from waiting import until

from recoup.study.study import Study


@pytest.fixture
def robot(tmp_path):
    path = gripper(tmp_path / "robot.db")
    with Server(tmp_path, path) as server:
        yield SimpleNamespace(server=server, path=path)


def told(robot, number):
    """What the file says of a trial, once it has a result."""
    until(lambda: trials(robot.path)[number].status not in ("pending",))
    return trials(robot.path)[number]


def test_the_address_logs_in_and_a_return_is_told(browser, robot):
    with opened(browser, robot.server) as page:
        one = card(page, 31)
        with Study.open(robot.path, read_only=True) as study:
            for name, value in study.pending()[0].params.items():
                assert name in one.inner_text()
                assert repr(value) in one.inner_text()  # every digit: it is typed into a robot
        for cell in one.locator("td.number").all():
            assert cell.locator(".name").evaluate("x => x.getClientRects().length") == 1
        one.get_by_label("Return").fill("9.25")
        one.get_by_label("Return").press("Enter")
        page.get_by_text("Trial 31: 9.25 told.").first.wait_for()
        one.wait_for(state="detached")
        assert told(robot, 31).value == 9.25


def test_returns_of_several_episodes(browser, robot):
    with opened(browser, robot.server) as page:
        card(page, 31).get_by_label("Return").fill("9 9.5; 10")
        card(page, 31).get_by_text("3 episodes, 9.5 on average").wait_for()
        card(page, 31).get_by_role("button", name="Tell", exact=True).click()
        page.get_by_text("Trial 31: 9, 9.5, 10 told.").first.wait_for()
        assert (told(robot, 31).value, told(robot, 31).episodes) == (9.5, 3)


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ("good", "is no number"),
        ("nan", "is no number"),
        ("1e999", "too large"),
        ("9,5", "can be read in two ways"),
        ("", "Type the number"),
    ],
)
def test_a_return_that_is_no_number_is_refused_and_stays(browser, robot, typed, sentence):
    with opened(browser, robot.server) as page:
        field = card(page, 31).get_by_label("Return")
        field.fill(typed)
        field.press("Enter")
        card(page, 31).get_by_role("alert").get_by_text(sentence).wait_for()
        expect(field).to_have_value(typed)
        expect(field).to_have_attribute("aria-invalid", "true")
        expect(field).to_be_focused()
        assert trials(robot.path)[31].status == "pending"


def test_a_failure_needs_its_reason(browser, robot):
    with opened(browser, robot.server) as page:
        one = card(page, 32)
        one.get_by_text("It failed, or will not be tried").click()
        one.get_by_role("button", name="Tell that it failed").click()
        one.get_by_text("Say in a few words why it failed.").wait_for()
        one.get_by_label("What happened").fill("a <b>cable</b> came off")
        one.get_by_role("button", name="Tell that it failed").click()
        one.wait_for(state="detached")
        assert (told(robot, 32).status, told(robot, 32).note) == (
            "failed",
            "a <b>cable</b> came off",
        )


def test_one_that_will_not_be_tried(browser, robot):
    with opened(browser, robot.server) as page:
        card(page, 33).get_by_text("It failed, or will not be tried").click()
        card(page, 33).get_by_role("button", name="It will not be tried").click()
        card(page, 33).wait_for(state="detached")
        assert told(robot, 33).status == "cancelled"


def test_more_are_asked_for_and_the_mean_and_ones_own(browser, robot):
    with opened(browser, robot.server) as page:
        page.get_by_label("How many").fill("2")
        page.get_by_role("button", name="Ask for trials").click()
        card(page, 35).wait_for()
        page.get_by_role("button", name="Try the mean").click()
        card(page, 36).get_by_text("the mean policy").wait_for()
        page.get_by_role("button", name="Try my own").click()
        window_ = page.get_by_role("dialog")
        window_.get_by_label(re.compile("damping")).fill("0.625")
        window_.get_by_role("button", name="Ask for it now").click()
        card(page, 37).wait_for()
        with Study.open(robot.path, read_only=True) as study:
            waits = {one.trial.id: one for one in study.waiting()}
            assert waits[37].trial.params["damping"] == pytest.approx(0.625)
            assert waits[36].trial.params == study.mean_policy
            assert waits[35].lease_until is None  # a person takes the time that it takes


def test_values_of_ones_own_are_put_in_line(browser, robot):
    with opened(browser, robot.server) as page:
        page.get_by_role("button", name="Try my own").click()
        page.get_by_role("dialog").get_by_label(re.compile("damping")).fill("much")
        page.get_by_role("dialog").get_by_role("button", name="Put it in line").click()
        page.get_by_role("dialog").get_by_text("is no number").wait_for()
        page.get_by_role("dialog").get_by_label(re.compile("damping")).fill("0.5")
        page.get_by_role("dialog").get_by_role("button", name="Put it in line").click()
        page.get_by_text("1 candidate in line").wait_for()
        with Study.open(robot.path, read_only=True) as study:
            assert study.queue()[0]["params"]["damping"] == pytest.approx(0.5)


def test_a_slip_is_pointed_out_and_put_right(browser, robot):
    with opened(browser, robot.server) as page:
        card(page, 31).get_by_label("Return").fill("9250")
        card(page, 31).get_by_label("Return").press("Enter")
        page.get_by_role("alert").get_by_text("amend it if it is a slip").wait_for()
        page.get_by_role("button", name="Put right").first.click()
        right = page.get_by_role("dialog")
        right.get_by_label("The right number").fill("9.25")
        right.get_by_label("Why it is changed").fill("the point was missing")
        right.get_by_role("button", name="What would change?").click()
        right.get_by_text("This would change").wait_for()
        assert trials(robot.path)[31].value == 9250  # nothing has been changed yet
        right.get_by_role("button", name="Change it").click()
        right.wait_for(state="detached")
        until(lambda: trials(robot.path)[31].value == 9.25)


def test_one_trial_told_from_two_windows(browser, robot):
    with opened(browser, robot.server) as first, opened(browser, robot.server) as second:
        card(second, 31).get_by_label("Return").fill("8.5")
        card(first, 31).get_by_label("Return").fill("9.5")
        card(first, 31).get_by_label("Return").press("Enter")
        card(first, 31).wait_for(state="detached")
        card(second, 31).get_by_text("from elsewhere meanwhile").wait_for()
        expect(card(second, 31).get_by_label("Return")).to_have_value("8.5")  # what was typed stays
        card(second, 31).get_by_label("Return").press("Enter")
        card(second, 31).get_by_role("alert").get_by_text("9.5").wait_for()  # what was told first
        assert told(robot, 31).value == 9.5
        card(second, 31).get_by_role("button", name="Put the card away").click()
        card(second, 31).wait_for(state="detached")


def test_a_paused_study_gives_no_trials_until_it_is_resumed(browser, robot):
    with opened(browser, robot.server) as page:
        page.get_by_role("button", name="Pause").click()
        page.get_by_text("Paused: nobody is given trials.").wait_for()
        page.get_by_role("button", name="Ask for trials").click()
        page.get_by_role("alert").get_by_text("paused").wait_for()
        page.get_by_role("button", name="Resume").click()
        page.get_by_text("Paused: nobody is given trials.").wait_for(state="detached")
        page.get_by_role("button", name="Ask for trials").click()
        card(page, 34).wait_for()


def test_a_token_that_may_only_read_shows_all_and_tells_nothing(browser, robot):
    address = (
        f"{robot.server.url}#token={robot.server.read_address.rpartition('token=')[2].split()[-1]}"
    )
    with opened(browser, robot.server, address=address) as page:
        card(page, 31).wait_for()
        page.get_by_text("This token may only read").wait_for()
        assert page.locator("main input").count() == 0
        turn(page, robot.server, "data")
        assert page.get_by_role("button", name="Put these means in line").count() == 0


def test_what_another_process_tells_is_seen_without_a_touch(browser, robot):
    with opened(browser, robot.server) as page:
        card(page, 33).wait_for()
        with Study.open(robot.path) as study:
            study.tell(33, 9.0)
        card(page, 33).wait_for(state="detached")


def test_the_wrong_token_opens_nothing(browser, robot):
    with window(browser) as page:
        page.goto(f"{robot.server.url}#token=wrong")
        page.get_by_text("this token is not known here").first.wait_for()
        assert "token" not in page.url
        page.get_by_label("Token").fill("wrong again")
        page.get_by_role("button", name="Open").click()
        page.get_by_role("alert").get_by_text("not known").wait_for()
        page.get_by_label("Token").fill(robot.server.address)
        page.get_by_role("button", name="Open").click()
        page.get_by_role("heading", name="What is served here").wait_for()


def test_that_nothing_waits_is_said_once_somebody_has_looked(browser, robot):
    nothing = "Nothing waits for a result: ask for trials above."
    with Study.open(robot.path) as study:
        for trial in study.pending():
            study.cancel(trial.id)
    with opened(browser, robot.server, study=None) as page:
        looked = Held(page, "**/waiting")
        turn(page, robot.server, "work")
        looked.wait()
        expect(page.get_by_text(nothing)).to_be_hidden()
        looked.go()
        page.get_by_text(nothing).wait_for()
        robot.server.kill()
        page.get_by_text("The server does not answer.").first.wait_for()
        expect(page.get_by_text(nothing)).to_be_hidden()
        robot.server.start()
        page.get_by_text(nothing).wait_for()


def test_a_trial_whose_lease_has_run_out_is_named_when_it_is_given_again(browser, robot):
    with Study.open(robot.path) as study:
        study.ask(20)
        study.ask(1, lease=0.001)
    with opened(browser, robot.server, height=500) as page:
        card(page, 54).get_by_text("lent: ran out").wait_for()
        expect(card(page, 54)).not_to_be_in_viewport()
        page.get_by_role("button", name="Ask for trials").click()
        page.locator("#said").get_by_text("Trial 54 again: its lease had run out.").wait_for()
        expect(card(page, 54)).to_be_in_viewport()
        card(page, 54).get_by_text("handed out 2 times").wait_for()
        assert max(trials(robot.path)) == 54


def test_what_is_said_in_passing_comes_into_a_line_that_was_there(browser, robot):
    heard = """() => { window.heard = [];
      const hear = one => one.addedNodes.forEach(x => heard.push(x.textContent));
      new MutationObserver(all => all.forEach(hear)).observe(
        document.getElementById('said'), { childList: true }); }"""
    said = "Paused: nobody is given trials until it is resumed."
    with opened(browser, robot.server) as page:
        card(page, 31).wait_for()
        line = page.locator("#said")
        assert line.evaluate("one => getComputedStyle(one).visibility") == "visible"
        assert line.get_attribute("role") == "status"
        page.evaluate(heard)
        for _ in range(2):
            with page.expect_response("**/pause"):
                page.get_by_role("button", name="Pause").click()
            page.locator("form.asking:not([aria-busy])").wait_for()
        assert page.evaluate("heard") == [said, said]

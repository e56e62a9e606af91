"""A run of `recoup train` as it is served: its routes, its page, its curve, its film."""

import json
import re
import shutil

import pytest
from browser import expect
from calls import Calls
from pages import assert_fits, assert_quiet, opened
from serving import Server

import recoup
from recoup.report.html import measured
from recoup.runs.render import policy_shown, render_run
from recoup.study.study import Study

PLAYING = "video => { video.marked = true; return video.readyState; }"
PNG = b"\x89PNG\r\n\x1a\n made by recoup tEXtDescription\0"
FILM = b"\x00\x00\x00\x18ftypmp42\x00\x00\x00\x00mp42isom"  # how a film begins


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The directory of a short run of the mountain car."""
    out = tmp_path_factory.mktemp("trained") / "car"
    recoup.train("mountain-car", "pgpe", iterations=3, batch=4, seed=0, out=out)
    return out


@pytest.fixture
def server(trained, tmp_path):
    run = shutil.copytree(trained, tmp_path / "car")
    with Server(tmp_path, run) as started:
        started.run = run
        yield started


def test_a_run_says_what_the_library_says(server):
    calls, run = Calls(server), recoup.load(server.run)
    assert [one["name"] for one in calls.get("/v1").said["runs"]] == ["car"]
    assert calls.get("/v1").said["studies"] == []
    found = calls.get("/v1/runs/car").said
    assert found["finished"] is True
    assert found["film"] is False
    plain = json.loads(json.dumps(run.summary(), default=float))
    for key, value in plain.items():
        if key != "name":
            assert found[key] == value, key


def test_its_curve_is_that_of_its_history(server):
    calls, run = Calls(server), recoup.load(server.run)
    found = calls.get("/v1/runs/car/curve").said
    assert found["episodes"] == [row.episodes for row in run.history]
    assert found["mean"] == [row.return_curve for row in run.history]
    assert found["stderr"] == [row.return_curve_stderr for row in run.history]


def test_a_film_is_served_once_there_is_one_and_in_parts(server):
    calls = Calls(server)
    assert "no film was made of car" in calls.get("/v1/runs/car/film").said["detail"]
    assert calls.get("/v1/runs/car/film").status == 404
    (server.run / "policy.mp4").write_bytes(FILM)
    found = calls.get("/v1/runs/car/film")
    assert (found.status, found.content) == (200, FILM)
    assert found.headers["Content-Type"] == "video/mp4"
    part = calls.get("/v1/runs/car/film", Range="bytes=4-7")  # as players ask for it
    assert (part.status, part.content) == (206, b"ftyp")
    assert calls.get("/v1/runs/car").said["film"] is True


def test_a_film_strip_is_served_and_what_shows_an_older_policy_is_said(server):
    calls = Calls(server)
    assert "no film strip was made of car" in calls.get("/v1/runs/car/strip").said["detail"]
    (server.run / "strip.png").write_bytes(PNG + policy_shown(recoup.load(server.run)).encode())
    (server.run / "policy.mp4").write_bytes(FILM + b"made by recoup " + b"0" * 64)
    found = calls.get("/v1/runs/car/strip")
    assert (found.status, found.headers["Content-Type"]) == (200, "image/png")
    said = calls.get("/v1/runs/car").said
    assert (said["film"], said["strip"], said["filmed_before"]) == (True, True, ["policy.mp4"])


@pytest.mark.parametrize(("name", "path"), [("policy.mp4", "film"), ("strip.png", "strip")])
def test_what_a_link_in_a_run_leads_to_is_not_served(server, tmp_path, name, path):
    (tmp_path / "secret").write_text("not served")
    (server.run / name).symlink_to(tmp_path / "secret")
    assert Calls(server).get(f"/v1/runs/car/{path}").status == 404
    assert Calls(server).get("/v1/runs/car").said[path] is False


@pytest.mark.parametrize("path", ["", "/curve", "/film", "/strip"])
def test_what_is_no_run_is_said(server, path):
    answered = Calls(server).get(f"/v1/runs/nobody{path}")
    assert answered.status == 404
    assert answered.said["detail"] == "there is no run 'nobody' here."


def test_the_study_of_a_run_is_shown_and_takes_nothing(server):
    calls = Calls(server)
    assert calls.get("/v1/studies/car").said["run"] == "car"
    answered = calls.post("/v1/studies/car/ask", {})
    assert answered.status == 409
    assert "the study of a run, which asks and tells by itself" in answered.said["detail"]


def test_its_page_has_its_curve_and_its_film_goes_on_while_the_page_looks_again(browser, server):
    with opened(browser, server, study=None) as page:
        page.clock.install()
        page.goto(f"{server.url}#/run/car")
        page.locator(".plot canvas").wait_for()
        assert page.locator("video").count() == 0
        (server.run / "policy.mp4").write_bytes(FILM)
        page.clock.fast_forward("00:06")  # it looks every five seconds
        video = page.locator("video")
        video.wait_for()
        video.evaluate(PLAYING)
        canvas = page.locator(".plot canvas").evaluate("c => { c.marked = true; }")
        assert canvas is None
        for _ in range(2):
            with page.expect_response("**/curve"):
                page.clock.fast_forward("00:06")
        assert video.evaluate("video => video.marked") is True  # the same: it was not begun anew
        assert page.locator(".plot canvas").evaluate("c => c.marked") is True
        assert_quiet(page, server)


def test_its_page_says_what_it_is_worth_and_where_its_film_is_not_of_the_newest(browser, server):
    run = recoup.load(server.run)
    render_run(server.run)
    with opened(browser, server, study=None) as page:
        page.goto(f"{server.url}#/run/car")
        page.get_by_text("expected return of the mean policy").wait_for()
        for one in (run.return_search, run.return_mean_policy):
            page.get_by_text(f"{measured(*one[:2])} ({one.episodes} episodes)").wait_for()
        page.get_by_role("img", name="Pictures of an episode").wait_for()
        expect(page.get_by_text("An episode of the mean policy.")).to_have_count(2)
        assert page.locator("figure img").evaluate("img => img.decode().then(() => true)")
        points = sum(row.return_curve == row.return_curve for row in run.history)
        assert f"{points} points" in page.locator(".plot").get_attribute("aria-label")
        page.get_by_role("link", name="Its study").click()
        page.get_by_role("heading", name="What it says").wait_for()
    recoup.resume(server.run, iterations=4)
    said = Calls(server).get("/v1/runs/car").said
    assert said["filmed_before"] == ["policy.mp4", "strip.png"]


def test_curves_stand_side_by_side_on_the_same_axes(browser, trained, tmp_path):
    for name in ("one", "<b>two"):
        shutil.copytree(trained, tmp_path / name)
    recoup.resume(tmp_path / "<b>two", iterations=5)
    Study.open(tmp_path / "robot.db", dim=2).close()  # which is no run
    with Server(tmp_path, tmp_path) as server, opened(browser, server, study=None) as page:
        page.clock.install()
        told = page.locator("li.card").filter(has=page.get_by_role("link", name="one", exact=True))
        told.get_by_text("12 results").wait_for()
        page.get_by_role("link", name="Their curves side by side").click()
        figures = page.locator("figure")
        expect(figures).to_have_count(2)
        for name in ("one", "<b>two"):
            one = figures.filter(has=page.get_by_role("link", name=name, exact=True))
            one.locator("canvas").wait_for()
            run = recoup.load(tmp_path / name)
            worth = measured(*run.return_mean_policy[:2])
            one.get_by_text(f"mountain-car, pgpe; the mean policy: {worth}").wait_for()
            points = f"A curve of {len(run.history)} points"
            expect(one.locator(".plot")).to_have_attribute("aria-label", re.compile(points))
        across = [one.bounding_box() for one in figures.all()]
        assert across[0]["y"] == across[1]["y"]
        assert across[0]["x"] < across[1]["x"]
        canvas = page.locator("canvas").first.evaluate("c => { c.marked = true; }")
        assert canvas is None
        with page.expect_response(re.compile("two/curve")):
            page.clock.fast_forward("00:06")
        assert page.locator("canvas").first.evaluate("c => c.marked")  # not drawn anew
        page.set_viewport_size({"width": 390, "height": 844})
        assert_fits(page)
        assert_quiet(page, server)
        (tmp_path / "one" / "study.db").write_bytes(b"nothing")
        page.clock.fast_forward("00:06")
        figures.filter(has_text="one").get_by_role("alert").wait_for()  # and the other goes on
        page.get_by_role("link", name="<b>two").click()
        page.get_by_role("heading", name="Expected return over episodes").wait_for()


def test_a_curve_that_comes_later_is_drawn(browser, server):
    """A run that has only begun has nothing to draw yet, or a file that is not whole."""
    history = server.run / "study.db"
    aside = server.run / "aside.db"
    with opened(browser, server, study=None, width=390, height=844) as page:
        page.clock.install()
        history.rename(aside)
        page.goto(f"{server.url}#/run/car")
        page.locator("main").get_by_role("alert").filter(has_text="car").wait_for()
        aside.rename(history)
        page.clock.fast_forward("00:06")
        page.locator(".plot canvas").wait_for()
        page.locator("main").get_by_role("alert").wait_for(state="hidden")
        assert_fits(page)

"""Ask the data: sent is what differs from the newest, and what was not touched follows it."""

import re
from contextlib import contextmanager

import numpy as np
import pytest
from browser import expect
from pages import opened
from serving import Server

import recoup
from recoup.study.study import Study

MIXED = {"n": (0, 10, "int"), "kp": {"low": 1, "high": 200, "scale": "log", "unit": "N/m"}}
MIXED |= {"mode": ["a", "b", "c"]}
BOTH = ("textbox", "slider")
SLOPE = {"kp": (1, 200, "log"), "kd": (0, 5)}


def mixed(params, noise):
    fits = -abs(params["n"] - 6.4) - abs(np.log(params["kp"] / 60))
    return fits + (params["mode"] == "b") + noise


def slope(params, noise):
    along = np.log(params["kp"] / 60) + params["kd"] - 1
    return -10 * along**2 - abs(params["kd"] - 1) + noise


def told(path, earned, results=40, **how):
    noise = np.random.default_rng(0).normal(0, 0.1, results)
    with Study.open(path, seed=0, **how) as study:
        go_on(study, earned, noise)
    return path


def go_on(study, earned, noise):
    for one in noise:
        (trial,) = study.ask(1)
        study.tell(trial.id, float(earned(trial.params, one)))


def climbing(params, noise):
    return sum(params.values()) + noise


def in_actions(path):
    draws = np.random.default_rng(1)
    with Study.open(path, dim=2, method="iw-reinforce-ob", horizon=5, batch=4, seed=0) as study:
        for _ in range(8):
            (trial,) = study.ask(1)
            features, actions = draws.normal(size=(5, 2)), draws.normal(size=(5, 1))
            rewards = -((actions[:, 0] - features[:, 0]) ** 2)
            study.tell(trial.id, trajectory=recoup.Trajectory(features, actions, rewards, steps=5))
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("asked")
    told(found / "mixed.db", mixed, params=MIXED)
    told(found / "full.db", slope, params=SLOPE, family="full")
    told(found / "plain.db", climbing, 4, dim=2, batch=4)
    in_actions(found / "actions.db")
    return found


@pytest.fixture(scope="module")
def server(folder):
    with Server(folder, folder) as started:
        yield started


@contextmanager
def asking(browser, server, name):
    """The view of a study at rest; `page.sent` are the candidates that were asked about."""
    with opened(browser, server, "data", name) as page:
        page.get_by_text("At rest").wait_for()
        page.sent = []
        page.on(
            "request",
            lambda r: page.sent.append(r.post_data_json) if r.url.endswith("/evaluate") else None,
        )
        yield page


def whole(page, do):
    """Does something, and gives the whole answer that comes of it."""
    with page.expect_response(
        lambda r: r.url.endswith("/evaluate") and not r.request.post_data_json.get("quick")
    ) as answer:
        do()
    page.locator(".answer:not(.moving)").wait_for()
    return answer.value


def typed(page, name, text):
    field = page.get_by_role("textbox", name=name)
    field.fill(text)
    return whole(page, lambda: field.press("Enter"))


def test_the_answer_is_that_of_evaluate_for_what_differs(browser, server, folder):
    with asking(browser, server, "mixed") as page:
        before = page.get_by_role("textbox", name="kp").input_value()
        newest = page.locator(".answer-value").inner_text()
        found = typed(page, "kp", "80")
        assert found.request.post_data_json == {"mean": {"kp": 80}, "std": None}
        with Study.open(folder / "mixed.db", read_only=True) as study:
            assert found.json()["mean"] == study.evaluate(mean={"kp": 80}).mean
        found = typed(page, "kp", before)
        assert found.request.post_data_json == {"mean": None, "std": None}
        expect(page.locator(".answer-value")).to_have_text(newest)


def test_sliders_that_are_put_back_ask_for_the_newest(browser, server):
    with asking(browser, server, "mixed") as page:
        for name in ("Spread of all parameters", "Spread of kp", "kp"):
            slider = page.get_by_role("slider", name=name, exact=name != "kp").first
            said = slider.get_attribute("aria-valuetext")
            slider.press("PageUp")
            assert slider.get_attribute("aria-valuetext") != said
            found = whole(page, lambda s=slider: s.press("PageDown"))
            assert found.request.post_data_json == {"mean": None, "std": None}
            assert slider.get_attribute("aria-valuetext") == said
        assert said.endswith(" N/m")


def test_another_spread_leaves_out_correlations_and_the_page_says_so(browser, server):
    with asking(browser, server, "full") as page:
        words = page.get_by_text("the correlations of the newest distribution are left out")
        expect(words).to_be_hidden()
        slider = page.get_by_role("slider", name="Spread of kd")
        found = whole(page, lambda: slider.press("ArrowRight"))
        assert list(found.request.post_data_json["std"]) == ["kd"]
        words.wait_for()
        whole(page, lambda: slider.press("ArrowLeft"))
        expect(words).to_be_hidden()


def test_without_names_all_are_sent_or_none(browser, server):
    with asking(browser, server, "plain") as page:
        before = page.get_by_role("textbox", name="theta_0").input_value()
        found = typed(page, "theta_0", "0.25").request.post_data_json
        assert (list(found["mean"]), found["std"]) == (["theta_0", "theta_1"], None)
        assert typed(page, "theta_0", before).request.post_data_json["mean"] is None


def test_what_is_best_is_said_alone_and_with_the_spread_around_it(browser, server):
    with asking(browser, server, "mixed") as page:
        with page.expect_response("**/suggest") as found:
            page.get_by_role("button", name="Best within the data").click()
        alone = found.value.json()
        page.get_by_text("Tried as they are, these values should earn ").wait_for()
        said = page.get_by_text("Tried as they are").inner_text()
        earns = float(re.search(r"should earn (\S+) ", said)[1])
        assert earns == pytest.approx(alone["value"], rel=1e-3)
        around = page.locator(".answer-value").inner_text()
        assert said.endswith(f"; with the search's spread around them: {around}.")
        typed(page, "kp", "80")
        expect(page.get_by_text("Tried as they are")).to_have_count(0)


def test_where_nothing_keeps_the_limits_the_page_says_so(browser, server, folder):
    with Study.open(folder / "pushed.db", params=SLOPE, limits=["force<50"], seed=0) as study:
        for trial in study.ask(12):
            study.tell(trial.id, slope(trial.params, 0.0), also={"force": 60.0 + trial.id})
        said = study.suggest().words
    with asking(browser, server, "pushed") as page:
        with page.expect_response("**/suggest") as found:
            page.get_by_role("button", name="Best within the data").click()
        assert found.value.json()["params"] is None
        page.get_by_text(said).wait_for()


def test_in_actions_there_is_no_spread_and_nothing_on_the_way(browser, server):
    with asking(browser, server, "actions") as page:
        assert page.get_by_role("slider").count() == 2  # a mean each
        typed(page, "theta_0", "0.25")
        page.get_by_text("At rest").wait_for()
        assert all("quick" not in body for body in page.sent)
        assert page.locator(".wrong:visible").count() == 0


def test_a_field_that_was_looked_at_follows_once_it_is_left(browser, server, folder):
    path = told(folder / "later.db", mixed, 20, params=MIXED)
    with asking(browser, server, "later") as page, Study.open(path) as study:
        field = page.get_by_role("textbox", name="kp")
        field.focus()
        before = field.input_value()
        go_on(study, mixed, np.full(15, 0.05))
        page.locator("#top").get_by_text("35 results").wait_for()
        expect(field).to_have_value(before)
        assert study.mean_policy["kp"] != float(before)
        field.press("Tab")
        expect(field).to_have_value(str(study.mean_policy["kp"]))
        slider = page.get_by_role("slider", name="Spread of kp")
        found = whole(page, lambda: slider.press("ArrowRight"))
        assert found.request.post_data_json["mean"] is None


def test_without_bounds_a_slider_goes_around_the_newest(browser, server, folder):
    path = told(folder / "far.db", climbing, 4, dim=2, batch=4)
    with asking(browser, server, "far") as page, Study.open(path) as study:
        go_on(study, climbing, np.zeros(80))
        page.locator("#top").get_by_text("84 results").wait_for()
        field, slider = (page.get_by_role(one, name="theta_0").first for one in BOTH)
        expect(field).to_have_value(str(float(study.mean[0])))
        expect(slider).to_have_value("500")

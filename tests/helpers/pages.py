"""The page of `recoup serve` in a browser: a study to look at, and what every view must keep to."""

import re
from contextlib import contextmanager

import numpy as np
from browser import window
from serving import Server

from recoup.study.study import Study

PHONE = 390
VIEWS = {  # view -> what stands on it once it is there
    "work": "Waiting for results",
    "see": "What it says",
    "data": "What would another distribution earn?",
    "deploy": "The values to deploy",
}
WIDE = """() => {
  const scrolls = e => e.closest('.scroll, .plot, pre, .toast, .hidden, .skip');
  const all = [...document.body.querySelectorAll('*')].filter(e => e.getClientRects().length);
  const wide = e => e.getBoundingClientRect().right > innerWidth + 1 && !scrolls(e);
  return [document.documentElement.scrollWidth - innerWidth,
    all.filter(wide).map(e => `${e.tagName} ${e.innerText}`.slice(0, 80))];
}"""
PARAMS = {"stiffness": (50, 2000, "log"), "damping": (0, 1), "approach": (-0.1, 0.1)}


def earned(params, noise):
    """A return that three gains earn."""
    stiffness, damping, approach = (params[name] for name in PARAMS)
    return (
        10
        - np.log(stiffness / 400) ** 2
        - 8 * (damping - 0.7) ** 2
        - 300 * (approach - 0.02) ** 2
        + noise
    )


def gripper(path, results=30, waiting=3, **how):
    """A study with results, failures, and trials that wait."""
    noise = np.random.default_rng(0).normal(0, 0.3, results)
    with Study.open(path, params=PARAMS, seed=1, **how) as study:
        for i in range(results):
            (trial,) = study.ask(1)
            failed = i % 11 == 7
            value = None if failed else round(earned(trial.params, noise[i]), 6)
            study.tell(trial.id, value, failed="the gripper slipped" if failed else None)
        study.ask(waiting)
    return path


@contextmanager
def robot_served(folder):
    """A server of such a study, which knows where that lies."""
    path = gripper(folder / "robot.db")
    with Server(folder, path) as server:
        server.path = path
        yield server


@contextmanager
def opened(browser, server, view="work", study="robot", address=None, **how):
    """A window that has logged in by the address and shows a view of a study."""
    with window(browser, **how) as page:
        page.goto(address or server.address)
        page.get_by_role("heading", name="What is served here").wait_for()
        assert "token" not in page.url
        if study is not None:
            turn(page, server, view, study)
        yield page


def turn(page, server, view, study="robot"):
    """Goes to a view of a study, and waits until it is there."""
    page.goto(f"{server.url}#/study/{study}/{view}")
    page.get_by_role("heading", name=VIEWS[view]).wait_for()
    page.wait_for_load_state("load")


class Held:
    """Requests of a kind that get their answers when it is said."""

    def __init__(self, page, pattern, chosen=lambda request: True):
        self.page, self.pattern, self.routes = page, pattern, []
        self.chosen = chosen
        page.route(pattern, self.come)

    def come(self, route):
        if self.chosen(route.request):
            self.routes.append(route)
        else:
            route.continue_()

    def wait(self):
        """Until there is one."""
        while not self.routes:
            self.page.wait_for_event("request")

    def go(self):
        """Lets all go, and waits for their answers."""
        self.chosen = lambda request: False
        for route in self.routes:
            with self.page.expect_response(lambda a, r=route: a.request == r.request):
                route.continue_()


def card(page, number):
    """The card of a trial."""
    return page.locator(f'[data-trial="{number}"]')


def trials(path):
    """The trials of a study, by number, as the library reads them."""
    with Study.open(path, read_only=True) as study:
        return {trial.id: trial for trial in study}


def assert_fits(page):
    """Nothing is wider than the window."""
    over, wide = page.evaluate(WIDE)
    assert wide == []
    assert over <= 0


def assert_quiet(page, server):
    """The page has complained of nothing, and asked nobody else."""
    assert [x for x in page.said if not re.search("Failed to load resource|ERR_", x)] == []
    assert [x for x in page.asked if not x.startswith((server.url, "blob:"))] == []

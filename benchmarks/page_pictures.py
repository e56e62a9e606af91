"""The pictures of docs/serve.md: every view of the live page, light, dark and on a phone.

python -m benchmarks.page_pictures docs/serve
"""

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from playwright.sync_api import sync_playwright

from recoup.study.study import Study

RESULTS, SEED, NOISE = 60, 1, 0.3
PARAMS = {"stiffness": (50, 2000, "log"), "damping": (0, 1), "approach": (-0.1, 0.1)}
UNITS = {"stiffness": "N/m", "approach": "m"}
VIEWS = {  # view -> what stands on it once it is there
    "work": "Waiting for results",
    "see": "What it says",
    "data": "What would another distribution earn?",
    "deploy": "The values to deploy",
}
WINDOWS = {
    "light": {"viewport": {"width": 1280, "height": 860}, "color_scheme": "light"},
    "dark": {"viewport": {"width": 1280, "height": 860}, "color_scheme": "dark"},
    "phone": {
        "viewport": {"width": 390, "height": 844},
        "color_scheme": "light",
        "is_mobile": True,
        "has_touch": True,
    },
}
DRAWN = "() => [...document.querySelectorAll('.plot')].slice(0, 2).every(p => p.firstChild)"
TALL = {"see": 1900}  # a view of which more is shown
CHROMIUM = ("/usr/bin/chromium", "/usr/bin/chromium-browser")


def earned(params, noise):
    """A return that three gains earn."""
    stiffness, damping, approach = (params[name] for name in PARAMS)
    near = np.log(stiffness / 400) ** 2 + 8 * (damping - 0.7) ** 2 + 300 * (approach - 0.02) ** 2
    return round(10 - near + noise, 3)


def made(path):
    """A study of a gripper, with some failures, and three trials that wait."""
    noise = np.random.default_rng(SEED).normal(0, NOISE, RESULTS)
    with Study.open(path, params=PARAMS, units=UNITS, seed=SEED) as study:
        study.title = "Gripper of the left arm"
        for i in range(RESULTS):
            (trial,) = study.ask(1)
            if i % 13 == 7:
                study.tell(trial.id, failed="it slipped")
            else:
                study.tell(trial.id, earned(trial.params, noise[i]))
        study.ask(2)
        study.ask(1, at="mean")
    return path


def pictures(address, out):
    """Every view in every window, as PNG files."""
    path = next(name for name in CHROMIUM if Path(name).exists())
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, chromium_sandbox=False)
        for kind, how in WINDOWS.items():
            context = browser.new_context(**how)
            page = context.new_page()
            page.goto(address)
            page.get_by_role("heading", name="What is served here").wait_for()
            page.screenshot(path=out / f"overview-{kind}.png")
            for view, head in VIEWS.items():
                page.goto(f"{address.partition('#')[0]}#/study/robot/{view}")
                page.get_by_role("heading", name=head).wait_for()
                size = how["viewport"]
                page.set_viewport_size({**size, "height": TALL.get(view, size["height"])})
                settled(page, view)
                page.screenshot(path=out / f"{view}-{kind}.png")
            context.close()
        browser.close()


def settled(page, view):
    """Waits until everything of a view is drawn, without a message in passing."""
    if view == "work":
        page.locator(".trial").first.wait_for()
    if view == "see":
        page.locator(".trials tbody tr").first.wait_for()
        page.locator(".tile").first.wait_for()
        page.wait_for_function(DRAWN)
        page.evaluate("scrollTo(0, document.body.scrollHeight)")
        page.evaluate("scrollTo(0, 0)")
    if view == "data":
        page.get_by_text("At rest").wait_for()
        slider = page.get_by_role("slider", name="damping").first
        for _ in range(25):
            slider.press("ArrowLeft")
        page.get_by_text("At rest").wait_for()
        page.evaluate("() => document.activeElement.blur()")
        page.evaluate("scrollTo(0, 0)")
    if view == "deploy":
        page.get_by_text("Copy as JSON").wait_for()


def main():
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as folder:
        path = made(Path(folder) / "robot.db")
        command = [sys.executable, "-m", "recoup", "serve", str(path), "--port", "0"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            try:
                pictures(server.stdout.readline().strip(), out)
            finally:
                server.terminate()


if __name__ == "__main__":
    main()

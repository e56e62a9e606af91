"""A page as a real browser sees it: Playwright, driving the Chromium of this machine."""

import os
import shutil
from contextlib import contextmanager

import pytest

PATIENCE = 120_000.0
LOOK = """async () => {
  const images = [...document.images], broken = [];
  await Promise.all(images.map(i => i.decode().catch(() => broken.push(i.alt))));
  const all = [...document.body.querySelectorAll('*')].filter(e => e.getClientRects().length);
  const wide = e => e.getBoundingClientRect().right > innerWidth + 1
    || (e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).display !== 'inline');
  return {
    cut: all.filter(wide).map(e => `${e.tagName} ${e.innerText}`.slice(0, 80)),
    broken, images: images.map(i => [i.naturalWidth, i.alt]), title: document.title,
    width: document.documentElement.scrollWidth, window: innerWidth,
    background: getComputedStyle(document.body).backgroundColor,
    text: document.body.innerText,
  };
}"""


def chromium():
    """The browser, or a skip; a failure where RECOUP_REQUIRE_CHROMIUM is set."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        _missing("chromium is not installed: apt-get install chromium")
    return found


def _missing(what):
    if os.environ.get("RECOUP_REQUIRE_CHROMIUM"):
        pytest.fail(what)
    pytest.skip(what)


@contextmanager
def browsing(*args):
    """The browser, as long as it is needed; `args` are further ones of its command line."""
    path = chromium()
    try:
        from playwright.sync_api import expect, sync_playwright
    except ImportError:
        _missing("playwright is not installed: pip install 'recoup[dev]'")
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path,
            args=["--disable-gpu", "--disable-dev-shm-usage", *args],
            chromium_sandbox=False,
            timeout=PATIENCE,
        )
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def window(browser, *, width=1200, height=900, dark=False, **how):
    """A page of its own, with no cookie of another; `said` and `asked` hold all that it did."""
    context = browser.new_context(
        viewport={"width": width, "height": height},
        is_mobile=width < 600,
        has_touch=width < 600,
        color_scheme="dark" if dark else "light",
        **how,
    )
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    page.said, page.asked = [], []
    page.on("console", lambda message: page.said.append(message.text))
    page.on("pageerror", lambda wrong: page.said.append(str(wrong)))
    page.on("request", lambda request: page.asked.append(request.url))
    try:
        yield page
    finally:
        context.close()


def expect(locator):
    """Playwright's `expect`, for what comes by itself."""
    from playwright import sync_api

    return sync_api.expect(locator)


def complaints(page):
    """What axe finds on a page, in words."""
    try:
        from axe_playwright_python.sync_playwright import Axe
    except ImportError:
        _missing("axe-playwright-python is not installed: pip install 'recoup[dev]'")
    found = Axe().run(page)
    return found.generate_report() if found.violations_count else ""


def visit(page, *, width=1200, height=900, dark=False, screenshot=None):
    """What the browser found on `page`: images, texts, sizes, complaints, requests to elsewhere."""
    with browsing() as browser, window(browser, width=width, height=height, dark=dark) as seen:
        seen.goto(page.as_uri())
        found = seen.evaluate(LOOK)
        if screenshot is not None:
            screenshot.write_bytes(seen.screenshot())
        found["complaints"] = seen.said
        found["outside"] = [x for x in seen.asked if not x.startswith(("data:", page.as_uri()))]
    return found

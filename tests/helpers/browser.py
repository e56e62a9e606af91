"""A page as a real browser sees it: headless Chromium, spoken to over its debugging pipe."""

import base64
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile

import pytest
from waiting import LIMIT

LOOK = """(async () => {
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
})()"""
HEARD = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")


def chromium():
    """The browser, or a skip; a failure where RECOUP_REQUIRE_CHROMIUM is set."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        if os.environ.get("RECOUP_REQUIRE_CHROMIUM"):
            pytest.fail("chromium is not installed")
        pytest.skip("chromium is not installed: apt-get install chromium")
    return found


def visit(page, *, width=1200, height=900, dark=False, screenshot=None):
    """What the browser found on `page`: images, texts, sizes, complaints, requests to elsewhere."""
    profiles = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
    with profiles as profile, Browser(profile) as browser:
        browser.open(page.as_uri(), width, height, dark)
        found = browser.evaluate(LOOK)
        if screenshot is not None:
            screenshot.write_bytes(browser.screenshot())
        found["complaints"] = [m for m in browser.heard if m["method"] in HEARD]
        asked = [m["params"]["request"]["url"] for m in browser.heard if "request" in m["params"]]
        found["outside"] = [url for url in asked if not url.startswith(("data:", page.as_uri()))]
    return found


class Browser:
    """One tab, and everything it has said."""

    def __init__(self, profile):
        command = [
            chromium(),
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--remote-debugging-pipe",
            f"--user-data-dir={profile}",
            "about:blank",
        ]
        read, self.write_end = os.pipe()
        self.read_end, write = os.pipe()

        wired = f'exec "$@" 3<&{read} 4>&{write}'  # the browser reads from 3 and writes to 4
        self.process = subprocess.Popen(
            ["bash", "-c", wired, "bash", *command],
            pass_fds=(read, write),
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(read)
        os.close(write)
        self.rest, self.heard, self.count, self.session = b"", [], 0, None

    def __enter__(self):
        targets = self.call("Target.getTargets")["targetInfos"]
        tab = next(t["targetId"] for t in targets if t["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=tab, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        return self

    def __exit__(self, *_):
        os.killpg(self.process.pid, signal.SIGKILL)  # it has children of its own
        self.process.wait()
        os.close(self.read_end)
        os.close(self.write_end)

    def open(self, url, width, height, dark):
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Page.navigate", url=url)
        while not any(m["method"] == "Page.loadEventFired" for m in self.heard):
            self.heard.append(self.receive())

    def evaluate(self, script):
        answer = self.call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"]["value"]

    def screenshot(self):
        return base64.b64decode(self.call("Page.captureScreenshot")["data"])

    def call(self, method, **params):
        self.count += 1
        message = {"id": self.count, "method": method, "params": params}
        if self.session is not None:
            message["sessionId"] = self.session
        os.write(self.write_end, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self.count:
                assert "error" not in answer, answer
                return answer["result"]
            self.heard.append(answer)

    def receive(self):
        """The next message of the browser."""
        while b"\0" not in self.rest:
            ready, _, _ = select.select([self.read_end], [], [], LIMIT)
            chunk = os.read(self.read_end, 1 << 20) if ready else b""
            assert chunk, "the browser does not answer"
            self.rest += chunk
        line, _, self.rest = self.rest.partition(b"\0")
        return json.loads(line)

"""The finished site in a browser: every page, wide and narrow, light and dark, and its search.

RECOUP_SITE names a site that `make docs` has just built; without it one is built for the tests.
"""

import os
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from benchmarks.weights_picture import drawn, weighed
from browser import browsing, expect, window
from sites import DOCS, built

pytestmark = pytest.mark.slow
LARGEST, WHOLE = 100_000, 15_000_000  # bytes of a page, of the site without films
FREE = ("benchmarks.html", "benchmarks/", "genindex.html", "search.html")  # may be larger
FILMS = (".mp4", ".gif", ".webm")
LOOK = """async () => {
  const shown = e => e.getClientRects().length > 0;
  const scrolls = e => {
    for (let p = e; p; p = p.parentElement)
      if (['auto', 'scroll', 'hidden'].includes(getComputedStyle(p).overflowX)) return true;
    return false;
  };
  const images = [...document.images].filter(shown), broken = [];
  images.forEach(i => i.loading = 'eager');
  await Promise.all(images.map(i => i.decode().catch(() => broken.push(i.src))));
  const heads = [...document.querySelectorAll('h1, h2, h3, h4, h5, h6')].filter(shown);
  const inside = [...document.querySelectorAll('article *')].filter(shown);
  return {
    broken, silent: images.filter(i => !i.alt.trim() || /\\.\\w{3,4}$/.test(i.alt)).map(i => i.src),
    heads: heads.map(h => [Number(h.tagName[1]), h.innerText]),
    wide: document.documentElement.scrollWidth - innerWidth,
    beyond: inside.filter(e => e.getBoundingClientRect().right > innerWidth + 1 && !scrolls(e))
      .map(e => `${e.tagName} ${e.innerText}`.slice(0, 80)),
    background: getComputedStyle(document.body).backgroundColor,
  };
}"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The finished site."""
    if "RECOUP_SITE" in os.environ:
        return Path(os.environ["RECOUP_SITE"])
    place = tmp_path_factory.mktemp("made") / "site"
    done = built(DOCS, place)
    assert done.returncode == 0, done.stderr
    return place


@pytest.fixture(scope="module")
def browser():
    with browsing() as found:
        yield found


def pages(site):
    return sorted(p for p in site.rglob("*.html") if not {"_static", "_downloads"} & set(p.parts))


def faults(seen, page, site):
    """What is wrong with a page as it is shown."""
    found = seen.evaluate(LOOK)
    levels = [level for level, _ in found["heads"]]
    yield from (f"asks for {x}" for x in seen.asked if not x.startswith((site.as_uri(), "data:")))
    yield from (f"says {x}" for x in seen.said)
    yield from (f"a broken picture: {x}" for x in found["broken"])
    yield from (f"a picture without words: {x}" for x in found["silent"])
    yield from (f"beyond the window: {x}" for x in found["beyond"])
    if found["wide"] > 0:
        yield f"{found['wide']} pixels wider than the window"
    searching = page.name == "search.html"  # without words to search for it has no heading
    if not searching and (levels[:1] != [1] or levels.count(1) != 1):
        yield f"headings begin {levels[:3]}"
    yield from (f"a heading skips a level: {b}" for a, b in pairwise(levels) if b > a + 1)


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_every_page_is_whole(site, browser, width, dark):
    wrong = []
    with window(browser, width=width, dark=dark) as seen:
        for page in pages(site):
            seen.said.clear(), seen.asked.clear()
            seen.goto(page.as_uri())
            wrong += [f"{page.relative_to(site)}: {x}" for x in faults(seen, page, site)]
    assert not wrong, "\n".join(wrong)


FAULTY = """<!doctype html><title>A page</title><body style="margin: 0">
<article><h1>A</h1><h3>B</h3><p style="width: 2000px">wide</p>
<img src="https://example.invalid/a.png" alt="elsewhere">
<img src="data:image/gif;base64,R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw==">
<script>console.error("oh")</script></article>"""


def test_what_is_wrong_with_a_page_is_seen(tmp_path, browser):
    page = tmp_path / "page.html"
    page.write_text(FAULTY)
    with window(browser, width=390) as seen:
        seen.goto(page.as_uri())
        found = "\n".join(faults(seen, page, tmp_path))
    for words in (
        "asks for https://example.invalid/a.png",
        "says oh",
        "a broken picture: https://example.invalid/a.png",
        "a picture without words: data:",
        "beyond the window: P wide",
        "pixels wider than the window",
        "a heading skips a level: 3",
    ):
        assert words in found, found


def test_pages_and_the_site_are_small(site):
    large = {str(p.relative_to(site)): p.stat().st_size for p in pages(site)}
    large = {p: size for p, size in large.items() if size > LARGEST and not p.startswith(FREE)}
    assert not large
    files = [p for p in site.rglob("*") if p.is_file() and p.suffix not in FILMS]
    assert sum(p.stat().st_size for p in files) <= WHOLE


@pytest.mark.parametrize(
    ("words", "page"),
    [
        ("lease", "do/leases.html"),
        ("effective sample size", "lookup/glossary.html"),
        ("Study.evaluate", "reference/study-questions.html#recoup.Study.evaluate"),
        ("warm start", "do/warm-start.html"),  # words of other libraries
        ("categorical", "do/choices.html"),
        ("integer", "do/by-hand.html"),
        ("parallel", "do/many-machines.html"),
        ("multi-objective", "do/limits.html"),
        ("cite", "index.html"),
    ],
)
def test_the_search_finds_without_a_server(site, browser, words, page):
    with window(browser) as seen:
        seen.goto(f"{(site / 'search.html').as_uri()}?q={words.replace(' ', '+')}")
        found = seen.locator(f"ul.search a[href^='{page}']").first
        expect(found).to_be_visible()
        assert not seen.said


def moved(seen, name, value):
    """The figure with a slider at a value, as keys and a mouse put it there."""
    seen.locator(f"#weights input[name={name}]").evaluate(
        "(i, value) => { i.value = value; i.dispatchEvent(new Event('input')); }", str(value)
    )


@pytest.mark.parametrize(("mean", "std"), [(1.5, 0.7), (-3, 1), (0, 1), (0.5, 2), (2.2, 0.2)])
def test_the_figure_of_weights_says_what_the_estimate_says(site, browser, mean, std):
    e = weighed(mean, std)
    with window(browser) as seen:
        seen.goto((site / "understand" / "weights.html").as_uri())
        moved(seen, "mean", mean)
        moved(seen, "std", std)
        said = seen.locator("#weights p").inner_text()
        sticks = seen.locator("#weights .share").evaluate_all(
            "lines => lines.map(x => (x.y1.baseVal.value - x.y2.baseVal.value) / 216)"
        )
    share = e.weights / e.weights.sum()
    assert said == (
        f"Largest share: {100 * share.max():.1f} %. "
        f"Effective sample size: {e.ess:.2f} of {len(drawn())}."
    )
    np.testing.assert_allclose(sticks, share, atol=1e-4)


def test_the_figure_of_weights_moves_by_keys_and_stands_still_without_scripts(site, browser):
    page = (site / "understand" / "weights.html").as_uri()
    with window(browser) as seen:
        seen.goto(page)
        before = seen.locator("#weights p").inner_text()
        seen.get_by_label("Mean").focus()
        seen.keyboard.press("ArrowRight")
        assert seen.locator("#weights p").inner_text() != before
        expect(seen.locator("img[src*='weights-']")).to_have_count(0)
    context = browser.new_context(java_script_enabled=False)
    still = context.new_page()
    still.goto(page)
    assert still.locator("img[src*='weights-light']").is_visible()
    context.close()


def test_the_page_of_weights_holds_the_draws_of_its_picture():
    text = " ".join((DOCS / "understand" / "weights.md").read_text().split())
    assert " ".join(f"{x:g}" for x in drawn()) in text

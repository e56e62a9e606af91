"""Every link of README, CHANGELOG, CONTRIBUTING and docs/ leads somewhere; old ones too."""

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.M | re.S)
BEFORE = """
how-the-methods-compare bounded-tasks what-recoup-compare-announces
a-batch-that-grows-without-bounds-python--m-benchmarksgrowing
a-move-of-recoup-python--m-benchmarksrule the-constants-of-recoup-python--m-benchmarkstuning
families-of-recoup-python--m-benchmarksfamilies speed-make-bench
how-often-intervals-hold-the-truth-python--m-benchmarkscoverage
where-trials-fail-python--m-benchmarkscrashes unordered-choices-python--m-benchmarkschoices
where-a-second-number-has-a-limit-python--m-benchmarkslimits
what-contexts-explain-python--m-benchmarkscontext
what-a-baseline-costs-python--m-benchmarksbaselines
sizes-that-divide-badly-python--m-benchmarkssizes the-same-learning-drawn-otherwise
the-study-python--m-benchmarksstudy small-studies-by-hand
start-up-and-short-runs-python--m-benchmarksstart_up
the-points-of-a-curve-python--m-benchmarkscurve_points slips-of-the-sign-python--m-benchmarksslips
eight-processes-on-one-file-python--m-benchmarksworkers engines-python--m-benchmarksengines
a-study-that-grows-python--m-benchmarksgrowth
what-a-study-says-held-to-the-truth-python--m-benchmarksvoice
36-tasks-of-random-numbers-looked-at-once-after-everything-was-chosen
16-tasks-by-hand-looked-at-once-before-the-last-constants-were-chosen
14-tasks-made-after-intervals-were 13-tasks-held-out-at-first
14-tasks-that-intervals-and-forecasts-were-made-with 5-tasks-of-many-parameters
14-tasks-without-noise candidates-that-no-result-chose
intervals-that-reach-farther-on-the-better-side how-it-came-about what-it-costs
what-is-said-of-the-past-and-of-a-policy-that-was-tried-python--m-benchmarkspast
which-parameters-matter-python--m-benchmarksmatters reproducing-the-paper-recoup-reproduce
learning-python--m-benchmarkscurves-task
mountain-car-force-unbounded-never-reaching-the-goal-gives--1743-the-best-policies-683
mountain-car-weak-force-at-most-03 toy what-the-tables-say
reaching-recoup-reproduce-reach-2-reach-4-reach-9 reaching-on-this-machine-python--m-benchmarksreach
the-archive-on-a-gpu-python--m-benchmarksarchive_gpu
reaching-on-a-gpu-python--m-benchmarksreach_gpu
what-recommend-says-is-held-to-the-truth-python--m-benchmarksrecommended
reaching-python--m-benchmarksreach_learning reaching-python--m-benchmarksreach_learning-2-4
mountain-car-force-unbounded-no-policy-that-stands-still-gets-above--1743-the-best-get-683
"""


def slug(heading):
    """The anchor of a heading, as forges make it."""
    words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower().strip()
    return re.sub(r"[^\w\- ]", "", words).replace(" ", "-")


@cache
def anchors(path):
    """What a link can lead to within a page."""
    text = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.M | re.S)
    found = {}
    for heading in re.findall(r"^#+ (.+)$", text, flags=re.M):
        times = found[slug(heading)] = found.get(slug(heading), -1) + 1
        if times:
            found[f"{slug(heading)}-{times}"] = 0
    return {*found, *re.findall(r'<a id="([^"]+)">', text)}


def broken(path):
    """The links of a page that lead nowhere."""
    for link in LINK.findall(CODE.sub("``", path.read_text())):
        address, _, anchor = link.partition("#")
        if re.match(r"[a-z]+:", link):
            continue
        target = path.parent / address if address else path
        if not target.exists() or (anchor and anchor not in anchors(target)):
            yield link


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_somewhere(path):
    assert list(broken(path)) == []


def test_a_link_that_leads_nowhere_is_found(tmp_path):
    page = tmp_path / "a.md"
    page.write_text("# A b\n\n[x](#a-b) [y](#a-c) [z](b.md) `[w](c.md)` [v](https://x.org)\n")
    assert list(broken(page)) == ["#a-c", "b.md"]


def test_every_section_of_benchmarks_from_before_still_has_its_address():
    assert set(BEFORE.split()) <= anchors(ROOT / "docs" / "benchmarks.md")

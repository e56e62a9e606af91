"""README.md is short, what it shows runs, and what it points to is there."""

import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from PIL import Image
from program import recoup
from waiting import LIMIT

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "docs/do/pure-functions.md", "docs/own-parts.md")
README, SEARCH, *OTHERS = ((ROOT / name).read_text() for name in PAGES)
EXAMPLES = re.findall(r"```python\n(.*?)```", "".join([README, SEARCH, *OTHERS]), re.S)
NAMES = ["study", "search", "actions", "estimate"]
NAMES += ["weighting", "baseline", "direction", "update", "family", "moved family", "mover"]
EXAMPLE = dict(zip(NAMES, EXAMPLES, strict=False))
PICTURES = re.findall(r"!\[([^]]*)\]\(([^)]+)\)", README)
MADE = ("reference", "benchmarks")  # folders of pages that scripts make
FENCE = re.compile(r"^```.*?^```", re.S | re.M)


def links(text):
    """What a page points to: links and pictures, but not what a block of code looks like."""
    return re.findall(r"\]\(([^)\s]+)\)", FENCE.sub("", text))


def anchors(text):
    """The names by which the headings of a page are found: as GitHub makes them."""
    heads = re.findall(r"^#+ (.+)$", FENCE.sub("", text), re.M)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def broken(page):
    """The links of a page that lead to no file, or to no heading of it."""
    found = []
    for link in links(page.read_text()):
        name, _, anchor = link.partition("#")
        there = page.parent / name if name else page
        if "://" in link or (there.exists() and not anchor):
            continue
        if not there.exists() or anchor not in anchors(there.read_text()):
            found.append(link)
    return found


def test_the_docs_have_their_examples():
    assert len(EXAMPLES) == len(NAMES)


def test_the_readme_is_short():
    assert len(README.split()) <= 900
    assert len(README.splitlines()) <= 90  # two screens, with its pictures


def test_one_picture_of_the_readme_moves_and_one_is_a_plot():
    moving, plot = (ROOT / place for _, place in PICTURES)
    assert all(len(words) > 20 for words, _ in PICTURES)  # for those who cannot see them
    with Image.open(moving) as picture:
        assert picture.n_frames > 10
        assert picture.info["loop"] == 0  # for ever
        assert picture.width <= 1000
    assert moving.stat().st_size < 2_000_000
    assert plot.stat().st_size < 250_000


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_every_link_leads_somewhere(name):
    assert broken(ROOT / name) == []


@pytest.mark.parametrize("page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda page: page.name)
def test_every_link_of_the_docs_leads_somewhere(page):
    assert broken(page) == []


def test_a_link_that_leads_nowhere_is_found(tmp_path):
    (tmp_path / "other.md").write_text("# A `head`: of two\n```\n# no head\n```\n")
    page = tmp_path / "page.md"
    page.write_text(
        "[a](other.md) [b](other.md#a-head-of-two) [c](#here) [d](https://x.org/y)\n## Here\n"
        "[e](none.md) [f](other.md#no-head) [g](#there)\n```\n[h](nowhere.md)\n```\n"
    )
    assert broken(page) == ["none.md", "other.md#no-head", "#there"]


def test_every_page_of_the_docs_is_listed_by_its_part():
    listed, docs = set(), ROOT / "docs"
    for part in docs.glob("*/index.md"):
        listed |= {
            (part.parent / link.partition("#")[0]).resolve() for link in links(part.read_text())
        }
    made = [page for name in MADE for page in (docs / name).rglob("*.md")]
    indices = [docs / "index.md", *docs.glob("*/index.md")]
    left = set(docs.rglob("*.md")) - {*made, *indices} - listed
    assert not left, f"list it in the index.md of its part: {sorted(map(str, left))}"


def test_the_readme_says_which_way_is_better_and_what_costs_are():
    assert README.count("arger is better") >= 2
    assert 'direction="minimize"' in README


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """What an example does as a program of its own, each run once."""

    @cache
    def run(example):
        cached = "ignore:Error reading persistent compilation cache entry"  # one being written
        program = [sys.executable, "-W", "error", "-W", cached, "-c", example]
        how = {"cwd": tmp_path_factory.mktemp("example"), "capture_output": True, "text": True}
        return subprocess.run(program, **how, timeout=LIMIT)

    return run


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=NAMES)
def test_the_examples_of_the_docs_run(example, ran):
    done = ran(example)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_the_commands_of_the_readme_run_in_their_order(tmp_path):
    commands = re.findall(r"`recoup (study [^`]+)`", README)
    assert [command.split()[1] for command in commands] == ["new", "ask", "tell", "recommend"]
    for command in commands:
        done = recoup(*command.split(), cwd=tmp_path)
        assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_the_first_environment_of_the_readme_is_learned(tmp_path):
    (command,) = re.findall(r"`recoup (train CartPole-v1 [^`]+)`", README)
    done = recoup(*command.split(), "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["return_mean_policy"]["mean"] > 475  # solved, of 500 at most


def test_the_search_of_the_readme_takes_five_lines_and_finds_the_gains(ran):
    lines = EXAMPLE["study"].partition("study = ")[2].strip().splitlines()
    assert len(lines) == 5
    done = ran(EXAMPLE["study"])
    assert done.returncode == 0, done.stderr
    found = re.search(r"\{'kp': ([\d.]+), 'kd': ([\d.]+)\} (.+)", done.stdout)
    kp, kd = float(found[1]), float(found[2])
    assert abs(kp - 60) < 6  # of 1 to 200
    assert abs(kd - 0.7) < 0.25  # of 0 to 5
    assert "mean policy" in found[3]


def test_the_estimate_of_the_page_is_the_one_it_prints(ran):
    done = ran(EXAMPLE["estimate"])
    objective, low, high = map(float, done.stdout.splitlines()[0].split())
    assert f"{objective:.2f}, 95 % interval {low:.2f} to {high:.2f}; exact: -1.11" in SEARCH
    assert low < -1.11 < high

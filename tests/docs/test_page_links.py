"""Every link of README, CHANGELOG, CONTRIBUTING and docs/ leads somewhere."""

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

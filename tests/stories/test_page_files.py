"""The files of the live page: what they may hold, how large they are, where uPlot is from."""

import gzip
import hashlib
import re
from importlib.resources import files

import pytest

PAGE = files("recoup") / "serve" / "page"
UPLOT = PAGE / "uplot"
MOST = 150_000  # bytes, compressed
SCRIPTS = sorted(path.name for path in PAGE.iterdir() if path.name.endswith(".js"))
FORBIDDEN = (
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|DOMParser"
)


def origin():
    rows = (line.partition(": ") for line in (UPLOT / "ORIGIN").read_text().splitlines())
    return {key: value for key, _, value in rows}


def test_uplot_is_the_one_that_its_origin_says():
    said = {key.removeprefix("sha256 "): x for key, x in origin().items() if "sha256" in key}
    assert set(said) == {"uPlot.iife.min.js", "uPlot.min.css", "LICENSE"}
    for name, digest in said.items():
        assert hashlib.sha256((UPLOT / name).read_bytes()).hexdigest() == digest
    assert origin()["version"] == "1.6.32"
    assert f"(v{origin()['version']})" in (UPLOT / "uPlot.iife.min.js").read_text()[:100]
    assert (UPLOT / "LICENSE").read_text().startswith("The MIT License (MIT)")


def test_all_that_the_page_loads_is_small():
    loaded = [*PAGE.iterdir(), *UPLOT.iterdir()]
    sizes = {path.name: len(gzip.compress(path.read_bytes())) for path in loaded if path.is_file()}
    assert sum(sizes.values()) < MOST, sizes


def test_the_page_asks_nobody_else_and_has_nothing_inline():
    page = (PAGE / "index.html").read_text()
    assert not re.search(r"\sstyle=|\son\w+=|<style", page)
    assert re.findall(r"<script[^>]*>(.*?)</script>", page, re.S) == ["", ""]
    for path in re.findall(r'(?:src|href)="([^"#][^"]*)"', page):
        assert (PAGE / path.removeprefix("/static/")).is_file(), path


@pytest.mark.parametrize("name", SCRIPTS)
def test_no_script_makes_elements_of_text_or_names_another_host(name):
    text = (PAGE / name).read_text()
    assert not re.search(FORBIDDEN, text)
    assert not re.search(r"https?://", text)
    for other in re.findall(r'from "([^"]+)"', text):
        assert (PAGE / other.removeprefix("./")).is_file(), other
    assert len(text.splitlines()) <= 400


def test_every_script_is_part_of_the_page():
    imported = {
        x for name in SCRIPTS for x in re.findall(r'"\./(\S+\.js)"', (PAGE / name).read_text())
    }
    assert imported | {"main.js"} == set(SCRIPTS)

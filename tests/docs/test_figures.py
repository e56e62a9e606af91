"""Every picture of the documentation is made by a command that `make figures` knows."""

import re
from pathlib import Path

import numpy as np
import pytest
from benchmarks import curves, figures
from blocks import pages
from PIL import Image
from sites import DOCS

ENDINGS = (".png", ".gif")
STILL = ("reuse", "weights", "recoup", "compared", "comparison")  # no dates, no searches
APART = 0.002  # share of points that may differ, by another library that draws


def made_by(path):
    name = path.relative_to(DOCS)
    return [x for x in figures.FIGURES if name.match(x.pictures) and name.parts[:-1] == parts(x)]


def parts(figure):
    return tuple(figure.pictures.split("/")[:-1])


@pytest.mark.parametrize(
    "path",
    sorted(p for p in DOCS.rglob("*") if p.suffix in ENDINGS),
    ids=lambda path: path.relative_to(DOCS).as_posix(),
)
def test_a_picture_has_one_command(path):
    assert len(made_by(path)) == 1


@pytest.mark.parametrize("figure", figures.FIGURES, ids=lambda figure: figure.pictures)
def test_a_command_has_pictures_and_a_script_that_is_there(figure):
    assert list(DOCS.glob(figure.pictures))
    for module in re.findall(r"python -m (benchmarks\.\w+)", figure.command + figure.made_by):
        assert (DOCS.parent / f"{module.replace('.', '/')}.py").exists()
    assert bool(figure.reads) == bool(figure.made_by)


def embedded():
    """(page, picture) of each picture that stands on a page."""
    for page in pages(DOCS.parent):
        for name in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page.read_text()):
            yield page, (page.parent / name).resolve()


def test_a_page_names_the_script_of_each_of_its_pictures():
    nameless = []
    for page, path in embedded():
        [figure] = made_by(path)
        scripts = re.findall(r"benchmarks\.\w+", figure.command) or ["recoup render"]
        if not any(script in page.read_text() for script in scripts):
            nameless.append(f"{page.name}: {path.name}, by {scripts}")
    assert not nameless, "\n".join(nameless)


def test_every_method_of_the_curves_is_drawn(tmp_path, monkeypatch):
    monkeypatch.setattr(curves, "DOCS", tmp_path)
    values = np.random.default_rng(0).normal(size=(2, curves.ITERATIONS + 1))
    curves.draw("toy", dict.fromkeys(curves.SHOWN, values))
    assert (tmp_path / "toy.png").exists()
    assert curves.REFERENCE in curves.SHOWN


def test_what_a_figure_waits_for_is_said(capsys):
    waiting = figures.Figure("a.png", "false", "runs/never/made", "recoup train a")
    assert "needs runs/never/made; make it by `recoup train a`" in figures.make(waiting)
    assert figures.make(figures.Figure("a.png", "true")) == "a.png: made"
    assert figures.make(figures.Figure("a.png", "false")) == "a.png: FAILED"


def still():
    """Figures that come out the same wherever and whenever they are made, in seconds."""
    return [x for x in figures.FIGURES if Path(x.pictures).name.startswith(STILL)]


def same(path, other):
    """Whether two pictures show the same."""
    one, two = (np.asarray(Image.open(x).convert("RGB"), int) for x in (path, other))
    return one.shape == two.shape and (np.abs(one - two).max(axis=2) > 32).mean() < APART


@pytest.mark.slow
@pytest.mark.parametrize("figure", still(), ids=lambda x: x.pictures)
def test_a_picture_is_what_its_command_makes(figure, tmp_path):
    made = tmp_path / "docs"
    (made / figure.pictures).parent.mkdir(parents=True)
    command = figure.command.replace("docs/", f"{made}/")
    assert figures.make(figure._replace(command=command)).endswith(": made")
    shown = list(DOCS.glob(figure.pictures))
    assert shown
    assert [x.name for x in shown if not same(x, made / x.relative_to(DOCS))] == []


def test_the_picture_of_a_study_is_that_of_the_page_below_it():
    page = (DOCS / "do" / "diagnostics.md").read_text()
    shown = Image.open(DOCS / "study.png").text["shows"].split()
    assert [x for x in shown if f" {x} │" not in page] == []

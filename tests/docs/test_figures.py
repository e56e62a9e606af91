"""Every picture of the documentation is made by a command that `make figures` knows."""

import re

import pytest
from benchmarks import figures
from sites import DOCS

ENDINGS = (".png", ".gif")


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


def test_what_a_figure_waits_for_is_said(capsys):
    waiting = figures.Figure("a.png", "false", "runs/never/made", "recoup train a")
    assert "needs runs/never/made; make it by `recoup train a`" in figures.make(waiting)
    assert figures.make(figures.Figure("a.png", "true")) == "a.png: made"
    assert figures.make(figures.Figure("a.png", "false")) == "a.png: FAILED"

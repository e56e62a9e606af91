"""The files of a comparison: every task has a picture, every method a place in it and its row."""

import numpy as np

from recoup.compare.comparison_tables import Table, _markdown
from recoup.pictures.comparison_picture import MethodCurve, compared
from recoup.report.comparison_page import _places


def test_pictures_of_names_that_look_alike_lie_apart(tmp_path):
    names = ["a_b:c", "a:b_c", "A:b_c", "a-b-c-2", "toy@0.1"]
    found = [path.name for path in _places(names, tmp_path)]
    assert found == ["a-b-c.png", "a-b-c-2.png", "A-b-c-3.png", "a-b-c-2-2.png", "toy@0.1.png"]


def test_every_method_is_in_the_legend():
    curve = (np.array([1.0, 2.0]), np.array([0.1, 0.1]))
    labels = ["snes", "_mine:Climb", "costs:$x"]
    figure = compared("a task", [0, 10], [MethodCurve(label, curve, curve) for label in labels])
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["snes", "_mine:Climb", "costs:\\$x"]
    colours = [line.get_color() for line in legend.get_lines()]
    assert colours == [line.get_color() for line in figure.axes[0].lines]


def test_a_bar_in_a_name_breaks_no_table():
    text = _markdown(Table("a title", ["method", "J"], [["my:Climb:a=b|c", "1"]]))
    assert text.splitlines()[-1] == r"| my:Climb:a=b\|c | 1 |"

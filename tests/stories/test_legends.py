"""Legends of pictures hide nothing: they stand outside of the axes, and inside of the picture."""

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from recoup.pictures.comparison_picture import MethodCurve, compared
from recoup.pictures.curves import Line, Panel, learning_curve, overlaid, replayed
from recoup.report.run_page import _age
from recoup.runs.history import Curve
from recoup.study.exchange.replay import Replayed
from recoup.study.study import Study
from recoup.tasks.measured import Measured

AT = np.arange(0.0, 100, 10)


def assert_nothing_is_hidden(figure):
    """Every legend lies outside of all axes and within the figure; there is one at least."""
    FigureCanvasAgg(figure).draw()
    legends = [axes.get_legend() for axes in figure.axes if axes.get_legend()] + figure.legends
    assert legends
    whole = figure.bbox
    for legend in legends:
        box = legend.get_window_extent()
        assert box.x0 >= whole.x0 - 1
        assert box.x1 <= whole.x1 + 1
        for axes in figure.axes:
            data = axes.get_window_extent()
            across = min(box.x1, data.x1) - max(box.x0, data.x0)
            along = min(box.y1, data.y1) - max(box.y0, data.y0)
            assert across < 2 or along < 2, f"it covers {axes.get_title('left')!r}"
        for axes in figure.axes:  # nor the title
            for title in (axes.title, axes._left_title):
                if title.get_text():
                    assert not title.get_window_extent().overlaps(box)


def test_of_a_learning_curve():
    moves = dict.fromkeys(("episodes", "samples", "ess", "max_weight"), AT + 1)
    final = Measured(9.5, 0.1, 100)
    curve = Curve(AT, AT, np.ones_like(AT))
    assert_nothing_is_hidden(learning_curve("a title", curve, final, moves))
    assert_nothing_is_hidden(learning_curve("", curve, None, moves))


def test_of_many_runs_with_long_names():
    names = [f"recoup (epsilon=0.{i}, window=1, weighting=balance-heuristic)" for i in range(9)]
    lines = [Line(n, AT, AT + i, AT / 9, [(AT, AT)] * 2, 100) for i, n in enumerate(names)]
    assert_nothing_is_hidden(overlaid([Panel("toy", lines), Panel("car", lines[:2])]))


def test_of_a_replay_a_comparison_and_ages():
    own = [{"objective": 1.0, "low": 0.0, "high": 2.0, "ess": 5.0}] * 3
    found = [Replayed(i, 8 * i, np.zeros(2), np.ones(2), own[0]) for i in (1, 2, 3)]
    assert_nothing_is_hidden(replayed("recoup", own, "tiw-pgpe-ob", found))
    curve = (AT, np.ones_like(AT))
    methods = [MethodCurve(f"method-{i}:epsilon=0.25,window=1", curve, curve) for i in range(9)]
    assert_nothing_is_hidden(compared("a task", AT, methods))
    shares = np.tile([0.5, 0.2, 0.2, 0.05, 0.05], (6, 1))
    assert_nothing_is_hidden(_age(shares))


@pytest.mark.parametrize("names", [["x"], ["shoulder_pitch_stiffness_gain_left", "ki"]])
def test_of_a_study_with_results_of_every_kind(tmp_path, names):
    with Study.open(tmp_path / "s.db", params=dict.fromkeys(names), batch=4, seed=2) as study:
        study.enqueue([0.5] * len(names))
        for i, trial in enumerate([*study.ask(13), *study.ask(2, at="mean")]):
            if i == 5:
                study.tell(trial.id, failed="slipped")
            else:
                study.tell(trial.id, -float(np.sum(trial.theta**2)) * (500 if i == 7 else 1))
        figure = study.plot()
    assert_nothing_is_hidden(figure)
    texts = [text.get_text() for axes in figure.axes for text in (axes.yaxis.label,)]
    for name in names:  # whole: wrapped, not cut
        assert any(name in text.replace("\n", "") for text in texts)

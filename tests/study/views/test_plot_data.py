"""The picture of a study: the arrays behind it, what is drawn of them, the file it becomes."""

import sys

import numpy as np
import pytest

import recoup
from recoup import Study
from recoup.checks import InputError
from recoup.pictures.study_picture import KINDS, _limits, _log_ticks, study_picture
from recoup.store.rows import FOREIGN, MEAN, OWN, SAMPLED
from recoup.study.reader.settings import resolved
from recoup.study.views.plot_data import portrait
from recoup.study.voice.sentences import explains

pytestmark = pytest.mark.usefixtures("few_rehearsals")

PARAMS = {"stiffness": (50, 2000, "log"), "damping": (0, 1)}


def fill(study, rounds, each, failing=()):
    for _ in range(rounds):
        for trial in study.ask(each):
            if trial.id in failing:
                study.tell(trial.id, failed="slipped")
            else:
                study.tell(trial.id, -float(np.sum((trial.theta - 1) ** 2)))


@pytest.fixture
def study(tmp_path):
    with Study.open(tmp_path / "robot.db", params=PARAMS, batch=4, failure="censored") as made:
        fill(made, 3, 4, failing=(2,))
        made.tell(made.ask(at="mean")[0].id, -1.0)
        yield made


def texts(figure):
    return [text.get_text() for text in figure.findobj(lambda x: hasattr(x, "get_text"))]


class TestTheArrays:
    def test_results_stand_in_the_order_of_telling(self, tmp_path):
        with Study.open(tmp_path / "s.db", dim=1, batch=2, failure="censored") as made:
            a, b, c = made.ask(3)
            made.tell(c.id, 3.0)
            made.tell(a.id, failed="fell")
            made.tell(b.id, 2.0)
            found = portrait(made.opened)
            np.testing.assert_array_equal(found.returns, [3.0, np.nan, 2.0])
            np.testing.assert_array_equal(
                found.sliced[0].values, [c.theta[0], a.theta[0], b.theta[0]]
            )
            assert found.at.tolist() == [0, 3]  # the move was made with the third
            made.amend(c.id, 4.0)
            np.testing.assert_array_equal(portrait(made.opened).returns, [4.0, np.nan, 2.0])

    @pytest.mark.parametrize("mirrored", [False, True])
    def test_what_counts_for_nothing_is_not_drawn(self, tmp_path, mirrored):
        """Of a mirrored pair neither, whichever was dropped."""
        how = {"method": "mis-pgpe-ob", "mirrored": mirrored}
        with Study.open(tmp_path / "s.db", dim=2, batch=4, **how) as made:
            fill(made, 3, 4)
            made.amend(3, drop="loose")
            gone = {3, 4} if mirrored else {3}
            left = [trial for trial in made.trials() if trial.id not in gone]
            found = portrait(made.opened)
            assert found.returns.tolist() == [trial.value for trial in left]
            assert len(found.kinds) == len(found.sliced[0].values) == len(left)
            assert f"{len(left)} results" in found.title
            assert found.at.tolist() == [0, 4 - len(gone), 8 - len(gone), 12 - len(gone)]

    def test_moves_are_those_of_the_history(self, study):
        found, history = portrait(study.opened), study.history()
        assert len(found.estimate) == len(found.ess) == len(history) == 2
        assert found.estimate.tolist() == [move["objective"] for move in history]
        assert found.samples.tolist() == [move["samples"] for move in history]
        assert found.at.tolist() == [0, 5, 9]  # one of the first five failed

    def test_parameters_are_in_the_users_units(self, study):
        stiffness, damping = portrait(study.opened).parameters
        assert stiffness.mean[-1] == pytest.approx(study.mean_policy["stiffness"])
        low = study.opened.in_units(study.mean - study.std)
        assert [stiffness.low[-1], damping.low[-1]] == pytest.approx(low.tolist())
        assert (stiffness.log, damping.log) == (True, False)
        assert stiffness.bounds == (50, 2000)

    def test_slices_are_of_those_that_moved_most(self, tmp_path):
        with Study.open(tmp_path / "s.db", dim=8, batch=200) as made:
            trials = made.ask(200)
            made.tell([t.id for t in trials], [float(t.theta[5] - t.theta[2]) for t in trials])
            names = {one.name for one in portrait(made.opened).sliced}
            assert {"theta_2", "theta_5"} <= names
            assert len(names) == 3

    def test_kinds_are_kept_apart(self, study):
        assert portrait(study.opened).kinds.tolist() == ["drawn"] * 12 + ["mean"]

    def test_no_band_where_the_search_explores_in_actions(self):
        run = recoup.train("mountain-car", "iw-reinforce-ob", iterations=2, seed=0, horizon=5)
        found = portrait(run.study.opened)
        assert np.isnan(found.parameters[0].low).all()
        assert "Mean policy over time (the first 6 of 12; 6 are not shown)" in texts(
            study_picture(found)
        )


class TestThePicture:
    def test_says_what_it_shows(self, study):
        said = texts(study.plot())
        assert "robot.db · recoup · 2 parameters · 13 results · 2 moves" in said
        for words in ("1 failed", "of the mean policy", "effective sample size", "damping"):
            assert words in said, words

    @pytest.mark.parametrize("size", [1.0, 1.7])
    def test_results_beyond_what_can_be_drawn_are_drawn_at_the_edge(self, size, tmp_path):
        with Study.open(tmp_path / "large.db", dim=2, batch=6, seed=0) as study:
            for trial in study.ask(14):
                study.tell(trial.id, (-1) ** trial.id * size * 10.0 ** (308 - trial.id % 3))
            study.plot().canvas.draw()

    def test_says_how_much_each_parameter_explains_as_recommend_does(self, study):
        rows = {row.names: row for row in study.recommend().matters}
        said = texts(study_picture(portrait(study.opened)))
        for name in PARAMS:
            row = rows[(name,)]
            assert any(name in text and explains(row.share, row.stderr) in text for text in said)

    def test_whole_numbers_have_whole_ticks(self, tmp_path):
        with Study.open(tmp_path / "s.db", params={"steps": (1, 6, "int"), "x": None}) as made:
            fill(made, 1, 4)
            stripe = study_picture(portrait(made.opened)).axes[2]
        assert stripe.get_ylabel().startswith("steps")
        assert all(tick == round(tick) for tick in stripe.get_yticks())

    def test_every_kind_of_result_has_its_mark(self):
        assert set(KINDS) == {*SAMPLED, MEAN, OWN, FOREIGN}

    def test_says_how_many_parameters_it_leaves_out(self, tmp_path):
        with Study.open(tmp_path / "s.db", dim=9, batch=4) as made:
            said = texts(made.plot())
        assert "Mean policy over time, ±1 std (the first 6 of 9; 3 are not shown)" in said
        assert any("3 parameters of 9 that moved most" in words for words in said)

    @pytest.mark.parametrize(
        ("settings", "rounds", "failing"),
        [
            ({"dim": 2}, 0, ()),
            ({"params": PARAMS}, 1, ()),
            ({"params": PARAMS}, 3, range(100)),
            ({"dim": 1, "batch": 2}, 3, (1,)),
            ({"dim": 3, "batch": 2, "method": "pgpe", "mirrored": True}, 4, ()),
            ({"dim": 2, "batch": 4, "family": "full"}, 5, ()),
            ({"dim": 2, "batch": 2, "window": 1}, 5, ()),
        ],
    )
    def test_any_study_has_one(self, settings, rounds, failing, tmp_path):
        with Study.open(tmp_path / "s.db", **settings) as made:
            fill(made, rounds, 2 if settings.get("mirrored") else 1, failing)
            made.plot(tmp_path / "s.png")
        assert (tmp_path / "s.png").stat().st_size > 10_000

    def test_names_are_no_mathematics(self, tmp_path):
        with Study.open(tmp_path / "$a^{.db", params={"$x^{": (0, 1), "\\$y_": None}) as made:
            made.plot(tmp_path / "s.png")
        with Study.open(tmp_path / "c.db", params={"中": None}) as made:
            made.plot(tmp_path / "c.png")  # not even a warning

    def test_all_returns_equal_and_one_far_away(self, tmp_path):
        with Study.open(tmp_path / "s.db", dim=2, batch=50) as made:
            trials = made.ask(12)
            made.tell([trial.id for trial in trials], [2.0] * 12)
            made.plot(tmp_path / "equal.png")
            values = [*np.linspace(0, 1, 11), -1e9]
            for trial, value in zip(made.ask(12), values, strict=True):
                made.tell(trial.id, float(value))
            assert "1 beyond, down to -1e+09" in texts(made.plot())

    def test_limits_hold_all_but_what_is_far(self):
        assert _limits(np.array([1.0, 2.0, np.nan, 3.0])) == (1, 3)
        low, high = _limits(np.array([*np.linspace(0, 1, 101), 1e6]))
        assert low == 0
        assert 1 < high < 10
        assert _limits(np.array([np.nan])) is None
        assert _limits(np.array([-2.0])) == (-3, -1)

    def test_ticks_of_logarithmic_axes_are_round(self):
        assert _log_ticks(0.5, 2000).tolist() == [1, 10, 100, 1000]
        assert _log_ticks(150, 700).tolist() == [200, 500]
        assert len(_log_ticks(1.01, 1.02)) == 2


class TestTheFile:
    @pytest.mark.parametrize(("name", "start"), [("x.png", b"\x89PNG"), ("x.PDF", b"%PDF")])
    def test_by_its_ending(self, study, tmp_path, name, start):
        study.plot(tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(start)
        assert sorted(p.name for p in tmp_path.glob("*x.*")) == [name]

    def test_an_older_one_is_replaced_when_the_new_one_is_whole(self, study, tmp_path, monkeypatch):
        from matplotlib.figure import Figure

        study.plot(tmp_path / "x.png")
        old = (tmp_path / "x.png").read_bytes()

        def full(*_, **__):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(Figure, "savefig", full)
        with pytest.raises(InputError, match="cannot be written: No space left"):
            study.plot(tmp_path / "x.png")
        assert (tmp_path / "x.png").read_bytes() == old
        assert [p.name for p in tmp_path.iterdir() if p.name.startswith("x.png")] == ["x.png"]
        monkeypatch.undo()
        for trial in study.ask(4):
            study.tell(trial.id, 1.0)
        study.plot(tmp_path / "x.png")
        assert (tmp_path / "x.png").read_bytes() != old

    @pytest.mark.parametrize(
        ("name", "sentence"),
        [
            ("x.jpg", "must end in .png, .pdf or .svg"),
            ("robot.db", "is the study itself: name a file that ends in .png, .pdf or .svg"),
            ("none/x.png", "does not exist"),
        ],
    )
    def test_others_are_refused(self, study, tmp_path, name, sentence):
        with pytest.raises(InputError, match=sentence):
            study.plot(tmp_path / name)

    def test_without_matplotlib_one_sentence_says_what_to_install(self, study, monkeypatch):
        monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
        monkeypatch.delitem(sys.modules, "recoup.pictures.study_picture")
        with pytest.raises(InputError, match="needs matplotlib: pip install matplotlib"):
            study.plot()


def test_a_title_and_units_stand_in_the_picture(tmp_path):
    params = {"kp": {"low": 1, "high": 200, "unit": "Nm/rad"}, "kd": (0, 1)}
    with Study.open(tmp_path / "s.db", params=params, return_unit="$m$", title="Left arm") as study:
        for trial in study.ask(3):
            study.tell(trial.id, -1.0 * trial.id)
        found = texts(study.plot())
    assert {"return [\\$m\\$]", "kp [Nm/rad]", "kd"} <= set(found)
    assert any(text.endswith(" Nm/rad") for text in found)  # behind the newest value
    assert any(text.startswith("Left arm · s.db · ") for text in found)


def test_results_that_broke_a_limit_are_told_apart_in_the_picture():
    study = Study.create(None, resolved({"params": PARAMS, "limits": {"force": "<50"}}))
    for trial, force in zip(study.ask(5), (41, 58, 70, 20, 30), strict=True):
        study.tell(trial.id, -1.0 * trial.id, also={"force": force})
    drawn = [x for axes in study.plot().axes for x in axes.collections]
    (rings,) = (x for x in drawn if x.get_label() == "2 broke a limit")
    assert rings.get_offsets().tolist() == [[2, -2], [3, -3]]

"""Coming back to a study: notes, titles, units, cancelled trials, and what happened when."""

import itertools
import json
from datetime import datetime

import numpy as np
import pytest

from recoup import Study
from recoup.checks import InputError
from recoup.study.care.recover import recover
from recoup.study.care.verify import check
from recoup.study.text.times import when

PARAMS = {"kp": {"low": 1, "high": 200, "scale": "log", "unit": "Nm/rad"}, "kd": (0, 1)}


@pytest.fixture
def study(tmp_path, monkeypatch):
    """A study on whose clock a second goes by between any two looks at it."""
    seconds = itertools.count(1_800_000_000)
    monkeypatch.setattr("time.time", lambda: float(next(seconds)))
    with Study.open(tmp_path / "s.db", dim=2, batch=4, failure="censored") as made:
        yield made


def words(study):
    return [(one.what, one.words) for one in study.log()]


class TestNotesAndTitle:
    def test_a_title_is_given_changed_and_taken_away(self, tmp_path):
        path = tmp_path / "s.db"
        with Study.open(path, dim=2, title="Left arm") as study:
            assert study.title == "Left arm"
        with Study.open(path, title="Left arm") as study:
            study.title = "  Right\n arm "
            assert study.title == "Right arm"
        with pytest.raises(InputError, match="is called 'Right arm', not 'Left arm'"):
            Study.open(path, title="Left arm")
        with Study.open(path) as study:
            study.title = None
            assert study.title is None
            assert [said for what, said in words(study) if what == "title"] == (
                ["Left arm", "Right arm", "none any more"]
            )

    @pytest.mark.parametrize("text", ["x" * 201, 3, "a\0b"])
    def test_what_is_no_title(self, tmp_path, text):
        with pytest.raises(InputError, match="title"):
            Study.open(tmp_path / "s.db", dim=2, title=text)
        assert not (tmp_path / "s.db").exists()

    def test_notes_on_the_study_and_on_a_trial(self, study):
        study.ask(2)
        study.note("oil changed")
        study.note(" slipped a little ", 2)
        assert [(n.trial, n.text) for n in study.notes()] == (
            [(None, "oil changed"), (2, "slipped a little")]
        )
        assert study.trials()[1].notes == ("slipped a little",)
        assert study.trials()[1].remark == "slipped a little"
        assert words(study)[-2:] == [("note", "oil changed"), ("note", "trial 2: slipped a little")]

    @pytest.mark.parametrize(
        ("text", "trial", "said"),
        [("", None, "needs a text"), ("x", 9, "no trial 9"), (4, None, "must be a text")],
    )
    def test_what_is_no_note(self, study, text, trial, said):
        with pytest.raises(InputError, match=said):
            study.note(text, trial)
        assert study.notes() == []

    def test_the_note_of_what_was_enqueued_goes_with_its_trial(self, study):
        study.enqueue([0.5, -1.0], note="last year's")
        assert study.queue() == [{"theta": [0.5, -1.0], "note": "last year's"}]
        (trial,) = study.ask()
        assert study.queue() == []
        assert study.trials()[trial.id - 1].notes == ("last year's",)
        assert ("enqueued", "a theta of one's own: last year's") in words(study)

    def test_a_table_has_them_and_comes_back(self, study, tmp_path):
        for trial in study.ask(4):
            study.tell(trial.id, -1.0 * trial.id)
        assert "notes" not in study.opened.store.path.name
        study.export(tmp_path / "before.csv")
        assert "notes" not in (tmp_path / "before.csv").read_text().splitlines()[0]
        study.note("oil, on the table", 2)
        study.export(tmp_path / "t.csv")
        head, *rows = (tmp_path / "t.csv").read_text().splitlines()
        assert head.endswith(",notes")
        assert rows[1].endswith(',"oil, on the table"')
        with Study.open(tmp_path / "new.db", dim=2) as new:
            from recoup.study.exchange.read import read_samples
            from recoup.study.exchange.samples import import_samples

            found = read_samples(new.opened, tmp_path / "t.csv")
            assert import_samples(new.opened, found).samples == 4
            assert [said for what, said in words(new) if what == "imported"] == ["4 samples"]

    def test_a_fork_keeps_title_units_and_notes(self, tmp_path):
        with Study.open(tmp_path / "s.db", params=PARAMS, title="Left", return_unit="m") as study:
            study.tell(study.ask(3)[0].id, -1.0)
            study.note("slipped", 1)
            study.note("waits", 2)
            with study.fork(tmp_path / "f.db", rename={"kd": "d"}, units={"d": "Nms"}) as fork:
                assert (fork.title, fork.opened.return_unit) == ("Left", "m")
                assert fork.opened.units == {"kp": "Nm/rad", "d": "Nms"}
                assert [note.trial for note in fork.notes()] == [1]
                assert fork.notes()[0].at == study.notes()[0].at
                assert [what for what, _ in words(fork)] == ["note", "created", "title", "forked"]
                fork.ask()
                assert words(fork)[-1] == ("asked", "trial 4")


class TestUnits:
    def test_are_kept_beside_the_parameters(self, tmp_path):
        path = tmp_path / "s.db"
        with Study.open(path, params=PARAMS, return_unit="m") as study:
            assert study.opened.units == {"kp": "Nm/rad"}
            assert study.opened.parameters[0].label == "kp [Nm/rad]"
        with Study.open(path, params={"kp": (1, 200, "log"), "kd": (0, 1)}) as study:
            assert study.opened.units == {"kp": "Nm/rad"}  # where none is said, the file's stays
            assert study.opened.return_unit == "m"
        with Study.open(path, params=PARAMS, return_unit="m"):
            pass
        other = {**PARAMS, "kp": {**PARAMS["kp"], "unit": "Nm/deg"}}
        for given in ({"params": other}, {"return_unit": "cm"}, {"units": {"kd": "s"}}):
            with pytest.raises(InputError, match="was made with"):
                Study.open(path, **given)

    def test_what_is_for_people_stands_beside_the_parameters(self, tmp_path):
        import sqlite3

        given = {"params": PARAMS, "method": "mis-pgpe-ob"}  # whose steps know nothing of bounds
        with Study.open(tmp_path / "s.db", **given, return_unit="m", title="x") as study:
            study.ask(3)
            study.note("n", 1)
            study.cancel(2)
        connection = sqlite3.connect(tmp_path / "s.db")
        rows = dict(connection.execute("SELECT key, value FROM settings").fetchall())
        connection.close()
        assert set(json.loads(rows["params"])[0]) == {
            "name",
            "low",
            "high",
            "scale",
            "start",
            "std",
        }

    def test_a_study_without_them_has_the_settings_of_before(self, tmp_path):
        with Study.open(tmp_path / "s.db", params={"kp": (0, 1)}) as study:
            assert not {"units", "return_unit", "title"} & set(study.settings)

    @pytest.mark.parametrize(
        ("given", "said"),
        [
            ({"params": {"kp": {"unit": ""}}}, "the unit of kp must be a text"),
            ({"params": {"kp": {"unit": 3}}}, "the unit of kp must be a text"),
            ({"params": {"kp": None}, "units": {"ki": "s"}}, "'ki', which is no parameter"),
            ({"dim": 2, "units": {"kp": "s"}}, "'kp', which is no parameter"),
            ({"dim": 2, "return_unit": "x" * 30}, "the unit of returns must be a text"),
        ],
    )
    def test_what_is_none(self, tmp_path, given, said):
        with pytest.raises(InputError, match=said):
            Study.open(tmp_path / "s.db", **given)
        assert not (tmp_path / "s.db").exists()


class TestCancelledTrials:
    def test_are_not_waited_for_any_more(self, study):
        study.ask(3)
        assert study.cancel(2, why="the bolt is loose").trials == [2]
        assert [trial.id for trial in study.pending()] == [1, 3]
        assert [row.trial.id for row in study.waiting()] == [1, 3]
        assert study.counts() == {"pending": 2, "ok": 0, "failed": 0}
        assert [trial.status for trial in study.trials()] == ["pending", "cancelled", "pending"]
        found = study.diagnostics()
        assert (found["pending"], found["waiting"], found["cancelled"]) == (2, 2, [2])
        assert words(study)[-1] == ("cancelled", "trial 2 (the bolt is loose)")
        assert study.ask()[0].id == 4
        assert study.cancel(2).trials == []
        assert [what for what, _ in words(study)].count("cancelled") == 1

    def test_nor_handed_out_again(self, study, monkeypatch):
        study.ask(2, lease=1.0)
        study.cancel(1)
        monkeypatch.setattr("recoup.study.trials.leases.now", lambda: 4e9)
        assert study.diagnostics()["overdue"] == [2]
        assert [trial.id for trial in study.ask(2)] == [2, 3]
        study.cancel(2)  # handed out twice: two results of it may come
        assert [trial.id for trial in study.ask(1)] == [4]
        study.tell(2, -1.0)
        (later,) = study.tell(2, -2.0)
        assert later.value == -2.0

    def test_nor_by_a_study_that_was_recovered(self, study, tmp_path, monkeypatch):
        study.ask(2, lease=1.0)
        study.cancel(1)
        recover(tmp_path / "s.db", tmp_path / "saved.db")
        monkeypatch.setattr("recoup.study.trials.leases.now", lambda: 4e9)
        with Study.open(tmp_path / "saved.db") as saved:
            assert [trial.id for trial in saved.pending()] == [2]
            assert [trial.id for trial in saved.ask(2)] == [2, 3]
            assert words(saved)[-2][0] == "recovered"

    def test_count_when_they_are_told_all_the_same(self, study, tmp_path):
        for trial in study.ask(4):
            study.cancel(trial.id)
        for number in range(1, 5):
            study.tell(number, -1.0 * number)
        assert study.counts() == {"pending": 0, "ok": 4, "failed": 0}
        assert len(study.history()) == 1
        assert [trial.status for trial in study.trials()] == ["ok"] * 4
        study.close()
        assert all(found.sound for found in check(tmp_path / "s.db"))

    def test_a_search_with_some_is_the_one_without_them(self, study, tmp_path):
        """Nothing about what is drawn or moved depends on them but which trials are told."""
        with Study.open(tmp_path / "other.db", dim=2, batch=4) as other:
            for one in (study, other):
                for trial in one.ask(6):
                    if trial.id != 3:
                        one.tell(trial.id, -float(trial.theta @ trial.theta))
                    elif one is study:
                        one.cancel(3)
            np.testing.assert_array_equal(study.mean, other.mean)
            np.testing.assert_array_equal(study.ask()[0].theta, other.ask()[0].theta)
        study.close()
        found = check(tmp_path / "s.db")
        assert all(one.sound for one in found)
        assert any("1 pending, 5 ok, 0 failed, 1 cancelled" in one.words for one in found)

    @pytest.mark.parametrize(
        ("number", "said"), [(9, "no trial 9"), (1, "was told -1: `amend`"), ("1", "whole number")]
    )
    def test_what_cannot_be_cancelled(self, study, number, said):
        study.tell(study.ask(2)[0].id, -1.0)
        with pytest.raises(InputError, match=said):
            study.cancel(number)
        assert study.diagnostics()["cancelled"] == []

    def test_a_mirrored_pair_is_one_draw(self, tmp_path):
        how = {"method": "mis-pgpe-ob", "mirrored": True, "batch": 2}
        with Study.open(tmp_path / "m.db", dim=2, **how) as study:
            study.ask(6)
            assert study.cancel(4).trials == [3, 4]
            study.tell(1, -1.0)
            found = study.cancel(2)
            assert found.trials == [2]
            assert "No move is made of trial 1" in found.words
            study.tell([5, 6], [-1.0, -2.0])
            assert len(study.history()) == 1
            study.tell([3, 4], [-3.0, -4.0])  # they were on the robot
            assert len(study.history()) == 2
            study.tell(2, -2.0)
            assert len(study.history()) == 3
        assert all(found.sound for found in check(tmp_path / "m.db"))

    def test_stay_behind_in_a_fork_and_say_so_in_a_table(self, study, tmp_path):
        study.tell(study.ask(2)[0].id, -1.0)
        study.cancel(2)
        study.export(tmp_path / "t.csv")
        assert ",cancelled," in (tmp_path / "t.csv").read_text().splitlines()[2]
        with study.fork(tmp_path / "f.db") as fork:
            assert [trial.id for trial in fork.trials()] == [1]
            assert fork.diagnostics()["cancelled"] == []


class TestTheLog:
    def test_says_what_happened_in_order(self, study):
        study.ask(4)
        study.tell(2, -4.1)
        study.amend(2, -4.0, why="the wrong line")
        study.tell(1, values=[-1.0, -2.0])
        study.tell(4, failed="slipped")
        study.note("a pause")
        study.tell(3, -2.5)
        study.ask(at="mean")
        study.amend(3, drop="a loose sensor")
        study.tell(study.ask()[0].id, -0.5)
        assert words(study) == [
            ("created", "recoup, 2 parameters, batch 4"),
            ("asked", "trials 1 to 4"),
            ("told", "trial 2: -4.1"),
            ("amended", "trial 2: -4.1 became -4 (the wrong line)"),
            ("told", "trials 1, 4: -1.5 ± 0.5 of 2 episodes, 1 failed (slipped)"),
            ("note", "a pause"),
            ("told", "trial 3: -2.5"),
            ("asked", "trial 5 (mean)"),
            ("dropped", "trial 3, which was -2.5: a loose sensor"),
            ("asked", "trial 6"),
            ("told", "trial 6: -0.5"),
        ]
        times = [one.at for one in study.log()]
        assert times == sorted(times)
        assert study.log()[1].trials == (1, 2, 3, 4)
        plain = json.loads(json.dumps([one.plain() for one in study.log()]))
        assert datetime.fromisoformat(plain[0]["when"]).timestamp() == int(times[0])

    def test_has_the_moves_and_which_were_made_again(self, study):
        for trial in study.ask(8):
            study.tell(trial.id, -float(trial.theta @ trial.theta))
        moves = [said for what, said in words(study) if what == "moved"]
        assert moves == ["move 1, of results up to the 4.", "move 2, of results up to the 8."]
        study.amend(6, -9.0)
        moves = [said for what, said in words(study) if what == "moved"]
        assert moves[1] == "move 2, of results up to the 8. (made again)"

    def test_results_of_another_hour_stand_by_themselves(self, study, monkeypatch):
        study.ask(3)
        study.tell([1, 2], [-1.0, -2.0])
        monkeypatch.setattr("time.time", lambda: 4e9)
        study.tell(3, -3.0)
        told = [said for what, said in words(study) if what == "told"]
        assert told == ["trials 1 to 2: 2 returns, -2 to -1", "trial 3: -3"]

    def test_a_result_that_came_later(self, study, monkeypatch):
        study.ask(1, lease=1.0)
        monkeypatch.setattr("recoup.study.trials.leases.now", lambda: 4e9)
        study.ask(1)
        study.tell(1, -1.0)
        study.tell(1, -2.0)
        assert words(study)[-1] == ("told later", "trial 1: -2, not counted")


class TestWhatSomebodyComesBackTo:
    def test_dates_reasons_and_what_is_in_line(self, study):
        study.ask(6)
        study.tell(1, -1.0)
        for number, why in ((2, "slipped"), (3, "fell"), (4, "slipped"), (5, "a loose sensor")):
            study.tell(number, failed=why)
        study.amend(5, drop="nobody knows")
        study.enqueue([1.0, 2.0], "last year's")
        study.title = "Left arm"
        study.note("a pause")
        found = study.diagnostics()
        assert [note["text"] for note in found["remarks"]] == ["a pause"]
        assert found["reasons"] == {"fell": 1, "slipped": 2}  # the last at the end
        assert found["enqueued"] == [{"theta": [1.0, 2.0], "note": "last year's"}]
        assert found["created_at"] <= found["last_asked_at"] <= found["last_told_at"]
        assert found["title"] == "Left arm"
        text = study._repr_html_()
        assert "2 x slipped; fell" in text
        assert "theta=[1, 2] (last year&#x27;s)" in text
        assert "Left arm" in text

    def test_nothing_that_the_search_says_is_hidden_by_it(self, study):
        for trial in study.ask(8):
            study.tell(trial.id, -float(trial.theta @ trial.theta))
        study.note("a pause")
        info, found = study.store.last_move().info, study.diagnostics()
        assert info["notes"]
        assert {key: repr(found[key]) for key in info} == {k: repr(x) for k, x in info.items()}
        assert any("The last step rests" in sentence for sentence in found["advice"])

    def test_before_the_first_result(self, study):
        assert study.diagnostics()["last_told_at"] is None
        assert "nothing was told yet" in study._repr_html_()


@pytest.mark.parametrize(
    ("then", "said"),
    [
        (datetime(2026, 11, 17, 9, 5), "09:05"),
        (datetime(2026, 11, 16, 23, 59), "2026-11-16 23:59"),
        (datetime(2025, 11, 17, 9, 5), "2025-11-17 09:05"),
    ],
)
def test_a_time_is_of_today_or_has_its_date(then, said):
    assert when(then.timestamp(), datetime(2026, 11, 17, 10, 0).timestamp()) == said


def test_what_is_no_time_is_said():
    assert when(1e300, 0.0) == when(None, 0.0) == when(float("nan"), 0.0) == "no date"

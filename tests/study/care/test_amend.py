"""Results that were told wrongly, put right: nothing of it is forgotten, everything follows."""

import csv
import io

import numpy as np
import pytest
import study_worker
from processes import Forked
from program import recoup as program
from waiting import until

import recoup
from recoup.checks import InputError
from recoup.store import count
from recoup.study.care import amend as amending
from recoup.study.care.recover import recover
from recoup.study.care.verify import check
from recoup.study.exchange.read import read_samples
from recoup.study.exchange.samples import import_samples
from recoup.study.moves import study_move as moves
from recoup.study.study import Study
from recoup.study.voice.slips import slips

pytestmark = pytest.mark.usefixtures("few_rehearsals")


def value_of(trial):
    return float(-((trial.theta - 1) ** 2).sum())


def told(path, batches=3, wrong=None, **settings):
    """A study of some batches and half a batch; the trials of `wrong` are told other returns."""
    study = Study.open(path, dim=2, batch=4, seed=3, **settings)
    for n in (*[4] * batches, 2):
        for trial in study.ask(n):
            study.tell(trial.id, (wrong or {}).get(trial.id, value_of(trial)))
    return study


def right(study, number):
    (trial,) = study.opened.trials(study.store.asked([number]))
    return value_of(trial)


METHODS = [
    {"method": "recoup"},
    {"method": "mis-pgpe-ob"},
    {"method": "pgpe-ob"},
    {"method": "iw-pgpe-ob", "mirrored": True},
    {"method": "mis-pgpe-ob", "update": "adam"},
    {"method": "mis-pgpe-ob", "family": "full"},
]


class TestAnotherReturn:
    @pytest.mark.parametrize("settings", METHODS)
    def test_moves_are_those_of_what_was_put_right(self, tmp_path, settings):
        """Of the same trials, told rightly from the start: the wrong one drew none of them."""
        wrong = told(tmp_path / "a.db", batches=1, wrong={2: 500.0}, **settings)
        with wrong as study, told(tmp_path / "b.db", batches=1, **settings) as want:
            found = study.amend(2, right(study, 2), why="a slip")
            assert found.moves == [1]
            np.testing.assert_allclose(study.mean, want.mean, rtol=1e-12, atol=1e-14)
            np.testing.assert_allclose(study.std, want.std, rtol=1e-12)

    @pytest.mark.parametrize("settings", METHODS)
    def test_there_and_back_is_where_it_was(self, tmp_path, settings):
        """Later trials keep the densities that drew them, so that no weight is wrong meanwhile."""
        path = tmp_path / "a.db"
        with told(path, **settings) as study:
            mean, value = study.mean, right(study, 6)
            away = study.amend(6, 99.0)
            assert away.moves == [2, 3]
            assert np.abs(study.mean - mean).max() > 1e-3
            assert study.amend(6, value).moves == [2, 3]
            np.testing.assert_allclose(study.mean, mean, rtol=1e-9, atol=1e-12)
            for trial in study.ask(4):
                study.tell(trial.id, value_of(trial))
        assert all(part.sound for part in check(path))

    def test_a_dry_run_says_the_same_and_changes_nothing(self, tmp_path):
        with told(tmp_path / "a.db") as study:
            before = [tuple(row) for row in study.store._file.read("told", tuple)]
            moves, mean = study.store.moves(), study.mean
            dry = study.amend(6, 99.0, dry_run=True)
            assert [tuple(row) for row in study.store._file.read("told", tuple)] == before
            assert [m.proposal for m in study.store.moves()] == [m.proposal for m in moves]
            assert dry.words.endswith("Nothing was changed.")
            done = study.amend(6, 99.0)
            np.testing.assert_array_equal(dry.mean_after, done.mean_after)
            np.testing.assert_array_equal(done.mean_before, mean)
            np.testing.assert_array_equal(done.mean_after, study.mean)

    def test_what_no_move_was_made_of(self, tmp_path):
        """A fresh result, and a theta of one's own."""
        with told(tmp_path / "a.db") as study:
            mean = study.mean
            assert study.amend(14, 3.0).moves == []
            study.enqueue([1.0, 1.0])
            (trial,) = study.ask(1)
            study.tell(trial.id, 1.0)
            assert study.amend(trial.id, 2.0).moves == []
            np.testing.assert_array_equal(study.mean, mean)
            assert study.store.results([14])[14].told.value == 3.0


class TestNoReturn:
    @pytest.mark.parametrize("settings", [*METHODS[:4], {"failure": -20.0}])
    @pytest.mark.parametrize("number", [6, 14])
    def test_failed_after_all(self, tmp_path, settings, number):
        path = tmp_path / "a.db"
        with told(path, **settings) as study:
            study.amend(number, failed="the gripper opened")
            assert study.counts() == {"pending": 0, "ok": 13, "failed": 1}
            study.amend(number, 1.5)
            assert study.counts() == {"pending": 0, "ok": 14, "failed": 0}
            assert study.until_move() == 2
            study.amend(number, failed="again")
            left = 2 if number == 6 or study.method.values_failures else 3
            assert study.until_move() == left
        assert all(part.sound for part in check(path))
        recover(path, tmp_path / "saved.db")
        with Study.open(tmp_path / "saved.db") as saved:
            assert saved.until_move() == left
            assert saved.counts()["failed"] == 1

    @pytest.mark.parametrize("settings", METHODS[:4])
    def test_dropped_counts_for_nothing(self, tmp_path, settings):
        """Moves and judgement are those of the other results alone; of a pair both leave."""
        path = tmp_path / "a.db"
        with told(path, **settings) as study:
            study.amend(2, drop="the sensor was loose")
            last = study.store.last_move().info
            pair = 2 if settings.get("mirrored") else 1
            assert study.evaluate().samples == 14 - pair
            if settings["method"] != "pgpe-ob":
                assert last["samples"] == 12 - pair
            assert study.store.results([2])[2].told.note == "dropped: the sensor was loose"
            with pytest.raises(InputError, match="trial 2 was dropped, and stays out"):
                study.amend(2, 1.0)
        assert all(part.sound for part in check(path))


class TestWhatWasDropped:
    """It counts for nothing wherever the results go."""

    SETTINGS = METHODS[:2] + METHODS[3:4] + [{"failure": -20.0}]

    @pytest.mark.parametrize("settings", SETTINGS)
    def test_a_fork_leaves_it_out_too(self, tmp_path, settings):
        with told(tmp_path / "a.db", **settings) as study:
            study.amend(2, drop="the sensor was loose")
            alone = {"mirrored": False} if study.method.mirrored else {}
            with study.fork(tmp_path / "b.db", **alone) as fork:
                assert_judged_alike(fork, study)
                with fork.fork(tmp_path / "c.db") as again:
                    assert_judged_alike(again, study)
                with pytest.raises(InputError, match="trial 2 is none of this study"):
                    fork.amend(2, 1.0)
        assert all(part.sound for part in check(tmp_path / "b.db"))

    @pytest.mark.parametrize("settings", SETTINGS)
    @pytest.mark.parametrize("ending", ["db", "csv", "parquet"])
    def test_so_does_a_study_that_imports_it(self, tmp_path, settings, ending):
        how = {key: value for key, value in settings.items() if key != "mirrored"}
        path = tmp_path / f"a.{ending}"
        with told(tmp_path / "a.db", **settings) as study:
            study.amend(2, drop="the sensor was loose")
            if ending != "db":
                study.export(path)
            with Study.open(tmp_path / "b.db", dim=2, batch=4, seed=9, **how) as new:
                import_samples(new.opened, read_samples(new.opened, path))
                assert_judged_alike(new, study)

    @pytest.mark.parametrize("settings", SETTINGS)
    def test_every_door_leaves_it_out(self, tmp_path, settings):
        """Of a result far above all others, and of a trial of the mean."""
        with told(tmp_path / "a.db", wrong={2: 900.0}, **settings) as study:
            for trial in study.ask(4, at="mean"):
                study.tell(trial.id, -1.0)
            study.amend(2, drop="the sensor was loose")
            study.amend(trial.id, drop="the sensor was loose")
            found = study.recommend()
            assert study.best[1] < 1
            assert "failed" not in found.words
            assert all(abs(batch.mean) < 50 for batch in found.batches)
            assert study.diagnostics()["dropped"] == 2
            assert "2 failed (2 of them dropped)" in study._repr_html_()

    def test_a_failure_whose_reason_begins_like_that_is_one(self, tmp_path):
        with told(tmp_path / "a.db") as study:
            (trial,) = study.ask(1)
            study.tell(trial.id, failed="dropped: the cup")
            study.amend(trial.id, -5.0)
            study.amend(6, failed="dropped: the cup")
            study.amend(6, -5.0)
            assert study.store.results([6])[6].told.value == -5.0
        assert all(part.sound for part in check(tmp_path / "a.db"))

    @pytest.mark.parametrize("settings", [*METHODS[:3], {"failure": -20.0}, {"failure": "worst"}])
    def test_all_that_there_is_can_be_dropped(self, tmp_path, settings):
        """The move that was made of it stays where it began."""
        with Study.open(tmp_path / "a.db", dim=2, batch=4, **settings) as study:
            for trial in study.ask(4):
                study.tell(trial.id, value_of(trial))
            for number in range(1, 5):
                study.amend(number, drop="the sensor was loose")
            assert np.isfinite(study.mean).all()
            assert np.isfinite(study.std).all()
            for trial in study.ask(4):
                study.tell(trial.id, value_of(trial))
        assert check(tmp_path / "a.db")[-1].words.endswith("to the last bit.")

    def test_what_is_recovered_leaves_it_out(self, tmp_path):
        with told(tmp_path / "a.db") as study:
            study.amend(2, drop="the sensor was loose")
            recover(tmp_path / "a.db", tmp_path / "b.db")
            with Study.open(tmp_path / "b.db") as saved:
                assert_judged_alike(saved, study)

    @pytest.mark.parametrize("settings", METHODS[:4])
    def test_the_last_of_a_move_too_and_it_goes_on(self, tmp_path, settings):
        """Its place is not given out again: what is told next is part of the next move."""
        with told(tmp_path / "a.db", **settings) as study:
            for trial in study.ask(2):
                study.tell(trial.id, value_of(trial))
            assert study.store.last_move().counted == study.store.counters().counted
            study.amend(16, drop="the sensor was loose")
            recover(tmp_path / "a.db", tmp_path / "b.db")
            with Study.open(tmp_path / "b.db") as saved:
                for one in (study, saved):
                    for trial in one.ask(6):
                        one.tell(trial.id, value_of(trial))
                assert len(saved.history()) == len(study.history())
                np.testing.assert_array_equal(saved.mean, study.mean)
        assert check(tmp_path / "b.db")[-1].words.endswith("to the last bit.")


PAIRS = [
    {"method": "mis-pgpe-ob"},
    {"method": "iw-pgpe-ob"},
    {"method": "mis-pgpe-ob", "failure": -20.0},
    {"method": "mis-pgpe-ob", "failure": "worst"},
]


class TestHalfOfAPair:
    """Dropped while the other of it is still out: the pair never counts."""

    @pytest.mark.parametrize("settings", PAIRS)
    @pytest.mark.parametrize("first", [1, 2])
    def test_it_gets_no_place_when_the_other_is_told(self, tmp_path, settings, first):
        path = tmp_path / "a.db"
        with Study.open(path, dim=2, batch=4, seed=1, mirrored=True, **settings) as study:
            study.ask(4)
            study.tell(first, 100.0)
            study.amend(first, drop="the sensor was loose")
            study.tell(3 - first, 50.0)
            assert study.until_move() == 4
            assert [row.counted for row in study.store.results().values()] == [None, None]
            assert study.best is None
            study.tell(3, 1.0)
            study.tell(4, 2.0)
            assert study.until_move() == 2
            for trial in study.ask(2):
                study.tell(trial.id, value_of(trial))
            assert [move["samples"] for move in study.history()] == [4]
            assert study.evaluate().samples == 4
            counters = study.store.counters()
        assert check(path)[-1].words.endswith("to the last bit.")
        recover(path, tmp_path / "b.db")
        with Study.open(tmp_path / "b.db") as saved:
            assert saved.store.counters() == counters

    def test_what_is_said_of_results_is_said_without_it(self, tmp_path):
        """Of one far above the others, whose partner was dropped."""
        path, wrong = tmp_path / "a.db", {4: 1e6}
        with told(path, wrong=wrong, mirrored=True, method="mis-pgpe-ob") as study:
            assert study.diagnostics()["improbable"] == [4]
            study.amend(3, drop="the sensor was loose")
            found = study.diagnostics()
            assert found["improbable"] == []
            assert not any("Trial 4" in sentence for sentence in found["advice"])
            assert (found["ok"], found["failed"]) == (13, 1)
            assert (found["dropped"], found["uncounted"]) == (1, 1)
            assert study.best[1] < 1
            trials = study.ask(2)
            study.tell(trials[0].id, value_of(trials[0]))
            study.amend(trials[0].id, drop="the sensor was loose")
        shown = program("study", "show", path).stdout
        assert "13 ok (1 of them left with the dropped one of their pair), 2 failed" in " ".join(
            shown.replace("│", " ").split()
        )
        assert "the best of 12 noisy returns" in shown
        said = program("study", "tell", path, trials[1].id, 1e6)
        assert "farther from the others" not in said.stdout


def assert_judged_alike(one, other):
    """By as many samples, with the same answer about a candidate that neither has drawn."""
    found, want = (study.evaluate(mean=0.3, std=0.9) for study in (one, other))
    assert found.samples == want.samples
    if one.method.mirrored == other.method.mirrored:  # else pairs are judged, or single draws
        np.testing.assert_allclose([found.mean, found.ess], [want.mean, want.ess], rtol=1e-9)


class TestWhatIsKept:
    def test_show_export_and_the_file_say_what_it_was(self, tmp_path):
        path = tmp_path / "a.db"
        with told(path) as study:
            was = study.store.results([6])[6].told.value
            study.amend(6, -12.5, why="a slip")
            study.amend(6, -12.75)
            (first, second) = (e.content for e in study.store.events("amended"))
            assert (first["was"][1], first["now"][1], first["why"]) == (was, -12.5, "a slip")
            assert list(first["moves"]) == ["2", "3"]
            assert second["was"][1] == -12.5
            study.export(tmp_path / "out.csv")
        rows = list(csv.DictReader(io.StringIO((tmp_path / "out.csv").read_text())))
        assert rows[5]["return"] == "-12.75"
        assert rows[5]["amended"] == f"was {was:.6g}, a slip; was -12.5"
        assert [row["amended"] for row in rows if row["id"] != "6"] == [""] * 13
        shown = program("study", "show", path).stdout
        assert "2; the last: trial 6" in shown

    def test_what_was_salvaged_is_what_was_put_right(self, tmp_path):
        """Old rows lie in old pages: the newest counts."""
        path = tmp_path / "a.db"
        with told(path) as study:
            study.amend(6, -12.5)
            mean = study.mean
        recover(path, tmp_path / "saved.db")
        with Study.open(tmp_path / "saved.db") as saved:
            assert saved.store.results([6])[6].told.value == -12.5
            np.testing.assert_array_equal(saved.mean, mean)

    @pytest.mark.parametrize(
        ("how", "why"),
        [
            ({"id": 99, "value": 1.0}, "trial 99 is none of this study"),
            ({"id": 15, "value": 1.0}, "trial 15 has no result yet: tell it"),
            ({"id": 6, "value": float("nan")}, "must be finite"),
            ({"id": 6}, "amend takes one of these"),
            ({"id": 6, "value": 1.0, "failed": "fell"}, "amend takes one of these"),
            ({"id": 6, "value": 1.0, "drop": "loose"}, "in place of another"),
            ({"id": 6, "drop": " "}, "says why"),
        ],
    )
    def test_what_cannot_be_is_a_sentence(self, tmp_path, how, why):
        with told(tmp_path / "a.db") as study:
            study.ask(1)
            with pytest.raises(InputError, match=why):
                study.amend(**how)
            with pytest.raises(InputError, match="as it should be"):
                study.amend(6, study.store.results([6])[6].told.value)


def in_actions(path):
    """A study of trajectories: two moves, and a trial that was handed out again and told twice."""
    study = Study.open(path, dim=2, batch=3, seed=1, method="iw-reinforce-ob", horizon=5)
    for trial in study.ask(6):
        study.tell(trial.id, trajectory=episode(trial.id))
    study.ask(1, lease=1e-9)
    (trial,) = until(lambda: [one for one in study.ask(1) if one.id == 7])
    study.tell(trial.id, trajectory=episode(7))
    return study


def episode(seed):
    rng = np.random.default_rng(seed)
    return recoup.Trajectory(
        rng.normal(size=(5, 2)), rng.normal(size=(5, 1)), rng.normal(size=5), 5
    )


class TestTrajectories:
    """A result of a method that explores in actions is more than its return."""

    @pytest.mark.parametrize("number", [2, 7])
    def test_one_that_was_taken_away_by_mistake_comes_back(self, tmp_path, number):
        path = tmp_path / "a.db"
        with in_actions(path) as study:
            rows, mean = study.store.trajectories([number])[number], study.mean
            value = study.store.results([number])[number].told.value
            study.amend(number, failed="a slip: of another trial")
            assert number not in study.store.trajectories()
            found = study.amend(number, trajectory="before")
            assert found.now == f"{value:.6g}"
            np.testing.assert_array_equal(study.store.trajectories([number])[number], rows)
            np.testing.assert_allclose(study.mean, mean, rtol=1e-12)
            with pytest.raises(InputError, match="as it should be"):
                study.amend(number, trajectory="before")
            with pytest.raises(InputError, match="as it should be"):
                study.amend(number, trajectory=episode(number))
        assert check(path)[-1].words == "All 2 moves follow from the results, to the last bit."

    def test_what_was_dropped_is_kept(self, tmp_path):
        with in_actions(tmp_path / "a.db") as study:
            rows = study.store.trajectories([2])[2]
            study.amend(2, drop="the sensor was loose")
            assert study.store.events("amended")[-1].content["trajectory"] == rows.tolist()

    def test_a_late_one_takes_the_place_of_the_first(self, tmp_path):
        """As it is said where it is told."""
        with in_actions(tmp_path / "a.db") as study:
            (later,) = study.tell(7, trajectory=episode(99))
            assert later.words.endswith("(`amend` puts it in place of the first).")
            study.amend(7, trajectory=episode(99))
            assert study.store.results([7])[7].told.value == later.value
            rewards = study.store.trajectories([7])[7][:, -1]
            np.testing.assert_array_equal(rewards, episode(99).rewards)
            first = study.store.events("amended")[-1].content["trajectory"]
            np.testing.assert_array_equal(np.array(first)[:, -1], episode(7).rewards)

    def test_the_command_takes_it_from_a_file_or_from_before(self, tmp_path):
        path, wanted = tmp_path / "a.db", episode(99)
        in_actions(path).close()
        np.savez(tmp_path / "e.npz", **wanted._asdict())
        said = program("study", "amend", path, 2, "--trajectory", tmp_path / "e.npz")
        assert "Moves 1 to 2 were made again" in said.stdout, said.stderr
        with Study.open(path) as study:
            np.testing.assert_array_equal(study.store.trajectories([2])[2][:, -1], wanted.rewards)
        assert program("study", "amend", path, 2, "--trajectory", "before").returncode == 0
        with Study.open(path) as study:
            rows = study.store.trajectories([2])[2]
            np.testing.assert_array_equal(rows[:, -1], episode(2).rewards)

    @pytest.mark.parametrize(
        ("how", "why"),
        [
            ({"trajectory": "before"}, "no amendment of trial 2 has kept a trajectory"),
            ({"trajectory": "then"}, "must be an episode, or 'before'"),
            ({"trajectory": "before", "failed": "x"}, "without another result beside"),
            ({"trajectory": episode(1), "drop": "loose"}, "in place of another"),
        ],
    )
    def test_what_cannot_be_is_a_sentence(self, tmp_path, how, why):
        with in_actions(tmp_path / "a.db") as study, pytest.raises(InputError, match=why):
            study.amend(2, **how)


def answers(study):
    """What a study says of itself, at every door that remembers or reads results."""
    found = study.evaluate()
    judged = np.array([found.mean, found.stderr, found.ess, *found.interval])
    return judged, study.recommend().words, study.diagnostics(), study.mean_policy


class TestOtherProcessesHaveItOpen:
    """Each has a connection and a memory of its own."""

    @pytest.mark.parametrize("settings", METHODS)
    @pytest.mark.parametrize("number", [6, 14])
    def test_they_forget_what_was_amended(self, tmp_path, settings, number):
        """Of a result that moves were made of, and of one that none was made of yet."""
        path = tmp_path / "a.db"
        with told(path, **settings) as worker, Study.open(path) as shell:
            answers(worker)  # remembers all results
            shell.amend(number, -40.0)
            with Study.open(path) as anew:
                judged, *said = answers(anew)
            again, *same = answers(worker)
            np.testing.assert_array_equal(again, judged)
            assert repr(same) == repr(said)
            for trial in worker.ask(6):
                worker.tell(trial.id, value_of(trial))
            assert worker.store.last_move().id == 5
        assert check(path)[-1].words == "All 5 moves follow from the results, to the last bit."

    @pytest.mark.parametrize("settings", METHODS[:4])
    @pytest.mark.parametrize("how", [{"value": -40.0}, {"drop": "a loose sensor"}])
    @pytest.mark.parametrize("number", [6, 13])
    def test_a_move_that_was_under_way_is_made_anew(
        self, tmp_path, monkeypatch, settings, how, number
    ):
        """Of results that are others now nothing is written."""
        path, made = tmp_path / "a.db", []
        make = moves.make_move

        def amended_meanwhile(*args):
            found = make(*args)
            if not made:
                made.append("once")
                shell.amend(number, **how)
            return found

        with told(path, **settings) as worker, Study.open(path) as shell:
            waiting = worker.ask(4)
            monkeypatch.setattr(moves, "make_move", amended_meanwhile)
            monkeypatch.setattr(count, "_locked", lambda descriptor: True)  # no locks here
            for trial in waiting:
                worker.tell(trial.id, value_of(trial))
            monkeypatch.undo()
            assert worker.store.last_move().id == 4
            for trial in worker.ask(4):
                worker.tell(trial.id, value_of(trial))
        assert check(path)[-1].words.endswith("moves follow from the results, to the last bit.")

    def test_it_is_made_again_where_another_has_moved_meanwhile(self, tmp_path, monkeypatch):
        """On a file system without locks: nobody can be told to wait."""
        path, again = tmp_path / "a.db", []
        remade = amending._remade

        def moved_meanwhile(*args):
            found = remade(*args)
            if not again:
                for trial in worker.ask(2):
                    worker.tell(trial.id, value_of(trial))
            again.append(len(found[0]))
            return found

        with told(path) as worker, Study.open(path) as shell:
            monkeypatch.setattr(amending, "_remade", moved_meanwhile)
            monkeypatch.setattr(count, "_locked", lambda descriptor: True)
            found = shell.amend(6, -40.0)
            assert (again, found.moves) == ([2, 3], [2, 3, 4])
        assert all(part.sound for part in check(path))

    def test_where_others_never_rest_a_sentence_says_so(self, tmp_path, monkeypatch):
        monkeypatch.setattr(amending, "_amended", lambda *args, **how: None)
        with told(tmp_path / "a.db") as study:
            with pytest.raises(InputError, match="Nothing was changed; amend it while"):
                study.amend(6, -40.0)
            assert study.store.events("amended") == []

    def test_it_comes_through_beside_busy_workers(self, tmp_path):
        """Each of them moves the study after every fourth result, without a pause."""
        path, stop = tmp_path / "a.db", tmp_path / "stop"
        told(path).close()
        busy = [
            Forked(tmp_path / f"{i}.errors", study_worker.ask_and_tell_until, str(path), str(stop))
            for i in range(2)
        ]
        try:
            with Study.open(path) as shell:
                until(lambda: shell.store.last_move().id >= 5)
                for i in range(6):
                    shell.amend(6, -40.0 - i)
                shell.amend(7, drop="a loose sensor")
                reached = shell.store.last_move().id
                until(lambda: shell.store.last_move().id >= reached + 2)
        finally:
            stop.touch()
            codes = [process.wait() for process in busy]
        assert codes == [0, 0], [process.said() for process in busy]
        assert check(path)[-1].words.endswith("moves follow from the results, to the last bit.")


def test_the_program_tells_amends_and_says_what_stands_out(tmp_path):
    path = tmp_path / "a.db"
    told(path, batches=2).close()
    with Study.open(path) as study:
        (trial,) = study.ask(1)
    said = program("study", "tell", path, trial.id, "125").stdout
    assert said.startswith(f"Trial {trial.id}: 125 (larger is better).\nTrial {trial.id}: 125 is ")
    assert "amend it if it is a slip" in said
    assert f"Trial {trial.id}: 125 is" in program("study", "show", path).stdout.replace("\n", " ")
    dry = program("study", "amend", path, trial.id, "-1.25", "--dry-run").stdout
    assert dry == f"Trial {trial.id}: 125 would become -1.25. No move was made of it. " + (
        "Nothing was changed.\n"
    )
    done = program("study", "amend", path, trial.id, "-1.25", "--why", "a slip").stdout
    assert done == f"Trial {trial.id}: 125 is now -1.25. No move was made of it.\n"
    assert "125 is" not in program("study", "show", path).stdout


class TestSlips:
    def test_it_is_compared_with_those_told_about_the_same_time(self):
        """Returns that rise by and by are no slips; one of their beginning at their end is."""
        noise = np.random.default_rng(0).standard_normal(200)
        rising = {i: -1000.0 * 0.9**i + 0.1 * noise[i] for i in range(200)}
        assert slips(rising) == []
        (found,) = slips({**rising, 150: -1000.0})
        assert found.trial == 150
        assert found.times > 1000

    def test_few_results_and_equal_ones_say_nothing(self):
        assert slips({i: float(i == 3) * 1e6 for i in range(8)}) == []
        assert slips({i: float(i == 3) * 1e6 for i in range(50)}) == []
        assert slips({}) == []

    def test_one_beyond_all_numbers_is_said_in_a_few(self):
        (found,) = slips({**{i: 1e-300 * i for i in range(20)}, 20: -1e308})
        assert "Trial 20: -1e+308 is 1e+300 times farther" in found.words

    def test_only_those_that_are_asked_for(self):
        values = {i: float(i % 5) for i in range(40)} | {7: 900.0, 30: -900.0}
        assert [slip.trial for slip in slips(values)] == [7, 30]
        assert [slip.trial for slip in slips(values, {30})] == [30]

    def test_a_wrong_sign_is_noticed(self):
        """By a distance at which a slip by a factor would not be."""
        noise = np.random.default_rng(1).standard_normal(40)
        values = {i: -4.0 + 0.8 * float(x) for i, x in enumerate(noise)}
        assert slips(values) == []
        right = values[20]
        (found,) = slips({**values, 20: -right})
        assert (found.trial, found.sign) == (20, True)
        assert found.times < 20
        assert found.words == (
            f"Trial 20: {-right:.6g} has another sign than the results around it, and "
            f"{right:.6g} would fit them: amend it if the sign is a slip."
        )
        turned = {i: -value for i, value in values.items()}
        assert [slip.trial for slip in slips({**turned, 20: right})] == [20]

    @pytest.mark.parametrize("middle", [-0.5, -1.0, -2.0])
    def test_returns_that_cross_zero_are_no_slips(self, middle):
        """Four standard errors above the share that the module states for Gaussian noise."""
        rng, said, count = np.random.default_rng(2), 0, 0
        for _ in range(40):
            values = dict(enumerate(rng.normal(middle, 1.0, 60).tolist()))
            said, count = said + len(slips(values)), count + len(values)
        assert said / count <= 0.0001 + 4 * (0.0001 / count) ** 0.5

    def test_a_sign_among_both_signs_says_nothing(self):
        values = {i: (-4.0 if i % 7 else 3.0) + 0.01 * (i % 5) for i in range(40)}
        assert not any(slip.sign for slip in slips(values))

    def test_a_rising_search_is_not_accused(self):
        noise = np.random.default_rng(3).standard_normal(60)
        rising = {i: 3.0 - 10 * 0.92**i + 0.5 * float(noise[i]) for i in range(60)}
        assert slips(rising) == []


@pytest.mark.parametrize("method", ["niw-pgpe", "mis-pgpe-ob", "recoup"])
def test_moves_made_again_say_how_many_results_came_late(tmp_path, method):
    """And what follows from it is said as if the right value had been told."""
    said = []
    for name, slip in (("right", 0.0), ("amended", 99.0)):
        how = {"dim": 2, "method": method, "batch": 4, "seed": 0}
        with Study.open(tmp_path / f"{name}.db", **how) as study:
            right = {t.id: -float(t.theta @ t.theta) for t in study.ask(8)}
            for number, value in right.items():
                study.tell(number, value + (slip if number == 6 else 0.0))
            if slip:
                study.amend(6, right[6])
            said.append(([move["late"] for move in study.history()], study.snapshot().advice))
    assert said[0] == said[1]
    assert said[0][0] == [0, 4]

"""Trials of workers that died come back; the first result counts, and no move ever changes."""

import csv
import io
import json
import signal
import sqlite3
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import study_worker
from processes import Forked
from program import recoup as program
from sentences import FOREIGN_SQL
from studies import content

from recoup.checks import InputError
from recoup.cli.parsing import duration
from recoup.store import writes
from recoup.store.file import StudyFile
from recoup.study.care.recover import recover
from recoup.study.care.verify import check
from recoup.study.study import Study
from recoup.study.trials import leases as clock
from recoup.study.views.study_summary import summary_rows

HOUR = 3600.0
START = 1.8e9  # seconds since 1970 at which a clock that is set begins


def value_of(trial):
    return float(-((trial.theta - 1) ** 2).sum())


def ids(trials):
    return [trial.id for trial in trials]


def tell(study, *trials):
    for trial in trials:
        study.tell(trial.id, value_of(trial))


def drop_leases(path):
    """A file without the table, as one is that never lent a trial."""
    connection = sqlite3.connect(path)
    connection.execute("DROP TABLE leases")
    connection.commit()
    connection.close()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "robot.db"


@pytest.fixture
def study(path):
    with Study.open(path, dim=2, batch=4, seed=3) as made:
        yield made


@pytest.fixture
def later(monkeypatch):
    """Sets the clocks that leases and files go by to so many seconds from their start."""

    def set_to(seconds):
        monkeypatch.setattr(clock, "now", lambda: START + seconds)
        monkeypatch.setattr(writes, "time", SimpleNamespace(time=clock.now))

    set_to(0)
    return set_to


class TestReturned:
    def test_the_same_trial_comes_back_once_its_lease_has_run_out(self, study, later):
        (lost,) = study.ask(lease=HOUR)
        later(HOUR - 1)
        (new,) = study.ask()
        assert new.id == 2
        later(HOUR)
        (again,) = study.ask()
        assert (again.id, again.seed, again.kind) == (lost.id, lost.seed, lost.kind)
        np.testing.assert_array_equal(again.theta, lost.theta)
        assert study.counts() == {"pending": 2, "ok": 0, "failed": 0}

    def test_it_takes_the_lease_of_the_ask_that_hands_it_out(self, study, later):
        study.ask(lease=HOUR)
        later(2 * HOUR)
        assert ids(study.ask(lease=10 * HOUR)) == [1]
        later(11 * HOUR)
        assert ids(study.ask()) == [2]
        later(12 * HOUR)
        assert ids(study.ask()) == [1]  # and now without any
        later(1e9)
        assert ids(study.ask()) == [3]
        assert study.store.leases()[1] == (1, None, 3)

    def test_the_oldest_first_then_the_queue_then_new_draws(self, study, later):
        study.ask(2, lease=3 * HOUR)
        study.ask(1, lease=HOUR)
        study.enqueue([0.5, 0.5])
        later(4 * HOUR)
        got = study.ask(5)
        assert ids(got) == [1, 2, 3, 4, 5]
        assert [trial.kind for trial in got] == ["drawn"] * 3 + ["own", "drawn"]

    def test_no_more_than_are_asked_for(self, study, later):
        study.ask(3, lease=HOUR)
        study.enqueue([0.5, 0.5])
        later(HOUR)
        assert ids(study.ask(2, lease=HOUR)) == [1, 2]
        assert ids(study.ask(1, lease=HOUR)) == [3]
        assert ids(study.ask(1)) == [4]

    def test_what_was_told_does_not_come_back(self, study, later):
        a, b, c = study.ask(3, lease=HOUR)
        tell(study, a)
        study.tell(c.id, failed="slipped")
        later(HOUR)
        assert ids(study.ask(2, lease=HOUR)) == [b.id, 4]
        tell(study, b)
        later(2 * HOUR)
        assert ids(study.ask(2)) == [4, 5]

    def test_the_mean_and_ones_own_choice_come_back_too(self, study, later):
        study.enqueue([0.5, 0.25])
        (own,), (mean,) = study.ask(lease=HOUR), study.ask(at="mean", lease=HOUR)
        later(HOUR)
        assert ids(study.ask(at="mean")) == [3]
        again = study.ask(2)
        assert [(t.id, t.kind) for t in again] == [(own.id, "own"), (mean.id, "mean")]
        np.testing.assert_array_equal(again[0].theta, [0.5, 0.25])

    def test_half_a_mirrored_pair(self, path, later):
        with Study.open(path, dim=2, batch=4, seed=3, method="mis-pgpe-ob", mirrored=True) as study:
            pair = study.ask(2, lease=HOUR)
            tell(study, pair[0])
            later(HOUR)
            got = study.ask(2)
            assert [(t.id, t.kind) for t in got] == [(2, "mirror"), (3, "drawn"), (4, "mirror")]
            np.testing.assert_array_equal(got[0].theta, pair[1].theta)
            tell(study, *got)
            assert len(study.history()) == 1
        assert all(part.sound for part in check(path))

    def test_half_a_pair_alone(self, path, later):
        with Study.open(path, dim=2, batch=4, method="mis-pgpe-ob", mirrored=True) as study:
            tell(study, study.ask(2, lease=HOUR)[1])
            later(HOUR)
            assert ids(study.ask(1)) == [1]

    def test_without_leases_nothing_is_different(self, tmp_path, later):
        """Whatever the clock says: draws, moves and the file's tables."""
        for name, lease in (("a.db", None), ("b.db", HOUR)):
            with Study.open(tmp_path / name, dim=2, batch=4, seed=3) as study:
                for hour in range(6):
                    later(hour * HOUR)
                    tell(study, *study.ask(3, lease=lease))
        one, other = content(tmp_path / "a.db"), content(tmp_path / "b.db")
        assert one == other
        with Study.open(tmp_path / "a.db") as study:
            assert not study.store._file.has("leases")

    def test_a_clock_that_jumps_back_does_no_harm(self, study, later):
        later(1000 * HOUR)
        study.ask(lease=HOUR)
        later(0)
        assert ids(study.ask(lease=HOUR)) == [2]
        assert study.waiting()[0].lease == "41 d left"
        later(-1000 * HOUR)
        assert [row.age for row in study.waiting()] == ["just now"] * 2
        study.ask(lease=1e308)
        assert study.waiting()[2].lease == "years left"

    @pytest.mark.parametrize("lease", [0, -1, float("nan"), float("inf"), "1h", True, [1]])
    def test_a_lease_is_a_positive_number(self, study, lease):
        with pytest.raises(InputError, match=r"`ask\(lease=...\)` must be"):
            study.ask(lease=lease)
        assert study.counts()["pending"] == 0


class TestToldTwice:
    def twice(self, study, later):
        """A trial that was handed out again, and told by both workers."""
        (trial,) = study.ask(lease=HOUR)
        later(HOUR)
        study.ask(lease=HOUR)
        tell(study, trial)
        (kept,) = study.tell(trial.id, 7.5)
        return trial, kept

    def test_the_first_counts_and_the_other_is_kept(self, study, later):
        trial, kept = self.twice(study, later)
        first = study.store.results([1])[1].told
        assert first.value == value_of(trial)
        assert (kept.trial, kept.value, kept.failed) == (1, 7.5, None)
        assert kept.words.startswith(f"Trial 1 was handed out again, and told {first.value:.6g} f")
        assert "7.5 is kept as a further episode and does not count" in kept.words
        assert study.told_later() == [kept]
        assert study.counts() == {"pending": 0, "ok": 1, "failed": 0}
        assert study.until_move() == 3

    def test_however_often_it_is_told_again(self, study, later):
        trial, kept = self.twice(study, later)
        assert study.tell(trial.id, value_of(trial)) == []
        assert study.tell(trial.id, 7.5) == [kept]
        assert study.told_later() == [kept]
        (failed,) = study.tell(trial.id, failed="fell")
        assert (failed.value, failed.failed) == (None, "fell")
        (several,) = study.tell(trial.id, values=[1.0, 2.0])
        assert (several.value, several.episodes, several.stderr) == (1.5, 2, 0.5)
        assert study.told_later() == [kept, failed, several]

    def test_after_an_amendment_it_is_said_what_counts(self, study, later):
        """The amended value was called the first, and the one that counts was said not to."""
        trial, _ = self.twice(study, later)
        first = f"told {value_of(trial):.6g} first: 7.5 is kept as a further episode and "
        study.amend(trial.id, 3.25)
        (other,) = study.told_later()
        assert first + "does not count; the first was put right, to 3.25." in other.words
        assert "told later" in summary_rows(study.opened, study.diagnostics(), None)
        study.amend(trial.id, 7.5, why="the later one")
        (now,) = study.told_later()
        assert first + "counts, since it was put in place of the first." in now.words
        assert (other.counts, now.counts) == (False, True)
        assert "told later" not in summary_rows(study.opened, study.diagnostics(), None)

    def test_a_failure_counts_first_as_well(self, study, later):
        (trial,) = study.ask(lease=HOUR)
        later(HOUR)
        study.ask()
        assert study.tell(trial.id, failed="timed out") == []
        assert len(study.tell(trial.id, 1.0)) == 1
        assert study.counts() == {"pending": 0, "ok": 0, "failed": 1}

    @pytest.mark.parametrize("lease", [None, HOUR])
    def test_what_was_handed_out_once_is_refused_as_ever(self, study, later, lease):
        """Also after its lease has run out, as long as nobody else has it."""
        (trial,) = study.ask(lease=lease)
        later(2 * HOUR)
        study.tell(trial.id, -1.5)
        with pytest.raises(InputError, match=r"trial 1 was told -1\.5 before, and now 2\.0: it st"):
            study.tell(trial.id, 2.0)
        assert study.told_later() == []

    def test_all_or_none(self, study, later):
        """One that is refused takes back what was kept before it."""
        self.twice(study, later)
        (other,) = study.ask()
        tell(study, other)
        with pytest.raises(InputError, match="trial 2 was told"):
            study.tell([1, 2], [9.0, 9.0])
        assert [row.value for row in study.told_later()] == [7.5]

    @pytest.mark.parametrize(
        "settings",
        [
            {},
            {"mirrored": True, "method": "iw-pgpe-ob"},
            {"method": "pgpe-ob"},
            {"method": "mis-pgpe-ob"},
        ],
    )
    def test_moves_are_those_without_it(self, tmp_path, later, settings):
        """A late second before and after the move that its trial is part of."""
        found = []
        for name in ("a.db", "b.db"):
            with Study.open(tmp_path / name, dim=2, batch=4, seed=3, **settings) as study:
                later(0)
                lost = study.ask(2, lease=HOUR)
                later(HOUR)
                tell(study, *study.ask(2))
                if name == "b.db":
                    study.tell(lost[0].id, 1e3)
                tell(study, *study.ask(4))
                if name == "b.db":
                    study.tell(lost[1].id, failed="fell")
                tell(study, *study.ask(4))
                assert len(study.history()) == 2
                found.append((study.mean, study.std))
            assert all(part.sound for part in check(tmp_path / name))
        np.testing.assert_array_equal(*found)
        assert content(tmp_path / "a.db") == content(tmp_path / "b.db")

    def test_trajectories_are_kept_whole(self, tmp_path, later):
        def episode(reward):
            return {"features": np.ones((2, 2)), "actions": np.ones((2, 1)), "rewards": reward}

        how = {"method": "iw-reinforce-ob", "horizon": 2, "dim": 2, "batch": 4}
        with Study.open(tmp_path / "a.db", **how) as study:
            study.ask(lease=HOUR)
            later(HOUR)
            study.ask()
            study.tell(1, trajectory=episode([1.0, 2.0]))
            (kept,) = study.tell(1, trajectory=episode([2.0, 1.0]))  # of the same return
            assert kept.value == 3.0
            assert study.tell(1, trajectory=episode([2.0, 1.0])) == [kept]
            (event,) = study.store.events("told_later")
            assert event.content["trajectory"] == [[1.0, 1.0, 1.0, 2.0], [1.0, 1.0, 1.0, 1.0]]
            assert study.tell(1, trajectory=episode([1.0, 2.0])) == []

    def test_amend_puts_it_in_place_of_the_first(self, study, later):
        trial, _ = self.twice(study, later)
        study.amend(trial.id, 7.5, why="the other sensor was loose")
        assert study.tell(trial.id, 7.5) == []
        assert study.store.results([1])[1].told.value == 7.5


class TestTheFile:
    def test_one_of_an_earlier_recoup_is_read_and_lent_from(self, path, later):
        with Study.open(path, dim=2, batch=4) as study:
            study.ask(2, lease=HOUR)
        drop_leases(path)
        assert all(part.sound for part in check(path))
        later(HOUR)
        with Study.open(path) as study:
            assert [row.lease_until for row in study.waiting()] == [None, None]
            assert ids(study.ask()) == [3]
            study.tell(3, 1.0)
            assert not study.store._file.has("leases")
            assert ids(study.ask(lease=HOUR)) == [4]
            later(2 * HOUR)
            assert ids(study.ask()) == [4]
        assert all(part.sound for part in check(path))

    def test_a_table_that_is_not_ours_is_refused(self, path, later):
        with Study.open(path, dim=2, batch=4) as study:
            study.ask(lease=HOUR)
        drop_leases(path)
        connection = sqlite3.connect(path)
        connection.execute("CREATE TABLE leases (id INTEGER PRIMARY KEY, until REAL)")
        connection.close()
        with pytest.raises(InputError, match=FOREIGN_SQL):
            Study.open(path)

    def test_a_damaged_lease_is_noticed(self, path, later):
        with Study.open(path, dim=2, batch=4) as study:
            study.ask(lease=HOUR)
        connection = sqlite3.connect(path)
        connection.execute("UPDATE leases SET until = until + 1")
        connection.commit()
        connection.close()
        assert "leases 1" in check(path)[-1].words
        later(2 * HOUR)
        with Study.open(path) as study, pytest.raises(InputError, match="leases is not as written"):
            study.ask()

    def test_recovered_with_its_leases(self, path, tmp_path, later):
        """The last one of each; that of what was told is gone. The log still has all of them."""
        with Study.open(path, dim=2, batch=4) as study:
            lost, _, told = study.ask(3, lease=HOUR)
            tell(study, told)
            later(HOUR)
            study.ask(lease=3 * HOUR)
            before = study.store.leases()
            assert [(row.id, row.times) for row in before.values()] == [(1, 2), (2, 1)]
            recover(path, tmp_path / "saved.db")
        assert all(part.sound for part in check(tmp_path / "saved.db"))
        with Study.open(tmp_path / "saved.db") as saved:
            assert saved.store.leases() == before
            assert ids(saved.ask()) == [2]
            later(4 * HOUR)
            assert ids(saved.ask()) == [1]
            tell(saved, lost)
            assert len(saved.tell(1, 5.0)) == 1

    def test_a_first_result_that_was_lost(self, path, tmp_path, later):
        """What came later is still there, and a word for what did not."""
        with Study.open(path, dim=2, batch=4) as study:
            TestToldTwice().twice(study, later)
        connection = sqlite3.connect(path)
        connection.execute("UPDATE told SET note = 'x'")
        connection.commit()
        connection.close()
        recover(path, tmp_path / "saved.db")
        with Study.open(tmp_path / "saved.db") as saved:
            assert ids(saved.pending()) == [1]
            (kept,) = saved.told_later()
            assert "told what is lost first: 7.5 is kept" in kept.words
        assert "told later" in program("study", "show", tmp_path / "saved.db").stdout

    def test_a_fork_leaves_leases_behind_and_amending_does_not_touch_them(self, study, later):
        tell(study, *study.ask(4))
        study.ask(2, lease=HOUR)
        before = study.store.leases()
        study.amend(2, 5.0)
        assert study.store.leases() == before
        with study.fork(study.store.path.with_name("fork.db")) as fork:
            later(HOUR)
            assert ids(fork.ask()) == [7]
            assert not fork.store._file.has("leases")

    def test_a_study_without_a_file(self, later):
        from recoup.study.reader.settings import resolved

        with Study.create(None, resolved({"dim": 2, "batch": 4})) as study:
            study.ask(lease=HOUR)
            later(HOUR)
            assert ids(study.ask()) == [1]

    def test_a_file_that_cannot_be_written(self, path, later, monkeypatch):
        with Study.open(path, dim=2, batch=4) as study:
            study.ask(lease=HOUR)
        later(HOUR)
        monkeypatch.setattr("recoup.store.file.is_writable", lambda path: False)
        with Study.open(path) as study:
            assert study.waiting()[0].lease == "ran out just now"
            with pytest.raises(InputError, match="cannot be written to"):
                study.ask(lease=HOUR)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.5, "under a minute"),
        (60, "1 min"),
        (7199, "119 min"),
        (7200, "2 h"),
        (86400 * 2 - 1, "47 h"),
        (86400 * 2, "2 d"),
        (1e300, "years"),
    ],
)
def test_times_in_words(study, later, seconds, words):
    study.ask(lease=seconds)
    (row,) = study.waiting()
    assert row.lease == f"{words} left"
    later(2 * seconds)
    assert row.lease == f"ran out {'just now' if seconds < 60 else f'{words} ago'}"


class TestProcesses:
    def test_two_that_ask_at_once_never_get_the_same(self, path, tmp_path, monkeypatch):
        monkeypatch.setattr(clock, "now", lambda: 1e9)  # long ago: others go by the machine's clock
        with Study.open(path, dim=2, batch=1000) as study:
            study.ask(40, lease=HOUR)
        monkeypatch.undo()
        outs = [tmp_path / f"got-{i}" for i in range(2)]
        workers = [
            Forked(tmp_path / f"errors-{i}", study_worker.ask_with_lease, str(path), 30, str(out))
            for i, out in enumerate(outs)
        ]
        assert [worker.wait() for worker in workers] == [0, 0], workers[0].said()
        got = [int(line) for out in outs for line in out.read_text().split()]
        assert sorted(got) == list(range(1, 61))

    def test_two_that_make_the_table_at_once(self, path, tmp_path):
        """Nobody has asked with a lease before, and both files were open without the table."""
        with Study.open(path, dim=2, batch=1000) as one, Study.open(path) as other:
            assert ids(one.ask(lease=HOUR)) == [1]
            assert ids(other.ask(lease=HOUR)) == [2]
            assert sorted(one.store.leases()) == [1, 2]

    @pytest.mark.parametrize("where", ["leases", "asked"])
    def test_killed_between(self, path, where):
        """After one of the two tables was written and before the end: neither trial nor lease."""
        code = (
            "import os, sys; from recoup.store.file import StudyFile\n"
            "from recoup.study.study import Study\n"
            "study = Study.open(sys.argv[1], dim=2, batch=4)\n"
            "study.ask(2, lease=0.001)\n"
            "insert = StudyFile.insert\n"
            "def dies(self, table, *rest):\n"
            "    insert(self, table, *rest)\n"
            "    if table == sys.argv[2]: os.kill(os.getpid(), 9)\n"
            "StudyFile.insert = dies\n"
            "study.ask(3, lease=3600)\n"
        )
        done = subprocess.run([sys.executable, "-c", code, str(path), where])
        assert done.returncode == -signal.SIGKILL
        assert all(part.sound for part in check(path))
        with Study.open(path) as study:
            assert [row.times for row in study.store.leases().values()] == [1, 1]
            assert ids(study.ask(3, lease=HOUR)) == [1, 2, 3]
            assert [row.times for row in study.store.leases().values()] == [2, 2, 1]

    def test_the_table_is_gone_again_where_its_transaction_fails(self, study, monkeypatch):
        insert = StudyFile.insert

        def fails(self, table, *rest):
            insert(self, table, *rest)
            if table == "leases":
                raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(StudyFile, "insert", fails)
            with pytest.raises(KeyboardInterrupt):
                study.ask(lease=HOUR)
        assert not study.store._file.has("leases")
        assert study.counts()["pending"] == 0
        assert ids(study.ask(lease=HOUR)) == [1]
        assert sorted(study.store.leases()) == [1]


class TestTheProgram:
    @pytest.mark.parametrize(
        ("text", "seconds"),
        [("90", 90), ("90s", 90), ("15m", 900), ("1h", 3600), ("2d", 172800), (" 1.5h ", 5400)],
    )
    def test_times(self, text, seconds):
        assert duration("--lease", text) == seconds

    @pytest.mark.parametrize("text", ["", "h", "1w", "-5", "0", "0h", "nan", "1h30m", "1e3", "inf"])
    def test_what_is_no_time_is_a_sentence(self, path, text):
        with Study.open(path, dim=2, batch=4):
            pass
        done = program("study", "ask", path, "--lease", text)
        want = f"recoup: --lease must be a time like 90s, 15m, 1h or 2d, got {text!r}.\n"
        assert (done.returncode, done.stdout, done.stderr) == (2, "", want)

    def test_times_too_long_for_a_number(self):
        with pytest.raises(InputError, match="must be a time"):
            duration("--lease", "9" * 400)

    def test_ask_pending_and_show(self, path, later):
        with Study.open(path, params={"gain": (0, 1), "offset": None}, batch=4):
            pass
        assert "\n  1 │" in program("study", "ask", path, "--lease", "1h").stdout
        program("study", "ask", path)
        program("study", "ask", path, "--lease", "2d")
        later(90 * 60)
        rows = program("study", "pending", path).stdout.splitlines()
        assert [cell.strip() for cell in rows[0].split("┃")[-2:]] == ["asked", "lease"]
        cells = [[cell.strip() for cell in row.split("│")[-2:]] for row in rows[2:]]
        leases = ["ran out 30 min ago", "none", "46 h left"]
        assert [lease for _, lease in cells] == leases
        assert {age for age, _ in cells} == {"90 min ago"}
        said = program("study", "show", path).stdout.replace("\n", " ")
        assert "The lease of trial 1 has run out: the next `ask` hands it out again." in said
        assert json.loads(program("study", "show", path, "--json").stdout)["overdue"] == [1]
        program("study", "ask", path, "--lease", "1h")
        assert "run out" not in program("study", "show", path).stdout
        assert "2 times" in program("study", "pending", path).stdout

    def test_pending_for_programs(self, study, path, later):
        study.ask()
        (lent,) = study.ask(lease=HOUR)
        one, other = json.loads(program("study", "pending", path, "--format", "json").stdout)
        assert one["asked_at"] == START
        assert "lease_until" not in one
        assert other["lease_until"] == clock.now() + HOUR
        assert other["theta"] == lent.theta.tolist()
        text = program("study", "pending", path, "--format", "csv").stdout
        rows = list(csv.DictReader(io.StringIO(text)))
        assert list(rows[0]) == ["id", "seed", "theta_0", "theta_1", "asked_at", "lease_until"]
        assert (rows[0]["lease_until"], float(rows[1]["lease_until"])) == ("", clock.now() + HOUR)
        assert "lease" not in program("study", "ask", path, "--format", "csv").stdout

    def test_a_late_second_is_one_sentence(self, study, path, tmp_path, later):
        study.ask(2, lease=HOUR)
        later(HOUR)
        study.ask(2)
        assert program("study", "tell", path, 1, "-1.5").stdout.startswith("Trial 1: -1.5 (")
        said = program("study", "tell", path, 1, "-3").stdout
        assert said == (
            "Trial 1 was handed out again, and told -1.5 first: -3 is kept as a further episode "
            "and does not count (`amend` puts it in place of the first).\n"
            "3 more results until the next move.\n"
        )
        results = tmp_path / "results.csv"
        results.write_text("id,return\n1,-4\n2,-2\n")
        said = program("study", "tell", path, "--file", results).stdout.splitlines()
        assert said[0] == "2 results told (larger is better)."
        assert "-4 is kept" in said[1]
        assert "2, not counted; the last: trial 1" in program("study", "show", path).stdout

    def test_exports_have_a_column_where_there_are_any(self, study, tmp_path, later):
        study.ask(2, lease=HOUR)
        later(HOUR)
        study.ask(2)
        study.tell([1, 2], [-1.0, -2.0])
        study.export(tmp_path / "without.csv")
        assert "told_later" not in (tmp_path / "without.csv").read_text()
        study.tell(2, -3.0)
        study.tell(2, failed="fell")
        study.amend(1, -1.5)
        study.export(tmp_path / "with.csv")
        rows = list(csv.DictReader(io.StringIO((tmp_path / "with.csv").read_text())))
        assert [row["told_later"] for row in rows] == ["", "'-3; failed (fell)"]
        assert [row["amended"] for row in rows] == ["was -1", ""]
        assert [row["return"] for row in rows] == ["-1.5", "-2.0"]
        assert study.export(tmp_path / "with.parquet") == 2

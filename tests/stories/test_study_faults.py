"""What can happen to a file, done to one: a sentence each, and nothing lost that can be read."""

import contextlib
import io
import random
import re
import shutil
import sqlite3
import struct
import subprocess
import sys
import tempfile
import unittest.mock
from pathlib import Path

import numpy as np
import pytest
from another_user import as_another_user
from sentences import EXISTS, FILE_GONE, FULL, NO_STUDY_FILE
from waiting import LIMIT

from recoup.cli import main as cli
from recoup.store.file import StudyFile
from recoup.store.pages import Pages, cells
from recoup.store.salvage import salvaged_records
from recoup.store.schema import checksum
from recoup.study.care.recover import recover
from recoup.study.care.verify import check
from recoup.study.study import Study

PAGE = 4096
COUNTERS = 1  # the page that holds the counters, from 0 on


def value_of(trial):
    return float(-np.sum((trial.theta - 0.5) ** 2))


def made(path, dim=30, results=95, **settings):
    """A study with some history: results, failures and trials that wait."""
    how = {"dim": dim, "batch": 5, "method": "iw-pgpe-ob", "seed": 1, **settings}
    with Study.open(path, **how) as study:
        for _ in range(results // 5):
            for trial in study.ask(5):
                if trial.id % 7 == 0:
                    study.tell(trial.id, failed=f"slipped at {trial.id}")
                else:
                    study.tell(trial.id, value_of(trial))
        study.ask(3)
    return path


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return made(tmp_path_factory.mktemp("studies") / "whole.db")


@pytest.fixture
def copy(whole, tmp_path):
    return Path(shutil.copy(whole, tmp_path / "robot.db"))


def rows_of(path, table="told"):
    file = StudyFile.open(path)
    found = {row[0]: row for row in file.read(table, tuple)}
    file.close()
    return found


def rows_outside(path, first, last):
    """Tables and rows in the pages of a sound file that the bytes from `first` on do not touch."""
    pages = Pages(path.read_bytes(), b"")
    for number, page in enumerate(pages.images):
        if (number + 1) * PAGE <= first or number * PAGE >= last:
            for offset in cells(page, PAGE):
                cell = pages.row(page, offset)
                if cell is not None:  # of our own tables
                    yield cell.table, cell.values


def damaged(path, new):
    """Either a sentence on opening, or one from `check`; then what can be recovered."""
    found = check(path, lambda done, of: None)
    assert not all(verdict.sound for verdict in found)
    for verdict in found:
        assert "\n" not in verdict.words
    return recover(path, new)


def use(path):
    with Study.open(path) as study:
        study.history()
        study.pending()
        study.evaluate()


class TestDamage:
    def test_a_sound_file_is_sound(self, copy):
        found = check(copy)
        assert all(verdict.sound for verdict in found)
        words = " ".join(verdict.words for verdict in found)
        assert "98 trials: 3 pending, 82 ok, 13 failed" in words
        assert "moves follow from the results, to the last bit" in words
        assert "drawn thetas are those of the seed" in words

    def test_salvage_reads_what_sqlite_reads(self, copy):
        found = salvaged_records(copy).rows
        for table in ("settings", "proposals", "moves", "asked", "told", "events"):
            assert found[table] == rows_of(copy, table)

    def test_salvage_reads_rows_that_overflow_their_page(self, tmp_path):
        path = made(tmp_path / "wide.db", dim=3000, results=10)
        assert salvaged_records(path).rows["asked"] == rows_of(path, "asked")

    def test_salvage_reads_the_log(self, tmp_path):
        path = tmp_path / "robot.db"
        study = Study.open(path, dim=4, batch=50)
        for trial in study.ask(20):
            study.tell(trial.id, value_of(trial))
        assert (tmp_path / "robot.db-wal").stat().st_size > 0
        assert len(salvaged_records(path).rows["told"]) == 20
        study.close()

    @pytest.mark.parametrize("seed", range(8))
    def test_noise_in_the_middle(self, copy, whole, tmp_path, seed):
        """Every row that was not hit comes back as it was, and the missing are counted."""
        rng = random.Random(seed)
        content = bytearray(copy.read_bytes())
        first = rng.randrange(2 * PAGE, len(content) - 3 * PAGE)
        length = rng.randrange(200, 2 * PAGE)
        content[first : first + length] = rng.randbytes(length)
        copy.write_bytes(content)
        found = damaged(copy, tmp_path / "new.db")
        before, after = rows_of(whole), rows_of(tmp_path / "new.db")
        for number, row in after.items():
            assert row[1] == before[number][1]
            assert row[3:7] == before[number][3:7]
        assert found.results == len(after)
        assert found.missing == len(before) - len(after)
        assert f"{found.missing} result" in found.words or not found.missing
        saved = salvaged_records(copy).rows
        for table, row in rows_outside(whole, first, first + length):
            assert saved[table][row[0]] == row
        with Study.open(tmp_path / "new.db") as study:  # and it goes on
            (trial,) = study.ask()
            assert trial.id == 99  # no number is given out again
            study.tell(trial.id, 1.0)

    @pytest.mark.parametrize("page", range(1, 9))
    def test_any_page_can_be_destroyed(self, copy, whole, tmp_path, page):
        content = bytearray(copy.read_bytes())
        content[page * PAGE : (page + 1) * PAGE] = random.Random(page).randbytes(PAGE)
        copy.write_bytes(content)
        found = recover(copy, tmp_path / "new.db")
        assert ("the count of them is destroyed too" in found.words) == (page == COUNTERS)
        assert found.results + found.missing == len(rows_of(whole)) or page == COUNTERS

    def test_the_first_page_destroyed(self, copy, whole, tmp_path):
        content = bytearray(copy.read_bytes())
        content[:PAGE] = bytes(PAGE)
        copy.write_bytes(content)
        with pytest.raises(ValueError, match=NO_STUDY_FILE):
            Study.open(copy)
        found = recover(copy, tmp_path / "new.db")
        assert found.results == len(rows_of(whole))
        assert "none that was told is missing" in found.words

    @pytest.fixture(scope="class")
    @staticmethod
    def long(tmp_path_factory):
        return made(tmp_path_factory.mktemp("long") / "long.db", results=500)

    @pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
    def test_truncated(self, long, tmp_path, share):
        content, copy = long.read_bytes(), tmp_path / "robot.db"
        copy.write_bytes(content[: int(share * len(content))])
        with pytest.raises(ValueError, match=r"is damaged.*--recover NEW` saves"):
            use(copy)
        found = damaged(copy, tmp_path / "new.db")
        assert found.results >= (150 if share >= 0.5 else 0)
        assert found.results < 500
        assert found.results + found.missing == 500
        before, after = rows_of(long), rows_of(tmp_path / "new.db")
        assert all(before[number][3] == row[3] for number, row in after.items())

    def test_a_changed_number_is_noticed_before_it_is_used(self, copy):
        connection = sqlite3.connect(copy)
        connection.execute('UPDATE told SET "return" = 99.0 WHERE id = 8')
        connection.commit()
        connection.close()
        with Study.open(copy) as study, pytest.raises(ValueError, match="row 8 of told is not"):
            study.evaluate()
        assert "the row told 8" in check(copy)[-1].words

    def test_a_forged_number_is_noticed_by_replay(self, copy):
        """With its checksum in order: but the moves do not follow from it."""
        file = StudyFile.open(copy)
        with file.writing():
            (row,) = file.read("told", tuple, "WHERE id = 8")
            forged = (*row[:3], 99.0, *row[4:])
            assert checksum("told", forged) != checksum("told", row)
            file.insert("told", [forged], verb="INSERT OR REPLACE")
        file.close()
        found = check(copy)
        assert not found[-1].sound
        assert "does not follow from the results" in found[-1].words

    def test_a_forged_theta_is_noticed_by_the_seed(self, copy):
        file = StudyFile.open(copy)
        with file.writing():
            (row,) = file.read("asked", tuple, "WHERE id = 8")
            forged = (*row[:3], np.zeros(30).tobytes(), *row[4:])
            file.insert("asked", [forged], verb="INSERT OR REPLACE")
        file.close()
        assert "theta of trial 8 is not the one that its seed draws" in check(copy)[-1].words

    def test_results_without_rows_are_counted(self, copy, tmp_path):
        connection = sqlite3.connect(copy)
        connection.execute("DELETE FROM told WHERE id IN (8, 9)")
        connection.commit()
        connection.close()
        assert "2 results and 0 trials" in check(copy)[-1].words
        assert recover(copy, tmp_path / "new.db").missing == 2

    def test_rows_are_found_where_their_page_does_not_say(self, copy, tmp_path):
        """Pointers to the cells of a page overwritten, or their number: the rows are all there."""
        content = copy.read_bytes()
        for page in range(1, len(content) // PAGE):
            start = page * PAGE
            (cells,) = struct.unpack_from(">H", content, start + 3)
            if content[start] != 13 or cells < 20:
                continue
            for place, noise in ((start + 12, b"\xff" * 30), (start + 3, b"\0\5")):
                damaged = bytearray(content)
                damaged[place : place + len(noise)] = noise
                copy.write_bytes(damaged)
                assert recover(copy, tmp_path / "new.db").missing == 0
                (tmp_path / "new.db").unlink()
            return
        raise AssertionError("no page with many rows")

    def test_derived_densities_are_checked_too(self, tmp_path):
        made(tmp_path / "s.db", results=30, weighting="balance")
        connection = sqlite3.connect(tmp_path / "s.db")
        ((number, content),) = connection.execute("SELECT id, content FROM mixture")
        changed = bytes([content[0] ^ 2]) + content[1:]
        connection.execute("UPDATE mixture SET content = ? WHERE id = ?", (changed, number))
        connection.commit()
        connection.close()
        study = Study.open(tmp_path / "s.db")
        with study, pytest.raises(ValueError, match="of mixture is not as written"):
            study.evaluate()

    @pytest.mark.parametrize(
        ("table", "where", "column", "value"),
        [
            ("settings", "key = 'dim'", "value", "7"),
            ("settings", "key = 'batch'", "value", "0"),
            ("settings", "key = 'method'", "value", '"nope"'),
            ("settings", "key = 'std'", "value", "[" * 10_000),
            ("settings", "key = 'mean'", "value", '"x"'),
            ("counters", "1", "fresh", 1000),
            ("counters", "1", "fresh", "x"),
            ("counters", "1", "counted", -4),
            ("moves", "id = 16", "proposal", 99),
            ("moves", "id = 16", "info", "[1]"),
            ("moves", "id = 16", "info", '{"objective": "x", "ess": [1]}'),
            ("proposals", "id = 16", "numbers", b"abc"),
            ("proposals", "id = 16", "numbers", bytes(8)),
            ("proposals", "id = 16", "family", "nope"),
            ("moves", "id = 16", "memory", b"abc"),
            ("moves", "id = 16", "memory", b"\2\0\0\0[]"),
            ("asked", "id = 90", "theta", b"abcdefgh"),
            ("asked", "id = 90", "theta", None),
            ("asked", "id = 90", "proposal", 77),
            ("told", "id = 90", "return", "much"),
        ],
    )
    def test_a_hostile_file_with_its_checksums_in_order(self, copy, table, where, column, value):
        """Whatever it says, the program answers with results or with one sentence."""
        connection = sqlite3.connect(copy)
        connection.row_factory = sqlite3.Row
        for row in connection.execute(f"SELECT * FROM {table} WHERE {where}").fetchall():
            forged = {**dict(row), column: value}
            del forged["crc"]
            content = tuple(forged.values())
            marks = ", ".join("?" * (len(content) + 1))
            row = (*content, checksum(table, content))
            connection.execute(f"INSERT OR REPLACE INTO {table} VALUES ({marks})", row)
        connection.commit()
        connection.close()
        for command in ("show", "evaluate", "export", "check", "ask"):
            status, said = program("study", command, copy)
            assert status in (0, 1, 2)
            assert "Traceback" not in said
            assert "RECOUP_TRACEBACK" not in said
            assert said.count("\n") <= 1

    @pytest.mark.parametrize(
        ("key", "value", "reason"),
        [
            ("family", '"diagonal"', "a distribution of 5 numbers, not 4"),
            ("params", '[{"name": "kp"}]', "1 named numbers of 2"),
            ("run", "3", "the plan of its run is none"),
        ],
    )
    def test_settings_that_contradict_the_rest_are_one_sentence(self, tmp_path, key, value, reason):
        path = tmp_path / "s.db"
        settings = {"params": ["kp", "kd"], "family": "full", "method": "iw-pgpe", "batch": 4}
        with Study.open(path, **settings) as study:
            study.tell([trial.id for trial in study.ask(8)], [float(i) for i in range(8)])
        connection = sqlite3.connect(path)
        known = (
            "SELECT coalesce((SELECT id FROM settings WHERE key = ?), max(id) + 1) FROM settings"
        )
        row = (*connection.execute(known, (key,)).fetchone(), key, value)
        row = (*row, checksum("settings", row))
        connection.execute("INSERT OR REPLACE INTO settings VALUES (?, ?, ?, ?)", row)
        connection.commit()
        connection.close()
        for command in ("show", "evaluate", "recommend", "ask"):
            status, said = program("study", command, path)
            assert status == 2
            assert reason in said
            assert said.count("\n") == 1


def program(*arguments):
    """Exit status of the program and what it says on standard error, without a process."""
    errors = io.StringIO()
    with (
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(errors),
        unittest.mock.patch.object(sys, "argv", ["recoup", *map(str, arguments)]),
        pytest.raises(SystemExit) as ended,
    ):
        cli.main()
    return ended.value.code, errors.getvalue()


def tell_four_and_die(path):
    """Another process, killed before it has closed the study."""
    code = (
        "import os, sys; from recoup.study.study import Study\n"
        "s = Study.open(sys.argv[1], dim=3, batch=50)\n"
        "for trial in s.ask(4): s.tell(trial.id, 1.0)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", code, str(path)])


class TestTheLog:
    def test_deleted_after_a_crash(self, tmp_path):
        """The results in it are gone; how many is known, and the rest goes on."""
        path = tmp_path / "robot.db"
        with Study.open(path, dim=3, batch=50) as study:
            for trial in study.ask(5):
                study.tell(trial.id, value_of(trial))
        tell_four_and_die(path)
        (tmp_path / "robot.db-wal").unlink()
        with pytest.raises(ValueError, match=r"4 of the 9 results told to .* are missing"):
            Study.open(path)
        found = recover(path, tmp_path / "new.db")
        assert (found.results, found.missing) == (5, 4)
        with Study.open(tmp_path / "new.db") as study:
            assert study.counts() == {"pending": 0, "ok": 5, "failed": 0}
            (trial,) = study.ask()
            assert trial.id == 10  # no number is given out again
            study.tell(trial.id, 1.0)

    def test_kept_after_a_crash_loses_nothing(self, tmp_path):
        path = tmp_path / "robot.db"
        tell_four_and_die(path)
        with Study.open(path) as study:
            assert study.counts()["ok"] == 4
        assert [p.name for p in tmp_path.iterdir()] == ["robot.db"]

    def test_a_new_study_does_not_take_the_log_of_an_old_one(self, tmp_path):
        path = tmp_path / "robot.db"
        tell_four_and_die(path)
        path.unlink()
        with pytest.raises(ValueError, match=FILE_GONE):
            Study.open(path, dim=2)
        (tmp_path / "robot.db-wal").unlink()
        with Study.open(path, dim=2) as study:  # nor its count
            assert study.counts()["ok"] == 0


def ask_and_tell(study, n):
    for _ in range(n):
        (trial,) = study.ask()
        study.tell(trial.id, value_of(trial))


class TestPlaces:
    @as_another_user
    def test_a_read_only_file_is_read_and_not_written(self, whole):
        """As another user, for root writes anywhere; pytest's directories are closed to them."""
        code = (
            "import os, sys\n"
            "from recoup.study.study import Study\n"
            "if os.getuid() == 0: os.setuid(65534)\n"
            "with Study.open(sys.argv[1]) as s:\n"
            "    print(s.counts()['ok'], len(s.pending()), len(s.history()))\n"
            "    for act in (lambda: s.ask(), lambda: s.tell(96, 1.0)):\n"
            "        try: act()\n"
            "        except ValueError as wrong: print(wrong)\n"
        )
        with tempfile.TemporaryDirectory() as place:
            path = Path(shutil.copy(whole, place))
            path.chmod(0o444)
            Path(place).chmod(0o555)
            done = subprocess.run(
                [sys.executable, "-c", code, str(path)], capture_output=True, text=True
            )
            Path(place).chmod(0o755)
        assert done.returncode == 0, done.stderr
        lines = done.stdout.splitlines()
        assert lines[0].split() == ["82", "3", "16"]
        assert lines[1] == lines[2]
        assert "cannot be written to: it, or its directory, is read-only" in lines[1]

    def test_a_full_disk(self, tmp_path):
        """A small file system of its own where one can be mounted; SQLite's page limit besides."""
        place = tmp_path / "small"
        place.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", str(place)]
        if subprocess.run(mount, capture_output=True).returncode:
            pytest.skip("no file system can be mounted here")
        try:
            with Study.open(place / "robot.db", dim=1000, batch=100) as study:
                with pytest.raises(ValueError, match=FULL):
                    ask_and_tell(study, 200)
                counts = study.counts()
                assert 0 < counts["ok"] < 200
            for ending in ("", "-wal"):  # what could not be folded into the file lies in its log
                shutil.copy(place / f"robot.db{ending}", tmp_path)
            with Study.open(tmp_path / "robot.db") as study:
                assert study.counts() == counts
                study.ask()
        finally:
            subprocess.run(["umount", "-l", str(place)])

    def test_a_stranger_s_file_runs_nothing(self, copy, tmp_path):
        """No pickle, and a schema that is not ours is not opened.

        Engines unpickle what a process of ours has sent to another, and nothing that was stored.
        """
        home = Path(sys.modules["recoup"].__file__).parent
        sources = [path for path in home.rglob("*.py") if path.parent.name != "engines"]
        source = "".join(path.read_text() for path in sources)
        words = (r"pickle\.load", r"(?<!\.)\b(eval|exec)\(", "allow_pickle=True", "__import__")
        for word in words:
            assert not re.search(word, source), word
        connection = sqlite3.connect(copy)
        connection.execute("DROP VIEW trials")
        connection.execute("CREATE VIEW trials AS SELECT load_extension('evil')")
        connection.commit()
        connection.close()
        with pytest.raises(ValueError, match="holds SQL that recoup did not write"):
            Study.open(copy)

    def test_two_processes_that_start_the_same_study(self, tmp_path):
        """One makes it, the others go on with it; none overwrites."""
        path = tmp_path / "robot.db"
        code = (
            "import sys; from recoup.study.study import Study\n"
            "try:\n"
            "    with Study.open(sys.argv[1], dim=2) as s: print(s.ask()[0].id)\n"
            "except ValueError as wrong: print(wrong)\n"
        )
        workers = [
            subprocess.Popen(
                [sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True
            )
            for _ in range(4)
        ]
        said = sorted(worker.communicate(timeout=LIMIT)[0].strip() for worker in workers)
        assert said == ["1", "2", "3", "4"]
        with Study.open(path) as study:
            assert study.counts()["pending"] == 4

    def test_what_others_have_put_beside_it_stays(self, tmp_path):
        names = ["robot.db.backup.new", "robot.db.20240101.newer.csv", "robot.db.new"]
        for name in names:
            (tmp_path / name).write_text("mine")
        (tmp_path / "robot.db.99999999999.new").write_text("of a process that is gone")
        Study.open(tmp_path / "robot.db", dim=2).close()
        assert sorted(p.name for p in tmp_path.iterdir()) == sorted(["robot.db", *names])


class TestStarts:
    """Where no density could be told of what is drawn, nothing is drawn."""

    @pytest.mark.parametrize(
        ("start", "words"),
        [
            ({"std": 1.7e308}, r"std must be at least 1e-100 and below 1e\+100, got 1.7e\+308"),
            ({"std": [1.0, 1e100]}, r"std must be at least 1e-100 and below 1e\+100, got 1e\+100"),
            ({"std": 1e-101}, r"std must be at least 1e-100 and below 1e\+100, got 1e-101"),
            ({"mean": -1e100}, r"mean must be below 1e\+100 in size, got -1e\+100"),
            ({"mean": [0.0, 1e308]}, r"mean must be below 1e\+100 in size, got 1e\+308"),
        ],
    )
    def test_one_beyond_what_squares_hold_is_refused(self, tmp_path, start, words):
        with pytest.raises(ValueError, match=words):
            Study.open(tmp_path / "new.db", dim=2, **start)
        with Study.open(tmp_path / "old.db", dim=2, batch=4) as study:
            for trial in study.ask(4):
                study.tell(trial.id, float(trial.theta.sum()))
            with pytest.raises(ValueError, match=words):
                study.fork(tmp_path / "new.db", **start)
            with pytest.raises(ValueError, match=words):
                study.evaluate(**start)
        assert not (tmp_path / "new.db").exists()

    def test_so_are_those_of_a_named_parameter(self, tmp_path):
        for one in ({"name": "x", "std": 1e200}, {"name": "x", "start": 1e200}):
            with pytest.raises(ValueError, match=r"(mean|std) must be .*below 1e\+100"):
                Study.open(tmp_path / "new.db", params=[one])
        assert not (tmp_path / "new.db").exists()

    def test_what_lies_within_is_taken_and_drawn(self, tmp_path):
        with Study.open(tmp_path / "new.db", dim=2, mean=-1e99, std=[1e99, 1e-100]) as study:
            assert np.isfinite(study.ask()[0].theta).all()


class TestWholeOrNot:
    """Forks and recoveries that are stopped before their last step are not there at all."""

    @pytest.mark.parametrize("how", ["fork", "recover"])
    def test_stopped(self, copy, tmp_path, monkeypatch, how):
        def stop(*_):
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr("os.link", stop)
            with pytest.raises(KeyboardInterrupt):
                self.made(copy, tmp_path / "new.db", how)
        assert sorted(p.name for p in tmp_path.iterdir()) == ["robot.db"]
        self.made(copy, tmp_path / "new.db", how)
        with Study.open(tmp_path / "new.db") as study:
            assert study.counts()["ok"] == 82

    @staticmethod
    def made(path, new, how):
        if how == "recover":
            recover(path, new)
        else:
            with Study.open(path) as study:
                study.fork(new).close()


class TestRecovery:
    @pytest.mark.parametrize("weighting", ["own", "balance"])
    @pytest.mark.parametrize(
        "lost",
        ["moves WHERE id = 16", "own WHERE id = 2", "mixture"],
    )
    def test_a_study_goes_on_as_if_nothing_that_can_be_made_again_was_lost(
        self, tmp_path, weighting, lost
    ):
        """A last move, or densities: the next ones come out the same, but for rounding."""
        made(tmp_path / "s.db", weighting=weighting)
        shutil.copy(tmp_path / "s.db", tmp_path / "t.db")
        connection = sqlite3.connect(tmp_path / "t.db")
        connection.execute(f"DELETE FROM {lost}")
        connection.commit()
        connection.close()
        assert recover(tmp_path / "t.db", tmp_path / "new.db").missing == 0
        ends = []
        for name in ("s.db", "new.db"):
            with Study.open(tmp_path / name) as study:
                waiting = study.pending()
                study.tell([t.id for t in waiting], [value_of(t) for t in waiting])
                ask_and_tell(study, 9)
                ends.append(np.concatenate([study.mean, study.std]))
                assert len(study.history()) == 18
        np.testing.assert_allclose(ends[0], ends[1], rtol=1e-9)
        assert all(verdict.sound for verdict in check(tmp_path / "new.db"))

    def test_a_windowed_study_goes_on_after_its_moves_were_lost(self, tmp_path):
        made(tmp_path / "s.db", window=3)
        connection = sqlite3.connect(tmp_path / "s.db")
        connection.execute("DELETE FROM moves WHERE id IN (13, 14)")
        connection.commit()
        connection.close()
        recover(tmp_path / "s.db", tmp_path / "new.db")
        with Study.open(tmp_path / "new.db") as study:
            for trial in [*study.pending(), *study.ask(9)]:
                study.tell(trial.id, value_of(trial))
            assert study.history()[-1]["move"] == 18
        words = check(tmp_path / "new.db")[-1].words
        assert words == "No move was made again: what it was recovered from was not whole."

    def test_nothing_is_overwritten_or_invented(self, copy, tmp_path):
        (tmp_path / "new.db").write_text("mine")
        with pytest.raises(ValueError, match=EXISTS):
            recover(copy, tmp_path / "new.db")
        with pytest.raises(ValueError, match="there is no file"):
            recover(tmp_path / "no.db", tmp_path / "other.db")
        (tmp_path / "noise.db").write_bytes(random.Random(0).randbytes(50_000))
        with pytest.raises(ValueError, match="holds no settings of a study that can be read"):
            recover(tmp_path / "noise.db", tmp_path / "other.db")
        assert not (tmp_path / "other.db").exists()

    def test_a_sound_file_comes_back_the_same_and_goes_on_alike(self, copy, tmp_path):
        found = recover(copy, tmp_path / "new.db")
        assert found.missing == 0
        assert "none that was told is missing" in found.words
        ends = []
        for path in (copy, tmp_path / "new.db"):
            with Study.open(path) as study:
                for trial in [*study.pending(), *study.ask(9)]:
                    study.tell(trial.id, value_of(trial))
                ends.append((study.mean.tolist(), study.std.tolist(), len(study.history())))
        assert ends[0] == ends[1]

    def test_pairs_and_trajectories_come_back(self, tmp_path):
        with Study.open(tmp_path / "m.db", dim=3, batch=4, method="pgpe", mirrored=True) as study:
            trials = study.ask(10)
            for trial in trials[:9]:
                study.tell(trial.id, value_of(trial))
            ready = study.until_move()
        recover(tmp_path / "m.db", tmp_path / "m2.db")
        with Study.open(tmp_path / "m2.db") as study:
            assert study.until_move() == ready
            study.tell(10, value_of(trials[9]))
        with Study.open(tmp_path / "a.db", dim=2, method="r3", horizon=3, batch=2) as study:
            for trial in study.ask(3):
                rows = {"features": np.ones((3, 2)), "actions": np.ones((3, 1))}
                study.tell(trial.id, trajectory={**rows, "rewards": np.arange(3.0)})
        recover(tmp_path / "a.db", tmp_path / "a2.db")
        with Study.open(tmp_path / "a2.db") as study:
            assert len(study.history()) == 1
            assert all(verdict.sound for verdict in check(tmp_path / "a2.db"))

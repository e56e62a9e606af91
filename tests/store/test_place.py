"""What lies beside a study file, and who else has it: counts, logs, links, forks, strangers."""

import os
import shutil
import sqlite3
import stat
import struct
import subprocess
import sys
import threading
import zlib

import numpy as np
import pytest
from program import recoup
from sentences import FOREIGN_SQL
from stores import filled
from waiting import LIMIT

from recoup.checks import InputError
from recoup.outputs import unfinished_of
from recoup.store.count import CONTENT, CRC, count_beside
from recoup.store.errors import Damaged
from recoup.store.place import COUNT, LOG, beside
from recoup.store.rows import DRAWN, OK, Asked, Told
from recoup.store.salvage import salvage
from recoup.store.store import Store
from recoup.study.care.recover import recover
from recoup.study.study import Study


@pytest.fixture
def path(tmp_path):
    return tmp_path / "robot.db"


def told(path, n=4, **settings):
    """A study with `n` results, open."""
    study = Study.open(path, dim=2, batch=100, **settings)
    for trial in study.ask(n):
        study.tell(trial.id, float(trial.theta.sum()))
    return study


def left_behind(path, to, n=4):
    """The file of a study with its log and its count, as a crash would leave them in `to`."""
    study = told(path, n)
    to.mkdir()
    for file in path.parent.glob(f"{path.name}*"):
        if file.is_file():
            shutil.copy(file, to / file.name)
    study.close()
    return to / path.name


TELL = """
import sys
from pathlib import Path
from recoup.study.study import Study
with Study.open(Path(sys.argv[1])) as study:
    study.tell(study.ask()[0].id, 2.0)
    print(study.counts()["ok"])
"""


def told_by_another(path):
    """How many results another process sees once it has told one; it closes the study."""
    how = {"capture_output": True, "text": True, "check": True, "timeout": LIMIT}
    return int(subprocess.run([sys.executable, "-c", TELL, path], **how).stdout)


class TestTheCount:
    def test_it_says_how_many_and_which_file(self, path):
        study = told(path)
        found = count_beside(path)
        assert found[:2] == (4, 4)
        assert found.identity > 0
        study.close()
        assert not beside(path, COUNT).exists()

    def test_one_that_is_not_as_written_is_none(self, path, tmp_path):
        """Any bit of it: a study is not refused for what somebody's disk has done to a hint."""
        left = left_behind(path, tmp_path / "left")
        content = beside(left, COUNT).read_bytes()
        assert len(content) == CONTENT.size + CRC.size
        for bit in range(8 * len(content)):
            wrong = bytearray(content)
            wrong[bit // 8] ^= 1 << bit % 8
            beside(left, COUNT).write_bytes(wrong)
            assert count_beside(left) == (0, 0, 0, 0)
        with Study.open(left) as study:
            assert study.counts()["ok"] == 4

    def test_amendments_that_were_in_a_lost_log_are_missed(self, path, tmp_path):
        """Though no result is: as many were told as are there."""
        told(path).close()
        with Study.open(path) as study:
            study.amend(3, -50.0)
            study.amend(2, drop="loose")
            assert count_beside(path)[:2] == (4, 4)
            copy = tmp_path / "copy.db"
            shutil.copy(path, copy)
            shutil.copy(beside(path, COUNT), beside(copy, COUNT))
        words = r"2 of the 3 events, as amendments are, noted in .*copy\.db are missing: its log"
        with pytest.raises(InputError, match=words):
            Study.open(copy)
        said = recover(copy, tmp_path / "saved.db").words
        assert said.endswith("Events of the study are lost, amendments may be among them.")
        Study.open(tmp_path / "saved.db").close()

    def test_that_of_another_file_says_nothing_of_this_one(self, path, tmp_path):
        """Recovered without what was lost, a study may take the place of the damaged one."""
        left = left_behind(path, tmp_path / "left")
        beside(left, LOG).unlink()
        recover(left, tmp_path / "saved.db")
        shutil.move(tmp_path / "saved.db", left)
        assert count_beside(left).told == 4
        with Study.open(left) as study:
            assert study.counts()["ok"] == 0

    def test_of_any_other_length_is_none(self, path):
        beside(path, COUNT).write_bytes(struct.pack("<qq", 9, 9))
        assert count_beside(path) == (0, 0, 0, 0)

    @pytest.mark.parametrize("mode", [0o600, 0o664, 0o666])
    def test_it_is_open_to_those_the_file_is_open_to(self, path, mode):
        told(path).close()
        path.chmod(mode)
        before = os.umask(0o077)
        try:
            study = Study.open(path)
            (trial,) = study.ask(1)
            study.tell(trial.id, 1.0)
        finally:
            os.umask(before)
        assert stat.S_IMODE(beside(path, COUNT).stat().st_mode) == mode
        study.close()

    def test_a_link_in_its_place_is_not_followed(self, path, tmp_path):
        mine = tmp_path / "thesis.txt"
        mine.write_text("years of work")
        study = Study.open(path, dim=2, batch=3)
        beside(path, COUNT).unlink(missing_ok=True)
        beside(path, COUNT).symlink_to(mine)
        for trial in study.ask(4):
            study.tell(trial.id, 1.0)
        assert mine.read_text() == "years of work"
        assert count_beside(path) == (0, 0, 0, 0)
        study.close()
        with Study.open(path) as study:
            assert study.counts()["ok"] == 4

    def test_opening_while_another_tells_is_no_alarm(self, path):
        """A thread that opens again and again, and one that tells: no result is ever missed."""
        told(path).close()
        writer, ended, wrong = Store.open(path), threading.Event(), []

        def tell():
            for number in range(5, 205):
                with writer.writing():
                    writer.add_trials([Asked(number, DRAWN, 0, np.zeros(2), number)])
                with writer.writing():
                    writer.add_result(number, Told(OK, 1.0))

        def look():
            while not ended.is_set():
                try:
                    Store.open(path).close()
                except InputError as error:
                    wrong.append(error)

        looking = threading.Thread(target=look)
        looking.start()
        try:
            tell()
        finally:
            ended.set()
        looking.join()
        writer.close()
        assert wrong == []


class TestTheLog:
    def test_through_a_link_it_is_found(self, path, tmp_path):
        left = left_behind(path, tmp_path / "left", n=7)
        link = tmp_path / "link.db"
        link.symlink_to(left)
        assert len(salvage(link).rows.told) == 7
        assert recover(link, tmp_path / "saved.db").results == 7
        with Study.open(link) as study:
            assert study.counts()["ok"] == 7

    def test_a_read_only_open_through_a_link_sees_it(self, path, tmp_path, monkeypatch):
        left = left_behind(path, tmp_path / "left", n=7)
        link = tmp_path / "link.db"
        link.symlink_to(left)
        monkeypatch.setattr("recoup.store.file.is_writable", lambda path: False)
        with Study.open(link) as study:
            assert study.store.read_only
            assert study.counts()["ok"] == 7

    def test_of_another_file_is_noticed(self, path, tmp_path):
        """`mv saved.db robot.db` beside the log of the old one, which SQLite would play back."""
        left = left_behind(path, tmp_path / "left", n=7)
        recover(left, tmp_path / "saved.db")
        shutil.move(tmp_path / "saved.db", left)
        with pytest.raises(InputError, match="is the log of another file"):
            Study.open(left)
        for ending in (LOG, "-shm", COUNT):
            beside(left, ending).unlink(missing_ok=True)
        with Study.open(left) as study:
            assert study.counts()["ok"] == 7

    def test_of_its_own_is_not(self, path, tmp_path):
        """A copy of all that lies there, and one that was recovered before."""
        left = left_behind(path, tmp_path / "left", n=3)
        recover(left, tmp_path / "again.db")
        study = Study.open(tmp_path / "again.db")
        (trial,) = study.ask(1)
        study.tell(trial.id, 1.0)
        with Study.open(tmp_path / "again.db") as other:
            assert other.counts()["ok"] == 4
        study.close()


def results(path):
    with Study.open(path) as study:
        return study.counts()["ok"]


class TestOtherNames:
    """Hard links: SQLite's log lies beside one of them, and is not seen under the others."""

    def test_a_log_beside_another_name_is_said(self, path, tmp_path):
        study, link = told(path, 6), tmp_path / "link.db"
        os.link(path, link)
        with pytest.raises(InputError, match=r"in robot\.db-wal, .* not seen .*: open "):
            Study.open(link)
        with pytest.raises(InputError, match=r"is robot\.db under another name"):
            recover(link, tmp_path / "saved.db")
        assert sorted(file.name for file in tmp_path.glob("link*")) == ["link.db"]
        with Study.open(path) as beside_it:  # its own name, in use
            (trial,) = beside_it.ask(1)
            beside_it.tell(trial.id, 1.0)
        study.close()
        assert results(link) == results(path) == 7

    def test_so_is_one_that_a_crash_has_left(self, path, tmp_path):
        left = left_behind(path, tmp_path / "left", n=6)
        os.link(left, left.with_name("a.db"))
        with pytest.raises(InputError, match=r"is robot\.db under another name"):
            Study.open(left.with_name("a.db"))
        assert results(left) == 6
        assert results(left.with_name("a.db")) == 6

    def test_a_name_in_another_directory_is_said(self, path, tmp_path, caplog):
        (tmp_path / "elsewhere").mkdir()
        study, link = told(path, 6), tmp_path / "elsewhere" / "robot.db"
        os.link(path, link)
        results(link)
        (said,) = caplog.messages
        assert str(link) in said
        assert "not seen here until it is closed there" in said
        study.close()
        assert results(link) == 6

    def test_under_two_names_it_is_only_read(self, path, tmp_path):
        """Each would write a log of its own; a backup of hard links would change with the file."""
        told(path, 6).close()
        link = tmp_path / "link.db"
        os.link(path, link)
        content = path.read_bytes()
        for name in (path, link):
            with Study.open(name) as study:
                assert study.counts()["ok"] == 6
                with pytest.raises(InputError, match="so that it is only read"):
                    study.ask(1)
        assert path.read_bytes() == content
        link.unlink()
        with Study.open(path) as study:
            assert study.ask(1)

    def test_through_a_symbolic_link_too(self, path, tmp_path):
        study = told(path, 6)
        (tmp_path / "to").mkdir()
        os.link(path, tmp_path / "other.db")
        (tmp_path / "to" / "it.db").symlink_to(tmp_path / "other.db")
        with pytest.raises(InputError, match=r"is robot\.db under another name"):
            Study.open(tmp_path / "to" / "it.db")
        study.close()

    def test_the_name_of_its_making_is_none(self, path, tmp_path, caplog):
        """A new file has two names for a moment; whoever opens it then writes to it."""
        told(path, 6).close()
        os.link(path, unfinished_of(path))
        with Study.open(path) as study:
            assert study.ask(1)
        assert caplog.messages == []


FORKED = """
import os, sys
from recoup.study.study import Study

study = Study.open(sys.argv[1], dim=2, batch=1000)
mine, theirs = study.ask(10), study.ask(10)
for trial in mine[:5]:
    study.tell(trial.id, 1.0)
child = os.fork()
for trial in mine[5:] if child else theirs:
    study.tell(trial.id, 1.0)
if not child:
    with study.store.alone() as alone:
        assert alone
        os._exit(0) if sys.argv[2] == "killed" else sys.exit()
assert os.waitpid(child, 0)[1] == 0
with study.store.alone() as alone:
    assert alone
assert study.counts()["ok"] == 20, study.counts()
study.close()
"""


@pytest.mark.parametrize("ends", ["killed", "by itself"])
def test_what_a_forked_process_tells_is_kept(path, ends):
    """What multiprocessing does: fork with a study open, tell on both sides. A lock ends too."""
    subprocess.run([sys.executable, "-c", FORKED, str(path), ends], check=True, timeout=LIMIT)
    with Study.open(path) as again:
        assert again.counts()["ok"] == 20
        assert again.store.integrity() is None


ELSEWHERE = """
import os
from recoup.study.study import Study

study = Study.open("s.db", dim=2, batch=1000)
Study.open("other/s.db", dim=2, batch=1000).close()
mine, theirs = study.ask(5), study.ask(5)
os.chdir("other")
child = os.fork()
for trial in mine if child else theirs:
    study.tell(trial.id, 1.0)
if not child:
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
assert study.counts()["ok"] == 10, study.counts()
study.close()
"""


CLOSED = """
import os, signal, subprocess, sys
from recoup.study.study import Study

path, how, other = sys.argv[1:]
study = Study.open(path, dim=2, batch=100)
for trial in study.ask(4):
    study.tell(trial.id, 1.0)
(said, say), (heard, hear) = os.pipe(), os.pipe()
child = os.fork()
if not child:
    try:
        mine = study if how == "as it was" else Study.open(path)
        for _ in range(2):
            mine.tell(mine.ask()[0].id, 2.0)
            os.write(say, b"1")
            os.read(heard, 1)  # at last until it is killed
    finally:
        os._exit(1)
assert os.read(said, 1)
study.close()
subprocess.run([sys.executable, "-c", other, path], check=True)
os.write(hear, b"1")
assert os.read(said, 1)
os.kill(child, signal.SIGKILL)
os.waitpid(child, 0)
"""


MIDDLE = """
import os, subprocess, sys
from recoup.checks import InputError
from recoup.study.study import Study

path, how, other = sys.argv[1:]
study = Study.open(path, dim=2, batch=100)
for trial in study.ask(4):
    study.tell(trial.id, 1.0)
closed, close = os.pipe()
with study.store.reading():
    study.counts()
    child = os.fork()
    if not child:
        try:
            os.read(closed, 1)
            mine = study if how == "as it was" else Study.open(path)
            mine.tell(mine.ask()[0].id, 2.0)
        except InputError as refused:
            print(refused, flush=True)
        finally:
            os._exit(0)
study.close()
subprocess.run([sys.executable, "-c", other, path], check=True, stdout=subprocess.DEVNULL)
os.write(close, b"1")
os.waitpid(child, 0)
"""


class TestALogThatWasRemoved:
    """SQLite's locks go where a process reads the file by itself, and do not come with a fork."""

    def test_what_is_told_after_a_copy_was_made_is_seen_by_others(self, path, tmp_path):
        with told(path) as study:
            shutil.copy(path, tmp_path / "copy.db")
            assert told_by_another(path) == 5  # it takes itself for the last, and closes
            assert study.counts()["ok"] == 5
            shutil.copy(path, tmp_path / "again.db")
            assert told_by_another(path) == 6
            for trial in study.ask(3):
                study.tell(trial.id, 3.0)
            assert told_by_another(path) == 10
            assert study.counts()["ok"] == 10
        assert not beside(path, LOG).exists()
        assert told_by_another(path) == 11

    def test_of_a_file_that_was_moved_behind_a_link_it_lies_where_others_look(self, path, tmp_path):
        (tmp_path / "there").mkdir()
        with told(path) as study:
            path.rename(tmp_path / "there" / path.name)
            path.symlink_to(tmp_path / "there" / path.name)
            study.tell(study.ask()[0].id, 1.0)
            assert (tmp_path / "there" / f"{path.name}{LOG}").exists()
            assert told_by_another(path) == 6
            assert study.counts()["ok"] == 6

    def test_in_the_middle_of_writing_nothing_is_written(self, path, tmp_path):
        with told(path) as study:
            (trial,) = study.ask()
            said = pytest.raises(InputError, match=r"was removed.*nothing was written")
            with said, study.store.writing():
                study.store.add_result(trial.id, Told(OK, 1.0, None, 1, None))
                beside(path, LOG).rename(tmp_path / "log")
            (tmp_path / "log").rename(beside(path, LOG))
            assert study.counts()["ok"] == 4
            study.tell(trial.id, 1.0)
        assert told_by_another(path) == 6

    @pytest.mark.skipif(sys.platform != "linux", reason="there are no such locks here")
    def test_others_that_close_it_leave_the_log_after_a_copy_was_made(self, path, tmp_path):
        """However late: a commit that is under way goes to a log that all see."""
        with told(path) as study, Study.open(path) as twice:
            log = beside(path, LOG).stat().st_ino
            shutil.copy(path, tmp_path / "copy.db")
            assert told_by_another(path) == 5
            assert beside(path, LOG).stat().st_ino == log
            twice.close()
            with study.store.writing():
                shutil.copy(path, tmp_path / "copy.db")
                Study.open(path, read_only=True).close()
                assert beside(path, LOG).stat().st_ino == log
            study.tell(study.ask()[0].id, 3.0)
        assert not beside(path, LOG).exists()
        assert told_by_another(path) == 7

    def test_while_it_is_open_twice_it_is_to_be_opened_anew(self, path, tmp_path):
        with told(path) as study, Study.open(path) as twice:
            study.store._file.connection.execute("PRAGMA wal_checkpoint")
            beside(path, LOG).rename(tmp_path / "log")
            for one in (study, twice):
                with pytest.raises(InputError, match="close it wherever it is open in this proc"):
                    one.ask()
        assert told_by_another(path) == 5

    @pytest.mark.parametrize("how", ["as it was", "anew"])
    def test_a_process_forked_in_the_middle_does_not_write_to_a_log_of_before(self, path, how):
        command = [sys.executable, "-W", "ignore", "-c", MIDDLE, path, how, TELL]
        done = subprocess.run(command, check=True, timeout=2 * LIMIT, capture_output=True)
        assert b"was being read or written when this process was forked" in done.stdout
        assert told_by_another(path) == 6

    @pytest.mark.parametrize("how", ["as it was", "anew"])
    def test_a_forked_process_keeps_the_log_when_its_parent_closes(self, path, how):
        command = [sys.executable, "-c", CLOSED, path, how, TELL]
        subprocess.run(command, check=True, timeout=2 * LIMIT)
        assert told_by_another(path) == 8

    @pytest.mark.parametrize("read_only", [True, False])
    def test_is_lost_by_nobody_who_closes_the_file_then(self, path, tmp_path, read_only):
        """Another that has it open saves what it held, and does not take the witness away."""
        told(path, 2).close()
        older = shutil.copy(path, tmp_path / "older.db")
        study, other = Study.open(path), Study.open(path, read_only=read_only)
        for trial in study.ask(5):
            study.tell(trial.id, 1.0)
        beside(path, LOG).unlink()
        other.close()
        left = tmp_path / "left"
        left.mkdir()
        for ending in ("", COUNT):  # as a kill would leave it
            shutil.copy(f"{path}{ending}", left / f"robot.db{ending}")
        assert results(left / "robot.db") == 7
        shutil.copy(f"{path}{COUNT}", left)
        shutil.copy(older, left / "robot.db")
        for _ in range(2):
            with pytest.raises(Damaged, match=r"5 of the 7 results told to .* are missing"):
                Study.open(left / "robot.db")
        study.close()
        assert results(path) == 7
        assert not beside(path, COUNT).exists()


class TestAFileThatWasCopiedOver:
    def test_is_told_nothing_more(self, path, tmp_path):
        told(path, 3).close()
        told(tmp_path / "other.db", 6, seed=1).close()
        study = Study.open(path)
        trial, more = study.ask(2)
        study.tell(trial.id, 1.0)
        path.write_bytes((tmp_path / "other.db").read_bytes())  # `cp`: the same file, other content
        with pytest.raises(Damaged, match=r"another study was copied over .*: nothing was written"):
            study.tell(more.id, 1.0)
        study.store._file._link.leave(at_rest=False)  # nobody folds a log into a stranger

    def test_its_own_log_written_to_it_is_no_other(self, path):
        with told(path, 3) as study:
            study.store._file.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            study.tell(study.ask()[0].id, 1.0)
            assert study.counts()["ok"] == 4


class TestACopy:
    def test_has_all_that_was_told_while_others_write(self, path, tmp_path):
        study = told(path, 5)
        assert recoup("study", "copy", path, tmp_path / "copy.db").returncode == 0
        shutil.copy(path, tmp_path / "cp.db")
        study.tell(study.ask()[0].id, 1.0)
        assert [file.name for file in tmp_path.glob("copy*")] == ["copy.db"]
        assert results(tmp_path / "copy.db") == 5
        assert results(tmp_path / "cp.db") == 0  # which is why
        study.close()

    def test_does_not_write_over_anything(self, path, tmp_path):
        told(path, 1).close()
        (tmp_path / "copy.db").write_text("mine")
        done = recoup("study", "copy", path, tmp_path / "copy.db")
        assert done.returncode == 2
        assert "copy.db exists already" in done.stderr
        assert (tmp_path / "copy.db").read_text() == "mine"


class TestNetworkDisks:
    @pytest.fixture
    def mounts(self, tmp_path, monkeypatch):
        table = tmp_path / "mounts"
        table.write_text(
            f"/dev/sda / ext4 rw 0 0\nserver:/x {tmp_path}/far\\040away nfs4 rw 0 0\n"
            f"tmpfs {tmp_path}/far\\040away/near tmpfs rw 0 0\n"
        )
        (tmp_path / "far away" / "near").mkdir(parents=True)
        monkeypatch.setattr("recoup.store.place.MOUNTS", table)
        return tmp_path / "far away"

    def test_a_study_is_not_made_there(self, mounts):
        with pytest.raises(InputError, match=r"network disk \(nfs4\).* `recoup serve`"):
            Study.open(mounts / "robot.db", dim=2)
        assert sorted(mounts.iterdir()) == [mounts / "near"]
        Study.open(mounts / "near" / "robot.db", dim=2).close()

    def test_one_that_lies_there_is_read(self, path, mounts):
        told(path, 4).close()
        shutil.copy(path, mounts / "robot.db")
        with Study.open(mounts / "robot.db") as study:
            assert study.counts()["ok"] == 4
            with pytest.raises(InputError, match="lies on a network disk"):
                study.ask()
        assert sorted(file.name for file in mounts.iterdir()) == ["near", "robot.db"]


class TestAFileThatWasMoved:
    """Its log stays behind, where nobody looks for it: what is told would be lost."""

    @pytest.mark.parametrize("gone", [lambda path: path.rename(f"{path}.kept"), os.unlink])
    def test_is_told_nothing_more(self, path, gone):
        study = told(path)
        (trial,) = study.ask()
        gone(path)
        with pytest.raises(InputError, match="was moved or removed since it was opened"):
            study.tell(trial.id, 1.0)
        with pytest.raises(InputError, match="was moved or removed since it was opened"):
            study.ask()
        study.close()

    def test_goes_on_where_it_is_put_back(self, path):
        study = told(path)
        (trial,) = study.ask()
        path.rename(f"{path}.kept")
        with pytest.raises(InputError, match="nothing was written"):
            study.tell(trial.id, 1.0)
        os.rename(f"{path}.kept", path)
        study.tell(trial.id, 1.0)
        study.close()
        with Study.open(path) as again:
            assert again.counts()["ok"] == 5


class TestAnotherDirectory:
    """A study is where it was when it was opened, whatever is changed to or turned afterwards."""

    def test_a_forked_process_tells_the_study_that_was_opened(self, tmp_path):
        """Another of the same name lies where the process has gone."""
        (tmp_path / "other").mkdir()
        subprocess.run([sys.executable, "-c", ELSEWHERE], check=True, timeout=120, cwd=tmp_path)
        with Study.open(tmp_path / "s.db") as study:
            assert study.counts()["ok"] == 10
        with Study.open(tmp_path / "other" / "s.db") as other:
            assert len(other) == 0
        assert {path.name for path in tmp_path.rglob("*")} == {"s.db", "other"}

    def test_everything_goes_on_with_the_file_that_was_opened(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "away").mkdir()
        with Study.open("s.db", dim=2, batch=4, seed=1) as study:
            monkeypatch.chdir(tmp_path / "away")
            trials = study.ask(8)
            for trial in trials:
                study.tell(trial.id, float(trial.theta.sum()))
            assert study.amend(trials[1].id, 3.0).moves == [1, 2]
            with study.store.alone() as alone, Study.open(tmp_path / "s.db") as other:
                assert alone
                with other.store.alone() as both:
                    assert not both
            assert count_beside(tmp_path / "s.db").told == 8
            study.export("table.csv")  # where the process is now, as it is said now
            study.fork("fork.db").close()
            assert repr(study).startswith("Study('s.db', ")
        assert {p.name for p in (tmp_path / "away").iterdir()} == {"table.csv", "fork.db"}
        assert {p.name for p in tmp_path.iterdir()} == {"s.db", "away"}
        with Study.open(tmp_path / "s.db") as again:
            assert again.store.results([2])[2].told.value == 3.0
            assert len(again.history()) == 2

    def test_one_that_was_removed_is_no_matter_in_memory(self, tmp_path, monkeypatch):
        (tmp_path / "gone").mkdir()
        monkeypatch.chdir(tmp_path / "gone")
        (tmp_path / "gone").rmdir()
        with Study.open(tmp_path / "s.db", dim=2, batch=2, seed=1) as study:
            study.tell([trial.id for trial in study.ask(2)], [1.0, 2.0])
            assert study.amend(1, 3.0).moves == [1]  # on a copy in memory

    def test_a_link_that_is_turned_to_another_directory(self, tmp_path):
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
        link = tmp_path / "now"
        link.symlink_to(tmp_path / "one")
        with Study.open(link / "s.db", dim=2, batch=4) as study:
            Study.open(tmp_path / "two" / "s.db", dim=2, batch=4).close()
            link.unlink()
            link.symlink_to(tmp_path / "two")
            trials = study.ask(4)
            study.tell([trial.id for trial in trials], [1.0, 2.0, 3.0, 4.0])
            with study.store.alone() as alone:
                assert alone
                assert not beside(tmp_path / "two" / "s.db", COUNT).exists()
        assert {path.name for path in (tmp_path / "one").iterdir()} == {"s.db"}
        with Study.open(tmp_path / "one" / "s.db") as one:
            assert len(one.history()) == 1

    def test_a_forked_process_refuses_another_file_in_the_place_of_its_own(self, path, tmp_path):
        """Which would take what is told to the one that was opened."""
        Study.open(tmp_path / "another.db", dim=2, batch=1000).close()
        words = [sys.executable, "-c", REPLACED, str(path), str(tmp_path / "another.db")]
        done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=True)
        assert "another file lies in the place of" in done.stdout
        with Study.open(path) as another:
            assert len(another) == 0


REPLACED = """
import os, sys
from recoup.checks import InputError
from recoup.study.study import Study

study = Study.open(sys.argv[1], dim=2, batch=1000)
(trial,) = study.ask(1)
study.store._file.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
child = os.fork()
if child:
    sys.exit(os.waitpid(child, 0)[1])
os.replace(sys.argv[2], sys.argv[1])
try:
    study.tell(trial.id, 1.0)
except InputError as refused:
    print(refused, flush=True)
os._exit(0)
"""


class TestStrangers:
    @pytest.mark.parametrize(
        "sql",
        [
            "CREATE TRIGGER bite AFTER INSERT ON asked BEGIN DELETE FROM told; END",
            "CREATE VIEW more AS SELECT 1",
            "CREATE TABLE theirs (id INTEGER PRIMARY KEY)",
            "DROP VIEW trials",
            "ALTER TABLE told ADD COLUMN extra",
        ],
    )
    def test_sql_of_theirs_is_refused(self, path, sql):
        filled(path).close()
        with sqlite3.connect(path) as connection:
            connection.execute(sql)
        connection.close()
        with pytest.raises(InputError, match=f"{FOREIGN_SQL}|is damaged"):
            Store.open(path)

    def test_a_view_in_place_of_a_table(self, path):
        """One that never ends: it is refused before it is asked anything."""
        filled(path).close()
        endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)"
        with sqlite3.connect(path) as connection:
            connection.execute("DROP TABLE queue")
            connection.execute(f"CREATE VIEW queue AS {endless} SELECT x AS id FROM n")
        connection.close()
        with pytest.raises(InputError, match=FOREIGN_SQL):
            Store.open(path)

    def test_what_sqlite_writes_for_itself_is_none(self, path):
        filled(path).close()
        with sqlite3.connect(path) as connection:
            connection.execute("ANALYZE")
        connection.close()
        Store.open(path).close()


class TestMoves:
    def test_one_process_makes_a_move_and_the_others_go_on(self, path, monkeypatch):
        """While one is at it, another that tells does not make the same; none is left unmade."""
        with Study.open(path, dim=2, batch=4) as study, Study.open(path) as other:
            trials = study.ask(8)
            for trial in trials[:3]:
                study.tell(trial.id, float(trial.theta.sum()))
            with other.store.alone() as alone:
                assert alone
                study.tell(trials[3].id, 0.5)
                assert len(study.store.moves()) == 1  # the start: the other is at it
            study.tell(trials[4].id, 0.25)
            assert len(study.store.moves()) == 2


def test_the_checksum_of_a_count_is_that_of_its_numbers(path):
    study = told(path)
    *numbers, crc = struct.unpack("<qqIqI", beside(path, COUNT).read_bytes())
    assert crc == zlib.crc32(struct.pack("<qqIq", *numbers))
    study.close()


def test_a_missing_log_is_called_by_its_real_name(tmp_path):
    path, link = tmp_path / "y.db", tmp_path / "x.db"
    link.symlink_to(path)
    with Study.open(path, dim=1, batch=9) as study:
        study.tell(study.ask()[0].id, 1.0)
        for name in ("y.db", "y.db-count"):
            shutil.copy(tmp_path / name, tmp_path / f"{name}.kept")
    for name in ("y.db", "y.db-count"):
        shutil.move(tmp_path / f"{name}.kept", tmp_path / name)
    with pytest.raises(InputError, match=r"told to .*x\.db are missing: its log y\.db-wal was"):
        Study.open(link)

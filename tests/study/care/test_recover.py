"""What is recovered is what the file said last: of results that were amended, moves made again.

Also where a log lies beside the file, which holds older copies of most pages.
"""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from recoup.store import rows
from recoup.store.pages import FRAME_HEADER, LOG_HEADER, ROOTS
from recoup.store.place import LOG, beside
from recoup.store.schema import packed
from recoup.study.care.recover import recover
from recoup.study.care.verify import check
from recoup.study.exchange.replay import differences
from recoup.study.study import Study

PAGE = 4096
FRAME = FRAME_HEADER + PAGE
SOUND = "none that was told is missing."


def told(path, n=12, **settings):
    """A study with `n` results, open: what it holds lies in its log."""
    how = {"dim": 2, "batch": 4, "seed": 1, "method": "mis-pgpe-ob", **settings}
    study = Study.open(path, **how)
    for trial in study.ask(n):
        study.tell(trial.id, float(trial.id))
    return study


def batches(study, n):
    """Tells `n` batches of four."""
    for _ in range(n):
        for trial in study.ask(4):
            study.tell(trial.id, float(trial.id))


def delete(path, table, *ids):
    """Takes rows out of a file that is closed, as no command of ours does."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executemany(f"DELETE FROM {table} WHERE id = ?", [(i,) for i in ids])


def left(study, to):
    """A copy of the file of an open study and of its log, as a crash would leave them."""
    shutil.copy(study.store.path, to)
    shutil.copy(beside(study.store.path, LOG), beside(to, LOG))
    return to


def frames(path):
    """The places of the frames of a log, by the page that each is a copy of; the newest last."""
    content, found = beside(path, LOG).read_bytes(), {}
    for start in range(LOG_HEADER, len(content), FRAME):
        page = int.from_bytes(content[start : start + 4], "big")
        found.setdefault(page, []).append(start + FRAME_HEADER)
    return found


def spoil(path, table):
    """Destroys the page that holds a table, as it was written last."""
    content = bytearray(beside(path, LOG).read_bytes())
    place = frames(path)[ROOTS[table]][-1]
    content[place : place + PAGE] = bytes(PAGE)
    beside(path, LOG).write_bytes(content)


def results_of(path):
    with Study.open(path) as study:
        return {n: (row.told, row.counted) for n, row in study.store.results().items()}


class TestALogBesideIt:
    @pytest.mark.parametrize("settings", [{}, {"mirrored": True}, {"method": "recoup"}])
    @pytest.mark.parametrize("how", [{"drop": "loose"}, {"failed": "fell"}, {"value": -50.0}])
    def test_what_was_amended_stays_amended(self, tmp_path, settings, how):
        """Of a dropped pair the other too, whose row says nothing of when it was replaced."""
        with told(tmp_path / "a.db", **settings) as study:
            study.amend(3, **how)
            said = recover(tmp_path / "a.db", tmp_path / "b.db").words
        assert said.endswith(SOUND)
        assert results_of(tmp_path / "b.db") == results_of(tmp_path / "a.db")
        assert check(tmp_path / "b.db")[-1].words.endswith("to the last bit.")

    def test_no_clock_says_what_is_newest(self, tmp_path, monkeypatch):
        with told(tmp_path / "a.db") as study:
            with monkeypatch.context() as back:
                back.setattr("time.time", lambda: 1e9)  # long before the results
                study.amend(3, -50.0)
            recover(tmp_path / "a.db", tmp_path / "b.db")
            with Study.open(tmp_path / "b.db") as saved:
                assert saved.store.results([3])[3].told.value == -50.0
                np.testing.assert_array_equal(saved.mean, study.mean)

    def test_tests_of_moves_that_were_made_again_stay_away(self, tmp_path):
        with told(tmp_path / "a.db") as study:
            with study.store.writing():
                for move in range(4):
                    study.store.add_test(rows.Test(move, 1.0, 0.1, 10, 1.0))
            study.amend(6, -50.0)
            copies = [left(study, tmp_path / f"{name}.db") for name in ("b", "c")]
        spoil(copies[1], "tests")
        for copy in copies:
            recover(copy, copy.with_suffix(".new"))
            with Study.open(copy.with_suffix(".new")) as saved:
                assert [test.move for test in saved.store.tests()] == [0, 1]

    def test_trajectories_of_what_failed_stay_away(self, tmp_path):
        settings = {"dim": 2, "batch": 3, "seed": 1, "method": "iw-reinforce-ob", "horizon": 4}
        rng = np.random.default_rng(0)
        with Study.open(tmp_path / "a.db", **settings) as study:
            for trial in study.ask(6):
                steps = {"features": rng.normal(size=(4, 2)), "actions": rng.normal(size=(4, 1))}
                study.tell(trial.id, trajectory={**steps, "rewards": rng.normal(size=4)})
            study.amend(2, failed="fell")
            recover(tmp_path / "a.db", tmp_path / "b.db")
        with Study.open(tmp_path / "b.db") as saved:
            assert sorted(saved.store.trajectories()) == [1, 3, 4, 5, 6]

    def test_a_trajectory_that_another_took_the_place_of_stays_away(self, tmp_path):
        """What is lost is said: it is not the new return beside the old episode."""
        settings = {"dim": 2, "batch": 3, "seed": 1, "method": "iw-reinforce-ob", "horizon": 4}
        rng = np.random.default_rng(0)

        def episode():
            steps = {"features": rng.normal(size=(4, 2)), "actions": rng.normal(size=(4, 1))}
            return {**steps, "rewards": rng.normal(size=4)}

        with Study.open(tmp_path / "a.db", **settings) as study:
            for trial in study.ask(6):
                study.tell(trial.id, trajectory=episode())
            study.amend(3, failed="fell")
            study.amend(3, trajectory="before")
            for trajectory in (episode(), episode(), "before", episode()):
                study.amend(2, trajectory=trajectory)
            copy, want = left(study, tmp_path / "copy.db"), study.store.trajectories()
        spoil(copy, "trajectories")
        found = recover(copy, tmp_path / "b.db")
        assert (found.results, found.missing) == (5, 1)
        with Study.open(tmp_path / "b.db") as saved:
            there = saved.store.trajectories()
        assert sorted(there) == [1, 3, 4, 5, 6]
        for number, rows_ in there.items():
            np.testing.assert_array_equal(rows_, want[number])

    def test_what_was_given_up_has_not_happened(self, tmp_path):
        """A transaction too large for memory: pages of it lie in the log, though it was undone."""
        with told(tmp_path / "a.db", n=4, batch=1000) as study:
            trials = study.ask(600)
            before = beside(study.store.path, LOG).stat().st_size
            study.store._file.connection.execute("PRAGMA cache_size = 5")
            with pytest.raises(ValueError, match="there is no trial 9999"):
                study.tell([trial.id for trial in trials] + [9999], [1.0] * 601)
            assert beside(study.store.path, LOG).stat().st_size > before
            assert study.counts()["ok"] == 4
            found = recover(tmp_path / "a.db", tmp_path / "b.db")
        assert found.results == 4
        assert "What its log ends in was not finished" in found.words

    def test_a_commit_that_was_cut_short_has_not_happened(self, tmp_path):
        """Wherever the power failed, it is as SQLite finds it."""
        with told(tmp_path / "a.db") as study:
            before = beside(study.store.path, LOG).stat().st_size
            was = study.store.results()
            study.amend(3, -50.0)
            after = beside(study.store.path, LOG).stat().st_size
            assert after - before >= 5 * FRAME
            for end in range(before + 100, after, FRAME):
                copy = left(study, tmp_path / "copy.db")
                with beside(copy, LOG).open("r+b") as log:
                    log.truncate(end)
                recover(copy, tmp_path / "new.db")
                assert all(verdict.sound for verdict in check(tmp_path / "new.db"))
                with Study.open(tmp_path / "new.db") as saved:
                    assert saved.store.results() == was
                (tmp_path / "new.db").unlink()

    def test_it_is_of_one_state_though_another_process_closes_it_meanwhile(
        self, tmp_path, monkeypatch
    ):
        """Behind the back of who has read the file, what its log held goes there."""
        study, read = told(tmp_path / "a.db"), Path.read_bytes

        def read_and_closed(path):
            content = read(path)
            if path.name == "a.db":
                study.close()
            return content

        monkeypatch.setattr(Path, "read_bytes", read_and_closed)
        assert recover(tmp_path / "a.db", tmp_path / "b.db").results == 12


class TestDamageInTheLog:
    """Older copies of a page hold rows of before: events say which were amended."""

    @pytest.mark.parametrize("settings", [{}, {"mirrored": True}])
    def test_results_come_from_older_copies_as_they_were_amended(self, tmp_path, settings):
        with told(tmp_path / "a.db", **settings) as study:
            study.amend(3, -50.0)
            study.amend(7, failed="fell")
            study.amend(3, -70.0)
            study.amend(10, drop="loose")
            copy = left(study, tmp_path / "copy.db")
            truth = {n: (row.told, row.counted) for n, row in study.store.results().items()}
        spoil(copy, "told")
        found = recover(copy, tmp_path / "b.db")
        assert found.words.endswith(SOUND)
        assert results_of(tmp_path / "b.db") == truth
        assert check(tmp_path / "b.db")[-1].words.endswith("to the last bit.")

    def test_where_the_events_are_lost_too_it_says_so(self, tmp_path):
        with told(tmp_path / "a.db") as study:
            study.amend(3, -50.0)
            copy = left(study, tmp_path / "copy.db")
        spoil(copy, "told")
        spoil(copy, "events")
        words = recover(copy, tmp_path / "b.db").words
        assert "Events of the study are lost, amendments may be among them." in words
        assert "12 results may be as they were before an amendment: trials 1, 2, 3, 4" in words
        verdict = check(tmp_path / "b.db")[-1].words
        assert verdict == "No move was made again: what it was recovered from was not whole."

    def test_moves_that_were_made_again_do_not_come_back_as_they_were(self, tmp_path):
        with told(tmp_path / "a.db") as study:
            old = {move.id: move.proposal for move in study.store.moves()}
            study.amend(6, -50.0)
            copy = left(study, tmp_path / "copy.db")
        spoil(copy, "moves")
        recover(copy, tmp_path / "b.db")
        with Study.open(tmp_path / "b.db") as saved:
            moves = {move.id: move.proposal for move in saved.store.moves()}
            assert moves[1] == old[1]
            assert not {2: old[2], 3: old[3]}.items() & moves.items()

    def test_an_old_count_is_not_the_count(self, tmp_path):
        with told(tmp_path / "a.db", n=3) as study:
            (trial,) = study.ask(1)
            study.tell(trial.id, 1.0)
            copy = left(study, tmp_path / "copy.db")
        spoil(copy, "counters")
        found = recover(copy, tmp_path / "b.db")
        assert found.results == 4
        assert "for the count of them is destroyed too" in found.words

    def test_a_damaged_head_of_the_log_loses_nothing(self, tmp_path):
        with told(tmp_path / "a.db") as study:
            copy = left(study, tmp_path / "copy.db")
        content = bytearray(beside(copy, LOG).read_bytes())
        content[18] ^= 1
        beside(copy, LOG).write_bytes(content)
        assert recover(copy, tmp_path / "b.db").results == 12


class TestEvents:
    def test_one_that_is_lost_is_told_and_what_was_dropped_stays_dropped(self, tmp_path):
        """One bit of the event that says so: the row itself says it too."""
        with told(tmp_path / "a.db", mirrored=True) as study:
            study.amend(3, drop="loose")
            study.amend(6, -4.0)
            truth = study.diagnostics()["dropped"]
            judged = study.evaluate().words
        content = (tmp_path / "a.db").read_bytes()
        assert content.count(b'"trial": 3') == 1
        (tmp_path / "a.db").write_bytes(content.replace(b'"trial": 3', b'"trial": 2'))
        found = recover(tmp_path / "a.db", tmp_path / "b.db")
        assert found.words.endswith("Events of the study are lost, amendments may be among them.")
        with Study.open(tmp_path / "b.db") as saved:
            assert saved.diagnostics()["dropped"] == truth == 1
            assert saved.evaluate().words == judged
            with saved.fork(tmp_path / "fork.db", mirrored=False) as fork:
                assert fork.counts()["failed"] == 0
            saved.export(tmp_path / "out.csv")
        assert "what it was before is lost" in (tmp_path / "out.csv").read_text()

    def test_a_failure_that_only_says_dropped_is_none(self, tmp_path):
        with told(tmp_path / "a.db") as study:
            (trial,) = study.ask(1)
            study.tell(trial.id, failed="dropped: the cup")
            study.amend(3, -4.0)
        content = (tmp_path / "a.db").read_bytes()
        (tmp_path / "a.db").write_bytes(content.replace(b'"trial": 3', b'"trial": 2'))
        recover(tmp_path / "a.db", tmp_path / "b.db")
        with Study.open(tmp_path / "b.db") as saved:
            assert saved.diagnostics()["dropped"] == 0


class TestTheLine:
    def test_what_waits_though_it_was_tried_before_waits(self, tmp_path):
        with Study.open(tmp_path / "a.db", dim=2, batch=4, seed=1) as study:
            study.enqueue([1.0, 2.0], "first")
            (trial,) = study.ask(1)
            study.tell(trial.id, 1.0)
            study.enqueue([1.0, 2.0], "again, please")
            recover(tmp_path / "a.db", tmp_path / "b.db")
        recover(tmp_path / "a.db", tmp_path / "c.db")
        for name in ("b.db", "c.db"):
            with Study.open(tmp_path / name) as saved:
                (waiting,) = saved.store.queue(9)
                assert waiting.note == "again, please"
                assert packed(waiting.theta) == packed([1.0, 2.0])


class TestForged:
    def test_amendments_that_make_no_sense_are_passed_over(self, tmp_path):
        with told(tmp_path / "a.db") as study:
            study.amend(3, -50.0)
            with study.store.writing():
                for content in ({}, {"trial": 3, "now": 7}, {"trial": [], "now": [], "moves": []}):
                    study.store.note("amended", content)
            copy = left(study, tmp_path / "copy.db")
        spoil(copy, "told")
        assert recover(copy, tmp_path / "b.db").results == 12


def test_results_without_what_drew_them_are_told(tmp_path):
    told(tmp_path / "a.db").close()
    delete(tmp_path / "a.db", "proposals", 0)
    words = recover(tmp_path / "a.db", tmp_path / "b.db").words
    lost = "12 results count for `recommend` and `best`, not for moves: what drew them, or the"
    assert words.endswith(f"{lost} other of a pair, is lost.")
    with Study.open(tmp_path / "b.db") as saved:
        assert "from 12 results" in saved.recommend().words
        assert saved.best is not None


def test_a_fork_of_what_was_recovered_keeps_what_drew_each_result(tmp_path):
    """Of a study that lost some of its distributions, so that their numbers have gaps."""
    with told(tmp_path / "a.db", n=4) as study:
        batches(study, 5)
    delete(tmp_path / "a.db", "proposals", 2, 3)
    recover(tmp_path / "a.db", tmp_path / "b.db")

    def drew(study):
        rows_ = [trial for trial in study.store.asked() if trial.proposal is not None]
        return {row.id: study.store.proposal(row.proposal).numbers.tolist() for row in rows_}

    with Study.open(tmp_path / "b.db") as saved, saved.fork(tmp_path / "c.db") as fork:
        assert len(drew(saved)) == 16
        assert drew(fork) == drew(saved)


def test_moves_made_after_some_were_lost_follow_from_the_results(tmp_path):
    """A window goes back by the numbers of moves, for who makes one and for who makes it again."""
    with told(tmp_path / "a.db", n=4, window=5) as study:
        batches(study, 6)
    delete(tmp_path / "a.db", "moves", 3, 4)
    words = recover(tmp_path / "a.db", tmp_path / "b.db").words
    assert words.endswith(f"{SOUND} 2 moves before the last are lost.")
    with Study.open(tmp_path / "b.db") as saved:
        batches(saved, 2)
        apart = dict(differences(saved.opened))
    assert [number for number, gap in apart.items() if gap] == [5]


def test_a_table_that_is_emptied_stays_empty(tmp_path):
    """In a page that SQLite reads as empty there may lie rows that were taken out."""
    with Study.open(tmp_path / "a.db", dim=2, batch=4, seed=1) as study:
        for i in range(3):
            study.enqueue([float(i), 0.5])
        study.ask(3)
    delete(tmp_path / "a.db", "asked", 2)  # so that no trial says that it was asked
    recover(tmp_path / "a.db", tmp_path / "b.db")
    with Study.open(tmp_path / "b.db") as saved:
        assert not saved.store.queue(9)


def page_of(path, table):
    """Where the page that the tree of a table begins with lies in a file that is closed."""
    with closing(sqlite3.connect(path)) as connection:
        query = "SELECT rootpage FROM sqlite_master WHERE name = ?"
        ((number,),) = connection.execute(query, (table,)).fetchall()
    return (number - 1) * PAGE


class TestNumbersBeside:
    """Those that were told beside returns lie in a table of their own."""

    @pytest.mark.parametrize(
        ("settings", "words"),
        [
            ({}, f"{SOUND} Numbers beside 3 results may be lost: trials 1, 2, 3."),
            (
                {"limits": ["force<50"]},
                f"{SOUND} 2 results have no number for a limit: it is lost, or was not known. "
                "Numbers beside 1 result may be lost: trial 3.",
            ),
        ],
    )
    def test_that_are_lost_are_told(self, tmp_path, settings, words):
        with Study.open(tmp_path / "a.db", dim=2, batch=4, seed=1, **settings) as study:
            one, other, third = study.ask(3)
            study.tell([one.id, other.id], [1.0, 2.0], also=[{"force": 41}, {"force": 42}])
            study.tell(third.id, failed="fell", also={"force": 99})
        assert recover(tmp_path / "a.db", tmp_path / "b.db").words.endswith(SOUND)
        content = bytearray((tmp_path / "a.db").read_bytes())
        place = page_of(tmp_path / "a.db", "also")
        content[place : place + PAGE] = bytes(PAGE)
        (tmp_path / "a.db").write_bytes(content)
        assert recover(tmp_path / "a.db", tmp_path / "c.db").words.endswith(words)

    def test_where_there_were_none_none_are_missed(self, tmp_path):
        told(tmp_path / "a.db").close()
        content = bytearray((tmp_path / "a.db").read_bytes())
        content[:PAGE] = bytes(PAGE)  # the page that says which tables there are
        (tmp_path / "a.db").write_bytes(content)
        assert "beside" not in recover(tmp_path / "a.db", tmp_path / "b.db").words


def test_settings_that_are_lost_are_told(tmp_path):
    """Without the one that says so, costs are returns: the event of the beginning has it, too."""
    told(tmp_path / "a.db", direction="minimize").close()
    content = (tmp_path / "a.db").read_bytes()
    row = content.index(b'minimize"', page_of(tmp_path / "a.db", "settings"))
    event = content.index(b'minimize"', page_of(tmp_path / "a.db", "events"))
    assert row != event
    spoilt = content[:row] + b"M" + content[row + 1 :]
    (tmp_path / "a.db").write_bytes(spoilt)
    assert recover(tmp_path / "a.db", tmp_path / "b.db").words.endswith(SOUND)
    with Study.open(tmp_path / "b.db") as saved:
        assert saved.snapshot().direction == "minimize"
    (tmp_path / "a.db").write_bytes(spoilt[:event] + b"M" + spoilt[event + 1 :])
    words = recover(tmp_path / "a.db", tmp_path / "c.db").words
    assert "Settings of the study are lost" in words
    assert "which way is better" in words


def seen_in(study):
    """Its trials with what was told beside them, and which results count for moves."""
    trials = [(repr(trial), dict(trial.also)) for trial in study.trials()]
    return trials, {n: row.counted for n, row in study.store.results().items()}


@pytest.mark.parametrize("how", ["name", "root"])
@pytest.mark.parametrize("table", ["told", "events", "also", "proposals"])
def test_a_table_whose_line_in_the_first_page_is_spoilt_comes_back(tmp_path, table, how):
    """One bit of it: its name is no name of ours, or it begins where another does."""
    with told(tmp_path / "a.db", n=10) as study:
        for trial in study.ask(2):
            study.tell(trial.id, 1.0, also={"force": 7})
        study.amend(2, 5.0)
        study.note("hello")
        truth = seen_in(study)
    content = bytearray((tmp_path / "a.db").read_bytes())
    name = content.index(f"table{table}{table}".encode()) + len("table")
    assert name < PAGE
    if how == "name":
        content[name] ^= 1
    else:
        assert content[name + 2 * len(table)] == page_of(tmp_path / "a.db", table) // PAGE + 1
        content[name + 2 * len(table)] = ROOTS["trajectories"]  # which has no rows
    (tmp_path / "a.db").write_bytes(content)
    recover(tmp_path / "a.db", tmp_path / "b.db")
    with Study.open(tmp_path / "b.db") as saved:
        assert seen_in(saved) == truth
        assert [note.text for note in saved.notes()] == ["hello"]


def test_what_lay_in_the_middle_of_a_log_is_missed(tmp_path):
    """Where a page of it is lost with its number, an older copy is left of some page."""
    with told(tmp_path / "a.db", n=8) as study:
        study.amend(2, 5.0)
        for text in "abc":
            study.note(text * 1500)  # the last is in another page than the first
        for trial in study.ask(4):
            study.tell(trial.id, 1.0)
        copy = left(study, tmp_path / "copy.db")
        content = bytearray(beside(copy, LOG).read_bytes())
        place = frames(copy)[page_with(copy, b"a" * 1500)][-1] - FRAME_HEADER
        content[place : place + FRAME] = bytes(FRAME)
        beside(copy, LOG).write_bytes(content)
    found = recover(copy, tmp_path / "b.db")
    assert "Events of the study are lost, amendments may be among them." in found.words
    assert "may be as they were before an amendment" in found.words
    with Study.open(tmp_path / "b.db") as saved:
        assert saved.trials()[1].value == 5.0


def page_with(path, text):
    """The page whose newest copy in a log has a text."""
    content = beside(path, LOG).read_bytes()
    return next(
        page
        for page, places in frames(path).items()
        if text in content[places[-1] : places[-1] + PAGE]
    )

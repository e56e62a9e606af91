"""Candidates that are tried twice: which, whatever happens between the first and the second."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import program
import pytest
from sentences import ANOTHER_STRUCTURE
from studies import content

import recoup
from recoup.checks import InputError
from recoup.store.file import StudyFile
from recoup.store.rows import DRAWN, FOREIGN, MEAN, OWN, REPEAT
from recoup.store.schema import packed, packed_memory
from recoup.study.care.recover import recover
from recoup.study.care.verify import check
from recoup.study.exchange.read import read_samples
from recoup.study.exchange.samples import import_samples
from recoup.study.study import Study
from recoup.study.voice import sentences

DIM, BATCH = 5, 4
START = {"dim": DIM, "batch": BATCH, "seed": 1, "mean": 1.5, "method": "recoup"}
EXACT = "follow from the results, to the last bit."


def rugged(theta):
    """Rastrigin's function: a bowl that hardly shows among its waves, without noise."""
    return -float(np.sum(theta**2 - 10 * np.cos(2 * np.pi * theta) + 10))


def fill(study, moves, each=BATCH):
    want = len(study.history()) + moves
    while len(study.history()) < want:
        for trial in study.pending() or study.ask(each):
            study.tell(trial.id, rugged(trial.theta))
    return study


def curious(study):
    """Goes on to where the next batch is to try one candidate twice."""
    while not wanted(study):
        fill(study, 1)
    return study


def said_in(memory):
    """Whether a memory in a file says that the next batch is to try a candidate twice."""
    return any(leaf.path == ".pairs.wanted" and bool(leaf.value) for leaf in memory or ())


def wanted(study):
    return said_in(study.store.last_move().memory)


def drawn(study):
    """What was asked, to the last bit."""
    return [(t.id, t.kind, t.proposal, t.theta.tobytes(), t.seed) for t in study.store.asked()]


def repeats(study):
    return [trial for trial in study.store.asked() if trial.kind == REPEAT]


def said(path):
    found = check(path)
    assert all(verdict.sound for verdict in found), found
    return found[-1].words


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A study of 30 batches, closed."""
    path = tmp_path_factory.mktemp("made") / "s.db"
    with Study.open(path, **START) as study:
        fill(study, 30)
    return path


@pytest.fixture
def whole(made, tmp_path):
    """A copy of it, open."""
    with Study.open(shutil.copy(made, tmp_path / "whole.db")) as study:
        yield study


@pytest.fixture(scope="module")
def climbing(tmp_path_factory):
    """A study up to its first repeat, told, of which every trial earns more than the one before."""
    path = tmp_path_factory.mktemp("climbing") / "s.db"
    with Study.open(path, **START) as study:
        while not repeats(study):
            for trial in study.ask(2):
                study.tell(trial.id, float(trial.id))
    return path


@pytest.fixture
def early(tmp_path):
    """A study before its first repeat."""
    with Study.open(tmp_path / "early.db", **START, failure="censored") as study:
        yield curious(study)


class TestWhich:
    def test_the_first_of_a_distribution_that_wants_it_and_no_other(self, whole):
        by_proposal = {}
        for trial in whole.store.asked():
            by_proposal.setdefault(trial.proposal, []).append(trial)
        moves = whole.store.moves()
        want = {move.proposal for move in moves if said_in(move.memory)}
        assert {trial.proposal for trial in repeats(whole)} == want & by_proposal.keys()
        assert 3 <= len(repeats(whole)) < len(moves) / 2
        for trial in repeats(whole):
            first, second, *others = by_proposal[trial.proposal]
            assert (first.kind, first.id, second.id) == (DRAWN, trial.id - 1, trial.id)
            assert first.theta.tobytes() == trial.theta.tobytes()
            assert first.seed != trial.seed
            assert all(not np.array_equal(other.theta, trial.theta) for other in others)
        assert said(whole.store.path) == f"All 30 moves {EXACT}"

    def test_asked_one_at_a_time_and_reopened_each_time_it_is_the_same(self, made, tmp_path):
        path = tmp_path / "s.db"
        Study.open(path, **START).close()
        for _ in range(30 * BATCH):
            with Study.open(path) as study:
                (trial,) = study.ask()
                study.tell(trial.id, rugged(trial.theta))
        with Study.open(path) as study, Study.open(made) as other:
            assert drawn(study) == drawn(other)
        assert content(path) == content(made)

    def test_a_batch_that_is_asked_for_in_parts(self, early, tmp_path):
        early.close()
        found = []
        for parts in ((1, 3), (1, 1, 2), (4,), (2, 2)):
            path = shutil.copy(early.store.path, tmp_path / "copy.db")
            with Study.open(path) as study:
                for n in parts:
                    study.ask(n)
                found.append(drawn(study))
                assert [kind for _, kind, *_ in found[-1][-4:]] == [DRAWN, REPEAT, DRAWN, DRAWN]
        assert found == found[:1] * len(found)

    def test_a_process_that_is_killed_between_the_two(self, early):
        path, code = early.store.path, "import os, sys; from recoup.study.study import Study\n"
        code += "Study.open(sys.argv[1]).ask(); os.kill(os.getpid(), 9)"
        early.close()
        assert subprocess.run([sys.executable, "-c", code, path], check=False).returncode == -9
        with Study.open(path) as study:
            (first,), (second,) = study.pending(), study.ask()
            assert (first.kind, second.kind) == (DRAWN, REPEAT)
            assert np.array_equal(first.theta, second.theta)

    @pytest.mark.parametrize("between", [OWN, MEAN])
    def test_another_trial_between_the_two_does_not_part_them(self, early, between):
        """The batch was said to try one candidate twice, and does."""
        assert early.diagnostics()["advice"][-1] == sentences.twice()
        (first,) = early.ask()
        if between == OWN:
            early.enqueue(np.ones(DIM))
            other, *rest = early.ask(4)
        else:
            (other,), rest = early.ask(at="mean"), early.ask(3)
        kinds = [trial.kind for trial in (first, other, *rest)]
        assert kinds == [DRAWN, between, REPEAT, DRAWN, DRAWN]
        assert rest[0].theta.tobytes() == first.theta.tobytes()
        assert rest[0].seed != first.seed
        before = early.history()[-1]["notes"]["pairs"]
        fill(early, 1)
        assert early.history()[-1]["notes"]["pairs"] == before + 1
        assert said(early.store.path).endswith(EXACT)

    def test_ask_names_the_first_also_where_another_came_between(self, early):
        (first,) = early.ask()
        early.ask(at="mean")
        early.close()
        printed = program.recoup("study", "ask", early.store.path).stdout
        assert f"{first.id + 2} is {first.id} once more" in printed

    @pytest.mark.parametrize("column", ["kind", "theta"])
    def test_check_draws_one_behind_another_trial_again(self, early, column):
        early.ask()
        early.ask(at="mean")
        (trial,) = early.ask()
        early.close()
        change = {"kind": DRAWN, "theta": packed(trial.theta + 1e-9)}[column]
        rewrite(early.store.path, "asked", column, {trial.id: change}.get)
        assert f"theta of trial {trial.id}" in check(early.store.path)[-1].words

    def test_check_knows_that_a_repeat_needs_a_first(self, early):
        (trial,) = early.ask()
        early.close()
        rewrite(early.store.path, "asked", "kind", {trial.id: REPEAT}.get)
        assert f"theta of trial {trial.id}" in check(early.store.path)[-1].words

    def test_what_stands_in_line_before_both_does_not_part_them(self, early):
        early.enqueue(np.ones(DIM))
        assert [trial.kind for trial in early.ask(4)] == [OWN, DRAWN, REPEAT, DRAWN]

    @pytest.mark.parametrize("how", [{"repeats": False}, {"share": 0.5}])
    def test_none_where_the_method_has_none(self, tmp_path, how):
        with Study.open(tmp_path / "s.db", **START, **how) as study:
            fill(study, 12)
            assert {trial.kind for trial in study.store.asked()} == {DRAWN}

    def test_none_where_returns_are_no_riddle(self, tmp_path):
        with Study.open(tmp_path / "s.db", **START) as study:
            while len(study.history()) < 12:
                for trial in study.ask(BATCH):
                    study.tell(trial.id, -float(np.sum(trial.theta**2)))
            assert len(repeats(study)) <= 1


class TestEachOnItsOwn:
    def test_a_late_one_counts_when_it_comes(self, early):
        first, second, *others = early.ask(2 * BATCH)
        before = early.history()[-1]["notes"]["pairs"]
        for trial in (second, *others[:3]):
            early.tell(trial.id, rugged(trial.theta))
        moves = len(early.history())
        assert early.history()[-1]["notes"]["pairs"] == before
        for trial in (*others[3:], first):
            early.tell(trial.id, rugged(trial.theta))
        assert len(early.history()) == moves + 1
        assert early.history()[-1]["notes"]["pairs"] == before + 1
        assert said(early.store.path).endswith(EXACT)

    @pytest.mark.parametrize("which", [0, 1])
    def test_one_that_fails_leaves_the_other_in_its_batch(self, early, which):
        trials, before = early.ask(BATCH), early.history()[-1]["notes"]["pairs"]
        early.tell(trials[which].id, failed="slipped")
        assert early.until_move() == BATCH
        for trial in trials:
            if trial is not trials[which]:
                early.tell(trial.id, rugged(trial.theta))
        assert early.until_move() == 1
        fill(early, 1, each=1)
        assert early.history()[-1]["notes"]["pairs"] == before
        assert said(early.store.path).endswith(EXACT)

    def test_one_that_is_amended_leaves_the_other(self, early):
        first, second, *_ = early.ask(BATCH)
        for trial in (first, second):
            early.tell(trial.id, rugged(trial.theta))
        early.amend(second.id, failed="slipped")
        assert early.until_move() == BATCH - 1
        told = early.store.results([first.id, second.id])
        assert [told[n].counted for n in (first.id, second.id)] == [first.id, second.id]
        fill(early, 2)
        moves = len(early.history())
        early.amend(first.id, 3.0)
        assert len(early.history()) == moves
        assert early.store.results([second.id])[second.id].told.status == "failed"
        fill(early, 1)
        assert said(early.store.path).endswith(EXACT)

    def test_it_is_counted_as_drawn(self, early):
        trials = early.ask(BATCH)
        assert early.diagnostics()["waiting"] == BATCH
        for trial in trials:
            early.tell(trial.id, rugged(trial.theta))
        assert early.recommend().batches[-1].results == BATCH

    def test_a_trial_says_that_it_is_one(self, early):
        first, second = early.ask(2)
        assert "kind" not in first.plain()
        assert second.plain()["kind"] == REPEAT
        assert f"Trial({second.id}, repeat," in repr(second)


class TestAgain:
    def test_replayed_it_goes_the_same_way(self, whole):
        found = whole.replay()
        assert len(found) == 30
        np.testing.assert_array_equal(found[-1].mean, whole.mean)
        assert found[-1].info["notes"] == whole.history()[-1]["notes"]

    @pytest.mark.parametrize("column", ["kind", "theta"])
    def test_check_draws_every_repeat_again(self, whole, column):
        trial = repeats(whole)[0]
        whole.close()
        change = {"kind": DRAWN, "theta": packed(trial.theta + 1e-9)}[column]
        rewrite(whole.store.path, "asked", column, {trial.id: change}.get)
        assert f"theta of trial {trial.id}" in check(whole.store.path)[-1].words

    def test_a_fork_tries_twice_what_its_study_wanted_to(self, early, tmp_path):
        with early.fork(tmp_path / "fork.db") as fork:
            assert {trial.kind for trial in fork.store.asked()} == {FOREIGN}
            assert [trial.kind for trial in fork.ask(3)] == [DRAWN, REPEAT, DRAWN]
            fill(fork, 6)
        assert said(tmp_path / "fork.db") == f"All 6 moves {EXACT}"

    def test_a_fork_of_one_with_repeats_has_them_as_any_result(self, whole, tmp_path):
        with whole.fork(tmp_path / "fork.db", repeats=False) as fork:
            assert fork.store.count([FOREIGN]) == 30 * BATCH
            fill(fork, 3)
            assert not repeats(fork)
        assert said(tmp_path / "fork.db") == f"All 3 moves {EXACT}"

    def test_recovered_it_goes_on_alike(self, early, tmp_path):
        early.ask()
        early.close()
        path, ends = early.store.path, []
        copy = shutil.copy(path, tmp_path / "copy.db")
        path.write_bytes(bytes(4096) + path.read_bytes()[4096:])
        assert recover(path, tmp_path / "new.db").missing == 0
        for name in (copy, tmp_path / "new.db"):
            with Study.open(name) as study:
                fill(study, 4, each=1)
                assert repeats(study)
                ends.append(drawn(study))
            assert said(name).endswith(EXACT)
        assert ends[0] == ends[1]
        assert content(copy) == content(tmp_path / "new.db")

    @pytest.mark.parametrize("table", [False, True])
    def test_both_of_a_pair_are_imported(self, whole, tmp_path, table):
        """Equal theta, equal return, and two results all the same."""
        whole.export(tmp_path / "t.csv")
        source = tmp_path / "t.csv" if table else whole.store.path
        with Study.open(tmp_path / "new.db", **START) as study:
            found = import_samples(study.opened, read_samples(study.opened, Path(source)))
            assert (found.samples, found.again) == (30 * BATCH, 0)

    @pytest.mark.parametrize("table", [False, True])
    def test_one_told_later_is_imported_though_its_return_is_the_same(self, tmp_path, table):
        """Equal theta and equal return, between two imports."""
        with (
            Study.open(tmp_path / "a.db", **START) as study,
            Study.open(tmp_path / "new.db", **START) as new,
        ):
            while not repeats(study):
                for trial in study.ask(2):
                    if trial.kind != "repeat":
                        study.tell(trial.id, float(trial.id % 3))
            (late,) = (trial for trial in study.pending() if trial.kind == "repeat")
            first = study.store.results([late.id - 1])[late.id - 1].told.value
            source, before = tmp_path / ("t.csv" if table else "a.db"), len(study) - 1
            study.export(tmp_path / "t.csv")
            found = import_samples(new.opened, read_samples(new.opened, source))
            assert (found.samples, found.again) == (before, 0)
            study.tell(late.id, first)
            study.export(tmp_path / "t.csv")
            found = import_samples(new.opened, read_samples(new.opened, source))
            assert (found.samples, found.again, found.anew) == (1, before, 1)

    @pytest.mark.parametrize("table", [False, True])
    @pytest.mark.parametrize("before", [False, True])
    def test_a_dropped_one_is_not_taken_for_the_failed_one(self, climbing, tmp_path, table, before):
        """Of a candidate tried twice: neither has a return, and one of them counts."""
        with (
            Study.open(shutil.copy(climbing, tmp_path / "a.db")) as study,
            Study.open(tmp_path / "new.db", **START) as new,
        ):
            second = repeats(study)[0].id
            study.amend(second, failed="fell")
            if before:
                import_samples(new.opened, read_samples(new.opened, tmp_path / "a.db"))
            study.amend(second - 1, drop="loose")
            source = tmp_path / ("t.csv" if table else "a.db")
            study.export(tmp_path / "t.csv")
            if not before:
                import_samples(new.opened, read_samples(new.opened, source))
            more = f".*Trial {second - 1} was dropped there" if before else r"\."
            with pytest.raises(InputError, match=f"already: nothing was imported{more}") as said:
                import_samples(new.opened, read_samples(new.opened, source))
            assert "another result" not in str(said.value)
            assert before or "dropped" not in str(said.value)

    def test_a_run_counts_them_as_rollouts(self, tmp_path):
        how = {"params": {f"x{i}": None for i in range(DIM)}, "seed": 1, "test_episodes": 2}
        run = recoup.train(wavy, episodes=48, **how, out=tmp_path / "run")
        assert repeats(run.study)
        assert run.episodes == len(run.study) == 48


def wavy(theta):
    """A task of one's own, for `recoup.train`."""
    return rugged(np.asarray(list(theta.values())) + 1.5)


def test_a_memory_without_a_part_is_another_structure(early):
    early.close()
    forget(early.store.path, ".pairs.noise")
    assert not check(early.store.path)[-1].sound
    with (
        Study.open(early.store.path) as study,
        pytest.raises(InputError, match=f"{ANOTHER_STRUCTURE} than this version's"),
    ):
        fill(study, 1)


def forget(path, start):
    """Takes the leaves of a name out of every memory."""
    with Study.open(path) as study:
        before = {move.id: move.memory or () for move in study.store.moves()}
    after = {n: [x for x in leaves if not x.path.startswith(start)] for n, leaves in before.items()}
    rewrite(path, "moves", "memory", lambda n: packed_memory(tuple(after[n])) if after[n] else None)


def rewrite(path, table, column, value_of):
    """Another value in every row for which there is one, its checksum in order."""
    file = StudyFile.open(path)
    at = [row[1] for row in file.rows(f"PRAGMA table_info({table})")].index(column)
    with file.writing():
        rows = [row for row in file.read(table, list) if value_of(row[0]) is not None]
        for row in rows:
            row[at] = value_of(row[0])
        file.insert(table, rows, verb="INSERT OR REPLACE")
    file.close()


def test_a_fork_with_batches_of_two_tries_no_candidate_twice(tmp_path):
    with Study.open(tmp_path / "four.db", **START) as study:
        curious(study).fork(tmp_path / "two.db", batch=2).close()
    with Study.open(tmp_path / "two.db") as fork:
        assert [trial.kind for trial in fork.ask(2)] == [DRAWN, DRAWN]


def test_ask_says_that_a_row_is_the_one_before_once_more(early):
    early.close()
    printed = program.recoup("study", "ask", early.store.path, "-n", "3").stdout
    second, first = re.search(r"(\d+) is (\d+) once more", printed).groups()
    assert int(second) == int(first) + 1

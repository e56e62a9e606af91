"""Studies that search with correlations, and those whose update rule remembers."""

import csv
import random
import shutil
import sqlite3

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from own_families import leaning
from sentences import ANOTHER_STRUCTURE, DAMAGED
from studies import content, killed_at, work

import recoup
from recoup.store.file import StudyFile
from recoup.study.care.recover import recover
from recoup.study.care.verify import check
from recoup.study.exchange.read import read_samples
from recoup.study.exchange.samples import import_samples
from recoup.study.reader import ledger
from recoup.study.study import Study

DIM, BATCH, PAGE = 3, 4, 4096
START = {"dim": DIM, "batch": BATCH, "seed": 5, "std": 0.7, "method": "mis-pgpe-ob"}
NAMED = {"stiffness": (10, 200, "log"), "damping": (-1, 3), "offset": None}
RIDGE = np.array([[2.0, 1.5, 0.0], [1.5, 2.0, 0.5], [0.0, 0.5, 1.0]])  # its axes are oblique


def value_of(theta):
    away = theta - 0.5
    return float(-away @ RIDGE @ away)


def fill(study, moves):
    """Goes on until there are so many moves more; every seventh trial fails."""
    want = len(study.history()) + moves
    while len(study.history()) < want:
        (trial,) = study.ask()
        if trial.id % 7 == 0:
            study.tell(trial.id, failed="slipped")
        else:
            study.tell(trial.id, value_of(trial.theta))
    return study


def split(numbers):
    """Means and factor of a block of numbers, by a loop of its own."""
    factor, rest = np.zeros((DIM, DIM)), iter(numbers[DIM:])
    for i in range(DIM):
        for j in range(i + 1):
            factor[i, j] = next(rest)
    assert next(rest, None) is None
    return np.asarray(numbers[:DIM]), factor


def blocks(path, column="numbers"):
    """What the moves of a file have made, as bytes."""
    connection = sqlite3.connect(path)
    rows = connection.execute(
        f"SELECT moves.id, {column} FROM moves JOIN proposals ON proposals.id = moves.proposal"
    ).fetchall()
    connection.close()
    return dict(rows)


def rewrite(path, table, number, column, change):
    """Changes one value of a row, its checksum in order."""
    file = StudyFile.open(path)
    names = [row[1] for row in file.rows(f"PRAGMA table_info({table})")]
    with file.writing():
        (row,) = file.read(table, list, "WHERE id = ?", (number,))
        row[names.index(column)] = change(row[names.index(column)])
        file.insert(table, [row], verb="INSERT OR REPLACE")
    file.close()


def raised(place, by=1e-3):
    """Adds to one number of a block."""

    def change(numbers):
        changed = np.frombuffer(numbers).copy()
        changed[place] += by
        return changed.tobytes()

    return change


def verdicts(path):
    found = check(path)
    assert all(verdict.sound for verdict in found), found
    assert len(found) == 5
    return found[-1].words


def spoil(path, page):
    """Noise in place of one page."""
    whole = bytearray(path.read_bytes())
    assert page < len(whole) // PAGE
    whole[page * PAGE : (page + 1) * PAGE] = random.Random(page).randbytes(PAGE)
    path.write_bytes(whole)


@pytest.fixture(scope="module")
def full_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("full") / "full.db"
    with Study.open(path, **START, family="full") as study:
        fill(study, 6)
        study.ask(2)
    return path


@pytest.fixture(scope="module")
def adam_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("adam") / "adam.db"
    with Study.open(path, **START, update="adam") as study:
        fill(study, 6)
        study.ask(2)
    return path


@pytest.fixture
def full(full_file, tmp_path):
    with Study.open(shutil.copy(full_file, tmp_path / "s.db")) as study:
        yield study


@pytest.fixture
def adam(adam_file, tmp_path):
    with Study.open(shutil.copy(adam_file, tmp_path / "s.db")) as study:
        yield study


SETTINGS = [
    {"family": "full"},
    {"family": "lowrank"},
    {"update": "adam"},
    {"family": "full", "update": "adam"},
]


class TestBoth:
    @pytest.mark.parametrize(  # every method without these settings: `test_study_methods.py`
        ("method", "settings"),
        [*(("mis-pgpe-ob", settings) for settings in SETTINGS), ("tiw-pgpe-ob", SETTINGS[-1])],
    )
    def test_on_time_the_moves_are_those_of_the_search(self, tmp_path, method, settings):
        batches = []
        with Study.open(tmp_path / "s.db", **{**START, "method": method}, **settings) as study:
            for _ in range(6):
                trials = study.ask(BATCH)
                values = [value_of(t.theta) for t in trials]
                study.tell([t.id for t in trials], values)
                batches.append((np.stack([t.theta for t in trials]), values))
            rho = study.opened.rho(study.store.newest().numbers)
            memory = study.store.last_move().memory
        with jax.enable_x64(True):
            search = recoup.search(method, dim=DIM, batch=BATCH, capacity=24, **settings)
            state = search.init(jax.random.key(0), 0.0, 0.7)
            for theta, values in batches:
                state, _ = search.tell(jax.random.key(0), state, theta, jnp.asarray(values))
            for mine, other in zip(rho, state.rho, strict=True):
                np.testing.assert_allclose(mine, other, rtol=1e-10, atol=1e-13)
            kept = jax.tree.leaves(state.update)
        assert len(memory or ()) == len(kept) == (5 if "update" in settings else 0)
        for leaf, other in zip(memory or (), kept, strict=True):
            np.testing.assert_allclose(leaf.value, other, rtol=1e-9, atol=1e-13)

    @pytest.mark.slow
    @pytest.mark.parametrize("settings", SETTINGS)
    def test_kills_change_nothing(self, tmp_path, settings):
        """The undisturbed study, and one whose worker is killed in the middle of it."""
        path, left = tmp_path / "rough.db", []
        for most in (3, 6, 18, 33):
            process = work(path, 50, hold=most + 8, **settings)
            left.append(killed_at(path, process, most))
        assert sorted(set(left)) == left
        assert left[-1] < 50
        for rest in (path, tmp_path / "calm.db"):
            process = work(rest, 50, **settings)
            assert process.wait() == 0, process.said()
        trials, moves, mixture = content(path)
        assert (trials, moves, mixture) == content(tmp_path / "calm.db")
        assert len(moves) == 11
        stored = [memory is not None for *_, memory, _, _ in moves[1:]]
        assert stored == [settings.get("update") == "adam"] * 10
        assert verdicts(path) == "All 10 moves follow from the results, to the last bit."

    @pytest.mark.parametrize("settings", SETTINGS)
    @pytest.mark.parametrize("how", [{}, {"window": 2}, {"mirrored": True}, {"params": NAMED}])
    def test_reopened_after_every_result(self, tmp_path, settings, how):
        """Whatever is kept in between is in the file: the same bits come out."""
        start = {key: START[key] for key in START if key != "dim" or "params" not in how}
        for name, whole in (("whole.db", True), ("parts.db", False)):
            path = tmp_path / name
            study = Study.open(path, **start, **settings, **how)
            for number in range(1, 17):
                trial = next((t for t in study.pending()), None) or study.ask()[0]
                assert trial.id == number
                study.tell(number, value_of(trial.theta / (60 if how.get("params") else 1)))
                if not whole:
                    study.close()
                    study = Study.open(path)
            study.close()
            assert verdicts(path) == "All 4 moves follow from the results, to the last bit."
        assert content(tmp_path / "whole.db") == content(tmp_path / "parts.db")

    @pytest.mark.parametrize("settings", SETTINGS)
    def test_its_own_replay_goes_where_it_went(self, tmp_path, settings):
        with Study.open(tmp_path / "s.db", **START, **settings) as study:
            fill(study, 6)
            marks = study.distributions()
            replayed = study.replay()
            assert [row.move for row in replayed] == [1, 2, 3, 4, 5, 6]
            for row in replayed:
                np.testing.assert_array_equal(row.mean, marks[row.move][0])
                np.testing.assert_array_equal(row.std, marks[row.move][1])


class TestFull:
    def test_it_has_correlations_and_draws_with_them(self, full):
        marks = {number: split(np.frombuffer(b)) for number, b in blocks(full.store.path).items()}
        assert (marks[0][1] == 0.7 * np.eye(DIM)).all()
        mean, factor = marks[6]
        below = factor[np.tril_indices(DIM, -1)]
        assert (np.abs(below) > 1e-3).all()
        np.testing.assert_array_equal(full.mean, mean)
        np.testing.assert_allclose(full.std**2, np.diag(factor @ factor.T), rtol=1e-14)
        last = full.pending()[-1]
        noise = np.linalg.solve(factor, last.theta - mean)
        same = Study.open(full.store.path.with_name("diagonal.db"), **START)
        with same:  # the same number of the same seed
            drawn = [trial for trial in same.ask(last.id) if trial.id == last.id]
            np.testing.assert_allclose(drawn[0].theta / 0.7, noise, rtol=1e-9)

    def test_weights_are_those_of_the_densities(self, full):
        """Effective sample size and judgement by NumPy alone, from the rows of the file."""
        marks = {number: split(np.frombuffer(b)) for number, b in blocks(full.store.path).items()}
        rows = full.store._file.rows(
            'SELECT proposal, theta, "return", told.counted FROM asked JOIN told USING (id) '
            "WHERE proposal IS NOT NULL ORDER BY told.counted"
        )
        theta = np.stack([np.frombuffer(row[1]) for row in rows])
        drew, returns = (
            np.array([row[0] for row in rows]),
            np.array([row[2] for row in rows], float),
        )
        ok = np.isfinite(returns)
        assert not ok.all()  # what failed counts as drawn, and has no return

        def density(mark, shift=0.0):
            mean, factor = marks[mark]
            z = np.linalg.solve(factor, (theta - mean - shift).T)
            return np.exp(-0.5 * np.sum(z**2, axis=0)) / np.prod(np.diag(factor))

        n = full.history()[-1]["results"]
        assert n == len(rows)
        mixture = sum(np.mean(drew == mark) * density(mark) for mark in range(6))
        shift = 1e-3  # the newest itself is judged by the model: these results chose it
        before, after = (density(5) / mixture)[ok], (density(6, shift) / mixture)[ok]
        returns = returns[ok]
        last, judged = full.history()[-1], full.evaluate(mean=np.asarray(full.mean) + shift)
        assert last["ess"] == pytest.approx(before.sum() ** 2 / np.sum(before**2), rel=1e-9)
        given_success = np.sum(before * returns) / before.sum()
        assert last["objective"] == pytest.approx(given_success, rel=1e-9)
        assert judged.ess == pytest.approx(after.sum() ** 2 / np.sum(after**2), rel=1e-9)
        assert judged.mean == pytest.approx(np.sum(after * returns) / after.sum(), rel=1e-9)

    def test_a_candidate_s_correlations_are_those_of_the_newest(self, full):
        here, moved = full.evaluate(), full.evaluate(mean=full.mean)
        np.testing.assert_array_equal(here[:-1], moved[:-1])
        plain = full.evaluate(std=full.std)  # deviations of one's own have none
        assert abs(plain.ess - here.ess) > 1e-6

    def test_late_results_count_with_the_density_that_drew_them(self, tmp_path):
        rng, order, waiting = np.random.default_rng(1), [], []
        path = tmp_path / "s.db"
        with Study.open(path, **{**START, "method": "iw-pgpe-ob"}, family="full") as study:
            while len(study.history()) < 6:
                waiting += study.ask(3)
                for _ in range(2):
                    trial = waiting.pop(int(rng.integers(len(waiting))))
                    study.tell(trial.id, value_of(trial.theta))
                    order.append(trial)
            rows = study.history()
            drew = dict(study.store._file.rows("SELECT id, proposal FROM asked"))
        assert max(info["late"] for info in rows) >= 2
        marks = {number: split(np.frombuffer(b)) for number, b in blocks(path).items()}
        means, factors = (np.stack([marks[i][which] for i in range(7)]) for which in (0, 1))
        theta, place = np.stack([t.theta for t in order]), np.arange(len(order))
        for info in rows:
            want = recoup.estimate(
                theta,
                np.array([value_of(each) for each in theta]),
                proposals=(means, factors),
                proposal=np.array([drew[t.id] for t in order]),
                target=marks[info["move"] - 1],
                family="full",
                weighting="own",
                told=place < info["results"],
            )
            assert info["ess"] == pytest.approx(float(want.ess), rel=1e-8)
            (mean, factor), (after, spread) = marks[info["move"] - 1], marks[info["move"]]
            gradient = np.concatenate([want.mean_gradient, np.ravel(want.std_gradient)])
            step = np.concatenate([after - mean, np.ravel(spread - factor)])
            np.testing.assert_allclose(
                step, 0.1 * gradient / np.linalg.norm(gradient), rtol=1e-6, atol=1e-9
            )

    def test_other_families_are_refused(self, full, tmp_path):
        with pytest.raises(ValueError, match=r"was made with family='full', not 'diagonal'"):
            Study.open(full.store.path, family="diagonal")
        with pytest.raises(ValueError, match="draws from the family full: leave out family"):
            full.replay(family="diagonal")
        with pytest.raises(ValueError, match="keeps the family of its study, full"):
            full.fork(tmp_path / "new.db", family="diagonal")
        assert not (tmp_path / "new.db").exists()
        with Study.open(tmp_path / "d.db", **START) as plain:
            match = r"from the family full, this study from diagonal: they do not match"
            with pytest.raises(ValueError, match=match):
                read_samples(plain.opened, full.store.path)

    @pytest.mark.parametrize("place", [2, DIM, DIM + 1, DIM + 4])
    def test_a_forged_distribution_is_noticed(self, full, place):
        """A mean, a scale, what lies below them: with its checksum in order."""
        full.close()
        rewrite(full.store.path, "proposals", 3, "numbers", raised(place))
        assert not check(full.store.path)[-1].sound

    def test_a_forged_correlation_that_has_drawn_nothing(self, full):
        full.tell([t.id for t in full.pending()], [1.0, 2.0])
        fill(full, 1)
        assert full.pending() == []
        full.close()
        rewrite(full.store.path, "proposals", 7, "numbers", raised(DIM + 1))
        found = check(full.store.path)[-1]
        assert not found.sound
        assert "move 7 does not follow from the results" in found.words

    @pytest.mark.parametrize("method", [None, "iw-pgpe-ob", "tiw-pgpe-ob"])
    def test_a_fork_keeps_the_correlations(self, full, tmp_path, method):
        changes = {} if method is None else {"method": method}
        with full.fork(tmp_path / "new.db", **changes) as new:
            assert new.method.family == "full"
            here, there = new.store.newest(), full.store.newest()
            assert (here.family, here.numbers.tobytes()) == ("full", there.numbers.tobytes())
            mean = full.mean + 0.05
            judged, before = new.evaluate(mean), full.evaluate(mean)
            assert judged.mean == pytest.approx(before.mean, rel=1e-9)
            assert judged.ess == pytest.approx(before.ess, rel=1e-9)
            fill(new, 3)
            samples = full.counts()["ok"] + BATCH
            if new.method.window is None:
                assert new.history()[0]["samples"] == samples
            marks, replayed = new.distributions(), new.replay()
            np.testing.assert_array_equal(replayed[-1].mean, marks[3][0])
            np.testing.assert_array_equal(replayed[-1].std, marks[3][1])
        assert verdicts(tmp_path / "new.db") == (
            "All 3 moves follow from the results, to the last bit."
        )

    def test_a_fork_with_a_start_of_its_own_has_none(self, full, tmp_path):
        with full.fork(tmp_path / "new.db", std=0.3) as new:
            mean, factor = split(new.store.newest().numbers)
            np.testing.assert_array_equal(mean, full.mean)
            np.testing.assert_array_equal(factor, 0.3 * np.eye(DIM))
            fill(new, 1)

    def test_export_has_the_deviations_of_the_coordinates(self, full, tmp_path):
        full.export(tmp_path / "t.csv")
        rows = list(csv.DictReader((tmp_path / "t.csv").read_text().splitlines()))
        assert len(rows) == sum(full.counts().values())
        marks = full.distributions()
        for row in rows:
            mean, std = marks[int(row["proposal"])]
            assert [float(row[f"mean_{i}"]) for i in range(DIM)] == mean.tolist()
            assert [float(row[f"std_{i}"]) for i in range(DIM)] == std.tolist()

    def test_another_study_takes_its_results_with_their_densities(self, full, tmp_path):
        with Study.open(tmp_path / "new.db", **{**START, "seed": 9}, family="full") as new:
            found = import_samples(new.opened, read_samples(new.opened, full.store.path))
            assert (found.samples, found.proposals) == (full.counts()["ok"], 6)
            mean = np.full(DIM, 0.2)
            here, there = new.evaluate(mean, 0.6), full.evaluate(mean, 0.6)
            assert here.mean == pytest.approx(there.mean, rel=1e-9)
            assert here.ess == pytest.approx(there.ess, rel=1e-9)
            fill(new, 2)
        verdicts(tmp_path / "new.db")

    @pytest.mark.parametrize("page", [0, None])
    def test_recovered_whole_it_goes_on_alike(self, full, tmp_path, page):
        full.close()
        path = full.store.path
        copy = shutil.copy(path, tmp_path / "copy.db")
        if page is not None:
            spoil(path, page)
        found = recover(path, tmp_path / "new.db")
        assert found.missing == 0
        ends = []
        for name in (copy, tmp_path / "new.db"):
            with Study.open(name) as study:
                fill(study, 3)
                assert len(study.history()) == 9
            verdicts(name)
            ends.append(content(name))
        assert ends[0] == ends[1]

    def test_after_any_damage_what_is_left_is_as_it_was(self, full, tmp_path):
        full.close()
        path = full.store.path
        whole, lost = blocks(path), 0
        pages = path.stat().st_size // PAGE
        for page in range(1, pages):
            broken, new = tmp_path / f"{page}.db", tmp_path / f"new-{page}.db"
            shutil.copy(path, broken)
            spoil(broken, page)
            recover(broken, new)
            saved = blocks(new)
            lost += len(saved) < len(whole)
            assert saved.items() <= whole.items()
            with Study.open(new) as study:
                assert study.opened.family == "full"
                study.ask()
        assert lost >= 2  # with the pages of moves, and of proposals


class TestAdam:
    def test_the_memory_is_stored_with_every_move(self, adam):
        moves = adam.store.moves()
        assert moves[0].memory is None
        for move in moves[1:]:
            count, *rest = move.memory
            assert (count.path, int(count.value)) == ("[0].count", move.id)
            assert count.value.dtype == np.int32
            assert [leaf.path for leaf in rest] == [
                f"[0].{moment}.{part}" for moment in ("mu", "nu") for part in ("eta", "tau")
            ]
            for leaf in rest:
                assert (leaf.value.dtype, leaf.value.shape) == (np.float64, (DIM,))

    def test_every_move_is_adam_s_by_hand(self, tmp_path):
        """Against the formulas, with the gradients of `recoup.estimate`."""
        with Study.open(
            tmp_path / "s.db", **{**START, "method": "pgpe"}, update="adam", epsilon=0.03
        ) as study:
            trials = [study.ask(BATCH)]
            for _ in range(5):
                study.tell([t.id for t in trials[-1]], [value_of(t.theta) for t in trials[-1]])
                trials.append(study.ask(BATCH))
            marks = study.distributions()
        first = second = np.zeros(2 * DIM)
        for move in range(1, 6):
            mean, std = marks[move - 1]
            found = recoup.estimate(
                np.stack([t.theta for t in trials[move - 1]]),
                np.array([value_of(t.theta) for t in trials[move - 1]]),
                proposals=(mean[None], std[None]),
                proposal=np.zeros(BATCH, int),
                target=(mean, std),
                weighting="none",
                baseline="none",
            )
            g = np.concatenate([found.mean_gradient, found.std_gradient])
            first, second = 0.9 * first + 0.1 * g, 0.999 * second + 0.001 * g**2
            step = first / (1 - 0.9**move) / (np.sqrt(second / (1 - 0.999**move)) + 1e-8)
            want = np.concatenate([mean, std]) + 0.03 * step
            np.testing.assert_allclose(np.concatenate(marks[move]), want, rtol=1e-9)

    def test_a_forged_memory_is_noticed(self, adam):
        """With its checksum in order, in the middle or at the end."""
        adam.close()
        assert verdicts(adam.store.path).startswith("All 6 moves follow")
        for number, noticed in ((3, (3, 4)), (6, (6,))):
            copy = shutil.copy(adam.store.path, adam.store.path.with_name(f"{number}.db"))
            rewrite(copy, "moves", number, "memory", lambda b: b[:-8] + np.float64(9.0).tobytes())
            found = check(copy)[-1]
            assert not found.sound
            assert any(f"move {n} does not follow" in found.words for n in noticed)

    @pytest.mark.parametrize("which", [b"", b"\2\0\0\0[]"])
    def test_another_memory_than_the_rule_s_is_a_sentence(self, adam, which):
        adam.close()
        rewrite(adam.store.path, "moves", 6, "memory", lambda _: which)
        study = Study.open(adam.store.path)
        with study, pytest.raises(ValueError, match=f"{DAMAGED}|{ANOTHER_STRUCTURE}"):
            fill(study, 1)

    def test_a_fork_carries_the_memory(self, adam, tmp_path):
        """It goes on as if it were the same study: its next move is a seventh of Adam's."""
        memory = adam.store.last_move().memory
        with adam.fork(tmp_path / "new.db") as new:
            (start,) = new.store.moves()
            for mine, other in zip(start.memory, memory, strict=True):
                assert mine.path == other.path
                np.testing.assert_array_equal(mine.value, other.value, strict=True)
            fill(new, 3)
            assert int(new.store.last_move().memory[0].value) == 9
            marks, replayed = new.distributions(), new.replay()
            for row in replayed:
                np.testing.assert_array_equal(row.mean, marks[row.move][0])
                np.testing.assert_array_equal(row.std, marks[row.move][1])
        verdicts(tmp_path / "new.db")
        again = tmp_path / "new.db", tmp_path / "again.db"
        assert recover(*again).missing == 0
        assert blocks(again[0], "memory") == blocks(again[1], "memory")

    def test_a_fork_goes_the_way_of_its_study(self, adam, tmp_path):
        """The same results told to both: the same move but for rounding."""
        for trial in adam.pending():
            adam.tell(trial.id, failed="left behind")
        with adam.fork(tmp_path / "new.db") as new:
            for study in (adam, new):
                fill(study, 1)
            np.testing.assert_allclose(new.mean, adam.mean, rtol=1e-12)
            np.testing.assert_allclose(new.std, adam.std, rtol=1e-12)
            for mine, other in zip(*(s.store.last_move().memory for s in (new, adam)), strict=True):
                np.testing.assert_allclose(mine.value, other.value, rtol=1e-9)

    @pytest.mark.parametrize(
        "changes", [{"epsilon": 0.01}, {"update": "normalised"}, {"mean": 0.0}, {"std": 0.2}]
    )
    def test_another_rule_or_start_begins_without_one(self, adam, tmp_path, changes):
        with adam.fork(tmp_path / "new.db", **changes) as new:
            assert new.store.last_move().memory is None
            fill(new, 2)
        verdicts(tmp_path / "new.db")

    def test_a_replay_of_another_rule_begins_without_one(self, adam, tmp_path):
        """From where a fork began, though the fork itself had a memory."""
        with adam.fork(tmp_path / "new.db") as new:
            fill(new, 2)
            first = new.replay(epsilon=0.02)[0]
            start = new.distributions()[0]
            step = np.concatenate([first.mean - start[0], first.std - start[1]])
            np.testing.assert_allclose(np.abs(step), 0.02, rtol=1e-4)  # Adam's first is its sign

    @pytest.mark.parametrize("page", [0, None])
    def test_recovery_keeps_it(self, adam, tmp_path, page):
        adam.close()
        path = adam.store.path
        copy = shutil.copy(path, tmp_path / "copy.db")
        if page is not None:
            spoil(path, page)
        assert recover(path, tmp_path / "new.db").missing == 0
        assert blocks(tmp_path / "new.db", "memory") == blocks(copy, "memory")
        ends = []
        for name in (copy, tmp_path / "new.db"):
            with Study.open(name) as study:
                fill(study, 3)
            verdicts(name)
            ends.append(content(name))
        assert ends[0] == ends[1]

    def test_a_last_move_that_was_lost_is_made_again(self, adam, tmp_path):
        adam.close()
        path = adam.store.path
        copy = shutil.copy(path, tmp_path / "copy.db")
        connection = sqlite3.connect(copy)
        connection.execute("DELETE FROM moves WHERE id = 6")
        connection.commit()
        connection.close()
        recover(copy, tmp_path / "new.db")
        ends = []
        for name in (path, tmp_path / "new.db"):
            with Study.open(name) as study:
                waiting = study.pending()
                study.tell([t.id for t in waiting], [value_of(t.theta) for t in waiting])
                fill(study, 9 - len(study.history()))
                leaves = [leaf.value.ravel() for leaf in study.store.last_move().memory]
                ends.append(np.concatenate([study.mean, study.std, *leaves]))
        np.testing.assert_allclose(ends[0], ends[1], rtol=1e-9)


class TestARuleOfOnesOwn:
    def test_it_is_given_again(self, tmp_path):
        """optax's momentum, closed and opened again, against the same undisturbed."""
        for name, whole in (("whole.db", True), ("parts.db", False)):
            study = Study.open(tmp_path / name, **START, update=optax.sgd(0.01, momentum=0.9))
            for _ in range(4):
                fill(study, 1)
                if not whole:
                    study.close()
                    again = optax.sgd(0.01, momentum=0.9)
                    study = Study.open(tmp_path / name, update=again)
            study.close()
        assert content(tmp_path / "whole.db") == content(tmp_path / "parts.db")
        assert blocks(tmp_path / "whole.db", "memory")[4] is not None
        words = verdicts(tmp_path / "whole.db")
        assert words == "Its update was given in Python: no move was made again."

    def test_without_it_nothing_moves_and_nothing_is_lost(self, tmp_path):
        path = tmp_path / "s.db"
        with Study.open(path, **START, update=optax.sgd(0.01, momentum=0.9)) as study:
            fill(study, 2)
        match = r"was made with update=.*, which a file cannot hold: give it again"
        with Study.open(path) as study:
            trials = study.ask(BATCH)
            for trial in trials[:-1]:
                study.tell(trial.id, value_of(trial.theta))
            assert study.evaluate().samples == 2 * BATCH + 3
            study.tell(trials[-1].id, value_of(trials[-1].theta))
            assert study.counts()["pending"] == 0
            assert len(study.history()) == 2
            assert "A move is due. It needs update=" in study.diagnostics()["advice"][0]
            study.ask()  # of the newest distribution that there is
            with pytest.raises(ValueError, match=match):
                study.fork(tmp_path / "new.db")
            with pytest.raises(ValueError, match=match):
                study.replay()
            with study.fork(tmp_path / "new.db", update="adam") as new:
                fill(new, 1)
        with Study.open(path, update=optax.sgd(0.01, momentum=0.9)) as study:
            study.ask()
            assert len(study.history()) == 3


class TestRoom:
    """Results lie in room that doubles as they become more, whatever their number will be."""

    def test_begins_with_what_samples_need_and_doubles(self):
        assert [ledger.first_room(width) for width in (1, 20, 512, 1000, 10**7)] == [
            *(512, 512, 512, 256, 64)
        ]
        assert [ledger.room(n) for n in (0, 64, 65, 128, 129, 4096, 4097)] == [
            *(64, 64, 128, 128, 256, 4096, 5120)
        ]
        assert ledger.room(3, 512) == ledger.room(512, 512) == 512

    @pytest.mark.parametrize("settings", [{"family": "full"}, {"update": "adam"}])
    def test_moves_are_the_same_in_any(self, settings, tmp_path, monkeypatch):
        """But for rounding: the study grows through three sizes, or has room for all at once."""
        found = []
        for name, first in (("grown", 16), ("whole", 128)):
            monkeypatch.setattr(ledger, "FIRST", (first, first))
            with Study.open(tmp_path / f"{name}.db", **START, **settings) as study:
                for _ in range(17):
                    trials = study.ask(BATCH)
                    values = [value_of(trial.theta) for trial in trials]
                    study.tell([trial.id for trial in trials], values)
                found.append([np.concatenate(pair) for pair in study.distributions().values()])
        assert len(found[0]) == 18
        np.testing.assert_allclose(found[0], found[1], rtol=1e-12)


@pytest.mark.parametrize(
    "change",
    [{"freeze": {"b": 0.4}}, {"params": {"a": (-3, 4), "b": (0, 1)}}],
    ids=["freeze", "wide"],
)
def test_a_family_of_ones_own_is_forked_into_no_other_space(tmp_path, change):
    """What it drew is known to Python alone, in the space that it was drawn in."""
    params = {"a": (-3, 3), "b": (0, 1)}
    how = {"params": params, "family": leaning(lean=0.3), "method": "mis-pgpe-ob", "batch": 4}
    with Study.open(tmp_path / "s.db", **how) as study:
        for trial in study.ask(4):
            study.tell(trial.id, -float(trial.theta[0] ** 2))
        with pytest.raises(recoup.InputError, match="only Python knows the family leaning"):
            study.fork(tmp_path / "f.db", **change)
    assert not (tmp_path / "f.db").exists()

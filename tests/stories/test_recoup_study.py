"""Studies by the method recoup: whatever happens to one, it goes on as if it had not."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
import study_worker
from processes import Forked
from sentences import ANOTHER_STRUCTURE, DAMAGED
from studies import content, killed_at, work

import recoup
from recoup.checks import InputError
from recoup.core.families.full import log_density
from recoup.store.file import StudyFile
from recoup.study.care.recover import recover
from recoup.study.care.verify import check
from recoup.study.exchange.read import read_samples
from recoup.study.exchange.samples import import_samples
from recoup.study.space.parameters import log_slope, to_latent
from recoup.study.study import Study

DIM, BATCH = 3, 4
START = {"dim": DIM, "batch": BATCH, "seed": 5, "std": 0.7, "method": "recoup"}
NAMED = {"stiffness": (10, 200, "log"), "damping": (-1, 3), "offset": None}
WIDER = {"stiffness": (4, 500, "log"), "damping": (-2, 5)}


def value_of(theta):
    return float(-np.sum((theta - 0.5) ** 2) - theta[0] * theta[-1])


def robot(theta):
    k, d, offset = theta
    return float(-2 * np.log(k / 60) ** 2 - (d - 0.7) ** 2 - 0.5 * (offset - 0.3 * d) ** 2)


def fill(study, moves, function=value_of):
    """Goes on until there are so many moves more; every seventh trial fails."""
    want = len(study.history()) + moves
    while len(study.history()) < want:
        for trial in study.pending() or study.ask(2):
            if trial.id % 7 == 0:
                study.tell(trial.id, failed="slipped")
            else:
                study.tell(trial.id, function(trial.theta))
    return study


def verdicts(path):
    found = check(path)
    assert all(verdict.sound for verdict in found), found
    return found[-1].words


def covariance(study):
    factor = study.opened.rho(study.store.newest().numbers).factor
    return factor @ factor.T


@pytest.fixture
def study(tmp_path):
    with Study.open(tmp_path / "s.db", **START) as study:
        yield fill(study, 6)


@pytest.fixture
def named(tmp_path):
    with Study.open(tmp_path / "n.db", params=NAMED, seed=2) as study:
        assert (study.method.name, study.method.family, study.batch) == ("recoup", "full", 4)
        yield fill(study, 8, robot)


class TestTheDefault:
    def test_its_batch_and_family_follow_from_the_dimensions(self, tmp_path):
        for dim, family, batch in (
            (1, "diagonal", 4),
            (2, "full", 4),
            (12, "full", 6),
            (50, "full", 8),
            (51, "diagonal", 8),
            (1000, "diagonal", 12),
        ):
            with Study.open(tmp_path / f"{dim}.db", dim=dim) as study:
                assert study.method.name == "recoup"
                assert (study.method.family, study.batch) == (family, batch)
                assert study.method.family == study.settings["family"]  # whatever comes later

    @pytest.mark.parametrize(
        "setting",
        [
            {"update": "adam"},
            {"epsilon": 0.2},
            {"update": "natural", "kl": 0.1},
            {"weighting": "own"},
            {"baseline": "mean"},
            {"direction": "gradient"},
            {"tau_floor": 0.1},
            {"mirrored": True},
            {"normalize": True},
            {"flatten": 0.5},
            {"truncate": 2.0},
        ],
    )
    def test_what_a_gradient_has_is_refused_with_the_method_that_has_it(self, tmp_path, setting):
        with pytest.raises(InputError, match="method='mis-pgpe-ob'"):
            Study.open(tmp_path / "s.db", dim=3, **setting)
        assert not (tmp_path / "s.db").exists()
        with Study.open(tmp_path / "s.db", dim=3, method="mis-pgpe-ob", **setting) as study:
            assert study.batch == 10

    @pytest.mark.parametrize("dim", [1, 2, 50, 51, 1000])
    def test_any_number_of_dimensions(self, tmp_path, dim):
        path = tmp_path / "s.db"
        with Study.open(path, dim=dim, std=0.5) as study:
            fill(study, 4, lambda theta: float(-np.sum((theta - 0.1) ** 2)))
            assert np.isfinite(study.mean).all()
            assert (study.std > 0).all()
            assert len({mean.tobytes() for mean, _ in study.distributions().values()}) == 5
        assert verdicts(path) == "All 4 moves follow from the results, to the last bit."


class TestGoingOn:
    @pytest.mark.parametrize(
        "how", [{}, {"window": 2}, {"batch": 1}, {"family": "diagonal"}, {"params": NAMED}]
    )
    def test_reopened_after_every_result(self, tmp_path, how):
        """Whatever is kept in between is in the file: the same bits come out."""
        start = {key: START[key] for key in START if key != "dim" or "params" not in how}
        for name, whole in (("whole.db", True), ("parts.db", False)):
            path = tmp_path / name
            study = Study.open(path, **{**start, **how})
            for number in range(1, 17):
                (trial,) = study.ask()
                assert trial.id == number
                study.tell(number, value_of(trial.theta / (60 if how.get("params") else 1)))
                if not whole:
                    study.close()
                    study = Study.open(path)
            moves = len(study.history())
            study.close()
            assert moves == 16 // how.get("batch", BATCH)
            said = f"All {moves} moves follow from the results, to the last bit."
            assert verdicts(path) == said
        assert content(tmp_path / "whole.db") == content(tmp_path / "parts.db")

    @pytest.mark.slow
    def test_kills_change_nothing(self, tmp_path):
        """The undisturbed study, and one whose worker is killed in the middle of it."""
        path, left = tmp_path / "rough.db", []
        for most in (3, 14, 33):
            process = work(path, 50, hold=most + 8, method="recoup")
            left.append(killed_at(path, process, most))
        assert sorted(set(left)) == left
        assert left[-1] < 50
        for rest in (path, tmp_path / "calm.db"):
            process = work(rest, 50, method="recoup")
            assert process.wait() == 0, process.said()
        trials, moves, mixture = content(path)
        assert (trials, moves, mixture) == content(tmp_path / "calm.db")
        assert len(moves) == 13  # failures fill a batch
        assert verdicts(path) == "All 12 moves follow from the results, to the last bit."

    def test_two_processes_tell_one_study(self, tmp_path):
        path = tmp_path / "s.db"
        Study.open(path, **START).close()
        workers = [
            Forked(tmp_path / f"errors-{i}", study_worker.ask_and_tell, str(path), 20)
            for i in range(2)
        ]
        assert [worker.wait() for worker in workers] == [0, 0], [w.said() for w in workers]
        with Study.open(path) as study:
            assert study.counts() == {"pending": 0, "ok": 40, "failed": 0}
            assert len(study.history()) == 10
        assert verdicts(path) == "All 10 moves follow from the results, to the last bit."

    @pytest.mark.parametrize(("failure", "before"), [("avoid", 2), ("censored", 0)])
    def test_a_first_batch_that_fails(self, tmp_path, failure, before):
        path = tmp_path / "s.db"
        with Study.open(path, **START, failure=failure) as study:
            for trial in study.ask(9):
                study.tell(trial.id, failed="slipped")
            assert len(study.history()) == before
            for trial in study.ask(4):
                study.tell(trial.id, value_of(trial.theta))
            *_, move = study.history()
            assert len(study.history()) == before + 1
            assert move["results"] == (12 if before else 13)
            fill(study, 2)
            assert np.isfinite(study.mean).all()
        moves = f"All {before + 3} moves follow from the results, to the last bit."
        assert verdicts(path) == moves

    @pytest.mark.parametrize("failure", ["worst", -20.0])
    def test_what_failing_is_worth_takes_part(self, tmp_path, failure):
        means = []
        for name, how in (("a.db", {}), ("b.db", {"failure": failure})):
            with Study.open(tmp_path / name, **START, **how) as study:
                for trial in study.ask(8):
                    if trial.id % 4 == 0:
                        study.tell(trial.id, failed="slipped")
                    else:
                        study.tell(trial.id, value_of(trial.theta))
                assert study.history()
                means.append(study.distributions()[1][0])
            verdicts(tmp_path / name)
        assert np.abs(means[0] - means[1]).max() > 1e-6

    def test_results_in_any_order(self, tmp_path):
        """Told crosswise, of up to five distributions: every move is made again to the bit."""
        rng, path, waiting = np.random.default_rng(1), tmp_path / "s.db", []
        with Study.open(path, **START) as study:
            while len(study.history()) < 9:
                waiting += study.ask(4)
                for _ in range(3):
                    trial = waiting.pop(int(rng.integers(len(waiting))))
                    study.tell(trial.id, value_of(trial.theta))
            assert max(info["late"] for info in study.history()) >= 2
            best = study.evaluate()
            assert best.ess > 1
        assert verdicts(path) == "All 9 moves follow from the results, to the last bit."

    def test_it_learns(self, study):
        fill(study, 20)
        top = np.linalg.solve(2 * np.eye(3) + np.eye(3)[::-1] * [1, 0, 1], np.ones(3))
        assert np.abs(study.mean - top).max() < 0.1


class TestOverAgain:
    def test_a_replay_goes_where_it_went(self, study):
        marks = study.distributions()
        replayed = study.replay()
        assert [row.move for row in replayed] == [1, 2, 3, 4, 5, 6]
        for row in replayed:
            np.testing.assert_array_equal(row.mean, marks[row.move][0])
            np.testing.assert_array_equal(row.std, marks[row.move][1])

    @pytest.mark.parametrize("wrong", [6, 13])
    def test_amended_there_and_back(self, study, wrong):
        path, mean, std = study.store.path, study.mean, study.std
        value = study.store.results([wrong])[wrong].told.value
        assert study.amend(wrong, 99.0).moves
        assert np.abs(study.mean - mean).max() > 1e-3
        verdicts(path)
        study.amend(wrong, value)
        np.testing.assert_array_equal(study.mean, mean)
        np.testing.assert_array_equal(study.std, std)
        fill(study, 1)
        verdicts(path)

    def test_amended_to_a_failure_and_dropped(self, study):
        study.amend(9, failed="the gripper opened")
        study.amend(10, drop="the sensor was loose")
        fill(study, 2)
        verdicts(study.store.path)

    def test_a_fork_goes_the_way_of_its_study(self, study, tmp_path):
        """It carries the memory: told the same results, it makes the same move."""
        for trial in study.pending():
            study.tell(trial.id, failed="left behind")
        with study.fork(tmp_path / "new.db") as new:
            mine, other = new.store.last_move().memory, study.store.last_move().memory
            assert [leaf.path for leaf in mine] == [leaf.path for leaf in other]
            for a, b in zip(mine, other, strict=True):
                np.testing.assert_array_equal(a.value, b.value, strict=True)
            for one in (study, new):
                fill(one, 1)
            np.testing.assert_allclose(new.mean, study.mean, rtol=1e-9)
            np.testing.assert_allclose(new.std, study.std, rtol=1e-9)
            fill(new, 2)
            marks = new.distributions()
            for row in new.replay():
                np.testing.assert_array_equal(row.mean, marks[row.move][0])
        verdicts(tmp_path / "new.db")

    @pytest.mark.parametrize("method", ["mis-pgpe-ob", "iw-pgpe-ob", "pgpe-ob"])
    def test_other_methods_on_its_results_and_back(self, study, tmp_path, method):
        """A replay, a fork and a replay of that fork: no rule is given the memory of another."""
        assert len(study.replay(method)) == 6
        with study.fork(tmp_path / "same.db") as same:
            fill(same, 1)
            assert len(same.replay(method)) == 1
        with study.fork(tmp_path / "new.db", method=method) as new:
            assert new.store.last_move().memory is None
            assert (new.method.family, new.batch) == ("full", BATCH)
            fill(new, 1)
            assert len(new.replay("recoup")) == 1
            with new.fork(tmp_path / "back.db", method="recoup") as back:
                fill(back, 2)
        for name in ("new.db", "back.db"):
            verdicts(tmp_path / name)

    @pytest.mark.parametrize("page", [0, None])
    def test_recovered_it_goes_on_alike(self, study, tmp_path, page):
        study.close()
        path = study.store.path
        copy = shutil.copy(path, tmp_path / "copy.db")
        if page is not None:
            broken = bytearray(path.read_bytes())
            broken[:4096] = bytes(4096)
            path.write_bytes(broken)
        assert recover(path, tmp_path / "new.db").missing == 0
        ends = []
        for name in (copy, tmp_path / "new.db"):
            with Study.open(name) as again:
                fill(again, 3)
            verdicts(name)
            ends.append(content(name))
        assert ends[0] == ends[1]

    @pytest.mark.parametrize("leaf", [b"", b"\2\0\0\0[]"])
    def test_a_memory_of_another_structure_is_a_sentence(self, study, leaf):
        study.close()
        rewrite(study.store.path, lambda _: leaf)
        with Study.open(study.store.path) as again:
            with pytest.raises(ValueError, match=f"{DAMAGED}|{ANOTHER_STRUCTURE}") as caught:
                fill(again, 1)
            assert "\n" not in str(caught.value)

    def test_a_memory_of_other_dimensions_is_a_sentence(self, study, tmp_path):
        with Study.open(tmp_path / "two.db", dim=2, batch=BATCH) as other:
            fill(other, 6)
            connection = other.store._file
            ((memory,),) = connection.rows("SELECT memory FROM moves WHERE id = 6")
        study.close()
        rewrite(study.store.path, lambda _: memory)
        with Study.open(study.store.path) as again:
            with pytest.raises(InputError, match=f"{ANOTHER_STRUCTURE} than this version's"):
                fill(again, 1)
            with again.fork(tmp_path / "new.db", std=0.3) as new:
                fill(new, 1)


def rewrite(path, change):
    """Another memory for the sixth move, its checksum in order."""
    file = StudyFile.open(path)
    names = [row[1] for row in file.rows("PRAGMA table_info(moves)")]
    with file.writing():
        (row,) = file.read("moves", list, "WHERE id = 6")
        row[names.index("memory")] = change(row[names.index("memory")])
        file.insert("moves", [row], verb="INSERT OR REPLACE")
    file.close()


class TestSamples:
    def test_exported_and_imported_they_are_weighed_alike(self, study, tmp_path):
        study.export(tmp_path / "t.csv")
        for name, source in (("a.db", tmp_path / "t.csv"), ("b.db", study.store.path)):
            with Study.open(tmp_path / name, **{**START, "seed": 9}) as new:
                found = import_samples(new.opened, read_samples(new.opened, source))
                assert found.samples == study.counts()["ok"]
                here, there = new.evaluate(0.2, 0.6), study.evaluate(0.2, 0.6)
                assert here.mean == pytest.approx(there.mean, rel=1e-9)
                assert here.ess == pytest.approx(there.ess, rel=1e-9)
                fill(new, 2)
            verdicts(tmp_path / name)

    def test_what_diagonal_distributions_drew_is_taken_by_full_ones(self, tmp_path):
        """From the study itself as from its export."""
        with Study.open(tmp_path / "old.db", **{**START, "method": "iw-pgpe-ob"}) as old:
            fill(old, 4)
            old.export(tmp_path / "t.csv")
            ends = []
            for name, source in (("a.db", tmp_path / "t.csv"), ("b.db", old.store.path)):
                with Study.open(tmp_path / name, **{**START, "seed": 9}) as new:
                    found = import_samples(new.opened, read_samples(new.opened, source))
                    assert found.samples == old.counts()["ok"]
                    here, there = new.evaluate(0.2, 0.6), old.evaluate(0.2, 0.6)
                    assert here.mean == pytest.approx(there.mean, rel=1e-9)
                    fill(new, 1)
                    ends.append(new.mean)
            np.testing.assert_allclose(*ends, rtol=1e-9)
            with old.fork(tmp_path / "fork.db", method="recoup") as fork:
                assert (fork.method.family, fork.store.last_move().memory) == ("diagonal", None)
                fill(fork, 2)
        for name in ("a.db", "b.db", "fork.db"):
            verdicts(tmp_path / name)

    def test_imported_ones_say_where_to_go(self, tmp_path):
        """Samples near the top, drawn elsewhere: the model uses them with the first batch."""
        rng, away = np.random.default_rng(0), []
        theta = rng.normal(0.3, 0.6, (60, DIM))
        for name, warm in (("cold.db", False), ("warm.db", True)):
            with Study.open(tmp_path / name, **START) as study:
                if warm:
                    study.import_samples(theta, [value_of(t) for t in theta], 0.3, 0.6)
                fill(study, 2)
                away.append(np.abs(study.mean - [0.25, 0.5, 0.25]).max())
            verdicts(tmp_path / name)
        assert away[1] < away[0] / 2

    def test_what_is_imported_is_no_part_of_a_batch(self, tmp_path):
        """Told in the midst of one: the batch is what the study drew itself."""
        theta = np.random.default_rng(0).normal(0.0, 0.7, (30, DIM))
        with Study.open(tmp_path / "s.db", **START) as study:
            trials = study.ask(BATCH)
            for trial in trials[:2]:
                study.tell(trial.id, value_of(trial.theta))
            study.import_samples(theta, [value_of(t) + 90.0 for t in theta], 0.0, 0.7)
            for trial in trials[2:]:
                study.tell(trial.id, value_of(trial.theta))
            (move,) = study.history()
            assert move["notes"]["modelled"] == 34
            kept = {
                leaf.path: float(leaf.value)
                for leaf in study.store.last_move().memory[:5]
                if leaf.value.ndim == 0
            }
            own = [value_of(trial.theta) for trial in trials]
            assert (kept[".best"], kept[".worst"]) == (max(own), min(own))
            fill(study, 2)
        verdicts(tmp_path / "s.db")


class TestOtherBounds:
    def test_it_goes_on_and_check_makes_its_moves_again(self, named, tmp_path):
        with named.fork(tmp_path / "wide.db", params=WIDER) as wide:
            assert wide.mean_policy == pytest.approx(named.mean_policy, rel=1e-9)
            fill(wide, 3, robot)
            assert wide.history()[0]["notes"]["modelled"] > 20  # what was drawn before, too
            assert wide.history()[0]["ess"] == pytest.approx(3)  # but weights are of its own alone:
            # of a batch of four, of which one has failed
            with wide.fork(tmp_path / "third.db", params={"damping": (0, 2)}) as third:
                fill(third, 2, robot)
            verdicts(tmp_path / "third.db")
        assert verdicts(tmp_path / "wide.db").startswith("All 3 moves follow")

    def test_it_starts_with_the_correlations_that_it_had(self, named, tmp_path):
        """Each coordinate stretched by the slope of its map; the others as they were."""
        with named.fork(tmp_path / "wide.db", params=WIDER) as wide:
            before, after = covariance(named), covariance(wide)
            slopes = [
                log_slope(s.parameters, to_latent(s.parameters, s.opened.in_units(s.mean))[None])
                for s in (named, wide)
            ]
            scale = np.exp(slopes[0] - slopes[1])[0]
            assert scale[2] == 1
            np.testing.assert_allclose(after, before * np.outer(scale, scale), rtol=1e-6)

    def test_weights_are_those_of_the_densities_in_its_units(self, named, tmp_path):
        with named.fork(tmp_path / "wide.db", params=WIDER) as wide:
            rows = [(t, r) for t, r in named.store.trials() if r is not None]
            u = np.array([named.opened.in_units(t.theta) for t, _ in rows])
            ok = np.array([r.told.value is not None for _, r in rows])

            def density(study, numbers):
                z, rho = to_latent(study.parameters, u), study.opened.rho(numbers)
                stretch = np.sum(log_slope(study.parameters, z), axis=1)
                return np.exp(log_density(rho, z) - stretch)

            drew = [named.store.proposal(t.proposal).numbers for t, _ in rows]
            mixture = np.mean([density(named, numbers) for numbers in drew], axis=0)
            w = (density(wide, wide.store.newest().numbers) / mixture)[ok]
            assert wide.evaluate().ess == pytest.approx(w.sum() ** 2 / (w**2).sum(), rel=1e-6)

    def test_a_parameter_more_and_one_less(self, named, tmp_path):
        """What stays keeps its correlations, what is new has none."""
        added = {"friction": {"low": 0, "high": 1, "was": 0.3}}
        with named.fork(tmp_path / "more.db", params=added) as more:
            after = covariance(more)
            np.testing.assert_allclose(after[:3, :3], covariance(named), rtol=1e-9)
            assert (after[3, :3] == 0).all()
            fill(more, 2, lambda theta: robot(theta[:3]) - theta[3])
        with named.fork(tmp_path / "less.db", freeze=["damping"]) as less:
            kept = np.ix_([0, 2], [0, 2])
            np.testing.assert_allclose(covariance(less), covariance(named)[kept], rtol=1e-9)
            fill(less, 2, lambda theta: robot([theta[0], 0.7, theta[1]]))
        for name in ("more.db", "less.db"):
            verdicts(tmp_path / name)

    def test_a_start_of_one_s_own_has_none(self, named, tmp_path):
        with named.fork(tmp_path / "wide.db", params=WIDER, std=0.4) as wide:
            np.testing.assert_array_equal(covariance(wide), np.diag([0.4**2] * 3))

    def test_a_gradient_of_correlated_ones_is_refused(self, named, tmp_path):
        with pytest.raises(InputError, match="only names can be changed"):
            named.fork(tmp_path / "wide.db", params=WIDER, method="mis-pgpe-ob")
        assert not (tmp_path / "wide.db").exists()


def test_a_run_is_stopped_and_resumed_to_the_last_bit(tmp_path):
    calm = recoup.train("toy", iterations=6, seed=3, out=tmp_path / "calm")
    assert calm.plan.method == "recoup"

    def stop(step):
        if step.iteration == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        recoup.train("toy", iterations=6, seed=3, out=tmp_path / "rough", progress=stop)
    rough = recoup.resume(tmp_path / "rough")
    np.testing.assert_array_equal(rough.mean, calm.mean)
    np.testing.assert_array_equal(rough.std, calm.std)
    for mine, other in zip(rough.history, calm.history, strict=True):
        assert replace(mine, wall_s=0.0) == replace(other, wall_s=0.0)
    assert rough.return_mean_policy == calm.return_mean_policy

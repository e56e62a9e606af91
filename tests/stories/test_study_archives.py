"""Samples in and out: export, import, fork, replay."""

import csv
import io
import shutil
import subprocess
import sys

import numpy as np
import pytest
from sentences import EXISTS, NO_ARRAYS, NOTHING_IMPORTED, SAMPLES_THERE
from waiting import LIMIT

import recoup
from recoup.checks import InputError
from recoup.study.exchange import fork as forking
from recoup.study.exchange.fork import forked_words
from recoup.study.exchange.read import read_samples
from recoup.study.exchange.samples import import_samples
from recoup.study.exchange.tables import write_csv
from recoup.study.moves import study_move as moves
from recoup.study.study import Study

PARAMS = {"stiffness": (10, 200, "log"), "damping": (-1, 3)}


def value_of(theta):
    return float(-np.sum((theta - [0.5, -0.2]) ** 2))


def same_trial(study, other, number):
    """The trial of `study` that is one of another."""
    theta = next(trial.theta for trial in other.trials() if trial.id == number)
    return next(trial.id for trial in study.trials() if np.array_equal(trial.theta, theta))


def fill(study, batches, batch=4):
    for _ in range(batches):
        for trial in study.ask(batch):
            if trial.id % 9 == 0:
                study.tell(trial.id, failed="slipped")
            else:
                study.tell(trial.id, value_of(trial.theta))
    return study


@pytest.fixture
def old(tmp_path):
    how = {"dim": 2, "batch": 4, "std": 0.6, "seed": 7, "method": "mis-pgpe-ob"}
    with Study.open(tmp_path / "old.db", **how) as study:
        study.enqueue([3.0, 3.0])
        yield fill(study, 12)


def by_hand(study):
    """All drawn results with their proposals, straight from the file; what failed is no number."""
    marks = study.store._file.rows(
        'SELECT theta, "return", numbers FROM told JOIN asked ON asked.id = told.id '
        "JOIN proposals ON proposals.id = asked.proposal ORDER BY told.id"
    )
    theta, drew = (np.stack([np.frombuffer(row[i]) for row in marks]) for i in (0, 2))
    returns = np.array([np.nan if row[1] is None else row[1] for row in marks])
    both, index = np.unique(drew, axis=0, return_inverse=True)
    return theta, returns, (both[:, :2], both[:, 2:]), index


class TestEvaluation:
    def test_it_is_what_estimate_says(self, old):
        theta, returns, proposals, index = by_hand(old)
        for mean, std in (([0.2, 0.0], 0.5), ([0.4, -0.1], [0.3, 0.4])):
            spread = np.broadcast_to(std, (2,)).astype(float)
            found = old.evaluate(mean, std)
            samples = {"proposals": proposals, "proposal": index, "baseline": "none"}
            target = {"target": (np.array(mean), spread)}
            want = recoup.estimate(theta, returns, **samples, **target, normalize=True)
            assert (found.low, found.high) == pytest.approx(want.interval(), rel=1e-9)
            assert found.mean == pytest.approx(np.mean(want.interval()), rel=1e-9)
            if not found.explained:  # by weights alone
                assert found.mean == pytest.approx(float(want.objective), rel=1e-9)
            assert found.ess == pytest.approx(float(want.ess), rel=1e-9)
            assert found.pareto_k == pytest.approx(want.pareto_k, abs=1e-6)
            assert found.samples == np.isfinite(returns).sum() < len(returns)

    def test_judging_changes_no_move(self, tmp_path):
        """The archive's mixture is carried by moves alone: evaluations in between leave no bit."""
        ends = []
        for judged in (False, True):
            with Study.open(tmp_path / f"{judged}.db", dim=2, batch=4, seed=3) as study:
                for i in range(40):
                    (trial,) = study.ask()
                    study.tell(trial.id, value_of(trial.theta))
                    if judged and i > 2:
                        study.evaluate()
                ends.append((study.mean.tobytes(), study.std.tobytes()))
        assert ends[0] == ends[1]


class TestExport:
    def test_csv_holds_every_digit(self, old):
        file = io.StringIO()
        count = write_csv(old.opened, file)
        rows = list(csv.DictReader(file.getvalue().splitlines()))
        assert count == len(rows) == sum(old.counts().values())
        assert {row["status"] for row in rows} == {"ok", "failed"}
        thetas = dict(old.store._file.rows("SELECT id, theta FROM asked"))
        for row in rows:
            want = np.frombuffer(thetas[int(row["id"])])
            assert [float(row["theta_0"]), float(row["theta_1"])] == want.tolist()
        assert rows[0]["kind"] == "own"
        assert rows[0]["mean_0"] == ""
        assert float(rows[-1]["std_1"]) > 0

    def test_it_is_of_one_state_whatever_others_amend_meanwhile(self, old, tmp_path):
        class Amending(io.StringIO):
            def write(self, text):
                if not self.tell():  # the columns
                    with Study.open(tmp_path / "old.db") as other:
                        other.amend(40, -99.0)
                return super().write(text)

        before, meanwhile, after = io.StringIO(), Amending(), io.StringIO()
        for file in (before, meanwhile, after):
            write_csv(old.opened, file)
        assert meanwhile.getvalue() == before.getvalue()
        assert after.getvalue() != before.getvalue()

    def test_parquet_is_the_same_table(self, old, tmp_path):
        parquet = pytest.importorskip("pyarrow.parquet")
        old.export(tmp_path / "t.parquet")
        old.export(tmp_path / "t.csv")
        table = parquet.read_table(tmp_path / "t.parquet").to_pylist()
        rows = list(csv.DictReader((tmp_path / "t.csv").read_text().splitlines()))
        assert len(table) == len(rows)
        for mine, other in zip(table, rows, strict=True):
            for key, cell in other.items():
                assert ("" if mine[key] is None else str(mine[key])) == cell
        with pytest.raises(ValueError, match="does not exist"):
            old.export(tmp_path / "no" / "t.csv")


class TestImport:
    @pytest.mark.parametrize("ending", ["csv", "parquet", "db"])
    def test_returns_that_are_means_of_episodes_stay_so(self, tmp_path, ending):
        path, table = tmp_path / "old.db", tmp_path / f"old.{ending}"
        with Study.open(path, dim=2, batch=4) as old:
            trials = old.ask(4)
            for trial, returns in zip(
                trials, ([1.0, 2.0, 6.0], [4.0], [0.5, 0.7], [-1.0]), strict=True
            ):
                old.tell(trial.id, values=returns)
            if ending != "db":
                old.export(table)
            want = [(t.value, t.stderr, t.episodes) for t in old.trials()]
            with Study.open(tmp_path / "new.db", dim=2, batch=4, seed=9) as study:
                import_samples(
                    study.opened, read_samples(study.opened, table if ending != "db" else path)
                )
                assert [(t.value, t.stderr, t.episodes) for t in study.trials()] == want
        assert {t[2] for t in want} == {1, 2, 3}

    @pytest.mark.parametrize("ending", ["csv", "parquet", "npz", "db"])
    def test_what_was_exported_comes_back_with_its_densities(self, old, tmp_path, ending):
        """The fresh study then judges any candidate exactly as the old one does."""
        path = tmp_path / f"samples.{ending}"
        theta, returns, (means, stds), index = by_hand(old)
        if ending == "npz":
            np.savez(path, theta=theta, returns=returns, mean=means[index], std=stds[index])
        elif ending == "db":
            path = old.store.path
        else:
            old.export(path)
        with Study.open(tmp_path / "new.db", dim=2, batch=4, seed=9, std=0.5) as study:
            found = import_samples(study.opened, read_samples(study.opened, path))
            assert found.samples == np.isfinite(returns).sum()
            assert found.failed == np.isnan(returns).sum() > 0
            assert found.proposals == len(means)
            assert not found.fitted
            want = recoup.estimate(
                theta,
                returns,
                proposals=(means, stds),
                proposal=index,
                target=(np.zeros(2), np.full(2, 0.5)),
            )
            assert found.ess == pytest.approx(float(want.ess), rel=1e-9)
            assert f"worth {found.ess:.1f} fresh rollouts" in found.words
            here, there = study.evaluate([0.2, 0.0], 0.5), old.evaluate([0.2, 0.0], 0.5)
            assert here.mean == pytest.approx(there.mean, rel=1e-9)
            assert here.stderr == pytest.approx(there.stderr, rel=1e-9)
            assert study.history() == []
            assert study.until_move() == 4
            fill(study, 2)
            assert study.history()[0]["samples"] == np.isfinite(returns).sum() + 4
            with pytest.raises(ValueError, match=f"{SAMPLES_THERE} already"):
                import_samples(study.opened, read_samples(study.opened, path))

    def test_without_a_proposal_one_is_fitted_and_marked(self, tmp_path):
        rng = np.random.default_rng(0)
        theta = rng.normal([0.3, -0.2], [0.5, 0.8], (400, 2))
        with Study.open(tmp_path / "new.db", dim=2, std=0.5, family="diagonal") as study:
            found = study.import_samples(theta, [value_of(t) for t in theta])
            assert found.fitted
            assert "a proposal fitted to them" in found.words
            ((origin, numbers),) = study.store._file.rows(
                "SELECT origin, numbers FROM proposals WHERE id > 0"
            )
            assert origin == "fitted"
            mean, std = np.split(np.frombuffer(numbers), 2)
            np.testing.assert_allclose(mean, theta.mean(0))
            np.testing.assert_allclose(std, theta.std(0, ddof=1))
            judged = study.evaluate([0.1, 0.0], 0.4)
            exact = value_of(np.array([0.1, 0.0])) - 2 * 0.4**2
            assert abs(judged.mean - exact) < 4 * judged.stderr
            with pytest.raises(ValueError, match="theta_1 is the same in all samples"):
                study.import_samples([[1.0, 2.0], [2.0, 2.0]], [1.0, 2.0])
            with pytest.raises(ValueError, match="one sample is too few"):
                study.import_samples([[1.0, 2.0]], [1.0])

    def test_named_parameters_come_back_in_their_units(self, tmp_path):
        with (
            Study.open(tmp_path / "a.db", params=PARAMS, batch=4, seed=1) as a,
            Study.open(tmp_path / "b.db", params=PARAMS, batch=4, seed=2) as b,
        ):
            for trial in a.ask(20):
                a.tell(trial.id, -((trial.theta[1] - 1) ** 2))
            a.export(tmp_path / "a.csv")
            found = import_samples(b.opened, read_samples(b.opened, tmp_path / "a.csv"))
            assert found.samples == 20
            centre = {"stiffness": 44.0, "damping": 1.0}
            here, there = b.evaluate(centre, 0.9), a.evaluate(centre, 0.9)
            assert here.mean == pytest.approx(there.mean, rel=1e-6)
            with pytest.raises(ValueError, match="are in the study already"):
                import_samples(b.opened, read_samples(b.opened, tmp_path / "a.csv"))

    def test_methods_without_weights_leave_them_out_of_their_moves(self, tmp_path):
        with Study.open(tmp_path / "s.db", dim=2, batch=4, method="niw-pgpe", seed=1) as study:
            far = np.random.default_rng(0).normal(50, 1, (20, 2))
            found = study.import_samples(far, [1000.0] * 20, mean=50.0, std=1.0)
            assert "has no weights" in found.words
            fill(study, 2)
            assert study.history()[0]["samples"] == 4
            assert abs(study.history()[0]["objective"]) < 100
            assert any("leave out the 20" in words for words in study.diagnostics()["advice"])
            assert study.evaluate(50.0, 1.0).mean == pytest.approx(1000)

    def test_what_was_amended_since_is_not_imported_again(self, old, tmp_path):
        """A theta was drawn once, whatever is said of it now."""
        with Study.open(tmp_path / "new.db", dim=2, batch=4, method="mis-pgpe-ob") as new:
            import_samples(new.opened, read_samples(new.opened, tmp_path / "old.db"))
            before = new.evaluate()
            old.amend(20, -99.0)
            fill(old, 1)
            found = import_samples(new.opened, read_samples(new.opened, tmp_path / "old.db"))
            assert (found.samples, found.differ) == (4, 1)
            mine = same_trial(new, old, 20)
            assert found.amend == (mine,)
            assert f"Trial {mine} has another result there, which stays as it is" in found.words
            assert new.evaluate().samples == before.samples + 4
            old.export(tmp_path / "old.csv")
            old.amend(21, -50.0)
            with pytest.raises(InputError, match=NOTHING_IMPORTED):
                import_samples(old.opened, read_samples(old.opened, tmp_path / "old.csv"))

    def test_samples_of_ones_own_that_were_put_right_here_do_not_come_again(self, tmp_path):
        """Nobody says when they were asked for: what they were told first says which they are."""
        theta = np.random.default_rng(0).normal(size=(8, 2))
        table = (theta, [*map(value_of, theta[:7]), np.nan], 0.0, 1.0)
        with Study.open(tmp_path / "new.db", dim=2, batch=4) as study:
            study.import_samples(*table)
            study.amend(3, 99.0)
            study.amend(3, 98.0)
            study.amend(4, drop="loose")
            study.amend(8, drop="loose")
            with pytest.raises(InputError, match=rf"{NOTHING_IMPORTED}\.$"):
                study.import_samples(*table)

    @pytest.mark.parametrize("ending", ["db", "csv", "parquet"])
    def test_rollouts_of_others_with_the_same_seed_are_others(self, tmp_path, ending):
        """Two robots draw the same thetas; a failure of both, or an equal return, is two."""
        told = {"lab1": [-1.0, -2.0, -3.0, None], "lab2": [-1.0, -2.5, -3.5, None]}
        for name, values in told.items():
            with Study.open(tmp_path / f"{name}.db", dim=2, batch=9) as study:
                for trial, value in zip(study.ask(4), values, strict=True):
                    how = {"failed": "fell"} if value is None else {"value": value}
                    study.tell(trial.id, **how)
                if ending != "db":
                    study.export(tmp_path / f"{name}.{ending}")
        with Study.open(tmp_path / "lab1.db") as study:
            found = import_samples(
                study.opened, read_samples(study.opened, tmp_path / f"lab2.{ending}")
            )
            assert (found.samples, found.failed, found.again, found.anew) == (3, 1, 0, 4)
            assert "4 of the new ones are other rollouts of thetas that were there" in found.words
            for source in (f"lab2.{ending}", "lab2.db", "lab1.db"):
                with pytest.raises(InputError, match=SAMPLES_THERE):
                    import_samples(study.opened, read_samples(study.opened, tmp_path / source))

    def test_a_copy_that_went_on_apart_has_rollouts_of_its_own(self, tmp_path):
        one, copy = tmp_path / "one.db", tmp_path / "copy.db"

        def go_on(path, sign):
            with Study.open(path, dim=2, batch=99, seed=1) as study:
                for trial in study.ask(3):
                    study.tell(trial.id, sign * trial.id)

        go_on(one, 1.0)
        shutil.copy(one, copy)
        go_on(one, 1.0)
        go_on(copy, -1.0)
        with Study.open(one) as study:
            found = import_samples(study.opened, read_samples(study.opened, copy))
            assert (found.samples, found.again, found.anew) == (3, 3, 3)
            assert [trial.value for trial in study.trials()][6:] == [-4.0, -5.0, -6.0]

    def test_a_simulation_of_the_same_seed_says_nothing_new(self, tmp_path):
        """Made twice, it is the same to the last digit."""
        for name in ("a.db", "b.db"):
            with Study.open(tmp_path / name, dim=2, batch=4, seed=1) as study:
                fill(study, 2)
        with Study.open(tmp_path / "a.db") as study, pytest.raises(InputError, match="already"):
            import_samples(study.opened, read_samples(study.opened, tmp_path / "b.db"))

    def test_what_is_known_by_theta_and_return_alone(self, tmp_path):
        """Arrays do not say when anything was asked for: another return is another rollout."""
        theta = np.random.default_rng(0).normal(0, 1, (4, 2))
        with Study.open(tmp_path / "s.db", dim=2) as study:
            study.import_samples(theta, [1.0, 2.0, 3.0, 4.0], 0.0, 1.0)
            found = study.import_samples(theta, [1.0, 2.0, 3.0, 5.0], 0.0, 1.0)
            assert (found.samples, found.again, found.anew) == (1, 3, 1)

    @pytest.mark.parametrize("way", ["fork", "import"])
    def test_they_are_known_again_by_whatever_way_they_came(self, old, tmp_path, way):
        """From a study, and from one that has them from it."""
        if way == "fork":
            old.fork(tmp_path / "b.db").close()
        with Study.open(tmp_path / "b.db", dim=2, batch=4, method="mis-pgpe-ob") as between:
            if way == "import":
                import_samples(between.opened, read_samples(between.opened, tmp_path / "old.db"))
        old.amend(20, -99.0)
        with Study.open(tmp_path / "new.db", dim=2, batch=4, seed=5) as new:
            first = import_samples(new.opened, read_samples(new.opened, tmp_path / "b.db"))
            mine = same_trial(new, old, 20)
            with pytest.raises(InputError, match=f"already.*Trial {mine} has another result there"):
                import_samples(new.opened, read_samples(new.opened, tmp_path / "old.db"))
            assert first.again == 0
            with pytest.raises(InputError, match="already"):
                import_samples(old.opened, read_samples(old.opened, tmp_path / "b.db"))

    def test_both_doors_say_the_same(self, old, tmp_path):
        """Of a study and of its export: what came, what was left out, and why trials failed."""
        old.tell(old.ask(1, at="mean")[0].id, 0.5)
        old.tell(old.ask(1)[0].id, failed="the gripper slipped")
        old.ask(2)
        old.note("oil on the table", trial=9)
        old.note("wiped", trial=9)
        old.amend(21, drop="the sensor was loose")
        old.export(tmp_path / "old.csv")
        said = []
        for ending in ("db", "csv"):
            with Study.open(tmp_path / f"{ending}.new", dim=2, batch=4, seed=5) as new:
                found = import_samples(
                    new.opened, read_samples(new.opened, tmp_path / f"old.{ending}")
                )
                fails = [trial.note for trial in new.trials() if trial.status == "failed"]
                notes = [(note.trial, note.text) for note in new.notes()]
                mine = same_trial(new, old, 9)
            assert "the gripper slipped" in fails
            assert notes == [(mine, "oil on the table; wiped")]
            assert "; what was written down about 1 of them came along" in found.words
            left = "; 4 without a return, or without what drew them, were left out; 1 that was "
            assert f"{left}dropped there was left out" in found.words
            said.append((found, fails, notes))
        assert said[0] == said[1]

    def test_one_is_said_as_one(self, tmp_path):
        head, file = "theta_0,theta_1,return,mean_0,mean_1,std_0,std_1\n", tmp_path / "s.csv"
        with Study.open(tmp_path / "new.db", dim=2, method="mis-pgpe-ob") as study:
            file.write_text(f"{head}1,2,3,0,0,1,1\n1,2,,0,0,1,1\n")
            words = import_samples(study.opened, read_samples(study.opened, file)).words
            assert "1 sample imported from 1 proposal; 1 without a return" in words
            assert "what drew it, was left out. At the newest distribution it is worth" in words
            file.write_text(f"{head}1,2,3,0,0,1,1\n1,1,3,0,0,1,1\n")
            words = import_samples(study.opened, read_samples(study.opened, file)).words
            assert "1 sample imported from 1 proposal; 1 was in the study already." in words

    @pytest.mark.parametrize("ending", ["csv", "parquet", "db"])
    def test_without_any_result_that_is_said(self, tmp_path, ending):
        with Study.open(tmp_path / "s.db", dim=2) as study:
            if ending != "db":
                study.export(tmp_path / f"s.{ending}")
        says = pytest.raises(InputError, match=f"s.{ending} has no results to import")
        with Study.open(tmp_path / "new.db", dim=2) as study, says:
            read_samples(study.opened, tmp_path / f"s.{ending}")

    @pytest.mark.parametrize("ending", ["db", "csv"])
    def test_what_was_dropped_since_is_named(self, old, tmp_path, ending):
        """It counts on until somebody takes it out, and that is said."""

        def imported():
            if ending == "csv":
                old.export(tmp_path / "old.csv")
            return import_samples(
                new.opened, read_samples(new.opened, tmp_path / f"old.{ending}"), "old"
            )

        with Study.open(tmp_path / "new.db", dim=2, batch=4, seed=5) as new:
            imported()
            old.amend(20, drop="the sensor was loose")
            mine = same_trial(new, old, 20)
            words = f"already.*Trial {mine} was dropped there and counts here still: `recoup study"
            with pytest.raises(InputError, match=words):
                imported()
            fill(old, 1)
            found = imported()
            assert (found.samples, found.drop, found.dropped, found.differ) == (4, (mine,), 1, 0)
            new.amend(mine, drop="so it was there")
            fill(old, 1)
            assert imported().drop == ()

    def test_imports_without_times_are_known_by_what_they_earned(self, old, tmp_path):
        """Nor is one that was amended since doubled."""
        with Study.open(tmp_path / "new.db", dim=2, batch=4, seed=5) as new:
            samples = read_samples(new.opened, tmp_path / "old.db")
            import_samples(new.opened, samples._replace(asked=None))
            old.amend(20, -99.0)
            old.amend(21, drop="the sensor was loose")
            fill(old, 1)
            found = import_samples(new.opened, read_samples(new.opened, tmp_path / "old.db"))
            amended, gone = (same_trial(new, old, number) for number in (20, 21))
            assert (found.samples, found.amend, found.drop) == (4, (amended,), (gone,))

    def test_small_units_are_no_repetition(self, tmp_path):
        for seed in (1, 2):
            how = {"dim": 2, "std": 1e-12, "batch": 20, "seed": seed, "method": "mis-pgpe-ob"}
            with Study.open(tmp_path / f"{seed}.db", **how) as study:
                for trial in study.ask(16):
                    study.tell(trial.id, trial.id % 2)
        with Study.open(tmp_path / "1.db") as study:
            found = import_samples(study.opened, read_samples(study.opened, tmp_path / "2.db"))
        assert (found.samples, found.again) == (16, 0)

    def test_two_processes_that_import_the_same(self, tmp_path):
        np.savez(
            tmp_path / "s.npz",
            theta=np.random.default_rng(0).normal(0, 1, (300, 2)),
            returns=np.arange(300.0),
            mean=np.zeros(2),
            std=np.ones(2),
        )
        Study.open(tmp_path / "s.db", dim=2).close()
        command = [sys.executable, "-m", "recoup", "study", "import", "s.db", "s.npz"]
        workers = [
            subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE)
            for _ in range(2)
        ]
        said = [worker.communicate(timeout=LIMIT) for worker in workers]
        assert sorted(worker.returncode for worker in workers) == [0, 2]
        assert any(b"in the study already" in errors for _, errors in said)
        with Study.open(tmp_path / "s.db") as study:
            assert study.counts()["ok"] == 300

    @pytest.mark.parametrize(
        ("content", "sentence"),
        [
            ("theta_0,return\n1,2\n", "has no column 'theta_1'"),
            ("theta_0,theta_1,retrun\n1,2,3\n", "Did you mean 'retrun'"),
            ("theta_0,theta_1,return\n1,2\n", "line 2 of .* has 2 cells, the first 3"),
            ("theta_0,theta_1,return\n1,x,3\n", "line 2 of .*theta_1 must be a number, got 'x'"),
            ("theta_0,theta_1,return\n1,2,nan\n", "none of the samples has a finite return"),
            (
                "theta_0,theta_1,return,mean_0,mean_1,std_0,std_1\n1,2,3,,,,\n",
                "none of the samples has a finite return and says what drew it",
            ),
            ("theta_0,theta_1,return,mean_0,mean_1\n1,2,3,0,0\n", "but not both"),
            ("", "has no column 'theta_0'"),
        ],
    )
    def test_wrong_files_change_nothing(self, tmp_path, content, sentence):
        (tmp_path / "s.csv").write_text(content)
        with Study.open(tmp_path / "new.db", dim=2) as study:
            with pytest.raises(ValueError, match=sentence):
                import_samples(study.opened, read_samples(study.opened, tmp_path / "s.csv"))
            assert study.counts() == {"pending": 0, "ok": 0, "failed": 0}
            assert study.store._file.rows("SELECT COUNT(*) FROM proposals") == [(1,)]

    def test_numpy_files_with_code_in_them_are_refused(self, tmp_path):
        class Evil:
            def __reduce__(self):
                return (print, ("owned",))

        np.savez(tmp_path / "s.npz", theta=np.array([Evil()], object), returns=np.ones(1))
        with Study.open(tmp_path / "new.db", dim=1) as study:
            with pytest.raises(ValueError, match=NO_ARRAYS):
                read_samples(study.opened, tmp_path / "s.npz")
            np.save(tmp_path / "array.npy", np.ones(3))
            (tmp_path / "array.npy").rename(tmp_path / "array.npz")
            (tmp_path / "broken.npz").write_bytes(b"PK\3\4 and then nothing")
            for name in ("array.npz", "broken.npz"):
                with pytest.raises(ValueError, match=rf"{name} cannot be read as NumPy arrays"):
                    read_samples(study.opened, tmp_path / name)
            words = np.array(["a", "b"] * 40)
            with pytest.raises(ValueError, match="must be an array of real numbers") as caught:
                study.import_samples(words[:, None], np.ones(80))
            assert "\n" not in str(caught.value)
            with pytest.raises(ValueError, match="mean of samples must be an array"):
                study.import_samples(np.ones((2, 1)), np.ones(2), mean=["x"], std=["y"])
            np.savez(tmp_path / "t.npz", x=np.ones(3))
            with pytest.raises(ValueError, match="must hold theta and returns; it has x"):
                read_samples(study.opened, tmp_path / "t.npz")

    def test_other_ranges_are_another_space(self, tmp_path):
        narrow = {**PARAMS, "damping": (0, 3)}
        with (
            Study.open(tmp_path / "a.db", params=PARAMS, batch=4, std=30.0) as a,
            Study.open(tmp_path / "b.db", params=narrow) as b,
            Study.open(tmp_path / "c.db", params=PARAMS, std=30.0) as c,
        ):
            for trial in a.ask(9):
                a.tell(trial.id, float(trial.id))
            with pytest.raises(ValueError, match=r"damping \(0 to 3, linear\): they do not match"):
                read_samples(b.opened, a.store.path)
            import_samples(c.opened, read_samples(c.opened, a.store.path))
            thetas = [s.store._file.rows("SELECT theta FROM asked ORDER BY id") for s in (a, c)]
            assert thetas[0] == thetas[1]  # to the last bit, even at the bounds

    def test_studies_that_do_not_match(self, old, tmp_path):
        wide = Study.open(tmp_path / "new.db", dim=3)
        with wide, pytest.raises(ValueError, match=r"has 2 parameters, this study 3 parameters"):
            read_samples(wide.opened, old.store.path)
        mirrored = Study.open(tmp_path / "mirror.db", dim=2, method="pgpe", mirrored=True)
        with mirrored, pytest.raises(ValueError, match="takes no samples from elsewhere"):
            mirrored.import_samples([[1.0, 2.0], [2.0, 3.0]], [1.0, 2.0])


class TestFork:
    def test_it_starts_from_all_results_with_their_densities(self, old, tmp_path):
        with old.fork(tmp_path / "new.db", method="iw-pgpe-ob", batch=3, epsilon=0.2) as new:
            np.testing.assert_array_equal(new.mean, old.mean)
            np.testing.assert_array_equal(new.std, old.std)
            assert new.method.name == "iw-pgpe-ob"
            assert (new.batch, new.method.epsilon) == (3, 0.2)
            assert new.counts()["ok"] == old.counts()["ok"]
            assert new.counts()["failed"] == old.counts()["failed"]
            here, there = new.evaluate([0.2, 0.0], 0.5), old.evaluate([0.2, 0.0], 0.5)
            assert here.mean == pytest.approx(there.mean, rel=1e-9)
            last = old.store._file.rows("SELECT MAX(id) FROM asked")[0][0]
            trials = new.ask(3)
            assert [trial.id for trial in trials] == [last + 1, last + 2, last + 3]
            for trial in trials:
                new.tell(trial.id, value_of(trial.theta))
            (row,) = new.history()
            theta, returns, (means, stds), index = by_hand(old)
            n = len(means)
            want = recoup.estimate(
                np.vstack([theta, [t.theta for t in trials]]),
                np.append(returns, [value_of(t.theta) for t in trials]),
                proposals=(np.vstack([means, old.mean]), np.vstack([stds, old.std])),
                proposal=np.append(index, [n, n, n]),
                target=(old.mean, old.std),
                weighting="own",
            )
            assert row["samples"] == np.isfinite(returns).sum() + 3
            assert row["ess"] == pytest.approx(float(want.ess), rel=1e-8)

    def test_another_start(self, old, tmp_path):
        with old.fork(tmp_path / "new.db", mean=[0.1, 0.2], std=0.3, seed=5) as new:
            np.testing.assert_allclose(new.mean, [0.1, 0.2])
            np.testing.assert_allclose(new.std, [0.3, 0.3])
            assert new.method == old.method
            assert new.settings["seed"] == 5

    def test_a_run_can_be_forked_and_goes_on_by_hand(self, tmp_path):
        run = recoup.train("toy", "mis-pgpe-ob", iterations=3, out=tmp_path / "run")
        with run.study as study, study.fork(tmp_path / "new.db") as new:
            np.testing.assert_array_equal(new.mean, run.mean)
            assert new.ask()[0].id == 31
            assert new.counts()["ok"] == 30

    def test_trajectories_are_forked_too(self, tmp_path):
        episode = {"horizon": 3, "actions": 1, "discount": 0.9}
        with Study.open(tmp_path / "a.db", dim=2, method="r3", batch=4, **episode) as study:
            rng = np.random.default_rng(0)
            for trial in study.ask(8):
                features = rng.standard_normal((3, 2))
                actions = features @ trial.theta[:, None] + rng.standard_normal((3, 1))
                whole = {"features": features, "actions": actions, "rewards": -(actions[:, 0] ** 2)}
                study.tell(trial.id, trajectory=whole)
            with study.fork(tmp_path / "b.db", method="iw-reinforce-ob") as new:
                here, there = new.evaluate(0.1, 0.9), study.evaluate(0.1, 0.9)
                assert here.mean == pytest.approx(there.mean, rel=1e-9)
            with pytest.raises(ValueError, match="one explores in parameters"):
                study.fork(tmp_path / "c.db", method="pgpe")
            assert not (tmp_path / "c.db").exists()

    def test_the_parameters_stay_and_so_do_trials_that_wait(self, old, tmp_path):
        with pytest.raises(ValueError, match="keeps the parameters of its study: leave out dim"):
            old.fork(tmp_path / "new.db", dim=3)
        waiting = old.ask(3)
        with old.fork(tmp_path / "new.db") as new:
            assert new.pending() == []
            assert new.ask()[0].id == waiting[-1].id + 1

    def test_what_stays_behind_is_said(self, old, tmp_path):
        """Trials that wait and thetas in line; none that was cancelled."""

        def said(name):
            with old.fork(tmp_path / name) as new:
                return forked_words(new.opened, "old.db")

        assert "stay" not in said("a.db")
        old.ask(1)
        assert said("b.db").endswith("; 1 that waits for a result stays in old.db")
        old.cancel(old.ask(1)[0].id)
        for theta in ([0.1, 0.2], [0.3, 0.4]):
            old.enqueue(theta)
        assert said("c.db").endswith("; 1 that waits for a result and 2 in line stay in old.db")
        old.tell(old.pending()[0].id, 1.0)
        assert said("d.db").endswith("; 2 in line stay in old.db")

    def test_it_is_of_one_state_whatever_others_tell_meanwhile(self, old, tmp_path, monkeypatch):
        """Its settings, its start and its results: another process moves in the middle."""
        method_of = forking.method_of

        def moved_meanwhile(*args):
            with Study.open(tmp_path / "old.db") as other:
                fill(other, 2)
            return method_of(*args)

        mean, trials = old.mean, len(old)
        monkeypatch.setattr(forking, "method_of", moved_meanwhile)
        with old.fork(tmp_path / "new.db") as new:
            np.testing.assert_array_equal(new.settings["mean"], mean)
            np.testing.assert_array_equal(new.mean, mean)
            assert len(new) == trials < len(old)

    def test_an_existing_file_is_left_alone(self, old, tmp_path):
        (tmp_path / "new.db").write_text("mine")
        with pytest.raises(ValueError, match=EXISTS):
            old.fork(tmp_path / "new.db")
        assert (tmp_path / "new.db").read_text() == "mine"


class TestReplay:
    def test_it_is_of_one_state_whatever_others_amend_meanwhile(self, old, tmp_path, monkeypatch):
        make, before, seen = moves.make_move, old.replay("pgpe-ob"), []

        def amended_meanwhile(*args):
            if not seen:
                with Study.open(tmp_path / "old.db") as other:
                    seen.append(other)
                    monkeypatch.setattr(moves, "make_move", make)
                    other.amend(40, -99.0)
            return make(*args)

        monkeypatch.setattr(moves, "make_move", amended_meanwhile)
        again = old.replay("pgpe-ob")
        assert seen
        for one, other in zip(before, again, strict=True):
            np.testing.assert_array_equal(one.mean, other.mean)
        assert not np.array_equal(old.replay("pgpe-ob")[-1].mean, before[-1].mean)

    @pytest.mark.parametrize(
        "settings",
        [{}, {"window": 3}, {"method": "mis-pgpe-ob"}, {"method": "iw-pgpe-ob", "window": 3}],
    )
    def test_its_own_method_goes_where_it_went(self, tmp_path, settings):
        with Study.open(tmp_path / "s.db", dim=2, batch=4, seed=7, **settings) as study:
            fill(study, 9)
            marks = study.distributions()
            for row in study.replay():
                np.testing.assert_array_equal(row.mean, marks[row.move][0])
                np.testing.assert_array_equal(row.std, marks[row.move][1])

    def test_another_method_moves_from_its_own_place(self, old):
        """Its second move against `estimate` at the distribution that it had come to itself."""
        first, second, *_ = old.replay("niw-pgpe-ob", epsilon=0.3)
        theta, returns, proposals, index = by_hand(old)
        n = second.results
        want = recoup.estimate(
            theta[:n],
            returns[:n],
            proposals=proposals,
            proposal=index[:n],
            target=(first.mean, first.std),
            weighting="none",
        )
        assert second.info["objective"] == pytest.approx(float(want.objective), rel=1e-9)
        gradient = np.concatenate([want.mean_gradient, want.std_gradient])
        step = np.concatenate([second.mean - first.mean, second.std - first.std])
        np.testing.assert_allclose(step, 0.3 * gradient / np.linalg.norm(gradient), rtol=1e-7)

    def test_what_cannot_be_replayed(self, old, tmp_path):
        with pytest.raises(ValueError, match="explored in parameters: r3 cannot use its results"):
            old.replay("r3")
        with pytest.raises(ValueError, match="Did you mean 'epsilon'"):
            old.replay("pgpe", epsilonn=2)
        with pytest.raises(ValueError, match="epsilon must be a number, got 'abc'"):
            old.replay(epsilon="abc")
        before = old.store._file.rows("SELECT COUNT(*) FROM moves")
        old.replay("pgpe")
        assert old.store._file.rows("SELECT COUNT(*) FROM moves") == before


def test_results_from_elsewhere_have_not_chosen_the_start(tmp_path):
    """A study that never moved said that the same results chose its distribution."""
    params = {"kp": (1, 200, "log"), "kd": (0, 5)}
    with Study.open(tmp_path / "f.db", params=params, batch=4) as source:
        for _ in range(12):
            trial = source.ask()[0]
            value = -(np.log(trial.params["kp"] / 60) ** 2) - (trial.params["kd"] - 0.7) ** 2
            source.tell(trial.id, value)
        assert "the same results chose" in source.evaluate().words
        source.export(tmp_path / "f.csv")
        with source.fork(tmp_path / "g.db") as fork:
            assert "the same results chose" in fork.evaluate().words
    with Study.open(tmp_path / "j.db", params=params, batch=4) as study:
        import_samples(study.opened, read_samples(study.opened, tmp_path / "f.csv"))
        assert "chose" not in study.evaluate().words

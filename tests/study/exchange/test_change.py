"""Parameters that change: renamed, with other bounds, added, frozen, whole; and tables of them."""

import csv

import numpy as np
import pytest
from program import recoup as program
from scipy import integrate, stats
from sentences import NOTHING_IMPORTED

import recoup
from recoup.checks import InputError
from recoup.core.families.gaussian import Diagonal, diagonal_gaussian
from recoup.core.plain.densities import Proposals
from recoup.engine.ways import BOX
from recoup.study.care.verify import check
from recoup.study.exchange.fork import forked_words
from recoup.study.exchange.read import read_samples
from recoup.study.exchange.samples import import_samples
from recoup.study.space.charts import chart, moved
from recoup.study.space.parameters import (
    Parameter,
    log_slope,
    parameter,
    spread_out,
    to_latent,
    to_user,
)

OLD = {"k": (10, 200, "log"), "d": (0, 1), "offset": None}
NEW = {"k": (4, 500, "log"), "d": (-0.5, 1.5)}
BOTH = ["mis-pgpe-ob", "recoup"]
OPTIMUM = (60.0, 0.7, 0.3)


def robot(theta):
    k, d, offset = np.moveaxis(np.asarray(theta), -1, 0)
    return -2 * np.log(k / 60) ** 2 - 4 * (d - 0.7) ** 2 - 0.5 * (offset - 0.3) ** 2


def told(path, batches=6, seed=0, function=robot, **settings):
    """A study after some batches; its last result is pending."""
    given = {"params": OLD, "batch": 8, "seed": seed, "method": "mis-pgpe-ob", **settings}
    study = recoup.Study.open(path, **given)
    rng = np.random.default_rng(seed)
    go_on(study, batches, rng, function)
    return study


def go_on(study, batches, rng, function=robot):
    for _ in range(batches):
        trials = study.ask(study.batch)
        values = [float(function(t.theta) + 0.1 * rng.normal()) for t in trials]
        study.tell([t.id for t in trials], values)


def log_density(rho, theta):
    covariance = np.diag(rho.std**2) if isinstance(rho, Diagonal) else rho.factor @ rho.factor.T
    return stats.multivariate_normal(rho.mean, covariance).logpdf(theta)


class TestCharts:
    HERE = (Parameter("a", 2, 30, "log"), Parameter("b", -1, 3), Parameter("n", 1, 9, "int"))
    THERE = (Parameter("a", 1, 99, "log"), Parameter("b", -2, 8), Parameter("n", 0, 20, "int"))

    def test_densities_integrate_to_one_in_the_new_coordinate(self):
        """A Gaussian under the old bounds, over the new latent line, by quadrature."""
        for here, there in zip(self.THERE, self.HERE, strict=True):
            rho = Diagonal(np.array([[0.4]]), np.array([[1.3]]))
            reference = Diagonal(np.zeros(1), np.ones(1))
            proposals = Proposals(diagonal_gaussian(), rho, reference, [chart([here], [there])])

            def density(z, proposals=proposals):
                theta = np.array([[z]])
                return np.exp(proposals.drawn_density(0, theta)[0]) * stats.norm.pdf(z)

            total, _ = integrate.quad(density, -14, 14, limit=400, epsabs=1e-10)
            assert total == pytest.approx(1, abs=1e-6)

    def test_slopes_are_those_of_a_difference(self):
        z, h = np.array([-1.7, 0.3, 2.2]), 1e-6
        for p in (*self.HERE, Parameter("u"), Parameter("v", scale="log")):
            column = z[:, None]
            up, down = (spread_out([p], column + side * h) for side in (1, -1))
            want = np.log((up - down) / (2 * h))
            np.testing.assert_allclose(log_slope([p], column), want, rtol=1e-6, atol=1e-8)

    def test_values_stay_what_they_are(self):
        theta = np.random.default_rng(0).normal(size=(50, 3))
        there, inside = moved(self.HERE, self.THERE, theta)
        assert inside.all()
        np.testing.assert_allclose(to_user(self.THERE, there), to_user(self.HERE, theta), rtol=1e-9)
        back, inside = moved(self.THERE, self.HERE, there)
        assert inside.all()
        np.testing.assert_allclose(back, theta, atol=1e-8)

    def test_what_lies_outside_is_said_to(self):
        theta = np.array([[0.0, 0.0, -1.0], [9.0, 0.0, -1.0], [0.0, 0.0, 3.0]])
        there, inside = moved(self.THERE, self.HERE, theta)
        assert inside.tolist() == [True, False, False]
        assert (there[1:] == 0).all()

    def test_bounds_that_stay_keep_every_bit(self):
        theta = np.random.default_rng(0).normal(size=(50, 3)) * 9
        there, _ = moved(self.HERE, (*self.HERE[:2], self.THERE[2]), theta)
        np.testing.assert_array_equal(there[:, :2], theta[:, :2])


class TestOtherBounds:
    def test_the_best_is_one_within_them(self, tmp_path):
        """What `best` names can be asked for, and none of the others is counted."""
        with told(tmp_path / "a.db", function=lambda theta: float(theta[0])) as study:
            lowest = min(trial.theta[0] for trial in study.trials())
            high = float(np.median([trial.theta[0] for trial in study.trials()]))
            params = {"k": (lowest / 2, high, "log")}
            study.fork(tmp_path / "b.db", params=params).close()
            study.fork(tmp_path / "c.db", params={"k": (lowest / 2, lowest * 0.99, "log")}).close()
        with recoup.Study.open(tmp_path / "b.db") as fork:
            inside = [trial for trial in fork.trials() if trial.theta[0] <= high]
            assert 0 < len(inside) < len(fork.trials())
            assert fork.best[1] == max(trial.value for trial in inside)
            assert fork.best[0].theta[0] <= high
            fork.enqueue(fork.best[0].params)
            out = len(fork.trials()) - len(inside)
            assert fork.diagnostics()["outside"] == out
        left = (
            f"best of {len(inside)} noisy returns: expect less of it ({out} outside of the bounds"
        )
        for command in ("best", "show"):
            printed = program("study", command, tmp_path / "b.db").stdout
            assert left in " ".join(printed.split())
        assert "none within the bounds yet" in program("study", "show", tmp_path / "c.db").stdout
        wrong = program("study", "best", tmp_path / "c.db").stderr
        assert "no best trial: none within the bounds yet" in " ".join(wrong.split())

    def test_an_evaluation_is_the_one_by_plain_weights(self, tmp_path):
        """Written out with scipy: densities in the user's units, where bounds do not matter."""
        with told(tmp_path / "a.db") as study, study.fork(tmp_path / "b.db", params=NEW) as wide:
            found = wide.evaluate()
            rows = [(t, r) for t, r in study.store.trials() if r is not None]
            u = np.array([study.opened.in_units(t.theta) for t, _ in rows])
            y = np.array([r.told.value for _, r in rows])
            blocks = {t.proposal: study.store.proposal(t.proposal).numbers for t, _ in rows}
            counts = {p: sum(t.proposal == p for t, _ in rows) for p in blocks}
            mixture = sum(
                counts[p] * np.exp(_log_density(study.parameters, u, b)) for p, b in blocks.items()
            )
            target = np.exp(_log_density(wide.parameters, u, wide.store.newest().numbers))
            w = len(y) * target / mixture
            assert found.ess == pytest.approx(w.sum() ** 2 / (w**2).sum(), rel=1e-6)
            from recoup.study.moves.study_move import judge

            judged = judge(wide.method, wide.opened.ledger(), len(y), wide.store.newest().numbers)
            np.testing.assert_allclose(judged.weights, w, rtol=1e-6)

    def test_the_mean_weight_is_one_on_average(self, tmp_path):
        """Over 40 studies, within four standard errors; without the volumes it would be far off."""
        means = []
        for seed in range(40):
            study = told(tmp_path / f"{seed}.db", 3, seed)
            wide = study.fork(tmp_path / f"wide-{seed}.db", params={"k": (10, 2000, "log")})
            ledger = wide.opened.ledger()
            from recoup.study.moves.study_move import judge

            found = judge(wide.method, ledger, 24, wide.store.newest().numbers)
            means.append(found.weights.mean())
            study.close(), wide.close()
        error = np.std(means, ddof=1) / len(means) ** 0.5
        assert abs(np.mean(means) - 1) < 4 * error
        assert error < 0.1

    @pytest.mark.parametrize("method", [*BOTH, "iw-pgpe-ob", "tiw-pgpe-ob", "cem", "reps"])
    def test_the_search_goes_on_and_check_makes_its_moves_again(self, tmp_path, method):
        with told(tmp_path / "a.db", method=method) as study:
            wide = study.fork(tmp_path / "b.db", params=NEW)
        go_on(wide, 3, np.random.default_rng(1))
        assert wide.diagnostics()["moves"] == 3
        assert wide.counts()["ok"] == 48 + 24
        wide.close()
        from recoup.study.care.verify import check

        assert all(finding.sound for finding in check(tmp_path / "b.db", lambda done, of: None))

    @pytest.mark.parametrize("method", BOTH)
    def test_narrower_bounds_leave_what_lies_outside_without_weight(self, tmp_path, method):
        with told(tmp_path / "a.db", method=method) as study:
            values = np.array([t.theta[0] for t in study.trials()])
            narrow = study.fork(tmp_path / "b.db", params={"k": (30, 90, "log")})
            out = int(np.sum((values < 30) | (values > 90)))
            assert out > 3
            assert narrow.store.events("forked")[-1].content["outside"] == out
            from recoup.study.moves.study_move import judge

            found = judge(narrow.method, narrow.opened.ledger(), 48, narrow.store.newest().numbers)
            assert np.sum(found.weights == 0) == out
            assert np.isfinite(narrow.recommend().expected)
            go_on(narrow, 1, np.random.default_rng(0))
            assert np.isfinite(narrow.mean).all()
            narrow.close()

    @pytest.mark.parametrize("method", BOTH)
    def test_a_fork_of_a_fork_knows_all_three(self, tmp_path, method):
        with (
            told(tmp_path / "a.db", 3, method=method) as a,
            a.fork(tmp_path / "b.db", params=NEW) as b,
        ):
            go_on(b, 2, np.random.default_rng(2))
            with b.fork(tmp_path / "c.db", params={"k": (1, 999, "log")}) as c:
                assert len(c.opened.charts) == 2
                one = [t.theta for t in b.trials()]
                other = [t.theta for t in c.trials()]
                np.testing.assert_allclose(one, other, rtol=1e-8)
                go_on(c, 1, np.random.default_rng(3))
                mine = c.evaluate(mean=b.opened.in_units(b.mean), std=0.3)
                assert np.isfinite(mine.ess)

    @pytest.mark.parametrize(
        ("settings", "words"),
        [({"family": "full"}, "only names"), ({"update": "adam"}, "update='adam'")],
    )
    def test_what_cannot_be_exact_is_refused_and_says_why(self, tmp_path, settings, words):
        with told(tmp_path / "a.db", 2, **settings) as study:
            with pytest.raises(InputError, match=words):
                study.fork(tmp_path / "b.db", params=NEW)
            assert not (tmp_path / "b.db").exists()
            study.fork(tmp_path / "c.db", rename={"k": "stiffness"}).close()

    @pytest.mark.parametrize("method", BOTH)
    def test_what_was_outside_comes_back_with_the_bounds(self, tmp_path, method):
        """A value is never that of a bound where it was rolled out elsewhere."""
        with told(tmp_path / "a.db", method=method) as a:
            values = [t.theta for t in a.trials()]
            with a.fork(tmp_path / "b.db", params={"k": (30, 90, "log")}) as b:
                np.testing.assert_array_equal([t.theta for t in b.trials()], values)
                with b.fork(tmp_path / "c.db", params={"k": (10, 200, "log")}) as c:
                    np.testing.assert_array_equal([t.theta for t in c.trials()], values)
                    assert c.store.events("forked")[-1].content["outside"] == 0
                    numbers = [x.evaluate(a.mean_policy, 0.5)[:3] for x in (a, c)]
                    np.testing.assert_allclose(*numbers, rtol=1e-6)
                added = {"x": {"low": 0, "high": 1, "was": 0.5}}
                with b.fork(tmp_path / "d.db", params=added) as d:
                    inside = [(v[0] >= 30) & (v[0] <= 90) for v in values]
                    assert len(d) == sum(inside)

    @pytest.mark.parametrize("method", BOTH)
    def test_where_all_lie_outside_that_is_said(self, tmp_path, method):
        with told(tmp_path / "a.db", 2, method=method) as a:
            b = a.fork(tmp_path / "b.db", params={"k": (500, 900, "log")})
        with b, pytest.raises(InputError, match="lie outside of its bounds"):
            b.recommend()
        from recoup.report.study_page import write_study_report

        assert write_study_report(tmp_path / "b.db").exists()

    def test_large_values_without_bounds_are_not_outside(self, tmp_path):
        params = {"a": (0, 1), "b": None}
        start = {"mean": {"a": 0.5, "b": 300.0}, "std": 0.5}
        with (
            told(
                tmp_path / "a.db",
                3,
                params=params,
                function=lambda t: -((t[..., 1] - 301) ** 2),
                **start,
            ) as a,
            a.fork(tmp_path / "b.db", params={"a": (0, 2)}) as b,
        ):
            assert b.evaluate().ess > 5
            assert np.isfinite(b.recommend().expected)

    @pytest.mark.parametrize("bounds", [(10, 2e5, "log"), (1e-3, 200, "log")])
    def test_a_mean_inside_the_new_bounds_stays_where_it_is(self, tmp_path, bounds):
        with told(tmp_path / "a.db", 3) as a, a.fork(tmp_path / "b.db", params={"k": bounds}) as b:
            assert b.mean_policy["k"] == pytest.approx(a.mean_policy["k"])
            steps = [
                np.log(s.opened.in_units(s.mean + 1e-4 * s.std)[0] / s.mean_policy["k"])
                for s in (a, b)
            ]
            assert steps[0] == pytest.approx(steps[1], rel=1e-3)  # as wide as it was, in its units

    @pytest.mark.parametrize("method", BOTH)
    def test_a_mean_outside_of_them_starts_inside_and_can_be_searched(self, tmp_path, method):
        with (
            told(tmp_path / "a.db", 3, method=method) as a,
            a.fork(tmp_path / "b.db", params={"d": (0, 0.2)}) as b,
        ):
            assert 0.1 < b.mean_policy["d"] < 0.19
            assert b.std[1] <= 1
            assert len({round(t.params["d"], 3) for t in b.ask(8)}) > 4

    def test_what_cannot_weigh_other_bounds_is_refused_in_the_second_fork_too(self, tmp_path):
        with told(tmp_path / "a.db", 2) as a, a.fork(tmp_path / "b.db", params=NEW) as b:
            with pytest.raises(InputError, match="update='adam'"):
                b.fork(tmp_path / "c.db", update="adam")
            b.fork(tmp_path / "d.db", batch=4).close()

    @pytest.mark.parametrize("family", ["diagonal:99", "diagonal:-1", "diagonal:²", "diagonal:"])
    def test_a_forged_chart_is_damage(self, tmp_path, family):
        import sqlite3

        from recoup.store.schema import checksum

        with told(tmp_path / "a.db", 2) as a:
            a.fork(tmp_path / "b.db", params=NEW).close()
        connection = sqlite3.connect(tmp_path / "b.db")
        (row,) = connection.execute("SELECT * FROM proposals WHERE id = 1").fetchall()
        forged = (row[0], row[1], family, row[3])
        connection.execute("DELETE FROM proposals WHERE id = 1")
        content = (*forged, checksum("proposals", forged))
        connection.execute("INSERT INTO proposals VALUES (?, ?, ?, ?, ?)", content)
        connection.commit()
        connection.close()
        with recoup.Study.open(tmp_path / "b.db") as b:
            for call in (b.evaluate, b.recommend, b.trials, lambda: b.fork(tmp_path / "c.db")):
                with pytest.raises(InputError):
                    call()
        assert not (tmp_path / "c.db").exists()


def _said_of(study):
    """The trials of a study as its file has them, and what drew them."""
    drew = {None: (None, None)}
    for number, one in study.store.proposals().items():
        drew[number] = (one.family, one.numbers.tolist())
    return [
        (t.id, t.kind, t.theta.tolist(), *drew[t.proposal], r.told) for t, r in study.store.trials()
    ]


def _log_density(parameters, u, block):
    """Of values `[n, D]` in the user's units, by scipy and the slope of the transform."""
    z, dim = to_latent(parameters, u), u.shape[1]
    gaussian = stats.norm.logpdf(z, block[:dim], block[dim:])
    return np.sum(gaussian - log_slope(parameters, z), axis=1)


class TestNamesAndDimensions:
    @pytest.mark.parametrize("method", BOTH)
    def test_a_new_name_changes_no_number(self, tmp_path, method):
        with told(tmp_path / "a.db", method=method) as study:
            other = study.fork(tmp_path / "b.db", rename={"k": "stiffness"})
            with other:
                assert other.names == ("stiffness", "d", "offset")
                np.testing.assert_array_equal(other.mean, study.mean)
                numbers = [x.evaluate()[:5] for x in (other, study)]  # but for rounding
                np.testing.assert_allclose(*numbers, rtol=1e-9)

    @pytest.mark.parametrize("method", BOTH)
    def test_a_new_parameter_stands_where_it_was(self, tmp_path, method):
        with told(tmp_path / "a.db", method=method) as study:
            added = {"friction": {"low": 0, "high": 1, "was": 0.3}}
            with study.fork(tmp_path / "b.db", params=added) as more:
                assert [t.theta[3] for t in more.trials()] == pytest.approx([0.3] * 48)
                assert more.mean_policy["friction"] == pytest.approx(0.3)
                assert more.store.events("forked")[-1].content["unweighed"] == 48
                assert more.store.counters().counted == 0  # no move is made of them
                assert more.best[1] == study.best[1]
                assert np.isfinite(more.recommend().expected)
                trials = more.ask(8)
                more.tell([t.id for t in trials], [float(robot(t.theta[:3])) for t in trials])
                assert more.diagnostics()["moves"] == 1

    @pytest.mark.parametrize("method", BOTH)
    def test_a_frozen_parameter_is_searched_no_more(self, tmp_path, method):
        with told(tmp_path / "a.db", method=method) as study:
            study.enqueue({"k": 50, "d": 0.5, "offset": 0.25})
            study.tell(study.ask()[0].id, -1.0)
            with study.fork(tmp_path / "b.db", freeze={"offset": 0.25}) as less:
                assert less.names == ("k", "d")
                found = less.store.events("forked")[-1].content
                assert found["near"] + found["left_out"] == 48
                assert found["unweighed"] == 0
                np.testing.assert_array_equal(less.mean, study.mean[:2])
                (own,) = (trial for trial in less.trials() if trial.kind == "own")
                np.testing.assert_allclose(own.theta, [50, 0.5])

    @pytest.mark.parametrize("method", BOTH)
    def test_results_near_a_frozen_value_count_with_the_densities_that_drew_the_rest(
        self, tmp_path, method
    ):
        with told(tmp_path / "a.db", method=method) as study:
            z, std = study.mean[2], study.std[2]
            with study.fork(tmp_path / "b.db", freeze=["offset"]) as less:
                rows = list(study.store.trials())
                near = {t.id for t, _ in rows if abs(t.theta[2] - z) <= 0.5 * std}
                assert 5 < len(near) < 48
                assert {trial.id for trial in less} == near
                old = {t.id: t for t, _ in rows}
                for trial, _ in less.store.trials():
                    before = old[trial.id]
                    np.testing.assert_array_equal(trial.theta, before.theta[:2])
                    drew = study.opened.rho(study.store.proposal(before.proposal).numbers)
                    left = less.opened.rho(less.store.proposal(trial.proposal).numbers)
                    joint, rest = (
                        log_density(rho, t)
                        for rho, t in zip((drew, left), (before.theta, trial.theta), strict=True)
                    )
                    alone = stats.norm(drew.mean[2], drew.std[2]).logpdf(before.theta[2])
                    assert joint - alone == pytest.approx(rest)
                assert less.store.counters().counted == len(near)
                assert np.isfinite(less.evaluate().ess)
                go_on(less, 1, np.random.default_rng(1), lambda t: robot([*t, 0.3]))
                assert less.history()[0]["samples"] == len(near) + 8
                words = forked_words(less.opened, "a.db")
                assert f"{len(near)} that were drawn stood near what is frozen" in words
                assert f"{48 - len(near)} stood elsewhere and are left out" in words
            assert all(verdict.sound for verdict in check(tmp_path / "b.db"))

    def test_what_stood_near_a_frozen_value_is_said_once_it_is_searched_again(self, tmp_path):
        params = {"kp": (1, 200, "log"), "kd": (0, 5)}
        with recoup.Study.open(
            tmp_path / "a.db", params=params, batch=6, mean={"kp": 60, "kd": 1}
        ) as study:
            for trial in study.ask(12):
                study.tell(trial.id, -abs(trial.params["kp"] - 60))
            study.enqueue({"kp": 60, "kd": 1})
            study.tell(study.ask()[0].id, 0.0)
            study.fork(tmp_path / "b.db", freeze={"kp": 60}).close()
        with recoup.Study.open(tmp_path / "b.db") as less:
            near = less.counts()["ok"] - 1  # the last stood at it
            assert near > 0
            study = less.fork(tmp_path / "c.db", batch=4)
            less.tell(less.ask()[0].id, 0.0)
        with study as again:  # which forks between keep
            again.fork(tmp_path / "d.db", params={"kp": (1, 200, "log")}).close()
        with recoup.Study.open(tmp_path / "d.db") as more:
            said = forked_words(more.opened, "c.db")
            assert f"{near} of them stood near the value that was frozen, not at it" in said
            with more.fork(tmp_path / "e.db") as last:
                assert "stood near" not in forked_words(last.opened, "d.db")

    @pytest.mark.parametrize(
        ("params", "rename"),
        [
            (NEW, {"k": "k"}),
            ({"stiffness": (30, 90, "log")}, {"k": "stiffness"}),
            ({"d": (0, 2), "friction": {"low": 0, "high": 1, "was": 0.3}}, {}),
        ],
    )
    @pytest.mark.parametrize("wider_first", [False, True])
    @pytest.mark.parametrize("method", BOTH)
    def test_one_fork_that_freezes_and_changes_bounds_is_two(
        self, tmp_path, params, rename, wider_first, method
    ):
        with told(tmp_path / "a.db", 5, seed=1, method=method) as study:
            study.tell(study.ask(1, at="mean")[0].id, 1.0)
            if wider_first:
                study = study.fork(tmp_path / "wide.db", params={"d": (-1, 1)})
                go_on(study, 2, np.random.default_rng(1))
            freeze = {"offset": study.mean_policy["offset"] + 0.1 * study.std[2]}
            with (
                study.fork(tmp_path / "b.db", freeze=freeze) as less,
                less.fork(tmp_path / "two.db", params=params, rename=rename) as two,
                study.fork(tmp_path / "one.db", params=params, rename=rename, freeze=freeze) as one,
            ):
                found, first, second = (
                    x.store.events("forked")[-1].content for x in (one, less, two)
                )
                assert _said_of(one) == _said_of(two)
                assert one.store.counters() == two.store.counters()
                assert one.opened.charts == two.opened.charts
                assert one.frozen == two.frozen
                np.testing.assert_array_equal(
                    one.store.newest().numbers, two.store.newest().numbers
                )
                counted = one.store.counters().counted
                assert counted == found["near"] + found["outside"]
                assert counted > 3 or "friction" in params
                left = first["left_out"] + second["left_out"]
                assert (found["left_out"], found["outside"]) == (left, second["outside"])
                assert len(one) > 8
                go_on(one, 1, np.random.default_rng(2), lambda t: robot([t[0], t[1], 0.3]))
                assert len(one.history()) == 1
            study.close()
        assert all(verdict.sound for verdict in check(tmp_path / "one.db"))

    def test_trials_of_the_mean_are_of_another_mean_where_it_is_frozen_elsewhere(self, tmp_path):
        with told(tmp_path / "a.db") as study:
            study.tell(study.ask(1, at="mean")[0].id, 1.0)
            near = study.mean_policy["offset"] + 0.1 * study.std[2]
            for name, how, kind in (
                ("b.db", ["offset"], "mean"),
                ("c.db", {"offset": near}, "own"),
            ):
                with study.fork(tmp_path / name, freeze=how) as less:
                    (trial,) = (trial for trial in less if trial.value == 1.0)
                    assert trial.kind == kind

    def test_its_results_are_known_as_the_same_rollouts(self, tmp_path):
        """Of two such forks, one of before an amendment: none comes in twice."""
        with told(tmp_path / "a.db", 5) as study:
            freeze = {"offset": study.mean_policy["offset"]}
            with study.fork(tmp_path / "b.db", freeze=freeze) as before:
                last = [trial.id for trial in before][-1]
            study.amend(last, -9.0)
            with study.fork(tmp_path / "c.db", freeze=freeze) as less:
                coming = read_samples(less.opened, tmp_path / "b.db")
                with pytest.raises(InputError, match=NOTHING_IMPORTED):
                    import_samples(less.opened, coming)

    def test_a_whole_number_is_near_to_itself_alone(self, tmp_path):
        params = {"n": (0, 3, "int"), "x": None}
        with told(tmp_path / "a.db", 3, params=params, function=lambda t: -t[0] - t[1] ** 2) as a:
            at_one = [trial.id for trial in a if trial.params["n"] == 1]
            with a.fork(tmp_path / "b.db", freeze={"n": 1}) as b:
                assert [trial.id for trial in b] == at_one
                assert b.store.counters().counted == len(at_one) > 0

    def test_what_was_drawn_beyond_a_bound_was_near_to_a_value_at_it(self, tmp_path):
        """However far beyond: it was tried at the bound itself."""
        params = {"n": {"low": 0, "high": 1, "beyond": 0.2}, "x": None}
        how = {"params": params, "mean": {"n": 1.0}, "std": [3.0, 1.0], "method": "recoup"}
        with told(tmp_path / "a.db", 5, function=lambda t: -(t[1] ** 2), **how) as a:
            at_one = {trial.id for trial in a if trial.params["n"] == 1}
            far = {t.id for t in a.store.asked(at_one) if t.theta[0] > a.mean[0] + a.std[0]}
            assert len(far) > 3
            with a.fork(tmp_path / "b.db", freeze={"n": 1.0}) as b:
                assert far <= {trial.id for trial in b}
                assert "and are left out" in forked_words(b.opened, "a.db")
                go_on(b, 1, np.random.default_rng(0), lambda t: -float(t[0] ** 2))
                assert all(verdict.sound for verdict in check(b.store.path))

    @pytest.mark.parametrize("method", BOTH)
    def test_what_was_frozen_at_a_bound_is_searched_again_from_there(self, tmp_path, method):
        """As far beyond its bounds as the others are; and not from where no draw leaves it."""
        how = {"params": {"n": (0, 1), "x": (0, 1)}, "method": method}
        with told(tmp_path / "a.db", 2, function=lambda t: t[0] + t[1], **how) as a:
            a.fork(tmp_path / "b.db", freeze={"n": 1.0}).close()
        with (
            recoup.Study.open(tmp_path / "b.db") as b,
            b.fork(tmp_path / "c.db", params={"n": (0, 1)}) as c,
        ):
            assert len({p.beyond for p in c.opened.parameters}) == 1
            drawn = [trial.params["n"] for trial in c.ask(40)]
            assert max(drawn) - min(drawn) > 0.02
            assert len(set(drawn)) > 10

    def test_without_a_value_it_stays_at_the_mean(self, tmp_path):
        with told(tmp_path / "a.db", 1) as study:
            study.fork(tmp_path / "b.db", freeze=["offset"]).close()

    def test_the_value_stays_known(self, tmp_path):
        """In the fork itself: the mean of the old study moves on."""
        params = {"k": {"low": 1, "high": 9, "unit": "N/m"}, "n": (0, 4, "int"), "x": None}
        params |= {"grip": ["soft", "hard"], "y": None}
        with told(tmp_path / "a.db", 3, params=params, function=lambda t: -t[0]) as study:
            here = dict(study.mean_policy)
            freeze = {"n": None, "grip": "hard", "stiffness": None}
            how = {"freeze": freeze, "rename": {"k": "stiffness"}}
            with study.fork(tmp_path / "b.db", **how) as less:
                said = forked_words(less.opened, "a.db")
        at = {"n": here["n"], "grip": "hard", "stiffness": here["k"]}
        with recoup.Study.open(tmp_path / "b.db") as less:
            assert less.frozen == at
            assert isinstance(less.frozen["n"], int)
            assert "grip = hard, stiffness [N/m] = " in said
            go_on(less, 1, np.random.default_rng(0), lambda t: -(t[0] ** 2))
            now = less.snapshot()
            assert now.plain()["frozen"] == now.frozen == at
            assert less.recommend().plain()["frozen"] == less.recommend().frozen == at
            assert "grip = hard, stiffness [N/m] = " in less.recommend().words
            assert "belong to these parameters, and to every trial" in less.recommend().words
            less.export(tmp_path / "b.csv")
            with less.fork(tmp_path / "c.db", batch=4, freeze={"y": 0.5}) as fewer:
                assert fewer.frozen == {**at, "y": 0.5}
                with fewer.fork(tmp_path / "d.db", params={"grip": ["soft", "hard"]}) as again:
                    assert again.names == ("x", "grip")  # searched again, as it was so far
                    assert again.frozen.keys() == {"n", "stiffness", "y"}
                with fewer.fork(tmp_path / "k.db", params={"stiffness": (1, 9)}) as again:
                    assert again.opened.parameters[-1].unit == "N/m"  # with its unit
                bounds = {"low": 0, "high": 1}
                for one, wrong, how in (
                    (fewer, r"n = \d is frozen in .*: choose another", {"rename": {"x": "n"}}),
                    (less, "frozen and searched", {"freeze": {"y": 0}, "params": {"y": (0, 1)}}),
                    (fewer, "y = 0.5 is frozen", {"params": {"y": {**bounds, "was": 0.2}}}),
                ):
                    with pytest.raises(InputError, match=wrong):
                        one.fork(tmp_path / "e.db", **how)
        with (tmp_path / "b.csv").open(newline="") as file:
            (row, *_) = csv.DictReader(file)
        assert float(row["frozen_stiffness"]) == here["k"]
        assert row["frozen_grip"] == "hard"

    @pytest.mark.parametrize("name", ["b.db", "b.csv"])
    def test_samples_of_another_frozen_value_are_said_to_be(self, tmp_path, name):
        with told(tmp_path / "a.db") as study:
            study.fork(tmp_path / "b.db", freeze={"offset": 0.2}).close()
            study.fork(tmp_path / "c.db", freeze={"offset": 0.3}).close()
        with recoup.Study.open(tmp_path / "b.db") as other:
            go_on(other, 1, np.random.default_rng(0), lambda t: -t[1])
            other.export(tmp_path / "b.csv")
        with recoup.Study.open(tmp_path / "c.db") as here:
            found = import_samples(here.opened, read_samples(here.opened, tmp_path / name))
            said = "rolled out with offset = 0.2, here it is offset = 0.3: another policy."
            assert said in found.words
            assert here.frozen == {"offset": 0.3}

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"rename": {"x": "y"}}, "no parameter 'x' to rename"),
            ({"rename": {"k": "d"}}, "two parameters are called 'd'"),
            ({"freeze": {"x": 1.0}}, "no parameter 'x' to freeze"),
            ({"freeze": {"d": 7.0}}, "d must lie in 0..1"),
            ({"freeze": ["k", "d", "offset"]}, "at least one"),
            ({"params": {"friction": (0, 1)}}, "friction is new: say what it was"),
            ({"params": ["friction=0:1@2"]}, "friction must lie in"),
            ({"params": ["friction=0:1@x"]}, "after @ stands a value"),
            ({"params": ["k=5:90:log@7"]}, "k is there already"),
            ({"params": {"k": (1, 9, "int")}}, "cannot become whole"),
            ({"params": {"k": (9, 1)}}, "low must lie below high"),
            ({"params": 3}, "params must be a mapping"),
            ({"params": ["k=5:90:log", "k=5:80:log"]}, "two parameters are called 'k'"),
            ({"params": {"q": {"low": 0, "high": 1, "was": "x"}}}, "was must be a number"),
            ({"params": ["q=0:5:int@2.5"]}, "q must be a whole number in 0..5, got 2.5"),
            ({"freeze": {"k": "abc"}}, "k must be a number, got 'abc'"),
        ],
    )
    def test_bad_changes_get_a_sentence_and_make_no_file(self, tmp_path, change, words):
        with told(tmp_path / "a.db", 1) as study, pytest.raises(InputError, match=words):
            study.fork(tmp_path / "b.db", **change)
        assert not (tmp_path / "b.db").exists()

    @pytest.mark.parametrize("text", ["n:1:5", "n::int"])
    def test_a_forgotten_sign_is_no_name(self, text):
        with pytest.raises(InputError, match="--param takes NAME"):
            parameter(text)

    def test_parameters_without_names_cannot_be_changed(self, tmp_path):
        study = recoup.Study.open(tmp_path / "a.db", dim=2)
        with study, pytest.raises(InputError, match="have no names"):
            study.fork(tmp_path / "b.db", rename={"theta_0": "k"})


class TestWholeNumbers:
    PARAMS = {"n": (1, 5, "int"), "k": (1, 10)}  # noqa: RUF012

    def test_they_are_drawn_by_the_mass_of_the_latent_gaussian(self, tmp_path):
        with recoup.Study.open(tmp_path / "a.db", params=self.PARAMS, batch=4) as study:
            values = np.array([t.params["n"] for t in study.ask(2000)])
        assert {type(v) for v in values.tolist()} == {int}
        edges = to_latent([Parameter("n", 1, 5, "int")], np.arange(1.5, 5)[:, None])[:, 0]
        mass = np.diff([0, *stats.norm.cdf(edges / BOX.std), 1])
        counts = [np.sum(values == n) for n in range(1, 6)]
        assert stats.chisquare(counts, 2000 * mass).pvalue > 1e-3

    def test_a_search_finds_the_best_one(self, tmp_path):
        with recoup.Study.open(tmp_path / "a.db", params=self.PARAMS, batch=10) as study:
            for _ in range(25):
                trials = study.ask(10)
                values = [-((t.params["n"] - 4) ** 2) - (t.params["k"] - 3) ** 2 for t in trials]
                study.tell([t.id for t in trials], [float(v) for v in values])
            assert study.mean_policy["n"] == 4
            assert isinstance(study.mean_policy["n"], int)
            assert isinstance(study.recommend().params["n"], int)

    @pytest.mark.parametrize("wrong", [("n", None, None, "int"), ("n", 0.5, 3, "int")])
    def test_they_need_whole_bounds(self, wrong):
        with pytest.raises(InputError, match="two whole bounds"):
            Parameter(*wrong)

    def test_one_that_is_enqueued_must_be_whole(self, tmp_path):
        with recoup.Study.open(tmp_path / "a.db", params=self.PARAMS) as study:
            with pytest.raises(InputError, match=r"n must be a whole number in 1..5, got 2.5"):
                study.enqueue({"n": 2.5, "k": 3})
            for wrong in (None, "x", [1]):
                with pytest.raises(InputError, match="theta must be an array of real numbers"):
                    study.enqueue({"n": wrong, "k": 3})
            study.enqueue({"n": 2, "k": 3})
            assert study.ask()[0].params == {"n": 2, "k": pytest.approx(3)}

    @pytest.mark.parametrize("start", [2.4, 5.5, 0])
    def test_so_must_their_start_be(self, start):
        with pytest.raises(InputError, match="must be a whole number in"):
            Parameter("n", 1, 5, "int", start=start)

    def test_imported_ones_must_be_whole(self, tmp_path):
        with recoup.Study.open(tmp_path / "a.db", params=self.PARAMS) as study:
            with pytest.raises(InputError, match="n must be a whole number"):
                study.import_samples([[2.4, 3.0], [2.0, 4.0]], [1.0, 2.0])
            assert study.import_samples([[3, 3.0], [2, 4.0]], [1.0, 2.0]).samples == 2

    def test_tables_have_them_whole(self, tmp_path):
        with recoup.Study.open(tmp_path / "a.db", params=self.PARAMS) as study:
            study.ask(3)
            study.export(tmp_path / "t.csv")
        assert all(row["n"].isdecimal() for row in _rows(tmp_path / "t.csv"))


class TestTables:
    def test_a_table_says_its_bounds_and_comes_back_to_the_last_bit(self, tmp_path):
        params = {**OLD, "n": (1, 9, "int")}
        with told(
            tmp_path / "a.db", 3, params=params, function=lambda t: robot(t[..., :3])
        ) as study:
            study.export(tmp_path / "t.csv")
            rows = _rows(tmp_path / "t.csv")
            assert rows[0]["bounds_k"] == "10.0:200.0:log"
            assert rows[0]["bounds_offset"] == "::linear"
            assert float(rows[5]["latent_n"]) == study.store.asked([6])[0].theta[3]
            with recoup.Study.open(
                tmp_path / "b.db", params=params, batch=8, method="mis-pgpe-ob"
            ) as other:
                _imported(other, tmp_path / "t.csv")
                got = [t.theta for t, _ in other.store.trials()]
                np.testing.assert_array_equal(got, [t.theta for t, _ in study.store.trials()])
                blocks = [p.numbers for p in list(other.store.proposals().values())[1:]]
                want = [study.store.proposal(i).numbers for i in range(3)]
                np.testing.assert_allclose(sorted(map(tuple, blocks)), sorted(map(tuple, want)))

    def test_other_bounds_are_refused(self, tmp_path):
        """They were silently wrong: a mean weight of 0.36 in place of 1."""
        with told(tmp_path / "a.db", 2) as study:
            study.export(tmp_path / "t.csv")
            study.export(tmp_path / "t.parquet")
        for name in ("t.csv", "t.parquet"):
            with recoup.Study.open(tmp_path / f"{name}.db", params={**OLD, **NEW}) as other:
                with pytest.raises(InputError, match=r"k was drawn under 10\.0:200\.0:log"):
                    _imported(other, tmp_path / name)
                assert other.counts()["ok"] == 0

    def test_a_spread_without_bounds_is_refused(self, tmp_path):
        with told(tmp_path / "a.db", 2) as study:
            study.export(tmp_path / "t.csv")
            _without(tmp_path / "t.csv", tmp_path / "u.csv", ("bounds_", "latent_"))
            with recoup.Study.open(tmp_path / "b.db", params=OLD) as other:
                with pytest.raises(InputError, match="std_k, which is latent"):
                    _imported(other, tmp_path / "u.csv")
                _without(tmp_path / "u.csv", tmp_path / "v.csv", ("mean_", "std_", "rho_"))
                assert _imported(other, tmp_path / "v.csv").fitted

    def test_a_table_of_a_fork_goes_back_to_the_bounds_it_was_drawn_under(self, tmp_path):
        """Values, also those outside of the fork's bounds, are the ones that were rolled out."""
        with told(tmp_path / "a.db", 2) as a:
            want = [t.theta for t in a.trials()]
            with a.fork(tmp_path / "b.db", params={"k": (30, 90, "log")}) as b:
                b.export(tmp_path / "t.csv")
        with recoup.Study.open(tmp_path / "c.db", params=OLD) as c:
            _imported(c, tmp_path / "t.csv")
            np.testing.assert_array_equal([t.theta for t in c.trials()], want)

    def test_bounds_as_a_user_writes_them_are_the_same(self, tmp_path):
        with told(tmp_path / "a.db", 2) as study:
            study.export(tmp_path / "t.csv")
            text = (tmp_path / "t.csv").read_text().replace("10.0:200.0:log", "10:200:log")
            (tmp_path / "u.csv").write_text(text)
            with recoup.Study.open(tmp_path / "b.db", params=OLD) as other:
                assert _imported(other, tmp_path / "u.csv").samples == 16

    @pytest.mark.parametrize(
        ("column", "value", "words"),
        [("bounds_k", "", "bounds_k is empty"), ("latent_k", "0.123", "latent_k is not that of k")],
    )
    def test_what_contradicts_itself_is_refused(self, tmp_path, column, value, words):
        with told(tmp_path / "a.db", 2) as study:
            study.export(tmp_path / "t.csv")
        rows = _rows(tmp_path / "t.csv")
        rows[3][column] = value
        with (tmp_path / "u.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        with recoup.Study.open(tmp_path / "b.db", params=OLD) as other:
            with pytest.raises(InputError, match=words):
                _imported(other, tmp_path / "u.csv")
            assert other.counts()["ok"] == 0

    def test_no_two_columns_have_one_name(self, tmp_path):
        with recoup.Study.open(tmp_path / "a.db", params={"also_heat": None}) as study:
            study.tell(study.ask()[0].id, 1.0, also={"heat": 2.0})
            with pytest.raises(InputError, match="two columns would be called 'also_heat'"):
                study.export(tmp_path / "t.csv")

    @pytest.mark.parametrize("method", BOTH)
    def test_results_of_other_bounds_are_forked_not_imported(self, tmp_path, method):
        with (
            told(tmp_path / "a.db", 2, method=method) as a,
            a.fork(tmp_path / "b.db", params=NEW) as b,
        ):
            b.export(tmp_path / "t.csv")
            row = _rows(tmp_path / "t.csv")[0]
            assert row["bounds_k"] == "10.0:200.0:log"  # of what drew it
            with recoup.Study.open(tmp_path / "c.db", params={**OLD, **NEW}) as c:
                for path in (tmp_path / "t.csv", tmp_path / "b.db"):
                    with pytest.raises(InputError, match=r"fork it"):
                        _imported(c, path)


def _rows(path):
    with path.open() as file:
        return list(csv.DictReader(file))


def _imported(study, path):
    from recoup.study.exchange.read import read_samples
    from recoup.study.exchange.samples import import_samples

    return import_samples(study.opened, read_samples(study.opened, path))


def _without(path, out, prefixes):
    rows = _rows(path)
    names = [name for name in rows[0] if not name.startswith(prefixes)]
    with out.open("w", newline="") as file:
        writer = csv.DictWriter(file, names, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)

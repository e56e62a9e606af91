"""What the default method does otherwise where every parameter lies between bounds."""

import json
import math

import numpy as np
import program
import pytest
from sentences import MADE_WITH_PARAMS

import recoup
from recoup import InputError
from recoup.engine.ways import BOX
from recoup.study.exchange.read import read_samples
from recoup.study.exchange.samples import import_samples
from recoup.study.space.charts import chart, moved
from recoup.study.space.parameters import Parameter, to_latent, to_user
from recoup.study.voice.rehearsal import _sizes

PARAMS = {"kp": (1, 100, "log"), "kd": (0, 5), "n": (1, 9, "int")}


def noisy(trial):
    return np.random.default_rng(trial.id).normal() - 0.1 * (trial.params["kd"] - 2) ** 2


def tell(study, moves, value=noisy):
    """The sizes of the batches of so many moves."""
    sizes = []
    for _ in range(moves):
        trials = study.ask(study.until_move())
        study.tell([t.id for t in trials], [float(value(t)) for t in trials])
        sizes.append(len(trials))
    return sizes


def test_a_move_waits_for_twice_as_many_results_from_twenty_on(tmp_path):
    with recoup.Study.open(tmp_path / "a.db", params=PARAMS) as study:
        assert study.batch == 5
        assert tell(study, 4) == [5] * 4
        assert study.batch == study.until_move() == 10
        assert tell(study, 2) == [10] * 2
        assert [row["results"] for row in study.history()] == [5, 10, 15, 20, 30, 40]
    with recoup.Study.open(tmp_path / "a.db") as study:
        assert study.batch == 10


def test_it_does_not_where_there_is_little_noise(tmp_path):
    with recoup.Study.open(tmp_path / "a.db", params=PARAMS) as study:
        sizes = tell(study, 8, lambda trial: -((trial.params["kd"] - 2) ** 2))
        assert sizes == [5] * 8
        assert study.history()[-1]["notes"]["noise"] < BOX.noise


def test_results_beyond_a_batch_make_the_moves_that_they_fill(tmp_path):
    """Told at once, the first four moves take five each, and the next needs ten."""
    with recoup.Study.open(tmp_path / "a.db", params=PARAMS) as study:
        trials = study.ask(33)
        study.tell([t.id for t in trials], [float(noisy(t)) for t in trials])
        assert [row["results"] for row in study.history()] == [5, 10, 15, 20, 30]
        assert study.until_move() == 7


def test_moves_made_again_have_the_same_sizes(tmp_path):
    with recoup.Study.open(tmp_path / "a.db", params=PARAMS) as study:
        tell(study, 6)
        study.amend(2, -9.0)
        assert [row["results"] for row in study.history()] == [5, 10, 15, 20, 30, 40]


def test_rehearsals_are_of_batches_that_grow(tmp_path):
    with recoup.Study.open(tmp_path / "a.db", params=PARAMS) as study:
        tell(study, 3)
        study.tell(study.ask(1)[0].id, 1.0)
        with study.store.reading():
            assert _sizes(study.opened, 3) == [4, 10, 10]


@pytest.mark.parametrize(
    ("given", "batch", "std"),
    [
        ({"params": PARAMS}, 5, BOX.std),
        ({"params": PARAMS, "batch": 4}, 4, BOX.std),
        ({"params": PARAMS, "std": 0.4}, 5, 0.4),
        ({"params": {**PARAMS, "free": None}}, 4, 1.0),
        ({"params": {**PARAMS, "grip": ["soft", "hard"]}}, 10, 1.0),
        ({"params": PARAMS, "method": "mis-pgpe-ob"}, 10, 1.0),
        ({"dim": 3}, 4, 1.0),
    ],
)
def test_it_is_so_only_where_every_parameter_has_bounds(tmp_path, given, batch, std):
    with recoup.Study.open(tmp_path / "a.db", **given) as study:
        assert study.batch == batch
        np.testing.assert_array_equal(study.std, std)
        grows = given == {"params": PARAMS} or "std" in given
        assert ("batch_later" in study.settings) == grows
        boxed = len(given.get("params", ())) == 3 and "method" not in given
        assert study.settings.get("most_std") == (BOX.settings["most_std"] if boxed else None)


def test_settings_of_ones_own_stay(tmp_path):
    with recoup.Study.open(
        tmp_path / "a.db", params=PARAMS, most_std=2.0, orthogonal=False
    ) as study:
        assert (study.settings["most_std"], study.settings["orthogonal"]) == (2.0, False)


def test_a_batch_that_grows_is_no_fixed_one(tmp_path):
    path = tmp_path / "a.db"
    recoup.Study.open(path, params=PARAMS).close()
    with pytest.raises(
        InputError, match=r"a batch that grows, 5 \(10 after 20 noisy .*leave batch out"
    ):
        recoup.Study.open(path, batch=5)
    recoup.Study.open(tmp_path / "b.db", params=PARAMS, batch=5).close()
    recoup.Study.open(tmp_path / "b.db", batch=5).close()


def test_a_fork_goes_on_as_it_was_unless_it_is_told_otherwise(tmp_path):
    with recoup.Study.open(tmp_path / "a.db", params=PARAMS) as study:
        tell(study, 4)
        with study.fork(tmp_path / "b.db") as fork:
            assert fork.settings["batch_later"] == study.settings["batch_later"]
            assert fork.settings["most_std"] == BOX.settings["most_std"]
        with study.fork(tmp_path / "c.db", batch=8) as fork:
            assert fork.batch == 8
            assert "batch_later" not in fork.settings


def test_the_spread_stays_within_the_box_while_nothing_succeeds(tmp_path):
    """It grew by e^0.2 with every batch: all candidates were corners of the box before long."""
    with recoup.Study.open(tmp_path / "a.db", params=PARAMS) as study:
        tell(study, 12, lambda trial: 0.0)
        assert np.all(study.std <= BOX.settings["most_std"] * np.exp(0.2))
        drawn = np.array([t.params["kd"] for t in study.ask(200)])
        assert np.mean((drawn > 0.5) & (drawn < 4.5)) > 0.8


def test_a_narrow_start_may_widen_as_far_as_the_usual_one(tmp_path):
    with recoup.Study.open(tmp_path / "a.db", params=PARAMS, std=0.1) as study:
        tell(study, 14, lambda trial: 0.0)
        assert np.all(study.std > 0.8)


def test_growth_is_no_setting_and_nothing_is_written_where_it_is_given(tmp_path):
    with pytest.raises(InputError, match="batch_later is no setting"):
        recoup.Study.open(tmp_path / "a.db", params=PARAMS, batch=4, batch_later={})
    assert not (tmp_path / "a.db").exists()
    with recoup.Study.open(tmp_path / "b.db", params=PARAMS) as study:
        tell(study, 2)
        with pytest.raises(InputError, match="batch_later is no setting"):
            study.fork(tmp_path / "c.db", batch_later=3)


def test_a_fork_rehearses_the_batches_that_it_will_wait_for(tmp_path):
    with recoup.Study.open(tmp_path / "a.db", params=PARAMS) as study:
        tell(study, 6)
        with study.fork(tmp_path / "b.db") as fork, fork.store.reading():
            assert _sizes(fork.opened, 3) == [5, 10, 10]
        with study.fork(tmp_path / "c.db") as fork:
            assert tell(fork, 3) == [5, 10, 10]
        with study.fork(tmp_path / "d.db", method="iw-pgpe-ob") as fork:
            assert tell(fork, 8) == [5] * 8


def test_what_is_shown_names_both_sizes(tmp_path):
    with recoup.Study.open(tmp_path / "a.db", params=PARAMS) as study:
        tell(study, 1)
        assert json.loads(json.dumps(study.snapshot().plain()))["batch"] == 5
    shown = program.recoup("study", "show", tmp_path / "a.db").stdout
    assert "recoup, batch 5 (10 after 20 noisy results), 3 parameters" in shown


def brought(study, path):
    """What `recoup study import` does."""
    import_samples(study.opened, read_samples(study.opened, path), str(path))


def bent(z, low, high, beyond, log=False):
    """What a latent number stands for, written out."""
    if log:
        low, high = math.log(low), math.log(high)
    wide = (1 + 2 * beyond) * (high - low)
    value = min(max(low - beyond * (high - low) + wide / (1 + math.exp(-z)), low), high)
    return math.exp(value) if log else value


class TestBeyond:
    """Parameters are searched a little beyond their bounds, where they stand at the bound."""

    def test_what_a_latent_number_stands_for(self):
        parameters = [
            Parameter("k", 1, 100, "log", beyond=0.1),
            Parameter("d", -2, 5, beyond=0.25),
            Parameter("e", -2, 5),
        ]
        latent = np.random.default_rng(0).normal(size=(200, 3)) * 3
        shown = to_user(parameters, latent)
        for row, (k, d, e) in zip(latent, shown, strict=True):
            assert k == pytest.approx(bent(row[0], 1, 100, 0.1, log=True), rel=1e-12)
            assert d == pytest.approx(bent(row[1], -2, 5, 0.25), abs=1e-12)
            assert e == -2 + 7 * (1 / (1 + np.exp(-row[2])))  # as before, to the bit
        assert (shown[:, :2] == [100, 5]).any(axis=0).all()  # bounds are reached
        assert (shown[:, :2] == [1, -2]).any(axis=0).all()

    def test_a_bound_has_a_place_and_nothing_beyond_it_has_one(self):
        p = Parameter("k", 1, 100, "log", beyond=0.1)
        for value in (1.0, 3.7, 100.0):
            latent = to_latent([p], np.array([value]))
            assert abs(latent[0]) <= math.log(11) + 1e-9
            assert to_user([p], latent)[0] == pytest.approx(value, rel=1e-12)
        for value in (0.99, 101.0):
            with pytest.raises(InputError, match=r"k must lie in 1..100, got"):
                to_latent([p], np.array([value]))

    @pytest.mark.parametrize("scale", ["linear", "log"])
    def test_a_bound_that_is_given_is_the_bound(self, scale):
        """And not the number beside it that rounding makes of it."""
        ends = np.random.default_rng(0).uniform(0.1, 9.0, (200, 2)).round(2)
        for low, high in np.sort(ends, axis=1)[ends[:, 0] != ends[:, 1]].tolist():
            p = [Parameter("k", low, high, scale, beyond=BOX.beyond)]
            for value in (low, high):
                assert to_user(p, to_latent(p, np.array([value])))[0] == value

    def test_a_range_that_numbers_do_not_go_beyond_is_refused(self, tmp_path):
        params = {"k": (1e300, 1.7e308)}
        with pytest.raises(InputError, match="the range of k is too wide for numbers"):
            recoup.Study.open(tmp_path / "a.db", params=params)
        recoup.Study.open(tmp_path / "b.db", params=params, method="cem").close()

    @pytest.mark.parametrize("beyond", [-0.1, 0.6, "far", float("nan"), True])
    def test_it_is_a_share_of_the_range(self, beyond):
        with pytest.raises(InputError, match="beyond of k must be a share of its range"):
            Parameter("k", 1, 100, beyond=beyond)

    @pytest.mark.parametrize("how", [{}, {"low": 1, "high": 9, "scale": "int"}])
    def test_it_needs_bounds_that_a_logistic_function_does_not_reach(self, how):
        with pytest.raises(InputError, match="beyond of k needs bounds"):
            Parameter("k", **how, beyond=0.1)

    def test_new_studies_have_it_and_whole_numbers_do_not(self, tmp_path):
        with recoup.Study.open(tmp_path / "a.db", params=PARAMS) as study:
            reach = [p.beyond for p in study.opened.parameters]
            assert reach == [BOX.beyond, BOX.beyond, None]

    @pytest.mark.parametrize(
        "given",
        [
            {"params": {**PARAMS, "free": None}},
            {"params": PARAMS, "method": "iw-pgpe-ob"},
            {"params": {name: {"low": 0, "high": 1, "beyond": 0} for name in "ab"}},
        ],
    )
    def test_others_do_not_and_their_files_are_as_before(self, tmp_path, given):
        with recoup.Study.open(tmp_path / "a.db", **given) as study:
            assert not any(p.beyond for p in study.opened.parameters)
            assert not any("beyond" in row for row in study.settings["params"])
            first = study.opened.parameters[0]
            low, high = first.low, first.high
            if first.scale == "linear":
                assert study.opened.in_units(np.full(study.dim, 0.7))[0] == low + (high - low) * (
                    1 / (1 + np.exp(-0.7))
                )

    def test_a_study_goes_on_as_it_was_made(self, tmp_path):
        """One that has none, and one that has another than today's."""
        for name, beyond in (("a.db", 0), ("b.db", 0.3)):
            params = {"kd": {"low": 0, "high": 5, "beyond": beyond}, "k": {"low": 0, "high": 1}}
            params["k"]["beyond"] = beyond
            bare = {"kd": (0, 5), "k": (0, 1)}
            with recoup.Study.open(tmp_path / name, params=params) as study:
                first = study.ask(3)
            with recoup.Study.open(tmp_path / name, params=bare) as study:
                assert [t.params for t in study.pending()] == [t.params for t in first]
                assert {p.beyond or 0 for p in study.opened.parameters} == {beyond}
            other = {**bare, "kd": {"low": 0, "high": 5, "beyond": 0.2}}
            with pytest.raises(InputError, match=MADE_WITH_PARAMS):
                recoup.Study.open(tmp_path / name, params=other)

    def test_the_mean_policy_comes_to_stand_at_a_border(self, tmp_path):
        params = {"kp": (1, 100, "log"), "kd": (0, 5)}
        with recoup.Study.open(tmp_path / "a.db", params=params, seed=3) as study:
            tell(study, 12, lambda trial: math.log(trial.params["kp"]) - trial.params["kd"])
            assert dict(study.mean_policy) == {"kp": 100.0, "kd": 0.0}
            said = study.predict({"kp": 100.0, "kd": 0.0})
            assert said.expected == study.recommend().of_mean.value  # the mean policy, typed

    def test_results_at_a_bound_stay_there_under_other_bounds(self):
        """They were tried at it; no density of other bounds has them there, but for others."""
        here = [Parameter("d", 0, 4, beyond=0.1)]
        there = [Parameter("d", -1, 6, beyond=0.2)]
        latent = np.linspace(-4, 4, 81)[:, None]
        shown = to_user(here, latent)[:, 0]
        moved_to, fits = moved(here, there, latent)
        assert fits.all()
        np.testing.assert_allclose(to_user(there, moved_to)[:, 0], shown, atol=1e-12)
        narrow = [Parameter("d", 1, 3, beyond=0.2)]
        np.testing.assert_array_equal(moved(here, narrow, latent)[1], (shown >= 1) & (shown <= 3))
        _, stretch = chart(here, there)(latent)
        inner = np.abs(latent[:, 0]) < 2
        step = 1e-6
        ahead, _ = moved(here, there, latent + step)
        want = np.log((ahead - moved_to)[inner, 0] / step)
        np.testing.assert_allclose(stretch[inner], want, atol=1e-5)
        at = (shown == 0) | (shown == 4)
        assert at.any()
        np.testing.assert_array_equal(stretch == -np.inf, at)

    def test_a_fork_with_other_bounds_starts_where_the_mean_policy_stood(self, tmp_path):
        params = {"kp": (1, 100, "log"), "kd": (0, 5)}
        with recoup.Study.open(tmp_path / "a.db", params=params, seed=3) as study:
            tell(study, 12, lambda trial: math.log(trial.params["kp"]) - trial.params["kd"])
            with study.fork(tmp_path / "b.db", params={"kp": (1, 1000, "log")}) as fork:
                assert [p.beyond for p in fork.opened.parameters] == [BOX.beyond] * 2
                assert fork.best[0].params == {"kp": 100.0, "kd": 0.0}  # at a bound of before
                at = fork.opened.in_units(fork.mean)
                np.testing.assert_allclose(at, [100, 0], rtol=1e-6)
                tell(fork, 2, lambda trial: math.log(trial.params["kp"]))

    def test_tables_say_it_and_come_back(self, tmp_path):
        params = {"kp": (1, 100, "log"), "kd": (0, 5)}
        with recoup.Study.open(tmp_path / "a.db", params=params, std=2.0) as study:
            tell(study, 4)
            study.export(tmp_path / "a.csv")
            held = [trial.theta for trial in study.trials()]
        assert "1.0:100.0:log:0.05" in (tmp_path / "a.csv").read_text()
        with recoup.Study.open(tmp_path / "b.db", params=params, std=2.0) as other:
            brought(other, tmp_path / "a.csv")
            np.testing.assert_array_equal([trial.theta for trial in other.trials()], held)
        bare = {
            "kp": {"low": 1, "high": 100, "scale": "log", "beyond": 0},
            "kd": {"low": 0, "high": 5, "beyond": 0},
        }
        with (
            recoup.Study.open(tmp_path / "c.db", params=bare) as third,
            pytest.raises(InputError, match=r"was drawn under 1\.0:100\.0:log:0\.05"),
        ):
            brought(third, tmp_path / "a.csv")

"""What the default method does otherwise where every parameter lies between bounds."""

import json

import numpy as np
import program
import pytest
from sentences import NEWER

import recoup
from recoup import InputError
from recoup.engine.ways import BOX
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
        assert study.settings.get("most_std") == (1.0 if boxed else None)


def test_settings_of_ones_own_stay(tmp_path):
    with recoup.Study.open(tmp_path / "a.db", params=PARAMS, most_std=2.0, leap=1.0) as study:
        assert (study.settings["most_std"], study.settings["leap"]) == (2.0, 1.0)


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
            assert fork.settings["most_std"] == 1.0
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


def test_an_older_recoup_refuses_what_it_would_move_otherwise(tmp_path, monkeypatch):
    recoup.Study.open(tmp_path / "a.db", params=PARAMS).close()
    recoup.Study.open(tmp_path / "b.db", dim=3).close()
    monkeypatch.setattr("recoup.store.file.NEWEST", 6)
    recoup.Study.open(tmp_path / "b.db").close()
    with pytest.raises(InputError, match=NEWER):
        recoup.Study.open(tmp_path / "a.db")


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

"""Small studies move and judge by NumPy: the same numbers as JAX, without it."""

import subprocess
import sys
from types import SimpleNamespace

import jax
import numpy as np
import pytest

import recoup
from recoup.core import updates
from recoup.core.families.gaussian import Diagonal, diagonal_gaussian
from recoup.core.worth import worth
from recoup.engine import plain
from recoup.engine.parts import BASELINES, UPDATES
from recoup.study.moves import compiled, uncompiled
from recoup.study.moves.steps import Before

NUMBERS = ("objective", "objective_stderr", "ess", "max_weight", "samples", "kl", "mean_weight")
ROWS = {  # every word of every table, and what goes with it
    "balance": {},
    "none": {"method": "pgpe"},
    "unweighed": {"method": "niw-pgpe-ob", "epsilon": 0.4},
    "own": {"method": "iw-pgpe", "baseline": "mean"},
    "window": {"method": "tiw-pgpe-ob"},
    "power-mean": {"weighting": "power-mean", "power": 0.3, "baseline": "coordinate"},
    "normalised": {"method": "iw-pgpe-ob", "normalize": True, "flatten": 0.5},
    "leave-one-out": {"baseline": "leave-one-out", "update": "natural", "kl": 0.2},
    "earlier": {"baseline": "earlier", "failure": "worst"},
    "split": {"baseline": "split", "failure": -9.0, "tau_floor": 0.6},
    "mirrored": {"mirrored": True, "baseline": "leave-one-out"},
    "pairs-earlier": {"mirrored": True, "baseline": "earlier", "weighting": "own"},
    "pairs-split": {"mirrored": True, "baseline": "split", "failure": "worst"},
    "full": {"family": "full", "baseline": "coordinate"},
    "full-natural": {"family": "full", "update": "natural", "failure": "worst"},
    "lowrank": {"family": "lowrank"},
    "elite": {"method": "cem"},
    "elite-full": {"method": "cem", "family": "full", "window": 3},
    "kl-lowrank": {"method": "reps", "family": "lowrank", "window": 3},
    "exponential": {"method": "rwr", "family": "diagonal", "failure": "worst"},
    "kl": {"method": "reps"},
}


@pytest.fixture(scope="module", params=ROWS)
def told(request):
    """A study of three lopsided parameters, some of it told late, some failed; and its row."""
    rng = np.random.default_rng(3)
    settings = {"dim": 3, "batch": 6, "seed": 5, "mean": [0.3, -1.0, 2.0], "std": [0.5, 1.0, 0.2]}
    settings |= {"method": "mis-pgpe-ob", **ROWS[request.param]}
    path = request.getfixturevalue("tmp_path_factory").mktemp("study") / "study.db"
    with recoup.Study.open(path, **settings) as study:
        late = []
        for _ in range(6):
            trials = study.ask(8)
            late, now = trials[6:], [*late, *trials[:6]]
            for trial in now:
                value = -float(np.sum((trial.theta - [1.0, 0.0, 2.0]) ** 2)) + rng.normal() + 50.0
                failed = {"failed": "fell"} if trial.theta[0] > 1.1 else {}
                study.tell(trial.id, None if failed else value, **failed)
        assert study.diagnostics()["moves"] >= 4
        assert study.counts()["failed"] > 0
        yield study


def both(study, upto=None):
    """The next move of a study by NumPy and by JAX, from all of its results."""
    ledger = study.opened.ledger(0, study.method.reweighs)
    results = ledger.results(upto or study.store.counters().counted)
    before = Before(study.store.newest().numbers, None)
    assert plain.can_move(study.method, results.n, ledger.dim)
    mine = uncompiled.stepped(study.method, ledger, results, 0, before)
    other = compiled.stepped(study.method, 1.0, ledger, results, 0, before)
    return mine, other


def assert_same_move(mine, other):
    for x, y in (
        (mine.numbers, other.numbers),
        (mine.own, other.own),
        (mine.mixture, other.mixture),
        (mine.info.weights, np.ravel(other.info.weights)[: len(mine.info.weights)]),
        *((getattr(mine.info, key), getattr(other.info, key)) for key in NUMBERS),
    ):
        np.testing.assert_allclose(x, y, rtol=1e-10, atol=1e-12, equal_nan=True)


def test_every_word_makes_the_same_move_as_jax(told):
    mine, other = both(told)
    assert np.any(mine.numbers != told.store.newest().numbers)
    assert_same_move(mine, other)


def test_the_table_of_words_is_the_one_that_methods_have():
    words = {key: {row.get(key, "") for row in ROWS.values()} for key in ("baseline", "update")}
    assert set(BASELINES) >= words["baseline"] - {""}
    assert {word for word, part in UPDATES.items() if part.compiled} == {"adam"}  # optax's


def test_what_is_known_of_densities_is_extended_to_the_same(told):
    """As between moves: those of the first results are stored, the rest is new."""
    half = told.store.last_move().counted - told.batch // told.method.draw
    first, _ = both(told, half)
    ledger = told.opened.ledger(0, told.method.reweighs)
    ledger.own, ledger.mixture = first.own, first.mixture
    results = ledger.results(told.store.counters().counted)
    numbers = told.store.newest().numbers
    mine = uncompiled.stepped(told.method, ledger, results, 0, Before(numbers, None))
    assert_same_move(
        mine, compiled.stepped(told.method, 1.0, ledger, results, 0, Before(numbers, None))
    )


@pytest.mark.parametrize("shift", [0.0, 0.4, 30.0])
def test_a_candidate_is_judged_as_jax_judges_it(told, shift):
    ledger = told.opened.ledger()
    results = ledger.results(told.store.counters().counted)
    target = told.opened.target(told.mean + shift, told.std * 0.9)
    mine, my_weights, my_unseen, my_left = uncompiled.judged(told.method, ledger, results, target)
    other, weights, unseen, left = compiled.judged(told.method, ledger, results, target)
    assert (my_left, my_unseen) == (left, pytest.approx(unseen, abs=1e-12))
    np.testing.assert_allclose(my_weights, weights[: len(my_weights)], rtol=1e-9, atol=1e-300)
    said, there = worth(mine, my_unseen, 3), worth(other, float(unseen), 3)
    assert said.refused == there.refused
    np.testing.assert_allclose(np.hstack(said[:-1]), np.hstack(there[:-1]), rtol=1e-6, atol=1e-9)
    assert not said.refused or np.isinf(mine.model_std)  # it is not fitted where weights refuse
    of_model = ("modelled", "modelled_stderr", "model_std")
    for key in set(mine._fields) - set(of_model if said.refused else ()):
        x, y = float(getattr(mine, key)), float(getattr(other, key))
        if np.isfinite(x) or shift < 30:  # where nothing has weight, there is no spread
            np.testing.assert_allclose(x, y, rtol=1e-6, atol=1e-9, err_msg=key)


def test_equal_returns_move_nothing(tmp_path):
    with recoup.Study.open(tmp_path / "s.db", dim=2, batch=4, method="mis-pgpe-ob") as study:
        before = study.mean
        study.tell([t.id for t in study.ask(4)], [7.0] * 4)
        np.testing.assert_array_equal(study.mean, before)


def test_gradients_that_are_not_finite_move_nothing():
    family = diagonal_gaussian()
    rho = Diagonal(np.array([1.0, 2.0]), np.array([0.5, 0.5]))
    wrong = Diagonal(np.array([1.0, 2.0]), np.array([0.5, np.nan]))
    for update in (
        updates.normalised_ascent(family, 0.1, 0.05),
        updates.natural_step(family, 0.5, 0.05),
    ):
        after, *_ = update.step(lambda rho: SimpleNamespace(gradient=wrong), rho, ())
        assert isinstance(after.eta, np.ndarray)
        np.testing.assert_array_equal(np.concatenate(after), np.concatenate(rho))


ALONE = """
import sys, recoup
with recoup.Study.open(sys.argv[1], dim=3, batch=4, method=sys.argv[2]) as study:
    for _ in range(3):
        trials = study.ask(4)
        study.tell([t.id for t in trials], [float(-(t.theta ** 2).sum()) for t in trials])
    study.evaluate()
    study.diagnostics()
print("jax" in sys.modules, "arviz_stats" in sys.modules)
"""


@pytest.mark.parametrize("method", ["mis-pgpe-ob", "recoup"])
def test_a_small_study_needs_no_jax(tmp_path, method):
    command = [sys.executable, "-c", ALONE, str(tmp_path / "s.db"), method]
    found = subprocess.run(command, capture_output=True, text=True)
    assert found.stdout.split() == ["False", "False"], found.stderr


def test_above_a_million_numbers_jax_moves(monkeypatch, tmp_path):
    with recoup.Study.open(tmp_path / "s.db", dim=3, batch=4, method="mis-pgpe-ob") as study:
        assert plain.can_move(study.method, 2**20 // 3, 3)
        assert not plain.can_move(study.method, 2**20 // 3 + 1, 3)
        monkeypatch.setattr(plain, "NUMPY_NUMBERS", 11)
        trials = study.ask(4)
        study.tell([t.id for t in trials], [float(-(t.theta**2).sum()) for t in trials])
        assert study.diagnostics()["moves"] == 1
    assert "jax" in sys.modules
    assert isinstance(jax.devices(), list)

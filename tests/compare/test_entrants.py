"""Methods of other libraries: they maximise, from where they are told, by themselves."""

import importlib.util

import numpy as np
import pytest

from recoup.checks import InputError
from recoup.compare import entrants
from recoup.compare.arenas import arena_of, start_of
from recoup.compare.entrants import GRID, PEERS, entrant_of, population
from recoup.compare.players import Worst
from recoup.compare.side_by_side import learn, players_of

INSTALLED = [name for name, row in PEERS.items() if row.home and name != "evotorch-pgpe"]
QUICK = {"evosax-pgpe": "evosax-pgpe:lr=0.3", "evosax-open-es": "evosax-open-es:lr=3"}


@pytest.fixture(scope="module")
def sphere():
    return arena_of("sphere-10")


@pytest.mark.filterwarnings("ignore:optax.global_norm is deprecated")  # of evosax
@pytest.mark.parametrize("name", INSTALLED)
@pytest.mark.slow
def test_each_improves_on_a_sphere(name, sphere):
    budget = 60 if name == "optuna-tpe" else 120
    curves = learn(sphere, entrant_of(QUICK.get(name, name)), 5, range(2), [budget])
    first, last = np.mean([curve.policy for curve in curves], axis=0)
    assert last > 0.6 * first  # losses: less than 60 % of the first
    searched = np.array([curve.search for curve in curves])
    if "optuna" in name:
        assert np.isnan(searched[:, 0]).all()
    assert np.isfinite(searched[:, 1]).all()


@pytest.mark.skipif(importlib.util.find_spec("evotorch") is None, reason="needs EvoTorch")
def test_evotorchs_pgpe_improves_on_a_sphere(sphere):
    curves = learn(sphere, entrant_of("evotorch-pgpe:lr=0.3"), 5, range(2), [120])
    first, last = np.mean([curve.policy for curve in curves], axis=0)
    assert last > 0.6 * first


@pytest.mark.parametrize("name", ["cma-es", "lq-cma-es", "snes", "evosax-cma-es"])
def test_a_distribution_starts_at_the_mean_with_the_tasks_spread(name, sphere, x64):
    players = players_of(sphere, entrant_of(name), 0, [4, 7], 100)
    noise = np.random.default_rng(0).normal(size=(2, 5, 10))
    starts = np.stack([start_of(sphere, 0, run) for run in (4, 7)])
    np.testing.assert_allclose(players.mean(), starts, rtol=1e-6)
    drawn = starts[:, None] + 0.5 * noise  # pycma begins with stds that differ by 1e-4
    np.testing.assert_allclose(players.draw(noise), drawn, atol=1e-3)


def test_runs_side_by_side_are_those_that_go_alone(sphere):
    """pycma draws from the process's random numbers unless it is given others."""
    together = learn(sphere, entrant_of("cma-es"), 0, [0, 1, 2], [40])
    alone = learn(sphere, entrant_of("cma-es"), 0, [1], [40])
    np.testing.assert_allclose(together[1].search, alone[0].search, rtol=1e-9)


def test_populations():
    assert population({}, 10) == 10
    assert population({}, 1, even=True) == 4
    assert population({"popsize": "half"}, 100) == 8
    assert population({"popsize": 7}, 10, even=True) == 8
    assert [entrant_of(text).name for name in GRID for text in GRID[name]]


def test_what_failed_counts_as_the_worst_so_far():
    worst = Worst(2)
    filled = worst.filled([[1.0, np.nan], [np.nan, np.nan]])
    np.testing.assert_array_equal(filled, [[1.0, 1.0], [np.nan, np.nan]])
    filled = worst.filled([[5.0, np.nan], [-2.0, np.inf]])
    np.testing.assert_array_equal(filled, [[5.0, 1.0], [-2.0, -2.0]])


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setattr(entrants, "find_spec", lambda package: None)
    with pytest.raises(InputError, match=r"cma-es needs cma.*pip install 'recoup\[bench\]'"):
        entrant_of("cma-es")


@pytest.mark.parametrize(
    ("name", "package"),
    [
        ("optuna-gp", "torch"),
        ("botorch-qlognei", "botorch"),
        ("smac", "smac"),
        ("nevergrad-ngopt", "nevergrad"),
    ],
)
def test_a_missing_bayesian_optimiser_names_its_extra(name, package, monkeypatch):
    monkeypatch.setattr(entrants, "find_spec", lambda package: None)
    words = rf"{name} needs {package}, .*: pip install 'recoup\[bench-bo\]'$"
    with pytest.raises(InputError, match=words):
        entrant_of(name)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("cma", "method must be one of .*"),
        ("snez", "Did you mean 'snes'"),
        ("r3", "r3 explores in action space"),
        ("cma-es:pop=3", "'pop' is not a setting of cma-es; its settings are popsize, sigma"),
        ("cma-es:popsize=0", "popsize of cma-es must be a whole number of at least 2, got 0"),
        ("snes:popsize=1", "popsize of snes must be a whole number of at least 2, got 1"),
        ("snes:popsize=2.5", "popsize of snes must be a whole number of at least 2, got 2.5"),
        ("snes:popsize=third", "popsize of snes must be a whole number or half, got 'third'"),
        ("snes:sigma=inf", "sigma of snes must be above 0 and finite, got inf"),
        ("optuna-tpe:startup=0.5", "startup of optuna-tpe must be a whole number"),
        ("recoup:batch=1,batch=2", "batch is given twice in 'recoup:batch=1,batch=2'"),
        ("recoup:tau-floor=1,tau_floor=2", "tau_floor is given twice"),
        ("snes:popsize=", "written method:key=value"),
        ("nowhere:search", "the method nowhere:search cannot be imported"),
        ("iw-pgpe-ob:epsilon=-1", "epsilon must be"),
        ("iw-pgpe-ob:batch=0", "batch must be a whole number"),
        ("iw-pgpe-ob:sigma=1", "'sigma' is not a setting of iw-pgpe-ob; its settings are batch, "),
    ],
)
def test_a_wrong_method_gets_one_sentence(text, sentence):
    with pytest.raises(InputError, match=sentence):
        entrant_of(text)

"""A family of a user's moves in studies and runs as ours does: ours is rebuilt, and followed."""

import json
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import program
import pytest
from own_families import ROUND_MOVING, rounded

import recoup
from recoup.core.families import gaussian
from recoup.core.families.full import full_gaussian
from recoup.core.families.gaussian import Diagonal
from recoup.study.study import Study

BATCH = 6


def agnostic(rho, *given):
    """NumPy for its own arrays, else JAX's."""
    return np if isinstance(rho.tau, np.ndarray) and isinstance(given[0], np.ndarray) else jnp


ALIKE = recoup.family(  # of functions that take any arrays
    "alike",
    start=Diagonal.start,
    log_density=gaussian.log_density,
    renyi2=gaussian.renyi2_divergence,
    divergence=lambda new, old, samples, valid: gaussian.kl_divergence(new, old),
    whitened=lambda rho, theta: rho.whitened(agnostic(rho, theta), theta),
    log_spread=lambda rho: rho.log_spread(agnostic(rho, rho.eta)),
    stretched=lambda rho, *how: rho.stretched(agnostic(rho, *how), *how),
    refitted=lambda rho, *how: rho.refitted(agnostic(rho, *how), *how),
    shape="diagonal",
)


class Widths(NamedTuple):
    """By logarithms: written with `jax.numpy`, in a way that only its arrays allow."""

    centre: jax.Array
    log_width: jax.Array

    mean = property(lambda self: self.centre)
    std = property(lambda self: jnp.exp(self.log_width))

    def theta(self, noise):
        return self.centre + jnp.exp(self.log_width) * noise


def shifted(rho, delta):
    return rho.centre.at[:].add(jnp.exp(rho.log_width) * delta)


def wide(rho):
    return Diagonal(rho.centre, jnp.exp(rho.log_width))


WRITTEN = recoup.family(
    "written",
    start=lambda mean, std: Widths(jnp.asarray(mean), jnp.log(std)),
    log_density=lambda rho, theta: gaussian.log_density(wide(rho), theta),
    renyi2=lambda p, q: gaussian.renyi2_divergence(wide(p), wide(q)),
    divergence=lambda new, old, samples, valid: gaussian.kl_divergence(wide(new), wide(old)),
    whitened=lambda rho, theta: (theta - rho.centre) * jnp.exp(-rho.log_width),
    log_spread=lambda rho: rho.log_width,
    stretched=lambda rho, delta, log, least: Widths(
        shifted(rho, delta), jnp.maximum(rho.log_width + log, jnp.log(least))
    ),
    refitted=lambda rho, delta, variance: Widths(
        shifted(rho, delta), rho.log_width + jnp.log(variance) / 2
    ),
    shape="diagonal",
)
FULL = full_gaussian()._replace(name="as-full")
PAIRS = pytest.mark.parametrize(
    ("own", "ours"),
    [(ALIKE, "diagonal"), (WRITTEN, "diagonal"), (FULL, "full")],
    ids=["alike", "written", "full"],
)


def value_of(theta):
    return float(-np.sum((theta - [0.5, -1.0, 2.0]) ** 2)) - 0.3 * float(np.cos(9 * theta[0]))


def told(study, moves=4):
    for _ in range(moves):
        for trial in study.ask(BATCH):
            study.tell(trial.id, value_of(trial.theta))


def with_imports(study):
    """Before the first move, and after it: from a distribution that is not the study's."""
    rng = np.random.default_rng(3)
    for mean, std in ((0.4, 1.1), (0.2, 0.7)):
        theta = mean + std * rng.standard_normal((20, 3))
        rho = study.opened.start(np.full(3, mean), np.full(3, std))
        study.import_samples(theta, [value_of(x) for x in theta], rho=rho)
        told(study, 2)


def with_late_results(study):
    late = study.ask(4)
    told(study, 2)
    later = study.ask(3)
    told(study, 1)
    for trial in (*later, *late):
        study.tell(trial.id, value_of(trial.theta))
    told(study, 1)


def with_amends(study):
    told(study, 3)
    study.amend(2, 30.0)
    study.amend(9, drop="twice")
    told(study, 1)


def with_failures(study):
    for _ in range(4):
        for trial in study.ask(BATCH):
            if trial.theta[1] > 0.8 or trial.id % 7 == 3:
                study.tell(trial.id, failed="fell")
            else:
                study.tell(trial.id, value_of(trial.theta))


CASES = {
    "plain": (told, {}),
    "long": (lambda study: told(study, 14), {}),
    "one batch": (lambda study: told(study, 5), {"window": 1}),
    "imports": (with_imports, {}),
    "late": (with_late_results, {}),
    "amended": (with_amends, {}),
    "failures": (with_failures, {}),
    "worst": (with_failures, {"failure": "worst"}),
    "costs": (lambda study: told(study, 2), {"direction": "minimize"}),
}


def studied(path, family, work, settings):
    """The distributions of a study, what its moves were made of, and what they remember."""
    how = {"dim": 3, "batch": BATCH, "seed": 1, "mean": 0.1, **settings}
    with Study.open(path, family=family, **how) as study:
        work(study)
        memory = study.store.last_move().memory
        return study.distributions(), study.history(), {x.path: x.value for x in memory}


@PAIRS
@pytest.mark.parametrize("case", CASES)
def test_a_study_follows_the_one_with_ours(tmp_path, own, ours, case):
    marks, moves, memory = studied(tmp_path / "own.db", own, *CASES[case])
    want, made, kept = studied(tmp_path / "ours.db", ours, *CASES[case])
    assert len(marks) == len(want) == len(moves) + 1 > 2
    for move in want:
        np.testing.assert_allclose(marks[move], want[move], rtol=1e-6, atol=1e-9)
    for mine, other in zip(moves, made, strict=True):
        assert mine["notes"]["modelled"] == other["notes"]["modelled"] > 0
        for key in ("ess", "objective", "kl", "samples"):
            assert mine[key] == pytest.approx(other[key], rel=1e-6, abs=1e-9, nan_ok=True), key
    assert memory.keys() == kept.keys()
    for key, value in kept.items():
        np.testing.assert_allclose(memory[key], value, rtol=1e-5, atol=1e-9)


@PAIRS
def test_a_run_follows_the_one_with_ours(own, ours):
    how = {"iterations": 3, "seed": 0}
    run, want = (recoup.train("mountain-car", "recoup", family=f, **how) for f in (own, ours))
    np.testing.assert_allclose(run.mean, want.mean, rtol=1e-6)
    np.testing.assert_allclose(run.std, want.std, rtol=1e-6)
    assert [row.ess for row in run.history] == pytest.approx([row.ess for row in want.history])


def test_one_without_a_divergence_weighs_all_of_the_last_batches(tmp_path):
    """Nine of them, and models as many results as ours does; one without a KL has none."""
    family = rounded(**ROUND_MOVING)
    _, moves, _ = studied(tmp_path / "s.db", family, lambda study: told(study, 25), {})
    want = [min(BATCH * i, 106) for i in range(1, 26)]
    assert [row["notes"]["modelled"] for row in moves] == want
    assert moves[0]["ess"] == pytest.approx(BATCH)
    assert all(np.isnan(row["kl"]) for row in moves)


def test_a_divergence_of_samples_sees_those_that_made_the_move(tmp_path):
    """Also among rows to spare."""
    family = ALIKE._replace(divergence=lambda new, old, samples, valid: jnp.sum(samples.T @ valid))
    with Study.open(tmp_path / "s.db", dim=3, batch=BATCH, family=family) as study:
        for _ in range(2):
            trials = study.ask(BATCH)
            study.tell([t.id for t in trials], [value_of(t.theta) for t in trials])
            total = sum(t.theta.sum() for t in trials)
            assert study.history()[-1]["kl"] == pytest.approx(total)


def stretched_apart(rho, delta, log, least):
    """A width for each coordinate, where there is one for all."""
    return rho._replace(centre=rho.theta(delta), log_width=rho.log_width + log)


def test_a_family_that_changes_its_shape_moves_nothing(tmp_path):
    """The study had been left with a distribution that it could not read."""
    right, wide = rounded(**ROUND_MOVING), {"stretched": stretched_apart}
    wrong = rounded(**{**ROUND_MOVING, **wide})
    with Study.open(tmp_path / "s.db", dim=3, batch=BATCH, family=wrong) as study:
        trials = study.ask(BATCH)
        with pytest.raises(recoup.InputError, match="6 numbers of one of 4: nothing was moved"):
            study.tell([t.id for t in trials], [value_of(t.theta) for t in trials])
    with Study.open(tmp_path / "s.db", family=right) as study:
        assert study.counts()["ok"] == BATCH
        assert study.store.last_move().id == 1  # the move that was due


def test_without_it_a_study_is_shown_by_every_door(tmp_path, monkeypatch):
    """What only the family knows is left out, and said."""
    monkeypatch.chdir(tmp_path)
    family = rounded(**ROUND_MOVING)
    with Study.open("s.db", dim=3, batch=BATCH, family=family) as study:
        told(study, 1)
        (waiting,) = study.ask()
    program.recoup("study", "tell", "s.db", str(waiting.id), "-1")
    words = "s.db was made with family=round, which a file cannot hold: give it again"
    shown = " ".join(program.recoup("study", "show", "s.db").stdout.split())
    assert words in shown
    assert "0 pending, 7 ok" in shown
    found = json.loads(program.recoup("study", "show", "s.db", "--json").stdout)
    assert (found["ok"], found["moves"], found["missing"]) == (7, 1, ["family=round"])
    assert (found["deploy"], found["distribution"]) == ({}, [])
    for of in ("a_draw", "mean_policy"):
        assert words in found[f"expected_return_of_{of}"]["words"]
    with Study.open("s.db") as study:
        assert study.snapshot().counts.ok == 7
        assert words in study._repr_html_()

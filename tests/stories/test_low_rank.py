"""Studies whose distributions have a few axes beside their coordinates."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import recoup

DIM, BATCH = 10, 6


def value_of(theta):
    """Steep along one direction that is no coordinate's."""
    away = np.asarray(theta) - 0.5
    return float(-np.sum(away**2) - 40 * np.mean(away) ** 2)


def fill(study, moves):
    batches = []
    for _ in range(moves):
        trials = study.ask(BATCH)
        values = [value_of(t.theta) for t in trials]
        study.tell([t.id for t in trials], values)
        batches.append((np.stack([t.theta for t in trials]), values))
    return batches


@pytest.fixture
def study(tmp_path):
    with recoup.Study.open(
        tmp_path / "s.db", dim=DIM, batch=BATCH, family="lowrank", seed=3
    ) as study:
        yield study


def test_moves_of_the_rule_by_numpy_are_those_of_the_search(study):
    batches = fill(study, 6)
    rho = study.opened.rho(study.store.newest().numbers)
    with jax.enable_x64(True):
        search = recoup.search("recoup", dim=DIM, batch=BATCH, family="lowrank")
        state = search.init(jax.random.key(0), 0.0, 1.0)
        for theta, values in batches:
            state, _ = search.tell(jax.random.key(0), state, theta, jnp.asarray(values))
        np.testing.assert_allclose(state.mean, rho.mean, rtol=1e-7)
        np.testing.assert_allclose(state.std, rho.std, rtol=1e-7)
        np.testing.assert_allclose(state.rho.scale, rho.scale, rtol=1e-7)


def test_it_learns_which_direction_is_steep(study):
    fill(study, 40)
    rho = study.opened.rho(study.store.newest().numbers)
    noise = rho.whitened(np, rho.mean + np.ones(DIM) / np.sqrt(DIM))
    along = 1 / np.linalg.norm(noise)  # deviation along the steep direction, others given
    assert along < 0.6 * np.exp(np.mean(rho.log_spread(np)))


def test_forks_go_on_from_it_and_judge_it_alike(study, tmp_path):
    fill(study, 4)
    with study.fork(tmp_path / "new.db") as new:
        assert new.method.family == "lowrank"
        np.testing.assert_array_equal(new.mean, study.mean)
        assert str(new.evaluate()) == str(study.evaluate())
        fill(new, 2)
        assert new.diagnostics()["moves"] == 2


def test_a_parameter_that_is_frozen_leaves_the_conditional_distribution(tmp_path):
    params = {f"p{i}": (-3.0, 3.0) for i in range(4)}
    with recoup.Study.open(tmp_path / "s.db", params=params, batch=6, family="lowrank") as study:
        for _ in range(4):
            trials = study.ask(6)
            study.tell([t.id for t in trials], [value_of(list(t.params.values())) for t in trials])
        with study.fork(tmp_path / "new.db", freeze={"p1": 0.5}) as new:
            assert len(new.mean) == 3
            rho = new.opened.rho(new.store.newest().numbers)
            assert rho.scale.shape == (3,)
            trials = new.ask(6)
            new.tell([t.id for t in trials], [value_of(list(t.params.values())) for t in trials])


def test_estimates_by_numpy_and_by_jax_are_one(study, monkeypatch):
    from recoup.engine import plain

    fill(study, 3)
    target = study.opened.rho(study.store.newest().numbers)
    rng = np.random.default_rng(0)
    theta = np.stack([target.theta(z) for z in rng.normal(size=(30, DIM))])
    many = type(target)(*(x[None] for x in target))
    how = {"proposals": many, "proposal": np.zeros(30, int), "family": "lowrank"}
    how |= {"target": target._replace(scale=1.1 * target.scale)}
    returns = np.array([value_of(x) for x in theta])
    one = recoup.estimate(theta, returns, **how)
    monkeypatch.setattr(plain, "NUMPY_NUMBERS", 0)
    other = recoup.estimate(theta, returns, **how)
    assert isinstance(one.objective, np.generic)
    assert float(one.objective) == pytest.approx(float(other.objective), rel=1e-9)
    for x, y in zip(one.std_gradient, other.std_gradient, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-7, atol=1e-9)

"""Failures that depend on theta: nothing is biased by them, in whatever way results are told."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from linear_quadratic import DISCOUNT, HORIZON, episodes
from oracles import gauss_hermite
from scipy import stats
from scipy.special import ndtr

import recoup
from recoup.engine.parts import BASELINES
from recoup.study.care.recover import recover
from recoup.study.care.verify import check
from recoup.study.study import Study

OLD, NEW, EDGE = (-1.0, 1.2), (0.0, 1.0), -0.5  # two proposals; above the edge rollouts fail


def problem(n=4000, seed=0):
    """Samples of two proposals; those of either that lie above the edge have failed."""
    rng = np.random.default_rng(seed)
    theta = np.concatenate([rng.normal(*OLD, n), rng.normal(*NEW, n)])
    returns = np.where(theta > EDGE, np.nan, 2 + np.sin(theta) + 0.1 * rng.standard_normal(2 * n))
    return {
        "theta": theta[:, None],
        "returns": returns,
        "proposals": tuple(np.array([[OLD[i]], [NEW[i]]]) for i in (0, 1)),
        "proposal": np.repeat([0, 1], n),
        "target": tuple(np.array([x]) for x in NEW),
    }


def given_success(mean, std):
    """E[2 + sin(theta) | theta <= edge] under N(mean, std^2), by a fine grid."""
    x = np.linspace(-9, EDGE, 40_001)
    density = stats.norm.pdf(x, mean, std)
    return np.trapezoid(density * (2 + np.sin(x)), x) / np.trapezoid(density, x)


@pytest.mark.parametrize("weighting", ["own", "balance", "power-mean"])
def test_equal_returns_stay_what_they_are(weighting):
    """All earn 10, most of an old proposal fails: the estimate was 20."""
    told = problem()
    told["returns"] = np.where(np.isnan(told["returns"]), np.nan, 10.0)
    found = recoup.estimate(**told, weighting=weighting)
    assert float(found.objective) == pytest.approx(10.0)
    assert float(found.objective_stderr) == pytest.approx(0.0, abs=1e-9)
    assert abs(found.mean_gradient[0]) < 1e-9


@pytest.mark.parametrize("weighting", ["own", "balance"])
def test_the_objective_is_the_return_given_success(weighting):
    found = recoup.estimate(**problem(), weighting=weighting)
    assert abs(float(found.objective) - given_success(*NEW)) < 4 * float(found.objective_stderr)
    if weighting == "balance":
        low, high = found.interval()
        assert low < given_success(*NEW) < high


@pytest.mark.parametrize("baseline", BASELINES)
def test_the_gradient_is_that_of_the_return_given_success(baseline):
    """Over 40 repetitions, against differences of the integral: within 4 standard errors."""
    found = []
    for seed in range(40):
        e = recoup.estimate(**problem(500, seed), baseline=baseline)
        found.append([e.mean_gradient[0], e.std_gradient[0]])
    h = 1e-4
    want = [
        (given_success(h, 1) - given_success(-h, 1)) / (2 * h),
        (given_success(0, 1 + h) - given_success(0, 1 - h)) / (2 * h),
    ]
    error = np.std(found, axis=0, ddof=1) / np.sqrt(40)
    assert (np.abs(np.mean(found, axis=0) - want) < 4 * error).all()
    assert (error < 0.05).all()


@pytest.mark.parametrize(("failure", "earned"), [(-3.0, -3.0), ("worst", None)])
def test_a_stated_return_is_part_of_the_expectation(failure, earned):
    told = problem()
    earned = np.nanmin(told["returns"]) if earned is None else earned
    share = ndtr((EDGE - NEW[0]) / NEW[1])
    exact = share * given_success(*NEW) + (1 - share) * earned
    found = recoup.estimate(**told, failure=failure)
    low, high = found.interval()
    assert abs(float(found.objective) - exact) < 4 * float(found.objective_stderr)
    assert low < exact < high


@pytest.mark.parametrize("method", ["iw-pgpe-ob", "mis-pgpe-ob"])
@pytest.mark.parametrize("failure", ["censored", "worst", -3.0])
def test_a_search_moves_as_the_estimate_of_the_same_results(method, failure, x64):
    search = recoup.search(method, dim=1, batch=8, capacity=16, failure=failure)
    state = search.init(jax.random.key(0), mean=OLD[0], std=OLD[1])
    told, rhos = [], []
    for i in range(2):
        theta, state = search.ask(jax.random.key(i), state)
        returns = jnp.where(theta[:, 0] > EDGE, jnp.nan, jnp.sin(theta[:, 0]))
        rhos.append((np.array(state.mean), np.array(state.std)))
        told.append((np.asarray(theta), np.asarray(returns)))
        state, info = search.tell(jax.random.key(9), state, theta, returns)
    want = recoup.estimate(
        *(np.concatenate(x) for x in zip(*told, strict=True)),
        proposals=tuple(np.stack(x) for x in zip(*rhos, strict=True)),
        proposal=np.repeat([0, 1], 8),
        target=rhos[1],
        weighting=search.settings.weighting,
        failure=failure,
    )
    failed = int(sum(np.isnan(returns).sum() for _, returns in told))
    assert failed > 1
    assert float(info.objective) == pytest.approx(float(want.objective), rel=1e-9)
    assert float(info.objective_stderr) == pytest.approx(float(want.objective_stderr), rel=1e-9)
    assert int(info.censored) == (failed if failure == "censored" else 0)
    step = np.array([want.mean_gradient[0], want.std_gradient[0]])
    step *= 0.1 / np.linalg.norm(step)
    np.testing.assert_allclose(state.mean[0], rhos[1][0][0] + step[0], rtol=1e-9)


@pytest.mark.parametrize("method", ["iw-reinforce-ob", "tiw-enac", "r3"])
def test_trajectories_that_fail_are_left_out_of_the_mean(method, x64):
    """Every episode that lasts earns 1 a step: so does every estimate, whichever of them fail."""
    search = recoup.search(method, dim=2, batch=12, horizon=HORIZON, discount=DISCOUNT)
    state = search.init(jax.random.key(0), mean=[-0.4, 0.3], std=0.6)
    for i in range(2):
        x = np.array([*np.asarray(state.mean), *np.asarray(state.std)])
        h = episodes(jax.random.key(i), x, 12)
        fails = h.actions[:, 0, 0] > 0.1
        rewards = jnp.where(fails[:, None], jnp.nan, jnp.ones_like(h.rewards))
        state, info = search.tell(jax.random.key(9), state, h._replace(rewards=rewards))
    assert 0 < int(info.censored) < 24
    earned = (1 - DISCOUNT**HORIZON) / (1 - DISCOUNT)
    assert float(info.objective) == pytest.approx(earned, rel=1e-9)


@pytest.mark.parametrize("failure", ["censored", -3.0])
def test_a_study_judges_what_failed_as_it_was_told_to(tmp_path, failure):
    with Study.open(tmp_path / "s.db", dim=1, batch=10, seed=2, failure=failure) as study:
        for _ in range(5):
            for trial in study.ask(20):
                if trial.theta[0] > EDGE:
                    study.tell(trial.id, failed="fell over")
                else:
                    study.tell(trial.id, 2 + float(np.sin(trial.theta[0])))
        mean, std = float(study.mean[0]), float(study.std[0])
        found = study.evaluate()
        share = ndtr((EDGE - mean) / std)
        exact = given_success(mean, std)
        if failure != "censored":
            exact = share * exact + (1 - share) * failure
        assert found.low < exact < found.high
        assert ("does not fail" in found.words) == (failure == "censored")
        assert (study.history()[-1]["censored"] > 0) == (failure == "censored")


@pytest.mark.parametrize(
    "how", [{}, {"method": "mis-pgpe-ob"}, {"method": "mis-pgpe-ob", "mirrored": True}]
)
@pytest.mark.parametrize(("failure", "moves"), [("censored", 0), ("worst", 0), (-20.0, 2)])
def test_failures_fill_a_batch_where_they_are_worth_something(tmp_path, failure, moves, how):
    """Two batches that fail altogether; then one of four returns and one of four failures."""
    with Study.open(tmp_path / "s.db", dim=2, batch=4, failure=failure, **how) as study:
        study.tell_all([(t.id, study.result(failed="fell")) for t in study.ask(8)])
        assert study.diagnostics()["moves"] == moves
        assert (study.mean == 0).all()  # all that is known is equal
        study.tell_all([(t.id, study.result(float(t.theta.sum()))) for t in study.ask(4)])
        study.tell_all([(t.id, study.result(failed="fell")) for t in study.ask(4)])
        assert study.diagnostics()["moves"] == (4 if moves else 1)
        assert study.until_move() == 4
        assert (study.mean != 0).all()
        mean = study.mean
    assert all(part.sound for part in check(tmp_path / "s.db"))
    recover(tmp_path / "s.db", tmp_path / "again.db")
    with Study.open(tmp_path / "again.db") as study:
        assert study.until_move() == 4
        np.testing.assert_array_equal(study.mean, mean)


def test_another_method_keeps_what_failing_costs(tmp_path):
    """A fork and a replay: it belongs to the problem, not to the method."""
    with Study.open(tmp_path / "s.db", dim=2, batch=4, failure=-20.0) as study:
        for i, trial in enumerate(study.ask(8)):
            study.tell(trial.id, **({"failed": "fell"} if i % 2 else {"value": float(i)}))
        assert [row.info["censored"] for row in study.replay("iw-pgpe-ob")] == [0, 0]
        with study.fork(tmp_path / "new.db", method="iw-pgpe-ob") as fork:
            assert fork.method.failure == -20.0
        with study.fork(tmp_path / "other.db", method="iw-pgpe-ob", failure="worst") as fork:
            assert fork.method.failure == "worst"


def test_of_failures_alone_the_expected_return_is_not_known():
    data = problem(n=10)
    data["returns"] = np.full(20, np.nan)
    found = recoup.estimate(**data)
    assert np.isnan(found.objective)
    assert np.isnan(found.interval()).all()
    assert recoup.estimate(**data, failure=-5.0).objective < 0


def test_quadrature_agrees_with_the_grid():
    """The grid that the others are held against, without an edge."""
    nodes, mass = gauss_hermite(*NEW)
    x = np.linspace(-9, 9, 40_001)
    grid = np.trapezoid(stats.norm.pdf(x, *NEW) * (2 + np.sin(x)), x)
    assert grid == pytest.approx(mass @ (2 + np.sin(nodes)), rel=1e-9)

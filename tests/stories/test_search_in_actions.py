"""One `tell` of each action-space method against plain loops: failures, early ends, discounts."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from linear_quadratic import DISCOUNT, HORIZON, MODEL, episodes, expected_return, policy
from oracles import stratified_error
from scipy import stats

import recoup
from recoup.core.estimators.reward_weighted import GRID
from recoup.engine.methods import METHODS
from recoup.engine.plain import family_of
from recoup.runs.lockstep import search_of
from recoup.tasks.measured import measured
from recoup.tasks.models import task_of
from recoup.tasks.rollouts import fresh_returns

pytestmark = pytest.mark.usefixtures("x64")

N, T = 7, HORIZON  # seven do not divide into five folds
STARTS = np.array([[-0.4, 0.3, 0.6], [-0.7, 0.1, 0.8]])


def batches(fails=True):
    """Two batches by two policies: one early end in each, and one failure where it `fails`."""
    found = []
    for i, x in enumerate(STARTS):
        h = episodes(jax.random.key(i), x, N)
        found.append(
            h._replace(
                rewards=h.rewards.at[1 + i, 2].add(jnp.nan if fails else 0.0).at[4, 3].set(99.0),
                steps=h.steps.at[4].set(3),
            )
        )
    return found


class Told:
    """The trajectories that did not fail, as plain numbers; those of the archive by `slot`."""

    def __init__(self, x, fails=True):
        self.x, self.rows, self.slot = x, [], []
        for batch, h in enumerate(batches(fails)):
            for n in range(N):
                if n != 1 + batch or not fails:
                    arrays = [np.asarray(a[n]) for a in h]
                    self.rows.append(arrays)
                    self.slot.append(batch * N + n)
                    arrays.append(STARTS[batch])

    def error(self, residuals):
        """Of their mean; one that failed is a draw that adds nothing."""
        every = np.zeros(2 * N)
        every[self.slot] = residuals
        return stratified_error(every, [n // N for n in range(2 * N)]) / len(residuals)

    def log_p(self, row, x):
        """log p(a_t | s_t) by step, zero behind the end."""
        phi, a, _, steps, _ = row
        values = stats.norm.logpdf(a[:, 0], phi @ x[:2], x[2])
        return np.where(np.arange(T) < steps, values, 0.0)

    def log_w(self):
        return np.array([np.cumsum(self.log_p(r, self.x) - self.log_p(r, r[4])) for r in self.rows])

    def rewards(self):
        """Discounted, by step, zero behind the end."""
        live = np.array([np.arange(T) < r[3] for r in self.rows])
        return np.where(live, [r[2] for r in self.rows], 0.0) * DISCOUNT ** np.arange(T)

    def scores(self):
        """By step, zero behind the end, `[M, T, 3]`."""
        mu, sigma = self.x[:2], self.x[2]
        found = []
        for phi, a, _, steps, _ in self.rows:
            e = a[:, 0] - phi @ mu
            s = np.column_stack([e[:, None] * phi / sigma**2, (e**2 - sigma**2) / sigma**3])
            found.append(np.where((np.arange(T) < steps)[:, None], s, 0.0))
        return np.array(found)


def moved(method, fails=True, **settings):
    """rho after two batches, and what the second `tell` saw; the policies are put in by hand."""
    search = recoup.search(
        method, dim=2, batch=N, capacity=2 * N, horizon=T, discount=DISCOUNT, **settings
    )
    state = search.init(jax.random.key(0), mean=STARTS[0, :2], std=STARTS[0, 2])
    first, second = batches(fails)
    state, _ = search.tell(jax.random.key(0), state, first)
    rho = policy(STARTS[1])
    proposals = jax.tree.map(lambda p, x: p.at[1].set(x), state.archive.proposals, rho)
    state = state._replace(rho=rho, archive=state.archive._replace(proposals=proposals))
    state, info = search.tell(jax.random.key(0), state, second)
    return np.concatenate([state.mean, state.std]), info


def normalised(x, g, epsilon):
    after = x + epsilon * g / np.linalg.norm(g)
    return np.array([*after[:2], max(after[2], 0.05)])


@pytest.mark.parametrize("fails", [False, True])
def test_reinforce(fails):
    """With failures, the return given success: weights over their mean, the mean as baseline."""
    told = Told(STARTS[1], fails)
    w, returns, s = np.exp(told.log_w()[:, -1]), told.rewards().sum(1), told.scores().sum(1)
    w = w / w.mean() if fails else w
    c = w if fails else w**2 * (s**2).sum(1)
    b = c @ returns / c.sum()
    g = (w * (returns - b)) @ s / len(w)
    after, info = moved("iw-reinforce-ob", fails, epsilon=0.3)
    np.testing.assert_allclose(after, normalised(told.x, g, 0.3), rtol=1e-9)
    assert info.samples == 2 * N - 2 * fails
    assert info.failed == fails
    assert info.censored == 2 * fails
    np.testing.assert_allclose(info.baseline, b, rtol=1e-9)
    np.testing.assert_allclose(info.objective, (w * returns).mean(), rtol=1e-12)
    residuals = w * (returns - b) if fails else w * returns - (w * returns).mean()
    error = told.error(residuals)
    np.testing.assert_allclose(info.objective_stderr, error, rtol=1e-9)


@pytest.mark.parametrize(("normalize", "fails"), [(False, False), (True, False), (False, True)])
def test_reinforce_per_decision(normalize, fails):
    told = Told(STARTS[1], fails)
    w, r = np.minimum(np.exp(told.log_w()), 1.2), told.rewards()
    if normalize or fails:
        w = w / w.mean(0)
    s = np.cumsum(told.scores(), axis=1)
    c = w if fails else w**2 * (s**2).sum(2)
    b = (c * r).sum(0) / c.sum(0)
    g = np.einsum("nt,ntd->d", w * (r - b), s) / len(w)
    settings = {"truncate": 1.2, "normalize": normalize}
    after, info = moved("iw-reinforce-ob", fails, epsilon=0.3, per_decision=True, **settings)
    np.testing.assert_allclose(after, normalised(told.x, g, 0.3), rtol=1e-8)
    np.testing.assert_allclose(info.baseline, b, rtol=1e-8)
    np.testing.assert_allclose(info.objective, (w * r).sum(1).mean(), rtol=1e-9)
    mean = (w * r).mean(0)
    residuals = (w * (r - mean) if normalize or fails else w * r - mean).sum(1)
    np.testing.assert_allclose(info.objective_stderr, told.error(residuals), rtol=1e-8)
    np.testing.assert_allclose(np.asarray(info.weights).ravel()[told.slot], w[:, -1], rtol=1e-9)


def test_enac():
    told = Told(STARTS[1])
    w, returns = np.minimum(np.exp(told.log_w()[:, -1]), 2.0), told.rewards().sum(1)
    psi = np.einsum("t,ntd->nd", DISCOUNT ** np.arange(T), told.scores())
    design = np.sqrt(w)[:, None] * np.column_stack([psi, np.ones(len(w))])
    v = np.linalg.lstsq(design, np.sqrt(w) * returns)[0]
    after, info = moved("tiw-enac", epsilon=0.3, ridge=1e-13)
    np.testing.assert_allclose(after, normalised(told.x, v[:3], 0.3), rtol=1e-6)
    np.testing.assert_allclose(info.baseline, v[3], rtol=1e-6)


@pytest.mark.parametrize("floor", [0.05, 0.75])
def test_r3(floor):
    """The whole step with cross-validation; the higher floor holds candidates' sigma too."""
    told = Told(STARTS[1])
    log_w, earned = told.log_w(), told.rewards() / DISCOUNT ** np.arange(T)
    shifted = (earned - earned.min()) * DISCOUNT ** np.arange(T)
    fold = np.array(told.slot) % 5

    def fit(worth):
        rows = [
            (np.sqrt(v), r[0][t], r[1][t, 0])
            for v, r in zip(worth, told.rows, strict=True)
            for t in range(int(r[3]))
        ]
        weight, phi, a = (np.array(column) for column in zip(*rows, strict=True))
        mu = np.linalg.lstsq(weight[:, None] * phi, weight * a)[0]
        sigma = np.sqrt(np.average((a - phi @ mu) ** 2, weights=weight**2))
        return np.array([*mu, max(sigma, floor)])

    def on_fold(nu, k):
        x = fit(np.where(fold == k, 0.0, (np.exp(nu * log_w) * shifted).sum(1)))
        w = np.exp([(told.log_p(r, x) - told.log_p(r, r[4])).sum() for r in told.rows])
        return np.average(shifted.sum(1)[fold == k], weights=w[fold == k])

    earned_by = [np.mean([on_fold(nu, k) for k in range(5)]) for nu in GRID]
    nu = GRID[int(np.argmax(earned_by))]
    after, info = moved("r3", ridge=1e-13, tau_floor=floor)
    assert float(info.flatten) == nu
    np.testing.assert_allclose(after, fit((np.exp(nu * log_w) * shifted).sum(1)), rtol=1e-6)
    np.testing.assert_allclose(info.baseline, earned.min(), rtol=1e-12)


def test_r3_prefers_what_earns_more_when_episodes_end_early():
    """-1 a step until an early end: the episodes that end sooner are the better ones."""
    search = recoup.search("r3", dim=1, batch=200, capacity=200, horizon=4, flatten=1.0)
    state = search.init(jax.random.key(0), mean=0.0, std=1.0)
    actions = np.random.default_rng(0).normal(size=(200, 4, 1))
    steps = np.where(actions[:, 0, 0] > 0, 1, 4)  # a push at first ends the episode
    h = recoup.Trajectory(np.ones((200, 4, 1)), actions, -np.ones((200, 4)), steps)
    state, _ = search.tell(jax.random.key(0), state, h)
    assert state.mean[0] > 0.5


def test_the_tests_of_a_run_draw_the_actions():
    """Returns of the stochastic policy against the exact expected return, 4 s.e."""
    task = task_of("lq", MODEL, HORIZON, DISCOUNT)
    x = np.array([-0.5, 0.2, 0.9])
    test = fresh_returns(task, family_of(METHODS["r3"]), 40_000)
    result = measured(test(jax.random.key(0), policy(x)))
    exact = expected_return(x, DISCOUNT)[0]
    assert abs(result.mean - exact) < 4 * result.stderr
    still = expected_return(np.array([-0.5, 0.2, 0.0]), DISCOUNT)[0]
    assert abs(still - exact) > 20 * result.stderr


@pytest.mark.slow
def test_a_run_hands_its_discount_to_the_search():
    """r3 with and without the discount part ways; a run follows the task's."""
    task = task_of("lq", MODEL, HORIZON, 0.5)
    run = search_of(task, "r3", N, 2, {})
    ends = {}
    for discount in (0.5, 1.0):
        search = recoup.search("r3", dim=2, batch=N, capacity=2 * N, horizon=T, discount=discount)
        ends[discount] = tell_once(search)
    np.testing.assert_array_equal(tell_once(run), ends[0.5])
    assert not np.allclose(ends[0.5], ends[1.0])


def tell_once(search):
    state = search.init(jax.random.key(0), mean=STARTS[0, :2], std=STARTS[0, 2])
    return np.asarray(search.tell(jax.random.key(0), state, batches()[0])[0].mean)


@pytest.mark.parametrize("method", ["iw-reinforce-ob", "tiw-enac", "r3"])
def test_runs_are_seeded(method):
    runs = [recoup.train("toy", method, iterations=3, seed=seed) for seed in (0, 0, 1)]
    np.testing.assert_array_equal(runs[0].mean, runs[1].mean)
    np.testing.assert_array_equal(runs[0].curve.mean, runs[1].curve.mean)
    assert not np.array_equal(runs[0].mean, runs[2].mean)
    assert (runs[0].history[-1].flatten is not None) == (method == "r3")


@pytest.mark.parametrize("method", ["tiw-enac", "r3"])
def test_many_nearly_equal_features_move_in_float32(method):
    """600 features of 1 + 0.1 noise: a large eigenvalue, and rounding that grows with it."""
    with jax.enable_x64(False):
        search = recoup.search(method, dim=600, batch=10, capacity=20, horizon=5)
        state = search.init(jax.random.key(0), mean=0.0)
        rng = np.random.default_rng(0)
        arrays = [1 + 0.1 * rng.normal(size=(10, 5, 600)), rng.normal(size=(10, 5, 1))]
        h = recoup.Trajectory(*arrays, rng.uniform(size=(10, 5)), np.full(10, 5))
        after, _ = search.tell(jax.random.key(0), state, h)
        assert np.isfinite(after.mean).all()
        assert np.abs(after.mean).max() > 0

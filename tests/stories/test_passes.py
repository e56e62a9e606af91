"""Tell and estimate by either pass over the archive, beside loops over samples and coordinates."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oracles import loop_estimate
from passes import PASSES, Counted, take

import recoup
from recoup.engine import search as searches

WAYS = [("iw-pgpe-ob", True), ("mis-pgpe-ob", True), ("mis-pgpe-ob", False)]
SHAPES = [(1, 5, 3), (7, 1, 2), (3, 5, 1), (5, 3, 7), (2, 1, 1)]  # batches, N, D
# Every two of way, shape and pass meet; `core/test_sweeps.py` has both passes at every size.
CASES = [
    (*way, *shape, list(PASSES)[(i + j) % 2])
    for i, way in enumerate(WAYS)
    for j, shape in enumerate(SHAPES)
]


@pytest.fixture(autouse=True)
def _anew():
    """No search is left that was made for another pass."""
    searches._build.cache_clear()
    yield
    searches._build.cache_clear()


@pytest.fixture(params=PASSES)
def passed(request, monkeypatch):
    """Searches go by this pass, in chunks of a few samples."""
    take(monkeypatch, request.param, chunk=8, room=24)


def objective(theta):
    return 1.0 - jnp.sum((theta - 0.4) ** 2, axis=-1) + 0.3 * theta[..., 0]


def told(search, batches):
    """The state and info after so many tells, and the samples as the loops take them."""
    state, info, thetas, rhos = search.init(jax.random.key(0), std=0.7), None, [], []
    for i in range(batches):
        theta, state = search.ask(jax.random.key(i), state)
        thetas.append(np.asarray(theta))
        rhos.append((np.asarray(state.mean), np.asarray(state.std)))
        state, info = search.tell(jax.random.key(i), state, theta, objective(theta))
    theta = np.concatenate(thetas)
    problem = {
        "theta": theta,
        "returns": np.asarray(objective(theta)),
        "proposals": tuple(np.stack(x) for x in zip(*rhos, strict=True)),
        "proposal": np.repeat(np.arange(batches), search.batch),
        "target": rhos[-1],
    }
    return state, info, problem


def loops(name, problem):
    weighting = "own" if name == "iw-pgpe-ob" else "balance"
    return loop_estimate(problem, weighting=weighting, baseline="optimal")


@pytest.mark.usefixtures("x64", "passed")
@pytest.mark.parametrize(
    ("name", "table", "batches", "batch", "dim", "passed"), CASES, indirect=["passed"]
)
def test_tell_and_estimate_are_those_of_plain_loops(name, table, batches, batch, dim):
    size = {"dim": dim, "batch": batch, "capacity": batches * batch}
    search = recoup.search(name, table=table, **size)
    state, info, problem = told(search, batches)
    want = loops(name, problem)
    np.testing.assert_allclose(info.weights.ravel(), want["weights"], rtol=1e-9)
    for key in ("objective", "objective_stderr", "baseline", "ess"):
        np.testing.assert_allclose(getattr(info, key), want[key], rtol=1e-8, err_msg=key)
    gradient = np.concatenate([want["mean_gradient"], want["std_gradient"]])
    moved = np.concatenate([state.mean, state.std]) - np.concatenate(problem["target"])
    step = np.linalg.norm(moved)
    np.testing.assert_allclose(moved / step, gradient / np.linalg.norm(gradient), atol=1e-9)
    if batches > 1:
        target = (np.asarray(state.mean) + 0.1, np.asarray(state.std))
        rho = state.rho._replace(eta=jnp.asarray(target[0]))
        found = search.estimate(rho, state.archive)
        want = loops(name, {**problem, "target": target})
        scale = max(abs(want["mean_gradient"]))
        np.testing.assert_allclose(found.gradient.eta, want["mean_gradient"], atol=1e-10 * scale)
        np.testing.assert_allclose(found.objective, want["objective"], rtol=1e-9)


@pytest.mark.slow
@pytest.mark.usefixtures("passed", "x64")
@pytest.mark.parametrize("name", ["iw-pgpe-ob", "mis-pgpe-ob", "recoup"])
def test_searches_under_vmap_are_a_loop_of_calls(name):
    search = recoup.search(name, dim=3, batch=4, capacity=20)
    keys = jax.random.split(jax.random.key(0), 3)

    def run(key):
        state = search.init(key, std=0.7)
        for i in range(3):
            theta, state = search.ask(jax.random.fold_in(key, i), state)
            state, _ = search.tell(key, state, theta, objective(theta))
        return state.mean, state.std

    together = jax.jit(jax.vmap(run))(keys)
    for i, key in enumerate(keys):
        for got, want in zip(together, run(key), strict=True):
            np.testing.assert_allclose(got[i], want, rtol=1e-8)


@pytest.mark.slow
@pytest.mark.usefixtures("passed")
@pytest.mark.parametrize(("name", "table"), WAYS)
def test_float32_stays_within_a_ten_thousandth_of_float64(name, table):
    """Of the gradient's largest entry."""
    search = recoup.search(name, dim=301, batch=7, capacity=35, table=table)
    found = []
    thetas = [np.random.default_rng(i).normal(0.4, 0.9, (7, 301)) for i in range(5)]
    for double in (False, True):
        with jax.enable_x64(double):
            state = search.init(jax.random.key(0), mean=0.3)
            for theta in thetas:
                x = jnp.asarray(theta, jnp.float64 if double else jnp.float32)
                state, _ = search.tell(jax.random.key(0), state, x, objective(x))
            rho = jax.tree.map(lambda x: 1.01 * x, state.rho)
            gradient = search.estimate(rho, state.archive).gradient
            found.append(np.concatenate([gradient.eta, gradient.tau]))
    assert found[0].dtype == np.float32
    assert np.abs(found[0] - found[1]).max() < 1e-4 * np.abs(found[1]).max()


@pytest.mark.parametrize("passed", PASSES)
@pytest.mark.parametrize("table", [True, False])
def test_a_tell_computes_the_newest_density_of_a_sample_once(passed, table, monkeypatch):
    """A row of all samples, and the batch under every proposal; `estimate` a row.

    A processor takes proposals one by one here and leaves out empty slots, an accelerator all.
    """
    counted, batches, batch, dim = Counted(), 6, 5, 2
    take(monkeypatch, passed, chunk=batch * dim)
    size = {"dim": dim, "batch": batch, "capacity": batches * batch}
    how = {"table": table, "late": 0, "family": counted.family}
    search = recoup.search("mis-pgpe-ob", **size, **how)
    state, slots = search.init(jax.random.key(0), mean=0.0), batches + 1
    for i in range(batches):
        theta, state = search.ask(jax.random.key(i), state)
        told = (jax.random.key(i), state, theta, objective(theta))
        (state, _), seen = counted.during(lambda told=told: search.tell(*told))
        assert seen == (batches + (i + 1 if passed == "processor" else slots)) * batch
    _, seen = counted.during(lambda: search.estimate(state.rho, state.archive))
    assert seen == batches * batch


def test_a_rule_may_ask_at_any_rho(monkeypatch):
    """What a tell knows of the newest proposal is used there, and nowhere else."""
    take(monkeypatch, "processor")
    counted = Counted()

    def step(estimate, rho, memory):
        here = estimate(rho)
        away = jax.tree.map(lambda x: 1.1 * x, rho)
        there = estimate(away)
        return away, there.objective, here

    rule = recoup.Update(lambda rho: jnp.zeros(()), step)
    size = {"dim": 2, "batch": 5, "capacity": 20, "late": 0}
    search = recoup.search("mis-pgpe-ob", update=rule, family=counted.family, **size)
    state = search.init(jax.random.key(0), mean=0.3)
    for i in range(2):
        theta, state = search.ask(jax.random.key(i), state)
        told = (jax.random.key(i), state, theta, objective(theta))
        (state, info), seen = counted.during(lambda told=told: search.tell(*told))
    assert seen == (2 * 4 + 5) * 5
    there = search.estimate(state.rho, state.archive).objective
    np.testing.assert_allclose(state.update, there, rtol=1e-5)
    assert abs(info.objective - there) > 1e-3

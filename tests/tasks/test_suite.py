"""Tasks of the suite, against Gymnasium and against loops that share no code with them."""

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from recoup.compare.arenas import arena_of
from recoup.tasks import functions, lqr, pendulum
from recoup.tasks.registry import make_task, task_row
from recoup.tasks.suite import GYM_TASKS

pytestmark = pytest.mark.usefixtures("x64")


def test_the_pendulum_is_gymnasiums_step_by_step():
    env = gymnasium.make("Pendulum-v1").unwrapped
    rng = np.random.default_rng(0)
    for seed in range(3):
        observed, _ = env.reset(seed=seed)
        state = np.array(env.state)
        for _ in range(60):
            np.testing.assert_allclose(pendulum.basis(np, state)[:3], observed, atol=1e-6)
            action = rng.normal(0, 2, 1)
            after = pendulum.transition(jnp, jnp.asarray(state), action, None)
            reward = pendulum.reward(jnp, jnp.asarray(state), action, after)
            observed, theirs, *_ = env.step(action)
            assert float(reward) == pytest.approx(theirs, abs=1e-9)
            np.testing.assert_allclose(after, env.state, atol=1e-9)
            state = np.asarray(after)


def test_the_pendulum_starts_as_gymnasiums_does():
    noise = np.random.default_rng(1).standard_normal((4000, 2))
    starts = np.array([pendulum.initial(np, one) for one in noise])
    np.testing.assert_allclose(starts[:5], [pendulum.initial(jnp, one) for one in noise[:5]])
    assert np.abs(starts).max(0) == pytest.approx([np.pi, 1.0], rel=0.01)
    np.testing.assert_allclose(starts.std(0), np.array([np.pi, 1.0]) / np.sqrt(3), rtol=0.04)
    task = make_task("pendulum")
    assert (task.dim, task.horizon, task.discount) == (4, 200, 1.0)


def lqr_by_hand(system, gains, noise):
    x, total = noise[0], 0.0
    for e in noise[1:]:
        u = [sum(x[i] * gains[i][j] for i in range(len(x))) for j in range(len(gains[0]))]
        cost = sum(v * v for v in x) + 0.1 * sum(v * v for v in u)
        total -= cost / (1 + cost / 100) / 25
        x = system.a @ x + system.b @ np.array(u) + 0.1 * e
    return total


@pytest.mark.parametrize(("name", "states", "actions"), [("lqr-8", 4, 2), ("lqr-32", 8, 4)])
def test_linear_quadratic_control_is_a_plain_loop(name, states, actions):
    task = make_task(name, system=3)
    assert task.dim == states * actions
    theta = np.random.default_rng(0).normal(0, 0.3, (4, task.dim))
    keys = jax.random.split(jax.random.key(0), 4)
    found = task.rollouts(keys, jnp.asarray(theta))
    system = lqr.system_of(states, actions, 3)
    assert np.abs(np.linalg.eigvals(system.a)).max() == pytest.approx(lqr.RADIUS)
    for key, one, got in zip(keys, theta, found, strict=True):
        noise = np.asarray(jax.random.normal(key, (26, states), jnp.float64))
        want = lqr_by_hand(system, one.reshape(states, actions), noise)
        assert float(got) == pytest.approx(want, rel=1e-9)


def test_costs_stay_bounded_under_unstable_gains():
    task = make_task("lqr-32")
    keys = jax.random.split(jax.random.key(0), 8)
    found = task.rollouts(keys, 1e6 * jax.random.normal(keys[0], (8, 32)))
    assert np.isfinite(found).all()
    assert (np.asarray(found) >= -100).all()


@pytest.mark.parametrize(
    ("name", "best"),
    [("sphere", 0.0), ("ellipsoid", 0.0), ("rosenbrock", 1.0), ("rastrigin", 0.0), ("ackley", 0.0)],
)
def test_functions_are_least_where_they_should_be(name, best):
    f = functions.FUNCTIONS[name]
    assert float(f(np, np.full(10, best))) == pytest.approx(0.0, abs=1e-9)
    for one in np.random.default_rng(0).normal(best, 0.3, (20, 10)):
        assert float(f(np, one)) > 0
        assert float(f(jnp, jnp.asarray(one))) == pytest.approx(float(f(np, one)))


def test_functions_by_hand():
    x = np.array([0.5, -1.0, 2.0])
    assert functions.ellipsoid(np, x) == pytest.approx(0.25 + 1000**0.5 + 4000)
    assert functions.rosenbrock(np, x) == pytest.approx(100 * (1.25**2 + 1) + 0.25 + 4)
    task = make_task("sphere-10", noise=2.0)
    keys = jax.random.split(jax.random.key(1), 2000)
    returns = np.asarray(task.rollouts(keys, jnp.ones((2000, 10))))
    assert returns.mean() == pytest.approx(-10, abs=0.18)  # 4 standard errors
    assert returns.std() == pytest.approx(2.0, rel=0.07)


def test_training_starts_where_the_row_says():
    import recoup

    row = task_row("sphere-10")
    assert (row.mean, row.std, row.drawn) == (1.0, 0.5, True)
    run = recoup.train("sphere-10", "pgpe", iterations=1, seed=3)
    assert run.plan.std == 0.5
    drawn = jax.random.normal(jax.random.split(jax.random.key(3), 3)[0], (10,), jnp.float64)
    np.testing.assert_allclose(run.means[0], 1.0 + drawn)


@pytest.mark.parametrize(
    ("name", "dim"),
    [("half-cheetah", 102), ("hopper", 33), ("walker2d", 102), ("reacher", 20), ("pusher", 161)],
)
def test_locomotion_has_linear_policies_without_bias(name, dim):
    pytest.importorskip("mujoco")
    arena = arena_of(name)
    assert arena.dim == dim
    assert arena.problem.horizon == GYM_TASKS[name].horizon
    np.testing.assert_array_equal(arena.std, GYM_TASKS[name].std)

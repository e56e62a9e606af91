import math
import warnings

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import recoup  # noqa: F401  (registers the environments)
from recoup.tasks.registry import TASKS, make_problem, make_task

pytestmark = pytest.mark.usefixtures("x64")


MODELS = [name for name in TASKS if not name.startswith("reach")]


def one_return(task, key, theta):
    return float(task.rollouts(key[None], theta[None])[0])


def car_by_hand(theta, horizon, discount, limit):
    """The mountain car as the paper prints it, one number at a time."""
    x, v, total = -math.pi / 6, 0.0, 0.0
    for t in range(horizon):
        a, i = 0.0, 0
        for cx in (-1.2, -0.35, 0.5):
            for cv in (-1.5, -0.5, 0.5, 1.5):
                a += theta[i] * math.exp(-((x - cx) ** 2 + (v - cv) ** 2) / 2)
                i += 1
        a = max(-limit, min(limit, a))
        v = v + (-9.8 * 0.2 * math.cos(3 * x) + a / 0.2 - 0.3 * v) * 0.1
        v = max(-1.5, min(1.5, v))
        x = max(-1.2, min(0.5, x + v * 0.1))
        total += discount**t * (1 if x >= 0.45 else -1)
    return total


def toy_by_hand(theta, noise, discount):
    s, total = noise[0], 0.0
    for t, eps in enumerate(noise[1:]):
        a = theta * s
        total += discount**t * (math.exp(-(s**2) / 2 - a**2 / 2) + 1)
        s = s + a + 0.5 * eps
    return total


@pytest.mark.parametrize(
    ("name", "limit"), [("mountain-car", math.inf), ("mountain-car-weak", 0.3)]
)
def test_the_car_is_the_papers(name, limit):
    task = make_task(name)
    thetas = np.random.default_rng(0).normal(0, 2, (40, 12))
    keys = jax.random.split(jax.random.key(0), 40)
    got = task.rollouts(keys, jnp.asarray(thetas))
    want = [car_by_hand(theta, 40, 0.95, limit) for theta in thetas]
    np.testing.assert_allclose(got, want, rtol=1e-12)
    assert len(set(want)) > 2


def test_a_car_that_stands_still_never_reaches_the_goal():
    floor = -(1 - 0.95**40) / (1 - 0.95)
    got = one_return(make_task("mountain-car"), jax.random.key(0), jnp.zeros(12))
    assert got == pytest.approx(floor)


def test_the_toy_is_the_papers():
    task = make_task("toy")
    for i, theta in enumerate([-1.6, -0.6, 0.1]):
        key = jax.random.key(i)
        noise = np.asarray(jax.random.normal(key, (11, 1), jnp.float64))[:, 0]
        got = one_return(task, key, jnp.asarray([theta]))
        assert got == pytest.approx(toy_by_hand(theta, noise, 0.9), rel=1e-12)


def test_horizon_and_discount_can_be_changed():
    task = make_task("mountain-car", horizon=7, discount=0.5)
    theta = np.random.default_rng(1).normal(size=12)
    got = one_return(task, jax.random.key(0), jnp.asarray(theta))
    assert got == pytest.approx(car_by_hand(theta, 7, 0.5, math.inf))


@pytest.mark.parametrize("name", MODELS)
def test_the_environment_and_the_vectorised_rollout_are_the_same_task(name):
    """The environment's own noise, replayed from its seed, through the JAX model."""
    task, model, env = make_task(name), make_problem(name), gymnasium.make(TASKS[name].env_id)
    theta = np.random.default_rng(2).normal(size=task.dim)
    states = len(model.low)
    observation, _ = env.reset(seed=5)
    noise = gymnasium.utils.seeding.np_random(5)[0].standard_normal((task.horizon + 1, states))
    state, total, expected, steps = model.initial(jnp, jnp.asarray(noise[0])), 0.0, 0.0, 0
    truncated = False
    while not truncated:
        np.testing.assert_allclose(observation, state, rtol=1e-12, atol=1e-14)
        action = task.act(theta, observation)
        observation, reward, terminated, truncated, _ = env.step(action)
        after = model.transition(jnp, state, jnp.asarray(action), jnp.asarray(noise[steps + 1]))
        expected += task.discount**steps * float(model.reward(jnp, state, action, after))
        total += task.discount**steps * reward
        state, steps = after, steps + 1
        assert not terminated
    assert steps == task.horizon
    assert total == pytest.approx(expected, rel=1e-12)
    if not TASKS[name].random:
        assert total == pytest.approx(one_return(task, jax.random.key(0), jnp.asarray(theta)))


@pytest.mark.parametrize("name", MODELS)
def test_env_checker_finds_nothing_but_unbounded_spaces(name):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_env(gymnasium.make(TASKS[name].env_id).unwrapped)
    words = ("infinity", "symmetric and normalized")  # the second follows from the first
    others = [str(w.message) for w in caught if not any(word in str(w.message) for word in words)]
    assert others == []
    if name == "mountain-car-weak":
        assert not caught


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: make_task("mountain-cart"), "task must be one of .* Did you mean 'mountain-car'"),
        (lambda: make_task("toy", horizon=0), "horizon must be a whole number"),
        (lambda: make_task("toy", discount=-0.1), "discount must be in"),
    ],
)
def test_bad_input_gets_one_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()

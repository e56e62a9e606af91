import math
from types import SimpleNamespace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces
from sentences import IN_ACTIONS, TORCH_IN_JAX

import recoup
from recoup.checks import InputError
from recoup.tasks.own.jax_envs import jax_env, jax_policy, jax_task, traced
from recoup.tasks.policies.networks import MLP, Linear
from recoup.tasks.policies.policy import Scale, SpacePolicy

LOW, HIGH = (-1.0, -math.inf), (3.0, 0.25)  # the second action is bounded on one side
LINEAR = 3 * 2  # parameters of two observations and a bias, for two actions


class Params(NamedTuple):
    max_steps_in_episode: int = 9
    edge: float = 2.5
    first: float = 0.5


class State(NamedTuple):
    x: Any
    over: Any
    key: Any  # as many environments carry one


def box(low, high, shape, dtype=np.float64):
    return SimpleNamespace(low=low, high=high, shape=shape, dtype=dtype)


def discrete(n):
    return SimpleNamespace(n=n, shape=(), dtype=np.int32)


class Drift:
    """A linear system in noise that ends at an edge, in the style of gymnax.

    Whoever goes on after the end is paid what is not a number.
    """

    default_params = Params()
    actions = box(np.array(LOW), np.array(HIGH), (2,))

    def observation_space(self, params):
        return box(-math.inf, math.inf, (2,))

    def action_space(self, params):
        return self.actions

    def reset_env(self, key, params):
        x = jnp.array([params.first, -0.2]) + 0.1 * jax.random.normal(key, (2,))
        return x, State(x, False, key)

    def push(self, action):
        return action

    def step_env(self, key, state, action, params):
        push = self.push(action)
        noise = 0.1 * jax.random.normal(key, (2,))
        x = jnp.array([[1.1, 0.3], [-0.2, 0.9]]) @ state.x + 0.4 * push + noise
        reward = jnp.where(state.over, jnp.nan, x[0] - 0.5 * x[1] - 0.1 * jnp.sum(push**2))
        over = jnp.abs(x[0]) > params.edge
        return x, State(x, over, key), reward, over, {}

    def reset(self, key, params):
        raise AssertionError("reset_env is there")

    step = reset


class Chooses(Drift):
    """Pushes by one of five choices."""

    actions = discrete(5)
    pushes = np.array([[-1.0, 0.0], [0.0, 0.3], [1.0, 0.0], [0.5, 0.5], [0.0, -0.7]])

    def push(self, action):
        return jnp.array(self.pushes.tolist())[action]


class ChoosesOne:
    """Pushes by one of two choices, and has only the plain verbs, with two kinds of ends."""

    default_params = Params()

    def observation_space(self, params):
        return box(-math.inf, math.inf, (2,))

    def action_space(self, params):
        return discrete(2)

    def reset(self, key, params):
        return Chooses().reset_env(key, params)

    def step(self, key, state, action, params):
        x, state, reward, over, info = Chooses().step_env(key, state, action, params)
        return x, state, reward, over, x[1] > 1.0, info


class BraxState(NamedTuple):
    obs: Any
    reward: Any
    done: Any
    key: Any


class Brakes:
    """The same system in the style of brax: noise from a key of its own, ends as numbers."""

    observation_size, action_size = 2, 2

    def reset(self, rng):
        x = jnp.array([0.5, -0.2]) + 0.1 * jax.random.normal(rng, (2,))
        return BraxState(x, jnp.zeros(()), jnp.zeros(()), rng)

    def step(self, state, action):
        key, key_noise = jax.random.split(state.key)
        noise = 0.1 * jax.random.normal(key_noise, (2,))
        x = jnp.array([[1.1, 0.3], [-0.2, 0.9]]) @ state.obs + 0.4 * action + noise
        reward = x[0] - 0.5 * x[1] - 0.1 * jnp.sum(action**2)
        reward = jnp.where(state.done > 0, jnp.nan, reward)
        return BraxState(x, reward, (jnp.abs(x[0]) > 2.5).astype(float), key)


def system(x, push, noise):
    """A step of the system, a number at a time: where it is then, and what it is paid."""
    new = (
        1.1 * x[0] + 0.3 * x[1] + 0.4 * push[0] + 0.1 * noise[0],
        -0.2 * x[0] + 0.9 * x[1] + 0.4 * push[1] + 0.1 * noise[1],
    )
    return new, new[0] - 0.5 * new[1] - 0.1 * (push[0] ** 2 + push[1] ** 2)


def walked(start, noise_of, push_of, horizon, discount, ended):
    """Return and length of an episode, by a plain loop."""
    x, total = start, 0.0
    for t in range(horizon):
        x, reward = system(x, push_of(x), noise_of(t))
        total += discount**t * float(reward)
        if ended(x):
            return total, t + 1
    return total, horizon


def normal(key):
    return np.asarray(jax.random.normal(key, (2,)))


def started(key, first=0.5):
    noise = normal(key)
    return first + 0.1 * noise[0], -0.2 + 0.1 * noise[1]


def drifted(key, push_of, horizon, discount, ended=lambda x: abs(x[0]) > 2.5, first=0.5):
    """An episode in the style of gymnax: one key to begin with, one a step."""
    key_reset, key_steps = jax.random.split(key)

    def noise_of(t):
        return normal(jax.random.fold_in(key_steps, t))

    return walked(started(key_reset, first), noise_of, push_of, horizon, discount, ended)


def outputs(theta, x, count=2):
    """A linear policy: one row of weights an input, the last row the bias."""
    w = np.asarray(theta, float).reshape(3, count)
    return [x[0] * w[0, j] + x[1] * w[1, j] + w[2, j] for j in range(count)]


def clipped(theta):
    """-1 is the lower bound and 1 the upper; where there are not two, a number is the action."""

    def push(x):
        y = outputs(theta, x)
        return min(max(1.0 + 2.0 * y[0], -1.0), 3.0), min(y[1], 0.25)

    return push


def squashed(theta):
    def push(x):
        y = outputs(theta, x)
        return 1.0 + 2.0 * math.tanh(y[0]), min(y[1], 0.25)

    return push


def batch(dim, count=12, scale=0.7):
    keys = jax.random.split(jax.random.key(3), count)
    return keys, scale * np.random.default_rng(4).normal(size=(count, dim))


def compare(task, walks, keys, thetas, rtol=1e-10):
    """Returns of a batch with those of plain loops, of episodes of many lengths."""
    want, lengths = zip(*map(walks, keys, thetas), strict=True)
    assert len(set(lengths)) > 2
    assert 0 < lengths.count(task.horizon) < len(lengths)
    np.testing.assert_allclose(jax.jit(task.rollouts)(keys, thetas), want, rtol=rtol)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(("bounds", "push"), [("clip", clipped), ("squash", squashed)])
def test_returns_in_gymnax_style_are_those_of_a_plain_loop(bounds, push):
    task, std = jax_task("drift", Drift(), None, 0.8, policy_options={"actions": bounds})
    assert (task.name, task.dim, task.horizon, task.discount) == ("drift", LINEAR, 9, 0.8)
    assert task.traced
    np.testing.assert_allclose(std, [3**-0.5] * LINEAR)
    keys, thetas = batch(LINEAR)
    compare(task, lambda key, theta: drifted(key, push(theta), 9, 0.8), keys, thetas)


@pytest.mark.usefixtures("x64")
def test_returns_in_brax_style_are_those_of_a_plain_loop():
    task, _ = jax_task("brakes", Brakes(), 11, 0.9)
    keys, thetas = batch(LINEAR)

    def walk(key, theta):
        def push(x):
            return [np.float32(min(max(y, -1.0), 1.0)) for y in outputs(theta, x)]

        own = jax.random.split(key)[0]
        noises = []
        start = started(own)
        for _ in range(11):
            own, key_noise = jax.random.split(own)
            noises.append(normal(key_noise))
        return walked(start, noises.__getitem__, push, 11, 0.9, lambda x: abs(x[0]) > 2.5)

    compare(task, walk, keys, thetas, rtol=1e-6)


@pytest.mark.usefixtures("x64")
def test_the_largest_of_many_outputs_chooses():
    task, _ = jax_task("chooses", Chooses(), None, 0.8)
    assert task.dim == 3 * 5
    keys, thetas = batch(15)

    def walk(key, theta):
        def push(x):
            y = outputs(theta, x, 5)
            return Chooses.pushes[y.index(max(y))]

        return drifted(key, push, 9, 0.8)

    compare(task, walk, keys, thetas)


@pytest.mark.usefixtures("x64")
def test_one_output_chooses_between_two_and_either_end_ends():
    task, _ = jax_task("chooses-one", ChoosesOne(), None, 0.8)
    assert task.dim == 3
    keys, thetas = batch(3, count=20, scale=2.0)

    def walk(key, theta):
        def push(x):
            return Chooses.pushes[int(outputs(theta, x, 1)[0] > 0)]

        return drifted(key, push, 9, 0.8, lambda x: abs(x[0]) > 2.5 or x[1] > 1.0)

    compare(task, walk, keys, thetas)


@pytest.mark.parametrize(
    ("env", "policy"), [(Drift(), "linear"), (Chooses(), "mlp"), (Brakes(), "mlp")]
)
def test_a_batch_is_what_its_episodes_are_one_by_one(env, policy):
    task, std = jax_task("any", env, 6, 1.0, policy)
    keys = jax.random.split(jax.random.key(0), 5)
    thetas = std * jax.random.normal(jax.random.key(1), (5, task.dim))
    together = task.rollouts(keys, thetas)
    assert together.shape == (5,)
    assert len(set(together.tolist())) == 5
    alone = [task.rollouts(keys[i : i + 1], thetas[i : i + 1])[0] for i in range(5)]
    np.testing.assert_allclose(together, alone, rtol=1e-5)
    np.testing.assert_allclose(jax.jit(task.rollouts)(keys, thetas), together, rtol=1e-5)
    np.testing.assert_array_equal(task.rollouts(keys, thetas), together)


def test_an_episode_is_traced_once():
    traces = []

    class Counted(Drift):
        def reset_env(self, key, params):
            traces.append(key)
            return super().reset_env(key, params)

    task, _ = jax_task("counted", Counted(), None, 0.8)
    assert len(traces) == 1
    keys, thetas = batch(LINEAR)
    jax.jit(task.rollouts)(keys, jnp.asarray(thetas))
    assert len(traces) == 1


def test_a_task_can_be_used_in_both_precisions():
    task, _ = jax_task("drift", Drift(), None, 0.8)
    keys, thetas = batch(LINEAR)
    want = [drifted(k, clipped(t), 9, 0.8)[0] for k, t in zip(keys, thetas, strict=True)]
    for wide, dtype in ((False, np.float32), (True, np.float64), (False, np.float32)):
        with jax.enable_x64(wide):
            got = jax.jit(task.rollouts)(keys, jnp.asarray(thetas))
        assert got.dtype == dtype
    np.testing.assert_allclose(got, want, rtol=1e-4)


SPACES = {
    "half bounded": spaces.Box(np.array(LOW), np.array(HIGH), (2,), np.float64),
    "matrix": spaces.Box(-1.0, 4.0, (2, 3), np.float32),
    "whole": spaces.Box(-3, 6, (2,), np.int32),
    "two": spaces.Discrete(2, start=-1),
    "five": spaces.Discrete(5, start=3),
}


@pytest.mark.parametrize("bounds", ["clip", "squash"])
@pytest.mark.parametrize("name", SPACES)
def test_actions_in_jax_are_those_on_the_host(name, bounds):
    space = SPACES[name]
    size = {"half bounded": 2, "matrix": 6, "whole": 2, "two": 1, "five": 5}[name]
    sees = spaces.Dict(
        {"at": spaces.Box(-1.0, 1.0, (2, 1)), "in": spaces.Tuple([spaces.Discrete(3, start=1)])}
    )
    scale = Scale((0.1,) * 5, (0.5, 2.0, 1.0, 0.01, 1.0), 9)  # the fourth is held to its farthest
    policy = SpacePolicy(MLP(5, (4,), size), sees, space, bounds, scale)
    act, rng = jax.jit(lambda theta, seen: traced(policy)(theta)(seen)), np.random.default_rng(6)
    different = set()
    for _ in range(20):
        theta = rng.normal(size=policy.parameters)
        seen = {"at": rng.normal(size=(2, 1)), "in": (int(rng.integers(1, 4)),)}
        got, want = act(theta, seen), policy.bound(theta)(seen)
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
        assert space.contains(np.asarray(got, space.dtype).reshape(space.shape)[()])
        assert got.shape == space.shape
        different.add(np.asarray(got).tobytes())
    assert len(different) > 1


def test_act_on_the_host_is_the_policy():
    task, _ = jax_task("drift", Drift(), None, 1.0)
    theta, x = np.array([0.3, -0.5, 0.1, 2.0, -0.2, 0.4]), np.array([0.5, -0.25])
    np.testing.assert_allclose(task.act(theta, x), clipped(theta)(x))
    task, _ = jax_task("chooses", Chooses(), None, 1.0)
    theta = np.random.default_rng(7).normal(size=15)
    assert task.act(theta, x) == int(np.argmax(outputs(theta, x, 5)))


@pytest.mark.usefixtures("x64")
def test_kernels_lie_between_the_bounds_of_observations():
    class Bounded(Drift):
        def observation_space(self, params):
            return box(np.array([-2.0, -1.0]), np.array([3.0, 1.5]), (2,))

    options = {"size": 3}
    task, std = jax_task("bounded", Bounded(), None, 0.8, "kernels", options)
    assert task.dim == (9 + 1) * 2
    np.testing.assert_array_equal(std, np.ones(20))
    keys, thetas = batch(20)

    def walk(key, theta):
        w = theta.reshape(10, 2)

        def push(x):
            near = [
                math.exp(-((x[0] - a) ** 2 / 2.5**2 + (x[1] - b) ** 2 / 1.25**2) / 2)
                for a in (-2.0, 0.5, 3.0)
                for b in (-1.0, 0.25, 1.5)
            ]
            y = near @ w[:9] + w[9]
            return min(max(1.0 + 2.0 * y[0], -1.0), 3.0), min(y[1], 0.25)

        return drifted(key, push, 9, 0.8)

    compare(task, walk, keys, thetas)


def test_a_module_and_a_policy_of_the_users_can_be_rolled_out():
    eqx = pytest.importorskip("equinox")
    module = eqx.nn.Linear(2, 2, key=jax.random.key(0))
    plain, _ = jax_task("drift", Drift(), None, 0.8)
    task, std = jax_task("drift", Drift(), None, 0.8, module)
    np.testing.assert_allclose(std, 2**-0.5)

    class Own:
        parameters = LINEAR

        def act(self, theta, seen):
            y = seen @ theta[:4].reshape(2, 2) + theta[4:]
            scaled = jnp.array([1.0, 0.0]) + jnp.array([2.0, 1.0]) * y
            return jnp.clip(scaled, jnp.array(LOW), jnp.array(HIGH))

    own, own_std = jax_task("drift", Drift(), None, 0.8, Own())
    np.testing.assert_array_equal(own_std, np.ones(LINEAR))
    keys, thetas = batch(LINEAR)
    turned = np.concatenate([thetas[:, [0, 2, 1, 3]], thetas[:, 4:]], axis=1)  # [O, I] for [I, O]
    want = plain.rollouts(keys, thetas)
    np.testing.assert_allclose(task.rollouts(keys, turned), want, rtol=1e-4)
    np.testing.assert_allclose(own.rollouts(keys, thetas), want, rtol=1e-4)


def test_the_horizon_is_the_environments_own_or_less():
    params = Params(max_steps_in_episode=4)
    assert jax_task("drift", Drift(), None, 1.0, params=params)[0].horizon == 4
    task, _ = jax_task("drift", Drift(), 3, None)
    assert (task.horizon, task.discount) == (3, 1.0)
    with pytest.raises(InputError, match="ends by itself after 4 steps, and horizon=5 is more"):
        jax_task("drift", Drift(), 5, 1.0, params=params)
    with pytest.raises(InputError, match=r"brakes has no time limit .* give horizon=1000"):
        jax_task("brakes", Brakes(), None, 1.0)
    limited = Brakes()
    limited.episode_length = 6
    assert jax_task("brakes", limited, None, 1.0)[0].horizon == 6


def test_params_reach_the_environment():
    """At an edge so near, every episode ends with its first step."""
    task, _ = jax_task("drift", Drift(), None, 0.5, params=Params(edge=-1.0, first=0.8))
    keys, thetas = batch(LINEAR)
    walks = [drifted(k, clipped(t), 1, 0.5, first=0.8) for k, t in zip(keys, thetas, strict=True)]
    want = [value for value, _ in walks]
    np.testing.assert_allclose(task.rollouts(keys, thetas), want, rtol=1e-4)
    with pytest.raises(InputError, match="in the style of brax, which has no params"):
        jax_task("brakes", Brakes(), 3, 1.0, params=Params())


def test_a_time_limit_of_its_own_ends_an_episode():
    """As gymnax tells it since 1.0, beside `done`."""

    class Timed(Drift):
        def is_truncated(self, state, params):
            return state.x[1] > 0.5

    task, _ = jax_task("timed", Timed(), None, 0.8)
    keys, thetas = batch(LINEAR)

    def ended(x):
        return abs(x[0]) > 2.5 or x[1] > 0.5

    walks = [drifted(k, clipped(t), 9, 0.8, ended) for k, t in zip(keys, thetas, strict=True)]
    plain = [drifted(k, clipped(t), 9, 0.8) for k, t in zip(keys, thetas, strict=True)]
    assert walks != plain
    np.testing.assert_allclose(task.rollouts(keys, thetas), [w for w, _ in walks], rtol=1e-4)


def test_what_is_no_environment_is_told_what_it_lacks():
    class Lame:
        action_size = 3

        def reset(self, key):
            return key

    with pytest.raises(InputError) as told:
        jax_task("lame", Lame(), 5, 1.0)
    assert str(told.value) == (
        "lame is no environment in JAX: for one in the style of gymnax it lacks step, "
        "observation_space, action_space, default_params; for one in the style of brax step, "
        "observation_size."
    )


class Wide(Drift):
    """Observes less than it says."""

    def observation_space(self, params):
        return box(-math.inf, math.inf, (3,))


class Several(Drift):
    """Is paid twice a step."""

    def step_env(self, key, state, action, params):
        x, state, reward, over, info = super().step_env(key, state, action, params)
        return x, state, jnp.stack([reward, reward]), over, info


class Two(Brakes):
    observation_size = {"state": 2, "picture": (3, 3)}  # noqa: RUF012


class Remembers:
    parameters = 2

    def start(self):
        return 0.0

    def act(self, theta, seen, state):
        return theta, state


class Endless(Drift):
    """Has bounds that are as large as float32 can be, which is how gymnax says that it has none."""

    def observation_space(self, params):
        most = float(np.finfo(np.float32).max)
        return box(np.array([-1.0, -most]), np.array([1.0, most]), (2,), np.float32)


@pytest.mark.parametrize(
    ("env", "policy", "sentence"),
    [
        (Wide(), "linear", "what is observed is 2 numbers, and should be 3"),
        (Several(), "linear", "any cannot be rolled out in JAX"),
        (Two(), "linear", "observes several things at a time"),
        (Drift(), Remembers(), "with a memory .* cannot be rolled out in JAX"),
        (Endless(), "kernels", "without bounds: choose linear or mlp"),
        (Drift(), "quadratic", "policy must be one of linear, kernels, mlp"),
    ],
)
def test_what_cannot_be_rolled_out_is_said(env, policy, sentence):
    with pytest.raises(InputError, match=sentence):
        jax_task("any", env, 5, 1.0, policy)


def test_methods_that_explore_in_actions_are_refused():
    task, _ = jax_task("drift", Drift(), None, 1.0)
    with pytest.raises(InputError, match=IN_ACTIONS):
        task.episodes(None, None)


def test_the_policy_of_an_environment_can_be_had():
    env = jax_env("chooses", Chooses())
    policy = jax_policy(env, "linear", {"bias": False})
    assert (policy.network, policy.actions) == (Linear(2, 5, False), spaces.Discrete(5))


def test_torch_cannot_be_rolled_out_in_jax():
    torch = pytest.importorskip("torch")
    with pytest.raises(InputError, match=TORCH_IN_JAX):
        jax_task("drift", Drift(), None, 1.0, torch.nn.Linear(2, 2))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["CartPole-v1", "Pendulum-v1"])
def test_gymnax(name):
    gymnax = pytest.importorskip("gymnax")
    env, params = gymnax.make(name)
    task, std = jax_task(name, env, 40, 0.9, params=params)
    keys = jax.random.split(jax.random.key(0), 3)
    thetas = std * np.random.default_rng(8).normal(size=(3, task.dim))
    step, want = jax.jit(env.step_env), []
    for key, theta in zip(keys, thetas, strict=True):
        key_reset, key_steps = jax.random.split(key)
        (seen, state), total = env.reset_env(key_reset, params), 0.0
        for t in range(40):
            action = task.act(theta, np.asarray(seen))
            key_step = jax.random.fold_in(key_steps, t)
            seen, state, reward, done, _ = step(key_step, state, action, params)
            total += 0.9**t * float(reward)
            if done:
                break
        want.append(total)
    assert len(set(want)) > 1
    np.testing.assert_allclose(task.rollouts(keys, thetas), want, rtol=1e-3)


@pytest.mark.filterwarnings("ignore")
def test_brax():
    envs = pytest.importorskip("brax.envs")
    env = envs.create("fast", episode_length=7)
    task, std = jax_task("fast", env, None, 0.9, "mlp")
    assert task.horizon == 7
    keys = jax.random.split(jax.random.key(0), 3)
    thetas = std * np.random.default_rng(9).normal(size=(3, task.dim))
    want, step = [], jax.jit(env.step)
    for key, theta in zip(keys, thetas, strict=True):
        state, total = env.reset(jax.random.split(key)[0]), 0.0
        for t in range(7):
            state = step(state, task.act(theta, np.asarray(state.obs)))
            total += 0.9**t * float(state.reward)
        want.append(total)
    np.testing.assert_allclose(task.rollouts(keys, thetas), want, rtol=1e-4, atol=1e-7)


class Sees(Drift):
    """Observes a dictionary of Gymnasium whose keys are not sorted, as `Drift` moves."""

    def __init__(self, order=("x", "at")):
        self.order = order

    def observation_space(self, params):
        whole = {"x": spaces.Box(-4, 4, (2,)), "at": spaces.Discrete(3, start=1)}
        return spaces.Dict(**{key: whole[key] for key in self.order})

    def reset_env(self, key, params):
        x, state = super().reset_env(key, params)
        return self.seen(x), state

    def step_env(self, key, state, action, params):
        x, *rest = super().step_env(key, state, action, params)
        return self.seen(x), *rest

    def seen(self, x):
        return {"at": 1 + jnp.argmax(jnp.array([x[0], x[1], 0.1])), "x": x}


def test_keys_of_a_dictionary_keep_their_order():
    world = jax_env("sees", Sees())
    assert list(world.observations) == ["x", "at"]
    policy = jax_policy(world, "linear", {})
    theta = np.linspace(-1, 1, policy.parameters)
    seen = {"at": 2, "x": np.array([0.3, -0.7], np.float32)}
    on_host = policy.bound(theta)(seen)
    np.testing.assert_allclose(traced(policy)(jnp.asarray(theta))(seen), on_host, rtol=1e-6)
    weights = theta.reshape(6, 2)  # of x, then of the second of three choices, then the bias
    by_hand = 0.3 * weights[0] - 0.7 * weights[1] + weights[3] + weights[5]
    want = np.clip([1 + 2 * by_hand[0], by_hand[1]], LOW, HIGH)  # bounds -1 to 3, and one side
    np.testing.assert_allclose(on_host, want, rtol=1e-6)


@pytest.mark.slow
def test_a_run_with_keys_in_another_order_is_refused(tmp_path):
    run = recoup.train(Sees(), iterations=2, batch=4, test_episodes=4, out=tmp_path / "r")
    again = recoup.evaluate(tmp_path / "r", task=Sees())
    assert again == recoup.evaluate(run)
    for door in (recoup.evaluate, lambda out, task: recoup.load(out, task=task).policy({})):
        with pytest.raises(
            InputError, match=r"order of keys, .* was 'x', 'at' and is 'at', 'x' now"
        ):
            door(tmp_path / "r", task=Sees(("at", "x")))

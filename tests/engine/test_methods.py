"""What every method promises, whatever it is made of."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import recoup
from recoup.engine.methods import METHODS, settings_of

DIM, BATCH = 2, 4


def objective(theta):
    return 1.0 - jnp.sum((theta - 0.4) ** 2, axis=-1) + 0.3 * theta[..., 0]


def make(name, **settings):
    step = {"epsilon": 0.2} if "epsilon" in settings_of(name) else {}
    return recoup.search(name, dim=DIM, batch=BATCH, capacity=20, **step, **settings)


def one_run(search, key, moves=4):
    """A whole run as one pure function."""

    def move(state, key):
        ask, tell = jax.random.split(key)
        theta, state = search.ask(ask, state)
        state, info = search.tell(tell, state, theta, objective(theta))
        return state, info.objective

    start, loop = jax.random.split(key)
    state, history = jax.lax.scan(move, search.init(start), jax.random.split(loop, moves))
    return state.mean, state.std, history


@pytest.mark.parametrize(
    "name", [row.name for row in METHODS.values() if row.space == "parameters"]
)
class TestEveryMethod:
    @pytest.mark.slow
    def test_vmap_over_runs_equals_a_loop_of_calls(self, name, x64):
        search, keys = make(name), jax.random.split(jax.random.key(0), 3)
        together = jax.jit(jax.vmap(lambda key: one_run(search, key)))(keys)
        for i, key in enumerate(keys):
            start, loop = jax.random.split(key)
            state = search.init(start)
            for step in jax.random.split(loop, 4):
                ask, tell = jax.random.split(step)
                theta, state = search.ask(ask, state)
                state, _ = search.tell(tell, state, theta, objective(theta))
            np.testing.assert_allclose(together[0][i], state.mean, rtol=1e-9)
            np.testing.assert_allclose(together[1][i], state.std, rtol=1e-9)

    def test_samples_told_in_another_order_change_nothing(self, name, x64):
        search = make(name)
        state = search.init(jax.random.key(1))
        order = jnp.asarray([2, 0, 3, 1])
        ends = []
        for shuffle in (jnp.arange(BATCH), order):
            now = state
            for i in range(3):
                theta, now = search.ask(jax.random.key(i), now)
                theta = theta[shuffle]
                now, _ = search.tell(jax.random.key(9), now, theta, objective(theta))
            ends.append(np.concatenate([now.mean, now.std]))
        np.testing.assert_allclose(ends[0], ends[1], rtol=1e-9)

    def test_failed_samples_that_are_left_out_change_nothing_whatever_their_theta(self, name, x64):
        search = make(name, failure="censored")
        state = search.init(jax.random.key(2))
        ends = []
        for other in (0.0, 5.0):
            now = state
            for i in range(3):
                theta, now = search.ask(jax.random.key(i), now)
                theta = theta.at[1].set(other)
                returns = objective(theta).at[1].set(jnp.nan)
                now, info = search.tell(jax.random.key(9), now, theta, returns)
            assert info.failed == 1
            assert np.isfinite(info.objective)
            ends.append(np.concatenate([now.mean, now.std]))
        np.testing.assert_array_equal(ends[0], ends[1])

    def test_float32_and_float64_agree(self, name):
        search = make(name)
        theta = np.random.default_rng(0).normal(size=(3, BATCH, DIM))
        ends = []
        for double in (False, True):
            with jax.enable_x64(double):
                state = search.init(jax.random.key(0), mean=0.0)
                for batch in theta:
                    x = jnp.asarray(batch, jnp.float64 if double else jnp.float32)
                    state, _ = search.tell(jax.random.key(0), state, x, objective(x))
                assert state.mean.dtype == (jnp.float64 if double else jnp.float32)
                ends.append(np.concatenate([state.mean, state.std]))
        np.testing.assert_allclose(ends[0], ends[1], atol=1e-5)

    def test_one_trace_serves_every_call(self, name):
        """What a move leaves is, to JAX, what it began with."""
        search = make(name)

        def move(key, state):
            theta, state = search.ask(key, state)
            return search.tell(key, state, theta, objective(theta))[0]

        state = search.init(jax.random.key(0))
        after = jax.eval_shape(move, jax.random.key(0), state)
        assert jax.tree.map(jax.typeof, state) == jax.tree.map(jax.typeof, after)


def test_weights_of_none_and_own_agree_while_there_is_one_proposal(x64):
    ends = [one_run(make(name), jax.random.key(0), moves=1) for name in ("niw-pgpe", "iw-pgpe")]
    np.testing.assert_allclose(ends[0][0], ends[1][0], rtol=1e-12)


def test_a_window_of_one_is_on_policy_exactly(x64):
    on_policy = one_run(make("pgpe-ob"), jax.random.key(0))
    search = recoup.search("iw-pgpe-ob", dim=DIM, batch=BATCH, window=1, epsilon=0.2)
    windowed = one_run(search, jax.random.key(0))
    for a, b in zip(on_policy, windowed, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_balance_weights_stay_below_the_number_of_batches(x64):
    search = recoup.search("mis-pgpe-ob", dim=DIM, batch=BATCH, capacity=80, epsilon=0.5)
    state = search.init(jax.random.key(0))
    for i in range(20):
        theta, state = search.ask(jax.random.key(i), state)
        state, info = search.tell(jax.random.key(i), state, theta, objective(theta))
        assert info.max_weight <= (i + 1) * (1 + 1e-12)


def test_the_iw_gradient_is_unbiased_where_the_niw_gradient_is_not(x64):
    """Fixed proposals and target: the mean of 4,000 estimates against the exact gradient."""
    runs, n = 4000, 10
    proposals = (np.array([[0.0], [0.4]]), np.array([[1.0], [0.8]]))
    target = (np.array([0.6]), np.array([0.7]))
    index = np.repeat([0, 1], n // 2)
    noise = np.random.default_rng(0).normal(size=(runs, n, 1))
    theta = jnp.asarray(proposals[0][index] + proposals[1][index] * noise)
    exact = -2 * (target[0][0] - 0.4) + 0.3  # d/d eta of E[1 - (theta - 0.4)^2 + 0.3 theta]

    def gradients(weighting):
        def one(x):
            options = {"proposals": proposals, "proposal": index, "target": target}
            got = recoup.estimate(x, objective(x), **options, weighting=weighting, baseline="none")
            return got.mean_gradient[0]

        return np.asarray(jax.jit(jax.vmap(one))(theta))

    for weighting in ("own", "balance"):
        g = gradients(weighting)
        assert abs(g.mean() - exact) < 4 * g.std() / np.sqrt(runs)
    naive = gradients("none")
    assert abs(naive.mean() - exact) > 20 * naive.std() / np.sqrt(runs)

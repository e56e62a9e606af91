import jax
import jax.numpy as jnp
import numpy as np

from recoup.engine.as_evosax import EvosaxStrategy


def loss(solution):
    return jnp.sum((solution["w"] - 0.5) ** 2) + (solution["b"] + 1.0) ** 2


def test_the_adapter_minimises_pytrees_with_evosaxs_verbs():
    solution = {"w": jnp.zeros((2, 2)), "b": jnp.zeros(())}
    strategy = EvosaxStrategy(20, solution, "mis-pgpe-ob", capacity=400, epsilon=0.2)
    params, key = strategy.default_params, jax.random.key(0)
    state = strategy.init(key, solution, params)
    for i in range(20):
        ask, tell = jax.random.split(jax.random.fold_in(key, i))
        population, state = strategy.ask(ask, state, params)
        assert population["w"].shape == (20, 2, 2)
        fitness = jax.vmap(loss)(population)
        state, metrics = strategy.tell(tell, population, fitness, state, params)
    assert loss(strategy.get_mean(state)) < 0.1 * loss(solution)
    assert metrics["generation_counter"] == 20


def test_the_adapter_is_the_search_with_the_sign_turned(x64):
    strategy = EvosaxStrategy(6, jnp.zeros(3), "iw-pgpe-ob")
    params, key = strategy.default_params, jax.random.key(1)
    adapted = strategy.init(key, jnp.ones(3), params)
    plain = strategy.search.init(key, jnp.ones(3), 1.0)
    population, adapted = strategy.ask(key, adapted, params)
    theta, plain = strategy.search.ask(key, plain)
    np.testing.assert_array_equal(population, theta)
    fitness = jnp.sum(theta**2, axis=1)
    adapted, _ = strategy.tell(key, population, fitness, adapted, params)
    plain, _ = strategy.search.tell(key, plain, theta, -fitness)
    np.testing.assert_array_equal(adapted.mean, plain.mean)


def test_the_method_unless_one_is_named():
    strategy = EvosaxStrategy(8, jnp.zeros(3))
    assert (strategy.search.settings.name, strategy.search.batch) == ("recoup", 8)
    assert strategy.search.settings.family == "full"

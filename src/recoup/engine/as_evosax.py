"""A search where an evosax strategy is expected: evosax's argument order, `params` and sign."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.flatten_util import ravel_pytree

from recoup.checks import InputError
from recoup.core.types import Given, Pytree
from recoup.engine.methods import DEFAULT_METHOD, Method, known_method
from recoup.engine.search import SearchState, search


class Params(NamedTuple):
    """What evosax hands to every call: here, only the start of the standard deviations.

    >>> recoup.EvosaxStrategy(10, jnp.zeros(2), "pgpe-ob").default_params
    Params(std_init=1.0)
    """

    std_init: float = 1.0  # standard deviations at the start


class EvosaxStrategy:
    """A Recoup method with evosax's verbs: minimises `fitness`, solutions may be pytrees.

    `population_size` solutions shaped like `solution` make a generation; `method` and settings are
    those of `recoup.search`. Needs no evosax to be installed.

    Raises `InputError` for methods that explore in action space.

    >>> strategy = recoup.EvosaxStrategy(10, jnp.zeros(2), "pgpe-ob")
    >>> state = strategy.init(key, jnp.ones(2), strategy.default_params)
    >>> population, state = strategy.ask(key, state, strategy.default_params)
    >>> fitness = jnp.sum(population**2, axis=1)
    >>> state, metrics = strategy.tell(key, population, fitness, state, strategy.default_params)
    >>> int(metrics["generation_counter"])
    1
    """

    def __init__(
        self,
        population_size: int,
        solution: Pytree,
        method: str | Method = DEFAULT_METHOD,
        **settings: Given,
    ) -> None:
        row = known_method(method)
        if row.space != "parameters":
            raise InputError(f"{row.name} explores in action space, which evosax has no verbs for.")
        flat, self._unravel = ravel_pytree(solution)
        self.population_size, self.num_dims = population_size, flat.size
        self.search = search(method, dim=flat.size, batch=population_size, **settings)

    @property
    def default_params(self) -> Params:
        """Standard deviations that start at 1.

        >>> recoup.EvosaxStrategy(10, jnp.zeros(2), "pgpe-ob").default_params.std_init
        1.0
        """
        return Params()

    def init(self, key: Array, mean: Pytree, params: Params) -> SearchState:
        """The state at the start, around the solution `mean`.

        `key` is one of JAX, `params` holds the standard deviation at the start.

        Raises `InputError` where the mean is not finite, or has another size.

        >>> strategy = recoup.EvosaxStrategy(10, jnp.zeros(2), "pgpe-ob")
        >>> strategy.init(key, jnp.ones(2), strategy.default_params).mean
        Array([1., 1.], dtype=float32)
        """
        return self.search.init(key, ravel_pytree(mean)[0], params.std_init)

    def ask(self, key: Array, state: SearchState, params: Params) -> tuple[Pytree, SearchState]:
        """A population to evaluate, shaped like the solution with a leading axis, and the state.

        `key` is one of JAX, `state` what `init` or `tell` gave; `params` changes nothing.

        Raises nothing.

        >>> strategy = recoup.EvosaxStrategy(10, jnp.zeros(2), "pgpe-ob")
        >>> state = strategy.init(key, jnp.ones(2), strategy.default_params)
        >>> strategy.ask(key, state, strategy.default_params)[0].shape
        (10, 2)
        """
        theta, state = self.search.ask(key, state)
        return jax.vmap(self._unravel)(theta), state

    def tell(
        self, key: Array, population: Pytree, fitness: Array, state: SearchState, params: Params
    ) -> tuple[SearchState, dict[str, Array]]:
        """The state after one move towards smaller `fitness`, and metrics by name.

        `key` is one of JAX, `population` and `state` are what `ask` gave, `fitness` is `[N]`, not a
        number where it failed; `params` changes nothing.

        Raises `InputError` where shapes do not fit together.

        >>> strategy = recoup.EvosaxStrategy(10, jnp.zeros(2), "pgpe-ob")
        >>> state = strategy.init(key, jnp.ones(2), strategy.default_params)
        >>> population, state = strategy.ask(key, state, strategy.default_params)
        >>> fitness = jnp.sum(population**2, axis=1)
        >>> state, metrics = strategy.tell(key, population, fitness, state, strategy.default_params)
        >>> list(metrics)
        ['generation_counter', 'best_fitness_in_generation', 'ess', 'max_weight']
        """
        theta = jax.vmap(lambda solution: ravel_pytree(solution)[0])(population)
        state, info = self.search.tell(key, state, theta, -jnp.asarray(fitness))
        metrics = {
            "generation_counter": state.moves,
            "best_fitness_in_generation": jnp.nanmin(fitness),
            "ess": info.ess,
            "max_weight": info.max_weight,
        }
        return state, metrics

    def get_mean(self, state: SearchState) -> Pytree:
        """The mean of the search distribution of `state`, shaped like the solution.

        Raises nothing.

        >>> strategy = recoup.EvosaxStrategy(10, jnp.zeros(2), "pgpe-ob")
        >>> strategy.get_mean(strategy.init(key, jnp.ones(2), strategy.default_params))
        Array([1., 1.], dtype=float32)
        """
        return self._unravel(state.mean)

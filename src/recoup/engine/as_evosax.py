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
    """What evosax hands to every call: here, only the start of the standard deviations."""

    std_init: float = 1.0


class EvosaxStrategy:
    """A Recoup method with evosax's verbs: minimises `fitness`, solutions may be pytrees.

    `init(key, mean, params)`, `ask(key, state, params)`, `tell(key, population, fitness, state,
    params)`. Settings are those of `recoup.search`. Needs no evosax to be installed.
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
        """Standard deviations that start at 1."""
        return Params()

    def init(self, key: Array, mean: Pytree, params: Params) -> SearchState:
        """The state at the start, around the solution `mean`."""
        return self.search.init(key, ravel_pytree(mean)[0], params.std_init)

    def ask(self, key: Array, state: SearchState, params: Params) -> tuple[Pytree, SearchState]:
        """A population to evaluate, shaped like the solution with a leading axis."""
        theta, state = self.search.ask(key, state)
        return jax.vmap(self._unravel)(theta), state

    def tell(
        self, key: Array, population: Pytree, fitness: Array, state: SearchState, params: Params
    ) -> tuple[SearchState, dict[str, Array]]:
        """The state after one move towards smaller `fitness`, and metrics."""
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
        """The mean of the search distribution, shaped like the solution."""
        return self._unravel(state.mean)

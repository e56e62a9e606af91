"""Strategies of evosax, as pure functions."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import optax
from evosax.algorithms import CMA_ES, PGPE, SNES, Open_ES
from evosax.core.optimizer import clipup

from recoup.compare.entrants import PureMethod, population
from recoup.core.types import Array, Plain, Pytree, Settings


def snes(dim: int, settings: Settings) -> PureMethod:
    """SNES; evosax has no population of its own: 4 + 3 ln D unless said."""
    return _traced(SNES(population(settings, dim), jnp.zeros(dim)), settings, _diagonal)


def cma_es(dim: int, settings: Settings) -> PureMethod:
    """CMA-ES, the population likewise."""
    return _traced(CMA_ES(population(settings, dim), jnp.zeros(dim)), settings, _full)


def pgpe(dim: int, settings: Settings) -> PureMethod:
    """PGPE with mirrored pairs, ranks and ClipUp; `lr` its step, half of its greatest speed."""
    size = population(settings, dim, even=True)
    given = {}
    if "lr" in settings:
        rate = float(settings["lr"])
        given["optimizer"] = clipup(learning_rate=rate, max_velocity=2 * rate)
    return _traced(PGPE(size, jnp.zeros(dim), **given), settings, _diagonal)


def open_es(dim: int, settings: Settings) -> PureMethod:
    """OpenAI-ES with mirrored pairs, ranks and plain steps of `lr`; its spread never changes."""
    size = population(settings, dim, even=True)
    given: Plain = {"std_schedule": optax.constant_schedule(_sigma(settings))}
    if "lr" in settings:
        given["optimizer"] = optax.sgd(float(settings["lr"]))
    return _traced(Open_ES(size, jnp.zeros(dim), **given), settings, _diagonal)


def _sigma(settings: Settings) -> float:
    return float(settings.get("sigma", 1.0))


def _diagonal(state: Pytree, noise: Array) -> Array:
    return state.mean + state.std * noise


def _full(state: Pytree, noise: Array) -> Array:
    dim = state.mean.shape[-1]
    factor = jnp.linalg.cholesky((state.C + state.C.T) / 2 + 1e-8 * jnp.eye(dim))
    return state.mean + state.std * noise @ factor.T


def _traced(
    strategy: Any, settings: Settings, drawn: Callable[[Pytree, Array], Array]
) -> PureMethod:
    """A strategy that searches x = (theta - mean) / std; its state carries both."""
    params = strategy.default_params
    if hasattr(params, "std_init"):
        params = params.replace(std_init=_sigma(settings))

    def init(key: Array, mean: Array, std: Array) -> Pytree:
        return strategy.init(key, jnp.zeros_like(mean), params), mean, std

    def ask(key: Array, state: Pytree) -> tuple[Array, Pytree]:
        inner, mean, std = state
        x, inner = strategy.ask(key, inner, params)
        return mean + std * x, (inner, mean, std)

    def tell(key: Array, state: Pytree, theta: Array, returns: Array) -> Pytree:
        inner, mean, std = state
        inner, _ = strategy.tell(key, (theta - mean) / std, -returns, inner, params)
        return inner, mean, std

    def middle(state: Pytree) -> Array:
        inner, mean, std = state
        return mean + std * inner.mean

    def draw(state: Pytree, noise: Array) -> Array:
        inner, mean, std = state
        return mean + std * drawn(inner, noise)

    return PureMethod(strategy.population_size, init, ask, tell, middle, draw)

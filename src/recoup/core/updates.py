"""Update rules: how rho moves, given the estimate *as a function of rho*.

The paper's rule asks it once; a rule that searches inside a trust region may ask many times, on the
same archive, before a new rollout is spent.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array

from recoup.core.estimators.whole import Estimate
from recoup.core.families.gaussian import Rho, fisher, kl_divergence

EstimateAt = Callable[[Rho], Estimate]


class Update(NamedTuple):
    """A rule: `step(estimate, rho, state) -> rho, state, the estimate at the old rho`."""

    init: Callable[[Rho], Any]
    step: Callable[[EstimateAt, Rho, Any], tuple[Rho, Any, Estimate]]


def normalised_ascent(epsilon: float, tau_floor: float) -> Update:
    """The paper's rule: a step of length epsilon along the gradient.

    Implements: zhao2013 S4.1 rho <- rho + epsilon g / ||g||, the norm over (eta, tau) jointly, and
    tau <- max(tau, 0.05). A gradient of zero moves nothing.
    """

    def step(estimate: EstimateAt, rho: Rho, state: Any) -> tuple[Rho, Any, Estimate]:
        at_rho = estimate(rho)
        unit = _unit(at_rho.gradient)
        return _floored(_moved(rho, unit, epsilon), tau_floor), state, at_rho

    return Update(lambda rho: (), step)


def whole_step(tau_floor: float) -> Update:
    """All the way along the direction, for those that are whole steps themselves."""

    def step(estimate: EstimateAt, rho: Rho, state: Any) -> tuple[Rho, Any, Estimate]:
        at_rho = estimate(rho)
        moved = _moved(rho, _finite_or_zero(at_rho.gradient), 1.0)
        return _floored(moved, tau_floor), state, at_rho

    return Update(lambda rho: (), step)


def ascend(transformation: optax.GradientTransformation, tau_floor: float) -> Update:
    """Any optax transformation; it descends, so it is given the negated gradient.

    Implements: zhao2013 S2.2 rho <- rho + epsilon grad J(rho), as `optax.sgd(epsilon)`.
    """

    def step(estimate: EstimateAt, rho: Rho, state: Any) -> tuple[Rho, Any, Estimate]:
        at_rho = estimate(rho)
        downhill = jax.tree.map(jnp.negative, _finite_or_zero(at_rho.gradient))
        updates, state = transformation.update(downhill, state, rho)
        return _floored(optax.apply_updates(rho, updates), tau_floor), state, at_rho

    return Update(transformation.init, step)


def natural_step(kl: float, tau_floor: float, max_log_tau: float = 0.5) -> Update:
    """A natural-gradient step so long that KL(new || old) is `kl`, with |d log tau| capped.

    Implements: wierstra2014 natural gradient F^-1 g, here in (eta, log tau).

    The length is found by bisection on the closed-form divergence, which grows along the step;
    where the cap on log tau leaves no length that reaches `kl`, the step stays below it.
    """

    def step(estimate: EstimateAt, rho: Rho, state: Any) -> tuple[Rho, Any, Estimate]:
        at_rho = estimate(rho)
        natural = jax.tree.map(jnp.divide, _unit(at_rho.gradient), fisher(rho))

        def moved(length: Array) -> Rho:
            d_log_tau = jnp.clip(length * natural.tau / rho.tau, -max_log_tau, max_log_tau)
            return Rho(rho.eta + length * natural.eta, rho.tau * jnp.exp(d_log_tau))

        length = _length_to(kl, lambda a: kl_divergence(moved(a), rho), _longest(rho, natural, kl))
        return _floored(moved(length), tau_floor), state, at_rho

    return Update(lambda rho: (), step)


def _length_to(kl: float, divergence: Callable[[Array], Array], longest: Array) -> Array:
    """The length in [0, longest] at which an increasing `divergence` is `kl`, by bisection."""

    def halve(_: int, bracket: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = bracket
        middle = 0.5 * (low + high)
        short = divergence(middle) < kl
        return jnp.where(short, middle, low), jnp.where(short, high, middle)

    return jax.lax.fori_loop(0, 60, halve, (jnp.zeros_like(longest), longest))[0]


def _longest(rho: Rho, natural: Rho, kl: float) -> Array:
    """A length at which the divergence is at least `kl`, or all that the cap on log tau allows.

    The means alone diverge by length^2 c / 2. Without them the second-order expansion is within a
    factor of two up to the cap, so 8 times its length is enough.
    """
    c = jax.tree.map(lambda f, v: jnp.sum(f * v**2), fisher(rho), natural)
    return jnp.where(c.eta > 0, _safe_sqrt(2 * kl, c.eta), 8 * _safe_sqrt(2 * kl, c.tau))


def _safe_sqrt(top: float, bottom: Array) -> Array:
    return jnp.where(bottom > 0, jnp.sqrt(top / jnp.where(bottom > 0, bottom, 1.0)), 0.0)


def _moved(rho: Rho, direction: Any, length: float) -> Rho:
    return jax.tree.map(lambda x, d: x + length * d, rho, direction)


def _largest(gradient: Any) -> Array:
    return jax.tree.reduce(jnp.maximum, jax.tree.map(lambda g: jnp.max(jnp.abs(g)), gradient))


def _finite_or_zero(gradient: Any) -> Any:
    finite = jnp.isfinite(_largest(gradient))
    return jax.tree.map(lambda g: jnp.where(finite, g, 0.0), gradient)


def _unit(gradient: Any) -> Any:
    """The gradient over its norm; zero where it is zero or not finite. No square overflows."""
    largest = _largest(gradient)
    usable = (largest > 0) & jnp.isfinite(largest)
    scaled = jax.tree.map(lambda g: jnp.where(usable, g / largest, 0.0), gradient)
    squares = jax.tree.reduce(jnp.add, jax.tree.map(lambda g: jnp.sum(g**2), scaled))
    norm = jnp.sqrt(jnp.where(usable, squares, 1.0))
    return jax.tree.map(lambda g: g / norm, scaled)


def _floored(rho: Rho, tau_floor: float) -> Rho:
    return rho._replace(tau=jnp.maximum(rho.tau, tau_floor))

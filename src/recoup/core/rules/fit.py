"""The classics on an archive, by JAX: a direction that goes all the way to the new fit."""

from typing import Any

import jax
import jax.numpy as jnp

from recoup.core.arrays import behind
from recoup.core.directions import Direction, Earned, relative
from recoup.core.rules.classics import Utility, coefficients, fitted


def fit(utility: Utility, full: bool) -> Direction:
    """The way from rho to the Gaussian fitted to samples that count by weight times `utility`.

    The weights are those of the row, against the mixture of all proposals of the window unless it
    says otherwise: with rho among them none exceeds n / n_rho, so that no proposal is left out for
    being far. The baseline is the weighted mean return: nothing subtracts it.
    """

    @relative
    def direction(rho: Any, samples: Any, earned: Earned) -> tuple[Any, Any]:
        weights, returns = earned.weights.ravel(), earned.returns.ravel()
        z = behind(jnp, rho, weights).whitened(jnp, samples.reshape(weights.size, -1))
        c = coefficients(jnp, utility, weights, returns)
        new = rho.refitted(jnp, *fitted(jnp, z, c, full))
        moves = jnp.any(c > 0)
        way = jax.tree.map(lambda to, at: jnp.where(moves, to - at, 0.0), new, rho)
        mass = jnp.sum(weights)
        return way, jnp.sum(weights * returns) / jnp.where(mass > 0, mass, 1.0)

    return direction

"""The classics as a direction that goes all the way to the new fit."""

from collections.abc import Callable

import numpy as np

from recoup.core.arrays import Array, namespace, tree_map
from recoup.core.families.family import Family, moving
from recoup.core.gradient import Direction, Earned, centre_of, relative
from recoup.core.rules.classics import FittedGaussian, Utility, coefficients, fitted, unbiased
from recoup.core.types import Pytree, Rho, Samples


def fit(utility: Utility, family: Family) -> Direction:
    """The way from rho to the Gaussian fitted to samples that count by weight times `utility`.

    The weights are those of the row, against the mixture of all proposals of the window unless it
    says otherwise: with rho among them none exceeds n / n_rho, so that no proposal is left out for
    being far. The baseline is the weighted mean return: nothing subtracts it.
    """

    asked = moving(family)

    @relative
    def direction(rho: Rho, samples: Samples, earned: Earned) -> tuple[Rho, Pytree]:
        weights, returns = earned.weights.ravel(), earned.returns.ravel()
        xp = namespace(weights)
        c = coefficients(xp, utility, weights, returns)
        if family.coordinates is None or xp is np:
            z = asked.whitened(rho, samples.reshape(weights.size, -1))
            found = fitted(xp, z, c, asked.shape)
        else:
            found = in_one_pass(asked.whitened, rho, samples, c)
        new = asked.refitted(rho, *found)
        moves = xp.any(c > 0)
        way = tree_map(xp, lambda to, at: xp.where(moves, to - at, 0.0), new, rho)
        return way, centre_of(earned)

    return direction


def in_one_pass(
    whitened: Callable[[Rho, Array], Array], rho: Rho, samples: Array, c: Array
) -> FittedGaussian:
    """The diagonal `fitted` of `samples [B, N, D]`, whose z is nowhere written: a form for JAX.

    Both moments are about the sample that counts most. It lies among those that are fitted, so
    that their difference costs few digits.
    """
    import jax.numpy as jnp

    from recoup.core.columns import sum_columns

    middle = whitened(rho, samples.reshape(c.size, -1)[jnp.argmax(c)])

    def moments(vectors: tuple[Rho, Array], x: Array) -> tuple[Array, Array]:
        rho, middle = vectors
        away = whitened(rho, x) - middle
        return away, away**2

    first, second = sum_columns(moments, (rho, middle), samples, c.reshape(samples.shape[:2]))
    known, mass = unbiased(jnp, c)
    found = jnp.maximum(second - first**2, 0.0) / mass
    return FittedGaussian(middle + first, jnp.where(known, found, 1.0))

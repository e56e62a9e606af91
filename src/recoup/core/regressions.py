"""Directions by weighted least squares: the natural gradient, and the step of EM.

Both solve (X + ridge) v = y, the ridge relative to the mean of X's diagonal, so that a design with
fewer samples than unknowns gives the shortest solution rather than noise.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array
from jax.flatten_util import ravel_pytree

from recoup.core.families.action_policy import Policy, linear
from recoup.core.families.trajectory import Trajectory, live
from recoup.core.gradient import Direction, Earned, relative
from recoup.core.types import Pytree, Rho, Samples


def natural_gradient(psi: Callable[[Rho, Samples], Pytree], ridge: float) -> Direction:
    """The direction v that explains the returns best, R = v^T psi + b, over weighed samples.

    Implements: peters2008 episodic natural actor-critic, argmin_{v, b} sum_n w_n (R_n - v^T psi_n -
    b)^2; the weight of a sample weighs its squared residual (our reading of TIW-eNAC). b is
    eliminated by centring.
    """

    @relative
    def direction(rho: Rho, samples: Samples, earned: Earned) -> tuple[Rho, Array]:
        _, unravel = ravel_pytree(rho)
        design = jax.vmap(jax.vmap(lambda sample: ravel_pytree(psi(rho, sample))[0]))(samples)
        design = design.reshape(earned.weights.size, -1)
        weights = _share(earned.weights).ravel()
        returns = earned.returns.ravel()
        centre, level = weights @ design, weights @ returns
        centred = design - centre
        v = ridge_solve(
            centred.T @ (weights[:, None] * centred),
            centred.T @ (weights * (returns - level)),
            ridge,
        )
        return unravel(v), level - v @ centre

    return direction


def em_step(policy: Policy, trajectories: Trajectory, worth: Array, ridge: float) -> Policy:
    """The policy that maximises the log-likelihood of the trajectories `[M]`, each by its `worth`.

    Implements: hachiya2009 M-step, mu = (sum_n R~_n sum_t phi phi^T)^-1 sum_n R~_n sum_t phi a^T,
    sigma^2 = sum_n R~_n sum_t (a - mu^T phi)^2 / sum_n R~_n T_n.

    Solved for the change of mu, so that the ridge pulls towards the policy that there is. Where
    nothing has a worth, that policy is returned.
    """
    largest = jnp.max(worth)
    worth = worth / jnp.where(largest > 0, largest, 1.0)  # only their proportions matter
    each = jnp.where(jax.vmap(live)(trajectories), worth[:, None], 0.0).ravel()  # [M T]
    features, actions = (_by_step(x) for x in (trajectories.features, trajectories.actions))
    weighed = features * each[:, None]
    residuals = actions - linear(policy.mu, features)
    change = ridge_solve(weighed.T @ features, weighed.T @ residuals, ridge)
    mu = policy.mu + change.ravel()
    squares = each @ (actions - linear(mu, features)) ** 2
    total = jnp.sum(each)
    sigma = jnp.sqrt(squares / jnp.where(total > 0, total, 1.0))
    return jax.tree.map(lambda new, old: jnp.where(total > 0, new, old), Policy(mu, sigma), policy)


def ridge_solve(matrix: Array, right: Array, ridge: float) -> Array:
    """(X + lambda I)^-1 y with lambda = ridge times the mean of X's diagonal; zero where X is.

    A ridge below what rounding adds to X, about its size times the type's precision (1e-4 for 100
    unknowns in float32), is raised to that: otherwise X need not be positive definite.
    """
    size = matrix.shape[0]
    least = 10 * size * jnp.finfo(matrix.dtype).eps
    scale = jnp.trace(matrix) / size
    scale = jnp.where(scale > 0, scale, 1.0)
    regular = matrix / scale + jnp.maximum(ridge, least) * jnp.eye(size, dtype=matrix.dtype)
    return jax.scipy.linalg.solve(regular, right / scale, assume_a="pos")


def _share(weights: Array) -> Array:
    total = jnp.sum(weights)
    return weights / jnp.where(total > 0, total, 1.0)


def _by_step(x: Array) -> Array:
    return x.reshape(-1, x.shape[-1])

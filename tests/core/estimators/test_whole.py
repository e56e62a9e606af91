"""The estimator's own arithmetic."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from recoup.core import baselines
from recoup.core.directions import likelihood_ratio
from recoup.core.estimators.whole import direction_of
from recoup.core.families.gaussian import Diagonal, diagonal_gaussian
from recoup.core.gradient import Earned

PROBLEMS, DIM = 500, 8


@pytest.mark.parametrize("weight", [1e5, 4e9])
def test_one_dominant_sample_costs_the_optimal_baseline_no_digits(weight):
    """It is nearly that sample's return: an ulp of their difference, weighed, would be seen."""
    rng = np.random.default_rng(0)
    samples = rng.normal(size=(PROBLEMS, 2, 32, DIM)).astype(np.float32)
    returns = rng.normal(-700, 30, samples.shape[:3]).astype(np.float32)
    weights = np.exp(rng.normal(size=returns.shape)).astype(np.float32)
    weights[:, 1, 5] = weight
    with jax.enable_x64(True):
        want = gradients(samples, returns, weights, jnp.float64)
    error = np.max(np.abs(gradients(samples, returns, weights, jnp.float32) - want), axis=1)
    assert np.all(error <= 1e-5 * np.max(np.abs(want), axis=1))


def gradients(samples, returns, weights, dtype):
    """By the optimal baseline, of every problem by itself."""
    rho = Diagonal(jnp.zeros(DIM, dtype), jnp.ones(DIM, dtype))
    direction = likelihood_ratio(diagonal_gaussian().score, baselines.optimal)

    def gradient(samples, returns, weights):
        valid, origin = jnp.ones(returns.shape, bool), jnp.zeros((), dtype)
        found = direction_of(direction, rho, samples, Earned(returns, weights, valid, origin))
        return jnp.concatenate(found[0])

    told = (jnp.asarray(x, dtype) for x in (samples, returns, weights))
    return np.asarray(jax.jit(jax.vmap(gradient))(*told))

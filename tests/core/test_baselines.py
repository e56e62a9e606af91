"""What a baseline adds to the bias and takes from the variance of both blocks of the gradient."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import recoup

N, BEFORE, TRIALS = 10, 4, 6000


def gradients(kind):
    """Estimates `[M, 2]` from the newest of five batches of N(0.5, 1), returns -(theta - 2)^2."""
    drawn_by = jnp.repeat(jnp.arange(BEFORE + 1), N)
    rho = (jnp.full((BEFORE + 1, 1), 0.5), jnp.ones((BEFORE + 1, 1)))
    newest = (drawn_by == BEFORE) * 1.0

    def one(key):
        z = jax.random.normal(key, (drawn_by.size, 1))
        returns = -((z[:, 0] - 1.5) ** 2)
        told = None if kind == "earlier" else newest > 0
        e = recoup.estimate(
            0.5 + z,
            returns,
            proposals=rho,
            proposal=drawn_by,
            target=(rho[0][0], rho[1][0]),
            weighting="none",
            baseline=kind,
            told=told,
        )
        scores = jnp.concatenate([z, z**2 - 1], axis=1)
        return (newest * (returns - e.baseline)) @ scores / N

    return np.asarray(jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(1), TRIALS)), float)


TRUTH = np.array([3.0, -2.0])  # d/dm, d/ds of -((m - 2)^2 + s^2) at m = 0.5, s = 1


@pytest.mark.parametrize("kind", ["earlier", "leave-one-out", "split"])
def test_without_the_own_sample_there_is_no_bias(kind):
    found = gradients(kind)
    error = found.std(0) / np.sqrt(TRIALS)
    assert (np.abs(found.mean(0) - TRUTH) < 4 * error).all()


def test_the_papers_baseline_biases_the_block_of_the_standard_deviation():
    found = gradients("optimal")
    error = found.std(0) / np.sqrt(TRIALS)
    assert found.mean(0)[1] - TRUTH[1] > 10 * error[1]


def test_earlier_batches_cost_less_variance_than_leaving_one_out():
    earlier, alone = (gradients(kind).var(0).sum() for kind in ("earlier", "leave-one-out"))
    assert earlier < 0.8 * alone

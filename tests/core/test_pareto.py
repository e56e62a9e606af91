import numpy as np
import pytest

from recoup import pareto_k


@pytest.mark.parametrize("shape", [0.3, 0.9])
def test_k_hat_finds_the_tail_of_a_pareto_law(shape):
    """The fitted tail has about 3 sqrt(n) = 600 points: the error of k is about (1 + k) / 24."""
    rng = np.random.default_rng(0)
    weights = rng.pareto(1 / shape, 40_000) + 1
    assert pareto_k(weights) == pytest.approx(shape, abs=4 * (1 + shape) / np.sqrt(600))


def test_k_hat_needs_weights_of_which_some_differ():
    assert np.isnan(pareto_k(np.ones(5)))
    assert pareto_k(np.ones(50)) == -np.inf
    heavy = np.random.default_rng(1).pareto(1.0, 200) + 1
    assert pareto_k(np.minimum(heavy, 1.5)) == -np.inf  # truncated: the whole tail is 1.5
    assert np.isnan(pareto_k(np.zeros(50)))


@pytest.mark.parametrize("n", [25, 29, 224, 225, 226, 5003])
def test_k_hat_is_that_of_arviz_stats(n):
    from arviz_stats.base import array_stats

    rng = np.random.default_rng(n)
    for weights in (np.exp(3 * rng.normal(size=n)), rng.uniform(size=n), 1 + rng.pareto(0.7, n)):
        _, want = array_stats.psislw(-np.log(weights))
        assert pareto_k(weights) == pytest.approx(want, rel=1e-10)

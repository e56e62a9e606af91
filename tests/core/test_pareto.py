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

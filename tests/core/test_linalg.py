import numpy as np
import pytest
from scipy.linalg import solve_triangular

from recoup.core.linalg import ROWS_AT_ONCE, inverted, solve_lower


def factor_of(n):
    """A lower triangular matrix with axes of very different lengths."""
    rng = np.random.default_rng(n)
    lower = np.tril(rng.normal(size=(n, n))) / np.sqrt(n)
    np.fill_diagonal(lower, 1 + rng.random(n))
    return 10.0 ** rng.uniform(-6, 6, n)[:, None] * lower


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("columns", [None, 1, 7])
@pytest.mark.parametrize(
    "n", [1, 2, ROWS_AT_ONCE - 1, ROWS_AT_ONCE, ROWS_AT_ONCE + 1, 3 * ROWS_AT_ONCE + 5]
)
def test_a_triangular_system_is_solved_as_scipy_does(n, columns, transposed):
    factor = factor_of(n)
    b = np.random.default_rng(0).normal(size=n if columns is None else (n, columns))
    kept = b.copy()
    got = solve_lower(np, factor, b, transposed)
    want = solve_triangular(factor, b, lower=True, trans="T" if transposed else "N")
    for mine, other in zip(np.reshape(got, (n, -1)).T, np.reshape(want, (n, -1)).T, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-10, atol=1e-13 * np.abs(other).max())
    np.testing.assert_array_equal(b, kept)


def test_what_stands_above_the_diagonal_is_not_looked_at():
    factor, b = factor_of(ROWS_AT_ONCE + 9), np.ones(ROWS_AT_ONCE + 9)
    spoilt = factor + np.triu(np.full_like(factor, 3.0), 1)
    for transposed in (False, True):
        got = solve_lower(np, spoilt, b, transposed)
        np.testing.assert_array_equal(got, solve_lower(np, factor, b, transposed))


def test_a_factor_that_there_is_none_of_gives_no_numbers():
    assert np.isnan(solve_lower(np, np.full((40, 40), np.nan), np.ones(40))).all()


@pytest.mark.parametrize("n", [1, 2, 31, 32, 33, 65, 200])
def test_a_factor_is_inverted_as_numpy_inverts_it(n):
    factor = np.tril(np.random.default_rng(n).normal(size=(n, n))) / n**0.5 + 2 * np.eye(n)
    found = inverted(factor)
    np.testing.assert_allclose(found, np.linalg.inv(factor), atol=1e-13)
    assert not np.triu(found, 1).any()

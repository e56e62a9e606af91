"""What fresh episodes earn, in the mean. No JAX."""

from typing import NamedTuple

import numpy as np

from recoup.core.types import Array


class Measured(NamedTuple):
    """A mean over fresh episodes, with its standard error.

    >>> run.return_search.stderr > 0
    True
    """

    mean: float  # of the returns
    stderr: float  # of the mean
    episodes: int  # how many


def measured(returns: Array) -> Measured:
    """Mean and standard error of the returns of fresh episodes.

    Implements: zhao2013 S2.1 J(theta) at one policy, by Monte Carlo; over policies drawn from rho,
    the expected return of rho.
    """
    returns = np.asarray(returns)
    return Measured(
        float(returns.mean()), float(returns.std(ddof=1) / np.sqrt(returns.size)), returns.size
    )

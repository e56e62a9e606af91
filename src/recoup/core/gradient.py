"""The likelihood-ratio gradient: what samples earned, what is known of their scores, their sum.

Arrays of NumPy stay so; those of JAX may be traced.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from recoup.core.arrays import Array, behind, leaves, namespace, tree_map


class Earned(NamedTuple):
    """What the samples earned and weigh, all `[B, N]` but for `origin`."""

    returns: Array  # less the origin; zero where not valid
    weights: Array  # zero where not valid
    valid: Array
    origin: Array  # 0, unless returns are wanted relative to one that occurred
    censored: Array | bool = False  # whether samples that failed are left out, a scalar
    order: Array | int = 0  # [B, N], larger for samples of later batches
    norms: Array | None = None  # [B, N] ||score||^2 of the family, where they are known already


def relative(part: Any) -> Any:
    """Declares that a baseline or direction takes returns, and gives b, relative to an origin.

    The origin is a return that occurred, so that a large one common to all costs no digits. Parts
    that declare nothing see returns as they were told.
    """
    part.relative = True
    return part


def is_relative(part: Any) -> bool:
    """Whether a baseline or direction has declared itself `relative`."""
    return getattr(part, "relative", False)


class Scores(NamedTuple):
    """What baselines and gradients need of the scores s_n; what is not asked for costs no pass."""

    norms: Array  # [B, N] ||s_n||^2 over all of rho
    centre: Array  # m = sum w R / sum w
    total: Callable[[Array], Any]  # c [B, N] -> pytree of rho: sum_n c_n s_n
    squares: Callable[[Array], Any]  # c [B, N] -> pytree of rho: sum_n c_n s_n^2


def mean_gradient(returns: Array, weights: Array, scores: Scores, b: Any, n: Array) -> Any:
    """The gradient of the expected return, (1/n) sum_n w_n (R_n - b) s_n, a pytree of rho.

    Implements: zhao2013 S3.2 gradient estimator with baseline; eq. 3 with b = 0, w = 1; S3.1 with
    b = 0. `b` is a scalar, one number a sample `[B, N]`, or a pytree of rho: one a coordinate. Sums
    with one a coordinate are taken about the centre, so that no large ones cancel.
    """
    xp = namespace(weights)
    n = xp.maximum(n, 1)
    if isinstance(b, float) or hasattr(b, "ndim"):
        return tree_map(xp, lambda g: g / n, scores.total(weights * (returns - b)))
    centred = behind(xp, weights * (returns - scores.centre), *leaves(xp, b))
    sums = scores.total(centred)
    plain = scores.total(behind(xp, weights, *leaves(xp, sums)))
    return tree_map(xp, lambda g, c, b_i: (g - (b_i - scores.centre) * c) / n, sums, plain, b)

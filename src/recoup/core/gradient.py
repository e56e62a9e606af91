"""The likelihood-ratio gradient: what samples earned, what is known of their scores, their sum.

Arrays of NumPy stay so; those of JAX may be traced.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from recoup.core.arrays import Array, namespace, tree_map
from recoup.core.types import Pytree, Rho, Samples

Part = TypeVar("Part")


class Earned(NamedTuple):
    """What the samples earned and weigh, all `[B, N]` but for `origin`.

    A baseline of yours is given it first.

    >>> from recoup.core.gradient import Earned
    >>> def middle(earned, scores):
    ...     return jnp.nanmedian(jnp.where(earned.valid, earned.returns, jnp.nan))
    >>> returns, weights = jnp.array([[1.0, 2.0, 9.0]]), jnp.ones((1, 3))
    >>> float(middle(Earned(returns, weights, valid=weights > 0, origin=0.0), None))
    2.0
    """

    returns: Array  # less the origin; zero where not valid
    weights: Array  # zero where not valid
    valid: Array  # samples that have a return
    origin: Array  # 0, unless returns are wanted relative to one that occurred
    censored: Array | bool = False  # whether samples that failed are left out, a scalar
    order: Array | int = 0  # [B, N], larger for samples of later batches
    norms: Array | None = None  # [B, N] ||score||^2 of the family, where they are known already


def relative(part: Part) -> Part:
    """Declares that a baseline or direction takes returns, and gives b, relative to an origin.

    `part` is the function, which it gives back. The origin is a return that occurred, so that a
    large one common to all costs no digits. Parts that declare nothing see returns as they were
    told.

    Raises nothing.

    >>> @recoup.relative
    ... def middle(earned, scores):
    ...     return jnp.sum(earned.weights * earned.returns) / jnp.sum(earned.weights)
    >>> middle.relative
    True
    """
    part.relative = True  # type: ignore[attr-defined]
    return part


def is_relative(part: object) -> bool:
    """Whether a baseline or direction has declared itself `relative`."""
    return bool(getattr(part, "relative", False))


class Scores(NamedTuple):
    """What baselines and gradients need of the scores s_n; what is not asked for costs no pass.

    A baseline of yours is given it second. Equation: `zhao2013 Thm. 2`, which is made of its norms.

    >>> def best(earned, scores):
    ...     w = earned.weights**2 * scores.norms
    ...     return jnp.sum(w * earned.returns) / jnp.sum(w)
    >>> target = ([0.2, 0.2], [0.9, 0.9])
    >>> found = recoup.estimate(theta, returns, **drawn, target=target, baseline=best)
    >>> ours = recoup.estimate(theta, returns, **drawn, target=target, baseline="optimal")
    >>> bool(abs(found.baseline - ours.baseline) < 1e-3)
    True
    """

    norms: Array  # [B, N] ||s_n||^2 over all of rho
    centre: Array  # m = sum w R / sum w
    total: Callable[[Array], Rho]  # c [B, N] -> pytree of rho: sum_n c_n s_n
    squares: Callable[[Array], Rho]  # c [B, N] -> pytree of rho: sum_n c_n s_n^2


Baseline = Callable[[Earned, Scores], Pytree]  # -> scalar, [B, N] or pytree of rho
Direction = Callable[
    [Rho, Samples, Earned], tuple[Rho, Pytree]
]  # rho, samples -> pytree of rho, baseline


def mean_gradient(returns: Array, weights: Array, scores: Scores, b: Pytree, n: Array) -> Rho:
    """The gradient of the expected return, (1/n) sum_n w_n (R_n - b) s_n, a pytree of rho.

    Implements: zhao2013 S3.2 gradient estimator with baseline; eq. 3 with b = 0, w = 1; S3.1 with
    b = 0. `b` is a scalar, one number a sample `[B, N]`, or a pytree of rho: one a coordinate. Sums
    with one a coordinate are taken about the centre, so that no large ones cancel.
    """
    xp = namespace(weights)
    n = xp.maximum(n, 1)
    if isinstance(b, float) or hasattr(b, "ndim"):
        return tree_map(xp, lambda g: g / n, scores.total(weights * (returns - b)))
    sums = scores.total(weights * (returns - scores.centre))
    plain = scores.total(weights)
    return tree_map(xp, lambda g, c, b_i: (g - (b_i - scores.centre) * c) / n, sums, plain, b)


def about_origin(earned: Earned) -> Earned:
    """What was earned, returns less that of the sample that weighs most, the largest of several.

    Equal returns become exactly zero. So does that of a sample that outweighs all others: the
    baseline is near it, and what is left of their difference is multiplied by its weight.
    """
    xp = namespace(earned.returns, earned.weights)
    weights = xp.where(earned.valid, earned.weights, -xp.inf)
    most = earned.valid & (weights == xp.max(weights, initial=-xp.inf))
    largest = xp.max(xp.where(most, earned.returns, -xp.inf), initial=-xp.inf)
    origin = xp.where(xp.isfinite(largest), largest, 0.0)
    relative = xp.where(earned.valid, earned.returns - origin, 0.0)
    return earned._replace(returns=relative, origin=origin)


def centre_of(earned: Earned) -> Array:
    """The weighted mean return, sum w R / sum w, a scalar."""
    xp, mass = namespace(earned.weights), earned.weights.sum()
    return xp.sum(earned.weights * earned.returns) / xp.where(mass > 0, mass, 1.0)


def baseline_of(baseline: Baseline, earned: Earned, scores: Scores) -> Pytree:
    """b relative to the origin, of a baseline that need not know of it.

    Where samples are censored it is the weighted mean return: the scores of those that did not fail
    do not average to zero, so that a b above their mean return would pay for failing, one below it
    for not failing. With the mean itself the gradient is that of the return given success.
    """
    xp, origin = namespace(earned.weights), earned.origin
    if is_relative(baseline):
        b = baseline(earned, scores)
    else:
        told = xp.where(earned.valid, earned.returns + origin, 0.0)
        b = baseline(
            earned._replace(returns=told, origin=xp.zeros_like(origin)),
            scores._replace(centre=scores.centre + origin),
        )
        b = tree_map(xp, lambda x: xp.asarray(x, origin.dtype) - origin, b)
    return tree_map(xp, lambda x: xp.where(earned.censored, scores.centre, x), b)

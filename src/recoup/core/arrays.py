"""The few things that NumPy and JAX do not call by the same name, and statistics under a mask."""

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from recoup.core.types import Array as Array
from recoup.core.types import Namespace, Pytree

Tree = TypeVar("Tree")
Out = TypeVar("Out")
Dtype = np.dtype | type[np.generic]  # of numbers


def namespace(*arrays: Array) -> Namespace:
    """NumPy for its own arrays and for numbers, else JAX's: what an equation computes with."""
    if all(isinstance(x, (np.ndarray, np.generic, float, int)) for x in arrays):
        return np
    import jax.numpy as jnp

    return jnp


def tree_map(xp: Namespace, function: Callable[..., Array], tree: Tree, *others: Pytree) -> Tree:
    """`function` of each array of a tree; by NumPy, of a record of arrays or of one array."""
    if xp is not np:
        from jax import tree as trees

        found: Tree = trees.map(function, tree, *others)
    elif isinstance(tree, tuple):
        found = type(tree)(*map(function, tree, *others))
    else:
        found = function(tree, *others)
    return found


def leaves(xp: Namespace, tree: Pytree) -> list[Array]:
    """The arrays of a tree."""
    if xp is not np:
        from jax import tree as trees

        return list(trees.leaves(tree))
    return list(tree) if isinstance(tree, tuple) else [tree]


def totals_by(xp: Namespace, kind: Array, kinds: int, values: Array) -> Array:
    """Sums `[K]` of `values [n]` by their `kind [n]`."""
    if xp is np:
        return np.bincount(kind, weights=values, minlength=kinds)
    from recoup.core import sweeps

    return sweeps.totals_by(kind, kinds, values)


def repeat(xp: Namespace, times: int, body: Callable[[Tree], Tree], state: Tree) -> Tree:
    """`body` of `state`, so many times."""
    if xp is not np:
        from jax.lax import fori_loop

        return fori_loop(0, times, lambda _, at: body(at), state)
    for _ in range(times):
        state = body(state)
    return state


def mapped(xp: Namespace, function: Callable[[Array], Out], values: Array) -> Out:
    """`function` of each of `values [m]`, one after the other: a record of arrays, stacked."""
    if xp is not np:
        from jax.lax import map as one_by_one

        return one_by_one(function, values)
    found = [function(value) for value in values]
    return type(found[0])(*(np.stack(x) for x in zip(*found, strict=True)))


def largest(xp: Namespace, x: Array, most: int) -> Array:
    """The indices of the largest of `x [n]`, at most so many; of equal ones the first."""
    if xp is np:
        return np.argsort(-x, kind="stable")[:most]
    from jax.lax import top_k

    return top_k(x, min(most, x.size))[1]


def when(
    xp: Namespace,
    condition: Array,
    then: Callable[[Tree], Out],
    otherwise: Callable[[Tree], Out],
    at: Tree,
) -> Out:
    """`then` of `at` where the condition holds, else `otherwise` of it; only one is computed."""
    if xp is not np:
        from jax.lax import cond

        found: Out = cond(condition, then, otherwise, at)
        return found
    return then(at) if condition else otherwise(at)


def mean_of(xp: Namespace, x: Array, valid: Array) -> Array:
    """The mean of the valid rows of `x [n, ...]`; zero where there is none."""
    mask = valid.reshape(-1, *(1,) * (x.ndim - 1))
    return xp.sum(xp.where(mask, x, 0.0), axis=0) / xp.maximum(xp.sum(valid), 1)


def quantiles(xp: Namespace, x: Array, valid: Array, at: tuple[float, ...]) -> list[Array]:
    """Quantiles of the valid `x [n]`, between neighbours by straight lines."""
    n = xp.sum(valid)
    ordered = xp.sort(xp.where(valid, x, xp.inf))

    def one(q: float) -> Array:
        place = q * xp.maximum(n - 1, 0)
        low = xp.floor(place).astype(int)
        below, above = ordered[low], ordered[xp.minimum(low + 1, xp.maximum(n - 1, 0))]
        return below + (place - low) * (above - below)

    return [one(q) for q in at]

"""`recoup.family`: a search distribution of the user's."""

from collections.abc import Callable

import numpy as np

from recoup.checks import InputError, check_choice
from recoup.core.arrays import Array
from recoup.core.families.family import Family, draw
from recoup.core.families.shapes import SHAPES
from recoup.core.families.table import FAMILIES
from recoup.core.types import Given, Rho, Samples


def family(
    name: str,
    *,
    start: Callable[[Array, Array], Rho],
    log_density: Callable[[Rho, Samples], Array],
    **more: Given,
) -> Family:
    """A family of your own, from how it starts and its log-density.

    `name` is what files call it. `start(mean, std)`, both `[D]`, gives rho: a NamedTuple of arrays
    with `mean` and `std`, and `theta(noise)`, the theta that standard normal noise `[D]` becomes.
    `log_density(rho, theta)` is that of one sample. Scores come by differentiation; `more` are
    closed forms of anything else, each by the name it has in `Family`. With all that `Moving` names
    it is moved by the default method too; its `shape` is then "diagonal" or "full".

    Raises `InputError` for a name of ours, and for what no family has.

    >>> from typing import NamedTuple
    >>> class Round(NamedTuple):
    ...     centre: jax.Array
    ...     log_width: jax.Array
    ...     mean = property(lambda self: self.centre)
    ...     std = property(lambda self: jnp.exp(self.log_width) + 0 * self.centre)
    ...     def theta(self, noise):
    ...         return self.centre + jnp.exp(self.log_width) * noise
    >>> def log_density(rho, theta):
    ...     z = (theta - rho.centre) / jnp.exp(rho.log_width)
    ...     return jnp.sum(-0.5 * z**2 - rho.log_width)
    >>> def start(mean, std):
    ...     return Round(mean, jnp.log(std[:1]))
    >>> ours = recoup.family("round", start=start, log_density=log_density)
    >>> recoup.search("pgpe", dim=3, batch=10, family=ours)
    Search(pgpe, 3 parameters, batch 10, keeps 10 samples)
    """
    if not isinstance(name, str) or not name.strip() or not name.isprintable() or ":" in name:
        raise InputError(f"a family needs a name, which has no colon, got {name!r}.")
    if name in FAMILIES:
        raise InputError(f"{name!r} is the name of a family of ours: give yours another.")
    if "draw" in more:
        raise InputError("a family draws by `theta(noise)` of its rho: leave out draw.")
    for key in more:
        check_choice("what is given of a family", key, Family._fields)
    if "shape" in more:
        more["shape"] = SHAPES[check_choice("the shape of a family", more["shape"], SHAPES)]

    import jax
    import jax.numpy as jnp

    def log_ratio(rho: Rho, reference: Rho, sample: Samples) -> Array:
        return log_density(rho, sample) - log_density(reference, sample)

    def unpacked(numbers: Array, dim: int) -> Rho:
        like = start(np.zeros(dim), np.ones(dim))
        leaves, structure = jax.tree.flatten(like)
        sizes = np.cumsum([np.size(leaf) for leaf in leaves])[:-1]
        parts = np.split(np.asarray(numbers), sizes, axis=-1)
        shaped = [
            part.reshape(*part.shape[:-1], *np.shape(leaf))
            for part, leaf in zip(parts, leaves, strict=True)
        ]
        return jax.tree.unflatten(structure, shaped)

    given = {
        "log_density": log_density,
        "draw": draw,
        "log_ratio": log_ratio,
        "score": jax.grad(log_density),
        "divergence": lambda new, old, samples, valid: jnp.asarray(jnp.nan),
        "packed": _packed,
        "unpacked": unpacked,
    }
    return Family(name=name, start=start, **{**given, **more})


def _packed(rho: Rho) -> np.ndarray:
    """The numbers of a rho without leading axes, one array after the other."""
    import jax

    leaves = [np.ravel(leaf) for leaf in jax.tree.leaves(rho)]
    return np.concatenate(leaves).astype(np.float64)

"""Update rules: how rho moves, given the estimate *as a function of rho*.

The paper's rule asks it once; a rule that searches inside a trust region may ask many times, on the
same archive, before a new rollout is spent. A rule may keep a memory from move to move: any pytree
of arrays, which a study stores with each move.
"""

from collections.abc import Callable
from functools import reduce
from typing import TYPE_CHECKING, NamedTuple

from recoup.core.arrays import Array, leaves, namespace, tree_map
from recoup.core.families.family import Family
from recoup.core.objective import Estimate
from recoup.core.types import Memory, Namespace, Rho

if TYPE_CHECKING:
    from optax import GradientTransformation

EstimateAt = Callable[[Rho], Estimate]


class Update(NamedTuple):
    """A rule: `step(estimate, rho, memory) -> rho, memory, the estimate at the old rho`.

    Given as the `update` of a method that follows a gradient; `estimate` is a function of rho, and
    may be asked about as many as one likes.

    >>> def step(estimate, rho, memory):
    ...     here = estimate(rho)
    ...     new = jax.tree.map(lambda x, slope: x + 0.1 * slope, rho, here.gradient)
    ...     return new, memory, here
    >>> rule = recoup.Update(init=lambda rho: (), step=step)
    >>> recoup.search("mis-pgpe-ob", dim=2, batch=10, update=rule).settings.name
    'mis-pgpe-ob'
    """

    init: Callable[[Rho], Memory]  # rho -> memory
    step: Callable[[EstimateAt, Rho, Memory], tuple[Rho, Memory, Estimate]]


def normalised_ascent(family: Family, epsilon: float, tau_floor: float) -> Update:
    """The paper's rule: a step of length epsilon along the gradient.

    Implements: zhao2013 S4.1 rho <- rho + epsilon g / ||g||, the norm over (eta, tau) jointly, and
    tau <- max(tau, 0.05). A gradient of zero moves nothing.
    """

    def step(estimate: EstimateAt, rho: Rho, memory: Memory) -> tuple[Rho, Memory, Estimate]:
        at_rho = estimate(rho)
        moved = _along(rho, _unit(at_rho.gradient), epsilon)
        return _floored(family, moved, tau_floor), memory, at_rho

    return Update(_forgets, step)


def whole_step(family: Family, tau_floor: float) -> Update:
    """All the way along the direction, for those that are whole steps themselves."""

    def step(estimate: EstimateAt, rho: Rho, memory: Memory) -> tuple[Rho, Memory, Estimate]:
        at_rho = estimate(rho)
        moved = _along(rho, _finite_or_zero(at_rho.gradient), 1.0)
        return _floored(family, moved, tau_floor), memory, at_rho

    return Update(_forgets, step)


def natural_step(family: Family, kl: float, tau_floor: float) -> Update:
    """A natural-gradient step so long that KL(new || old) is `kl`.

    Implements: wierstra2014 natural gradient F^-1 g, here followed to a given divergence.

    How far that is, and how a family keeps its scale positive on the way, its `moved` says.
    """
    natural, moved = family.natural, family.moved
    assert natural is not None
    assert moved is not None

    def step(estimate: EstimateAt, rho: Rho, memory: Memory) -> tuple[Rho, Memory, Estimate]:
        at_rho = estimate(rho)
        direction = natural(rho, _unit(at_rho.gradient))
        return _floored(family, moved(rho, direction, kl), tau_floor), memory, at_rho

    return Update(_forgets, step)


def adam(family: Family, epsilon: float, tau_floor: float) -> Update:
    """Adam with step size epsilon, on the plain gradient.

    Implements: kingma2015 Adam, by optax.
    """
    from optax import adam as transformation  # takes a while, and few need it

    return ascend(family, transformation(epsilon), tau_floor)


def ascend(family: Family, transformation: "GradientTransformation", tau_floor: float) -> Update:
    """Any optax transformation; it descends, so it is given the negated gradient.

    Implements: zhao2013 S2.2 rho <- rho + epsilon grad J(rho), as `optax.sgd(epsilon)`.
    """
    import jax
    import jax.numpy as jnp
    from optax import apply_updates

    def step(estimate: EstimateAt, rho: Rho, memory: Memory) -> tuple[Rho, Memory, Estimate]:
        at_rho = estimate(rho)
        downhill = jax.tree.map(jnp.negative, _finite_or_zero(at_rho.gradient))
        updates, memory = transformation.update(downhill, memory, rho)
        moved = apply_updates(rho, updates)
        return _floored(family, moved, tau_floor), memory, at_rho

    return Update(transformation.init, step)


def _forgets(rho: Rho) -> tuple[()]:
    """The memory of a rule that keeps none."""
    return ()


def _floored(family: Family, rho: Rho, least: float) -> Rho:
    return rho if family.floored is None else family.floored(rho, least)


def _along(rho: Rho, direction: Rho, length: float) -> Rho:
    xp = namespace(*rho)
    return tree_map(xp, lambda x, d: x + length * d, rho, direction)


def _largest(xp: Namespace, gradient: Rho) -> Array:
    """The largest of all numbers of a gradient, but for signs; not a number if any is."""
    return reduce(xp.maximum, [xp.max(xp.abs(g)) for g in leaves(xp, gradient)])


def _finite_or_zero(gradient: Rho) -> Rho:
    xp = namespace(*gradient)
    finite = xp.isfinite(_largest(xp, gradient))
    return tree_map(xp, lambda g: xp.where(finite, g, 0.0), gradient)


def _unit(gradient: Rho) -> Rho:
    """The gradient over its norm; zero where it is zero or not finite. No square overflows."""
    xp = namespace(*gradient)
    largest = _largest(xp, gradient)
    usable = (largest > 0) & xp.isfinite(largest)
    safe = xp.where(usable, largest, 1.0)
    scaled = tree_map(xp, lambda g: xp.where(usable, g / safe, 0.0), gradient)
    squares = reduce(xp.add, [xp.sum(g**2) for g in leaves(xp, scaled)])
    norm = xp.sqrt(xp.where(usable, squares, 1.0))
    return tree_map(xp, lambda g: g / norm, scaled)

"""What a search distribution must offer: everything that depends on the shape of rho.

A family is a record of pure functions of one sample and its rho; batches are made by `jax.vmap`.
Closed forms of ours compute with NumPy on its arrays, and there of many samples at once: JAX is
imported where it is needed. Nothing outside this folder looks inside a rho.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from recoup.checks import InputError
from recoup.core.arrays import Array, namespace, repeat
from recoup.core.families.shapes import Shape, Symmetric
from recoup.core.types import Given, Namespace, Pytree, Rho, Samples


class Coordinates(NamedTuple):
    """`log_ratio` and `score` of a family whose coordinates stand each for itself.

    Vectors are made once for all samples; terms are of coordinates of a sample, some or all, and
    of the same ones of the vectors.
    """

    ratio_scale: Callable[[Rho, Rho], Array]  # rho, reference -> scalar, what all samples share
    ratio_vectors: Callable[[Rho, Rho], Pytree]  # rho, reference -> pytree of [D]
    ratio_terms: Callable[[Pytree, Array], Array]  # vectors, sample -> what each coordinate adds
    score_vectors: Callable[[Rho], Pytree]  # rho -> pytree of [D]
    score_terms: Callable[[Pytree, Array], Rho]  # vectors, sample -> score


class Family(NamedTuple):
    """A search distribution as functions of one sample; rho and samples are pytrees.

    `family` makes one from fewer. What a None leaves out is refused where it is needed.

    >>> from recoup.core.families.table import FAMILIES
    >>> list(FAMILIES)
    ['diagonal', 'full', 'lowrank', ...]
    """

    name: str  # as files call it
    start: Callable[[Array, Array], Rho]  # means [D], standard deviations [S] -> rho
    draw: Callable[[Array, Rho, int, bool], Samples]  # key, rho, N, mirrored -> samples [N]
    log_ratio: Callable[[Rho, Rho, Samples], Array]  # rho, reference, sample -> scalar
    score: Callable[[Rho, Samples], Rho]  # rho, sample -> pytree shaped like rho
    divergence: Callable[[Rho, Rho, Samples, Array], Array]  # KL(new || old), samples and valid [N]
    packed: Callable[[Rho], Array]  # rho -> one block of numbers [..., K]
    unpacked: Callable[[Array, int], Rho]  # block of numbers [..., K], D -> rho
    log_density: Callable[[Rho, Samples], Array] | None = None  # rho, sample -> scalar
    floored: Callable[[Rho, float], Rho] | None = None  # rho, least standard deviation -> rho
    natural: Callable[[Rho, Rho], Rho] | None = None  # rho, gradient -> F^-1 gradient
    moved: Callable[[Rho, Rho, float], Rho] | None = None  # rho, natural direction, KL -> rho
    renyi2: Callable[[Rho, Rho], Array] | None = None  # p, q -> log E_q[(p / q)^2]
    whitened: Callable[[Rho, Array], Array] | None = None  # rho, theta [..., D] -> its noise
    log_spread: Callable[[Rho], Array] | None = None  # rho -> log of the spread [D]
    stretched: Callable[[Rho, Array, Symmetric, Array], Rho] | None = None  # rho, delta [D], log,
    # least [D] -> moved by delta in noise, the spread times exp(log) and not below the least
    refitted: Callable[[Rho, Array, Symmetric], Rho] | None = None  # rho, delta [D], covariance
    # -> that with this mean and covariance in noise
    shape: Shape | None = None  # of such a log, and of such a covariance
    ratio_of_noise: Callable[[Rho, Rho, Array], Array] | None = None  # `log_ratio` of the noise
    # that became a sample under the reference
    log_ratios: Callable[[Rho, Rho, Array], Array] | None = None  # rho [P], reference,
    # samples [n] -> [P, n], where products of matrices give them at once
    coordinates: Coordinates | None = None  # where they stand each for itself
    work: Callable[[int], int] = lambda dim: dim  # D -> products that a sample's density costs


class Moving(NamedTuple):
    """What a rule asks of a family: the fields of `Family` of these names, none of them None.

    >>> recoup.Family._fields[recoup.Family._fields.index("whitened")]
    'whitened'
    """

    whitened: Callable[[Rho, Array], Array]  # rho, theta -> its noise
    log_spread: Callable[[Rho], Array]  # rho -> [D]
    stretched: Callable[[Rho, Array, Symmetric, Array], Rho]  # rho, delta, log, least -> rho
    refitted: Callable[[Rho, Array, Symmetric], Rho]  # rho, delta, covariance -> rho
    shape: Shape  # of log and covariance


def moving(family: object) -> Moving:
    """What a rule asks of the family; raises where it does not offer all of it."""
    lacking = [name for name in Moving._fields if getattr(family, name, None) is None]
    if lacking:
        raise InputError(
            f"this method moves a distribution by {', '.join(Moving._fields)} of its family, and "
            f"{getattr(family, 'name', family)!r} has no {', '.join(lacking)}: give them to "
            "`recoup.family`, or take a method that follows a gradient."
        )
    return Moving(*(getattr(family, name) for name in Moving._fields))


def of_records(
    name: str,
    rho: Rho,
    kl: Callable[[Rho, Rho], Array],
    ratio_of_noise: Callable[[Rho, Rho, Array], Array],
    **more: Given,
) -> Family:
    """The family of a record of ours, and of closed forms; `more` are others, by name."""

    def by_method(name: str) -> Callable[..., Pytree]:
        return lambda rho, *given: getattr(rho, name)(namespace(*rho, *given[:1]), *given)

    def log_ratio(rho: Rho, reference: Rho, theta: Array) -> Array:
        return ratio_of_noise(rho, reference, whitened(reference, theta))

    whitened = by_method("whitened")
    given = {
        "start": rho.start,
        "draw": draw,
        "log_ratio": log_ratio,
        "ratio_of_noise": ratio_of_noise,
        "divergence": lambda new, old, samples, valid: kl(new, old),
        "packed": rho.packed,
        "unpacked": rho.unpacked,
        **{name: by_method(name) for name in Moving._fields[:-1]},
    }
    return Family(name=name, **{**given, **more})


def block(*parts: Array) -> np.ndarray:
    """The parts `[..., K]` of a rho as one block of numbers, which is what a study file stores."""
    return np.concatenate([np.asarray(part, np.float64) for part in parts], axis=-1)


BLOCK = 12  # directions of a block that are orthogonal, at most
NEARLY = 1000  # dimensions in which directions are so by themselves


def block_size(dim: int) -> int:
    """How many draws of so many dimensions have orthogonal directions."""
    return min(dim, BLOCK) if dim <= NEARLY else 1


def orthogonal(xp: Namespace, noise: Array) -> Array:
    """Standard normal noise `[m, D]` with orthogonal directions, each row as long as it was.

    Implements: choromanski2018 orthogonal exploration, Gaussian directions made so by Gram and
    Schmidt. Length and direction of a Gaussian are independent: every row by itself is N(0, I), and
    functions of two rows have no more in common than they had, or less.
    """
    found: list[Array] = []
    for row in noise:
        left = row
        for one in 2 * found:  # once more: what is left over may be short
            left = left - xp.sum(one * left) * one
        found.append(left / xp.sqrt(xp.sum(left**2)))
    lengths = xp.sqrt(xp.sum(noise**2, axis=1, keepdims=True))
    return lengths * xp.stack(found)


def draw(key: Array, rho: Rho, n: int, mirrored: bool = False, block: int = 1) -> Array:
    """Samples `[N, D]` of a rho that turns noise into theta; `mirrored` in adjacent pairs.

    Every `block` of them has orthogonal directions.

    Implements: sehnke2010 symmetric sampling, theta_{2i} from z, theta_{2i+1} from -z.
    """
    import jax
    import jax.numpy as jnp

    from recoup.core.families.normals import standard_normal

    shape, theta = rho.mean.shape, jax.vmap(rho.theta)
    rows = n // 2 if mirrored else n
    noise = standard_normal(key, (-(-rows // block) * block, *shape), rho.mean.dtype)
    if block > 1:
        blocks = noise.reshape(-1, block, *shape)
        noise = jax.vmap(lambda one: orthogonal(jnp, one))(blocks).reshape(-1, *shape)[:rows]
    if mirrored:
        return jnp.stack([theta(noise), theta(-noise)], axis=1).reshape(n, *shape)
    return theta(noise)


def length_to(kl: float, divergence: Callable[[Array], Array], longest: Array) -> Array:
    """The length in [0, longest] at which an increasing `divergence` is `kl`, by bisection."""
    xp = namespace(longest)

    def halve(bracket: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = bracket
        middle = 0.5 * (low + high)
        short = divergence(middle) < kl
        return xp.where(short, middle, low), xp.where(short, high, middle)

    return repeat(xp, 60, halve, (xp.zeros_like(longest), longest))[0]


def longest_length(kl: float, free: Array, capped: Array) -> Array:
    """A length of a natural step at which the divergence is `kl`, or all that its cap allows.

    `free` and `capped` are v^T F v of the direction's coordinates without and with a cap. Those
    without diverge by length^2 free / 2. Where there are none, the second-order expansion is within
    a factor of two up to the cap, so 8 times its length is enough.
    """
    xp = namespace(free, capped)

    def second_order(bottom: Array) -> Array:
        safe = xp.where(bottom > 0, bottom, 1.0)
        return xp.where(bottom > 0, xp.sqrt(2 * kl / safe), 0.0)

    return xp.where(free > 0, second_order(free), 8 * second_order(capped))


def renyi2_of_axes(xp: Namespace, values: Array, away: Array) -> Array:
    """log E_q[(p / q)^2] of Gaussians that q sees along its axes, a scalar.

    There p has variances `values [D]` and means `away [D]`, and q is N(0, I).
    """
    gap = 2 - values
    finite = gap > 0
    safe = xp.where(finite, gap, 1.0)
    terms = away**2 / safe - 0.5 * xp.log(safe * values)
    return xp.sum(xp.where(finite, terms, xp.inf))

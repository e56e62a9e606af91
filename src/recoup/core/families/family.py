"""What a search distribution must offer: everything that depends on the shape of rho.

A family is a record of pure functions of one sample and its rho; batches are made by `jax.vmap`.
Closed forms of ours compute with NumPy on its arrays, and there of many samples at once: JAX is
imported where it is needed. Nothing outside this folder looks inside a rho.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from recoup.checks import InputError, check_choice
from recoup.core.arrays import Array, behind, namespace, repeat
from recoup.core.families.rho import RHOS
from recoup.core.families.shapes import SHAPES, Shape


class Coordinates(NamedTuple):
    """`log_ratio` and `score` of a family whose coordinates stand each for itself.

    Vectors are made once for all samples; terms are of coordinates of a sample, some or all, and
    of the same ones of the vectors.
    """

    ratio_scale: Callable[[Any, Any], Array]  # rho, reference -> scalar, what all samples share
    ratio_vectors: Callable[[Any, Any], Any]  # rho, reference -> pytree of [D]
    ratio_terms: Callable[[Any, Any], Array]  # vectors, sample -> what each coordinate adds
    score_vectors: Callable[[Any], Any]  # rho -> pytree of [D]
    score_terms: Callable[[Any, Any], Any]  # vectors, sample -> score


class Family(NamedTuple):
    """A search distribution as functions of one sample; rho and samples are pytrees.

    `family` makes one from fewer. What a None leaves out is refused where it is needed.
    """

    name: str
    start: Callable[[Any, Any], Any]  # means [D], standard deviations [S] -> rho
    draw: Callable[[Array, Any, int, bool], Any]  # key, rho, N, mirrored -> samples [N]
    log_ratio: Callable[[Any, Any, Any], Array]  # rho, reference, sample -> scalar
    score: Callable[[Any, Any], Any]  # rho, sample -> pytree shaped like rho
    divergence: Callable[[Any, Any, Any, Array], Array]  # KL(new || old), samples and valid [N]
    packed: Callable[[Any], Any]  # rho -> one block of numbers [..., K]
    unpacked: Callable[[Any, int], Any]  # block of numbers [..., K], D -> rho
    log_density: Callable[[Any, Any], Array] | None = None  # rho, sample -> scalar
    floored: Callable[[Any, float], Any] | None = None  # rho, least standard deviation -> rho
    natural: Callable[[Any, Any], Any] | None = None  # rho, gradient -> F^-1 gradient
    moved: Callable[[Any, Any, float], Any] | None = None  # rho, natural direction, KL -> rho
    renyi2: Callable[[Any, Any], Array] | None = None  # p, q -> log E_q[(p / q)^2]
    whitened: Callable[[Any, Any], Array] | None = None  # rho, theta [..., D] -> its noise
    log_spread: Callable[[Any], Array] | None = None  # rho -> log of the spread [D]
    stretched: Callable[[Any, Array, Any, Array], Any] | None = None  # rho, delta [D], log, least
    # [D] -> moved by delta in noise, the spread times exp(log) and not below the least
    refitted: Callable[[Any, Array, Any], Any] | None = None  # rho, delta [D], covariance -> that
    # with this mean and covariance in noise
    shape: Shape | None = None  # of such a log, and of such a covariance
    ratio_of_noise: Callable[[Any, Any, Any], Array] | None = None  # `log_ratio` of the noise that
    # became a sample under the reference
    log_ratios: Callable[[Any, Any, Any], Array] | None = None  # rho [P], reference, samples [n]
    # -> [P, n], where products of matrices give them at once
    coordinates: Coordinates | None = None  # where they stand each for itself
    work: Callable[[int], int] = lambda dim: dim  # D -> products that a sample's density costs


def family(
    name: str,
    *,
    start: Callable[[Any, Any], Any],
    log_density: Callable[[Any, Any], Array],
    **more: Any,
) -> Family:
    """A family of your own, from how it starts and its log-density.

    `start(mean, std)`, both `[D]`, gives rho: a NamedTuple of arrays with `mean` and `std`, and
    `theta(noise)`, the theta that standard normal noise `[D]` becomes. `log_density(rho, theta)` is
    that of one sample. Scores come by differentiation; a closed form of anything else can be given
    by the name it has in `Family`. With all that `Moving` names it is moved by the default method
    too; its `shape` is then "diagonal" or "full".
    """
    if not isinstance(name, str) or not name.strip() or not name.isprintable() or ":" in name:
        raise InputError(f"a family needs a name, which has no colon, got {name!r}.")
    if name in RHOS:
        raise InputError(f"{name!r} is the name of a family of ours: give yours another.")
    if "draw" in more:
        raise InputError("a family draws by `theta(noise)` of its rho: leave out draw.")
    for key in more:
        check_choice("what is given of a family", key, Family._fields)
    if "shape" in more:
        more["shape"] = SHAPES[check_choice("the shape of a family", more["shape"], SHAPES)]

    import jax
    import jax.numpy as jnp

    def log_ratio(rho: Any, reference: Any, sample: Any) -> Array:
        return log_density(rho, sample) - log_density(reference, sample)

    def unpacked(numbers: Any, dim: int) -> Any:
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


def _packed(rho: Any) -> np.ndarray:
    """The numbers of a rho without leading axes, one array after the other."""
    import jax

    leaves = [np.ravel(leaf) for leaf in jax.tree.leaves(rho)]
    return np.concatenate(leaves).astype(np.float64)


class Moving(NamedTuple):
    """What a rule asks of a family: the fields of `Family` of these names, none of them None."""

    whitened: Callable[[Any, Any], Array]
    log_spread: Callable[[Any], Array]
    stretched: Callable[[Any, Array, Any, Array], Any]
    refitted: Callable[[Any, Array, Any], Any]
    shape: Shape


def moving(family: Any) -> Moving:
    """What a rule asks of the family; raises where it does not offer all of it."""
    lacking = [name for name in Moving._fields if getattr(family, name, None) is None]
    if lacking:
        raise InputError(
            f"this method moves a distribution by {', '.join(Moving._fields)} of its family, and "
            f"{getattr(family, 'name', family)!r} has no {', '.join(lacking)}: give them to "
            "`recoup.family`, or take a method that follows a gradient."
        )
    return Moving(*(getattr(family, name) for name in Moving._fields))


def by_methods(shape: Shape) -> dict[str, Any]:
    """The fields of `Moving` for records of ours, which have the operations as methods."""

    def named(name: str) -> Callable[..., Any]:
        return lambda rho, *given: getattr(rho, name)(namespace(*rho, *given[:1]), *given)

    return {name: named(name) for name in Moving._fields[:-1]} | {"shape": shape}


def later(family: Family, *earlier: Array) -> Family:
    """The same family, whose densities and divergences are computed `behind` numbers `earlier`."""

    def ordered(function: Callable[..., Any] | None) -> Any:
        return function and (lambda p, q, *x: function(*behind(xp, (p, q), *earlier), *x))

    xp = namespace(*earlier)
    return family._replace(log_ratio=ordered(family.log_ratio), renyi2=ordered(family.renyi2))


def draw(key: Array, rho: Any, n: int, mirrored: bool = False) -> Array:
    """Samples `[N, D]` of a rho that turns noise into theta; `mirrored` in adjacent pairs.

    Implements: sehnke2010 symmetric sampling, theta_{2i} from z, theta_{2i+1} from -z.
    """
    import jax
    import jax.numpy as jnp

    from recoup.core.families.normals import standard_normal

    shape, theta = rho.mean.shape, jax.vmap(rho.theta)
    noise = standard_normal(key, (n // 2 if mirrored else n, *shape), rho.mean.dtype)
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


def renyi2_of_axes(xp: Any, values: Array, away: Array) -> Array:
    """log E_q[(p / q)^2] of Gaussians that q sees along its axes, a scalar.

    There p has variances `values [D]` and means `away [D]`, and q is N(0, I).
    """
    gap = 2 - values
    finite = gap > 0
    safe = xp.where(finite, gap, 1.0)
    terms = away**2 / safe - 0.5 * xp.log(safe * values)
    return xp.sum(xp.where(finite, terms, xp.inf))

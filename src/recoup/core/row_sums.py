"""Log-ratios and squared norms of scores of all samples, in one read of them on a CUDA GPU.

XLA makes one kernel of both, which takes one row at a time and reads every vector of parameters
again for it. The kernel here takes several rows, and reads them once for all
(`docs/benchmarks/gpu.md`). It is for families whose coordinates stand each for itself.
"""

from collections.abc import Callable
from functools import partial
from math import gcd

import jax
import jax.numpy as jnp
from jax import Array

from recoup.core import kernels
from recoup.core.families.family import Family
from recoup.core.sweeps import map_blocks, squared_norms
from recoup.core.types import Pytree, Rho, Samples

WIDE, TALL = 512, 8  # coordinates and rows that a program of the kernel has at a time
LEAST_ROWS = 4  # rows below which it gains nothing
XLA_ROWS = 1024  # coordinates below which it does not
BUSY_PROGRAMS = 256  # programs below which much of the device is idle

Terms = Callable[[Pytree, Pytree, Array], tuple[Array, Array]]  # shared, of the block, x -> like x


def ratios_and_norms(
    family: Family, rho: Rho, references: Rho, samples: Samples
) -> tuple[Array, Array | None]:
    """log p(x | rho) - log p(x | reference) and ||score||^2 at rho, over samples `[B, N]`.

    References are `[B]`, one a block. The norms are None where they would cost a read of their own.
    """
    if not (kernels.on_cuda() and fits(family, samples)):
        return map_blocks(partial(family.log_ratio, rho), references, samples), None
    ways = partial(by_kernel, family), partial(plain, family)
    return kernels.chosen(*ways, rho, references, samples)


def fits(family: Family, samples: Samples) -> bool:
    """Whether the kernel is made for samples of this family, type and shape."""
    if family.coordinates is None or not isinstance(samples, Array):
        return False
    blocks, n, dim = samples.shape
    tall = gcd(n, TALL)
    large = dim >= XLA_ROWS and tall >= LEAST_ROWS and blocks * n // tall >= BUSY_PROGRAMS
    return large and samples.dtype == jnp.float32


def plain(family: Family, rho: Rho, references: Rho, samples: Array) -> tuple[Array, Array]:
    """Both sums by XLA."""
    ratios = map_blocks(partial(family.log_ratio, rho), references, samples)
    return ratios, squared_norms(partial(family.score, rho), samples)


def by_kernel(
    family: Family, rho: Rho, references: Rho, samples: Array, interpret: bool = False
) -> tuple[Array, Array]:
    """What `plain` gives: most columns by the kernel, those after its last whole step by XLA."""
    assert family.coordinates is not None
    of = family.coordinates

    def terms(shared: Pytree, pair: Pytree, x: Array) -> tuple[Array, Array]:
        squares = [jnp.square(part) for part in jax.tree.leaves(of.score_terms(shared, x))]
        return of.ratio_terms(pair, x), sum(squares[1:], squares[0])

    vectors = of.score_vectors(rho), jax.vmap(of.ratio_vectors, (None, 0))(rho, references)
    sums = _row_sums(terms, *vectors, samples, interpret)
    whole = samples.shape[-1] // WIDE * WIDE
    if whole < samples.shape[-1]:
        shared, pairs = jax.tree.map(lambda x: x[..., None, whole:], vectors)
        found = terms(shared, pairs, samples[..., whole:])
        sums = [sum_ + jnp.sum(part, -1) for sum_, part in zip(sums, found, strict=True)]
    scale = jax.vmap(of.ratio_scale, (None, 0))(rho, references)
    return sums[0] + scale[:, None], sums[1]


def _row_sums(
    terms: Terms, shared: Pytree, pairs: Pytree, samples: Array, interpret: bool
) -> list[Array]:
    """Sums `[B, N]` of both `terms` over the coordinates, as far as whole steps of `WIDE` reach."""
    from jax.experimental import pallas as pl

    (blocks, n, dim), tall = samples.shape, gcd(samples.shape[1], TALL)
    vectors, tree = jax.tree.flatten((shared, pairs))
    common = len(jax.tree.leaves(shared))

    def kernel(x: Array, *refs: Array) -> None:
        def step(k: Array, sums: tuple[Array, Array]) -> tuple[Array, Array]:
            part = pl.ds(k * WIDE, WIDE)
            at, pair = jax.tree.unflatten(tree, [v[part][None] for v in refs[:-2]])
            found = terms(at, pair, x[:, part])
            return sums[0] + found[0], sums[1] + found[1]

        zero = jnp.zeros((tall, WIDE), samples.dtype)
        sums = jax.lax.fori_loop(0, dim // WIDE, step, (zero, zero))
        for out, each in zip(refs[-2:], sums, strict=True):
            out[...] = jnp.sum(each, axis=1)

    of_all = pl.BlockSpec((dim,), lambda b, r: (0,))
    of_block = pl.BlockSpec((None, dim), lambda b, r: (b, 0))
    out = pl.BlockSpec((None, tall), lambda b, r: (b, r))
    return pl.pallas_call(
        kernel,
        grid=(blocks, n // tall),
        in_specs=[
            pl.BlockSpec((None, tall, dim), lambda b, r: (b, r, 0)),
            *([of_all] * common + [of_block] * (len(vectors) - common)),
        ],
        out_specs=[out, out],
        out_shape=[jax.ShapeDtypeStruct((blocks, n), samples.dtype)] * 2,
        **kernels.how(interpret),
    )(samples, *vectors)

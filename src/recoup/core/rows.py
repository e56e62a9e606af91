"""Log-ratios and squared norms of scores of all samples, in one read of them on a CUDA GPU.

XLA makes one kernel of both, which takes one row at a time and reads every vector of parameters
again for it. The kernel here takes several rows, and reads them once for all
(`docs/benchmarks.md`). It is for families whose coordinates stand each for itself.
"""

from collections.abc import Callable
from functools import partial
from math import gcd
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from recoup.core.families.family import Family
from recoup.core.sweeps import map_blocks, squared_norms

WIDE, TALL = 1024, 8  # coordinates and rows that a program of the kernel has at a time
LEAST = 4  # rows below which it gains nothing

Terms = Callable[[Any, Any, Array], tuple[Array, ...]]  # rho, reference, x -> each shaped like x


def ratios_and_norms(
    family: Family, rho: Any, references: Any, samples: Any
) -> tuple[Array, Array | None]:
    """log p(x | rho) - log p(x | reference) and ||score||^2 at rho, over samples `[B, N]`.

    References are `[B]`, one a block. The norms are None where they would cost a read of their own.
    """
    if not (_on_cuda() and fits(family, samples)):
        return map_blocks(partial(family.log_ratio, rho), references, samples), None
    ways = partial(by_kernel, family), partial(plain, family)
    return _chosen(*ways, rho, references, samples)


def _on_cuda() -> bool:
    return jax.default_backend() == "gpu"


def _chosen(kernel: Callable[..., Any], other: Callable[..., Any], *args: Any) -> Any:
    return jax.lax.platform_dependent(*args, cuda=kernel, default=other)


def fits(family: Family, samples: Any) -> bool:
    """Whether the kernel is made for samples of this family, type and shape."""
    if family.ratio_terms is None or not isinstance(samples, Array):
        return False
    _, n, dim = samples.shape
    return dim >= WIDE and gcd(n, TALL) >= LEAST and samples.dtype == jnp.float32


def plain(family: Family, rho: Any, references: Any, samples: Array) -> tuple[Array, Array]:
    """Both sums by XLA."""
    ratios = map_blocks(partial(family.log_ratio, rho), references, samples)
    return ratios, squared_norms(partial(family.score, rho), samples)


def by_kernel(
    family: Family, rho: Any, references: Any, samples: Array, interpret: bool = False
) -> tuple[Array, Array]:
    """What `plain` gives: most columns by the kernel, those behind its last whole step by XLA."""
    assert family.ratio_terms is not None
    assert family.ratio_scale is not None
    ratio_terms, score = family.ratio_terms, family.score

    def terms(rho: Any, reference: Any, x: Array) -> tuple[Array, Array]:
        squares = [jnp.square(part) for part in jax.tree.leaves(score(rho, x))]
        return ratio_terms(rho, reference, x), sum(squares[1:], squares[0])

    sums = _row_sums(terms, rho, references, samples, interpret)
    whole = samples.shape[-1] // WIDE * WIDE
    if whole < samples.shape[-1]:
        at, before = jax.tree.map(lambda x: x[..., None, whole:], (rho, references))
        found = terms(at, before, samples[..., whole:])
        sums = [sum_ + jnp.sum(part, -1) for sum_, part in zip(sums, found, strict=True)]
    scale = jax.vmap(family.ratio_scale, (None, 0))(rho, references)
    return sums[0] + scale[:, None], sums[1]


def _row_sums(
    terms: Terms, rho: Any, references: Any, samples: Array, interpret: bool
) -> list[Array]:
    """Sums `[B, N]` of both `terms` over the coordinates, as far as whole steps of `WIDE` reach."""
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import triton

    (blocks, n, dim), tall = samples.shape, gcd(samples.shape[1], TALL)
    vectors, tree = jax.tree.flatten((rho, references))
    shared = len(jax.tree.leaves(rho))

    def kernel(x: Any, *refs: Any) -> None:
        def step(k: Any, sums: tuple[Array, Array]) -> tuple[Array, Array]:
            part = pl.ds(k * WIDE, WIDE)
            at, before = jax.tree.unflatten(tree, [v[part][None] for v in refs[:-2]])
            found = terms(at, before, x[:, part])
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
            *([of_all] * shared + [of_block] * (len(vectors) - shared)),
        ],
        out_specs=[out, out],
        out_shape=[jax.ShapeDtypeStruct((blocks, n), samples.dtype)] * 2,
        compiler_params=None if interpret else triton.CompilerParams(num_warps=8, num_stages=2),
        interpret=interpret,
    )(samples, *vectors)

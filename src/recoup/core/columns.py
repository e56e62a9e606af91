"""Weighted sums over all samples, coordinate by coordinate, in one read of them on a CUDA GPU.

XLA walks down a column with too little in flight where rows are long (`docs/benchmarks/gpu.md`). A
program of the kernel here has some columns and a share of the rows; the shares are added up after
it, in a fixed order.
"""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
from jax import Array

from recoup.core import kernels
from recoup.core.sweeps import sum_samples
from recoup.core.types import Pytree, Samples

WIDE, TALL = 512, 8  # coordinates and rows that a program has at a time
SHARES = 16  # parts that the rows come in
XLA_COLUMNS = 8192  # coordinates below which XLA is faster

Each = Callable[[Pytree, Array], Pytree]  # vectors, coordinates of a sample -> pytree of those


def sum_columns(each: Each, vectors: Pytree, samples: Samples, coefficients: Array) -> Pytree:
    """sum_n c_n f_n over samples and coefficients `[B, N]`, with f = `each(vectors, sample)`.

    A coordinate of f depends on the same one of the `vectors [D]` and of the sample alone.
    """
    ways = partial(by_kernel, each), partial(plain, each)
    if not (kernels.on_cuda() and fits(samples)):
        return ways[1](vectors, samples, coefficients)
    return kernels.chosen(*ways, vectors, samples, coefficients)


def fits(samples: Samples) -> bool:
    """Whether the kernel is made for samples of this type and shape."""
    if not isinstance(samples, Array) or samples.dtype != jnp.float32:
        return False
    blocks, n, dim = samples.shape
    return dim >= XLA_COLUMNS and blocks * n % (SHARES * TALL) == 0


def plain(each: Each, vectors: Pytree, samples: Samples, coefficients: Array) -> Pytree:
    """The sums by chunks or by XLA."""
    return sum_samples(partial(each, vectors), samples, coefficients)


def by_kernel(
    each: Each, vectors: Pytree, samples: Array, coefficients: Array, interpret: bool = False
) -> Pytree:
    """What `plain` gives: most columns by the kernel, those after its last whole part by XLA."""
    whole = samples.shape[-1] // WIDE * WIDE
    found = _column_sums(each, vectors, samples, coefficients, interpret)
    if whole == samples.shape[-1]:
        return found
    last, others = jax.tree.map(lambda x: x[..., whole:], (vectors, samples))
    rest = plain(each, last, others, coefficients)
    return jax.tree.map(lambda x, y: jnp.concatenate([x, y]), found, rest)


def _column_sums(
    each: Each, vectors: Pytree, samples: Array, coefficients: Array, interpret: bool
) -> Pytree:
    """The sums of as many columns as whole parts of `WIDE` reach."""
    from jax.experimental import pallas as pl

    dim, rows = samples.shape[-1], coefficients.size
    share, leaves, tree = rows // SHARES, *jax.tree.flatten(vectors)
    like = jax.eval_shape(each, vectors, samples[0, 0])
    sums = len(jax.tree.leaves(like))

    def kernel(x: Array, c: Array, *refs: Array) -> None:
        here = jax.tree.unflatten(tree, [v[...][None] for v in refs[:-sums]])

        def step(k: Array, totals: list[Array]) -> list[Array]:
            some = pl.ds(k * TALL, TALL)
            found = jax.tree.leaves(each(here, x[some, :]))
            return [t + c[some][:, None] * v for t, v in zip(totals, found, strict=True)]

        zeros = [jnp.zeros((TALL, WIDE), samples.dtype)] * sums
        totals = jax.lax.fori_loop(0, share // TALL, step, zeros)
        for out, total in zip(refs[-sums:], totals, strict=True):
            out[...] = jnp.sum(total, axis=0)

    found = pl.pallas_call(
        kernel,
        grid=(dim // WIDE, SHARES),
        in_specs=[
            pl.BlockSpec((share, WIDE), lambda d, s: (s, d)),
            pl.BlockSpec((share,), lambda d, s: (s,)),
            *[pl.BlockSpec((WIDE,), lambda d, s: (d,))] * len(leaves),
        ],
        out_specs=[pl.BlockSpec((None, WIDE), lambda d, s: (s, d))] * sums,
        out_shape=[jax.ShapeDtypeStruct((SHARES, dim // WIDE * WIDE), samples.dtype)] * sums,
        **kernels.how(interpret),
    )(samples.reshape(rows, dim), coefficients.ravel(), *leaves)
    return jax.tree.unflatten(jax.tree.structure(like), [jnp.sum(x, axis=0) for x in found])

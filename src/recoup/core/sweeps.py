"""Passes over many samples: by cache-sized chunks on a processor, all at once on an accelerator.

A processor that took all samples at once would write arrays as large as the archive; chunks stay
near it, and are several times faster. Chunks are of one size, whatever the number of samples; where
that does not divide it, the last chunk begins earlier and repeats a few samples of the one before:
nothing is copied, and no number of samples is slower than the next.

An accelerator fuses what is computed of a sample with the sum that it ends in, and writes nothing:
it reads the archive as fast as its memory allows. There a walk over chunks is twenty times slower,
for each is too small to fill the device. It is taken only where something cannot be fused and
would have to be written.

`jax.lax.platform_dependent` chooses, when a program is compiled for its device: a search on the CPU
of a machine that has an accelerator goes by chunks, and no setting has to say so.
"""

from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

CHUNK = 2**20  # numbers of a chunk on a processor
ROOM = 2**28  # numbers that an accelerator may write at once

Body = Callable[[Any, Any, Array], tuple[Any, Any]]


def map_samples(function: Callable[[Any], Any], samples: Any, work: int = 0) -> Any:
    """`function` of every sample of the leading axis `[N]`.

    `work` is how many numbers it needs for one, where that is more than the sample has.
    """
    _, results = scan_samples(
        lambda total, chunk, fresh: (total, jax.vmap(function)(chunk)), None, samples, work
    )
    return results


def map_blocks(function: Callable[[Any, Any], Any], each: Any, samples: Any) -> Any:
    """`function(each[b], sample)` of all samples `[B, N]`, with something `each [B]` of a block."""

    def block(pair: tuple[Any, Any]) -> Any:
        return map_samples(partial(function, pair[0]), pair[1])

    return map_samples(block, (each, samples))


def scan_samples(body: Body, start: Any, samples: Any, work: int = 0) -> Any:
    """A total and results `[N]` of `body(total, chunk, fresh)` over chunks of the leading axis.

    `fresh [m]` says which samples of a chunk no earlier chunk has had: only they may be added to
    the total. Results of a sample that comes twice must be the same both times.
    """
    n, own = _count(samples), _numbers(samples)
    near = _sizes(n, max(work, own), CHUNK)
    far = _sizes(n, work, ROOM) if work > own else (n, 1)
    return _by_sizes(near, far, partial(_walk, body), start, samples)


def sum_samples(
    function: Callable[[Any], Any], samples: Any, coefficients: tuple[Array, ...]
) -> tuple[tuple[Any, ...], Array]:
    """sum_n c_n f_n for each c, and ||f_n||^2, in one pass; samples, c and norms `[B, N]`."""
    like = jax.eval_shape(function, jax.tree.map(lambda x: x[0, 0], samples))
    zero = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), like)

    def chunk(totals: Any, part: tuple[Any, Any], fresh: Array) -> tuple[Any, Array]:
        values = jax.vmap(function)(part[1])
        totals = tuple(
            _add(total, jnp.where(fresh, c, 0.0), values)
            for total, c in zip(totals, part[0], strict=True)
        )
        return totals, jax.tree.reduce(jnp.add, jax.tree.map(_sum_squares, values))

    work = sum(leaf.size for leaf in jax.tree.leaves(like)) // 2  # a diagonal score has two parts
    shape = coefficients[0].shape
    flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), (coefficients, samples))
    totals, norms = scan_samples(chunk, (zero,) * len(coefficients), flat, work)
    return totals, norms.reshape(shape)


def in_rounds(
    body: Callable[[Any, Array, Array], Any], start: Any, wanted: Array, work: int
) -> Any:
    """The total of `body(total, indices, part)` over all indices `[P]` that are `wanted`.

    A round has several indices at once, each of `work` numbers; `part` says which of them count.
    Rounds in which none is wanted are left out.
    """
    near, far = (_sizes(wanted.size, work, room) for room in (CHUNK, ROOM))
    return _by_sizes(near, far, partial(_go_round, body), start, wanted)


def totals_by(kind: Array, kinds: int, values: Array) -> Array:
    """Sums `[K]` of `values [n]` by their `kind [n]`.

    An accelerator adds to one place in no given order, and one after the other: there each kind
    looks at all values.
    """

    def scattered(kind: Array, values: Array) -> Array:
        return jnp.zeros(kinds, values.dtype).at[kind].add(values)

    def compared(kind: Array, values: Array) -> Array:
        return jnp.sum(jnp.where(kind == jnp.arange(kinds)[:, None], values, 0), axis=1)

    return by_device(scattered, compared, kind, values)


def by_device(processor: Callable[..., Any], accelerator: Callable[..., Any], *args: Any) -> Any:
    """The result of one of two functions that give the same, by where it is computed."""
    return jax.lax.platform_dependent(*args, cpu=processor, default=accelerator)


def _by_sizes(near: Any, far: Any, walk: Callable[..., Any], *args: Any) -> Any:
    """`walk(*near, *args)` on a processor, `walk(*far, *args)` on an accelerator."""
    if near == far:
        return walk(*near, *args)
    return by_device(partial(walk, *near), partial(walk, *far), *args)


def _walk(body: Body, m: int, chunks: int, start: Any, samples: Any) -> Any:
    """The scan by `chunks` of `m` samples."""
    n = _count(samples)
    if chunks == 1:
        return body(start, samples, jnp.ones(n, bool))
    if n == m * chunks:
        split = jax.tree.map(lambda x: x.reshape(chunks, m, *x.shape[1:]), samples)
        total, results = jax.lax.scan(
            lambda total, chunk: body(total, chunk, jnp.ones(m, bool)), start, split
        )
        return total, jax.tree.map(lambda x: x.reshape(n, *x.shape[2:]), results)
    return _overlapping(body, m, chunks, start, samples)


def _overlapping(body: Body, m: int, chunks: int, start: Any, samples: Any) -> Any:
    """The same where `m` does not divide the number of samples."""
    n = _count(samples)

    def at(i: Any) -> tuple[Any, Array, Any]:
        first = jnp.minimum(i * m, n - m)
        chunk = jax.tree.map(lambda x: jax.lax.dynamic_slice_in_dim(x, first, m), samples)
        return chunk, first + jnp.arange(m) >= i * m, first

    def step(i: Any, carry: tuple[Any, Any]) -> tuple[Any, Any]:
        total, kept = carry
        chunk, fresh, first = at(i)
        total, found = body(total, chunk, fresh)
        put = jax.lax.dynamic_update_slice_in_dim
        return total, jax.tree.map(lambda x, y: put(x, y, first, 0), kept, found)

    like = jax.eval_shape(lambda: body(start, *at(0)[:2])[1])
    room = jax.tree.map(lambda x: jnp.zeros((n, *x.shape[1:]), x.dtype), like)
    return jax.lax.fori_loop(0, chunks, step, (start, room))


def _go_round(
    body: Callable[[Any, Array, Array], Any], m: int, rounds: int, start: Any, wanted: Array
) -> Any:
    """The total by `rounds` of `m` indices; the last may reach behind the end, where none is."""
    if rounds == 1:
        return body(start, jnp.arange(wanted.size), wanted)

    def step(i: Any, total: Any) -> Any:
        indices = i * m + jnp.arange(m)
        part = wanted.at[indices].get(mode="fill", fill_value=False)
        return jax.lax.cond(jnp.any(part), body, lambda kept, *_: kept, total, indices, part)

    return jax.lax.fori_loop(0, rounds, step, start)


def _count(samples: Any) -> int:
    return jax.tree.leaves(samples)[0].shape[0]


def _numbers(samples: Any) -> int:
    """How many numbers one sample has."""
    return sum(prod(leaf.shape[1:]) for leaf in jax.tree.leaves(samples))


def _sizes(n: int, numbers: int, room: int) -> tuple[int, int]:
    """How many of `n` things of so many numbers go into one part, and how many parts there are."""
    parts = max(-(-n // max(room // max(numbers, 1), 1)), 1)
    return -(-n // parts), parts


def _add(total: Any, c: Array, values: Any) -> Any:
    def add(t: Array, v: Array) -> Array:
        return t + jnp.sum(c.reshape(-1, *(1,) * (v.ndim - 1)) * v, axis=0)

    return jax.tree.map(add, total, values)


def _sum_squares(values: Array) -> Array:
    return jnp.sum(values**2, axis=tuple(range(1, values.ndim)))

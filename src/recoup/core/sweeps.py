"""Passing over many samples a cache-sized chunk at a time.

A pass over all samples at once would make arrays as large as the archive; chunks of about a million
numbers stay near the processor, and are several times faster. Chunks are of one size, whatever the
number of samples; where that does not divide it, the last chunk begins earlier and repeats a few
samples of the one before: nothing is copied, and no number of samples is slower than the next.
"""

from collections.abc import Callable
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

CHUNK = 2**20  # numbers


def map_samples(function: Callable[[Any], Any], samples: Any, work: int = 0) -> Any:
    """`function` of every sample of the leading axis `[N]`, one chunk after the other.

    `work` is how many numbers it needs for one, where that is more than the sample has.
    """
    _, results = scan_samples(
        lambda total, chunk, fresh: (total, jax.vmap(function)(chunk)), None, samples, work
    )
    return results


def scan_samples(
    body: Callable[[Any, Any, Array], tuple[Any, Any]], start: Any, samples: Any, work: int = 0
) -> Any:
    """A total and results `[N]` of `body(total, chunk, fresh)` over chunks of the leading axis.

    `fresh [m]` says which samples of a chunk no earlier chunk has had: only they may be added to
    the total. Results of a sample that comes twice must be the same both times.
    """
    n = jax.tree.leaves(samples)[0].shape[0]
    m, chunks = _sizes(samples, n, work)
    if chunks == 1:
        return body(start, samples, jnp.ones(n, bool))
    if n == m * chunks:
        split = jax.tree.map(lambda x: x.reshape(chunks, m, *x.shape[1:]), samples)
        total, results = jax.lax.scan(
            lambda total, chunk: body(total, chunk, jnp.ones(m, bool)), start, split
        )
        return total, jax.tree.map(lambda x: x.reshape(n, *x.shape[2:]), results)
    return _overlapping(body, start, samples, n, m, chunks)


def _overlapping(
    body: Callable[[Any, Any, Array], tuple[Any, Any]],
    start: Any,
    samples: Any,
    n: int,
    m: int,
    chunks: int,
) -> Any:
    """The same where `m` does not divide `n`."""

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


def _sizes(samples: Any, n: int, work: int = 0) -> tuple[int, int]:
    """How many samples a chunk has, and how many chunks there are."""
    numbers = max(work, sum(prod(leaf.shape[1:]) for leaf in jax.tree.leaves(samples)), 1)
    chunks = max(-(-n // max(CHUNK // numbers, 1)), 1)
    return -(-n // chunks), chunks

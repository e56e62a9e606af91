"""Passing over many samples a cache-sized chunk at a time.

A pass over all samples at once would make arrays as large as the archive; chunks of about a million
numbers stay near the processor, and are several times faster.
"""

from collections.abc import Callable
from math import prod
from typing import Any

import jax

CHUNK = 2**20  # numbers


def map_samples(function: Callable[[Any], Any], samples: Any) -> Any:
    """`function` of every sample of the leading axis `[N]`, one chunk after the other."""
    _, results = scan_samples(
        lambda total, chunk: (total, jax.vmap(function)(chunk)), None, samples
    )
    return results


def scan_samples(body: Callable[[Any, Any], tuple[Any, Any]], start: Any, samples: Any) -> Any:
    """`jax.lax.scan` over chunks of the leading axis `[N]`; results are joined along it again."""
    n = jax.tree.leaves(samples)[0].shape[0]
    m = _chunk_size(samples, n)
    split = jax.tree.map(lambda x: x.reshape(n // m, m, *x.shape[1:]), samples)
    total, results = jax.lax.scan(body, start, split)
    return total, jax.tree.map(lambda x: x.reshape(n, *x.shape[2:]), results)


def _chunk_size(samples: Any, n: int) -> int:
    """The largest divisor of n whose chunks are small enough, or 1."""
    numbers = sum(prod(leaf.shape[1:]) for leaf in jax.tree.leaves(samples))
    return max(m for m in range(1, n + 1) if n % m == 0 and (m == 1 or m * numbers <= CHUNK))

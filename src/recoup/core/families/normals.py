"""Standard normal numbers, drawn about twice as fast as `jax.random.normal` draws them on a CPU.

Drawing is most of what `ask` does. Here both words of every hash are used, where JAX uses one, and
the rounds are written out, so that hash and inverse error function become one pass. An accelerator
would go through all of it again for every use of a number, and for each word: there the numbers are
written once, both of a hash together.
"""

from math import prod

import jax
import jax.numpy as jnp
from jax import Array

from recoup.core import sweeps
from recoup.core.arrays import Dtype

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA


def standard_normal(key: Array, shape: tuple[int, ...], dtype: Dtype) -> Array:
    """Independent standard normal numbers of the given shape, a function of `key` alone.

    By inverting the distribution function at 2^24 equally likely points. Types other than float32
    and keys other than threefry's are left to `jax.random.normal`.
    """
    if dtype != jnp.float32 or str(jax.random.key_impl(key)) != "threefry2x32":
        return jax.random.normal(key, shape, dtype)
    n = prod(shape)
    half = -(-n // 2)

    def hashed(words: Array) -> tuple[Array, Array]:
        counter = jnp.arange(half, dtype=jnp.uint32)
        return threefry(words, counter, counter + half)

    def in_one_pass(words: Array) -> Array:
        return _normal(jnp.concatenate(hashed(words))[:n], dtype)

    def written(words: Array) -> Array:
        halves = jax.lax.optimization_barrier(tuple(_normal(x, dtype) for x in hashed(words)))
        return jnp.concatenate(halves)[:n]

    return sweeps.by_device(in_one_pass, written, jax.random.key_data(key)).reshape(shape)


def _normal(words: Array, dtype: Dtype) -> Array:
    """The normal numbers that words of 32 random bits stand for."""
    steps = (words >> 8).astype(jnp.int32) - 2**23  # -2^23 ... 2^23 - 1
    uniform = (steps.astype(dtype) + 0.5) * 2.0**-23  # symmetric, inside (-1, 1)
    return jnp.sqrt(2.0).astype(dtype) * jax.scipy.special.erfinv(uniform)


def threefry(key: Array, x: Array, y: Array) -> tuple[Array, Array]:
    """Two words of 32 random bits for each pair of counters, under a key of two words.

    Implements: salmon2011 Threefry-2x32 in 20 rounds.
    """
    keys = (key[0], key[1], key[0] ^ key[1] ^ jnp.uint32(PARITY))
    x, y = x + keys[0], y + keys[1]
    for i in range(5):
        for rotation in ROTATIONS[i % 2]:
            x = x + y
            y = ((y << rotation) | (y >> (32 - rotation))) ^ x
        x, y = x + keys[(i + 1) % 3], y + keys[(i + 2) % 3] + jnp.uint32(i + 1)
    return x, y

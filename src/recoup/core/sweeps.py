"""Passes over many samples: by cache-sized chunks on a processor, all at once on an accelerator.

A processor that took all samples at once would write arrays as large as the archive; chunks stay
near it, and are several times faster. Chunks are of one size, whatever the number of samples; where
that does not divide it, the last chunk begins earlier and repeats a few samples of the one before:
nothing is copied, and no number of samples is slower than the next.

An accelerator fuses what is computed of a sample with the sum that it ends in, and writes nothing.
There a walk over chunks is ten times slower (`docs/benchmarks/gpu.md`), for each is too small to
fill the device. It is taken only where something cannot be fused and would have to be written.

`jax.lax.platform_dependent` chooses, when a program is compiled for its device: a search on the CPU
of a machine that has an accelerator goes by chunks, and no setting has to say so.
"""

from collections.abc import Callable
from functools import partial, wraps
from math import prod
from typing import TypeVar

import jax
import jax.numpy as jnp
from jax import Array

from recoup.core.types import Pytree, Samples

CACHE_CHUNK = 2**17  # numbers of a chunk on a processor: a megabyte, what is next to a core
ROOM = 2**28  # numbers that an accelerator may write at once
SHORT = 128  # numbers that one product adds up
PRODUCT_COLUMNS = 4096  # that a product of matrices does on an accelerator

Out = TypeVar("Out")
Kept = TypeVar("Kept")
Found = TypeVar("Found")
Body = Callable[[Kept, Samples, Array], tuple[Kept, Found]]


def map_samples(function: Callable[[Samples], Out], samples: Samples, work: int = 0) -> Out:
    """`function` of every sample of the leading axis `[N]`.

    `work` is how many numbers it needs for one, where that is more than the sample has.
    """
    results: Out
    _, results = scan_samples(
        lambda total, chunk, fresh: (total, jax.vmap(function)(chunk)), None, samples, work
    )
    return results


def map_blocks(function: Callable[[Pytree, Samples], Out], each: Pytree, samples: Samples) -> Out:
    """`function(each[b], sample)` of all samples `[B, N]`, with something `each [B]` of a block."""

    def block(pair: tuple[Pytree, Samples]) -> Out:
        return map_samples(partial(function, pair[0]), pair[1])

    return map_samples(block, (each, samples))


def scan_samples(
    body: Body[Kept, Found], start: Kept, samples: Samples, work: int = 0
) -> tuple[Kept, Found]:
    """A total and results `[N]` of `body(total, chunk, fresh)` over chunks of the leading axis.

    `fresh [m]` says which samples of a chunk no earlier chunk has had: only they may be added to
    the total. Results of a sample that comes twice must be the same both times.
    """
    n, own = _count(samples), _numbers(samples)
    near = _sizes(n, max(work, own), CACHE_CHUNK)
    far = _sizes(n, work, ROOM) if work > own else (n, 1)
    found: tuple[Kept, Found] = _by_sizes(near, far, partial(_walk, body), start, samples)
    return found


def sum_samples(function: Callable[[Samples], Out], samples: Samples, coefficients: Array) -> Out:
    """sum_n c_n f_n over samples and coefficients `[B, N]`, a pytree like f."""
    like = _like(function, samples)
    zero = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), like)

    def add(sums: Pytree, c: Array, values: Pytree) -> Pytree:
        return jax.tree.map(lambda t, v: t + _weighted(c, v), sums, values)

    def some(sums: Pytree, part: tuple[Array, Samples], fresh: Array) -> tuple[Pytree, None]:
        return add(sums, jnp.where(fresh, part[0], 0.0), jax.vmap(function)(part[1])), None

    def blocks(sums: Pytree, part: tuple[Array, Samples], fresh: Array) -> tuple[Pytree, None]:
        c = jnp.where(fresh[:, None], part[0], 0.0)
        if fresh.size == 1:
            return scan_samples(some, sums, _first((c, part[1])), _work(like))
        return add(sums, c, jax.vmap(jax.vmap(function))(part[1])), None

    work = coefficients.shape[1] * _work(like)
    return scan_samples(blocks, zero, (coefficients, samples), work)[0]


def squared_norms(function: Callable[[Samples], Pytree], samples: Samples) -> Array:
    """||f_n||^2 `[B, N]` over samples `[B, N]`, over all numbers of a pytree f."""
    work = _work(_like(function, samples))

    def norm(sample: Samples) -> Array:
        squares = [jnp.square(leaf) for leaf in jax.tree.leaves(function(sample))]
        if len({x.shape for x in squares}) == 1:
            return total(sum(squares[1:], squares[0]))
        return sum(map(total, squares), jnp.zeros((), squares[0].dtype))

    n = _count(_first(samples))
    return map_samples(lambda block: map_samples(norm, block, work), samples, n * work)


def total(terms: Array) -> Array:
    """The sum of what the coordinates of one sample add, a scalar.

    A processor adds up a row one number after the other, and several at a time in a product with
    ones, which counts where it is nearly all that a pass does. In float32 products are short: long
    ones lose digits.
    """
    if terms.size < SHORT:
        return jnp.sum(terms)

    def by_products(x: Array) -> Array:
        if x.dtype == jnp.float64:
            return x @ jnp.ones(x.size, x.dtype)
        whole = x.size // SHORT * SHORT
        parts = x[:whole].reshape(-1, SHORT) @ jnp.ones(SHORT, x.dtype)
        return jnp.sum(parts) + jnp.sum(x[whole:])

    return by_device(by_products, jnp.sum, terms.ravel())


def products(function: Callable[..., Array], *rows: Array) -> Array:
    """The sum of `function(*parts)` over parts of the columns of all `rows [m, D]`.

    It multiplies matrices. Parts are `PRODUCT_COLUMNS` columns each: few long rows fill a device
    only so, and long sums lose digits. They are cut before anything is computed of them, never
    copied.
    """
    whole = rows[0].shape[1] // PRODUCT_COLUMNS * PRODUCT_COLUMNS

    def parts(x: Array) -> Array:
        return jnp.swapaxes(x[:, :whole].reshape(x.shape[0], -1, PRODUCT_COLUMNS), 0, 1)

    rest = function(*(x[:, whole:] for x in rows))
    if not whole:
        return rest
    return jnp.sum(jax.vmap(function)(*map(parts, rows)), axis=0) + rest


def in_rounds(
    body: Callable[[Out, Array, Array], Out], start: Out, wanted: Array, work: int
) -> Out:
    """The total of `body(total, indices, part)` over all indices `[P]` that are `wanted`.

    A round has several indices at once, each of `work` numbers; `part` says which of them count.
    Rounds in which none is wanted are left out.
    """
    near, far = (_sizes(wanted.size, work, room) for room in (CACHE_CHUNK, ROOM))
    total: Out = _by_sizes(near, far, partial(_go_round, body), start, wanted)
    return total


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


def precise(function: Callable[..., Out]) -> Callable[..., Out]:
    """`function`, whose products of float32 have all their digits: a GPU's own have three."""

    @wraps(function)
    def called(*args: Pytree) -> Out:
        with jax.default_matmul_precision("highest"):
            return function(*args)

    return called


def by_device(processor: Callable[..., Out], accelerator: Callable[..., Out], *args: Pytree) -> Out:
    """The result of one of two functions that give the same, by where it is computed."""
    found: Out = jax.lax.platform_dependent(*args, cpu=processor, default=accelerator)
    return found


def _by_sizes(
    near: tuple[int, int], far: tuple[int, int], walk: Callable[..., Out], *args: Pytree
) -> Out:
    """`walk(*near, *args)` on a processor, `walk(*far, *args)` on an accelerator."""
    if near == far:
        return walk(*near, *args)
    return by_device(partial(walk, *near), partial(walk, *far), *args)


def _walk(
    body: Body[Kept, Found], m: int, chunks: int, start: Kept, samples: Samples
) -> tuple[Kept, Found]:
    """The scan by `chunks` of `m` samples; if `m` does not divide their number, the last overlaps.

    A chunk is cut out where it is used: `jax.lax.scan` would copy each one first.
    """
    n = _count(samples)
    if chunks == 1:
        return body(start, samples, jnp.ones(n, bool))

    def at(i: Array | int) -> tuple[Samples, Array, Array]:
        first = jnp.minimum(i * m, n - m)
        chunk = jax.tree.map(lambda x: jax.lax.dynamic_slice_in_dim(x, first, m), samples)
        return chunk, first + jnp.arange(m) >= i * m, first

    def step(i: Array, carry: tuple[Kept, Found]) -> tuple[Kept, Found]:
        kept, results = carry
        chunk, fresh, first = at(i)
        kept, found = body(kept, chunk, fresh)
        put = jax.lax.dynamic_update_slice_in_dim
        return kept, jax.tree.map(lambda x, y: put(x, y, first, 0), results, found)

    like = jax.eval_shape(lambda: body(start, *at(0)[:2])[1])
    room = jax.tree.map(lambda x: jnp.zeros((n, *x.shape[1:]), x.dtype), like)
    return jax.lax.fori_loop(0, chunks, step, (start, room))


def _go_round(
    body: Callable[[Out, Array, Array], Out], m: int, rounds: int, start: Out, wanted: Array
) -> Pytree:
    """The total by `rounds` of `m` indices; the last may reach beyond the end, where none is."""
    if rounds == 1:
        return body(start, jnp.arange(wanted.size), wanted)

    def step(i: Array, total: Out) -> Pytree:
        indices = i * m + jnp.arange(m)
        part = wanted.at[indices].get(mode="fill", fill_value=False)
        return jax.lax.cond(jnp.any(part), body, lambda kept, *_: kept, total, indices, part)

    return jax.lax.fori_loop(0, rounds, step, start)


def _count(samples: Samples) -> int:
    return int(jax.tree.leaves(samples)[0].shape[0])


def _numbers(samples: Samples) -> int:
    """How many numbers one sample has."""
    return sum(prod(leaf.shape[1:]) for leaf in jax.tree.leaves(samples))


def _sizes(n: int, numbers: int, room: int) -> tuple[int, int]:
    """How many of `n` things of so many numbers go into one part, and how many parts there are."""
    parts = max(-(-n // max(room // max(numbers, 1), 1)), 1)
    return -(-n // parts), parts


def _first(samples: Samples) -> Pytree:
    return jax.tree.map(lambda x: x[0], samples)


def _like(function: Callable[[Samples], Pytree], samples: Samples) -> Pytree:
    """What `function` gives of one of the samples `[B, N]`, as shapes."""
    return jax.eval_shape(lambda: function(_first(_first(samples))))


def _work(like: Pytree) -> int:
    """How many numbers a score needs beside its sample: a diagonal one has two parts."""
    return sum(int(leaf.size) for leaf in jax.tree.leaves(like)) // 2


def _weighted(c: Array, values: Array) -> Array:
    """sum_n c_n v_n: a product on a processor; an accelerator adds up what it never writes."""

    def added(c: Array, values: Array) -> Array:
        wide = c.reshape(*c.shape, *(1,) * (values.ndim - c.ndim))
        return jnp.sum(wide * values, axis=tuple(range(c.ndim)))

    return by_device(lambda c, values: jnp.tensordot(c, values, c.ndim), added, c, values)

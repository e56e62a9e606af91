"""Moves and judgements by JAX: any method but the default one, whose moves NumPy makes.

Any number of results; each shape is compiled once.

Moves are made by `recoup.engine.move`, as every move is but the small ones of
`recoup.study.moves.uncompiled`.
"""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from recoup.checks import InputError
from recoup.core.archive import Archive, Drawn, from_samples, with_failures
from recoup.core.families.family import Family
from recoup.core.families.trajectory import Trajectory
from recoup.core.judgement import judged_archive
from recoup.core.linalg import in_turns
from recoup.core.mixtures import gained_mixture, mixture_density, own_density
from recoup.core.types import Chosen, Given, Pytree, Rho, Samples
from recoup.core.worth import Seen, probes
from recoup.engine.compilation_cache import kept_compilations
from recoup.engine.composition import Composed, composed
from recoup.engine.methods import Method
from recoup.engine.move import move
from recoup.engine.plain import family_of
from recoup.store.rows import Leaf, Memory
from recoup.store.schema import packed_memory
from recoup.study.moves.memory import CHANGED
from recoup.study.moves.steps import Before, Stepped
from recoup.study.reader.ledger import Ledger, Results, room


def stepped(
    row: Method, discount: float, ledger: Ledger, results: Results, old: int, before: Before
) -> Stepped:
    """The move of all `results`; those after the first `old` are new."""
    dim = ledger.dim
    with kept_compilations(), jax.enable_x64(True):
        method = composed(row, discount)
        placed = _placed(method.family, results, dim)
        if row.way.mover:
            placed = placed._replace(order=results.order[results.proposal])
        own, mixture = _densities(row, method, ledger, results, placed)
        rho = _rho(method.family, before.numbers, dim)
        memory = _unflattened(method.init(rho), before.memory)
        is_new = np.arange(len(results.returns)) >= old
        after, memory, info, _ = jax.device_get(
            _stepper(row, discount)(rho, memory, is_new, results.n, placed, own, mixture)
        )
    numbers = np.asarray(method.family.packed(after), np.float64)
    kept = (
        x[: results.n] if needed and x is not None else np.zeros(0)
        for needed, x in zip(_keeps(row, method), (own, mixture), strict=True)
    )
    return Stepped(numbers, _flattened(memory, before.memory), info, *kept)


def check_memory(row: Method, numbers: np.ndarray, dim: int) -> None:
    """Raises unless a file can hold the memory of the row's update rule."""
    with kept_compilations(), jax.enable_x64(True):
        method = composed(row)
        packed_memory(_flattened(method.init(_rho(method.family, numbers, dim))))


def judged(
    row: Method, ledger: Ledger, results: Results, target: np.ndarray
) -> tuple[Seen, np.ndarray, float, int]:
    """What `results` say of the distribution of a block of numbers."""
    unused = np.zeros(len(results.returns))  # the own proposals' densities
    noise = probes(ledger.dim) if row.space == "parameters" else None
    with kept_compilations(), jax.enable_x64(True):
        family = family_of(row)
        placed = _placed(family, results, ledger.dim)
        mixture = _extended_mixture(row, results, placed, ledger.mixture)
        look = _judge(row.space, row.family, row.mirrored, row.stated)
        rho = _rho(family, target, ledger.dim)
        return jax.device_get(look(rho, results.n, noise, placed, unused, mixture))


def _keeps(row: Method, method: Composed) -> tuple[bool, bool]:
    """Whether densities under own proposals, and under their mixture, are kept between moves."""
    in_parameters = row.space == "parameters"  # trajectories need their proposals anyway
    return method.own and in_parameters, method.mixture


def _densities(
    row: Method, method: Composed, ledger: Ledger, results: Results, placed: "_Placed"
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """What the estimator needs beside the samples; None is computed there, from the proposals."""
    needs_own, needs_mixture = _keeps(row, method)
    own: np.ndarray | None = np.zeros(len(results.returns))
    if needs_own:
        own = _extended_own(row, results, placed, ledger.own)
    elif row.space == "actions":
        own = None
    if not needs_mixture:
        return own, None
    return own, _extended_mixture(row, results, placed, ledger.mixture)


def _extended_own(
    row: Method, results: Results, placed: "_Placed", before: np.ndarray
) -> np.ndarray:
    """Densities under the own proposals `[n]`; those `before` are known."""
    padded, rows = _padded(results, before)
    new = _pytree(tuple(x[rows] for x in results.samples))
    density = _functions(row.space, row.family).own
    found = density(placed.proposals, results.proposal[rows], placed.reference, new)
    padded[len(before) : results.n] = np.asarray(found)[: results.n - len(before)]
    return padded


def _extended_mixture(
    row: Method, results: Results, placed: "_Placed", before: np.ndarray
) -> np.ndarray:
    """Densities under the mixture `[n]`; those `before` are known, but for what it has gained.

    Only what is new is computed: each new proposal on the old results, every proposal on the new.
    """
    old, slots = len(before), len(results.blocks)
    drawn_by = results.proposal[: results.n]  # also what failed was drawn
    counts = np.bincount(drawn_by, minlength=slots)
    gained = np.bincount(drawn_by[old:], minlength=slots)
    drew = np.flatnonzero(gained).astype(np.int32)
    drew = np.concatenate([drew, np.full(_power(len(drew)) - len(drew), -1, np.int32)])
    padded, rows = _padded(results, before)
    _, gain, whole = _functions(row.space, row.family)
    proposals, reference = placed.proposals, placed.reference
    if old:
        padded = np.array(gain(proposals, gained, drew, reference, placed.samples, padded))
    new = _pytree(tuple(x[rows] for x in results.samples))
    found = np.asarray(whole(proposals, counts, reference, new))
    padded[old : results.n] = found[: results.n - old]
    return padded


def _padded(results: Results, before: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What is known in the room of all results, and the rows that are new, with rows to spare."""
    old, space = len(before), len(results.returns)
    rows = np.arange(old, old + min(room(results.n - old), space))
    return np.concatenate([before, np.zeros(space - old)]), np.minimum(rows, space - 1)


class _Placed(NamedTuple):
    """Results where JAX can use them, without a copy where they lie well."""

    samples: Samples
    returns: Pytree
    drawn_by: Pytree
    proposals: Rho  # rho, leading axis [P]
    reference: Rho  # rho that densities are relative to
    order: Array | None = None  # in which what drew them was made, for a mover


def _placed(family: Family, results: Results, dim: int) -> _Placed:
    rhos = (_rho(family, block, dim) for block in (results.blocks, results.reference))
    samples = _pytree(jax.device_put(results.samples))
    return _Placed(samples, results.returns, results.proposal, *rhos)


def _rho(family: Family, numbers: np.ndarray, dim: int) -> Rho:
    return jax.device_put(family.unpacked(numbers, dim))


def _pytree(samples: tuple[Array, ...]) -> Samples:
    return samples[0] if len(samples) == 1 else Trajectory(*samples)


class _Functions(NamedTuple):
    """Densities, compiled."""

    own: Callable[..., Array]
    gained: Callable[..., Array]
    mixture: Callable[..., Array]


@lru_cache(maxsize=8)
def _functions(space: str, family: Chosen) -> _Functions:
    drawn_from = family_of(Method("densities", space=space, family=family))
    each = (own_density, gained_mixture, mixture_density)
    return _Functions(*(jax.jit(in_turns(partial(function, drawn_from))) for function in each))


@lru_cache(maxsize=64)
def _stepper(row: Method, discount: float) -> Callable[..., Pytree]:
    method = composed(row, discount)

    @jax.jit
    @in_turns
    def step(
        rho: Rho, memory: Pytree, new: Array, n: Array, placed: _Placed, *kept: Pytree
    ) -> Pytree:
        archive = _archive(method.family, n, placed, *kept)
        new = new & jnp.isfinite(placed.returns)
        return move(method, archive, rho, memory, placed.samples, new)

    return step


@lru_cache(maxsize=8)
def _judge(
    space: str, family: Chosen, mirrored: bool, failure: str | float
) -> Callable[..., Pytree]:
    row = Method("judge", space=space, family=family, mirrored=mirrored)
    drawn_from = family_of(row)

    @jax.jit
    @in_turns
    def look(rho: Rho, n: Array, noise: Given, placed: _Placed, *kept: Pytree) -> Pytree:
        archive = with_failures(_archive(drawn_from, n, placed, *kept), failure)
        return judged_archive(drawn_from, rho, archive, row.draw, noise)

    return look


def _archive(
    family: Family, n: Array, placed: _Placed, own: Array | None, mixture: Array | None
) -> Archive:
    """The first `n` of the results that were placed, as an archive."""
    samples, returns, drawn_by, proposals, reference, order = placed
    told = jnp.arange(returns.size) < n
    drawn = Drawn(samples, returns, told, proposals, drawn_by, reference)
    return from_samples(family, drawn, keep="own", own=own, mixture=mixture, order=order)


def _power(n: int) -> int:
    return 1 << (max(n, 1) - 1).bit_length()


def _flattened(memory: Pytree, before: Memory = None) -> Memory:
    """A memory as a file holds it: its arrays by their places in the structure, as `before`."""
    leaves = jax.tree_util.tree_leaves_with_path(memory)
    for path, x in leaves:
        if jnp.issubdtype(jnp.result_type(x), jax.dtypes.extended):
            where = jax.tree_util.keystr(path)
            raise InputError(
                f"the memory of the update rule holds a random key ({where}), which a file cannot: "
                "use `jax.random.key_data` of it."
            )
    found = tuple(Leaf(jax.tree_util.keystr(path), np.asarray(x)) for path, x in leaves) or None
    if before is not None and _structure(found or ()) != _structure(before):
        raise InputError(CHANGED)
    return found


def _structure(memory: tuple[Leaf, ...]) -> list[tuple[object, ...]]:
    return [(leaf.path, leaf.value.shape) for leaf in memory]


def _unflattened(first: Pytree, stored: Memory) -> Pytree:
    """A stored memory in the structure of `first`, which it is before any move."""
    if stored is None:
        return first
    want = _flattened(first) or ()
    if _structure(want) != _structure(stored):
        raise InputError(
            "the memory of the update rule has another structure than the one that was stored: go "
            "on with the versions that the study was made with, or fork it with an update given "
            "anew, which begins without a memory."
        )
    leaves = [jnp.asarray(leaf.value) for leaf in stored]
    return jax.tree.unflatten(jax.tree.structure(first), leaves)

"""`recoup.estimate` by JAX: large or traced arrays, parts of one's own."""

from collections.abc import Callable
from contextlib import nullcontext
from functools import lru_cache, partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from recoup.checks import is_traced
from recoup.core.archive import Archive, Drawn, from_samples, with_failures
from recoup.core.arrays import namespace
from recoup.core.families.family import Family
from recoup.core.judgement import judged_archive
from recoup.core.linalg import in_turns
from recoup.core.objective import Estimate
from recoup.core.sweeps import precise
from recoup.core.types import Pytree
from recoup.core.worth import Seen, probes
from recoup.engine import plain
from recoup.engine.composition import composed
from recoup.engine.methods import Method
from recoup.engine.plain import Data

SIZE_BITS = 4  # binary ones, to which sizes are rounded up before anything is compiled
EACH = ("leave-one-out", "earlier", "split")  # baselines of one number a sample


def computed(row: Method, data: Data, double: bool) -> Estimate:
    """What the samples say of the target, traced if any array of the data is.

    Computed in float64 if `double`.
    """
    if is_traced(*jax.tree.leaves(data)):
        known = double and jnp.result_type(float) == jnp.float64
        return _program(row)(_in_one_type(data, known))
    n, each = len(data.returns), row.baseline in EACH
    with jax.enable_x64(True) if double else nullcontext():
        e = jax.device_get(_compiled(row)(_in_one_type(_roomy(row, data), double)))
    return e._replace(weights=e.weights[:n], baseline=e.baseline[:n] if each else e.baseline)


def judged(row: Method, data: Data) -> tuple[Seen, float]:
    """What the samples say of the target, and which share of it they have not seen."""
    with jax.enable_x64(True):
        noise = probes(np.shape(data.theta)[1])
        whole = _in_one_type(_roomy(row, data), True)
        seen, _, unseen, _ = jax.device_get(_judge(row)(whole, noise))
    return seen, float(unseen)


def _roomy(row: Method, data: Data) -> Data:
    """Data with room for more samples and proposals, so that few sizes are compiled.

    A size of at most `SIZE_BITS` binary digits, and zeros after them: an eighth more at the most.
    Nothing was told of what fills up, and no proposal that does has drawn anything. A part of the
    user's need not know that: with one, the sizes are those of the samples.
    """
    if not plain.has_parts(row):
        return data
    n, proposals = len(data.returns), len(jax.tree.leaves(data.proposals)[0])
    told = np.ones(n, bool) if data.told is None else np.asarray(data.told)
    more, further = (_rounded(size) - size for size in (n, proposals))
    last = partial(_repeated, times=more)
    return data._replace(
        theta=last(data.theta),
        returns=last(data.returns),
        drawn_by=last(data.drawn_by),
        proposals=jax.tree.map(lambda x: _repeated(x, further), data.proposals),
        told=np.concatenate([told, np.zeros(more, bool)]),
    )


def _rounded(size: int) -> int:
    step = 1 << max(size.bit_length() - SIZE_BITS, 0)
    return -(-size // step) * step


def _repeated(rows: Array, times: int) -> Array:
    """Rows, the last one so many times more."""
    xp = namespace(rows)
    return xp.concatenate([xp.asarray(rows), xp.repeat(xp.asarray(rows)[-1:], times, axis=0)])


def _program(row: Method) -> Callable[[Data], Estimate]:
    return in_turns(precise(partial(_compute, row)))


@lru_cache(maxsize=256)
def _compiled(row: Method) -> Callable[[Data], Estimate]:
    return jax.jit(_program(row))


@lru_cache(maxsize=64)
def _judge(row: Method) -> Callable[[Data, np.ndarray], tuple[Seen, Array, Array, Array]]:
    family = composed(row).family

    @jax.jit
    @in_turns
    @precise
    def judged(data: Data, noise: Array) -> tuple[Seen, Array, Array, Array]:
        archive = with_failures(_archive(family, data, "running"), row.failure)
        return judged_archive(family, data.target, archive, row.draw, noise)

    return judged


def _archive(family: Family, data: Data, keep: str) -> Archive:
    told = jnp.ones(data.returns.shape, bool) if data.told is None else data.told
    drawn = Drawn(data.theta, data.returns, told, data.proposals, data.drawn_by, data.target)
    return from_samples(family, drawn, keep=keep)


def _compute(row: Method, data: Data) -> Estimate:
    method = composed(row)
    archive = _archive(method.family, data, "running" if method.mixture else "own")
    e = method.estimate(data.target, archive)
    return e._replace(weights=e.weights[0], baseline=_flat(e.baseline))


def _flat(baseline: Pytree) -> Array:
    """A baseline as one array: a scalar, one number a sample, or one a coordinate of rho."""
    leaves = jax.tree.leaves(baseline)
    if len(leaves) > 1:
        return jnp.concatenate([leaf.ravel() for leaf in leaves])
    return leaves[0][0] if leaves[0].ndim == 2 else leaves[0]


def _in_one_type(data: Data, double: bool) -> Data:
    real = jnp.float64 if double else jnp.float32
    index = jnp.asarray(data.drawn_by, jnp.int32)
    told = None if data.told is None else jnp.asarray(data.told, bool)
    rest = jax.tree.map(lambda x: jnp.asarray(x, real), data._replace(drawn_by=None, told=None))
    return rest._replace(drawn_by=index, told=told)

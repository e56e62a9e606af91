"""`recoup.estimate` by JAX: large or traced arrays, parts of one's own."""

from contextlib import nullcontext
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from recoup.checks import is_traced
from recoup.core.archive import Archive, Drawn, from_samples, with_failures
from recoup.core.families.family import Family
from recoup.core.judgement import judged_archive
from recoup.core.objective import Estimate
from recoup.core.sweeps import precise
from recoup.core.worth import probes
from recoup.engine.composition import composed
from recoup.engine.methods import Method


def computed(row: Method, data: Any, double: bool) -> Estimate:
    """What the samples say of the target, traced if any array of the data is.

    The data are those of `recoup.engine.estimate`, computed in float64 if `double`.
    """
    if is_traced(*jax.tree.leaves(data)):
        known = double and jnp.result_type(float) == jnp.float64
        return _compute(row, _in_one_type(data, known))
    with jax.enable_x64(True) if double else nullcontext():
        return jax.device_get(_compiled(row)(_in_one_type(data, double)))


def judged(row: Method, data: Any) -> tuple[Any, float]:
    """What the samples say of the target, and which share of it they have not seen."""
    with jax.enable_x64(True):
        noise = probes(np.shape(data.theta)[1])
        seen, _, unseen, _ = jax.device_get(_judge(row)(_in_one_type(data, True), noise))
    return seen, float(unseen)


@lru_cache(maxsize=256)
def _compiled(row: Method) -> Any:
    return jax.jit(partial(_compute, row))


@lru_cache(maxsize=64)
def _judge(row: Method) -> Any:
    family = composed(row).family

    @jax.jit
    @precise
    def judged(data: Any, noise: Any) -> Any:
        archive = with_failures(_archive(family, data, "running"), row.failure)
        return judged_archive(family, data.target, archive, row.draw, noise)

    return judged


def _archive(family: Family, data: Any, keep: str) -> Archive:
    told = jnp.ones(data.returns.shape, bool) if data.told is None else data.told
    drawn = Drawn(data.theta, data.returns, told, data.proposals, data.drawn_by, data.target)
    return from_samples(family, drawn, keep=keep)


@precise
def _compute(row: Method, data: Any) -> Estimate:
    method = composed(row)
    archive = _archive(method.family, data, "running" if method.mixture else "own")
    e = method.estimate(data.target, archive)
    return e._replace(weights=e.weights[0], baseline=_flat(e.baseline))


def _flat(baseline: Any) -> Array:
    """A baseline as one array: a scalar, one number a sample, or one a coordinate of rho."""
    leaves = jax.tree.leaves(baseline)
    if len(leaves) > 1:
        return jnp.concatenate([leaf.ravel() for leaf in leaves])
    return leaves[0][0] if leaves[0].ndim == 2 else leaves[0]


def _in_one_type(data: Any, double: bool) -> Any:
    real = jnp.float64 if double else jnp.float32
    index = jnp.asarray(data.drawn_by, jnp.int32)
    told = None if data.told is None else jnp.asarray(data.told, bool)
    rest = jax.tree.map(lambda x: jnp.asarray(x, real), data._replace(drawn_by=None, told=None))
    return rest._replace(drawn_by=index, told=told)

"""A family of a user's as the rule by NumPy asks for one, and its rho as a mover asks it.

Its functions are written with `jax.numpy`. For the rule they are compiled, in double precision, for
few numbers of samples, and what they give comes back as arrays of NumPy, of many samples at once.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import jax
import numpy as np

from recoup.checks import InputError
from recoup.core.families.family import Family, Moving, moving
from recoup.core.linalg import in_turns
from recoup.core.types import Array, Namespace, Pytree, Rho
from recoup.engine.compilation_cache import kept_compilations

LEAST_COMPILED = 64  # samples that are compiled for; above, powers of two
ASKED = tuple(name for name in Moving._fields if name != "shape")  # of a rho, by a mover


class Lacking(InputError, AttributeError):
    """What a mover asks a rho for, and its family has not."""


@lru_cache(maxsize=8)
def by_numpy(family: Family) -> Family:
    """The family, what a rule asks of it as functions of NumPy's arrays; `log_ratio` of many."""
    asked = moving(family)

    def ratios(rho: Rho, reference: Rho, theta: Array) -> Array:
        return jax.vmap(family.log_ratio, (None, None, 0))(rho, reference, theta)

    return family._replace(
        packed=_in_numpy(family.packed),
        unpacked=_in_numpy(family.unpacked),
        divergence=_of_rows(family.divergence, 2),
        log_ratio=_of_rows(ratios, 2),
        ratio_of_noise=None,  # a user's knows one noise at a time, if any
        renyi2=family.renyi2 and _compiled(family.renyi2),
        whitened=_of_rows(asked.whitened, 1),
        log_spread=_compiled(asked.log_spread),
        stretched=_compiled(asked.stretched),
    )


def _in_numpy(function: Callable[..., Pytree]) -> Callable[..., Pytree]:
    """What a function gives in double precision, as arrays of NumPy."""

    def called(*given: Pytree) -> Pytree:
        with kept_compilations(), jax.enable_x64(True):
            return jax.tree.map(np.asarray, jax.device_get(function(*given)))

    return called


def _compiled(function: Callable[..., Pytree]) -> Callable[..., Pytree]:
    return _in_numpy(jax.jit(in_turns(function)))


def _of_rows(function: Callable[..., Pytree], first: int) -> Callable[..., Pytree]:
    """A function, compiled, of arrays `[n]` that follow its `first` arguments.

    Rows to spare, of zeros, make few shapes of many; they are cut off where as many come back.
    """
    compiled = _compiled(function)

    def called(*given: Pytree) -> Pytree:
        rhos, arrays = given[:first], given[first:]
        n = len(arrays[0])
        spare = max(LEAST_COMPILED, 1 << max(n - 1, 0).bit_length()) - n
        padded = (np.concatenate([x, np.zeros((spare, *x.shape[1:]), x.dtype)]) for x in arrays)
        found = compiled(*rhos, *padded)
        return found[:n] if np.ndim(found) else found

    return called


def answering(family: Family, rho: Rho) -> Rho:
    """A rho of the user's that a mover can ask as it asks ours; still a record of its own kind."""
    kind: Any = type(rho)  # hashable, which mypy does not see of a class
    return _answering(family, kind)(*rho)


@lru_cache(maxsize=64)
def _answering(family: Family, kind: type[object]) -> type[Rho]:
    """The record `kind` with the methods that ours have, by functions of the family.

    What the family has not is the record's own; where that has it neither, asking says so.
    """
    lacking = [name for name in ASKED if getattr(family, name) is None]
    own = {name: _method(family, kind, name) for name in ASKED if name not in lacking}
    none = {name: _none(family, name) for name in lacking if not hasattr(kind, name)}
    return type(kind.__name__, (kind,), {"__slots__": (), **own, **none})


def _method(family: Family, kind: type[Rho], name: str) -> Callable[..., Pytree]:
    function = getattr(family, name)

    def asked(self: Rho, xp: Namespace, *given: Pytree) -> Pytree:
        called = _in_numpy(function) if xp is np else function
        found = called(kind(*self), *_in_shape(xp, family, self, *given))
        return type(self)(*found) if isinstance(found, kind) else found

    return asked


def _in_shape(xp: Namespace, family: Family, rho: Rho, *given: Pytree) -> tuple[Pytree, ...]:
    """What is given to a function of the family, as the rule gives it: a mover may give less.

    A stretch or covariance `[D]` in the family's shape, a number as the least spread `[D]`.
    """
    if len(given) < 2:
        return given
    delta, matrix, *least = given
    if family.shape is not None and np.ndim(matrix) == 1:
        matrix = family.shape.along(xp, matrix)
    return delta, matrix, *(one + 0 * rho.mean for one in least)


def _none(family: Family, name: str) -> property:
    def asked(self: Rho) -> Pytree:
        raise Lacking(
            f"this mover asks a rho for `{name}`, which its family {family.name!r} has not: give "
            f"`{name}` to `recoup.family`, or write the step without. Nothing was moved, and every "
            "result is kept."
        )

    return property(asked)

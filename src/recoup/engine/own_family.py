"""A family of a user's as the rule by NumPy asks for one: of NumPy's arrays, many samples at once.

Its functions are written with `jax.numpy`. They are compiled, in double precision, for few numbers
of samples, and what they give comes back as arrays of NumPy.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import jax
import numpy as np

from recoup.core.families.family import Family, moving
from recoup.engine.compilation_cache import kept_compilations

LEAST = 64  # samples that are compiled for; above, powers of two


@lru_cache(maxsize=8)
def by_numpy(family: Family) -> Family:
    """The family, what a rule asks of it as functions of NumPy's arrays; `log_ratio` of many."""
    asked = moving(family)

    def ratios(rho: Any, reference: Any, theta: Any) -> Any:
        return jax.vmap(family.log_ratio, (None, None, 0))(rho, reference, theta)

    return family._replace(
        packed=_in_numpy(family.packed),
        unpacked=_in_numpy(family.unpacked),
        divergence=_of_rows(family.divergence, 2),
        log_ratio=_of_rows(ratios, 2),
        ratio_of_noise=None,  # a user's knows one noise at a time, if any
        renyi2=family.renyi2 and _in_numpy(jax.jit(family.renyi2)),
        whitened=_of_rows(asked.whitened, 1),
        log_spread=_in_numpy(jax.jit(asked.log_spread)),
        stretched=_in_numpy(jax.jit(asked.stretched)),
    )


def _in_numpy(function: Callable[..., Any]) -> Callable[..., Any]:
    """What a function gives in double precision, as arrays of NumPy."""

    def called(*given: Any) -> Any:
        with kept_compilations(), jax.enable_x64(True):
            return jax.tree.map(np.asarray, jax.device_get(function(*given)))

    return called


def _of_rows(function: Callable[..., Any], first: int) -> Callable[..., Any]:
    """The same, compiled, of arrays `[n]` that follow the `first` arguments.

    Rows to spare, of zeros, make few shapes of many; they are cut off where as many come back.
    """
    compiled = _in_numpy(jax.jit(function))

    def called(*given: Any) -> Any:
        rhos, arrays = given[:first], given[first:]
        n = len(arrays[0])
        spare = max(LEAST, 1 << max(n - 1, 0).bit_length()) - n
        padded = (np.concatenate([x, np.zeros((spare, *x.shape[1:]), x.dtype)]) for x in arrays)
        found = compiled(*rhos, *padded)
        return found[:n] if np.ndim(found) else found

    return called

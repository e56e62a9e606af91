"""When a kernel of Pallas takes the place of what XLA makes, and how it is compiled."""

from collections.abc import Callable
from typing import TypeVar

import jax

from recoup.core.types import Plain, Pytree

Out = TypeVar("Out")


def on_cuda() -> bool:
    """Whether programs are compiled for a CUDA GPU unless something else is said."""
    return jax.default_backend() == "gpu"


def chosen(kernel: Callable[..., Out], other: Callable[..., Out], *args: Pytree) -> Out:
    """What `kernel` gives where a program is compiled for CUDA, and `other` elsewhere: the same."""
    found: Out = jax.lax.platform_dependent(*args, cuda=kernel, default=other)
    return found


def how(interpret: bool) -> Plain:
    """How Pallas is to compile a kernel of ours, or to interpret it."""
    from jax.experimental.pallas import triton

    if interpret:
        return {"interpret": True}
    return {"compiler_params": triton.CompilerParams(num_warps=4, num_stages=2)}

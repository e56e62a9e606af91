"""When a kernel of Pallas takes the place of what XLA makes, and how it is compiled."""

from collections.abc import Callable
from typing import Any

import jax


def on_cuda() -> bool:
    """Whether programs are compiled for a CUDA GPU unless something else is said."""
    return jax.default_backend() == "gpu"


def chosen(kernel: Callable[..., Any], other: Callable[..., Any], *args: Any) -> Any:
    """What `kernel` gives where a program is compiled for CUDA, and `other` elsewhere: the same."""
    return jax.lax.platform_dependent(*args, cuda=kernel, default=other)


def how(interpret: bool) -> dict[str, Any]:
    """How Pallas is to compile a kernel of ours, or to interpret it."""
    from jax.experimental.pallas import triton

    if interpret:
        return {"interpret": True}
    return {"compiler_params": triton.CompilerParams(num_warps=4, num_stages=2)}

"""Policies: the linear one that parameter-space methods draw, for JAX and for NumPy."""

from typing import Any


def linear(theta: Any, features: Any) -> Any:
    """The action `[A]` of the linear policy at features `[F]`; theta `[F A]`, row by row.

    Implements: zhao2013 eq. 1 a = theta^T phi(s), one column of theta an action.
    """
    return features @ theta.reshape(features.shape[-1], -1)

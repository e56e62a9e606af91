"""Arrays in a few words, for what shows a record: never all of their numbers."""

import numpy as np

from recoup.checks import is_traced
from recoup.core.types import Array

SHOWN_NUMBERS = 6  # of a vector, one by one


def in_short(x: Array) -> str:
    """A number with four digits, the first of a vector, and of more axes or traced the shape.

    Of a record each of its arrays.
    """
    if isinstance(x, tuple):
        return ", ".join(map(in_short, x))
    if is_traced(x) or np.ndim(x) > 1:
        return f"an array {list(np.shape(x))}"
    if np.ndim(x) == 0:
        return f"{float(x):.4g}"
    numbers = [f"{float(value):.4g}" for value in x[:SHOWN_NUMBERS]]
    left = len(x) - len(numbers)
    return f"[{', '.join(numbers)}{f', ... {left} more' if left else ''}]"


def with_error(value: Array, stderr: Array) -> str:
    """A value with its standard error; the value alone where the error is not a number."""
    if is_traced(value, stderr):
        return "traced"
    error = float(stderr)
    return in_short(value) if np.isnan(error) else f"{in_short(value)} ± {error:.2g}"


def count_for(samples: Array, ess: Array) -> str:
    """How many samples there are, and how many fresh ones they are worth."""
    if is_traced(samples, ess):
        return "samples that are traced"
    return f"{int(samples)} samples that count for {float(ess):.1f}"

"""What a failed rollout earns, in a word or a number. Needs no JAX."""

import numpy as np

from recoup.checks import InputError, check_choice, check_finite, check_numbers
from recoup.core.types import Given

CENSORED = "censored"  # nothing that is known: it is left out
WORST = "worst"  # the worst return that is kept
AVOID = "avoid"  # a bad return to a rule that can avoid it, nothing in what is said of returns


def check_failure(value: Given, avoids: bool) -> str | float:
    """A word, or a finite number; whether a method `avoids` failures depends on its way."""
    words = (AVOID, CENSORED, WORST) if avoids else (CENSORED, WORST)
    if isinstance(value, str):
        return check_choice("failure", value, words)
    check_numbers("failure", value)
    check_finite("failure", value)
    if np.ndim(value):
        raise InputError(f"failure must be {', '.join(map(repr, words))} or one number.")
    return float(value)

"""The constants of the method `recoup`: each with its unit, and where its value comes from.

Those that a user may set (`share`, `prior`, `most`, `shrink`) are settings of the method's row.
What half and twice of each does, `python -m benchmarks.tuning` measures. Numbers in brackets are
those of the equations of docs/recoup.md.
"""

from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

Value = TypeVar("Value")

THEORY = "theory"  # a known formula, or a level of significance
CHOSEN = "chosen"  # a round number that was never varied
COST = "cost"  # bounds time and memory
SUITE = "tuned on the comparison suite"  # functions, linear-quadratic control, locomotion
CONTROL = "tuned on tasks with failures"
RUGGED = "tuned on multi-modal functions and locomotion"


def _of(value: Value, unit: str, origin: str) -> Value:
    return field(default=value, metadata={"unit": unit, "origin": origin})


@dataclass(frozen=True)
class Tuning:
    """One value for all tasks."""

    # -- what is looked at --
    modelled_most: int = _of(1000, "samples of the regression", COST)
    modelled_numbers: int = _of(5 * 10**7, "numbers that these have in all", COST)
    weighed_batches: int = _of(9, "batches that the weights look at", SUITE)
    far: float = _of(float(np.log(30.0)), "Renyi divergence from which none is weighed (7)", SUITE)

    # -- the regression: its prior and its search (3) --
    noise_prior: float = _of(0.1, "variance of the noise, in the middle of its prior", SUITE)
    bowl_prior: float = _of(1.0, "variance of the bowl, in the middle of its prior", SUITE)
    prior_spreads: tuple[float, ...] = _of((1.0, 3.0, 1.5), "of log length, noise, bowl", SUITE)
    strides: tuple[float, ...] = _of((1.5, 2.0, 2.0), "factors tried, of the same", CHOSEN)
    early: int = _of(50, "samples up to which all three are tried in every update", COST)
    evident: float = _of(2.0, "log-evidence from which returns are more than noise", THEORY)
    outlier: float = _of(6.0, "times the best tenth's distance, below which returns are cut", SUITE)

    # -- its step (5, 6) --
    radius: float = _of(0.5, "of the trust region, over sqrt(D + 3)", SUITE)
    paces: tuple[float, ...] = _of(
        (0.125, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0), "times that, of steps that are looked at", SUITE
    )
    lower: float = _of(1.0, "standard errors below which a rise is none", SUITE)
    bend: float = _of(0.3, "log spread in one update, at most", SUITE)

    # -- widening --
    unbent: float = _of(1.5, "standard errors within which curvature is none", SUITE)
    uphill: float = _of(1.0, "standard errors of the rise from which it widens", SUITE)
    wider: float = _of(0.15, "log spread over the noise's share, for each reason", SUITE)
    widest: float = _of(7.0, "log spread over the start's, up to which it does", SUITE)
    sure: float = _of(3.0, "standard errors of the rise from which the top is far", SUITE)
    straight: float = _of(0.25, "of the rise that curvature takes, below which it is", SUITE)
    stride_far: float = _of(0.3, "log spread that it then widens by", SUITE)
    grows: float = _of(0.01, "log spread of every axis from which it is said to widen", CHOSEN)
    wider_flat: float = _of(0.2, "log spread, as long as all returns are equal", SUITE)

    # -- the weights (8, 9) --
    ranked: float = _of(0.2, "least share of rank utilities", SUITE)
    stride: float = _of(0.85, "natural gradients of the mean, without any signal", SUITE)
    calm: float = _of(0.2, "share of the newest batch in the average gradient", SUITE)
    reused: float = _of(0.3, "power of the effective sample size that the step grows by", SUITE)
    eager: float = _of(4.0, "how much faster the spread moves where all returns tie", SUITE)
    turn: float = _of(0.5, "log spread in one update, at most", SUITE)

    # -- noise, or only rugged --
    unexplained: float = _of(2 / 3, "of the variance, from which candidates are repeated", RUGGED)
    pairs: int = _of(3, "pairs after which none is, unless steps are bold", RUGGED)
    again: int = _of(3, "then one batch in so many repeats a candidate", RUGGED)
    remembered: int = _of(6, "pairs that the noise rests on, about", RUGGED)
    bold_kl: float = _of(1.0, "divergence of the bold step from the weights (7)", RUGGED)
    bold_turn: float = _of(0.5, "log spread in one bold step, at most", RUGGED)

    # -- failures --
    bad: float = _of(0.1, "of returns lie below what a chance failure is worth", CONTROL)
    doubt: float = _of(2.0, "times what chance makes of a difference: none up to that", THEORY)


TUNED = Tuning()

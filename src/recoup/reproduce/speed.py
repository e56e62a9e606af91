"""What "fast" and "slowly" mean here: two things, and each has a name of its own."""

from collections.abc import Sequence

import numpy as np

from recoup.reproduce.claims import Contrast, above, contrast

SHARE = 0.9  # of the gain
AHEAD = "Ahead early: above them after a third of the iterations."
BEHIND = "Slowly: below iw-pgpe-ob after a third of the iterations."
CONVERGED = f"Converges early: {SHARE:.0%} of the gain within the first half of the iterations."


def gain(curves: dict[str, np.ndarray], method: str, start: int = 0, end: int = -1) -> np.ndarray:
    """By how much each run has improved from one test to another `[R]`; curves are `[R, C]`."""
    return curves[method][:, end] - curves[method][:, start]


def gains_half(curves: dict[str, np.ndarray], method: str, best: str) -> Contrast:
    """The contrast of what a method gains and half of what the best one gains."""
    more = gain(curves, method) - 0.5 * gain(curves, best)
    return contrast(f"gain of {method} minus half the gain of {best}", more)


def after(share: float, iterations: Sequence[int] | np.ndarray) -> int:
    """The index of the test that is nearest to a share of all iterations `[C]`."""
    iterations = np.asarray(iterations)
    return int(np.abs(iterations - share * iterations[-1]).argmin())


def ahead_early(
    curves: dict[str, np.ndarray],
    iterations: Sequence[int] | np.ndarray,
    best: str,
    others: Sequence[str],
) -> list[Contrast]:
    """Contrasts of `[R, C]` expected returns after a third of the iterations `[C]`."""
    third = after(1 / 3, iterations)
    early = {method: curves[method][:, third] for method in (best, *others)}
    what = f"expected return after {iterations[third]} of {iterations[-1]} iterations"
    return above(early, best, others, what)


def converges_early(curves: np.ndarray, iterations: Sequence[int], method: str) -> Contrast:
    """Nine tenths of the gain within half of the iterations, from `[R, C]` expected returns."""
    half = after(1 / 2, iterations)
    gain, early = (curves[:, end] - curves[:, 0] for end in (-1, half))
    what = f"gain of {method} within {iterations[half]} iterations, minus {SHARE} of all its gain"
    return contrast(what, early - SHARE * gain)

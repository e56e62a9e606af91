"""What the rule of the method `recoup` is set to, looks at, remembers and notes."""

from typing import NamedTuple

import numpy as np

from recoup.core.arrays import Array
from recoup.core.families.shapes import Shape
from recoup.core.rules import model as models
from recoup.core.rules.failure_worth import ByOutcome, dependence, worth_of_failing
from recoup.core.rules.rugged import Pairs, no_pairs
from recoup.core.rules.tuning import TUNED
from recoup.core.rules.weighted import Signal
from recoup.core.types import Namespace


class Rule(NamedTuple):
    """The settings of the rule."""

    shape: Shape  # of what the distribution's spread may become
    share: float | None = None  # of the regression; 1: it alone, 0: the weights alone; None: as
    # far as it knows the slope
    prior: float = 1.0  # squared length of bumps that is expected, over the number of dimensions
    widens: bool = True  # whether the regression may widen the spread
    pulled: bool = False  # whether its bowl pulls the mean as if the slope were known
    most: float = 0.7  # of the spread's step that is the regression's, unless it widens
    shrink: float = 0.25  # how much of the mean step's variance the weights' log spread loses
    repeats: bool = True  # whether candidates are tried twice, and steps may be bold
    most_std: float | None = None  # standard deviation up to which it widens; None: by the start's
    avoids: bool = False  # whether what failed stands for a bad return; else it is left out
    context: bool = False  # whether what contexts explain is taken off of returns, where they are
    # told (`recoup.core.plain.context`)

    @property
    def curious(self) -> bool:
        """Whether candidates are tried twice: a share that is given is of two steps, not three."""
        return self.repeats and self.share is None


class Window(NamedTuple):
    """Samples that the rule looks at, in any order, in the coordinates of what moves."""

    z: Array  # [n, D]
    returns: Array  # [n], zero where not valid
    valid: Array  # [n] returns that are known
    fresh: Array  # [n] of the batch that makes the move
    modelled: Array  # [n] those that the regression looks at
    recent: Array  # [n] those of the last batches, which the weights may look at
    log_weights: Array  # [n] minus infinity where they do not
    failed: Array | None = None  # [n] valid ones that stand for a bad return; None: there are none


class Memory(NamedTuple):
    """What the rule knows from move to move, beside the samples."""

    hyper: Array  # [3] logarithms of squared length, noise and bowl
    updates: Array
    evident: Array
    best: Array  # return ever seen
    worst: Array
    signal: Signal
    start: Array  # [D] log spread at the start
    pairs: Pairs


class Notes(NamedTuple):
    """Why the step was as long as it was."""

    share: Array  # of the regression in this step
    bounded: Array  # whether its trust region ended its step
    widened: Array  # whether it widened the spread
    flat: Array  # whether all fresh returns were equal, and the spread grew for that
    noise: Array  # share of the variance of returns that the model calls noise
    signal: Array  # share of the fresh batches' gradients that is no noise
    evident: Array  # whether returns are known to be more than noise
    length: Array  # of the mean's step, in standard deviations
    spread: Array  # mean log factor of the spread
    gain: Array  # of the regression's own step, as the model expects it, in returns
    gain_stderr: Array
    modelled: Array  # samples that the model was fitted to
    old: Array  # share of the weight on samples of earlier batches
    bold: Array  # share of this step that is fitted to the best samples
    pairs: Array  # candidates that were tried twice, so far
    repeat: Array  # whether the next batch tries one twice
    context: Array | None = None  # share of the variance of returns that contexts explain; None:
    # nothing is told of them


def first_memory(xp: Namespace, rule: Rule, log_spread: Array) -> Memory:
    """Before any move of a distribution with `log_spread [D]`."""
    dim, dtype = log_spread.shape[0], log_spread.dtype
    return Memory(
        hyper=models.prior_of(xp, dim, rule.prior, dtype),
        updates=xp.asarray(0, dtype=np.int32),
        evident=xp.asarray(False),
        best=xp.asarray(-np.inf, dtype=dtype),
        worst=xp.asarray(np.inf, dtype=dtype),
        signal=Signal(xp.zeros(dim, dtype=dtype), xp.zeros((), dtype=dtype)),
        start=log_spread,
        pairs=no_pairs(xp, dtype),
    )


def narrowest(xp: Namespace, rule: Rule, memory: Memory) -> Array:
    """The least spread `[D]` that a move may end with."""
    return rule.shape.narrowest * xp.exp(memory.start)


class WindowSizes(NamedTuple):
    """How many of the newest samples the two halves look at."""

    modelled: int
    recent: int


def reach_of(dim: int, batch: int, window: int | None) -> WindowSizes:
    """By the number of dimensions and the size of a batch; a `window` of batches cuts both."""
    most = min(TUNED.modelled_most, max(TUNED.modelled_numbers // dim, 2 * batch))
    modelled = min(max(100 + 2 * dim, 2 * batch), most)
    if window is None:
        return WindowSizes(modelled, TUNED.weighed_batches * batch)
    return WindowSizes(min(modelled, window * batch), min(TUNED.weighed_batches, window) * batch)


def valued(xp: Namespace, window: Window, worst: Array) -> Window:
    """The window with the return that its failed samples stand for; `worst` is the lowest ever.

    They are left out where failing is not seen to depend on theta, unless most have failed.
    """
    if window.failed is None:
        return window
    part = window.modelled & window.valid
    known = ByOutcome(window.z, window.returns, part & ~window.failed, part & window.failed)
    share = dependence(xp, known)
    worth = worth_of_failing(xp, known, worst, share)
    counts = ~window.failed | (share > 0) | (xp.sum(known.failed) >= xp.sum(known.succeeded))
    return window._replace(
        returns=xp.where(window.failed, worth, window.returns),
        valid=window.valid & counts,
        recent=window.recent & counts,
        log_weights=xp.where(counts, window.log_weights, -xp.inf),
    )

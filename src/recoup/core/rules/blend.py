"""The rule of the method `recoup`: a regression's step and a weighted one, by what each knows.

From the constant baseline to a control variate: what the paper subtracts from every return is one
number; the regression is a function of theta, whose expectation under rho is known exactly, and
the weights keep what a smooth model cannot see.
"""

from typing import Any, NamedTuple

import numpy as np

from recoup.core.arrays import Array, behind, tree_map, when
from recoup.core.families.shapes import Shape
from recoup.core.rules import model as models
from recoup.core.rules.failing import Known, dependence, worth_of_failing
from recoup.core.rules.newton import (
    Newton,
    Outlook,
    Stretch,
    Tenths,
    clipped,
    newton,
    tenths,
    unturned,
)
from recoup.core.rules.rugged import (
    Pairs,
    bold_step,
    boldness,
    curious,
    firsts,
    heard,
    merged,
    no_pairs,
    twins,
)
from recoup.core.rules.weighted import Signal, Weighed, listened, weighed, weighted_step

WIDER = 0.2  # log of how much a batch of equal returns widens the spread by
WIDEST = 7.0  # mean log spread over the start's up to which it does
LARGEST = 1000  # samples that the regression looks at: its cost grows with their cube
NUMBERS = 5 * 10**7  # that they have in all: above D = 50,000 they are fewer, down to two batches
BATCHES = 9  # that the weights look at
FAR = float(np.log(30.0))  # Renyi divergence from which a proposal's samples are not weighed
GROWS = 0.01  # log factor of every axis from which the regression is said to widen
EVIDENT = 2.0  # log-evidence against pure noise from which returns are known to be more


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
    avoids: bool = False  # whether what failed stands for a bad return; else it is left out

    @property
    def curious(self) -> bool:
        """Whether it repeats: a share that is given is of two steps, not three."""
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


def first_memory(xp: Any, rule: Rule, log_spread: Array) -> Memory:
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


def narrowest(xp: Any, rule: Rule, memory: Memory) -> Array:
    """The least spread `[D]` that a move may end with."""
    return rule.shape.narrowest * xp.exp(memory.start)


class Reach(NamedTuple):
    """How many of the newest samples the two halves look at."""

    modelled: int
    recent: int


def reach_of(dim: int, batch: int, window: int | None) -> Reach:
    """By the number of dimensions and the size of a batch; a `window` of batches cuts both."""
    most = min(LARGEST, max(NUMBERS // dim, 2 * batch))
    modelled = min(max(100 + 2 * dim, 2 * batch), most)
    if window is None:
        return Reach(modelled, BATCHES * batch)
    return Reach(min(modelled, window * batch), min(BATCHES, window) * batch)


class Step(NamedTuple):
    """Where to, and why."""

    stretch: Stretch
    memory: Memory
    weighed: Weighed
    notes: Notes


def valued(xp: Any, window: Window, worst: Array) -> Window:
    """The window with the return that its failed samples stand for; `worst` is the lowest ever.

    They are left out where failing is not seen to depend on theta, unless most have failed.
    """
    if window.failed is None:
        return window
    part = window.modelled & window.valid
    known = Known(window.z, window.returns, part & ~window.failed, part & window.failed)
    share = dependence(xp, known)
    worth = worth_of_failing(xp, known, worst, share)
    counts = ~window.failed | (share > 0) | (xp.sum(known.failed) >= xp.sum(known.succeeded))
    return window._replace(
        returns=xp.where(window.failed, worth, window.returns),
        valid=window.valid & counts,
        recent=window.recent & counts,
        log_weights=xp.where(counts, window.log_weights, -xp.inf),
    )


class Regressed(NamedTuple):
    """The regression's half."""

    step: Newton
    stretch: Stretch
    hyper: Array
    evident: Array
    symmetric: Array  # whether returns reach as far up as down
    resolved: Array  # share of the slope's variance that the samples have taken away
    gain: Array  # what the model expects of its own step, in returns
    gain_stderr: Array
    deviation: Array  # of returns, as the model has it
    same: Array  # [n, n] samples that are one candidate


def step(xp: Any, rule: Rule, window: Window, memory: Memory, log_spread: Array) -> Step:
    """One move, from the samples of a window; `log_spread [D]` is that before it."""
    fresh = window.fresh & window.valid
    earned = fresh if window.failed is None else fresh & ~window.failed
    best = xp.maximum(memory.best, xp.max(xp.where(earned, window.returns, -xp.inf)))
    worst = xp.minimum(memory.worst, xp.min(xp.where(earned, window.returns, xp.inf)))
    window = valued(xp, window, worst)
    fresh = window.fresh & window.valid
    memory = memory._replace(updates=memory.updates + 1, best=best, worst=worst)
    grown = log_spread - memory.start
    one = regressed(xp, rule, window, memory, xp.mean(grown))
    flat = is_flat(xp, window.returns, fresh, memory, one.same)
    if window.failed is not None:  # failures alone are flat only where nothing else is known
        flat = flat & (xp.any(earned) | ~xp.any(window.valid & ~window.failed))
    found = weighed(xp, window.log_weights, window.returns, window.recent)
    signal, audible = listened(xp, memory.signal, window.z, found, fresh)
    shrink = rule.shrink * xp.minimum(1.0, xp.exp(grown))
    other = weighted_step(xp, window.z, found, audible, fresh, shrink, rule.shape, one.resolved)
    alone = (xp.min(one.step.log) > GROWS) & one.symmetric & (rule.share != 0)
    part, of_spread = shares(xp, rule, one, found, alone)
    pairs, bold = judged(xp, rule, window, memory, one, found.ties)
    bold = xp.where(alone, 0.0, bold)
    made = mixed(rule.shape, other, one.stretch, part, of_spread)

    def emboldened(made: Stretch) -> Stretch:
        third = bold_step(xp, window.z, found.omega, window.returns, rule.shape)
        return mixed(rule.shape, made, third, bold, bold)

    if rule.curious:
        made = when(xp, bold > 0, emboldened, lambda made: made, made)
    made = widened(xp, rule.shape, made, flat, xp.where(xp.mean(grown) < WIDEST, WIDER, 0.0))
    spread = rule.shape.mean(xp, made.log)
    shift = xp.where(xp.arange(3) == 0, 2 * spread, 0.0)  # the length is one of theta, not of z
    memory = memory._replace(hyper=one.hyper - shift, evident=one.evident)
    memory = memory._replace(signal=signal, pairs=pairs)
    notes = Notes(
        **said(xp, window, one, found, pairs),
        share=(1 - bold) * part,
        bold=bold,
        flat=flat,
        signal=audible,
        length=xp.sqrt(xp.sum(made.delta**2)),
        spread=spread,
    )
    return Step(made, memory, found, notes)


def said(xp: Any, window: Window, one: Regressed, found: Weighed, pairs: Pairs) -> dict[str, Array]:
    """The notes on what a step is made of."""
    return {
        "bounded": one.step.bounded,
        "widened": one.step.widened,
        "noise": one.step.noise,
        "evident": one.evident,
        "gain": one.gain,
        "gain_stderr": one.gain_stderr,
        "modelled": xp.sum(window.modelled & window.valid),
        "old": xp.sum(xp.where(window.fresh, 0.0, found.omega)),
        "pairs": pairs.count,
        "repeat": pairs.wanted,
    }


def shares(
    xp: Any, rule: Rule, one: Regressed, found: Weighed, alone: Array
) -> tuple[Array, Array]:
    """Of the regression, beside the weights: in the mean's step, and in that of the spread.

    Where it widens the spread it makes the step `alone`.
    """
    usual = one.resolved * (1 - found.ties) if rule.share is None else rule.share
    of_spread = xp.minimum(usual, rule.most) if rule.share is None else usual
    return xp.where(alone, 1.0, usual), xp.where(alone, 1.0, of_spread)


def judged(
    xp: Any, rule: Rule, window: Window, memory: Memory, one: Regressed, ties: Array
) -> tuple[Pairs, Array]:
    """What candidates tried twice have said so far, and the share of the bold step.

    Where other candidates tie too, twins that earn the same say little.
    """
    if not rule.curious:
        return memory.pairs._replace(wanted=xp.asarray(False)), xp.zeros_like(one.deviation)
    fresh, noise = window.fresh & window.valid, one.step.noise
    pairs = heard(xp, memory.pairs, one.same, window.returns, fresh)
    bold = (1 - ties) * boldness(xp, pairs, noise, one.deviation)
    return curious(xp, pairs, noise, bold, memory.updates, xp.sum(window.fresh)), bold


def is_flat(xp: Any, returns: Array, fresh: Array, memory: Memory, same: Array) -> Array:
    """Whether all fresh returns are one value below the best ever, or the only one ever.

    Of one candidate alone nothing can be said.
    """
    high = xp.max(xp.where(fresh, returns, -xp.inf))
    low = xp.min(xp.where(fresh, returns, xp.inf))
    several = xp.sum(fresh & firsts(xp, same & fresh)) > 1
    return several & (high == low) & ((high < memory.best) | (memory.best <= memory.worst))


def regressed(xp: Any, rule: Rule, window: Window, memory: Memory, grown: Array) -> Regressed:
    """The regression's step, on the samples that it looks at."""
    valid, returns = window.modelled & window.valid, window.returns
    apart, squares = models.apart_of(xp, window.z, window.valid)
    same = twins(xp, apart, squares, window.valid)
    if rule.curious:
        returns, valid = merged(xp, same, returns, valid)
    points = models.points_of(xp, window.z, valid, behind(xp, apart, window.log_weights))
    at = tenths(xp, returns, valid)
    y, scale = clipped(xp, returns, valid, at)
    middle = models.prior_of(xp, window.z.shape[1], rule.prior, window.z.dtype)
    hyper, model = models.improved(xp, points, y, memory.hyper, middle, memory.updates % 3)
    sound, model = models.sound(xp, model)
    against = model.evidence + xp.log(1 + models.LEVEL * xp.sum(valid)) / 2
    evident = memory.evident | (against > EVIDENT)
    local = models.local(xp, points, hyper, model, rule.shape, rule.pulled)
    outlook = Outlook(
        noise=xp.exp(hyper[1]) * model.signal,
        evident=evident,
        tenths=at,
        late=memory.updates > 2,
        grown=grown,
    )
    found = newton(xp, window.z.shape[1], local, outlook, rule.widens)
    gain = xp.sum(local.slope * found.delta + local.axes.values * found.delta**2 / 2)
    return Regressed(
        step=found,
        stretch=unturned(local.axes, found),
        hyper=hyper,
        evident=evident,
        symmetric=is_symmetric(xp, at),
        resolved=xp.where(sound, local.resolved, 0.0),
        gain=scale * gain,
        gain_stderr=scale * xp.sqrt(xp.sum(local.variance * found.delta**2)),
        deviation=scale * xp.sqrt(found.variance),
        same=same,
    )


def is_symmetric(xp: Any, at: Tenths) -> Array:
    """Whether the best tenth lies as far from the middle as the worst, to a factor of two."""
    up, down = xp.maximum(at.high - at.middle, 1e-30), xp.maximum(at.middle - at.low, 1e-30)
    return (xp.abs(xp.log(up / down)) < np.log(2.0)) & (at.high > at.low)


def mixed(shape: Shape, one: Stretch, other: Stretch, mean: Array, spread: Array) -> Stretch:
    """One step, and of the other a share in the mean and one in the spread in its place."""
    delta = (1 - mean) * one.delta + mean * other.delta
    return Stretch(delta, shape.mixed(one.log, other.log, spread))


def widened(xp: Any, shape: Shape, made: Stretch, flat: Array, wider: Array) -> Stretch:
    """The step that was made; of a flat batch, only a `wider` spread."""
    even = shape.even(xp, made.log, wider)
    log = tree_map(xp, lambda x, y: xp.where(flat, x, y), even, made.log)
    return Stretch(xp.where(flat, 0.0, made.delta), log)

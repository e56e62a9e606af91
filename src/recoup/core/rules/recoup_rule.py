"""The rule of the method `recoup`: a regression's step and a weighted one, by what each knows.

From the constant baseline to a control variate: what the paper subtracts from every return is one
number; the regression is a function of theta, whose expectation under rho is known exactly, and
the weights keep what a smooth model cannot see.
"""

from typing import NamedTuple

import numpy as np

from recoup.core.arrays import Array, tree_map, when
from recoup.core.families.shapes import Shape
from recoup.core.prior import LEVEL
from recoup.core.rules import model as models
from recoup.core.rules.newton import (
    Newton,
    Outlook,
    Stretch,
    clipped,
    newton,
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
    twins,
)
from recoup.core.rules.tuning import TUNED
from recoup.core.rules.weighted import Signal, Weighed, listened, weighed, weighted_step
from recoup.core.rules.window import Memory, Notes, Rule, Window, valued
from recoup.core.types import Namespace


class Step(NamedTuple):
    """Where to, and why."""

    stretch: Stretch
    memory: Memory
    weighed: Weighed
    notes: Notes


class Regressed(NamedTuple):
    """The regression's half."""

    step: Newton
    stretch: Stretch
    hyper: Array
    evident: Array
    resolved: Array  # share of the slope's variance that the samples have taken away
    gain: Array  # what the model expects of its own step, in returns
    gain_stderr: Array
    deviation: Array  # of returns, as the model has it
    same: Array  # [n, n] samples that are one candidate


class Observed(NamedTuple):
    """The samples with what failed ones stand for, and what the fresh ones are."""

    window: Window
    fresh: Array  # [n] those of the batch that makes the move which have a return
    earned: Array  # whether any of these did not fail


class Proposed(NamedTuple):
    """A step of each half."""

    one: Regressed
    other: Stretch  # the weights'
    found: Weighed
    signal: Signal
    audible: Array  # share of the fresh batches' gradients that is no noise


class Combined(NamedTuple):
    """A step of the regression's and the weighted one, and how it came about."""

    stretch: Stretch
    share: Array  # of the regression
    bold: Array
    flat: Array
    pairs: Pairs


def step(xp: Namespace, rule: Rule, window: Window, memory: Memory, log_spread: Array) -> Step:
    """One move, from the samples of a window; `log_spread [D]` is that before it."""
    seen, memory = observed(xp, window, memory)
    grown = log_spread - memory.start
    halves = proposed(xp, rule, seen, memory, grown)
    made = combined(xp, rule, seen, memory, halves, xp.mean(grown))
    return remembered(xp, rule, seen, memory, halves, made)


def observed(xp: Namespace, window: Window, memory: Memory) -> tuple[Observed, Memory]:
    """The window with its failures valued, and a memory that has seen its returns."""
    fresh = window.fresh & window.valid
    earned = fresh if window.failed is None else fresh & ~window.failed
    best = xp.maximum(memory.best, xp.max(xp.where(earned, window.returns, -xp.inf)))
    worst = xp.minimum(memory.worst, xp.min(xp.where(earned, window.returns, xp.inf)))
    window = valued(xp, window, worst)
    memory = memory._replace(updates=memory.updates + 1, best=best, worst=worst)
    return Observed(window, window.fresh & window.valid, xp.any(earned)), memory


def proposed(xp: Namespace, rule: Rule, seen: Observed, memory: Memory, grown: Array) -> Proposed:
    """What each half would do; the spread has `grown [D]` in logarithms since the start."""
    window = seen.window
    one = regressed(xp, rule, window, memory, xp.mean(grown))
    found = weighed(xp, window.log_weights, window.returns, window.recent)
    signal, audible = listened(xp, memory.signal, window.z, found, seen.fresh)
    shrink = rule.shrink * xp.minimum(1.0, xp.exp(grown))
    how = (audible, seen.fresh, shrink, rule.shape)
    return Proposed(one, weighted_step(xp, window.z, found, *how), found, signal, audible)


def combined(
    xp: Namespace, rule: Rule, seen: Observed, memory: Memory, halves: Proposed, grown: Array
) -> Combined:
    """One step of both halves, a bold one in its place as far as noise is little (10)."""
    window, one, found = seen.window, halves.one, halves.found
    alone = (xp.min(one.step.log) > TUNED.grows) & (rule.share != 0)
    part, of_spread = shares(xp, rule, one, found, alone)
    pairs, bold = judged(xp, rule, window, memory, one, found.ties)
    bold = xp.where(alone, 0.0, bold)
    made = mixed(rule.shape, halves.other, one.stretch, part, of_spread)

    def emboldened(made: Stretch) -> Stretch:
        third = bold_step(xp, window.z, found.omega, window.returns, rule.shape)
        return mixed(rule.shape, made, third, bold, bold)

    if rule.curious:
        made = when(xp, bold > 0, emboldened, lambda made: made, made)
    flat = is_flat(xp, seen, memory, one.same)
    wider = xp.where(grown < widest(xp, rule, memory), TUNED.wider_flat, 0.0)
    return Combined(
        stretch=widened(xp, rule.shape, made, flat, wider),
        share=(1 - bold) * part,
        bold=bold,
        flat=flat,
        pairs=pairs,
    )


def remembered(
    xp: Namespace, rule: Rule, seen: Observed, memory: Memory, halves: Proposed, made: Combined
) -> Step:
    """The step with what is remembered, and why it was made."""
    one, spread = halves.one, rule.shape.mean(xp, made.stretch.log)
    shift = xp.where(xp.arange(3) == 0, 2 * spread, 0.0)  # the length is one of theta, not of z
    memory = memory._replace(
        hyper=one.hyper - shift, evident=one.evident, signal=halves.signal, pairs=made.pairs
    )
    notes = Notes(
        **said(xp, seen.window, one, halves.found, made.pairs),
        share=made.share,
        bold=made.bold,
        flat=made.flat,
        signal=halves.audible,
        length=xp.sqrt(xp.sum(made.stretch.delta**2)),
        spread=spread,
    )
    return Step(made.stretch, memory, halves.found, notes)


def said(
    xp: Namespace, window: Window, one: Regressed, found: Weighed, pairs: Pairs
) -> dict[str, Array]:
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
    xp: Namespace, rule: Rule, one: Regressed, found: Weighed, alone: Array
) -> tuple[Array, Array]:
    """Of the regression, beside the weights: in the mean's step, and in that of the spread.

    Where it widens the spread it makes the step `alone`.
    """
    usual = one.resolved * (1 - found.ties) if rule.share is None else rule.share
    of_spread = xp.minimum(usual, rule.most) if rule.share is None else usual
    return xp.where(alone, 1.0, usual), xp.where(alone, 1.0, of_spread)


def judged(
    xp: Namespace, rule: Rule, window: Window, memory: Memory, one: Regressed, ties: Array
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


def is_flat(xp: Namespace, seen: Observed, memory: Memory, same: Array) -> Array:
    """Whether all returns are one value: those of the window, failures valued, and all before.

    Of one candidate alone nothing can be said; failures alone are flat only where nothing else is
    known.
    """
    window, fresh = seen.window, seen.fresh
    several = xp.sum(fresh & firsts(xp, same & fresh)) > 1
    high = xp.max(xp.where(window.valid, window.returns, -xp.inf))
    low = xp.min(xp.where(window.valid, window.returns, xp.inf))
    flat = several & (high == low) & (memory.best <= memory.worst)
    if window.failed is None:
        return flat
    return flat & (seen.earned | ~xp.any(window.valid & ~window.failed))


def regressed(xp: Namespace, rule: Rule, window: Window, memory: Memory, grown: Array) -> Regressed:
    """The regression's step, on the samples that it looks at."""
    valid, returns = window.modelled & window.valid, window.returns
    apart, squares = models.apart_of(xp, window.z, window.valid)
    same = twins(xp, apart, squares, window.valid)
    if rule.curious:
        returns, valid = merged(xp, same, returns, valid)
    points = models.points_of(xp, window.z, valid, apart)
    y, scale = clipped(xp, returns, valid)
    middle = models.prior_of(xp, window.z.shape[1], rule.prior, window.z.dtype)
    hyper, model = models.improved(xp, points, y, memory.hyper, middle, memory.updates % 3)
    sound, model = models.sound(xp, model)
    against = model.evidence + xp.log(1 + LEVEL * xp.sum(valid)) / 2
    evident = memory.evident | (against > TUNED.evident)
    local = models.local(xp, points, hyper, model, rule.shape, rule.pulled)
    outlook = Outlook(
        noise=xp.exp(hyper[1]) * model.signal,
        evident=evident,
        late=memory.updates > 2,
        grown=grown,
        widest=widest(xp, rule, memory),
    )

    def risen(steps: Array) -> tuple[Array, Array]:
        deltas = xp.stack([local.axes.unturned(step) for step in steps])
        return models.rise(xp, points, hyper, model, deltas)

    found = newton(xp, window.z.shape[1], local, outlook, risen, rule.widens)
    return Regressed(
        step=found,
        stretch=unturned(local.axes, found),
        hyper=hyper,
        evident=evident,
        resolved=xp.where(sound, local.resolved, 0.0),
        gain=scale * found.gain,
        gain_stderr=scale * xp.sqrt(found.doubt),
        deviation=scale * xp.sqrt(found.variance),
        same=same,
    )


def widest(xp: Namespace, rule: Rule, memory: Memory) -> Array | float:
    """The mean log spread over that of the start, up to which it may widen."""
    if rule.most_std is None:
        return TUNED.widest
    return xp.minimum(TUNED.widest, np.log(rule.most_std) - xp.mean(memory.start))


def mixed(shape: Shape, one: Stretch, other: Stretch, mean: Array, spread: Array) -> Stretch:
    """One step, and of the other a share in the mean and one in the spread in its place."""
    delta = (1 - mean) * one.delta + mean * other.delta
    return Stretch(delta, shape.mixed(one.log, other.log, spread))


def widened(xp: Namespace, shape: Shape, made: Stretch, flat: Array, wider: Array) -> Stretch:
    """The step that was made; of a flat batch, only a `wider` spread."""
    even = shape.even(xp, made.log, wider)
    log = tree_map(xp, lambda x, y: xp.where(flat, x, y), even, made.log)
    return Stretch(xp.where(flat, 0.0, made.delta), log)

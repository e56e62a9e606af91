"""The moves of a study's distribution, and the judgement of a candidate, from results alone.

A move is a pure function of the method's settings, the results so far and their densities as the
move before left them, relative to the study's first proposal: only what is new is computed. Small
ones are made by NumPy, in `uncompiled`, and so are all those of the default method, whatever its
family; others by JAX, in `compiled`.
"""

import numpy as np

from recoup.checks import InputError
from recoup.core.types import Plain
from recoup.core.worth import worth
from recoup.engine.methods import Method, family_name
from recoup.engine.plain import can_move, can_weigh
from recoup.study.moves.steps import Before, Judged, StudyMove
from recoup.study.reader.ledger import Ledger
from recoup.study.reader.records import AGES
from recoup.study.space.goals import turned, turned_ends


def make_move(
    row: Method, discount: float, ledger: Ledger, upto: int, since: int, before: Before
) -> StudyMove:
    """The move that the results up to the place `upto` make; those after `since` are new."""
    results = ledger.results(upto)
    old = int(np.searchsorted(ledger.counted, since, "right"))
    if ledger.charts:
        check_charts(row, ledger.dim)
    size = 0 if ledger.charts else results.n  # only NumPy knows of other bounds
    if can_move(row, size, ledger.dim) and (before.memory is None or row.way.rule or row.way.mover):
        from recoup.study.moves import uncompiled

        with np.errstate(all="ignore"):  # as JAX does; what is not finite is looked for below
            found = uncompiled.stepped(row, ledger, results, old, before)
    else:
        from recoup.study.moves.compiled import stepped as compiled_step  # needs JAX

        found = compiled_step(row, discount, ledger, results, old, before)
    _check_numbers(row, found.numbers, before.numbers)
    ages = _ages(np.ravel(found.info.weights)[: results.n], results.n - old)
    noted = {**as_told(found.info.plain(row.draw), ledger.sign), "ages": ages}
    return StudyMove(found.numbers, found.memory, noted, found.own, found.mixture)


def _check_numbers(row: Method, after: np.ndarray, before: np.ndarray) -> None:
    """Raises unless a distribution is one that the study can go on with."""
    if not np.isfinite(after).all():
        raise InputError(
            "the update rule made a distribution that is not finite: nothing was moved, and every "
            "result is kept. Fork the study with another update, or a shorter step."
        )
    if after.shape != before.shape:
        raise InputError(
            f"the family {family_name(row)} made a distribution of {after.size} numbers of one of "
            f"{before.size}: nothing was moved, and every result is kept. What it gives must have "
            "the shapes of its rho."
        )


def as_told(info: Plain, sign: float) -> Plain:
    """What a move was made of, its estimate with the sign of what was told."""
    low, high = turned_ends(info["low"], info["high"], sign)
    return {**info, "objective": turned(info["objective"], sign), "low": low, "high": high}


def judge(row: Method, ledger: Ledger, upto: int, target: np.ndarray) -> Judged:
    """What the results up to the place `upto` say about the distribution of a block of numbers."""
    results, dim = ledger.results(upto), ledger.dim
    if can_weigh(row, 0 if ledger.charts else results.n, dim):
        from recoup.study.moves.uncompiled import judged

        with np.errstate(all="ignore"):
            seen, weights, unseen, left = judged(row, ledger, results, target)
    else:
        from recoup.study.moves.compiled import judged as compiled_judgement  # needs JAX

        seen, weights, unseen, left = compiled_judgement(row, ledger, results, target)
    found = worth(seen, float(unseen), dim if row.space == "parameters" else 0)
    return Judged(
        worth=found._replace(ess=found.ess * row.draw),
        weights=weights[: results.n],
        samples=int(seen.samples),
        censored=int(left),
        draw=row.draw,
    )


def check_charts(row: Method, dim: int) -> None:
    """Raises unless a method can weigh results that were drawn under other bounds."""
    if not isinstance(row.family, str) or not can_move(row, 0, dim):
        raise InputError(
            "results of other bounds can be weighed only by methods all of whose parts are ours, "
            "in parameter space and without update='adam'."
        )


def _ages(weights: np.ndarray, batch: int) -> list[float]:
    """Shares of the total weight by `AGES`, in batches of this size: the newest results first."""
    total, newest = float(weights.sum()), weights[::-1]
    if not total > 0:
        return [0.0] * len(AGES)
    ends = [(low * batch, None if high is None else high * batch) for low, high in AGES]
    return [float(newest[low:high].sum()) / total for low, high in ends]

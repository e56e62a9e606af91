"""How surely a theta of a study keeps its limits, and how often results broke them. No JAX."""

from collections.abc import Callable, Iterable, Sequence
from math import isfinite
from typing import NamedTuple

import numpy as np

from recoup.core.families.gaussian import Diagonal
from recoup.core.plain.limit_chance import (
    Bound,
    ChanceWithin,
    are_equal,
    chance_of_equal,
    chance_within,
    excess,
    modelled,
    range_of,
)
from recoup.core.types import Plain, Rho
from recoup.store.rows import Asked, Result
from recoup.study.reader.opened import Opened
from recoup.study.space.limits import Limit
from recoup.study.voice import sentences
from recoup.study.voice.landscape import MODEL_RESULTS, ModelledResults, coordinates, results_of


class Within(NamedTuple):
    """How surely a rollout of a theta is within a limit; not a number where nothing says so.

    >>> held = recoup.Study.open("held.db", dim=1, limits=["force<50"], seed=0)
    >>> [trial] = held.ask()
    >>> later = held.tell(trial.id, 9.7, also={"force": 41})
    >>> [row] = held.recommend().limits
    >>> row.limit, row.name, row.results
    ('force<50', 'force', 1)
    """

    limit: str  # as it was given
    chance: float  # that a rollout keeps it
    low: float  # of the 95 % interval of the chance
    high: float  # likewise
    name: str  # of the number
    value: float  # of it, in the middle of what rollouts have
    value_low: float  # between these lie 95 of 100 rollouts
    value_high: float  # likewise
    rests_on: str  # what it was taken from, in words
    results: int  # that were looked at


class LimitCounts(NamedTuple):
    """How many results have told the number of a limit, and how many of them broke it."""

    limit: str
    told: int
    broken: int


def keeping_of(study: Opened, results: ModelledResults, rho: Rho = None) -> list[Within]:
    """How surely each limit is kept at the mean policy, or in the middle of another `rho`."""
    if not study.limits.rows:
        return []
    look = coordinates(study, results, rho).at
    names = study.limits.names
    return [row for name in names for row in _of_number(study, results, look, name)]


def keeping_at(study: Opened, latent: np.ndarray) -> list[Within]:
    """How surely each limit is kept at a theta, given as a latent one."""
    with study.store.reading():
        results = results_of(study)
        return keeping_of(study, results, Diagonal(latent, results.std))


def seem_within(study: Opened, results: ModelledResults, thetas: np.ndarray) -> np.ndarray:
    """Which of latent thetas `[m, D]` keep every limit surely enough, by one model of each number.

    The model is that about the newest distribution; `keeping_of` says exactly how surely. None of
    them where too little is known of a number.
    """
    if any(not isfinite(row.chance) for row in keeping_of(study, results)):
        return np.zeros(len(thetas), bool)
    over, look = np.zeros(len(thetas)), coordinates(study, results).at
    for limit in study.limits.rows:
        theta, values = _known(study, results.told, limit.name)
        z, y = look(np.concatenate([theta, thetas])), np.full(len(theta) + len(thetas), np.nan)
        y[: len(theta)] = values
        over += excess(z, y, [_bound(limit)], study.limits.within)[len(theta) :]
    return over == 0


def _of_number(
    study: Opened, results: ModelledResults, look: Callable[[np.ndarray], np.ndarray], name: str
) -> list[Within]:
    """How surely the limits on one number are kept."""
    limits = [limit for limit in study.limits.rows if limit.name == name]
    theta, values = _known(study, results.told, name)
    n = len(values)
    if n < max(MODEL_RESULTS, study.dim + 2):
        nothing = [(ChanceWithin(np.nan, np.nan, np.nan), limit) for limit in limits]
        why = f"too few results have told {name}"
        return [_within(limit, chance, (np.nan,) * 3, why, n) for chance, limit in nothing]
    if are_equal(values):
        equal, about = float(values[0]), f"{n} results, all with the same {name}"
        found = [(chance_of_equal(values, _bound(limit)), limit) for limit in limits]
        return [_within(limit, chance, (equal,) * 3, about, n) for chance, limit in found]
    model = modelled(look(theta), values)
    around, looked = range_of(model), model.belief.results
    about = f"{looked} results, by a model of {name} near it"
    found = [(chance_within(model, _bound(limit)), limit) for limit in limits]
    return [_within(limit, chance, around, about, looked) for chance, limit in found]


def _within(
    limit: Limit, chance: ChanceWithin, number: tuple[float, float, float], about: str, results: int
) -> Within:
    return Within(limit.text, *chance, limit.name, *number, about, results)


def _bound(limit: Limit) -> Bound:
    return Bound(0, limit.sign, limit.bound, limit.side.endswith("="))


def _known(
    study: Opened, told: Sequence[tuple[Asked, Result]], name: str
) -> tuple[np.ndarray, np.ndarray]:
    """Latent thetas `[n, D]` and numbers `[n]` of the results that told a number."""
    rows = [
        (*study.here(trial), result.told.also[name])
        for trial, result in told
        if result.told.also and name in result.told.also
    ]
    inside = [(theta, value) for theta, is_inside, value in rows if is_inside]
    theta = np.array([theta for theta, _ in inside]).reshape(-1, study.dim)
    return theta, np.array([value for _, value in inside])


def outside(found: Iterable[Within], within: float) -> list[Within]:
    """The limits that are not kept surely enough, as far as is known."""
    return [row for row in found if not row.chance >= within]


def refused(found: Sequence[Within], within: float) -> str:
    """Why no theta is to be deployed for its limits, in a sentence; nothing where it may be."""
    broken = outside(found, within)
    known = [row for row in broken if isfinite(row.chance)]
    if known:
        worst = min(known, key=lambda row: row.chance)
        return sentences.breaks_too_often(worst.limit, worst.chance, within)
    return sentences.limit_not_known(broken[0].limit, broken[0].rests_on) if broken else ""


def within_words(row: Within) -> str:
    """How surely a limit is kept, in a sentence; empty where that is not known."""
    number = (row.name, row.value, row.value_low, row.value_high)
    return sentences.within_limit(row.limit, (row.chance, row.low, row.high), number, row.rests_on)


def told_of_limits(study: Opened) -> list[LimitCounts]:
    """Of each limit how often its number was told, and how often it was broken; no dropped ones."""
    if not study.limits.rows:
        return []
    nothing = study.store.dropped()
    rows = [x.told.also for x in study.store.results().values() if x.id not in nothing]
    known = [also for also in rows if also]
    found = []
    for limit in study.limits.rows:
        values = [also[limit.name] for also in known if limit.name in also]
        found.append(LimitCounts(limit.text, len(values), sum(map(limit.is_broken, values))))
    return found


def limits_found(study: Opened) -> Plain:
    """The limits of a study, and how often each was broken; nothing where it has none."""
    if not study.limits.rows:
        return {}
    rows = [row._asdict() for row in told_of_limits(study)]
    return {"limits": rows, "within": study.limits.within}

"""Where each parameter of a study is best while the others stay at the mean policy. No JAX."""

from typing import NamedTuple

import numpy as np

from recoup.core.plain.tops import best_of, tops
from recoup.core.worth import Interval
from recoup.study.reader.opened import Opened
from recoup.study.space.choices import standing
from recoup.study.space.parameters import places_of
from recoup.study.voice.landscape import Landscape, ModelledResults

UNSURE = 0.025  # share of being best below which a choice surely is not


class Best(NamedTuple):
    """Between which values each parameter is best, 95 %, or how often each of its choices is."""

    low: np.ndarray  # [P] in the user's units, infinite where nothing says so; no number of choices
    high: np.ndarray
    choices: dict[str, dict[str, float]]  # by name: how surely each is the best
    climbs: list[str]  # parameters that are surely not at their best
    wrong: list[tuple[str, str, str]]  # of them choices: the name, what stands, what is better
    known: list[str]  # parameters of which the model says where they are best, or are not


def best_of_each(study: Opened, results: ModelledResults, found: Landscape | None) -> Best:
    """What the model says of every parameter."""
    ranges = _ranges(study, results, found)
    choices = {} if found is None else _choices(study, results, found)
    mean = study.params(study.in_units(results.mean))
    wrong = [
        (name, mean[name], max(shares, key=lambda word: shares[word]))
        for name, shares in choices.items()
        if shares[mean[name]] < UNSURE
    ]
    low, high = (_in_units(study, results, np.array([x[i] for x in ranges])) for i in (0, 1))
    climbs = [study.labels[i] for i in _climbing(study, results, ranges, low, high)]
    climbs += [name for name, _, _ in wrong]
    _close(study, low, high)
    known = [name for name, x in zip(study.labels, ranges, strict=True) if np.isfinite(x).any()]
    known += [name for name, shares in choices.items() if min(shares.values()) < UNSURE]
    return Best(low, high, choices, climbs, wrong, known)


def _ranges(study: Opened, results: ModelledResults, found: Landscape | None) -> list[Interval]:
    """Where each parameter is best, in standard deviations from the mean `[P]`."""
    nowhere = Interval(-np.inf, np.inf)
    numbers = _numbers(study)
    if found is None or not numbers:
        none = Interval(np.nan, np.nan)
        return [none if p in dict(study.choices) else nowhere for p in study.labels]
    ways = found.coordinates.straight((results.mean + np.diag(results.std))[numbers])
    tried = ((results.theta - results.mean) / results.std)[:, numbers]
    known = dict(zip(numbers, tops(found.belief, ways, tried), strict=True))
    return [known.get(first, Interval(np.nan, np.nan)) for first in _firsts(study)]


def _climbing(
    study: Opened,
    results: ModelledResults,
    ranges: list[Interval],
    low: np.ndarray,
    high: np.ndarray,
) -> list[int]:
    """Which parameters are surely best elsewhere than at the mean, by `ranges` in its deviations.

    Beyond a bound all stands at it, so that there the ends in the user's units say so.
    """
    here, beyond = study.in_units(results.mean), [bool(p.beyond) for p in study.parameters]
    surely = [x.low > 0 or x.high < 0 for x in ranges]
    for i in np.flatnonzero(beyond):
        surely[i] = low[i] > here[i] or high[i] < here[i]
    return [i for i, climbs in enumerate(surely) if climbs]


def _close(study: Opened, low: np.ndarray, high: np.ndarray) -> None:
    """Ends that are open beyond a bound, though the other stands at it, are at the bound too."""
    for i, p in enumerate(study.parameters):
        if p.beyond and low[i] == p.high:
            high[i] = p.high
        if p.beyond and high[i] == p.low:
            low[i] = p.low


def _choices(
    study: Opened, results: ModelledResults, found: Landscape
) -> dict[str, dict[str, float]]:
    """How often each choice is the best, in what may be true; the others staying."""
    shares = {}
    for p, place in zip(study.parameters, places_of(study.parameters), strict=True):
        if p.choices is not None:
            theta = np.repeat(results.mean[None], len(p.choices), axis=0)
            theta[:, place] = standing(np.arange(len(p.choices)), len(p.choices))
            often = best_of(found.belief, found.whitened(theta)).tolist()
            shares[p.name] = dict(zip(p.choices, often, strict=True))
    return shares


def _firsts(study: Opened) -> list[int]:
    """The first latent number of each parameter `[P]`."""
    if not study.parameters:
        return list(range(study.dim))
    return [place.start for place in places_of(study.parameters)]


def _numbers(study: Opened) -> list[int]:
    """The latent numbers that are none of a choice."""
    pairs = zip(study.labels, _firsts(study), strict=True)
    return [first for name, first in pairs if name not in dict(study.choices)]


def _in_units(study: Opened, results: ModelledResults, z: np.ndarray) -> np.ndarray:
    """Ends of intervals in the user's units `[P]`, of those in standard deviations `[P]`."""
    mean, std = results.mean, results.std
    if len(std) != len(mean):  # in action space
        return z
    far = np.zeros(len(mean))
    far[_firsts(study)] = np.where(np.isfinite(z), z, 0.0)
    ends = study.in_units(mean + far * std)
    return np.where(np.isfinite(z), ends, z)

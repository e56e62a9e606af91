"""What a study's results say of the returns about its newest distribution, by one model. No JAX.

Everything that is said of the mean policy, of a candidate, of a point or of the next batch looks at
this model; the search's own weights take no part. Chosen by the same results or not: a model that
has seen all of them is not misled by which of them made the search go where it went.
"""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from recoup.checks import InputError
from recoup.core.families.gaussian import Diagonal
from recoup.core.plain.belief import Belief, Looks, believed, expected, joined
from recoup.core.types import Rho
from recoup.core.worth import MODELLED, NOTHING, ROUNDING, Interval, proportion, quantile
from recoup.engine.failure import CENSORED
from recoup.store.rows import FAILED, Asked, Result
from recoup.study.reader.opened import Opened
from recoup.study.space.goals import turned
from recoup.study.voice.coordinates import StandardCoordinates

Made = TypeVar("Made")

MODEL_RESULTS = 8  # results that the model needs
NEAREST = 10  # results that say by themselves what is certain, where returns are one of two
RARE = 3  # results of the rarer of two returns that are needed to learn anything from them
SELDOM = 0.1  # share of the better of two returns below which no batch's gain can be said
WITHIN = 3.0  # standard deviations (over the root of D) within which results are near
CUT_OFF = 1.0  # of its error more, where what failed is left out of what a distribution draws
TOO_SURE = 3  # parameters beyond which the model is surer of a distribution than it should be
SHARPER = 0.4  # of what a middle earns over a draw: by how much better it may be than is seen
EXTREME = 1e100  # returns beyond this, or below one over it, are scaled before anything else


class PlacedResult(NamedTuple):
    """A result that has a value and a place in the study's space."""

    trial: int
    kind: str
    proposal: int | None
    theta: np.ndarray  # latent
    value: float  # larger is better


class ModelledResults(NamedTuple):
    """What was told, and what the model is made of."""

    told: list[tuple[Asked, Result]]  # but for what was dropped
    known: list[PlacedResult]  # over `unit`
    unit: float
    mean: np.ndarray  # [D] of the newest distribution, latent
    std: np.ndarray

    @property
    def values(self) -> np.ndarray:
        """Returns `[n]`, over the unit."""
        return np.array([result.value for result in self.known])

    @property
    def theta(self) -> np.ndarray:
        """Latent thetas `[n, D]`."""
        return np.stack([result.theta for result in self.known])

    def without(self, trials: Collection[int]) -> "ModelledResults":
        """The results as if some trials had not been told."""
        told = [row for row in self.told if row[0].id not in trials]
        return self._replace(told=told, known=[x for x in self.known if x.trial not in trials])


class LastMove(NamedTuple):
    """The results as they were when the last move was made, and the trials told since."""

    results: ModelledResults
    later: list[Asked]


def at_last_move(study: Opened, results: ModelledResults) -> LastMove:
    """The results of the last move, or all of them where these are too few for a model.

    Trials of no distribution of the study are among them whenever they were told.
    """
    mark = study.store.last_notes().counted
    later = [trial for trial, x in results.told if x.counted is not None and x.counted > mark]
    then = results.without({trial.id for trial in later})
    return LastMove(results, []) if why_none(study, then) else LastMove(then, later)


class Landscape(NamedTuple):
    """The model, in coordinates in which a distribution is N(0, I)."""

    belief: Belief
    coordinates: StandardCoordinates

    def whitened(self, theta: np.ndarray) -> np.ndarray:
        """Latent thetas `[n, D]` in the coordinates."""
        return self.coordinates.at(theta)

    def at(self, theta: np.ndarray) -> Looks:
        """Latent thetas `[m, D]`."""
        return self.belief.looks(self.whitened(np.atleast_2d(theta)))

    def here(self) -> Looks:
        """The mean of the distribution."""
        return self.belief.looks(np.zeros((1, len(self.belief.stretch))))

    def around(self) -> Looks:
        """What the distribution draws, of which that is the mean."""
        return self.belief.looks(np.zeros((1, len(self.belief.stretch))), 1.0)

    def draw(self, rho: Rho) -> Looks:
        """What a distribution draws."""
        return self.belief.looks(*self.coordinates.of(rho))


class Expected(NamedTuple):
    """A mean return, as the model has it."""

    value: float
    stderr: float
    interval: Interval
    nearest: int = 0  # results that alone say so, without a model; 0: a model does


def results_of(study: Opened) -> ModelledResults:
    """What was told to a study so far; inside `reading()`, and remembered."""
    return remembered(study, "results", lambda: _results(study))


def remembered(study: Opened, name: str, make: Callable[[], Made]) -> Made:
    """What `make` makes of a study, made again only where anything in the study has changed."""
    version = study.store.version()
    known: tuple[str, Made] | None = study.remembered.get(name)
    if known is None or known[0] != version:
        known = study.remembered[name] = version, make()
    return known[1]


def _results(study: Opened) -> ModelledResults:
    """What was told so far."""
    trials, nothing = study.store.trials(), study.store.dropped()
    told = [(trial, x) for trial, x in trials if x is not None and trial.id not in nothing]
    known = _known(study, told)
    unit = _unit([result.value for result in known])
    scaled = [result._replace(value=result.value / unit) for result in known]
    return ModelledResults(told, scaled, unit, study.mean, study.std)


def _known(study: Opened, told: Sequence[tuple[Asked, Result]]) -> list[PlacedResult]:
    """The results that have a value and lie within the study's bounds."""
    values = [
        turned(result.told.value, study.sign) for _, result in told if result.told.value is not None
    ]
    if not values:
        raise InputError(f"{study.where} has no {study.goal.noun} yet: tell a few results first.")
    failure = study.method.stated
    worth = min(values) if failure == "worst" else None if failure == CENSORED else failure
    found = []
    for trial, result in told:
        theta, inside = study.here(trial)
        value = worth
        if result.told.value is not None:
            value = turned(result.told.value, study.sign)
        if inside and value is not None:
            found.append(PlacedResult(trial.id, trial.kind, trial.proposal, theta, float(value)))
    if not found:
        raise InputError(
            f"all results of {study.where} lie outside of its bounds: tell some within."
        )
    return found


def _unit(values: Sequence[float]) -> float:
    """What returns are divided by: 1, unless their squares would be too large or too small."""
    largest = max(abs(value) for value in values)
    return 1.0 if largest == 0 or 1 / EXTREME < largest < EXTREME else largest


def why_none(study: Opened, results: ModelledResults) -> str:
    """Why there is no model, in words; empty where there is one."""
    if study.method.space == "actions":
        return "no trial of the mean policy by itself"
    if len(results.known) < max(MODEL_RESULTS, study.dim + 2):
        return "too few results near it"
    values = results.values
    if np.ptp(values) <= ROUNDING * np.max(np.abs(values)):
        return f"{len(values)} results that are all equal, so that there is no interval"
    return ""


def landscape(study: Opened, results: ModelledResults, rho: Rho = None) -> Landscape:
    """The model about the newest distribution, or about another `rho` of its family.

    Of a family of the user's, about its means and standard deviations. That about the newest is
    remembered until anything in the study changes; inside `reading()`.
    """
    if rho is not None:
        return fitted(study, results, rho)
    return remembered(study, "landscape", lambda: fitted(study, results, None))


def fitted(study: Opened, results: ModelledResults, rho: Rho = None) -> Landscape:
    """The model in the coordinates of a distribution, the newest unless said; not remembered."""
    found = coordinates(study, results, rho)
    within = np.inf if found.has_choices else WITHIN
    return Landscape(believed(found.at(results.theta), results.values, within=within), found)


def everywhere(found: Landscape, results: ModelledResults) -> Landscape:
    """The model of far results too, of the nearest where they are very many.

    For what is asked of all that was tried; it is less exact about the distribution.
    """
    if found.belief.results == min(len(results.known), MODELLED):
        return found
    return found._replace(belief=believed(found.whitened(results.theta), results.values))


def coordinates(study: Opened, results: ModelledResults, rho: Rho = None) -> StandardCoordinates:
    """Coordinates in which the newest distribution, or another `rho`, is N(0, I)."""
    if rho is None:
        own, newest = study.has_own_family, study.store.newest().numbers
        rho = Diagonal(results.mean, results.std) if own else study.rho(newest)
    return StandardCoordinates(study.parameters, rho)


def worth_of(
    found: Landscape, looks: Looks, results: ModelledResults, better: float = 0.0
) -> Expected:
    """What one look is worth, over the unit of the results.

    It may be so much `better` than the interval of the model has it, as `reaching` says.
    """
    mean, covariance = expected(found.belief, looks)
    value, stderr = float(mean[0]), float(max(covariance[0, 0], 0.0)) ** 0.5
    if not np.isfinite(stderr):
        return Expected(value, stderr, NOTHING)
    if looks.variance.any():
        stderr *= doubt(looks.mean.shape[1])
        stderr *= 1 + CUT_OFF * (len(results.told) > len(results.known))
    interval = reaching(value, quantile(found.belief.results) * stderr, better)
    levels = np.unique(results.values)
    if len(levels) == 2:
        near = _nearest(found, results)
        if rarely(results.values) is not None:
            return _of_rare(levels, near, results.values)
        return _of_two(value, stderr, interval, levels, near)
    return Expected(value, stderr, interval)


def reaching(value: float, half: float, better: float) -> Interval:
    """Half of a width on either side, and so much `better`: at most half as wide again."""
    return Interval(value - half, value + half + min(better, half))


def doubt(dim: int) -> float:
    """How many times its own error the model may be wrong of a distribution, or of its gain."""
    return max(1.0, dim / TOO_SURE) ** 0.5


def may_be_better(found: Landscape) -> float:
    """By how much the middle may be better than the model has it.

    A top may be sharper than a smooth model has it, and no top is blunter: a share of the top that
    the model sees, which is how much more the middle earns than a draw about it.
    """
    here, draw = expected(found.belief, joined(found.here(), found.around()))[0]
    return SHARPER * max(float(here - draw), 0.0)


def _nearest(found: Landscape, results: ModelledResults) -> np.ndarray:
    """The returns of the results that lie nearest to the mean."""
    far = np.sum(found.whitened(results.theta) ** 2, axis=1)
    return results.values[np.argsort(far, kind="stable")[:NEAREST]]


def _of_two(
    value: float, stderr: float, interval: Interval, levels: np.ndarray, near: np.ndarray
) -> Expected:
    """The mean return where all returns are one of two, of which the model knows nothing.

    Between the two, and never narrower than what the nearest results alone say of the chance of
    the higher one: ten successes in a row are no certainty.
    """
    low, high = (float(level) for level in levels)
    share = proportion(int(np.sum(near == high)), len(near))
    ends = [low + (high - low) * end for end in share]
    found = Interval(min(interval.low, ends[0]), max(interval.high, ends[1]))
    inside = [float(x) for x in np.clip([value, *found], low, high)]
    return Expected(inside[0], stderr, Interval(*inside[1:]))


def _of_rare(levels: np.ndarray, near: np.ndarray, values: np.ndarray) -> Expected:
    """The mean return where one of two returns is too rare for a model to go by.

    That of the nearest results, as far from it as these say by themselves, and down or up to the
    return that nearly all had: the rare one need not come again where the search has gone for it.
    """
    low, high = (float(level) for level in levels)
    ends = proportion(int(np.sum(near == high)), len(near))
    usual = float(np.mean(values == high) > 0.5)
    reached = min(ends.low, usual), max(ends.high, usual)
    found = Interval(*(low * (1 - x) + high * x for x in reached))
    stderr = (found.high - found.low) / 2 / quantile(np.inf)
    return Expected(float(np.mean(near)), stderr, found, len(near))


def rarely(values: np.ndarray) -> int | None:
    """How many results differ from all others, where they are too few to learn from."""
    counts = Counter(values.tolist())
    if len(counts) == 1 and len(values) > 1:
        return 0
    if len(counts) != 2:
        return None
    rarer, better = min(counts.values()), counts[max(counts)]
    few = rarer < RARE <= max(counts.values()) or better < SELDOM * len(values)
    return rarer if few else None


def left_out_of(study: Opened, results: ModelledResults) -> int:
    """How many failures a model of the returns leaves out."""
    return failures_of(results.told) if study.method.stated == CENSORED else 0


def failures_of(told: Sequence[tuple[Asked, Result]]) -> int:
    """How many results are failures."""
    return sum(result.told.status == FAILED for _, result in told)

"""What results say of one point, and which parameters matter: at no rollout. No JAX."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from recoup.checks import InputError
from recoup.core.families.gaussian import Diagonal
from recoup.core.plain.belief import believed
from recoup.core.plain.tops import Axis, effects
from recoup.core.types import Given, Plain
from recoup.core.worth import MODELLED, NOTHING
from recoup.notebooks import facts
from recoup.study.reader.opened import Opened
from recoup.study.space.goals import GOALS
from recoup.study.space.parameters import places_of
from recoup.study.text.notebook import in_a_row, parameter_rows
from recoup.study.voice import sentences
from recoup.study.voice.coordinates import StandardCoordinates
from recoup.study.voice.doubts import doubted
from recoup.study.voice.failing import Failing, failed_near, failing_of
from recoup.study.voice.keeping import Within, keeping_of, within_words
from recoup.study.voice.landscape import (
    Landscape,
    ModelledResults,
    failures_of,
    fitted,
    landscape,
    rarely,
    results_of,
    why_none,
)
from recoup.study.voice.worths import MeanPolicyWorth, as_shown, by_model, of_mean

MOST_PARAMETERS = 30  # of which it is said which matter
SAME = 0.01  # standard deviations up to which a number is the mean policy's, typed
SEEN = 25.0  # an effect's variance over that of the mean of all noise: it is no chance
TRIED_NEAR = 1.0  # standard deviations (over the root of D) within which something was tried near
VAGUE = 1.0  # standard deviations of the returns: a wider half of an interval says nothing


class Prediction(NamedTuple):
    """The expected return of parameters that need not have been tried.

    `Study.predict` gives it; printed, it is its `words`.

    >>> study.predict({"offset": 1})
    Prediction(10... (95 %: 9.9... to 10.0...); gain=17.0..., offset=1)
    """

    params: Plain  # in the user's units
    expected: float  # not a number where nothing near them was tried
    stderr: float  # of that
    low: float  # of the 95 % interval
    high: float  # likewise
    results: int  # that the model looked at
    failing: Failing  # how often they fail
    limits: list[Within]  # how surely they keep each limit
    words: str
    direction: str  # minimize: what is expected are costs

    def __str__(self) -> str:
        return self.words

    def __repr__(self) -> str:
        worth = sentences.in_short(self.expected, self.low, self.high)
        return f"Prediction({worth}; {in_a_row(tuple(self.params), list(self.params.values()))})"

    def _repr_html_(self) -> str:
        expected = f"Expected {GOALS[self.direction].noun}"
        params = parameter_rows(tuple(self.params), list(self.params.values()))
        worth = sentences.in_short(self.expected, self.low, self.high)
        return facts(f"{expected}: {worth}", {**params, "in words": self.words})

    def plain(self) -> Plain:
        """The prediction as JSON can hold it.

        >>> study.predict({"offset": 1}).plain()["results"]
        36
        """
        limits = [row._asdict() for row in self.limits]
        return {**self._asdict(), "failing": self.failing._asdict(), "limits": limits}


class Matters(NamedTuple):
    """How much of what returns vary by, beside noise, a parameter or a pair of them explains.

    >>> most = advice.matters[0]
    >>> most.names, f"{most.share:.1f}"
    (('offset',), '1.0')
    """

    names: tuple[str, ...]  # one parameter, or two
    share: float  # from 0 to 1; not a number where it was never varied
    stderr: float  # of the share
    seen: bool = True  # whether the effect stands out from noise


def predict(study: Opened, params: Given) -> Prediction:
    """The expected return of a theta, in the user's units in order or by name.

    Parameters that are not named stay at the mean policy.
    """
    if study.method.space == "actions":
        raise InputError(f"{study.method.name} explores in actions: no model of theta is made.")
    with study.store.reading():
        results = results_of(study)
        asked = _completed(study, params)
        theta = study.latent_theta(asked)
        shown = _as_asked(study.params(study.in_units(theta)), asked)
        if _is_mean(study, results, theta):
            theta, rho = results.mean, None
        else:
            rho = Diagonal(theta, results.std)
        failing = failing_of(study, results.told, theta, results.std)
        limits = keeping_of(study, results, rho)
        worth = worth_at(study, results, rho, landscape)
        doubt = doubted(study, results, worth, lambda rest: worth_at(study, rest, rho, fitted))
        here = as_shown(study, results, worth)
    known = bool(np.isfinite(here.value))
    fails = sentences.fails(*failing[:4]) if failures_of(results.told) else ""
    said = sentences.not_predicted(here.rests_on)
    if known:
        said = sentences.predicted(here.value, *here.interval, here.rests_on, study.goal)
    kept = map(within_words, limits)
    words = " ".join(filter(None, [said, doubt.words, fails, *kept]))
    numbers = (here.value, here.stderr, *here.interval, here.results)
    return Prediction(shown, *numbers, failing, limits, words, study.goal.word)


def _is_mean(study: Opened, results: ModelledResults, theta: np.ndarray) -> bool:
    """Whether a latent theta is the mean policy, as exactly as that is typed.

    Whole numbers and choices are the same where they are shown alike.
    """
    pairs = zip(
        *(study.params(study.in_units(x)).values() for x in (theta, results.mean)), strict=True
    )
    mean = results.mean
    if any(p.beyond for p in study.parameters):  # where it lies beyond a bound it stands at it
        mean = study.latent_theta(study.in_units(mean))
    near = np.abs(theta - mean) <= SAME * results.std
    places = (
        places_of(study.parameters)
        if study.parameters
        else [slice(i, i + 1) for i in range(study.dim)]
    )
    return all(
        bool(np.all(near[place])) if isinstance(one, float) else one == other
        for (one, other), place in zip(pairs, places, strict=True)
    )


def worth_at(
    study: Opened, results: ModelledResults, rho: Diagonal | None, model: Callable[..., Landscape]
) -> MeanPolicyWorth:
    """What the middle of `rho` is worth, over the unit; of None the mean policy, as `recommend`.

    By a `model` of the results, where there are enough for one.
    """
    none = why_none(study, results)
    found = None if none else model(study, results, rho)
    if rho is None:
        return of_mean(study, results, found, none)
    if found is None:
        return MeanPolicyWorth(np.nan, np.nan, NOTHING, none, 0)
    here = by_model(study, results, found)
    vague = not _half(here) <= VAGUE * float(np.std(results.values))
    if vague and not _is_near(results, rho):
        failed = failed_near(study, results.told, rho, TRIED_NEAR)
        why = sentences.FAILED_NEAR if failed else sentences.NOTHING_NEAR
        return MeanPolicyWorth(np.nan, np.nan, NOTHING, why, here.results)
    return here


def _is_near(results: ModelledResults, rho: Diagonal) -> bool:
    """Whether a result lies near the middle of `rho`."""
    far = np.mean(((results.theta - rho.mean) / rho.std) ** 2, axis=1)
    return bool(np.min(far) <= TRIED_NEAR**2)


def _as_asked(params: Plain, asked: Given) -> Plain:
    """Parameters by name, numbers as they were typed: 60, and not what comes back of its logarithm.

    Whole numbers and choices are as the study has them.
    """
    pairs = zip(params.items(), asked, strict=True)
    return {name: float(x) if isinstance(known, float) else known for (name, known), x in pairs}


def _half(here: MeanPolicyWorth) -> float:
    """Half of an interval's width."""
    return (here.interval.high - here.interval.low) / 2


def _completed(study: Opened, params: Given) -> Given:
    """Values by name with those of the mean policy for the others."""
    if not hasattr(params, "items"):
        return params
    names = study.labels
    for name in params:
        if name not in names:
            raise InputError(f"there is no parameter {name!r}: they are {', '.join(names)}.")
    now = dict(zip(names, study.in_units(study.mean).tolist(), strict=True))
    return [params.get(name, now[name]) for name in names]


def matters(study: Opened, results: ModelledResults) -> list[Matters]:
    """Every parameter, and pairs of those that matter, over what was tried; the largest first.

    By a model about all of it, in coordinates that are the parameters: where results are more than
    a model takes, by some at all distances. Empty where there are too few to say; inside
    `reading()`.
    """
    too_few = why_none(study, results) or rarely(results.values) is not None
    if study.dim > MOST_PARAMETERS or too_few:
        return []
    wide = np.maximum(results.std, np.std(results.theta, axis=0))
    tried = StandardCoordinates(study.parameters, Diagonal(results.mean, wide)).at(results.theta)
    some = _at_all_distances(tried)
    belief = believed(tried[some], results.values[some], about=(0.0,))  # distance is no coordinate
    names, axes = study.labels, _axes(study, tried)
    still = {i for i, axis in enumerate(axes) if not np.ptp(tried[:, axis.columns], axis=0).any()}
    said = []
    for row in effects(belief, np.mean(tried, axis=0), np.std(tried, axis=0), axes):
        known = (row.share, row.stderr, bool(row.size > SEEN))
        found = known if still.isdisjoint(row.which) else (np.nan, np.nan, False)
        said.append(Matters(tuple(names[i] for i in row.which), *found))
    return sorted(said, key=lambda row: -np.nan_to_num(row.share))


def _at_all_distances(z: np.ndarray) -> np.ndarray:
    """Which of results at `z [n, D]` a model about all is made of: no more than `MODELLED`."""
    order = np.argsort(np.sum(z**2, axis=1), kind="stable")
    return order[np.linspace(0, len(z) - 1, min(len(z), MODELLED)).round().astype(int)]


def _axes(study: Opened, tried: np.ndarray) -> list[Axis]:
    """The parameters, a choice as often as it was tried, of coordinates `tried [n, D]`."""
    if not study.choices:
        return [Axis((i,)) for i in range(study.dim)]
    found = []
    for p, place in zip(study.parameters, places_of(study.parameters), strict=True):
        columns = tuple(range(study.dim)[place])
        if p.choices is None:
            found.append(Axis(columns))
        else:
            at, counts = np.unique(tried[:, place], axis=0, return_counts=True)
            found.append(Axis(columns, at, counts / len(tried)))
    return found

"""What results say of one point, and which parameters matter: at no rollout. No JAX."""

from typing import Any, NamedTuple

import numpy as np

from recoup.checks import InputError
from recoup.core.families.rho import Diagonal
from recoup.core.plain.tops import effects
from recoup.core.worth import NOTHING
from recoup.study import sentences
from recoup.study.gained import times
from recoup.study.goals import turned, turned_ends
from recoup.study.landscape import Results, landscape, results_of, why_none, worth_of
from recoup.study.opened import Opened
from recoup.study.trials import by_name

MOST_PARAMETERS = 30  # of which it is said which matter
VAGUE = 1.0  # standard deviations of the returns: a wider half of an interval says nothing


class Prediction(NamedTuple):
    """The expected return of parameters that need not have been tried."""

    params: dict[str, Any]  # in the user's units
    expected: float  # not a number where nothing near them was tried
    stderr: float
    low: float  # of the 95 % interval
    high: float
    results: int  # that the model looked at
    words: str

    def plain(self) -> dict[str, Any]:
        """The prediction as JSON can hold it."""
        return self._asdict()


class Matters(NamedTuple):
    """How much of what returns vary by, beside noise, a parameter or a pair of them explains."""

    names: tuple[str, ...]
    share: float
    stderr: float


def predict(study: Opened, params: Any) -> Prediction:
    """The expected return of a theta, in the user's units in order or by name.

    Parameters that are not named stay at the mean policy.
    """
    if study.method.space == "actions":
        raise InputError(f"{study.method.name} explores in actions: no model of theta is made.")
    names = list(study.names) or [f"theta_{i}" for i in range(study.dim)]
    with study.store.reading():
        results = results_of(study)
        theta = study.latent_theta(_completed(study, params, names))
        shown = by_name(names, study.in_units(theta), study.whole)
        none = why_none(study, results)
        if none:
            return Prediction(shown, np.nan, np.nan, *NOTHING, 0, sentences.not_predicted(none))
        std = results.std
        found = landscape(study, results, Diagonal(theta, std))
        here = worth_of(found, found.here(), results)
    half = (here.interval.high - here.interval.low) / 2
    if not half <= VAGUE * float(np.std(results.values)):
        words = sentences.not_predicted("nothing near it was tried")
        return Prediction(shown, np.nan, np.nan, *NOTHING, found.belief.results, words)
    ends = times(here.interval, results.unit)
    low, high = turned_ends(*ends, study.sign)
    value = turned(here.value * results.unit, study.sign)
    words = sentences.predicted(value, low, high, found.belief.results, study.goal)
    error = here.stderr * results.unit
    return Prediction(shown, value, error, low, high, found.belief.results, words)


def _completed(study: Opened, params: Any, names: list[str]) -> Any:
    """Values by name with those of the mean policy for the others."""
    if not hasattr(params, "items"):
        return params
    for name in params:
        if name not in names:
            raise InputError(f"there is no parameter {name!r}: they are {', '.join(names)}.")
    now = dict(zip(names, study.in_units(study.mean).tolist(), strict=True))
    return [params.get(name, now[name]) for name in names]


def matters(study: Opened, results: Results) -> list[Matters]:
    """Every parameter, and pairs of those that matter, over what was tried; the largest first.

    Empty where there are too few results to say; inside `reading()`.
    """
    if why_none(study, results) or study.dim > MOST_PARAMETERS:
        return []
    found = landscape(study, results, Diagonal(results.mean, results.std))
    tried = found.whitened(results.theta)
    names = study.names or tuple(f"theta_{i}" for i in range(study.dim))
    rows = effects(found.belief, np.mean(tried, axis=0), np.std(tried, axis=0))
    said = [Matters(tuple(names[i] for i in row.which), row.share, row.stderr) for row in rows]
    return sorted(said, key=lambda row: -row.share)

"""The candidate whose return is surely best, of those that the results cover. No JAX.

Looked at are parameters that were tried, the mean policy, and the middles between the two: nothing
beyond what was seen, and nothing that keeps a limit less surely than was asked for. The model of
`landscape` says which of them has the best lower end of its interval, and `predict` what that one
is worth.
"""

from itertools import islice
from typing import NamedTuple

import numpy as np

from recoup.core.plain.belief import expected
from recoup.core.types import Plain
from recoup.core.worth import quantile
from recoup.study.reader.opened import Opened
from recoup.study.voice import sentences
from recoup.study.voice.keeping import outside, seem_within
from recoup.study.voice.landscape import landscape, results_of, why_none
from recoup.study.voice.predict import Prediction, predict

LOOKED_FROM = 60  # of the best results, which candidates are made of
PREDICTED = 3  # of the candidates, the best ones


class Suggestion(NamedTuple):
    """Parameters, and what they are worth; None where results say nothing, with why.

    `Study.suggest` gives it.

    >>> study.suggest().prediction.params["offset"] < 2
    True
    """

    prediction: Prediction | None  # of the parameters
    words: str  # what that means


def suggestion(study: Opened) -> Suggestion:
    """The candidate with the best lower end of its interval."""
    if study.method.space == "actions":
        return Suggestion(None, f"{study.method.name} explores in actions: no model of theta.")
    with study.store.reading():
        results = results_of(study)
        none = why_none(study, results)
        if none:
            return Suggestion(None, f"Nothing can be suggested: {none}.")
        best = np.argsort(-results.values, kind="stable")[:LOOKED_FROM]
        tried, middle = results.theta[best], results.mean
        thetas = np.concatenate([middle[None], tried, (tried + middle) / 2])
        found = landscape(study, results)
        value, covariance = expected(found.belief, found.at(thetas))
        half = quantile(found.belief.results) * np.sqrt(np.diag(covariance).clip(0))
        thetas = thetas[np.argsort(-(value - half), kind="stable")]
        thetas = thetas[seem_within(study, results, thetas)]
        said = (predict(study, _typed(study, theta)) for theta in thetas)
        within = (one for one in said if not outside(one.limits, study.limits.within))
        kept = list(islice(within, PREDICTED))
    if not kept:
        limits = [limit.text for limit in study.limits.rows]
        return Suggestion(None, sentences.nothing_within(limits, study.limits.within))
    known = [one for one in kept if np.isfinite(one.low)]
    if not known:
        return Suggestion(None, "Nothing can be suggested: no candidate's return is known.")
    one = max(known, key=lambda one: one.low if study.sign > 0 else -one.high)
    return Suggestion(one, one.words)


def _typed(study: Opened, theta: np.ndarray) -> Plain | list[float]:
    """A latent theta in the user's units, as somebody would type it."""
    params = study.params(study.in_units(theta))
    return params if study.names else list(params.values())

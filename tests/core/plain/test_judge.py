"""What samples say of a candidate, and when the model of the returns is asked."""

import numpy as np
import pytest

from recoup.core import intervals
from recoup.core.families.gaussian import Diagonal, diagonal_gaussian
from recoup.core.intervals import looked_at
from recoup.core.plain import judge
from recoup.core.plain.densities import Proposals
from recoup.core.plain.small_archive import Samples
from recoup.core.worth import worth

CASES = {  # results, shift and width of the candidate; whether a model is fitted, and why none is
    "narrow": (600, 0.4, 0.2, True, ""),
    "few": (80, 0.4, 0.8, True, ""),
    "wide": (600, 0.4, 0.9, False, ""),  # 256 results would carry too little of the weight
    "far": (80, 4.0, 0.8, False, "unseen"),
    "tiny": (5, 0.0, 1.0, False, "few"),
}


@pytest.fixture(params=CASES)
def case(request, monkeypatch):
    """An archive of N(0, I), a candidate, how often the model was fitted, and what is expected."""
    n, shift, width, *expected = CASES[request.param]
    rng, fits = np.random.default_rng(2), []
    theta = rng.standard_normal((n, 2))
    samples = Samples(theta, theta[:, 0] ** 2 + rng.normal(size=n), np.zeros(n, int))
    one = Diagonal(np.zeros((1, 2)), np.ones((1, 2)))
    proposals = Proposals(diagonal_gaussian(), one, Diagonal(np.zeros(2), np.ones(2)))
    mixture = np.full(n, np.log(n))  # relative to what drew them
    drew = judge.Drew(proposals, np.zeros(n, bool), mixture)
    fitted = intervals.fitted
    monkeypatch.setattr(intervals, "fitted", lambda *a: fits.append(1) or fitted(*a))
    return Diagonal(np.full(2, shift), np.full(2, width)), samples, drew, fits, expected


def test_the_model_is_fitted_only_where_it_is_asked(case):
    """Weights that refuse refuse whatever it says; of a part of the weight it says nothing."""
    rho, samples, drew, fits, (asked, why) = case
    seen, _, unseen, _ = judge.judged(rho, samples, drew, failure="censored", size=1)
    assert worth(seen, unseen, 2).refused == why
    assert len(fits) == asked
    assert np.isfinite(seen.model_std) == asked


def test_what_is_said_is_what_is_said_if_it_is_always_asked(case):
    """To the bit, with the model of the whole archive at hand."""
    rho, samples, drew, *_ = case
    seen, weights, unseen, _ = judge.judged(rho, samples, drew, failure="censored", size=1)
    ones, stratum = np.ones(len(weights), bool), np.zeros(len(weights), int)
    data = intervals.WeighedDraws(weights, samples.returns, ones, ones, stratum, 1)
    z = drew.proposals.noise(rho, samples.theta)
    always = worth(looked_at(data, lambda rows: z[rows]), unseen, 2)
    np.testing.assert_array_equal(np.hstack(always[:-1]), np.hstack(worth(seen, unseen, 2)[:-1]))
    assert always.refused == worth(seen, unseen, 2).refused

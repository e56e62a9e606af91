"""What every claim says, held against made-up data where it is just true and just false."""

import numpy as np
import pytest
from claim_cases import FIGURES

from recoup.reproduce import reproduce as running
from recoup.reproduce.claims import FAILS, HOLDS

CASES = [(name, id_) for name, figure in FIGURES.items() for id_ in figure.cases]


def judged(figure, data):
    """The claims of a figure by id."""
    with np.errstate(all="ignore"):
        return {claim.id: claim for claim in running.FIGURES[figure].claims(data)}


def made(name, *changes):
    data = FIGURES[name].neutral()
    for change in changes:
        change(data)
    return data


@pytest.mark.parametrize("name", running.FIGURES)
def test_every_claim_of_a_figure_has_its_case(name):
    if name == "reach-model":
        assert running.FIGURES[name].claims({}) == []
        return
    assert list(judged(name, made(name))) == list(FIGURES[name].cases)


@pytest.mark.parametrize(("name", "id_"), CASES, ids=[id_ for _, id_ in CASES])
def test_it_holds_a_hair_beyond_and_falls_a_hair_short(name, id_):
    """One quantity at a time: each change lets one contrast fail, the next one in order."""
    case = FIGURES[name].cases[id_]
    for true in (case.true, *case.also):
        claim = judged(name, made(name, true))[id_]
        assert [c.verdict for c in claim.contrasts] == [HOLDS] * len(claim.contrasts), claim
        assert claim.verdict == HOLDS
    assert len(case.false) == len(claim.contrasts)
    for i, false in enumerate(case.false):
        claim = judged(name, made(name, case.true, false))[id_]
        wanted = [FAILS if j == i else HOLDS for j in range(len(claim.contrasts))]
        assert [c.verdict for c in claim.contrasts] == wanted, (i, claim)
        assert claim.verdict == FAILS

"""A candidate is judged from what is kept of the results, and by nothing that has changed since."""

import numpy as np
import pytest

from recoup.study.moves import uncompiled
from recoup.study.study import Study
from recoup.study.voice import doubts

CANDIDATES = [([0.2, 0.1], 0.7), ([-0.3, 0.4], 0.9), ([3.0, 3.0], 0.5)]


def told(study, n):
    """A study in which `n` more results were told."""
    for trial in study.ask(n):
        study.tell(trial.id, -float(np.sum((trial.theta - 0.5) ** 2)) + 0.1 * (trial.id % 7))


@pytest.fixture
def path(tmp_path):
    """A study of two parameters and five moves, and a result that stands out."""
    path = tmp_path / "study.db"
    with Study.open(path, dim=2, batch=8, method="mis-pgpe-ob") as study:
        told(study, 44)
        study.tell(study.ask()[0].id, 400.0)
    return path


def all_said(study):
    """What is said of every candidate, the newest first; not a number is equal to itself."""
    return repr([study.evaluate()[:], *(study.evaluate(*one)[:] for one in CANDIDATES)])


def said_afresh(path):
    """The same by a study that was asked nothing before, each candidate by one of its own."""
    found = []
    for one in ((), *CANDIDATES):
        with Study.open(path) as study:
            found.append(study.evaluate(*one)[:])
    return repr(found)


def imported(study):
    """Samples from elsewhere."""
    theta = np.random.default_rng(4).normal(size=(20, 2))
    study.import_samples(theta, -np.sum(theta**2, axis=1), np.zeros(2), np.ones(2))


CHANGES = {
    "a result": lambda study: told(study, 1),
    "a move": lambda study: told(study, 8),
    "a failure": lambda study: study.tell(study.ask()[0].id, failed="fell"),
    "another value": lambda study: study.amend(20, 3.0),
    "the slip put right": lambda study: study.amend(45, -1.0),
    "none at all": lambda study: study.amend(21, drop="a loose sensor"),
    "samples from elsewhere": imported,
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("by_another", [False, True], ids=["here", "elsewhere"])
def test_nothing_is_said_of_results_that_have_changed(path, change, by_another):
    """Told, amended, dropped or imported, by this or another: to the bit as if asked afresh."""
    with Study.open(path) as study:
        before = all_said(study)
        if by_another:
            with Study.open(path) as other:
                CHANGES[change](other)
        else:
            CHANGES[change](study)
        after = all_said(study)
    assert after == said_afresh(path)
    assert after != before


def test_the_order_of_questions_changes_no_answer(path):
    """Fifty other candidates before it, or none."""
    rng = np.random.default_rng(1)
    with Study.open(path) as study:
        for _ in range(50):
            study.evaluate(rng.normal(size=2), rng.uniform(0.3, 1.0))
            study.weighed(rng.normal(size=2), rng.uniform(0.3, 1.0))
        assert all_said(study) == said_afresh(path)


def test_what_is_of_no_candidate_is_made_once(path, monkeypatch):
    """Densities under the mixture, and which results stand out; made anew after the next result."""
    made, looked = [], []
    mixture, slips = uncompiled._extended_mixture, doubts.slips
    monkeypatch.setattr(uncompiled, "_extended_mixture", lambda *a: made.append(1) or mixture(*a))
    monkeypatch.setattr(doubts, "slips", lambda *a: looked.append(1) or slips(*a))
    with Study.open(path) as study:
        for one in CANDIDATES:
            study.evaluate(*one)
            study.weighed(*one)
        assert len(made) == len(looked) == 1
        told(study, 1)
        study.evaluate(*CANDIDATES[0])
        assert len(made) == len(looked) == 2

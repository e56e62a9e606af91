"""What objects show of themselves: short, whole numbers, and escaped in notebooks."""

import pydoc
import re

import numpy as np
import pytest

import recoup

SCRIPT = "<script>alert(1)</script>"
LINES, LETTERS = 40, 300  # of a screen; of what an object says of itself


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """A study of a parameter whose name a page might obey."""
    path = tmp_path_factory.mktemp("hand") / "s.db"
    with recoup.Study.open(path, params={SCRIPT: (0, 1), "b": None}, batch=8, seed=0) as found:
        trials = found.ask(16)
        returns = [-sum(trial.theta**2) for trial in trials]
        found.tell([trial.id for trial in trials], returns)
        yield found


@pytest.fixture(scope="module")
def things(study):
    """One of everything that a person holds."""
    theta = np.random.default_rng(0).normal(size=(20, 2))
    drew = {"proposals": (np.zeros((1, 2)), np.ones((1, 2))), "proposal": np.zeros(20, int)}
    target = ([0.1, 0.1], [0.9, 0.9])
    run = recoup.train(lambda theta: -float(theta @ theta), dim=2, iterations=2, seed=0)
    return {
        "Study": study,
        "Trial": study.ask()[0],
        "TrialResult": study.trials()[0],
        "Evaluation": study.evaluate(),
        "Recommendation": study.recommend(),
        "Prediction": study.predict({"b": 0.0}),
        "Snapshot": study.snapshot(),
        "Run": run,
        "GradientEstimate": recoup.estimate(theta, -np.sum(theta**2, 1), **drew, target=target),
        "Method": recoup.Method(SCRIPT, window=3),
        "Search": recoup.search(recoup.Method(SCRIPT, window=3), dim=2, batch=4),
    }


NAMES = ("Study", "Trial", "TrialResult", "Evaluation", "Recommendation", "Prediction", "Snapshot")
NAMES += ("Run", "GradientEstimate", "Method", "Search")


@pytest.mark.parametrize("name", NAMES)
def test_a_thing_says_what_it_is_in_a_few_words(things, name):
    text = repr(things[name])
    assert text.startswith(f"{name}(")
    assert len(text) < LETTERS
    assert "array(" not in text
    assert not re.search(r"\d\.\d{7}", text), "digits that nobody reads"


@pytest.mark.parametrize("name", NAMES)
def test_a_thing_is_a_small_table_in_a_notebook(things, name):
    html = things[name]._repr_html_()
    assert "<table>" in html
    assert "<script" not in html
    if name not in ("Evaluation", "Run", "GradientEstimate", "Snapshot"):
        assert "&lt;script&gt;" in html


def test_numbers_are_those_of_the_thing(things):
    found, search = things["Recommendation"], things["Search"]
    assert repr(found).startswith(
        f"Recommendation({found.verdict}; return {found.expected:.3g}"[:28]
    )
    assert repr(search) == f"Search({SCRIPT}, 2 parameters, batch 4, keeps 12 samples)"
    assert repr(recoup.METHODS["tiw-pgpe-ob"]) == (
        "Method('tiw-pgpe-ob', window=5, weighting='own', truncate=2.0, baseline='optimal')"
    )


def test_what_is_traced_shows_itself_too():
    import jax

    seen = []

    def traced(theta):
        found = recoup.estimate(
            theta,
            -(theta**2).sum(1),
            proposals=(np.zeros((1, 2)), np.ones((1, 2))),
            proposal=np.zeros(4, int),
            target=([0.1, 0.1], [0.9, 0.9]),
        )
        seen.append(repr(found))
        return found.objective

    jax.eval_shape(traced, jax.ShapeDtypeStruct((4, 2), "float32"))
    assert seen[0].startswith("GradientEstimate(traced; ")


def test_help_begins_with_a_screen_that_leads_on():
    text = pydoc.plain(pydoc.render_doc(recoup))
    first = text.splitlines()[:LINES]
    assert any("In a terminal: `recoup --help`." in line for line in first)
    assert len(recoup.__doc__.splitlines()) <= LINES - 12
    for name in re.findall(r"recoup\.(\w+)", recoup.__doc__):
        assert hasattr(recoup, name)

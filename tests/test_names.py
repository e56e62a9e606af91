"""What `recoup` gives by name."""

import subprocess
import sys

import pytest

import recoup

NOUNS = ("InputError", "Trial", "Evaluation", "Recommendation", "Prediction", "Snapshot")
NOUNS += ("Search", "Method", "METHODS", "relative")


@pytest.mark.parametrize("name", recoup.__all__)
def test_every_name_is_there(name):
    assert getattr(recoup, name) is not None


def test_the_words_of_errors_and_results_are_among_them():
    assert set(NOUNS) <= set(recoup.__all__)
    with pytest.raises(recoup.InputError, match="no such method"):
        recoup.search("no such method", dim=2, batch=4)
    with pytest.raises(AttributeError, match="has no attribute 'Nonsense'"):
        _ = recoup.Nonsense


def test_what_a_study_gives_needs_no_jax():
    names = ["Study", *(name for name in NOUNS if name not in ("Search",))]
    program = (
        f"import sys, recoup; [getattr(recoup, n) for n in {names}]; print('jax' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.split() == ["False"], done.stderr

"""What docs/understand/reuse.md says of its picture is what the script of the picture computes."""

from pathlib import Path

import numpy as np
from benchmarks.reuse_picture import EACH, MEANS, drawn, weighed

PAGE = Path(__file__).parents[2] / "docs" / "understand" / "reuse.md"


def test_the_numbers_on_the_page_are_those_of_the_picture():
    theta, index = drawn()
    own, mixture = weighed(theta, index, "own"), weighed(theta, index, "balance")
    text = PAGE.read_text()
    assert f"has a weight of {float(own.max_weight):.0f}" in text.replace("\n", " ")
    assert (round(float(own.ess)), round(float(mixture.ess))) == (9, 20)
    assert float(mixture.max_weight) <= len(theta) / EACH == len(MEANS) == 4


def test_the_largest_weight_is_of_a_sample_far_from_the_middle_of_what_drew_it():
    theta, index = drawn()
    largest = int(np.argmax(np.asarray(weighed(theta, index, "own").weights)))
    assert index[largest] != len(MEANS) - 1

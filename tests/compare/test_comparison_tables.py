"""Numbers of a comparison as they are printed: whole at any scale."""

import re

import numpy as np
import pytest

from recoup.compare.comparison_tables import _counts, reached, shown
from recoup.compare.statistics import Mean
from recoup.compare.summary import _verdicts, corrected_verdicts


def read(text):
    """The numbers of a cell, a power of ten outside of brackets taken in."""
    power = re.search(r"\)e(-?\d+)$", text)
    scale = 10.0 ** int(power[1]) if power else 1.0
    return [scale * float(x) for x in re.findall(r"-?\d+\.?\d*(?:e-?\d+)?", text.split(")")[0])]


@pytest.mark.parametrize("scale", [1e-12, 1e-7, 1e-4, 0.01, 1.0, 37.0, 1e5])
def test_means_and_errors_have_two_digits_of_the_error_at_any_scale(scale):
    for mean, error in ((-1.2345, 0.0231), (0.0, 0.5), (7.7, 9.96), (3.0, 0.1)):
        found = read(shown(mean * scale, error * scale))
        np.testing.assert_allclose(found, [mean * scale, error * scale], atol=0.051 * error * scale)


def test_a_mean_without_error_is_whole():
    assert shown(0.004, 0.0) == "0.004 ± 0"
    assert shown(-1e-7, 1e-20) == "-1e-07 ± 0"
    assert shown(200.0, 0.0) == "200 ± 0"


def row(value=None, end=1.0):
    found = {"value": value, "low": value, "high": None}
    return {"episodes_to_target": found, "search": {"mean": [0.0, end]}}


def test_without_a_target_or_a_return_nothing_is_said_of_reaching_it():
    assert reached(row(), None, 40) == "–"
    assert reached(row(end=None), 3.0, 40) == "–"
    assert reached(row(), 3.0, 40) == "> 40"
    assert reached(row(12.0), 3.0, 40) == "12 [12, > 40]"


def test_of_many_cells_the_corrected_counts_are_fewer():
    """Twenty differences: three far away, three just above two standard errors, fourteen none."""
    means = [9.0, 8.0, -7.0, 2.2, 2.3, -2.4, *[0.1] * 14]
    words = corrected_verdicts([Mean(mean, 1.0, 30) for mean in means])
    assert words == ["better", "better", "worse", *["level"] * 17]
    cells = [{"mean": mean, "stderr": 1.0} for mean in means] + [{"mean": None, "stderr": None}]
    method = {"method": "a", "policy": {"mean": [0.0] * 22}, "against": {"policy": cells}}
    found = _verdicts([{"methods": [method]}], "a", "policy", 30)
    assert (found["better"], found["level"], found["worse"]) == (4, 14, 2)
    assert found["unknown"] == 1
    assert _counts({"policy": found}, "policy") == "4 / 14 / 2 (2 / 17 / 1), 1 without a number"

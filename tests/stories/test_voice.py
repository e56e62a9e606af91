"""What studies say is true: a part of `python -m benchmarks.voice`, on tasks that were held out."""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest
from benchmarks import voice, voice_tables

TASKS = ("counts", "skewed 5", "far start", "uphill in a box")
STUDIES = 8
PROMISES = {"forecast": "gain", "forecast_draw": "gain_draw"}
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def rows():
    jobs = [(name, 3000 + seed) for seed in range(STUDIES) for name in TASKS]
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        return [row for several in pool.map(voice.rows, jobs) for row in several]


@pytest.mark.parametrize("name", voice_tables.SAID)
def test_intervals_hold_the_truth_of_what_the_same_results_have_chosen(rows, name):
    """The mean policy, a draw of the newest distribution, and what the next move gains for both."""
    held, given = voice_tables.held(voice_tables.told_of("", rows).rows, name)
    assert given == 5 * STUDIES * len(TASKS)
    assert held >= 0.9 * given


@pytest.mark.parametrize("name", ["mean policy", "a draw"])
def test_intervals_are_no_wider_than_three_times_the_error_on_either_side(rows, name):
    """Half of the mean width over the root of the mean square error: 1.96 is exact."""
    tasks = [voice_tables.told_of("", [r for r in rows if r["task"] == task]) for task in TASKS]
    wide = np.array([told.wide[name] for told in tasks])
    assert np.median(wide[:, 1] / 2 / wide[:, 2]) <= 3


@pytest.mark.parametrize(("said", "true"), PROMISES.items())
def test_what_is_promised_comes(rows, said, true):
    """Within 0.8 and 1.25 times, and two standard errors of leaving out a study at a time."""
    large = [row for row in rows if row[said][0] > 0.01 * row["spread"]]
    sums = np.array([(row[said][0] / row["spread"], row[true] / row["spread"]) for row in large])
    seeds = np.array([row["seed"] for row in large])
    left = [sums[seeds != seed].sum(axis=0) for seed in np.unique(seeds)]
    logs = np.array([np.log(a / b) for a, b in left])
    error = ((len(logs) - 1) * np.var(logs)) ** 0.5
    promised, came = sums.sum(axis=0)
    assert abs(np.log(promised / came)) <= np.log(1.25) + 2 * error
    assert error < 0.3  # else it says nothing


def test_there_is_more_to_gain_after_go_on_than_after_stop(rows):
    regret = {
        verdict: [(r["top"] - r["true"]) / r["spread"] for r in rows if r["verdict"] == verdict]
        for verdict in ("stop", "go on")
    }
    assert min(map(len, regret.values())) >= 5
    assert np.mean(regret["stop"]) < np.mean(regret["go on"]) / 2


def test_most_candidates_of_no_results_choice_get_a_number_that_holds(rows):
    others = [other for row in rows for other in row["others"] or ()]
    given = [row for row in others if np.isfinite(row[4])]
    assert len(given) >= len(others) / 2
    assert np.mean([low <= truth <= high for *_, low, high, truth in given]) >= 0.9

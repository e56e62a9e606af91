from functools import cache

import numpy as np
import pytest

import recoup
from recoup.runs.lockstep import learn, search_of
from recoup.runs.plan import task_settings
from recoup.tasks.registry import make_task, task_row

CASES = [("toy", "mis-pgpe-ob", 4), ("mountain-car", "iw-reinforce-ob", 24), ("reach-2", "r3", 6)]


def lockstep(task, method, horizon, seeds, **settings):
    row, problem = task_row(task), make_task(task, horizon)
    search = search_of(problem, method, row.batch, 3, {**task_settings(row, method), **settings})
    how = {"checkpoints": (0, 2, 3), "tests": row.test_episodes}
    ticks = []
    runs = learn(problem, search, seeds, 3, **how, tick=lambda: ticks.append(None))
    assert len(ticks) == 3
    return runs


@pytest.fixture(scope="module")
def both():
    """The runs of seeds 3 and 7 of a case, made once."""
    return cache(lambda task, method, horizon: lockstep(task, method, horizon, [3, 7]))


@pytest.mark.slow
@pytest.mark.parametrize(("task", "method", "horizon"), CASES)
def test_each_run_is_the_one_that_is_made_of_its_seed_alone(task, method, horizon, both):
    runs = both(task, method, horizon)
    alone = lockstep(task, method, horizon, [7])
    assert runs.checkpoints.tolist() == [0, 2, 3]
    assert runs.returns.shape == (2, 3)
    assert runs.ess.shape == runs.max_weight.shape == runs.failed.shape == (2, 3)
    for key in ("returns", "mean", "std", "ess", "max_weight", "failed"):
        np.testing.assert_allclose(getattr(runs, key)[1], getattr(alone, key)[0], rtol=1e-9)
    assert np.isfinite(runs.returns).all()
    assert not np.allclose(runs.mean[0], runs.mean[1])
    assert not np.allclose(runs.mean[:, 0], runs.mean[:, -1])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "method", "horizon", "settings"),
    [*((*case, {}) for case in CASES), ("toy", "iw-pgpe-ob", 4, {"family": "full"})],
)
def test_each_run_starts_where_the_run_that_train_makes_does(task, method, horizon, settings, both):
    """And is tested there with the same keys; later its draws are its own."""
    case = (task, method, horizon)
    runs = lockstep(*case, [3, 7], **settings) if settings else both(*case)
    alone = recoup.train(task, method, iterations=3, seed=7, horizon=horizon, **settings)
    np.testing.assert_allclose(runs.mean[1, 0], alone.means[0], rtol=1e-12)
    np.testing.assert_array_equal(runs.std[1, 0], alone.stds[0])
    np.testing.assert_allclose(runs.returns[1, 0], alone.curve.mean[0], rtol=1e-9)
    assert len(alone.curve.mean) == 1 + runs.ess.shape[1]
    assert [step.samples for step in alone.history[1:]] == [
        alone.plan.batch * (i + 1) for i in range(3)
    ]

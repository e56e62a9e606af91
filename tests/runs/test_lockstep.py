import numpy as np
import pytest

import recoup
from recoup.runs.lockstep import learn
from recoup.runs.train import search_of, task_settings
from recoup.tasks.registry import make_task, task_row


@pytest.mark.parametrize(
    ("task", "method", "horizon"),
    [("toy", "mis-pgpe-ob", 4), ("mountain-car", "iw-reinforce-ob", 8), ("reach-2", "r3", 6)],
)
def test_each_run_is_the_one_that_train_makes_of_its_seed(task, method, horizon):
    row, problem = task_row(task), make_task(task, horizon)
    search = search_of(problem, method, row.batch, 3, task_settings(row, method))
    ticks = []
    runs = learn(
        problem,
        search,
        [3, 7],
        3,
        checkpoints=(0, 2, 3),
        tests=row.test_episodes,
        tick=lambda: ticks.append(None),
    )
    alone = recoup.train(task, method, iterations=3, seed=7, horizon=horizon)
    assert runs.checkpoints.tolist() == [0, 2, 3]
    np.testing.assert_allclose(runs.returns[1], alone.curve.mean[[0, 2, 3]], rtol=1e-9)
    np.testing.assert_allclose(runs.mean[1, -1], alone.mean, rtol=1e-9)
    np.testing.assert_allclose(runs.std[1, -1], alone.std, rtol=1e-9)
    np.testing.assert_allclose(runs.ess[1], [s.ess for s in alone.history[1:]], rtol=1e-9)
    assert not np.allclose(runs.mean[0], runs.mean[1])
    assert len(ticks) == 3

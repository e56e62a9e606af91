"""Every method learns on every task, and says what it did."""

import numpy as np
import pytest

import recoup
from recoup.methods import METHODS
from recoup.tasks import TASKS


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("task", TASKS)
def test_every_method_trains_on_every_task(task, method):
    run = recoup.train(task, method, iterations=8, batch=10, seed=0)
    assert np.isfinite(run.curve.mean).all()
    assert (run.std >= 0.05).all()
    assert run.summary()["episodes"] == 80
    assert all(0 < step.ess <= step.samples + 1e-9 for step in run.history[1:])

"""Every method learns on every kind of task, and says what it did."""

import numpy as np
import pytest

import recoup
from recoup.engine.methods import METHODS
from recoup.tasks.registry import REACH, TASKS
from recoup.tasks.suite import ROWS

# Variations of tasks that every method is tried on, and tasks to compare methods on.
VARIATIONS = ("mountain-car-weak", "reach-4", "reach-9", *(row.name for row in ROWS))
PAIRS = [(task, method) for task in TASKS if task not in VARIATIONS for method in METHODS]
PAIRS += [(task, method) for task in VARIATIONS for method in ("mis-pgpe-ob", "iw-reinforce-ob")]


@pytest.mark.slow
@pytest.mark.parametrize(("task", "method"), PAIRS)
def test_every_method_trains_on_every_task(task, method):
    short = {"iterations": 2, "horizon": 10} if TASKS[task].env_id == REACH else {"iterations": 8}
    run = recoup.train(task, method, batch=10, seed=0, **short)
    assert np.isfinite(run.curve.mean).all()
    assert (run.std >= 0.05).all()
    assert run.summary()["episodes"] == 10 * short["iterations"]
    assert all(0 < step.ess <= step.samples + 1e-9 for step in run.history[1:])

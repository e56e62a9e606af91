"""What runs know before a trial: the first observation, or what a function says of itself."""

import gymnasium
import numpy as np
import own_tasks
import pytest

import recoup
from recoup.tasks.own.environment import MOST_NUMBERS, known_of

pytestmark = pytest.mark.usefixtures("sketches")

QUICK = {"horizon": 10, "test_episodes": 2}


def kept(run):
    return {t.id: dict(t.also) for t in run.study.trials()}


def test_the_observation_after_a_reset_is_a_trials_context():
    run = recoup.train("Pendulum-v1", episodes=20, **QUICK)
    env = gymnasium.make("Pendulum-v1")
    for trial in run.study.trials():
        first, _ = env.reset(seed=trial.seed)
        want = {f"context.{i}": float(x) for i, x in enumerate(first, 1)}
        assert dict(trial.also) == want
    assert run.study.history()[-1]["notes"]["context"] > 0.3


def test_of_several_episodes_it_is_their_mean():
    run = recoup.train("Pendulum-v1", episodes=12, episodes_per_trial=3, **QUICK)
    assert all(len(x) == 3 for x in kept(run).values())
    assert all(np.hypot(x["context.1"], x["context.2"]) < 0.999 for x in kept(run).values())


def test_no_context_is_kept_where_no_move_looks_at_it():
    for how in ({"context": False}, {"method": "cem"}):
        run = recoup.train("Pendulum-v1", episodes=8, **QUICK, **how)
        assert not any(kept(run).values())


def test_what_is_no_short_row_of_finite_numbers_is_no_context():
    assert known_of([np.array([1, 2]), np.array([3, 4])]) == (2.0, 3.0)
    for firsts in (
        [3],
        [{"x": np.zeros(2)}],
        [np.zeros((2, 2))],
        [np.zeros(MOST_NUMBERS + 1)],
        [np.zeros(0)],
        [np.zeros(2), np.zeros(3)],
        [],
        [np.array([np.nan])],
        [np.array(["a"])],
        [np.zeros(2), 3],
    ):
        assert known_of(firsts) is None


@pytest.mark.parametrize("how", [{}, {"engine": "process", "workers": 2, "sync": True}])
def test_a_function_may_return_what_it_knew_before(how):
    how = {"seed": 2, "test_episodes": 2, **how}
    run = recoup.train(own_tasks.loaded, dim=2, episodes=16, batch=4, **how)
    for trial in run.study.trials():
        value, known = own_tasks.loaded(trial.theta, trial.seed)
        assert (trial.value, dict(trial.also)) == (value, {"context.load": known["load"]})
    assert run.study.history()[-1]["notes"]["context"] > 0.5


def test_a_context_that_cannot_be_kept_fails_its_trial_and_says_why():
    run = recoup.train(own_tasks.misnamed, dim=2, episodes=4, batch=4, retries=0, test_episodes=2)
    assert run.failed == 4
    assert all("needs a name" in t.note for t in run.study.trials())

"""No randomness is used twice: not by two trials, two iterations, or a test and what it tests."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import recoup
from recoup.runs import problem
from recoup.runs.lockstep import learn, search_of
from recoup.study.reader.draws import episode_seed
from recoup.tasks.registry import make_task


class Recorder:
    """A task that notes the keys of all its episodes, in the order they are rolled out."""

    def __init__(self, name="toy"):
        self.calls = []
        inner = make_task(name)

        def rollouts(keys, theta):
            jax.debug.callback(self._note, jax.random.key_data(keys))
            return inner.rollouts(keys, theta)

        self.task = inner._replace(rollouts=rollouts)

    def _note(self, data):
        self.calls.append({tuple(row) for row in np.asarray(data).reshape(-1, 2).tolist()})
        assert len(self.calls[-1]) == np.size(data) // 2  # none twice in one call

    def assert_apart(self):
        jax.effects_barrier()
        together = set().union(*self.calls)
        assert len(together) == sum(len(call) for call in self.calls)


def test_no_two_of_a_million_trials_have_the_same_seed():
    for seed in (0, 7):
        found = {episode_seed(seed, number) for number in range(1, 1_000_001)}
        assert len(found) == 1_000_000
        assert min(found) >= 0
        assert max(found) < 2**31


def test_studies_of_different_seeds_have_other_episodes():
    first, second = ({episode_seed(s, n) for n in range(1, 10_001)} for s in (0, 1))
    assert not first & second


def test_trials_have_noise_of_their_own(tmp_path):
    with recoup.Study.open(tmp_path / "s.db", dim=2, batch=5, seed=3) as study:
        trials = study.ask(40)
    assert len({trial.theta.tobytes() for trial in trials}) == 40
    assert len({trial.seed for trial in trials}) == 40


@pytest.mark.parametrize("seeds", [[0], [4, 5, 6]])
@pytest.mark.slow
def test_runs_in_lock_step_test_on_episodes_that_they_did_not_learn_from(seeds):
    recorder = Recorder()
    method = search_of(recorder.task, "iw-pgpe-ob", 6, 4, {})
    learn(recorder.task, method, seeds, 4, checkpoints=range(5), tests=9)
    jax.effects_barrier()
    assert len(recorder.calls) == 4 + 5
    assert sorted(len(call) for call in recorder.calls) == sorted(
        [6 * len(seeds)] * 4 + [9 * len(seeds)] * 5
    )
    recorder.assert_apart()


def test_a_run_tests_on_episodes_that_it_did_not_learn_from(monkeypatch):
    recorder = Recorder()
    monkeypatch.setattr(problem, "make_task", lambda *_, **__: recorder.task)
    recoup.train("toy", method="mis-pgpe-ob", iterations=4, batch=6, seed=2)
    jax.effects_barrier()
    assert sum(len(call) == 6 for call in recorder.calls) == 4
    assert len(recorder.calls) == 4 + 5 + 2  # tests: at the start, after each move, two at the end
    recorder.assert_apart()


def test_draws_of_a_search_differ_between_iterations():
    search = recoup.search("mis-pgpe-ob", dim=2, batch=4)
    state = search.init(jax.random.key(0))
    drawn = [np.asarray(search.ask(jax.random.key(i), state)[0]) for i in range(20)]
    assert len({row.tobytes() for theta in drawn for row in theta}) == 80
    again, _ = search.ask(jax.random.key(3), state)
    np.testing.assert_array_equal(again, drawn[3])
    assert jnp.asarray(again).shape == (4, 2)

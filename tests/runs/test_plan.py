"""Other budgets for a run: so many episodes in all, beside so many iterations."""

import json

import numpy as np
import own_tasks
import pytest
from program import recoup as program

import recoup
from recoup.checks import InputError
from recoup.runs.plan import stored_plan
from recoup.study.study import Study

pytestmark = pytest.mark.usefixtures("sketches")


def slope(theta, seed):
    return float(np.sum(theta))


@pytest.fixture
def run(tmp_path):
    """A finished run of eight episodes, in two batches."""
    recoup.train(slope, "pgpe", dim=2, iterations=2, batch=4, seed=1, out=tmp_path / "r")
    return tmp_path / "r"


def trials(out):
    with Study.open(out / "study.db") as study:
        return [(trial.id, trial.theta.tolist(), trial.value) for trial in study.trials()]


def test_a_finished_run_goes_on_to_so_many_episodes(run, tmp_path):
    more = recoup.resume(run, task=slope, episodes=15)
    assert more.finished
    assert more.episodes == 15
    assert more.history[-1].iteration == 3
    with Study.open(run / "study.db") as study:
        plan = stored_plan(study.opened)
    assert (plan.iterations, plan.spare, plan.episodes) == (3, 3, 15)
    config = json.loads((run / "config.json").read_text())
    assert (config["iterations"], config["spare"]) == (3, 3)
    same = recoup.train(slope, "pgpe", dim=2, iterations=4, batch=4, seed=1, out=tmp_path / "s")
    assert trials(run) == trials(same.out)[:15]  # as if it had been so from the start


def test_so_many_iterations_are_whole_batches(run, tmp_path):
    """Also where the budget of before was in episodes, and was no whole number of them."""
    assert recoup.resume(run, task=slope, episodes=10).plan.spare == 2
    more = recoup.resume(run, task=slope, iterations=4)
    assert (more.episodes, more.plan.iterations, more.plan.spare) == (16, 4, 0)
    same = recoup.train(slope, "pgpe", dim=2, iterations=4, batch=4, seed=1, out=tmp_path / "s")
    assert trials(run) == trials(same.out)


def test_the_same_budget_leaves_it_as_it_is(run):
    before = (run / "study.db").read_bytes()
    assert recoup.resume(run, task=slope, episodes=8).episodes == 8
    assert (run / "study.db").read_bytes() == before


@pytest.mark.parametrize(
    ("budget", "sentence"),
    [
        ({"episodes": 7}, "has spent 8 episodes: it can be extended to more, not cut to 7"),
        ({"episodes": 20, "iterations": 5}, "give episodes or iterations, not both"),
        ({"episodes": 0}, "episodes must be a whole number of at least 1, got 0"),
        ({"episodes": 8.5}, "episodes must be a whole number"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_changes(run, budget, sentence):
    before = (run / "study.db").read_bytes()
    with pytest.raises(InputError, match=sentence):
        recoup.resume(run, task=slope, **budget)
    assert (run / "study.db").read_bytes() == before


def test_trials_of_several_episodes_are_whole(tmp_path):
    how = {"iterations": 1, "batch": 4, "episodes_per_trial": 3, "horizon": 5}
    recoup.train(own_tasks.Walk, "pgpe", out=tmp_path / "r", **how)
    with pytest.raises(InputError, match="multiple of the 3 episodes of a trial, got 20"):
        recoup.resume(tmp_path / "r", task=own_tasks.Walk, episodes=20)
    assert recoup.resume(tmp_path / "r", task=own_tasks.Walk, episodes=21).episodes == 21


def test_a_task_of_ours_and_the_command(tmp_path):
    words = ("train", "toy", "--iterations", "2", "--batch", "4", "--quiet", "--out", "run")
    assert program(*words, cwd=tmp_path).returncode == 0
    done = program("resume", "run", "--episodes", "14", "--json", "--quiet", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["episodes"], found["iterations"]) == (14, 3)
    wrong = program("resume", "run", "--episodes", "3", "--quiet", cwd=tmp_path)
    assert wrong.returncode == 2
    assert "has spent 14 episodes" in wrong.stderr


def test_none_is_put_in_line_of_a_run_which_asks_by_itself(run):
    before = (run / "study.db").read_bytes()
    done = program("study", "enqueue", run / "study.db", "0.1", "0.1")
    assert done.returncode != 0
    assert "study.db is the study of a run, which asks and tells by itself." in done.stderr
    with Study.open(run / "study.db") as study, pytest.raises(InputError, match="of a run"):
        study.enqueue([0.1, 0.1])
    assert (run / "study.db").read_bytes() == before


def test_a_theta_put_in_line_is_rolled_out_beside_the_budget(run):
    """Of before. Also one that was handed out before a stop; the mean is left to who asked."""
    with Study.open(run / "study.db") as study:
        with study.store.writing():
            for x in (0.1, 0.2):
                study.store.enqueue(study.opened.latent_theta([x, x]))
        study.ask(1)
        study.ask(1, at="mean")
    more = recoup.resume(run, task=slope, iterations=4)
    assert more.finished
    assert (more.episodes, more.history[-1].iteration) == (16, 4)
    told = [(trial.kind, trial.status) for trial in more.study.trials() if trial.kind != "drawn"]
    assert told == [("own", "ok"), ("mean", "pending"), ("own", "ok")]


def test_samples_from_elsewhere_are_no_rollouts_of_a_run(tmp_path):
    """Nor is one of them that was dropped."""
    how = {"batch": 4, "test_episodes": 2}
    for seed in (1, 2):
        recoup.train("toy", "mis-pgpe-ob", iterations=2, seed=seed, out=tmp_path / f"{seed}", **how)
    files = [tmp_path / f"{seed}" / "study.db" for seed in (1, 2)]
    assert program("study", "import", files[1], files[0]).returncode == 0
    with Study.open(files[1]) as study:
        theirs = [trial.id for trial in study.trials() if trial.kind == "imported"]
        assert len(theirs) == 8
        study.amend(theirs[0], drop="the sensor was loose")
    run = recoup.resume(tmp_path / "2", iterations=4)
    assert run.episodes == 16
    assert [step.episodes for step in run.history] == [0, 4, 8, 12, 16]
    assert run.curve.episodes.tolist() == [0, 4, 8, 12, 16]
